/** Classifies the end of a watch. */

import { networkErrorOf } from "../meta/request.ts";
import { isInternalError } from "../meta/status.ts";
import type { Clock } from "../util/clock.ts";
import { RetryWithDeadline } from "../util/backoff.ts";
import { RelistDue, SuspendedError } from "./open_watch.ts";
import type { Quarantine } from "./quarantine.ts";
import type { ReflectorMetrics } from "./reflector_metrics.ts";
import { VeryShortWatchError } from "./reflector_options.ts";
import type { ReflectorReports } from "./reflector_reports.ts";
import type { Outcome } from "./state.ts";

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
  readonly metrics: ReflectorMetrics | undefined;
  readonly reports: ReflectorReports;
  readonly quarantine: Quarantine;
  readonly rhythm: BookmarkRhythm;
  /** How long watches that end with an internal error are opened again at once, in milliseconds. */
  readonly maxInternalErrorRetryMs: number;
}

/** How a watch went. */
export interface EndedWatch {
  /** How many events reached the store. */
  readonly events: number;
  readonly bookmarks: number;
  readonly lastedMs: number;
  /** What ended it; absent where the server did, in good order. */
  readonly error?: unknown;
}

/** What came of a watch. */
export interface WatchEnd {
  readonly outcome: Outcome;
  /** What went wrong, if anything did. */
  readonly error?: unknown;
}

/** Classifies the end of each watch; reports and measures it. */
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

  /** A watch is over. */
  classify({ events, bookmarks, lastedMs, error }: EndedWatch): WatchEnd {
    const { name, metrics, reports, rhythm } = this.#options;
    if (error instanceof SuspendedError) {
      // Its silence says nothing, its bookmarks do.
      if (bookmarks > 0) rhythm.ended({ bookmarks, lastedMs });
      reports.log("warn", error.message);
      metrics?.watchEnds(lastedMs, events, false);
      return { outcome: { of: "watch", retriesInternalError: false, isShort: false }, error };
    }
    // A connection that broke is a watch that ended: what it delivered is valid, and the next one continues
    // from there.
    const failure = networkErrorOf(error) === undefined ? error : undefined;
    const isDue = rhythm.ended({ bookmarks, lastedMs });
    const isVeryShort = failure === undefined && events === 0 && lastedMs < VERY_SHORT_WATCH_MS;
    metrics?.watchEnds(lastedMs, events, isVeryShort);
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

/**
 * Follows the bookmarks of one watch after another.
 *
 * A server that was restored from a backup accepts a watch from a version that it has not reached again, and sends
 * nothing of what happens up to it, bookmarks neither: https://github.com/kubernetes/kubernetes/issues/107457. So where
 * bookmarks came, and a new watch that was long enough for one (or several that were together) brings none, everything
 * is listed, once: a server that
 * sends no bookmarks any more gives the same list, and its silence means nothing from then on. A single bookmark is no
 * rhythm yet: then it takes a second silent watch.
 */
export class BookmarkRhythm {
  /** How long a watch lasts that must have brought a bookmark. */
  readonly silenceMs: number;
  #isExpected = true;
  #bookmarks = 0;
  /** How long watches lasted since a bookmark came, and how often that was long enough for one. */
  #silentMs = 0;
  #silentWatches = 0;
  /** Whether everything was listed as no bookmark came, and none has come since on a watch. */
  #hasListed = false;

  constructor(silenceMs: number) {
    this.silenceMs = silenceMs;
  }

  /**
   * Whether a watch that brings nothing at all for so long is taken for dead: at first, and until a watch had
   * none.
   */
  get isExpected(): boolean {
    return this.#isExpected;
  }

  /** Everything was listed; `byBookmark`: a bookmark said that it was all. */
  listed({ byBookmark }: { readonly byBookmark: boolean }): void {
    this.#silentMs = this.#silentWatches = 0;
    if (byBookmark && !this.#hasListed) this.#bookmarks++;
  }

  /**
   * The watch to come begins at a snapshot's version: if it brings no bookmark, the server may not have
   * reached that.
   */
  resumed(): void {
    this.#bookmarks = 2;
  }

  /** The server has reached that version. */
  proven(): void {
    this.#bookmarks = 0;
  }

  /** A watch is over; whether everything is to be listed. */
  ended({ bookmarks, lastedMs }: Pick<EndedWatch, "bookmarks" | "lastedMs">): boolean {
    if (bookmarks > 0) {
      this.#isExpected = true;
      this.#hasListed = false;
      this.#bookmarks += bookmarks;
      this.#silentMs = this.#silentWatches = 0;
      return false;
    }
    if (lastedMs >= this.silenceMs) this.#isExpected = false; // a short watch says nothing about bookmarks
    this.#silentMs += lastedMs;
    if (this.#silentMs < this.silenceMs) return false;
    this.#silentMs = 0;
    if (this.#bookmarks === 0 || ++this.#silentWatches + this.#bookmarks < 3) return false;
    this.#bookmarks = 0;
    this.#hasListed = true;
    return true;
  }
}
