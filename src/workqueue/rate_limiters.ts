/** Rate limiters: the delays of failed items. */

import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { requireNumbers } from "../util/require_number.ts";
import { identity } from "./work_queue.ts";

/**
 * Decides how long an item waits before it is tried again. Mirrors client-go's `workqueue.TypedRateLimiter`.
 */
export interface RateLimiter<T> {
  /** Counts a failure of `item`, and returns how many milliseconds it should wait. */
  when(item: T): number;
  /** Resets the failures of `item`, which succeeded or is not retried. */
  forget(item: T): void;
  /** The number of counted failures of `item`. */
  numRequeues(item: T): number;
}

/** An option of limiters that count each item's failures. */
export interface KeyOfOption<T> {
  /** Makes an item's identity; the item itself by default, which is right for strings, not for objects. */
  readonly keyOf?: (item: T) => unknown;
}

/** Options of {@linkcode itemExponentialFailureRateLimiter}. */
export interface ExponentialFailureOptions<T> extends KeyOfOption<T> {
  /** The delay after an item's first failure. */
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/**
 * A delay that doubles with each failure of the item: `baseDelayMs * 2 ** failures`, at most `maxDelayMs`.
 * Mirrors client-go's `NewTypedItemExponentialFailureRateLimiter`.
 * @throws {RangeError} A number is negative or `NaN`.
 */
export function itemExponentialFailureRateLimiter<T = string>(
  options: ExponentialFailureOptions<T>,
): RateLimiter<T> {
  const { baseDelayMs, maxDelayMs, keyOf } = options;
  requireNumbers("limit the rate", { baseDelayMs });
  requireNumbers("limit the rate", { maxDelayMs }, { mayBeInfinite: true });
  // 0 * 2 ** 1024 would be NaN.
  const delayMs = (failures: number) =>
    baseDelayMs === 0 ? 0 : Math.min(baseDelayMs * 2 ** failures, maxDelayMs);
  return countingLimiter(delayMs, keyOf);
}

/** Options of {@linkcode itemFastSlowRateLimiter}. */
export interface FastSlowOptions<T> extends KeyOfOption<T> {
  /** The delay after each of the first failures of an item. */
  readonly fastDelayMs: number;
  /** The delay after each later one. */
  readonly slowDelayMs: number;
  /** How many failures get the fast delay. */
  readonly maxFastAttempts: number;
}

/**
 * A short delay for the first failures of the item, then a long one.
 * Mirrors client-go's `NewTypedItemFastSlowRateLimiter`.
 * @throws {RangeError} A number is negative or `NaN`.
 */
export function itemFastSlowRateLimiter<T = string>(options: FastSlowOptions<T>): RateLimiter<T> {
  const { fastDelayMs, slowDelayMs, maxFastAttempts, keyOf } = options;
  requireNumbers("limit the rate", { fastDelayMs, slowDelayMs, maxFastAttempts }, { mayBeInfinite: true });
  return countingLimiter((failures) => failures < maxFastAttempts ? fastDelayMs : slowDelayMs, keyOf);
}

/** Options of {@linkcode bucketRateLimiter}. */
export interface BucketOptions {
  /** How many tokens come back per second; `Infinity` = no limit. */
  readonly qps: number;
  /** How many tokens the bucket holds; it starts full. Without any, every delay is infinite. */
  readonly burst: number;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
}

/**
 * A token bucket for all items together: each `when` takes a token, or reserves a future one, and returns how
 * long that will take. It does not count failures.
 * Mirrors client-go's `TypedBucketRateLimiter` over `golang.org/x/time/rate`.
 * @throws {RangeError} A number is negative or `NaN`.
 */
export function bucketRateLimiter<T = string>(options: BucketOptions): RateLimiter<T> {
  const { qps, burst, clock = realClock } = options;
  requireNumbers("limit the rate", { qps, burst }, { mayBeInfinite: true });
  let tokens = burst;
  let lastMs = monotonicNow(clock);
  return {
    when() {
      if (qps === Infinity) return 0;
      if (burst < 1) return Infinity;
      const nowMs = monotonicNow(clock);
      const available = Math.min(tokens + Math.max(nowMs - lastMs, 0) * qps / 1000, burst) - 1;
      const delayMs = available < 0 ? -available * 1000 / qps : 0;
      tokens = available;
      lastMs = nowMs;
      return delayMs;
    },
    forget() {},
    numRequeues: () => 0,
  };
}

/**
 * The largest delay of several limiters; calls all of them. Mirrors client-go's `NewTypedMaxOfRateLimiter`.
 *
 * @example
 * ```ts
 * import * as limiters from "@listwatch/cache/workqueue";
 * const growing = limiters.itemExponentialFailureRateLimiter<string>({ baseDelayMs: 1, maxDelayMs: 1_000 });
 * console.log(growing.when("a"), growing.when("a"), growing.when("b")); // 1 2 1
 * const bucket = limiters.bucketRateLimiter<string>({ qps: 1, burst: 1 });
 * const both = limiters.maxOfRateLimiter<string>([
 *   limiters.itemFastSlowRateLimiter({ fastDelayMs: 5, slowDelayMs: 1_000, maxFastAttempts: 2 }),
 *   limiters.withMaxWaitRateLimiter(bucket, 500),
 * ]);
 * console.log(both.when("a"), both.when("b")); // 5 500
 * const queue = new limiters.RateLimitingQueue<string>(limiters.defaultControllerRateLimiter());
 * const ofItems = new limiters.RateLimitingQueue<string>(limiters.defaultItemBasedRateLimiter());
 * console.log(queue.length + ofItems.length); // 0
 * ```
 */
export function maxOfRateLimiter<T = string>(limiters: readonly RateLimiter<T>[]): RateLimiter<T> {
  const largest = (of: (limiter: RateLimiter<T>) => number) =>
    limiters.reduce((max, limiter) => Math.max(max, of(limiter)), 0);
  return {
    when: (item) => largest((limiter) => limiter.when(item)),
    forget: (item) => limiters.forEach((limiter) => limiter.forget(item)),
    numRequeues: (item) => largest((limiter) => limiter.numRequeues(item)),
  };
}

/**
 * A limiter whose delays are cut at `maxDelayMs`. Mirrors client-go's `NewTypedWithMaxWaitRateLimiter`.
 * @throws {RangeError} A number is negative or `NaN`.
 */
export function withMaxWaitRateLimiter<T = string>(
  limiter: RateLimiter<T>,
  maxDelayMs: number,
): RateLimiter<T> {
  requireNumbers("limit the rate", { maxDelayMs }, { mayBeInfinite: true });
  return {
    when: (item) => Math.min(limiter.when(item), maxDelayMs),
    forget: (item) => limiter.forget(item),
    numRequeues: (item) => limiter.numRequeues(item),
  };
}

/** Options of {@linkcode defaultControllerRateLimiter}. */
export interface ControllerRateLimiterOptions<T> extends KeyOfOption<T> {
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
}

/**
 * The limiter of controllers: the delay of each item doubles from 5 ms to 1000 s, and all together come at
 * most 10 times a second after a burst of 100. Mirrors client-go's `DefaultTypedControllerRateLimiter`.
 */
export function defaultControllerRateLimiter<T = string>(
  options: ControllerRateLimiterOptions<T> = {},
): RateLimiter<T> {
  return maxOfRateLimiter([
    itemExponentialFailureRateLimiter({ ...options, baseDelayMs: 5, maxDelayMs: 1_000_000 }),
    bucketRateLimiter({ ...options, qps: 10, burst: 100 }),
  ]);
}

/**
 * The delay of each item doubles from 1 ms to 1000 s; no limit on all together. Mirrors client-go's
 * `DefaultTypedItemBasedRateLimiter`.
 */
export function defaultItemBasedRateLimiter<T = string>(options: KeyOfOption<T> = {}): RateLimiter<T> {
  return itemExponentialFailureRateLimiter({ ...options, baseDelayMs: 1, maxDelayMs: 1_000_000 });
}

function countingLimiter<T>(
  delayMs: (failures: number) => number,
  keyOf: (item: T) => unknown = identity,
): RateLimiter<T> {
  const failuresOf = new Map<unknown, number>();
  const failures = (item: T) => failuresOf.get(keyOf(item)) ?? 0;
  return {
    when(item) {
      const before = failures(item);
      failuresOf.set(keyOf(item), before + 1);
      return delayMs(before);
    },
    forget: (item) => void failuresOf.delete(keyOf(item)),
    numRequeues: failures,
  };
}
