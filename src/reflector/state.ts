/**
 * The reflector's state machine: what to do next, given what just happened, and when. Pure: no I/O, no
 * randomness.
 *
 * ```
 *            +-------------------- start <------------------------------+
 *            | streams?                                                 |
 *      yes   v      refused, stalled, never ends    no                  |
 *         stream -------------------------------> list                  |
 *            | end bookmark                        | listed             | the cycle is over:
 *            +----------------> watch <------------+                    | back off, then start
 *                               |   ^                                   |
 *          ended cleanly, 429,  |   |                                   |
 *          server is away       +---+ ----------------------------------+
 *                                     expired, broken, refused
 * ```
 *
 * Where the store has the content of a snapshot, a cycle begins with `probe` instead: it compares the
 * server's version with the snapshot's, and leads to `watch`; or to `stream` or `list`, if the server has not
 * reached that version. So until the server has confirmed the content, or has refused to watch from its
 * version.
 *
 * A cycle lists (or streams the present objects) once and then watches for as long as it can. What each failure leads
 * to is client-go's answer (https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go); where this
 * differs, the reason is beside it.
 *
 * @module
 */

import type { ListOptions } from "../meta/list_watch.ts";
import { isOlder } from "../meta/object.ts";
import { isConnectionRefused, networkErrorOf } from "../meta/request.ts";
import {
  isExpired,
  isInternalError,
  isResourceVersionTooLarge,
  isTooManyRequests,
  statusErrorOf,
} from "../meta/status.ts";
import { errorMessage } from "../util/errors.ts";
import { isBrokenFrame } from "./quarantine.ts";
import { VeryShortWatchError } from "./reflector_options.ts";
import type { Probe } from "./reflector_wiring.ts";
import {
  afterList as trialAfterList,
  afterRefused,
  afterUnfinished,
  isPaused,
  NEW_TRIAL,
  pauseStreams,
  type StreamPauseBegin,
  type StreamTrial,
} from "./stream_trial.ts";

/** What a reflector does next. */
export type Step =
  /** Ask for the server's version, before the watch from a snapshot's. */
  | { readonly do: "probe" }
  /** Ask a watch for the present objects. */
  | { readonly do: "stream" }
  /** List; `again` once more, after the first try of this cycle found its resourceVersion unavailable. */
  | { readonly do: "list"; readonly again?: ListAttempt }
  /** Watch from the last resourceVersion, on the stream that is open if there is one. */
  | { readonly do: "watch" }
  /** Wait, then continue. */
  | { readonly do: "backOff"; readonly then: "stream" | "list" | "watch" | "start" };

/** The first list of a cycle, which a second one repeats without its resourceVersion. */
export interface ListAttempt {
  /** The resourceVersion that the first one asked for. */
  readonly requestedResourceVersion: string;
  /** The page size; 0 for none. */
  readonly limit: number;
  /** Says that the version is a floor, where it would be taken for more than that. */
  readonly resourceVersionMatch?: "NotOlderThan";
}

/** What the machine remembers from one step to the next. */
export interface ReflectorState {
  /** The last resourceVersion seen: the floor below which nothing may be accepted. */
  readonly resourceVersion: string;
  /**
   * The server no longer has, or does not have yet, that resourceVersion: ask for the most recent data
   * instead.
   */
  readonly isResourceVersionUnavailable: boolean;
  /** The server pages even where its cache could answer: it has none, so keep paging. */
  readonly paginatedResult: boolean;
  /** Whether a cycle begins with a streamed list, unless those are at fault. */
  readonly streams: boolean;
  /** Whether they are. */
  readonly trial: StreamTrial;
  /**
   * The floor that a list in pages asked for, and was given exactly; or one from which a watch cannot
   * continue.
   */
  readonly exactResourceVersion?: string;
  /** The store has the content of a snapshot, which the server has not confirmed yet. */
  readonly resumption?: {
    /** How many watches from its version failed for a reason that does not concern the version. */
    readonly failedWatches: number;
    /** How many requests for the server's version failed in a row, other than as there was no connection. */
    readonly failedProbes: number;
  };
}

