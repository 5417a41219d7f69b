/**
 * The next state of a reflector, and what to do next: the chart of state.ts. Pure. The answer to each failure
 * is client-go's (https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go); where this
 * differs, the reason is beside it.
 */

import { isConnectionRefused, networkErrorOf } from "../meta/request.ts";
import { isExpired, isTooManyRequests, statusErrorOf } from "../meta/status.ts";
import { errorMessage, toError } from "../util/errors.ts";
import type { Moment } from "../util/clock.ts";
import {
  afterInternalError,
  afterRefused,
  afterUnfinished,
  failed,
  isPaused,
  isUnavailable,
  NEW_TRIAL,
  pauseStreams,
  RelistDue,
  StalledStreamError,
  type StreamPause,
  type StreamTrial,
  SuspendedError,
  trialAfterList,
  tryFailed,
  VERY_SHORT_WATCH_MS,
  VeryShortWatchError,
} from "./failures.ts";
import { isBrokenFrame } from "./quarantine.ts";
import { rhythmAfterList, rhythmAfterWatch } from "./relists.ts";
import type { Change, Effect, Outcome, ReflectorState, Step, Transition, WatchEnd } from "./state.ts";
import { listedAt } from "./store_writer.ts";

/** A watch that lasts so long was well, whatever ended it. */
const LONG_MS = 120_000;

export function transition(state: ReflectorState, outcome: Outcome, now: Moment): Transition {
  const noted = { ...state, failures: failed(state.failures, errorOf(outcome), now) };
  const next = afterOutcome(noted, outcome, now);
  const error = tried(outcome, next.step);
  if (error === undefined) return next;
  // client-go keeps requests to itself that it repeats: a server that is lost should be noticed.
  const endsCycle = next.step.do === "backOff" && next.step.error !== undefined;
  const { failures, isReported } = tryFailed(next.state.failures, error, { now, endsCycle });
  return {
    state: { ...next.state, failures },
    step: next.step,
    effects: [
      ...next.effects,
      { do: "log", level: "debug", text: error.message },
      ...(isReported ? [{ do: "report", error } as const] : []),
    ],
  };
}

/** The error of a step; an open watch that ends is looked at more closely. */
function errorOf(outcome: Outcome): unknown {
  if ("error" in outcome) return outcome.error;
  return "cause" in outcome ? outcome.cause : undefined;
}

/** The error that ended the cycle, or after which a request is repeated later or in another way. */
function tried(outcome: Outcome, step: Step): Error | undefined {
  if (step.do === "backOff" && step.error !== undefined) return step.error;
  const error = "error" in outcome ? outcome.error : undefined;
  const isRepeated = step.do === "backOff" || networkErrorOf(error) !== undefined;
  return isRepeated && error !== undefined ? toError(error) : undefined;
}

function afterOutcome(state: ReflectorState, outcome: Outcome, now: Moment): Transition {
  const nowMs = now.monotonicMs;
  switch (outcome.of) {
    case "start":
      return begin(state, nowMs);
    case "probe":
      return state.settings.resuming?.afterProbe(state, outcome, nowMs) ?? begin(state, nowMs);
    case "stream":
      return afterStream(state, outcome, now);
    case "list": {
      const trial = trialAfterList(state.trial, now, { failed: "error" in outcome });
      return paused(afterList({ ...state, trial }, outcome, now), state.trial);
    }
    case "watch": {
      const end = "error" in outcome
        ? { state, effects: [], end: { refused: outcome.error } }
        : endOf(state, outcome, now);
      const resuming = state.resumption && state.settings.resuming;
      const next = (resuming?.afterWatch ?? afterWatch)(end.state, end.end, nowMs);
      return { ...next, effects: [...end.effects, ...next.effects] };
    }
  }
}

export function go(state: ReflectorState, step: Step, effects: readonly Effect[] = []): Transition {
  return { state, step, effects };
}

export function begin(state: ReflectorState, nowMs: number): Transition {
  if (state.resumption !== undefined) return go(state, { do: "probe" });
  return go(state, { do: state.settings.useWatchList && !isPaused(state.trial, nowMs) ? "stream" : "list" });
}

/**
 * The server is away, or asks for patience: the same request may well be answered in a while, without another
 * list. client-go knows a refused connection here and retries the other failures of a connection below the
 * reflector; some runtimes do not distinguish the two.
 */
function isRetriable(error: unknown): boolean {
  return networkErrorOf(error) !== undefined || isTooManyRequests(error);
}

/** Whether the server names the time of the next try. */
function isAskedToWait(error: unknown): boolean {
  return statusErrorOf(error)?.retryAfterMs !== undefined;
}

/** The tries of an outage in which a watch is requested again after a `Retry-After`; client-go's limit. */
const MOST_TRIES = 10;

