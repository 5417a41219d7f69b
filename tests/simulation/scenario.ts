/**
 * The scenario of one simulated world, made from a seed alone, as readable data.
 * @module
 */

import type { Call } from "./callers.ts";
import type { Flaw, Scope } from "./cluster_model.ts";
import type { ConsistentReaderConfig } from "./consistent_reader.ts";
import type { Chunking, Injury } from "./connection.ts";
import type { HandlerConfig } from "./handler_probe.ts";
import { SELECTORS } from "./indices.ts";
import type { Mood } from "./judge.ts";
import type { NetworkState, Refusal, Verb } from "./network_model.ts";
import type { ProgramConfig } from "./program.ts";
import type { RestartingConfig } from "./restarting_program.ts";
import { SeededRandom } from "./seeded_random.ts";
import type { ReaderConfig } from "./served_reader.ts";
import type { ServerSettings } from "./server_model.ts";

/** One action. */
export type Action =
  | {
    readonly do: "put";
    readonly resource: string;
    readonly key: string;
    readonly app: string;
    readonly node: string;
    readonly value: number;
    readonly flaw?: Flaw;
  }
  | { readonly do: "delete"; readonly resource: string; readonly key: string }
  | { readonly do: "tick"; readonly count: number }
  | { readonly do: "bookmark" }
  | { readonly do: "compact"; readonly keep: number }
  | { readonly do: "forget"; readonly server: number }
  | { readonly do: "lag"; readonly server: number; readonly ms: number }
  | { readonly do: "freeze"; readonly server: number; readonly frozen: boolean }
  | {
    readonly do: "restart";
    readonly server: number;
    readonly downMs: number;
    readonly startingMs: number;
    readonly graceful: boolean;
  }
  | { readonly do: "network"; readonly state: Partial<NetworkState> }
  | {
    readonly do: "refuse";
    readonly verb: Verb;
    readonly with: Refusal | undefined;
    readonly chance: number;
  }
  | { readonly do: "settings"; readonly settings: Partial<ServerSettings> }
  | {
    readonly do: "injure";
    readonly with: Injury | "close" | "reset" | "silence";
    readonly chance: number;
  }
  | { readonly do: "heal" }
  | {
    readonly do: "restore";
    /** How many revisions are lost. */
    readonly back: number;
    /** Whether the servers withhold from an open watch all events up to its old version. */
    readonly filters: boolean;
    /** Whether the servers are restarted with it. */
    readonly restarts: boolean;
    /** Whether it is another cluster that responds from then on. */
    readonly replaces: boolean;
  }
  | { readonly do: "failWatches"; readonly code: number; readonly reason: string; readonly chance: number }
  | { readonly do: "addHandler"; readonly program: number; readonly handler: HandlerConfig }
  | { readonly do: "removeHandler"; readonly program: number }
  | { readonly do: "setClock"; readonly byMs: number }
  | { readonly do: "suspend"; readonly ms: number; readonly stops: boolean }
  | { readonly do: "call"; readonly program: number; readonly call: Call }
  | { readonly do: "judge"; readonly mood: Mood };

/** A step and its time, in milliseconds from the start. */
export interface Step {
  readonly atMs: number;
  readonly action: Action;
}

/** The scenario of a world. */
export interface Scenario {
  readonly seed: number;
  /** The faults of this world. */
  readonly faults: readonly Fault[];
  readonly firstRevision: number;
  /** How long a turn of the event loop takes that the library gives to others, in milliseconds. */
  readonly turnMs: number;
  readonly servers: number;
  readonly programs: readonly ProgramConfig[];
  /** Programs with a snapshot that are killed and started again. */
  readonly restarting: readonly RestartingConfig[];
  readonly settings: ServerSettings;
  /** The settings after faults stop: permanent properties of the cluster. */
  readonly calmSettings: ServerSettings;
  /** The state of the network after faults stop. */
  readonly calmNetwork: Partial<NetworkState>;
  /** The interval of continuous writes until the end, in milliseconds; 0 for none. */
  readonly chatterMs: number;
  readonly chunking: Chunking;
  readonly byteStream: boolean;
  /** Whether flawed objects stay flawed. */
  readonly flawsStay: boolean;
  readonly steps: readonly Step[];
  /** When faults stop, in milliseconds from the start. */
  readonly calmMs: number;
}

