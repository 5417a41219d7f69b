/** Backoff, and retries with a deadline. */

import { type Clock, monotonicNow } from "./clock.ts";
import { requireNumbers } from "./require_number.ts";

/** How delays grow. Mirrors apimachinery's `wait.Backoff`. */
export interface BackoffParameters {
  /** The first delay, in milliseconds, before jitter. */
  readonly durationMs: number;
  /** The factor of each step; 0, the default, keeps the delay as it is. */
  readonly factor?: number;
  /** Each delay grows by a random part of up to `jitter` times itself; 0 by default. It does not add up. */
  readonly jitter?: number;
  /** How many steps may change the delay; after them it is constant. Unlimited by default. */
  readonly steps?: number;
  /** The largest delay in milliseconds, before jitter; 0, the default: none. At it the steps are used up. */
  readonly capMs?: number;
}

/** A source of random numbers from 0 (included) to 1 (excluded), such as `Math.random`. */
export type Random = () => number;

// Keeps an uncapped backoff from becoming infinite, and a jittered one from NaN.
const LONGEST_MS = Number.MAX_SAFE_INTEGER;

/** A sequence of growing delays. Mirrors apimachinery's `wait.Backoff.Step`. */
export class Backoff {
  readonly #parameters: Required<BackoffParameters>;
  readonly #random: Random;
  #durationMs = 0;
  #steps = 0;

  /**
   * @param options.random The random numbers of jitter; required with `jitter`.
   * @throws {RangeError} A parameter is negative or not a number.
   * @throws {TypeError} There is jitter but no `random`.
   */
  constructor(parameters: BackoffParameters, options: { readonly random?: Random } = {}) {
    const { durationMs, factor = 0, jitter = 0, steps = Infinity, capMs = 0 } = parameters;
    this.#parameters = { durationMs, factor, jitter, steps, capMs };
    requireNumbers("back off", { durationMs, factor, jitter, steps, capMs }, { mayBeInfinite: true });
    if (jitter > 0 && options.random === undefined) {
      throw new TypeError("Cannot jitter: the option `random` is missing");
    }
    this.#random = options.random ?? (() => 0);
    this.reset();
  }

  /** As {@linkcode Backoff.step}: a reflector's option `backoff` may be one. */
  nextDelayMs(): number {
    return this.step();
  }

  /** The next delay, in milliseconds. */
  step(): number {
    const { factor, capMs, jitter } = this.#parameters;
    const durationMs = this.#durationMs;
    if (this.#steps >= 1) {
      this.#steps--;
      const grownMs = factor === 0 ? durationMs : Math.min(durationMs * factor, LONGEST_MS);
      const capped = factor !== 0 && capMs > 0 && grownMs > capMs;
      this.#durationMs = capped ? capMs : grownMs;
      if (capped) this.#steps = 0;
    }
    return jittered(durationMs, jitter, this.#random);
  }

  /** Starts again at the first delay. */
  reset(): void {
    this.#durationMs = this.#parameters.durationMs;
    this.#steps = this.#parameters.steps;
  }
}

/** Options of {@linkcode BackoffManager}. */
export interface BackoffManagerOptions {
  /** Measures the time until the reset. */
  readonly clock: Clock;
  readonly random: Random;
  /** After how many milliseconds the delays start again at the first; 0 = the first delay every time. */
  readonly resetMs: number;
  /**
   * The start of the measured time. `interval`, the default: the start or the last reset, even while failures
   * continue, as in `wait.Backoff.DelayWithReset`. `quiet`: the last delay, as in
   * `wait.NewExponentialBackoffManager`.
   */
  readonly resetAfter?: "interval" | "quiet";
}

/**
 * Growing delays that start again after some time. Mirrors apimachinery's `wait.Backoff.DelayWithReset`, or
 * its older `wait.NewExponentialBackoffManager`.
 *
 * @example
 * ```ts
 * import * as delays from "@listwatch/cache/reflector";
 * import { FakeClock } from "@listwatch/cache/testing";
 * const growing = new delays.Backoff({ durationMs: 100, factor: 2, capMs: 300 });
 * console.log(growing.step(), growing.step(), growing.step(), growing.step()); // 100 200 300 300
 * const clock = new FakeClock();
 * const manager = new delays.BackoffManager({ durationMs: 100, factor: 2 }, { clock, random: () => 0, resetMs: 60_000 });
 * console.log(manager.nextDelayMs(), manager.nextDelayMs()); // 100 200
 * await clock.advance(60_001);
 * console.log(manager.nextDelayMs()); // 100
 * console.log(delays.newReflectorBackoff({ clock, random: () => 0.5 }).nextDelayMs()); // 1200
 * const keyed = new delays.KeyedBackoff({ initialMs: 100, maxMs: 10_000, clock });
 * keyed.next("web-1", clock.now());
 * console.log(keyed.get("web-1"), keyed.get("web-2")); // 100 0
 * const retry = new delays.RetryWithDeadline({ maxRetryMs: 1, minResetMs: 60_000, isRetryable: () => true, clock });
 * retry.after(new Error("etcdserver: leader changed"));
 * console.log(retry.shouldRetry()); // true
 * ```
 */
export class BackoffManager {
  readonly #backoff: Backoff;
  readonly #options: BackoffManagerOptions;
  readonly #constant: boolean;
  #startMs: number;

