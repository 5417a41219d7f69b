import { jittered, type Random } from "../util/backoff.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { requireNumbers } from "../util/require_number.ts";

/** Options of {@linkcode KeyedBackoff}. */
export interface KeyedBackoffOptions {
  /** The delay after the first failure, in milliseconds. */
  readonly initialMs: number;
  /** The largest delay, in milliseconds. */
  readonly maxMs: number;
  readonly clock: Clock;
  /** Each delay grows by a random part of up to this many times the one before; 0 by default. */
  readonly jitter?: number;
  /** The random numbers of jitter; required with `jitter`. */
  readonly random?: Random;
  /** Whether an entry is too old; by default if the event is more than twice `maxMs` after the last one. */
  readonly hasExpired?: (eventTimeMs: number, lastUpdateMs: number, maxMs: number) => boolean;
}

interface Entry {
  readonly delayMs: number;
  /** The time of the last failure, on the monotonic clock. */
  readonly lastUpdateMs: number;
}

/**
 * A growing delay per key: doubled by each failure, expired after twice the largest delay. Entries stay until
 * {@linkcode KeyedBackoff.gc} or {@linkcode KeyedBackoff.reset}: call `gc` regularly.
 *
 * The times of events are those of the wall clock (`clock.now()`), the time since a failure is measured by
 * the monotonic clock. Mirrors client-go's `flowcontrol.Backoff`.
 *
 * @example
 * ```ts
 * import { KeyedBackoff } from "@listwatch/cache/compat";
 * import { FakeClock } from "@listwatch/cache/testing";
 * const clock = new FakeClock();
 * const keyed = new KeyedBackoff({ initialMs: 100, maxMs: 10_000, clock });
 * keyed.next("web-1", clock.now());
 * console.log(keyed.get("web-1"), keyed.get("web-2")); // 100 0
 * ```
 */
export class KeyedBackoff {
  readonly #options: KeyedBackoffOptions;
  readonly #hasExpired: (eventTimeMs: number, lastUpdateMs: number) => boolean;
  readonly #entries = new Map<string, Entry>();

  /**
   * @throws {TypeError} There is jitter but no `random`.
   * @throws {RangeError} A number is negative or `NaN`.
   */
  constructor(options: KeyedBackoffOptions) {
    const { maxMs, hasExpired } = options;
    if (options.jitter && options.random === undefined) {
      throw new TypeError("Cannot jitter: the option `random` is missing");
    }
    requireNumbers("back off", { initialMs: options.initialMs, maxMs, jitter: options.jitter });
    this.#options = options;
    this.#hasExpired = (eventTimeMs, lastUpdateMs) =>
      hasExpired?.(eventTimeMs, lastUpdateMs, maxMs) ?? eventTimeMs - lastUpdateMs > maxMs * 2;
  }

  /** How many entries there are. */
  get size(): number {
    return this.#entries.size;
  }

  /** The current delay of `id`, in milliseconds; 0 if it has not failed. */
  get(id: string): number {
    return this.#entries.get(id)?.delayMs ?? 0;
  }

  /** Records a failure at `eventTimeMs`: the first delay, or double the previous one. */
  next(id: string, eventTimeMs: number): void {
    const { initialMs, maxMs, jitter = 0, random = () => 0, clock } = this.#options;
    const previous = this.#entries.get(id);
    const delayMs = previous === undefined || this.#hasExpired(eventTimeMs, this.#onWallClock(previous))
      ? jittered(initialMs, jitter, random)
      : Math.min(previous.delayMs + jittered(previous.delayMs, jitter, random), maxMs);
    this.#entries.set(id, { delayMs, lastUpdateMs: monotonicNow(clock) });
  }

  /** Whether less time than the delay of `id` has passed between `eventTimeMs` and now. */
  isInBackOffSince(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    if (entry === undefined) return false;
    const { clock } = this.#options;
    const sinceMs = clock.now() - eventTimeMs;
    // An event in the future: the wall clock was set back meanwhile. The event is not younger than the last
    // failure.
    return (sinceMs < 0 ? monotonicNow(clock) - entry.lastUpdateMs : sinceMs) < entry.delayMs;
  }

  /** Whether less time than the delay of `id` has passed between its last failure and `eventTimeMs`. */
  isInBackOffSinceUpdate(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    return entry !== undefined && eventTimeMs - this.#onWallClock(entry) < entry.delayMs;
  }

  /** Removes the entry of `id`. */
  reset(id: string): void {
    this.#entries.delete(id);
  }

  /** Removes every expired entry. */
  gc(): void {
    const nowMs = this.#options.clock.now();
    for (const [id, entry] of this.#entries) {
      if (this.#hasExpired(nowMs, this.#onWallClock(entry))) this.#entries.delete(id);
    }
  }

  #live(id: string, eventTimeMs: number): Entry | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined || this.#hasExpired(eventTimeMs, this.#onWallClock(entry)) ? undefined : entry;
  }

  /** The time of the last failure on the wall clock as it is set now. */
  #onWallClock({ lastUpdateMs }: Entry): number {
    const { clock } = this.#options;
    return lastUpdateMs + clock.now() - monotonicNow(clock);
  }
}

/** Options of {@linkcode RetryWithDeadline}. */
export interface RetryWithDeadlineOptions {
  /** How long after the first error of a series to retry, in milliseconds; 0 or less = never. */
  readonly maxRetryMs: number;
  /** A retryable error at least this many milliseconds after the one before starts a new series. */
  readonly minResetMs: number;
  /** Whether an error counts; others neither start nor prolong a series. */
  readonly isRetryable: (error: unknown) => boolean;
  readonly clock: Clock;
}

/**
 * Decides whether to retry after errors: yes for some time after the first of a series of errors. Mirrors
 * client-go's `cache.NewRetryWithDeadline`.
 *
 * @example
 * ```ts
 * import { RetryWithDeadline } from "@listwatch/cache/compat";
 * import { realClock as clock } from "@listwatch/cache/reflector";
 * const retry = new RetryWithDeadline({ maxRetryMs: 1, minResetMs: 60_000, isRetryable: () => true, clock });
 * retry.after(new Error("etcdserver: leader changed"));
 * console.log(retry.shouldRetry()); // true
 * ```
 */
export class RetryWithDeadline {
  readonly #options: RetryWithDeadlineOptions;
  #firstErrorMs: number | undefined;
  #lastErrorMs: number | undefined;

  /** @throws {RangeError} A number is `NaN`. */
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
    return false;
  }
}