function afterStream(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "stream" }>,
  now: Moment,
): Transition {
  const nowMs = now.monotonicMs;
  if ("resourceVersion" in outcome) {
    const { resourceVersion, received = now } = outcome;
    const finished = { ...state, trial: NEW_TRIAL };
    return go(listed(finished, resourceVersion, { byBookmark: true, received }), { do: "watch" });
  }
  const { lastedMs } = outcome;
  // client-go asks again at once, which is a hot loop where a proxy closes streams.
  if ("cause" in outcome) {
    const { cause } = outcome;
    const message = cause === undefined ? "it was closed before its end bookmark" : errorMessage(cause);
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "backOff");
  }
  const { error } = outcome;
  const message = errorMessage(error);
  if (error instanceof StalledStreamError) {
    // client-go waits for ever. A server that ignores sendInitialEvents, or a proxy that drops bookmarks,
    // will do so again.
    const trial = pauseStreams(state.trial, now, { cause: "stalled", message });
    return paused(go({ ...state, trial }, { do: "list" }), state.trial);
  }
  // A server that is away, or names a time because it is busy, may well know how to stream.
  if (isConnectionRefused(error) || isTooManyRequests(error)) return refused(state, error, nowMs);
  if (isRetriable(error)) {
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "backOff");
  }
  if (isUnavailable(error)) {
    const unavailable = { ...state, isResourceVersionUnavailable: true };
    const next = refused(unavailable, error, nowMs);
    // At once the first time; a server that refuses the most recent data as well is given time.
    return state.isResourceVersionUnavailable ? next : go(next.state, { do: "stream" });
  }
  if (isAskedToWait(error)) return refused(state, error, nowMs);
  // The answer is no stream at all: a list on one line, a page of a proxy, nothing.
  if (isBrokenFrame(error) || error instanceof VeryShortWatchError) {
    return unfinished(afterUnfinished(state.trial, nowMs, { lastedMs, message }), state, "list");
  }
  return go(state, { do: "list" });
}

/** A stream was refused as a list might be: another one is tried, unless a list has to decide. */
function refused(state: ReflectorState, error: unknown, nowMs: number): Transition {
  const trial = afterRefused(state.trial, nowMs, errorMessage(error));
  const next = { ...state, trial };
  if (trial.suspicion === undefined) return go(next, { do: "backOff", then: "stream" });
  const waits = isAskedToWait(error) || isTooManyRequests(error);
  return go(next, waits ? { do: "backOff", then: "list" } : { do: "list" });
}

/**
 * A stream did not finish: another one is tried, unless a list has to decide whether streams are at fault.
 */
function unfinished(trial: StreamTrial, state: ReflectorState, otherwise: "backOff" | "list"): Transition {
  const lists = otherwise === "list" || trial.suspicion !== undefined;
  return go({ ...state, trial }, lists ? { do: "list" } : { do: "backOff", then: "stream" });
}

const PAUSE_IN_WORDS: Readonly<Record<StreamPause["cause"], string>> = {
  stalled: "the streamed list stalled",
  unfinished: "streamed lists do not come to their end",
  refused: "streamed lists are refused, and lists are not",
};

/** Says that lists take the place of streams, if that is new; once, until a stream finishes. */
function paused(next: Transition, before: StreamTrial): Transition {
  const { pause, pauseMs } = next.state.trial;
  if (pause === undefined || pause === before.pause) return next;
  const what = PAUSE_IN_WORDS[pause.cause];
  const text = `${what}; listing instead for the next ${pauseMs / 3_600_000} h: ${pause.message}`;
  const level = before.pauseMs > 0 ? "debug" : "warn";
  return { ...next, effects: [...next.effects, { do: "log", level, text }] };
}

function afterList(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "list" }>,
  now: Moment,
): Transition {
  if ("resourceVersion" in outcome) {
    const { resourceVersion, received = now, paginated, attempt } = outcome;
    const isExact = attempt.limit > 0 && resourceVersion > "0" && resourceVersion === attempt.resourceVersion;
    const known = {
      ...state,
      paginatedResult: state.paginatedResult || (paginated && attempt.resourceVersion === "0"),
      exactResourceVersion: isExact ? resourceVersion : state.exactResourceVersion,
    };
    // A watch from exactly this version would expire again: the list must go beyond it.
    const isVain = isExact && !attempt.resourceVersionMatch && isExpired(state.failures.lastEnd);
    const step = { do: isVain ? "list" : "watch" } as const;
    return go(listed(known, resourceVersion, { byBookmark: false, received }), step);
  }
  const { error, attempt, again } = outcome;
  // 400: a version of another server at the same address cannot be read here.
  const isRefused = isUnavailable(error) ||
    (attempt.resourceVersion > "0" && statusErrorOf(error)?.httpStatus === 400);
  if (isRefused && !again) {
    return go({ ...state, isResourceVersionUnavailable: true }, { do: "list", again: attempt });
  }
  return go(state, { do: "backOff", then: "start", error: toError(error) });
}

