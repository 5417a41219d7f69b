/**
 * The meaning of failures: whether streamed lists are at fault, whether the server is away, and how long to
 * wait. Pure, but for the delays that a user's backoff gives.
 */

import { failureInWords, NetworkError, networkErrorOf } from "../meta/request.ts";
import {
  isExpired,
  isInternalError,
  isResourceVersionTooLarge,
  isTooManyRequests,
  statusErrorOf,
} from "../meta/status.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import type { Moment } from "../util/clock.ts";

/**
 * A watch was closed less than a second after its request, without a single event.
 * Mirrors client-go's `VeryShortWatchError`.
 */
export class VeryShortWatchError extends CacheError {
  constructor(name: string) {
    super(
      "VeryShortWatch",
      `very short watch: ${name}: unexpected watch close: watch lasted less than a second and no items received`,
    );
  }
}

/** A watch that ends sooner, without any event, has failed. */
export const VERY_SHORT_WATCH_MS = 1_000;

/** Ends a watch because a change was lost, and a relist is due. */
export class RelistDue extends Error {}

/** The stream is open, but its end bookmark does not come. */
export class StalledStreamError extends Error {}

/** Ends a watch because the program was suspended: its connection has probably died meanwhile. */
export class SuspendedError extends NetworkError {
  constructor(ms: number) {
    const seconds = Math.round(ms / 1_000);
    super(
      "DeadPeer",
      `the program was suspended for ${seconds} s: the watch is opened again from where it was`,
    );
  }
}

/** The server cannot answer for this resourceVersion: too old, or one it has not reached. */
export function isUnavailable(error: unknown): boolean {
  return isExpired(error) || isResourceVersionTooLarge(error);
}

/** The last error of a reflector. */
export interface ReflectorError {
  readonly message: string;
  /**
   * The reason of a `Status` (`Forbidden`) or a network failure (`ConnectionRefused`), or an error's code.
   */
  readonly code: string;
  /** When, in milliseconds since the epoch. */
  readonly timeMs: number;
}

/**
 * Why lists take the place of streamed ones: for an hour at first, and twice as long, at most a day, each
 * time that the one stream which is tried after that does not finish either.
 */
export interface StreamPause {
  /**
   * `stalled`: a stream was open and did not come to its end. `unfinished`: three in a row, or thirty seconds
   * of them, were closed, broke off, were not answered or carried no events, and a list succeeded then.
   * `refused`: the server refused them for a minute - it was busy, away, or had not reached their version -,
   * and a list succeeded then.
   */
  readonly cause: "stalled" | "unfinished" | "refused";
  readonly message: string;
  /** Since when, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /** After this time the next list that is due is a stream again; in milliseconds since the epoch. */
  readonly untilTimeMs: number;
}

/** A time in which a server cannot be read. */
export interface ReflectorOutage {
  /** When the first request failed, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /** How many tries have failed since then. */
  readonly failedTries: number;
  /**
   * Why waiting will not help, if the last try has shown that: the request is wrong (400), the server does
   * not serve the resource or the version (404, 405), or its certificate is not trusted. It is tried again
   * all the same: the definition of a resource may be installed later.
   */
  readonly permanent?: string;
}

/** A request that failed. */
export interface FailedTry {
  /** The error: a `StatusError` or a `NetworkError`, or an error that has one among its causes. */
  readonly error: Error;
  /** How many tries have failed in this outage, this one included. */
  readonly failedTries: number;
}

/** The cause of an error in one word: a Status's reason, a network failure, or an error's code. */
export function codeOf(error: unknown): string {
  const status = statusErrorOf(error);
  if (status !== undefined) return status.reason || String(status.httpStatus);
  const network = networkErrorOf(error);
  if (network !== undefined) return network.reason;
  return error instanceof CacheError ? error.code : "Other";
}

/** The failures of a reflector's tries. */
export interface Failures {
  /** The error since the last delay: it may ask for a longer one. */
  readonly failure: unknown;
  /** The error that ended the last watch or try, if an error did. */
  readonly lastEnd: unknown;
  /** The last error, if there ever was one. */
  readonly lastError: ReflectorError | undefined;
  readonly attempt: number;
  /** How many tries in a row failed because a resourceVersion had expired. */
  readonly expiries: number;
  /** Since when the server is followed on open watches, in the clock's milliseconds. */
  readonly healthySinceMs: number | undefined;
  /** The first and the last of a series of watches that ended with an internal error. */
  readonly internalErrors: { readonly firstMs: number; readonly lastMs: number } | undefined;
  readonly outage: Outage | undefined;
}

