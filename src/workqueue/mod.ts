/**
 * Work queues for controllers: each item once, by one worker at a time; later, or as often as a rate limiter
 * allows.
 * Mirrors client-go's [`util/workqueue`](https://github.com/kubernetes/client-go/tree/master/util/workqueue).
 *
 * @example
 * ```ts
 * import { defaultControllerRateLimiter, RateLimitingQueue } from "@listwatch/cache/workqueue";
 *
 * const stop = new AbortController();
 * const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter(), { signal: stop.signal });
 *
 * async function worker(reconcile: (key: string) => Promise<void>): Promise<void> {
 *   for (let next = await queue.get(); !next.shutdown; next = await queue.get()) {
 *     try {
 *       await reconcile(next.item);
 *       queue.forget(next.item);
 *     } catch {
 *       queue.addRateLimited(next.item);
 *     } finally {
 *       queue.done(next.item);
 *     }
 *   }
 * }
 * ```
 *
 * @module
 */

export { DelayingQueue } from "./delaying_queue.ts";
export type { MetricsProvider, QueueMetrics } from "./metrics.ts";
export { type ParallelizeOptions, parallelizeUntil } from "./parallelize.ts";
export {
  type BucketOptions,
  bucketRateLimiter,
  type ControllerRateLimiterOptions,
  defaultControllerRateLimiter,
  defaultItemBasedRateLimiter,
  type ExponentialFailureOptions,
  type FastSlowOptions,
  itemExponentialFailureRateLimiter,
  itemFastSlowRateLimiter,
  type KeyOfOption,
  maxOfRateLimiter,
  type RateLimiter,
  withMaxWaitRateLimiter,
} from "./rate_limiters.ts";
export { RateLimitingQueue } from "./delaying_queue.ts";
export { type GetResult, type QueueOrder, WorkQueue, type WorkQueueOptions } from "./work_queue.ts";