/** The faults that a world may have. */
export const FAULTS = [
  "cut",
  "truncate",
  "drop",
  "duplicate",
  "repeat",
  "garbage",
  "delay",
  "blackHole",
  "silentList",
  "refuse",
  "tooMany",
  "serverError",
  "proxy",
  "errorEvent",
  "compact",
  "expire",
  "lag",
  "restart",
  "noBookmarks",
  "noInitialEvents",
  "restore",
  "flaw",
  "whim",
  "endlessStream",
  "cutStream",
  "shortAnswers",
  "noWatch",
  "refusedInStream",
  "slowList",
  "clock",
] as const;

/** One of {@linkcode FAULTS}. */
export type Fault = (typeof FAULTS)[number];

/** Longer than a list may be silent. */
const SLOW_LIST_MS = 120_000;
/** Faults of streams where only lists succeed. */
const BAD_STREAMS = ["reset", "unanswered", "refused", "tooManySeconds"] as const;
/** Shorter than the time until the end of a slow stream. */
const SHORT_ANSWER_MS = 5_000;
const NAMESPACES = ["a", "b"];
const FEW_NAMES = 5;
const APPS = ["web", "db", "api"];
const NODES = ["node-1", "node-2", "node-3"];

/** Makes the scenario of a seed. `faults` are those that may occur. */
export function newScenario(seed: number, faults: readonly Fault[] = FAULTS): Scenario {
  const random = new SeededRandom(seed);
  // Few kinds of faults at a time: a world in which everything fails hides more than it shows.
  const chosen = faults.length === 0 ? [] : pickSome(random, faults, random.int(0, 5));
  // Restores are of many kinds.
  if (faults.includes("restore") && !chosen.includes("restore") && random.chance(0.2)) chosen.push("restore");
  // After a restore versions decrease: facts that depend on versions (what a proxy sends again, what was
  // refused at which version, which bookmarks came) would be unknown.
  if (chosen.includes("restore")) {
    for (const fault of ["repeat", "flaw", "whim", "noBookmarks"] as const) remove(chosen, fault);
  }
  const has = (fault: Fault) => chosen.includes(fault);
  const programs = Array.from({ length: random.pick([1, 1, 2, 3]) }, () => {
    const program = newProgram(random);
    return {
      ...program,
      // A DeltaFIFO applies whatever its stream sends, as client-go does.
      ...((has("repeat") || has("restore")) && { queue: "real" as const }),
      // Skipped text is not parsed: missing bytes in it cannot be detected.
      ...(has("drop") && { view: "everything" as const }),
      // A reader that lists in pages during continuous writes must be able to continue from its version.
      ...(has("endlessStream") && { eventWindow: 4_096 }),
      ...(has("whim") && { refuses: random.pick(["schema", "index", "transform"] as const) }),
    };
  });
  const servers = random.pick([1, 2, 2]);
  const calmSettings: ServerSettings = {
    initialEvents: has("noInitialEvents") && random.chance(0.5)
      ? random.pick(["ignored", "rejected"] as const)
      : has("endlessStream") && random.chance(0.5)
      ? "endless"
      : has("shortAnswers") || has("refusedInStream")
      ? "slow"
      : "sent",
    knowsWatch: !(has("noWatch") && random.chance(0.5)),
    bookmarks: !((has("noBookmarks") || has("restore")) && random.chance(0.5)),
    listsFromCache: random.chance(0.85),
    tokensExpire: false,
    refusesByHttp: random.chance(0.3),
    // A cache's window must be longer than a list takes, if that is long or writes are continuous.
    windowRevisions: has("endlessStream") || has("slowList") ? 100 : random.pick([4, 15, 100]),
    servesMetadata: random.chance(0.7),
    identifiesCluster: new SeededRandom(seed ^ 0xc1d).chance(0.7),
  };
  const calmNetwork: Partial<NetworkState> = {
    ...(has("cutStream") && random.chance(0.7) && { streams: random.pick(BAD_STREAMS) }),
    ...probesOf(new SeededRandom(seed ^ 0x9e0b)),
    ...(has("shortAnswers") && random.chance(0.7) && { longestAnswerMs: SHORT_ANSWER_MS }),
    // Slower than a page may be silent; with cuts as well it would never succeed.
    ...(has("slowList") && !has("shortAnswers") && { slowListMs: SLOW_LIST_MS }),
  };
  const settings = { ...calmSettings };
  const steps = newSteps(random, {
    has,
    programs,
    servers,
    names: random.pick([FEW_NAMES, FEW_NAMES, FEW_NAMES, 12, 30]),
  });
  const last = steps.length === 0 ? 0 : steps[steps.length - 1].atMs;
  return {
    seed,
    faults: chosen,
    firstRevision: random.pick([5, 90, 95, 990, 99_990]),
    turnMs: new SeededRandom(seed ^ 0x7a3).pick(
      chosen.length === 0 ? [0, 0, 1, 20] : [0, 0, 0, 0, 0, 0, 1, 20],
    ),
    servers,
    programs,
    restarting: newRestarting(new SeededRandom(seed ^ 0x5a7e), {
      hasDrops: has("drop"),
      hasRestore: has("restore"),
      hasWhims: has("whim"),
      hasShortAnswers: has("shortAnswers"),
      isUndisturbed: chosen.length === 0,
      spanMs: Math.max(1_000, last),
    }),
    settings,
    calmSettings,
    calmNetwork,
    // A polling program is always behind, and so is a long list.
    chatterMs: has("endlessStream") && calmSettings.knowsWatch && !has("slowList")
      ? random.pick([2_000, 5_000])
      : 0,
    chunking: random.pick(["frame", "send", "split", "coalesce"] as const),
    byteStream: random.chance(0.3),
    flawsStay: random.chance(0.5),
    steps,
    calmMs: last + random.int(0, 2_000),
  };
}