/** What came of a step. */
export type Outcome =
  | { readonly of: "start" }
  | { readonly of: "probe" } & Probe
  | { readonly of: "probe"; readonly error: unknown }
  /** The end bookmark came; its resourceVersion is the list's. */
  | { readonly of: "stream"; readonly resourceVersion: string }
  /** The stream was refused, or carried an error; after so long. */
  | { readonly of: "stream"; readonly error: unknown; readonly lastedMs: number }
  /** The stream was closed before its end bookmark, in these words. */
  | { readonly of: "stream"; readonly closed: string; readonly lastedMs: number }
  /** The stream is open, but the end bookmark does not come, in these words. */
  | { readonly of: "stream"; readonly stalled: string }
  /** The version of the end bookmark does not prove what the intake assumed of its objects: list again. */
  | { readonly of: "stream"; readonly unproven: true }
  | {
    readonly of: "list";
    readonly resourceVersion: string;
    readonly paginated: boolean;
    readonly attempt: ListAttempt;
  }
  | { readonly of: "list"; readonly error: unknown; readonly attempt: ListAttempt; readonly again: boolean }
  /** The server did not open the watch. */
  | { readonly of: "watch"; readonly refused: unknown }
  /** The watch was open and is not any more; `error` if there was a reason. */
  | {
    readonly of: "watch";
    readonly error?: unknown;
    readonly retriesInternalError: boolean;
    readonly isShort: boolean;
  }
  /** A change was lost on the watch: everything must be listed again. */
  | { readonly of: "watch"; readonly relist: true };

/** The next step, the new state, and an error to report if the cycle ended with one. */
export interface Transition {
  readonly state: ReflectorState;
  readonly step: Step;
  /** The cycle ended with this error: the watch error handler receives it. */
  readonly report?: unknown;
  /** Streams are at fault: from now on lists take their place. */
  readonly pause?: StreamPauseBegin;
}

/** The state before the first cycle. */
export function initialState(streams: boolean): ReflectorState {
  return {
    resourceVersion: "",
    isResourceVersionUnavailable: false,
    paginatedResult: false,
    streams,
    trial: NEW_TRIAL,
  };
}

/**
 * The state before the first cycle, where the store has the content of a snapshot.
 *
 * @param needsList A watch from its version would miss changes.
 */
export function restoredState(
  state: ReflectorState,
  { resourceVersion, needsList }: { readonly resourceVersion: string; readonly needsList: boolean },
): ReflectorState {
  return needsList
    ? { ...state, resourceVersion, exactResourceVersion: resourceVersion }
    : { ...state, resourceVersion, resumption: { failedWatches: 0, failedProbes: 0 } };
}

/** The state from now on: the server has confirmed the content of the snapshot, or it is to be listed. */
export function withoutResumption({ resumption: _, ...state }: ReflectorState): ReflectorState {
  return state;
}

const DEFAULT_PAGE_SIZE = 500;
/** So many watches from a snapshot's version may fail before everything is listed. */
const MOST_FAILED_RESUMPTIONS = 3;
/** So many times the server's version is requested. */
const MOST_PROBES = 3;

/**
 * What a cycle's list asks for: the last resourceVersion as a floor, `"0"` (anything the server's cache
 * holds) at first, and the most recent data when that floor is unavailable. A floor is requested without a
 * limit, so that the server's cache can answer; unless a page size was set.
 *
 * To a server, a limit makes a version an exact one. Where a list in pages only brought what was known, and
 * has to be repeated, the next one says that it wants a floor: or else it would bring the same again, the
 * watch from there would fail again, and so on. The same where a watch ended at a frame that could not be
 * decoded.
 */
export function listAttempt(state: ReflectorState, pageSize: number): ListAttempt {
  const requestedResourceVersion = state.isResourceVersionUnavailable ? "" : state.resourceVersion || "0";
  const isFloor = requestedResourceVersion !== "" && requestedResourceVersion !== "0";
  const limit = pageSize || (isFloor && !state.paginatedResult ? 0 : DEFAULT_PAGE_SIZE);
  return limit > 0 && state.exactResourceVersion === requestedResourceVersion
    ? { requestedResourceVersion, limit, resourceVersionMatch: "NotOlderThan" }
    : { requestedResourceVersion, limit };
}

/** What an attempt asks for; `again`: the most recent data instead. */
export function listOptions(attempt: ListAttempt, { again }: { readonly again: boolean }): ListOptions {
  const { limit, requestedResourceVersion, resourceVersionMatch } = attempt;
  if (again) return { resourceVersion: "", limit };
  return {
    resourceVersion: requestedResourceVersion,
    limit,
    ...(resourceVersionMatch === undefined ? {} : { resourceVersionMatch }),
  };
}

/** What to do next; `nowMs` is the clock's. */
export function transition(state: ReflectorState, outcome: Outcome, nowMs: number): Transition {
  switch (outcome.of) {
    case "start":
      return begin(state, nowMs);
    case "probe":
      return afterProbe(state, outcome, nowMs);
    case "stream":
      return afterStream(state, outcome, nowMs);
    case "list": {
      const { trial, pause } = trialAfterList(state.trial, nowMs, { failed: "error" in outcome });
      const next = afterList({ ...state, trial }, outcome);
      return pause === undefined ? next : { ...next, pause };
    }
    case "watch":
      return state.resumption === undefined
        ? afterWatch(state, outcome, nowMs)
        : afterResumed(state, outcome, nowMs);
  }
}

