/** A queue that delays failed items by a rate limiter. */

import { DelayingQueue } from "./delaying_queue.ts";
import type { RateLimiter } from "./rate_limiters.ts";
import type { WorkQueueOptions } from "./work_queue.ts";

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

  /** Adds an item after the delay that the limiter gives it. Calls the limiter even after a shutdown. */
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