/** Some servers never answer what asks for nothing but their version. */
function probesOf(random: SeededRandom): Partial<NetworkState> {
  return random.chance(0.05)
    ? { probes: random.pick(["reset", "tooManyPlain", "internalError"] as const) }
    : {};
}

function newProgram(random: SeededRandom): ProgramConfig {
  const resource = random.pick(["pods", "pods", "services"]);
  const scope: Scope = {
    resource,
    namespace: random.chance(0.2) ? random.pick(NAMESPACES) : "",
    app: random.chance(0.25) ? random.pick(APPS) : "",
  };
  const program = {
    scope,
    useWatchList: random.chance(0.6),
    pageSize: random.pick([0, 0, 1, 2, 7, 500]),
    queue: random.chance(0.85) ? "real" as const : "delta" as const,
    resyncPeriodMs: random.chance(0.3) ? random.int(2, 20) * 1_000 : 0,
    refuses: random.pick(["nothing", "schema", "index", "transform"] as const),
    view: random.pick(
      ["ordinary", "ordinary", "ordinary", "everything", "names", "args", "lean", "metadata"] as const,
    ),
    storage: random.pick(["objects", "objects", "encoded", "plain"] as const),
    notifyUnchanged: random.chance(0.7),
    endsBy: random.pick(["run", "start", "stop"] as const),
    smallFrames: random.chance(0.5),
    workers: random.pick([0, 0, 0, 0, 0, 1, 2]),
    eventWindow: random.pick([2, 20, 4_096]),
    readers: Array.from({ length: random.pick([0, 0, 0, 0, 0, 1, 2]) }, () => newReader(random)),
    handlers: Array.from({ length: random.int(1, 3) }, () => newHandler(random)),
    seed: random.int(0, 2 ** 31),
  };
  const pace = new SeededRandom(program.seed ^ 0x9ace);
  const crowd = new SeededRandom(program.seed ^ 0xfa40);
  return {
    ...program,
    readers: program.readers.flatMap((reader) => [reader, ...newCompanions(reader, crowd)]),
    watchBufferBytes: crowd.pick([64 * 1024, 64 * 1024, 700]),
    turnObjects: pace.pick([1, 1, 2, 3, 1_000, 1_000]),
    meddles: pace.chance(0.4),
    consistentReader: newConsistentReader(new SeededRandom(program.seed ^ 0xf4e5)),
  };
}

