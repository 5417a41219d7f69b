/**
 * What it means that a watch has ended.
 * @module
 */

import { isInternalError, networkErrorOf } from "../meta/status.ts";
import type { Clock } from "../util/clock.ts";
import { RetryWithDeadline } from "../util/retry_with_deadline.ts";
import type { BookmarkRhythm } from "./bookmark_rhythm.ts";
import type { Followed } from "./follow_watch.ts";
import type { Quarantine } from "./quarantine.ts";
import type { ReflectorMetrics } from "./reflector_metrics.ts";
import { VeryShortWatchError } from "./reflector_options.ts";
import type { ReflectorReports } from "./reflector_reports.ts";
import type { Outcome } from "./state.ts";
import { RelistDue, StoodStillError } from "./watch_guard.ts";

/** A watch that ends sooner, without any event, has failed. */
export const VERY_SHORT_WATCH_MS = 1_000;
// One that ends sooner, for no reason given, is a failure when it comes to pacing.
const SHORT_MS = 5_000;
// One that lasts so long was well, whatever ended it.
const LONG_MS = 120_000;
const INTERNAL_ERROR_RESET_MS = 60_000;

/** Options of {@linkcode WatchEnds}. */
export interface WatchEndsOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly metrics: ReflectorMetrics;
  readonly reports: ReflectorReports;
  readonly quarantine: Quarantine;
  readonly rhythm: BookmarkRhythm;
  /** How long watches that end with an internal error are opened again at once, in milliseconds. */
  readonly maxInternalErrorRetryMs: number;
}

/** What came of a watch. */
export interface WatchEnd {
  readonly outcome: Outcome;
  /** What went wrong, if anything did. */
  readonly error?: unknown;
}

/** Tells what came of watches, one after another; reports and measures it. */
export class WatchEnds {
  readonly #options: WatchEndsOptions;
  readonly #internalErrors: RetryWithDeadline;

  constructor(options: WatchEndsOptions) {
    this.#options = options;
    this.#internalErrors = new RetryWithDeadline({
      maxRetryMs: options.maxInternalErrorRetryMs,
      minResetMs: INTERNAL_ERROR_RESET_MS,
      isRetryable: isInternalError,
      clock: options.clock,
    });
  }

  /** A watch that was open for so long is over. */
  judge({ eventCount, bookmarks, error }: Followed, lastedMs: number): WatchEnd {
    const { name, metrics, reports, rhythm } = this.#options;
    if (error instanceof StoodStillError) {
      reports.log("warn", error.message);
      metrics.watchEnds(lastedMs, eventCount, false);
      return { outcome: { of: "watch", retriesInternalError: false, isShort: false }, error };
    }
    // A connection that broke is a watch that ended: what it delivered stands, and the next one goes on from there.
    const failure = networkErrorOf(error) === undefined ? error : undefined;
    const isDue = rhythm.ended({ bookmarks, lastedMs });
    const isVeryShort = failure === undefined && eventCount === 0 && lastedMs < VERY_SHORT_WATCH_MS;
    metrics.watchEnds(lastedMs, eventCount, isVeryShort);
    if (failure instanceof RelistDue) return { outcome: { of: "watch", relist: true }, error };
    if (isDue && failure === undefined) {
      reports.log("warn", "bookmarks do not come any more; listing, in case the server was restored");
      return { outcome: { of: "watch", relist: true }, error };
    }
    if (isVeryShort) return this.#failed(new VeryShortWatchError(name), lastedMs);
    if (failure !== undefined) return this.#failed(failure, lastedMs);
    this.#internalErrors.after(undefined);
    this.#wasWell();
    return { outcome: { of: "watch", retriesInternalError: false, isShort: lastedMs < SHORT_MS }, error };
  }

  #failed(error: unknown, lastedMs: number): WatchEnd {
    const { reports } = this.#options;
    this.#internalErrors.after(error);
    const retriesInternalError = isInternalError(error) && this.#internalErrors.shouldRetry();
    if (lastedMs >= LONG_MS) this.#wasWell();
    reports.watchFailed(error);
    return { outcome: { of: "watch", error, retriesInternalError, isShort: lastedMs < SHORT_MS }, error };
  }

  #wasWell(): void {
    this.#options.reports.watchWasWell();
    this.#options.quarantine.watchWasWell();
  }
}