export const NO_FAILURES: Failures = {
  failure: undefined,
  lastEnd: undefined,
  lastError: undefined,
  attempt: 0,
  expiries: 0,
  healthySinceMs: undefined,
  internalErrors: undefined,
  outage: undefined,
};

/** Something went wrong, unless `error` is `undefined`. */
export function failed(failures: Failures, error: unknown, { wallMs }: Moment): Failures {
  if (error === undefined) return failures;
  const lastError = { message: errorMessage(error), code: codeOf(error), timeMs: wallMs };
  return { ...failures, failure: error, lastEnd: error, lastError };
}

const INTERNAL_ERROR_RESET_MS = 60_000;

/** A watch ended with this error; `retries`: it is one of the internal errors that a next watch answers. */
export function afterInternalError(
  failures: Failures,
  error: unknown,
  { nowMs, maxRetryMs }: { readonly nowMs: number; readonly maxRetryMs: number },
): { readonly failures: Failures; readonly retries: boolean } {
  if (!isInternalError(error)) return { failures, retries: false };
  const before = failures.internalErrors;
  const continues = before !== undefined && nowMs - before.lastMs < INTERNAL_ERROR_RESET_MS;
  const firstMs = continues ? before.firstMs : nowMs;
  const retries = maxRetryMs > 0 && nowMs - firstMs <= maxRetryMs;
  return {
    failures: { ...failures, internalErrors: retries ? { firstMs, lastMs: nowMs } : undefined },
    retries,
  };
}

/**
 * A time in which a server cannot be read. It begins with the first request that fails, and is over when a
 * watch is open again: a list alone does not end it, as a server that lets its clients list and not watch
 * would otherwise be lost and found each minute. It is logged at each end, and once for each kind of failure.
 */
export interface Outage extends ReflectorOutage {
  readonly sinceMs: number;
  readonly last: Error;
  /** The kinds of failure that the log has reported of the outage. */
  readonly reported: readonly Kind[];
}

/**
 * The server is away, it is there and refuses, or it is not at fault as far as one can see: the program's
 * `token` function threw, for instance, or the answer is none of an API server.
 */
type Kind = "lost the server" | "the server refuses" | "the request failed";

/** The time in which requests for patience (429) appear only in the log; so do streams without a version. */
const PATIENCE_MS = 30_000;

/**
 * A request failed. A resourceVersion that expired is no outage, unless again and again: the server is well,
 * and waits for a list.
 * @returns Whether the user's callback receives it: a server that asks for patience (429), or does not have a
 * version, only where that continues, or where it ended a cycle. client-go does not report what a repeated
 * request repairs.
 */
export function tryFailed(
  failures: Failures,
  error: Error,
  { now, endsCycle }: { readonly now: Moment; readonly endsCycle: boolean },
): { readonly failures: Failures; readonly isReported: boolean } {
  const { outage: before } = failures;
  // Health: a watch was open since the last try.
  const isSoon = failures.healthySinceMs !== undefined || failures.expiries < SOON_EXPIRIES;
  const outage: Outage | undefined = isSoon && isExpired(error) ? before : {
    sinceTimeMs: before?.sinceTimeMs ?? now.wallMs,
    sinceMs: before?.sinceMs ?? now.monotonicMs,
    failedTries: (before?.failedTries ?? 0) + 1,
    last: error,
    reported: before?.reported ?? [],
  };
  const lastedMs = outage === undefined ? 0 : now.monotonicMs - outage.sinceMs;
  const isPassing = isTooManyRequests(error) || isUnavailable(error);
  const isReported = endsCycle || !isPassing || lastedMs >= PATIENCE_MS;
  return { failures: { ...failures, outage }, isReported };
}

/** The last failed request of the present outage. */
export function lastTryOf({ outage }: Failures): FailedTry | undefined {
  return outage && { error: outage.last, failedTries: outage.failedTries };
}

