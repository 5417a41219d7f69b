/** Queues that can add items after a delay, and after one that a rate limiter chooses. */

import { type Clock, monotonicNow, realClock, type TimerHandle } from "../util/clock.ts";
import { KeyedHeap } from "../util/collections.ts";
import { requireNumbers } from "../util/require_number.ts";
import { WorkQueue, type WorkQueueOptions } from "./work_queue.ts";
import type { RateLimiter } from "./rate_limiters.ts";

interface Waiting<T> {
  readonly item: T;
  readonly readyAtMs: number;
}

/**
 * A {@linkcode WorkQueue} that can add an item after a delay: for trying again without a hot loop.
 *
 * It holds at most one timer, and none when nothing waits or after a shutdown.
 * Mirrors client-go's `workqueue.TypedDelayingInterface`.
 *
 * @example
 * ```ts
 * import { DelayingQueue } from "@listwatch/cache/workqueue";
 * const queue = new DelayingQueue<string>();
 * queue.addAfter("shop/web-1", 20);
 * console.log(await queue.get()); // after 20 ms
 * ```
 */
export class DelayingQueue<T = string> extends WorkQueue<T> {
  readonly #waiting: KeyedHeap<unknown, Waiting<T>> = new KeyedHeap((a, b) => a.readyAtMs < b.readyAtMs);
  readonly #clock: Clock;
  #timer: TimerHandle;
  #timerAtMs = Infinity;

  constructor(options: WorkQueueOptions<T> = {}) {
    super(options);
    this.#clock = options.clock ?? realClock;
  }

  /**
   * Adds an item after `delayMs` milliseconds; immediately if that is 0 or less. An item that already waits
   * is added at the earlier of the two times. {@linkcode WorkQueue.add} still adds a waiting item
   * immediately; it is then added again when its time comes. Ignored once the queue is shut down, which also
   * drops everything that waits.
   * @throws {RangeError} The delay is not a number.
   */
  addAfter(item: T, delayMs: number): void {
    requireNumbers("add an item", { delayMs }, { least: -Infinity, mayBeInfinite: true });
    if (this.shuttingDown) return;
    this.countRetry();
    if (delayMs <= 0) return this.add(item);
    const key = this.keyOf(item);
    const readyAtMs = monotonicNow(this.#clock) + delayMs;
    const known = this.#waiting.get(key);
    if (known !== undefined && known.readyAtMs <= readyAtMs) return;
    this.#waiting.set(key, { item, readyAtMs });
    this.#setTimer();
  }

  /** Drops waiting items and the timer. */
  protected override onShutDown(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #setTimer(): void {
    const first = this.#waiting.peek();
    if (first === undefined || first.readyAtMs >= this.#timerAtMs) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timerAtMs = first.readyAtMs;
    this.#timer = this.#clock.setTimeout(() => this.#addReady(), first.readyAtMs - monotonicNow(this.#clock));
  }

  // Timers may fire early, so each due time is checked again.
  #addReady(): void {
    this.#timerAtMs = Infinity;
    const nowMs = monotonicNow(this.#clock);
    for (let next = this.#waiting.peek(); next && next.readyAtMs <= nowMs; next = this.#waiting.peek()) {
      this.#waiting.pop();
      this.add(next.item);
    }
    this.#setTimer();
  }
}

/**
 * A {@linkcode DelayingQueue} with a rate limiter: an item that failed is added again when the limiter says
 * so.
 *
 * After success, or after the last try, call {@linkcode RateLimitingQueue.forget}, or the limiter keeps the
 * item for ever; `done` is needed as well. Mirrors client-go's `workqueue.TypedRateLimitingInterface`.
 *
 * @example
 * ```ts
 * import { defaultControllerRateLimiter, RateLimitingQueue } from "@listwatch/cache/workqueue";
 * const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter());
 * queue.addRateLimited("shop/web-1");
 * const { item } = await queue.get(); // after 5 ms
 * if (item !== undefined) {
 *   queue.forget(item);
 *   queue.done(item);
 * }
 * ```
 */
export class RateLimitingQueue<T = string> extends DelayingQueue<T> {
  readonly #rateLimiter: RateLimiter<T>;

  /** Makes an empty queue. With `keyOf`, give the limiter the same. */
  constructor(rateLimiter: RateLimiter<T>, options: WorkQueueOptions<T> = {}) {
    super(options);
    this.#rateLimiter = rateLimiter;
  }

  /**
   * Adds an item after the delay that the limiter gives it. Calls the limiter even after a shutdown.
   * @throws {RangeError} The delay is not a number.
   */
  addRateLimited(item: T): void {
    this.addAfter(item, this.#rateLimiter.when(item));
  }

  /** Makes the limiter forget the failures of an item. */
  forget(item: T): void {
    this.#rateLimiter.forget(item);
  }

  /** How many failures of an item the limiter remembers. */
  numRequeues(item: T): number {
    return this.#rateLimiter.numRequeues(item);
  }
}