function newRestarting(
  random: SeededRandom,
  { isUndisturbed, hasDrops, hasWhims, hasShortAnswers, hasRestore, spanMs }: {
    readonly isUndisturbed: boolean;
    readonly hasRestore: boolean;
    readonly hasDrops: boolean;
    readonly hasShortAnswers: boolean;
    readonly hasWhims: boolean;
    readonly spanMs: number;
  },
): RestartingConfig[] {
  if (!random.chance(hasRestore ? 0.7 : 0.35)) return [];
  const { scope, useWatchList, pageSize, view, storage, turnObjects, refuses, seed } = newProgram(random);
  const more = new SeededRandom(seed ^ 0x10ad);
  // Large contents take longer than the shortest answers.
  const objects = !hasShortAnswers && more.chance(isUndisturbed ? 0.4 : 0.02) ? more.int(2_000, 3_000) : 0;
  return [{
    scope: objects === 0 ? scope : { resource: "leases", namespace: "", app: "" },
    useWatchList,
    pageSize: objects === 0 ? pageSize : 500,
    // Skipped text is not parsed: missing bytes in it cannot be detected.
    view: hasDrops ? "everything" : view,
    storage: more.pick([storage, "plain", "encoded"] as const),
    turnObjects: objects === 0 ? turnObjects : objects % 2 === 0 ? 100 : 1_000,
    objects,
    hasIndex: more.chance(0.3),
    handler: more.pick(["everything", "metadata"] as const),
    refuses: hasWhims || refuses === "schema" ? "schema" : "nothing",
    savesInTurn: random.chance(0.35),
    intervalMs: random.pick([0, 100, 1_000, 1_000, 5_000]),
    saveMs: random.pick([0, 0, 5, 300, 4_000]),
    failChance: random.pick([0, 0, 0, 0.2, 0.6]),
    loadMs: more.pick([0, 0, 5, 300, 4_000]),
    loadTimeoutMs: objects > 0 && isUndisturbed ? 30_000 : more.pick([30_000, 30_000, 1_000, 50]),
    heedsSignal: more.chance(0.5),
    lossChance: more.pick([0, 0, 0, 0.1, 0.6]),
    hasMetadata: random.chance(0.7),
    kills: Array.from({ length: random.int(1, 4) }, () => ({
      afterMs: random.int(1, Math.ceil(spanMs / 2)),
      atEvent: random.pick([1, 2, 3, 5, 8, Infinity]),
      // Long enough for another cluster to take the place of the one that it knows.
      downMs: random.pick([0, 0, 20, 1_000, hasRestore ? 30_000 : 9_000]),
      stops: more.chance(0.35),
    })),
    seed,
  }];
}

function newConsistentReader(random: SeededRandom): ConsistentReaderConfig | undefined {
  if (!random.chance(0.07)) return undefined;
  return {
    freshness: random.pick(["consistent", "consistent", "stale-if-error"] as const),
    levels: random.pick([1, 1, 2] as const),
    pageSize: random.pick([0, 2]),
    periodMs: random.pick([70, 900, 7_000]),
    seed: random.int(0, 2 ** 31),
  };
}

/**
 * Readers that watch the same, at another speed: with the reader
 * they share what is sent, as long as they keep up.
 */
function newCompanions(reader: ReaderConfig, random: SeededRandom): ReaderConfig[] {
  return Array.from({ length: random.pick([0, 1, 2, 3]) }, () => {
    // Less than between two writes of a world whose writes never end: it must be able to catch up.
    const readMs = random.pick([0, 40, 900, 1_500]);
    // A slow reader would be away between two watches: on a server that is restored meanwhile, its version is
    // from the future.
    return { ...reader, readMs, hopMs: readMs === 0 ? random.pick([0, 0, 5_000]) : 0 };
  });
}