/** The line about the failure before the next try, which comes after `delayMs`; none if the log has it. */
export function outageLine(
  failures: Failures,
  delayMs: number | undefined,
): { readonly failures: Failures; readonly line?: string } {
  const { outage } = failures;
  if (outage === undefined) return { failures };
  const kind = kindOf(outage.last);
  if (outage.reported.includes(kind)) return { failures };
  const end = isPermanent(outage.last) ? "but retries cannot fix it" : "and so on until it is back";
  const next = delayMs === undefined ? "" : `; next try in ${inSeconds(delayMs)}, ${end}`;
  return {
    failures: { ...failures, outage: { ...outage, reported: [...outage.reported, kind] } },
    line: `${kind}: ${failureInWords(outage.last)}${next}`,
  };
}

/** A watch is open: the line about the end of the outage, if the log has its beginning. */
export function recoveryLine({ outage }: Failures, { monotonicMs }: Moment): string | undefined {
  if (outage === undefined || outage.reported.length === 0) return undefined;
  const { failedTries, sinceMs } = outage;
  const tries = failedTries === 1 ? "1 failed try" : `${failedTries} failed tries`;
  return `the server is back after ${inSeconds(monotonicMs - sinceMs)} and ${tries}`;
}

const PERMANENT: ReadonlySet<number> = new Set([400, 404, 405]);

/** Whether a request fails until it, the server's resources or the trusted certificates change. */
export function isPermanent(error: unknown): boolean {
  if (networkErrorOf(error)?.reason === "UntrustedCertificate") return true;
  return PERMANENT.has(statusErrorOf(error)?.httpStatus ?? 0) && !isExpired(error);
}

