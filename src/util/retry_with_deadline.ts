/**
 * Retries with a deadline.
 * @module
 */

import { type Clock, monotonicNow } from "./clock.ts";
import { requireNumbers } from "./require_number.ts";

/**
 * Options of {@linkcode RetryWithDeadline}.
 *
 * @category Tools
 */
export interface RetryWithDeadlineOptions {
  /** How long after the first error of a series to retry, in milliseconds; 0 or less = never. */
  readonly maxRetryMs: number;
  /** A retryable error at least this many milliseconds after the one before starts a new series. */
  readonly minResetMs: number;
  /** Which errors count; the others neither start nor prolong a series. */
  readonly isRetryable: (error: unknown) => boolean;
  /** Where time comes from. */
  readonly clock: Clock;
}

/**
 * Decides whether to retry after errors: yes for some time after the first of a series of errors.
 *
 * Mirrors client-go's `cache.NewRetryWithDeadline`.
 *
 * @example
 * ```ts
 * import { RetryWithDeadline } from "@listwatch/cache/reflector";
 * import { FakeClock } from "@listwatch/cache/testing";
 * const clock = new FakeClock();
 * const retry = new RetryWithDeadline({ maxRetryMs: 1_000, minResetMs: 60_000, isRetryable: () => true, clock });
 * retry.after(new Error("etcdserver: leader changed"));
 * console.log(retry.shouldRetry()); // true
 * await clock.advance(1_001);
 * console.log(retry.shouldRetry()); // false
 * ```
 *
 * @category Tools
 */
export class RetryWithDeadline {
  readonly #options: RetryWithDeadlineOptions;
  #firstErrorMs: number | undefined;
  #lastErrorMs: number | undefined;

  /**
   * Makes one without errors.
   *
   * @throws {RangeError} A number is `NaN`.
   */
  constructor(options: RetryWithDeadlineOptions) {
    const { maxRetryMs, minResetMs } = options;
    requireNumbers("retry", { maxRetryMs, minResetMs }, { least: -Infinity, mayBeInfinite: true });
    this.#options = options;
  }

  /** Records an error. */
  after(error: unknown): void {
    const { isRetryable, clock, minResetMs } = this.#options;
    if (!isRetryable(error)) return;
    const nowMs = monotonicNow(clock);
    if (this.#lastErrorMs === undefined || nowMs - this.#lastErrorMs >= minResetMs) {
      this.#firstErrorMs = undefined;
    }
    this.#firstErrorMs ??= nowMs;
    this.#lastErrorMs = nowMs;
  }

  /**
   * Whether to retry: the series of errors started at most `maxRetryMs` ago. A longer series is dropped, so
   * that the next error starts a new one. Without an error the result is `false`.
   */
  shouldRetry(): boolean {
    const { maxRetryMs, clock } = this.#options;
    if (maxRetryMs <= 0) return false;
    if (this.#firstErrorMs !== undefined && monotonicNow(clock) - this.#firstErrorMs <= maxRetryMs) {
      return true;
    }
    this.#firstErrorMs = undefined;
    this.#lastErrorMs = undefined;
    return false;
  }
}
