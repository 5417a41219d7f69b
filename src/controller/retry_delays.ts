/** How long keys wait after failures. */

import { NetworkError } from "../meta/request.ts";
import { isConflict, statusErrorOf } from "../meta/status.ts";
import { itemExponentialFailureRateLimiter, type RateLimiter } from "../workqueue/rate_limiters.ts";

/**
 * How long a key waits after failures, per kind of failure. A conflict is over with the next event; while
 * the server is away, nothing is gained by waiting for minutes after it is back; what else fails may fail
 * for ever. Keys do not wait for each other, as behind the bucket of client-go's default limiter, which lets
 * ten of 10,000 failed keys through per second.
 */
export class RetryDelays {
  readonly #conflicts = itemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000 });
  readonly #outages = itemExponentialFailureRateLimiter({ baseDelayMs: 50, maxDelayMs: 10_000 });
  readonly #failures = itemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 300_000 });
  readonly #all: readonly RateLimiter<string>[] = [this.#conflicts, this.#outages, this.#failures];

  /** Counts a failure of a key, and returns how many milliseconds it waits. */
  next(key: string, error: unknown): number {
    if (isConflict(error)) return this.#conflicts.when(key);
    const { httpStatus = 0, retryAfterMs = 0 } = statusErrorOf(error) ?? {};
    const isOutage = error instanceof NetworkError || httpStatus === 429 || httpStatus >= 500;
    return Math.max(isOutage ? this.#outages.when(key) : this.#failures.when(key), retryAfterMs);
  }

  /** How many failures of a key were counted since `forget`. */
  of(key: string): number {
    return this.#all.reduce((sum, limiter) => sum + limiter.numRequeues(key), 0);
  }

  forget(key: string): void {
    for (const limiter of this.#all) limiter.forget(key);
  }
}