function newReader(random: SeededRandom): ReaderConfig {
  return {
    namespace: random.chance(0.3) ? random.pick(NAMESPACES) : "",
    selector: random.chance(0.5) ? random.int(0, SELECTORS.length - 1) : -1,
    limit: random.pick([0, 1, 2, 7]),
    pauseMs: random.pick([0, 0, 10, 300]),
    streams: random.chance(0.3),
    readMs: 0,
    hopMs: random.pick([0, 0, 700, 9_000]),
  };
}

function newHandler(random: SeededRandom): HandlerConfig {
  const manner = random.pick(["quick", "quick", "async", "slow", "throwing", "rejecting"] as const);
  const resyncPeriodMs = random.chance(0.3) ? random.int(1, 10) * 1_000 : 0;
  const delayMs = random.int(1, 300);
  return {
    manner,
    delayMs,
    reads: new SeededRandom(delayMs).chance(0.35) ? "metadata" : "everything",
    mailboxLimit: random.chance(0.4) ? random.int(1, 4) : undefined,
    // A handler that is slow, or paused after an error, could not keep up with resyncs.
    resyncPeriodMs: manner === "quick" || manner === "async" ? resyncPeriodMs : 0,
  };
}

function remove<V>(values: V[], value: V): void {
  const at = values.indexOf(value);
  if (at >= 0) values.splice(at, 1);
}

function pickSome<V>(random: SeededRandom, values: readonly V[], count: number): V[] {
  const rest = [...values];
  const picked: V[] = [];
  while (picked.length < count && rest.length > 0) {
    picked.push(...rest.splice(random.int(0, rest.length - 1), 1));
  }
  return picked;
}

interface Making {
  readonly has: (fault: Fault) => boolean;
  readonly programs: readonly ProgramConfig[];
  readonly servers: number;
  /** How many names there are in each namespace. */
  readonly names: number;
}

