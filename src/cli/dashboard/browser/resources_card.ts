/** The card of the cached resources, and the sentence on how they are doing. */

import type { ResourceState } from "../dashboard_message.ts";
import { byId, keyed, make, makeLink, makeRow, setClass, setText } from "./dom.ts";
import type { View } from "./reading.ts";
import { tableLink } from "./route.ts";
import { ago, duration, number, plural, visible } from "./texts.ts";

/** The time after which a problem that is over is no longer shown. */
const OLD_PROBLEM_MS = 600_000;
/** A longer path is of nothing that could be cached. */
const MOST_PATH = 300;

const PHASES: Readonly<Record<Exclude<ResourceState["phase"], "backingOff">, string>> = {
  idle: "not started",
  resuming: "resuming",
  listing: "listing",
  streaming: "listing",
  watching: "watching",
  stopped: "stopped",
};

/** Whether a resource has content: of a list, or of a snapshot. */
export function isShown(resource: ResourceState): boolean {
  return resource.synced || resource.restored !== undefined;
}

function phaseText(resource: ResourceState, { nowMs }: View): string {
  const { phase, progress, attempt, nextRetryTimeMs = 0 } = resource;
  if (phase === "backingOff") {
    const inMs = nextRetryTimeMs - nowMs;
    const failed = attempt > 0 ? ` · ${number(attempt)} failed` : "";
    return (inMs > 900 ? `retry in ${duration(inMs)}` : "retrying") + failed;
  }
  if (progress === undefined) return PHASES[phase];
  const { items, remaining } = progress;
  return `listing: ${number(items)}${remaining === undefined ? "" : ` of ${number(items + remaining)}`}`;
}

/** The reason why resources cannot be read, if all of them have the same one. */
function commonReason({ state: { resources } }: View): string {
  const reasons = new Set<string>();
  for (const { attempt, lastError } of resources) {
    if (attempt > 0 && lastError !== undefined) reasons.add(lastError.message);
  }
  const [reason] = reasons;
  return reasons.size === 1 ? reason : "";
}

interface Problem {
  readonly isOver: boolean;
  readonly text: string;
}

function problemOf(resource: ResourceState, view: View): Problem {
  const { lastError, attempt, quarantined: count } = resource;
  const quarantined = count > 0 ? `${plural(count, "invalid object", "invalid objects")} quarantined. ` : "";
  if (lastError === undefined) return { isOver: true, text: quarantined };
  const { code, message, timeMs } = lastError;
  // The summary has the common reason.
  if (attempt > 0) {
    return { isOver: false, text: quarantined + (message === commonReason(view) ? "" : message) };
  }
  // A server without streaming lists answers with an Invalid error, which is no problem.
  if (code === "Invalid" || view.nowMs - timeMs > OLD_PROBLEM_MS) return { isOver: true, text: quarantined };
  return { isOver: true, text: `${quarantined}Recovered; ${ago(view.nowMs - timeMs)}: ${message}` };
}

/** A row of the table: a resource, or its problem below. */
interface Row {
  readonly resource: ResourceState;
  readonly problem?: Problem;
}

export function showResources(view: View): void {
  const items = view.state.resources.flatMap((resource): Row[] => {
    const problem = problemOf(resource, view);
    return problem.text === "" ? [{ resource }] : [{ resource }, { resource, problem }];
  });
  keyed(byId("resources"), {
    items,
    keyOf: ({ resource, problem }) => `${problem === undefined ? "row" : "problem"}:${resource.name}`,
    create: ({ resource, problem }) => problem === undefined ? newRow(resource) : newProblemRow(),
    update: (row, { resource, problem }) =>
      problem === undefined ? updateRow(row, resource, view) : updateProblem(row, problem),
  });
}

function newProblemRow(): HTMLTableRowElement {
  const row = makeRow("");
  row.cells[0].colSpan = 7;
  return row;
}