function begin(state: ReflectorState, nowMs: number): Transition {
  if (state.resumption !== undefined) return { state, step: { do: "probe" } };
  return { state, step: { do: state.streams && !isPaused(state.trial, nowMs) ? "stream" : "list" } };
}

/**
 * The server is away, or asks for patience: the same request may well be answered in a while, without another
 * list. client-go knows a refused connection here and retries the other failures of a connection below the
 * reflector; some runtimes do not distinguish the two.
 */
function isRetriable(error: unknown): boolean {
  return networkErrorOf(error) !== undefined || isTooManyRequests(error);
}

/** The server cannot answer for this resourceVersion: too old, or one it has not reached. */
function isUnavailable(error: unknown): boolean {
  return isExpired(error) || isResourceVersionTooLarge(error);
}

function afterProbe(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "probe" }>,
  nowMs: number,
): Transition {
  if ("error" in outcome) return afterFailedProbe(state, outcome.error, nowMs);
  const { serverVersion, isOtherCluster } = outcome;
  if (isOtherCluster) {
    return begin({ ...withoutResumption(state), isResourceVersionUnavailable: true }, nowMs);
  }
  // It was restored from a backup. It would accept the watch, and send nothing of what happens up to that
  // version.
  if (serverVersion !== undefined && isOlder(serverVersion, state.resourceVersion)) {
    return begin({ ...withoutResumption(state), isResourceVersionUnavailable: true }, nowMs);
  }
  return { state, step: { do: "watch" } };
}

/**
 * A server that is away is tried again: a list would fail as well. One that answers everything else may never
 * answer this: if it is busy or broken, everything is listed; if it does not permit the request, or that
 * breaks, the watch may still be possible.
 */
function afterFailedProbe(state: ReflectorState, error: unknown, nowMs: number): Transition {
  if (isConnectionRefused(error)) return { state, step: { do: "backOff", then: "start" } };
  const { failedWatches = 0, failedProbes: before = 0 } = state.resumption ?? {};
  const failedProbes = before + 1;
  const isBroken = networkErrorOf(error) !== undefined;
  const isRefused = isTooManyRequests(error) || (statusErrorOf(error)?.httpStatus ?? 0) >= 500;
  const next = { ...state, resumption: { failedWatches, failedProbes } };
  if ((isBroken || isRefused) && failedProbes < MOST_PROBES) {
    return { state: next, step: { do: "backOff", then: "start" } };
  }
  return isRefused ? begin(withoutResumption(state), nowMs) : { state: next, step: { do: "watch" } };
}

/** After a watch from a snapshot's version, whose content the server has not confirmed. */
function afterResumed(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "watch" }>,
  nowMs: number,
): Transition {
  const listed = withoutResumption(state);
  const error = "refused" in outcome ? outcome.refused : "relist" in outcome ? undefined : outcome.error;
  if (isUnavailable(error)) {
    return begin({ ...listed, isResourceVersionUnavailable: isResourceVersionTooLarge(error) }, nowMs);
  }
  const next = afterWatch(state, outcome, nowMs);
  const { failedWatches: before = 0, failedProbes = 0 } = state.resumption ?? {};
  if (next.step.do === "watch") return next;
  if (next.step.do === "backOff" && next.step.then === "watch") {
    // The server was away, and may be another one, or answer now.
    return failedProbes < MOST_PROBES ? next : { ...next, step: { do: "backOff", then: "start" } };
  }
  const failedWatches = before + 1;
  if ("relist" in outcome || isBrokenFrame(error) || failedWatches > MOST_FAILED_RESUMPTIONS) {
    return afterWatch(listed, outcome, nowMs);
  }
  return { ...next, state: { ...next.state, resumption: { failedWatches, failedProbes } } };
}

