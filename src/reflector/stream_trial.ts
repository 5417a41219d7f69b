/**
 * Decides whether to use streamed lists. Pure: no I/O, no clock.
 *
 * A stream that does not finish may be a passing fault of the network, or a trap: a proxy that drops
 * bookmarks, ends every answer after seconds, or resets requests that it does not know, and will do so for
 * ever. A stream that is refused may mean that the server is away or busy; or that it never has the room for
 * a stream that it has for a list. What distinguishes the two is a list: where that succeeds after streams
 * have failed, the server is well, and the streams are at fault. Then lists take their place for a time,
 * which doubles each time that a stream fails again.
 *
 * @module
 */

/** What streams have come to so far. */
export interface StreamTrial {
  /** How many in a row did not finish. */
  readonly unfinished: number;
  /** How long they took together, in milliseconds. */
  readonly unfinishedMs: number;
  /**
   * When the first one failed since one finished or a list decided, for whatever reason, in the clock's
   * milliseconds.
   */
  readonly failingSinceMs?: number;
  /** What ended the last one, while the list that follows it decides whether streams are at fault. */
  readonly suspicion?: Suspicion;
  /** How long lists took the place of streams the last time, in milliseconds; 0 if they never did. */
  readonly pauseMs: number;
  /** Until when they do, in the clock's milliseconds. */
  readonly pausedUntilMs?: number;
}

/** What may be wrong with streams. */
export interface Suspicion {
  /** What they did. */
  readonly cause: "unfinished" | "refused";
  /** What ended the last one. */
  readonly message: string;
}

/** Lists take the place of streams from now on. */
export interface StreamPauseBegin {
  /** What the streams did. */
  readonly cause: "stalled" | "unfinished" | "refused";
  /** What ended the last one. */
  readonly message: string;
  /** For how long, in milliseconds. */
  readonly ms: number;
  /** Whether they did so before, and a stream that was tried after that time did not finish either. */
  readonly isRepeated: boolean;
}

/** Nothing is held against streams. */
export const NEW_TRIAL: StreamTrial = { unfinished: 0, unfinishedMs: 0, pauseMs: 0 };

/** So many in a row, */
const MOST_UNFINISHED = 3;
/** or so long without coming to an end, and a list decides: as long as a stream may take to open. */
const LONGEST_UNFINISHED_MS = 30_000;
/** So long after the first that failed, whatever came of the others, a list decides as well. */
const LONGEST_FAILING_MS = 60_000;
const FIRST_PAUSE_MS = 3_600_000;
const LAST_PAUSE_MS = 86_400_000;

/** Whether lists take the place of streams at a time. */
export function isPaused(trial: StreamTrial, nowMs: number): boolean {
  return trial.pausedUntilMs !== undefined && nowMs < trial.pausedUntilMs;
}

/**
 * A stream did not finish, for a reason that may be its own. Whether a list has to decide now, is whether
 * there is a suspicion afterwards: what was held against streams before stays until one finishes.
 */
export function afterUnfinished(
  trial: StreamTrial,
  nowMs: number,
  { lastedMs, message }: { readonly lastedMs: number; readonly message: string },
): StreamTrial {
  const unfinished = trial.unfinished + 1;
  const unfinishedMs = trial.unfinishedMs + lastedMs;
  const isSuspect = unfinished >= MOST_UNFINISHED || unfinishedMs >= LONGEST_UNFINISHED_MS;
  const failing = afterFailure({ ...trial, unfinished, unfinishedMs }, nowMs, {
    cause: "unfinished",
    message,
  });
  return isSuspect ? { ...failing, suspicion: { cause: "unfinished", message } } : failing;
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
export function afterList(
  trial: StreamTrial,
  nowMs: number,
  { failed }: { readonly failed: boolean },
): { readonly trial: StreamTrial; readonly pause?: StreamPauseBegin } {
  const { suspicion, failingSinceMs: _, ...rest } = trial;
  if (suspicion === undefined) return { trial: failed ? trial : rest };
  return failed ? { trial: rest } : pauseStreams(rest, nowMs, suspicion);
}

/** Streams are at fault. */
export function pauseStreams(
  trial: StreamTrial,
  nowMs: number,
  why: Pick<StreamPauseBegin, "cause" | "message">,
): { readonly trial: StreamTrial; readonly pause: StreamPauseBegin } {
  const { failingSinceMs: _, ...rest } = trial;
  const ms = trial.pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(trial.pauseMs * 2, LAST_PAUSE_MS);
  return {
    // The next stream has one chance.
    trial: { ...rest, unfinished: MOST_UNFINISHED, pauseMs: ms, pausedUntilMs: nowMs + ms },
    pause: { ...why, ms, isRepeated: trial.pauseMs > 0 },
  };
}