function updateProblem(row: HTMLTableRowElement, { isOver, text }: Problem): void {
  setClass(row, isOver ? "problem over" : "problem");
  setText(row.cells[0], text);
  row.cells[0].title = text;
}

function newRow(resource: ResourceState): HTMLTableRowElement {
  const row = makeRow("", "number", "", "number", "number", "number mono", "number");
  const href = tableLink(resource);
  row.cells[0].append(makeLink(href, resource.name));
  row.cells[1].append(makeLink(href, ""));
  row.cells[2].append(make("span", "phase", make("span", "dot"), make("span", "words")));
  return row;
}

function updateRow(row: HTMLTableRowElement, resource: ResourceState, view: View): void {
  const [, objects, phase, watches, lag, version, event] = row.cells;
  const { lagMs, lastEventTimeMs, attempt } = resource;
  setText(objects.children[0], isShown(resource) ? number(resource.objects) : "–");
  const chip = phase.children[0];
  setClass(chip, `phase ${attempt > 0 ? "backingOff" : resource.phase}`);
  setText(chip.children[1], phaseText(resource, view));
  setText(watches, number(resource.watches));
  setText(lag, lagMs === undefined ? "–" : duration(lagMs + view.ageMs));
  setText(version, resource.resourceVersion || "–");
  setText(event, lastEventTimeMs === undefined ? "–" : ago(view.nowMs - lastEventTimeMs));
}

/** Shows whether the state can be trusted, and why not. */
export function showSummary(view: View): void {
  const { resources, cluster: { namespaces } } = view.state;
  const isTrouble = view.isLost ||
    resources.some(({ attempt, restored }) => attempt > 0 || restored !== undefined);
  const only = namespaces === undefined
    ? ""
    : namespaces.length === 1
    ? ` Only namespace ${namespaces[0]} is cached.`
    : ` Only namespaces ${namespaces.join(", ")} are cached.`;
  setText(byId("summary"), missingText() + summaryOf(view) + only);
  setClass(byId("summary"), isTrouble ? "summary tone warn" : "summary");
}

/** Says of a link to a resource that is not cached, or not any more, that it led here for that. */
function missingText(): string {
  const [path] = location.hash.slice(1).split("?", 1);
  return path.length < 2 ? "" : `Nothing is cached at ${visible(path.slice(0, MOST_PATH))}. `;
}

function summaryOf(view: View): string {
  const { state: { resources }, nowMs, ageMs, isLost, isRefused } = view;
  if (isLost) {
    const next = isRefused
      ? "The server refuses to answer: reload the page to give it another token."
      : "The page reconnects automatically.";
    return `This is the state of ${ago(ageMs)}. ${next}`;
  }
  const failing = resources.filter(({ attempt }) => attempt > 0);
  const waiting = resources.filter((resource) => !isShown(resource));
  const saved = resources.flatMap(({ restored }) => restored === undefined ? [] : [restored.savedAtMs]);
  const snapshot = saved.length === 0 ? "" : `a snapshot of ${ago(nowMs - Math.min(...saved))}`;
  if (failing.length > 0) {
    const which = failing.length === resources.length
      ? "No resource can"
      : failing.length === 1
      ? `${failing[0].name} cannot`
      : `${failing.length} of ${resources.length} resources cannot`;
    const reason = commonReason(view);
    const next = waiting.length > 0
      ? "Retrying."
      : snapshot !== ""
      ? `Stale: ${snapshot} is shown.`
      : "The last known state is shown.";
    return `${which} be read at present${reason === "" ? "" : `: ${reason}`}. ${next}`;
  }
  if (snapshot !== "") return `Stale: ${snapshot} is shown until the server confirms it.`;
  if (waiting.length > 0) {
    const listed = resources.length - waiting.length;
    return `Syncing: ${listed} of ${resources.length} resources have their first list.`;
  }
  const all = resources.length === 1 ? "The resource is" : `All ${resources.length} resources are`;
  return `${all} up to date with the server.`;
}