function afterStream(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "stream" }>,
  nowMs: number,
): Transition {
  if ("resourceVersion" in outcome) {
    const { resourceVersion } = outcome;
    return {
      state: { ...state, resourceVersion, isResourceVersionUnavailable: false, trial: NEW_TRIAL },
      step: { do: "watch" },
    };
  }
  if ("unproven" in outcome) return begin(state, nowMs);
  if ("stalled" in outcome) {
    // client-go waits for ever. A server that ignores sendInitialEvents, or a proxy that drops bookmarks,
    // will do so again.
    const { trial, pause } = pauseStreams(state.trial, nowMs, { cause: "stalled", message: outcome.stalled });
    return { state: { ...state, trial }, step: { do: "list" }, pause };
  }
  // client-go asks again at once, which is a hot loop where a proxy closes streams.
  if ("closed" in outcome) {
    const { lastedMs, closed: message } = outcome;
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "backOff");
  }
  const { error, lastedMs } = outcome;
  // A server that is away, or names a time because it is busy, may well know how to stream.
  const message = errorMessage(error);
  if (isConnectionRefused(error) || isTooManyRequests(error)) return refused(state, error, nowMs);
  if (isRetriable(error)) {
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "backOff");
  }
  if (isUnavailable(error)) {
    const unavailable = { ...state, isResourceVersionUnavailable: true };
    const next = refused(unavailable, error, nowMs);
    // At once the first time; a server that refuses the most recent data as well is given time.
    return state.isResourceVersionUnavailable ? next : { state: next.state, step: { do: "stream" } };
  }
  if (statusErrorOf(error)?.retryAfterMs !== undefined) return refused(state, error, nowMs);
  // What is no stream at all: a list on one line, a page of a proxy, nothing.
  if (isBrokenFrame(error) || error instanceof VeryShortWatchError) {
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "list");
  }
  return { state, step: { do: "list" } };
}

/**
 * A stream was refused as a list might be: another one is tried, unless a list has to decide whether that is
 * so. It waits as long as the server asked for.
 */
function refused(state: ReflectorState, error: unknown, nowMs: number): Transition {
  const trial = afterRefused(state.trial, nowMs, errorMessage(error));
  const next = { ...state, trial };
  if (trial.suspicion === undefined) return { state: next, step: { do: "backOff", then: "stream" } };
  const isAskedToWait = statusErrorOf(error)?.retryAfterMs !== undefined || isTooManyRequests(error);
  return { state: next, step: isAskedToWait ? { do: "backOff", then: "list" } : { do: "list" } };
}

/**
 * A stream did not finish: another one is tried, unless a list has to decide whether streams are at fault.
 */
function unfinished(trial: StreamTrial, state: ReflectorState, otherwise: "backOff" | "list"): Transition {
  const lists = otherwise === "list" || trial.suspicion !== undefined;
  return { state: { ...state, trial }, step: lists ? { do: "list" } : { do: "backOff", then: "stream" } };
}

function afterList(state: ReflectorState, outcome: Extract<Outcome, { of: "list" }>): Transition {
  if ("resourceVersion" in outcome) {
    const { resourceVersion, paginated, attempt } = outcome;
    const paginatedResult = state.paginatedResult || (paginated && attempt.requestedResourceVersion === "0");
    const listed = { ...state, resourceVersion, isResourceVersionUnavailable: false, paginatedResult };
    const isExact = attempt.limit > 0 && resourceVersion === attempt.requestedResourceVersion;
    return {
      state: isExact ? { ...listed, exactResourceVersion: resourceVersion } : listed,
      step: { do: "watch" },
    };
  }
  if (!isUnavailable(outcome.error)) {
    return { state, step: { do: "backOff", then: "start" }, report: outcome.error };
  }
  const unavailable = { ...state, isResourceVersionUnavailable: true };
  return outcome.again
    ? { state: unavailable, step: { do: "backOff", then: "start" }, report: outcome.error }
    : { state: unavailable, step: { do: "list", again: outcome.attempt } };
}

function afterWatch(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "watch" }>,
  nowMs: number,
): Transition {
  if ("refused" in outcome) {
    if (isRetriable(outcome.refused)) return { state, step: { do: "backOff", then: "watch" } };
    return { state, step: { do: "backOff", then: "start" }, report: outcome.refused };
  }
  if ("relist" in outcome) return begin(state, nowMs);
  const { error } = outcome;
  if (error === undefined) {
    // client-go watches again at once, which is a hot loop where a proxy closes what it has just opened.
    return { state, step: outcome.isShort ? { do: "backOff", then: "watch" } : { do: "watch" } };
  }
  if (isTooManyRequests(error)) return { state, step: { do: "backOff", then: "watch" } };
  if (isInternalError(error) && outcome.retriesInternalError) return { state, step: { do: "watch" } };
  if (isBrokenFrame(error)) {
    // From exactly this version the watch would only come to the same frame again: the list must go beyond.
    return {
      state: { ...state, exactResourceVersion: state.resourceVersion },
      step: { do: "backOff", then: "start" },
    };
  }
  return { state, step: { do: "backOff", then: "start" } };
}

/** What a request failed with that is repeated, though it ended no cycle: after a delay, or another way. */
export function failedTry(outcome: Outcome, step: Step): unknown {
  const error = outcome.of === "watch"
    ? "refused" in outcome ? outcome.refused : undefined
    : "error" in outcome
    ? outcome.error
    : undefined;
  return step.do === "backOff" || networkErrorOf(error) !== undefined ? error : undefined;
}