/** A whole list was written: with that, all is well. `byBookmark`: a bookmark said that it was all. */
function listed(
  state: ReflectorState,
  resourceVersion: string,
  { byBookmark, received }: { readonly byBookmark: boolean; readonly received: Moment },
): ReflectorState {
  const rhythm = state.position.isConfirmed ? state.rhythm : { ...state.rhythm, bookmarks: 0 };
  return {
    ...state,
    position: listedAt(state.position, resourceVersion, received),
    rhythm: rhythmAfterList(rhythm, { byBookmark, wasAway: state.failures.attempt > 0 }),
    losses: { ...state.losses, relistDueMs: undefined },
    failures: { ...state.failures, failure: undefined, attempt: 0 },
    isResourceVersionUnavailable: false,
    resumption: undefined,
    watchesSinceList: 0,
  };
}

function endOf(
  state: ReflectorState,
  { ended: error, lastedMs }: Extract<Outcome, { of: "watch"; ended: unknown }>,
  now: Moment,
): Change & { readonly end: WatchEnd } {
  const { events, bookmarks } = state.position;
  const { name, bookmarkSilenceMs: silenceMs, maxInternalErrorRetryMs: maxRetryMs } = state.settings;
  const measured = (isVeryShort: boolean): Effect => ({ do: "measureWatch", lastedMs, events, isVeryShort });
  const followed = { bookmarks, lastedMs, silenceMs };
  if (error instanceof SuspendedError) {
    // A suspended watch's silence says nothing about bookmarks; its bookmarks do.
    const rhythm = bookmarks > 0 ? rhythmAfterWatch(state.rhythm, followed).rhythm : state.rhythm;
    return {
      state: { ...state, rhythm, failures: failed(state.failures, error, now) },
      effects: [{ do: "log", level: "warn", text: error.message }, measured(false)],
      end: { isShort: false },
    };
  }
  // A connection that broke is a watch that ended: what it delivered is valid, and the next one continues
  // from there.
  const failure = networkErrorOf(error) === undefined ? error : undefined;
  const isShort = lastedMs < VERY_SHORT_WATCH_MS;
  const isVeryShort = failure === undefined && events === 0 && isShort;
  const { rhythm, isDue } = rhythmAfterWatch(state.rhythm, followed);
  const next = { ...state, rhythm, failures: failed(state.failures, error, now) };
  if (failure instanceof RelistDue) return { state: next, effects: [measured(false)], end: { relist: true } };
  if (isDue && failure === undefined) {
    const text = "bookmarks do not come any more; listing, in case the server was restored";
    const effects: Effect[] = [measured(isVeryShort), { do: "log", level: "warn", text }];
    return { state: next, effects, end: { relist: true } };
  }
  if (failure === undefined && !isVeryShort) {
    return {
      state: next,
      effects: [measured(false), { do: "forgetWarnings" }],
      end: { isShort },
    };
  }
  const cause = isVeryShort ? new VeryShortWatchError(name) : failure;
  const limits = { nowMs: now.monotonicMs, maxRetryMs };
  const { failures, retries } = afterInternalError(failed(state.failures, cause, now), cause, limits);
  const text = `watch ended: ${errorMessage(cause)}`;
  return {
    state: { ...next, failures },
    effects: [
      measured(isVeryShort),
      ...(lastedMs >= LONG_MS ? [{ do: "forgetWarnings" } as const] : []),
      isExpired(cause) ? { do: "log", level: "debug", text } : { do: "log", level: "warn", text, once: true },
    ],
    end: { error: cause, retries },
  };
}

export function afterWatch(state: ReflectorState, end: WatchEnd, nowMs: number): Transition {
  if ("refused" in end) {
    const { refused: error } = end;
    const waits = isAskedToWait(error) && !isUnavailable(error) && state.failures.attempt < MOST_TRIES;
    if (waits || isRetriable(error)) {
      // A server that was away may be away again unnoticed: the silence of the next watch counts.
      const rhythm = { ...state.rhythm, isExpected: true };
      return go({ ...state, rhythm }, { do: "backOff", then: "watch" });
    }
    return go(state, { do: "backOff", then: "start", error: toError(error) });
  }
  if ("relist" in end) return begin(state, nowMs);
  if ("isShort" in end) {
    // client-go watches again at once, which is a hot loop where a proxy closes what it has just opened.
    return go(state, end.isShort ? { do: "backOff", then: "watch" } : { do: "watch" });
  }
  const { error, retries } = end;
  if (isTooManyRequests(error)) return go(state, { do: "backOff", then: "watch" });
  if (retries) return go(state, { do: "watch" });
  // A watch from exactly this version would only reach the same frame again: the list must go beyond it.
  const exactResourceVersion = isBrokenFrame(error)
    ? state.position.resourceVersion
    : state.exactResourceVersion;
  return go({ ...state, exactResourceVersion }, { do: "backOff", then: "start" });
}