function kindOf(error: Error): Kind {
  if (networkErrorOf(error) !== undefined || isTooManyRequests(error)) return "lost the server";
  const code = statusErrorOf(error)?.httpStatus;
  if (code === undefined) return "the request failed";
  return code >= 500 ? "lost the server" : "the server refuses";
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** Delays that grow. */
export interface RetryBackoff {
  /**
   * The delay before the next try, in milliseconds. If it throws, or returns no finite number of 0 or more,
   * an error is logged and the try comes after 15 seconds.
   */
  nextDelayMs(): number;
  /** Starts again at the first delay; called after two minutes of health. */
  reset?(): void;
}

const HEALTH_RESETS_AFTER_MS = 120_000;
const EXPIRED_MS = 800;
/** The longest wait that a server may ask for: it may be wrong by days. */
const LONGEST_ASKED_MS = 600_000;
// A list in pages may bring the very version that expired, and only the next one something newer.
const SOON_EXPIRIES = 3;

/**
 * The delay after a failure, in milliseconds. Delays grow until the reflector has followed the server on open
 * watches for two minutes on end; a try alone resets nothing, so a server that accepts and then fails is not
 * hammered. The delay that the server asks for (`Retry-After`) counts, up to ten minutes, and is spread so
 * that many clients do not come back at once. A server that says that a resourceVersion expired is well, and
 * waits for a list: that comes soon, unless it says so again and again.
 */
export function delayAfter(
  failures: Failures,
  nowMs: number,
  { backoff, random }: { readonly backoff: RetryBackoff; readonly random: () => number },
): { readonly failures: Failures; readonly delayMs: number } {
  const { failure, healthySinceMs } = failures;
  const isWell = healthySinceMs !== undefined && nowMs - healthySinceMs >= HEALTH_RESETS_AFTER_MS;
  if (isWell) backoff.reset?.();
  const grownMs = backoff.nextDelayMs();
  const expiries = isExpired(failure) ? (isWell ? 0 : failures.expiries) + 1 : 0;
  const askedMs = statusErrorOf(failure)?.retryAfterMs;
  let delayMs = grownMs;
  if (expiries > 0 && expiries <= SOON_EXPIRIES) {
    delayMs = Math.min(grownMs, EXPIRED_MS * (1 + random()));
  } else if (askedMs !== undefined) {
    delayMs = Math.max(grownMs, Math.min(askedMs, LONGEST_ASKED_MS) + random() * grownMs);
  }
  return { failures: { ...failures, failure: undefined, healthySinceMs: undefined, expiries }, delayMs };
}

/**
 * The record of streams so far.
 *
 * A stream that does not finish, or is refused, may be a passing fault; or a trap, such as a proxy that
 * always drops bookmarks or ends every answer after seconds. A list distinguishes the two: if it succeeds
 * after streams have failed, the server is well, and the streams are at fault. Then lists take their place
 * for a time, which doubles each time that a stream fails again.
 */
export interface StreamTrial {
  /** How many streams in a row did not finish. */
  readonly unfinished: number;
  /** How long those streams took together, in milliseconds. */
  readonly unfinishedMs: number;
  /** When the first stream failed since one finished or a list decided, in the clock's milliseconds. */
  readonly failingSinceMs?: number;
  /** How the last stream failed, while the list after it decides whether streams are at fault. */
  readonly suspicion?: Suspicion;
  /** How long lists took the place of streams the last time, in milliseconds; 0 if they never did. */
  readonly pauseMs: number;
  /** Until when lists take the place of streams, in the clock's milliseconds. */
  readonly pausedUntilMs?: number;
  /** Why they did the last time. */
  readonly pause?: StreamPause;
}

/** The possible fault of streams: what they did, and what ended the last one. */
type Suspicion = Pick<StreamPause, "cause" | "message">;

export const NEW_TRIAL: StreamTrial = { unfinished: 0, unfinishedMs: 0, pauseMs: 0 };

/** After so many unfinished streams in a row, */
const MOST_UNFINISHED = 3;
/** or so long without coming to an end, and a list decides: as long as a stream may take to open. */
const LONGEST_UNFINISHED_MS = 30_000;
/** A list decides as well so long after the first failed stream, however the others ended. */
const LONGEST_FAILING_MS = 60_000;
const FIRST_PAUSE_MS = 3_600_000;
const LAST_PAUSE_MS = 86_400_000;

/** Whether lists take the place of streams at a time. */
export function isPaused(trial: StreamTrial, nowMs: number): boolean {
  return trial.pausedUntilMs !== undefined && nowMs < trial.pausedUntilMs;
}

/**
 * A stream did not finish, for a reason that may be its own. A suspicion afterwards: a list has to decide.
 */
export function afterUnfinished(
  trial: StreamTrial,
  nowMs: number,
  { lastedMs, message }: { readonly lastedMs: number; readonly message: string },
): StreamTrial {
  const unfinished = trial.unfinished + 1;
  const unfinishedMs = trial.unfinishedMs + lastedMs;
  const isSuspect = unfinished >= MOST_UNFINISHED || unfinishedMs >= LONGEST_UNFINISHED_MS;
  const suspicion: Suspicion = { cause: "unfinished", message };
  const failing = afterFailure({ ...trial, unfinished, unfinishedMs }, nowMs, suspicion);
  return isSuspect ? { ...failing, suspicion } : failing;
}

/** A stream was refused, as lists may be as well: streams are suspected only where that continues. */
export function afterRefused(trial: StreamTrial, nowMs: number, message: string): StreamTrial {
  return afterFailure(trial, nowMs, { cause: "refused", message });
}

function afterFailure(trial: StreamTrial, nowMs: number, what: Suspicion): StreamTrial {
  const { suspicion: _, failingSinceMs = nowMs, ...rest } = trial;
  const isSuspect = nowMs - failingSinceMs >= LONGEST_FAILING_MS;
  return { ...rest, failingSinceMs, ...(isSuspect ? { suspicion: what } : {}) };
}

/** A list was stored, or failed: then the server is not well, and the streams may not be at fault. */
export function trialAfterList(
  trial: StreamTrial,
  now: Moment,
  { failed }: { readonly failed: boolean },
): StreamTrial {
  const { suspicion, failingSinceMs: _, ...rest } = trial;
  if (suspicion === undefined) return failed ? trial : rest;
  return failed ? rest : pauseStreams(rest, now, suspicion);
}

/** Lists take the place of streams from now on; the next stream has one chance. */
export function pauseStreams(
  trial: StreamTrial,
  { wallMs, monotonicMs }: Moment,
  why: Suspicion,
): StreamTrial {
  const { failingSinceMs: _, ...rest } = trial;
  const ms = trial.pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(trial.pauseMs * 2, LAST_PAUSE_MS);
  return {
    ...rest,
    unfinished: MOST_UNFINISHED,
    pauseMs: ms,
    pausedUntilMs: monotonicMs + ms,
    pause: { ...why, sinceTimeMs: wallMs, untilTimeMs: wallMs + ms },
  };
}
