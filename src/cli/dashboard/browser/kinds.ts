/** Known resources: which states their objects have, and which of these are counted. */

/** A row of the answer to `groupBy`. */
export interface CountedGroup {
  readonly group: Readonly<Record<string, string | number | boolean | null>>;
  readonly count: number;
}

export type Tone = "good" | "warn" | "bad" | "plain";

export interface StateCount {
  readonly label: string;
  readonly count: number;
  readonly search: string;
  readonly tone: Tone;
}

export const READY = "status.conditions[type=Ready].status";
const WAITING = "status.containerStatuses[].state.waiting.reason";
const LAST_END = "status.containerStatuses[].lastState.terminated.reason";
const FAILED = "status.conditions[type=Failed].status";

const NOT_READY: Readonly<Record<string, string>> = {
  // A pod that has completed is not expected to be ready.
  "pods": `${READY}!=True,status.phase!=Succeeded`,
  "nodes": `${READY}!=True`,
  "deployments.apps": "status.unavailableReplicas>0",
  "daemonsets.apps": "status.numberUnavailable>0",
  "jobs.batch": `${FAILED}=True`,
};

/** The filter of the objects that are not ready; `undefined` if nothing says so. */
export function notReadyFilter(name: string): string | undefined {
  if (Object.hasOwn(NOT_READY, name)) return NOT_READY[name];
  return isCustom(name) ? `${READY} in (False,Unknown)` : undefined;
}

/** Kubernetes' own groups have no dot in their names, or end in `k8s.io`. */
function isCustom(name: string): boolean {
  return /^[^.]+\.[^.]+\./.test(name) && !name.endsWith(".k8s.io");
}

type StateWords = readonly (readonly [words: RegExp, filter: (word: string) => string])[];

const PHASES = /^(?:pending|running|succeeded|failed|unknown|active|bound|released|available|lost)$/;

const phase = (word: string) => `status.phase~${word}`;

const STATES: Readonly<Record<string, StateWords>> = {
  "pods": [
    [PHASES, phase],
    [/^completed?$/, () => "status.phase=Succeeded"],
    [
      /^(?:crash\w*|imagepull\w*|errimage\w*|containercreating|createcontainer\w*)$/,
      (word) => `${WAITING}~${word}`,
    ],
    [/^oom(?:killed)?$/, (word) => `${LAST_END}~${word}`],
    [/^evicted$/, () => "status.reason=Evicted"],
  ],
  "nodes": [[/^(?:cordoned|schedulingdisabled)$/, () => "spec.unschedulable=true"]],
  "namespaces": [[PHASES, phase]],
  "persistentvolumes": [[PHASES, phase]],
  "persistentvolumeclaims": [[PHASES, phase]],
  "events": [[/^warnings?$/, () => "type=Warning"], [/^normal$/, () => "type=Normal"]],
  "jobs.batch": [[/^failed$/, () => `${FAILED}=True`]],
};

/** The filter that a word of a state means for a resource; `undefined` if it is no such word. */
export function stateFilter(name: string, word: string): string | undefined {
  if (word === "terminating") return "metadata.deletionTimestamp";
  const found = Object.hasOwn(STATES, name) ? STATES[name].find(([words]) => words.test(word)) : undefined;
  return found?.[1](word);
}

/** The counts of a resource's objects: by which fields, and what they mean. */
export interface StateCounts {
  readonly groupBy: readonly (readonly string[])[];
  /** Takes the answers in the order of the queries. */
  states(answers: readonly (readonly CountedGroup[])[]): readonly StateCount[];
}

function sum(groups: readonly CountedGroup[], test: (group: CountedGroup["group"]) => boolean): number {
  return groups.reduce((total, { group, count }) => test(group) ? total + count : total, 0);
}

/** The count of each value at a path. */
function byValue(
  groups: readonly CountedGroup[],
  path: string,
  searchOf: (label: string) => string,
  tone = toneOf,
): StateCount[] {
  const counts = new Map<string, number>();
  for (const { group: { [path]: value }, count } of groups) {
    if (value !== null) counts.set(String(value), (counts.get(String(value)) ?? 0) + count);
  }
  return Array.from(counts, ([label, count]) => (
    { label, count, search: searchOf(label), tone: tone(label) }
  ));
}

function notReady(count: number): StateCount {
  return { label: "Not ready", count, search: "not ready", tone: "bad" };
}

function phases(groups: readonly CountedGroup[]): StateCount[] {
  return byValue(groups, "status.phase", (label) => `phase=${label}`);
}

const PHASE_COUNTS: StateCounts = { groupBy: [["status.phase"]], states: ([groups]) => phases(groups) };

const COUNTS: Readonly<Record<string, StateCounts>> = {
  "pods": {
    groupBy: [["status.phase", READY], [WAITING]],
    states: ([groups, waiting]) => [
      notReady(sum(groups, (group) => group["status.phase"] !== "Succeeded" && group[READY] !== "True")),
      ...phases(groups),
      ...byValue(waiting, WAITING, (label) => `reason=${label}`),
    ],
  },
  "nodes": {
    groupBy: [[READY, "spec.unschedulable"]],
    states: ([groups]) => [
      notReady(sum(groups, (group) => group[READY] !== "True")),
      {
        label: "Cordoned",
        count: sum(groups, (group) => group["spec.unschedulable"] === true),
        search: "cordoned",
        tone: "warn",
      },
    ],
  },
  "deployments.apps": unavailable("status.unavailableReplicas"),
  "daemonsets.apps": unavailable("status.numberUnavailable"),
  "jobs.batch": {
    groupBy: [[FAILED]],
    states: ([groups]) => [
      { ...notReady(sum(groups, (group) => group[FAILED] === "True")), label: "Failed" },
    ],
  },
  "events": {
    groupBy: [["type"]],
    states: ([groups]) =>
      byValue(
        groups,
        "type",
        (label) => label.toLowerCase(),
        (label) => label === "Warning" ? "warn" : "plain",
      ),
  },
  "namespaces": PHASE_COUNTS,
  "persistentvolumes": PHASE_COUNTS,
  "persistentvolumeclaims": PHASE_COUNTS,
};

function unavailable(path: string): StateCounts {
  return {
    groupBy: [[path]],
    states: ([groups]) => [notReady(sum(groups, (group) => Number(group[path] ?? 0) > 0))],
  };
}

const CUSTOM: StateCounts = {
  groupBy: [[READY, "status.phase"]],
  states: ([groups]) => [
    notReady(sum(groups, (group) => group[READY] === "False" || group[READY] === "Unknown")),
    ...phases(groups),
  ],
};

/** How the states of a resource's objects are counted; `undefined` if none are known. */
export function stateCountsOf(name: string): StateCounts | undefined {
  if (Object.hasOwn(COUNTS, name)) return COUNTS[name];
  return isCustom(name) ? CUSTOM : undefined;
}

const GOOD = /^(?:running|ready|active|bound|available|complete|completed|succeeded|true|normal|healthy)$/i;
const BAD = /crash|err|fail|notready|evicted|oom|unknown|lost|invalid|unhealthy|backoff/i;

export function toneOf(word: string): Tone {
  if (GOOD.test(word)) return "good";
  if (BAD.test(word)) return "bad";
  return /pending|creating|terminating|init|waiting|scheduling|warning|released|progress/i.test(word)
    ? "warn"
    : "plain";
}