  /** @throws {RangeError} A parameter is negative or not a number. */
  constructor(parameters: BackoffParameters, options: BackoffManagerOptions) {
    requireNumbers("back off", { resetMs: options.resetMs }, { least: -Infinity, mayBeInfinite: true });
    this.#constant = options.resetMs <= 0;
    this.#backoff = new Backoff(this.#constant ? { ...parameters, factor: 0 } : parameters, options);
    this.#options = options;
    this.#startMs = monotonicNow(options.clock);
  }

  /** The delay before the next attempt, in milliseconds. */
  nextDelayMs(): number {
    if (!this.#constant) {
      const { clock, resetMs, resetAfter } = this.#options;
      const nowMs = monotonicNow(clock);
      const resets = nowMs - this.#startMs > resetMs;
      if (resets) this.#backoff.reset();
      if (resets || resetAfter === "quiet") this.#startMs = nowMs;
    }
    return this.#backoff.step();
  }

  /** Starts again at the first delay, after a success. */
  reset(): void {
    this.#backoff.reset();
    this.#startMs = monotonicNow(this.#options.clock);
  }
}

/** Options of {@linkcode newReflectorBackoff}. */
export interface ReflectorBackoffOptions {
  /** Measures the time until the reset. */
  readonly clock: Clock;
  readonly random: Random;
  /** Other delays than the default; the reset stays. */
  readonly backoff?: BackoffParameters;
  /** After how many milliseconds without a failure the delays start again; 120,000 by default. */
  readonly resetMs?: number;
}

/** The longest delay of a reflector, before it is stretched. */
export const LONGEST_DELAY_MS = 15_000;
/** The delays of a reflector; with its jitter the longest is just under 30 seconds. */
export const REFLECTOR_BACKOFF: BackoffParameters = {
  durationMs: 800,
  factor: 2,
  capMs: LONGEST_DELAY_MS,
  jitter: 1,
};
const REFLECTOR_RESET_MS = 120_000;

/**
 * The delays of a reflector: 0.8, 1.6, 3.2, ... 12.8, 15 seconds, each stretched at random to less than its
 * double, so that none is longer than 30 seconds. They start again after two minutes without a failure.
 *
 * Mirrors the backoff of client-go's `NewReflector`, where delays grow to 30 seconds before they are
 * stretched, and since v0.36 start again every two minutes even while failures continue.
 * @throws {RangeError} A parameter of `backoff` is negative or not a number.
 */
export function newReflectorBackoff(options: ReflectorBackoffOptions): BackoffManager {
  const { clock, random, backoff = REFLECTOR_BACKOFF, resetMs = REFLECTOR_RESET_MS } = options;
  return new BackoffManager(backoff, { clock, random, resetMs, resetAfter: "quiet" });
}

/** A duration stretched by a random part of up to `jitter` times itself. */
export function jittered(durationMs: number, jitter: number, random: Random): number {
  return jitter > 0 ? durationMs + random() * jitter * durationMs : durationMs;
}

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
  /** Which errors count; the others neither start nor prolong a series. */
  readonly isRetryable: (error: unknown) => boolean;
  readonly clock: Clock;
}

/**
 * Decides whether to retry after errors: yes for some time after the first of a series of errors. Mirrors
 * client-go's `cache.NewRetryWithDeadline`.
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
    this.#lastErrorMs = undefined;
    return false;
  }
}
