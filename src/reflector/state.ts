/**
 * The reflector's state machine: what to do next, given what just happened. Pure: no I/O, no clock, no randomness.
 *
 * ```
 *            +-------------------- start <------------------------------+
 *            | streams?                                                 |
 *      yes   v            refused, stalled          no                  |
 *         stream -------------------------------> list                  |
 *            | end bookmark                        | listed             | the cycle is over:
 *            +----------------> watch <------------+                    | back off, then start
 *                               |   ^                                   |
 *          ended cleanly, 429,  |   |                                   |
 *          server is away       +---+ ----------------------------------+
 *                                     expired, broken, refused
 * ```
 *
 * A cycle lists (or streams the present objects) once and then watches for as long as it can. What each failure leads
 * to is client-go's answer; where this differs, the reason is beside it.
 *
 * @module
 */

import {
  isExpired,
  isInternalError,
  isResourceVersionTooLarge,
  isTooManyRequests,
  networkErrorOf,
  statusErrorOf,
} from "../meta/status.ts";
import { isBrokenFrame } from "./events.ts";

/** What a reflector does next. */
export type Step =
  /** Ask a watch for the present objects. */
  | { readonly do: "stream" }
  /** List; `again` once more, after the first try of this cycle found its resourceVersion unavailable. */
  | { readonly do: "list"; readonly again?: ListAttempt }
  /** Watch from the last resourceVersion, on the stream that is open if there is one. */
  | { readonly do: "watch" }
  /** Wait, then go on. */
  | { readonly do: "backOff"; readonly then: "stream" | "watch" | "start" };

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
  /** The server no longer has, or does not have yet, that resourceVersion: ask for the most recent data instead. */
  readonly isResourceVersionUnavailable: boolean;
  /** The server pages even where its cache could answer: it has none, so keep paging. */
  readonly paginatedResult: boolean;
  /** Whether a cycle begins with a streamed list. */
  readonly streams: boolean;
  /** The floor that a list in pages asked for, and was given exactly; or one from which a watch cannot go on. */
  readonly exactResourceVersion?: string;
}

/** What came of a step. */
export type Outcome =
  | { readonly of: "start" }
  /** The end bookmark came; its resourceVersion is the list's. */
  | { readonly of: "stream"; readonly resourceVersion: string }
  /** The stream was refused, or carried an error. */
  | { readonly of: "stream"; readonly error: unknown }
  /** The stream was closed before its end bookmark. */
  | { readonly of: "stream"; readonly closed: true }
  /** The stream is open, but the end bookmark does not come. */
  | { readonly of: "stream"; readonly stalled: true }
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
  /** The cycle ended with this error: the watch error handler is told. */
  readonly report?: unknown;
}

/** The state before the first cycle. */
export function initialState(streams: boolean): ReflectorState {
  return { resourceVersion: "", isResourceVersionUnavailable: false, paginatedResult: false, streams };
}

const DEFAULT_PAGE_SIZE = 500;

/**
 * What a cycle's list asks for: the last resourceVersion as a floor, `"0"` (anything the server's cache holds) at
 * first, and the most recent data when that floor is unavailable. A floor is asked for without a limit, so that the
 * server's cache can answer; unless a page size was set.
 *
 * To a server, a limit makes a version an exact one. Where a list in pages only brought what was known, and has to be
 * repeated, the next one says that it wants a floor: or else it would bring the same again, the watch from there would
 * fail again, and so on. The same where a watch ended at a frame that could not be decoded.
 */
export function listAttempt(state: ReflectorState, pageSize: number): ListAttempt {
  const requestedResourceVersion = state.isResourceVersionUnavailable ? "" : state.resourceVersion || "0";
  const isFloor = requestedResourceVersion !== "" && requestedResourceVersion !== "0";
  const limit = pageSize || (isFloor && !state.paginatedResult ? 0 : DEFAULT_PAGE_SIZE);
  return limit > 0 && state.exactResourceVersion === requestedResourceVersion
    ? { requestedResourceVersion, limit, resourceVersionMatch: "NotOlderThan" }
    : { requestedResourceVersion, limit };
}

/** What to do next. */
export function transition(state: ReflectorState, outcome: Outcome): Transition {
  switch (outcome.of) {
    case "start":
      return { state, step: { do: state.streams ? "stream" : "list" } };
    case "stream":
      return afterStream(state, outcome);
    case "list":
      return afterList(state, outcome);
    case "watch":
      return afterWatch(state, outcome);
  }
}

/**
 * The server is away, or asks for patience: the same request may well be answered in a while, without another list.
 * client-go knows a refused connection here and retries the other failures of a connection below the reflector; some
 * runtimes do not tell one from the other.
 */
function isRetriable(error: unknown): boolean {
  return networkErrorOf(error) !== undefined || isTooManyRequests(error);
}

/** The server cannot answer for this resourceVersion: too old, or one it has not reached. */
function isUnavailable(error: unknown): boolean {
  return isExpired(error) || isResourceVersionTooLarge(error);
}

function afterStream(state: ReflectorState, outcome: Extract<Outcome, { of: "stream" }>): Transition {
  if ("resourceVersion" in outcome) {
    const { resourceVersion } = outcome;
    return {
      state: { ...state, resourceVersion, isResourceVersionUnavailable: false },
      step: { do: "watch" },
    };
  }
  if ("stalled" in outcome) {
    // client-go waits for ever. A server that ignores sendInitialEvents, or a proxy that drops bookmarks, will do so
    // again: this reflector does not ask again.
    return { state: { ...state, streams: false }, step: { do: "list" } };
  }
  if ("closed" in outcome) {
    // client-go asks again at once, which is a hot loop where a proxy closes streams.
    return { state, step: { do: "backOff", then: "stream" } };
  }
  if (isRetriable(outcome.error)) return { state, step: { do: "backOff", then: "stream" } };
  if (isUnavailable(outcome.error)) {
    // At once the first time; a server that refuses the most recent data as well is given time.
    const step: Step = state.isResourceVersionUnavailable
      ? { do: "backOff", then: "stream" }
      : { do: "stream" };
    return { state: { ...state, isResourceVersionUnavailable: true }, step };
  }
  // A server that names a time is busy, not one that does not know how to stream.
  if (statusErrorOf(outcome.error)?.retryAfterMs !== undefined) {
    return { state, step: { do: "backOff", then: "stream" } };
  }
  return { state, step: { do: "list" } };
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

function afterWatch(state: ReflectorState, outcome: Extract<Outcome, { of: "watch" }>): Transition {
  if ("refused" in outcome) {
    if (isRetriable(outcome.refused)) return { state, step: { do: "backOff", then: "watch" } };
    return { state, step: { do: "backOff", then: "start" }, report: outcome.refused };
  }
  if ("relist" in outcome) return transition(state, { of: "start" });
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