function newSteps(random: SeededRandom, making: Making): Step[] {
  const steps: Step[] = [];
  let atMs = 0;
  let value = 0;
  const key = () => `${random.pick(NAMESPACES)}/n${random.int(0, making.names - 1)}`;
  const put = (flaw?: Flaw): Action => ({
    do: "put",
    resource: random.pick(["pods", "pods", "services"]),
    key: key(),
    app: random.pick(APPS),
    node: random.pick(NODES),
    value: value++,
    ...(flaw !== undefined && { flaw }),
  });
  const remove = (): Action => ({
    do: "delete",
    resource: random.pick(["pods", "pods", "services"]),
    key: key(),
  });
  const write = (): Action => (random.chance(0.7) ? put() : remove());
  const program = () => random.int(0, making.programs.length - 1);
  const call = (): Call => ({
    how: random.pick(["synced", "waitForVersion", "waitForVersion", "get"] as const),
    ahead: random.int(-2, 4),
    key: key(),
    ...(random.chance(0.6) && { forMs: random.pick([0, 20, 1_000, 30_000]) }),
  });
  const isLarge = making.names > FEW_NAMES;
  for (let i = random.int(0, isLarge ? 3 * making.names : 8); i > 0; i--) {
    steps.push({ atMs: -1, action: put() });
  }
  // Most worlds last seconds; some have pauses long enough for timeouts, bookmarks and dead peers.
  const hasPauses = random.chance(0.25);
  const faults = faultSteps(random, making, put);
  for (let i = random.int(12, 40); i > 0; i--) {
    atMs += random.pick([0, 1, 20, 300, 1_000, 3_000]);
    if (hasPauses && random.chance(0.08)) atMs += random.int(20, 400) * 1_000;
    const roll = random.next();
    if (roll < 0.55 || (faults.length === 0 && roll > 0.76)) {
      for (let n = random.pick([1, 1, 1, 2, isLarge ? 20 : 5]); n > 0; n--) {
        steps.push({ atMs, action: write() });
      }
    } else if (roll < 0.58) {
      steps.push({ atMs, action: { do: "bookmark" } }, { atMs, action: write() });
    } else if (roll < 0.62) {
      steps.push({ atMs, action: { do: "tick", count: random.int(1, 20) } });
    } else if (roll < 0.7) {
      steps.push({
        atMs,
        action: random.chance(0.6)
          ? { do: "addHandler", program: program(), handler: newHandler(random) }
          : { do: "removeHandler", program: program() },
      });
    } else if (roll < 0.76) {
      for (let n = random.int(1, 4); n > 0; n--) {
        steps.push({ atMs, action: { do: "call", program: program(), call: call() } });
      }
    } else if (faults.length > 0) {
      const startMs = atMs;
      for (const { atMs: afterMs, action } of random.pick(faults)()) {
        steps.push({ atMs: startMs + afterMs, action });
        // The next action comes after it resumed.
        if (action.do === "suspend") atMs += action.ms;
      }
    }
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}

/** For each fault of this world, the steps that cause it. */
function faultSteps(
  random: SeededRandom,
  { has, servers, programs }: Making,
  put: (flaw?: Flaw) => Action,
): (() => Step[])[] {
  const makers: (() => Step[])[] = [];
  const now = (action: Action): Step[] => [{ atMs: 0, action }];
  const chance = () => random.pick([0.3, 0.7, 1]);
  const injure = (kinds: readonly (Injury | "close" | "reset")[]) => () =>
    now({ do: "injure", with: random.pick(kinds), chance: chance() });
  const during = (begin: Action, end: Action, longestMs: number): Step[] => [
    { atMs: 0, action: begin },
    { atMs: random.int(1, longestMs), action: end },
  ];
  const refuse = (kinds: readonly Refusal[], longestMs: number) => () => {
    const steps: Step[] = [];
    const kind = random.pick(kinds);
    for (const verb of random.pick<Verb[]>([["list"], ["watch"], ["list", "watch"]])) {
      steps.push(...during(
        { do: "refuse", verb, with: kind, chance: chance() },
        { do: "refuse", verb, with: undefined, chance: 1 },
        longestMs,
      ));
    }
    // The refused requests must be sent: an open watch would not notice.
    steps.push({
      atMs: 1,
      action: { do: "injure", with: random.pick(["close", "reset"] as const), chance: 1 },
    });
    return steps;
  };
  const server = () => random.int(0, servers - 1);
  if (has("cut")) makers.push(injure(["close", "reset"]));
  if (has("truncate")) makers.push(injure(["truncate"]));
  if (has("drop")) makers.push(injure(["drop"]));
  if (has("duplicate")) makers.push(injure(["repeatTail"]));
  if (has("repeat")) makers.push(injure(["repeat"]));
  if (has("garbage")) makers.push(injure(["garbage", "unknownType"]));
  if (has("delay")) {
    makers.push(() =>
      during(
        { do: "network", state: { latencyMs: random.pick([[50, 500], [500, 3_000], [2_000, 8_000]]) } },
        { do: "network", state: { latencyMs: [1, 8] } },
        20_000,
      )
    );
    makers.push(() =>
      during(
        { do: "network", state: { frameGapMs: random.pick([100, 2_000, 8_000]) } },
        { do: "network", state: { frameGapMs: 0 } },
        30_000,
      )
    );
  }
  if (has("blackHole")) {
    makers.push(() => now({ do: "injure", with: "silence", chance: chance() }));
    makers.push(() => during({ do: "injure", with: "silence", chance: chance() }, { do: "heal" }, 30_000));
    makers.push(refuse(["silent", "emptyStream"], 20_000));
  }
  if (has("silentList")) {
    makers.push(() =>
      during(
        { do: "network", state: { silentListChance: chance() } },
        { do: "network", state: { silentListChance: 0 } },
        20_000,
      )
    );
  }
  if (has("refuse")) makers.push(refuse(["refused", "unreachable"], 60_000));
  if (has("tooMany")) makers.push(refuse(["tooManySeconds", "tooManyDate", "tooManyPlain"], 30_000));
  if (has("serverError")) {
    makers.push(refuse(["internalError", "unavailableSeconds", "gatewayTimeout", "forbidden"], 30_000));
  }
  if (has("proxy")) {
    makers.push(refuse(["badGateway", "loginPage", "closedAtOnce"], 30_000));
    makers.push(() =>
      during(
        { do: "network", state: { cutListChance: chance() } },
        { do: "network", state: { cutListChance: 0 } },
        20_000,
      )
    );
  }
  if (has("errorEvent")) {
    makers.push(() => {
      const [code, reason] = random.pick<[number, string]>([
        [410, "Expired"],
        [410, "Gone"],
        [429, "TooManyRequests"],
        [500, "InternalError"],
        [504, "Timeout"],
        [403, "Forbidden"],
        [0, ""],
      ]);
      return now({ do: "failWatches", code, reason, chance: chance() });
    });
  }
  if (has("compact")) {
    makers.push(() => now({ do: "compact", keep: random.pick([0, 1, 5]) }));
    makers.push(() => now({ do: "forget", server: server() }));
    makers.push(() => [
      { atMs: 0, action: { do: "injure", with: "close", chance: 1 } },
      { atMs: 0, action: { do: "compact", keep: 0 } },
      { atMs: 0, action: { do: "forget", server: server() } },
    ]);
  }
  if (has("expire")) {
    makers.push(() =>
      during(
        { do: "settings", settings: { tokensExpire: true } },
        { do: "settings", settings: { tokensExpire: false } },
        20_000,
      )
    );
    makers.push(() => now({ do: "failWatches", code: 410, reason: "Expired", chance: 1 }));
  }
  if (has("lag")) {
    makers.push(() => now({ do: "lag", server: server(), ms: random.pick([5, 100, 2_000, 5_000]) }));
    makers.push(() => {
      const index = server();
      return during(
        { do: "freeze", server: index, frozen: true },
        { do: "freeze", server: index, frozen: false },
        15_000,
      );
    });
    makers.push(() => now({ do: "network", state: { sticky: random.pick([0, 1, undefined]) } }));
    makers.push(injure(["close"]));
  }
  if (has("restart")) {
    makers.push(() =>
      now({
        do: "restart",
        server: server(),
        downMs: random.pick([1, 500, 5_000]),
        startingMs: random.pick([0, 500, 4_000]),
        graceful: random.chance(0.5),
      })
    );
  }
  if (has("noBookmarks")) {
    makers.push(() =>
      during({ do: "settings", settings: { bookmarks: false } }, {
        do: "settings",
        settings: { bookmarks: true },
      }, 60_000)
    );
    makers.push(injure(["close"]));
  }
  if (has("noInitialEvents")) {
    makers.push(() =>
      during(
        { do: "settings", settings: { initialEvents: random.pick(["ignored", "rejected"] as const) } },
        { do: "settings", settings: { initialEvents: "sent" } },
        30_000,
      )
    );
    makers.push(() => now({ do: "failWatches", code: 410, reason: "Expired", chance: 1 }));
  }
  if (has("restore")) {
    let isRestored = false;
    makers.push(() => {
      if (isRestored) return now({ do: "bookmark" });
      isRestored = true;
      const lost = random.pick([3, 30, 300]);
      const replaces = random.fork().chance(0.4);
      const steps = now({ do: "bookmark" });
      if (random.chance(0.7)) steps.push({ atMs: 100, action: { do: "bookmark" } });
      steps.push({ atMs: random.int(200, 2_000), action: { do: "tick", count: lost } });
      for (let n = random.int(0, 4); n > 0; n--) steps.push({ atMs: 2_001, action: put() });
      steps.push({
        atMs: random.int(2_100, 6_000),
        action: {
          do: "restore",
          back: random.int(1, lost + 10),
          filters: random.chance(0.5),
          restarts: random.chance(0.5),
          replaces,
        },
      });
      if (replaces) {
        steps.push({ atMs: 6_000, action: { do: "tick", count: random.pick([1, 60, 400]) } });
      }
      for (let n = random.int(0, 3); n > 0; n--) {
        steps.push({ atMs: 6_000 + random.int(1, 2_000), action: put() });
      }
      return steps;
    });
  }
  if (has("clock")) {
    // A clock that is set back while the monotonic one is stopped leaves no trace at all.
    const isSet = random.chance(0.5);
    const byMs = () => random.pick([1_000, 40_000, 600_000, 3_600_000, 36_000_000]);
    makers.push(() =>
      now(
        isSet
          ? { do: "setClock", byMs: random.pick([-1, 1]) * byMs() }
          : { do: "suspend", ms: random.int(31, 600) * 1_000, stops: random.chance(0.5) },
      )
    );
    if (!isSet) {
      makers.push(() => [
        { atMs: 0, action: { do: "injure", with: "silence", chance: 1 } },
        {
          atMs: 1,
          action: { do: "suspend", ms: random.int(60, 600) * 1_000, stops: random.chance(0.5) },
        },
      ]);
    }
  }
  if (has("flaw")) {
    makers.push(() => now(put(random.pick(["schema", "schema", "metadata", "huge"] as const))));
    makers.push(() => now(put("schema")));
  }
  if (has("whim")) {
    makers.push(() => {
      const mood = random.pick(["harsh", "lenient", "once", "once"] as const);
      const steps = now({ do: "judge", mood });
      for (let n = random.int(1, 3); n > 0; n--) steps.push({ atMs: random.int(1, 500), action: put() });
      if (random.chance(0.3)) steps.push({ atMs: random.int(1, 500), action: put("schema") });
      // A later list brings what was refused: the watch may end before.
      if (random.chance(0.5)) {
        const atMs = random.int(1_000, 50_000);
        steps.push({
          atMs,
          action: { do: "injure", with: random.pick(["close", "reset"] as const), chance: 1 },
        });
      }
      steps.push({ atMs: random.int(600, 20_000), action: { do: "judge", mood: "strict" } });
      return steps;
    });
  }
  const expired: Action = { do: "failWatches", code: 410, reason: "Expired", chance: 1 };
  const forAWhile = (begin: Action, end: Action) => () => [
    ...during(begin, end, 60_000),
    { atMs: 1, action: expired }, // so that all programs list again
  ];
  if (has("endlessStream")) {
    makers.push(forAWhile(
      { do: "settings", settings: { initialEvents: "endless" } },
      { do: "settings", settings: { initialEvents: "sent" } },
    ));
  }
  if (has("noWatch")) {
    makers.push(forAWhile(
      { do: "settings", settings: { knowsWatch: false } },
      { do: "settings", settings: { knowsWatch: true } },
    ));
  }
  if (has("cutStream")) {
    makers.push(forAWhile(
      { do: "network", state: { streams: random.pick(BAD_STREAMS) } },
      { do: "network", state: { streams: "pass" } },
    ));
  }
  if (has("shortAnswers")) {
    makers.push(forAWhile(
      { do: "network", state: { longestAnswerMs: SHORT_ANSWER_MS } },
      { do: "network", state: { longestAnswerMs: undefined } },
    ));
  }
  if (has("slowList")) makers.push(() => now(expired));
  if (has("refusedInStream")) {
    // Known, then refused, and while a stream is under way corrected, deleted, or both.
    makers.push(() => {
      const { scope } = random.pick(programs);
      const some = put() as Extract<Action, { do: "put" }>;
      const { resource } = scope;
      const key = scope.namespace === "" ? some.key : `${scope.namespace}/${some.key.split("/")[1]}`;
      const good = { ...some, resource, key, app: scope.app || some.app };
      const corrected: Action = { ...good, value: good.value + 10_000 };
      const deletion: Action = { do: "delete", resource, key };
      return [
        { atMs: 0, action: good },
        { atMs: 300, action: { ...good, flaw: random.pick(["schema", "metadata"] as const) } },
        { atMs: 400, action: expired },
        ...random.pick([
          [{ atMs: random.int(1_500, 9_000), action: corrected }],
          [{ atMs: random.int(1_500, 9_000), action: deletion }],
          [
            { atMs: random.int(2_500, 5_000), action: corrected },
            { atMs: random.int(5_000, 9_000), action: deletion },
          ],
        ]),
      ];
    });
  }
  return makers;
}
