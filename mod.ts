/**
 * Kubernetes informers for every JavaScript runtime: client-go's `tools/cache` over web-standard `fetch`.
 *
 * A `SharedIndexInformer` keeps an indexed copy of a resource and tells handlers what changes in it. Under it lie the
 * parts, each of which can be used by itself: a `Reflector` that lists and watches, queues of deltas, indexed stores.
 *
 * @example Watch pods, index them by node, print the counts
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string } };
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<Pod>("v1/pods");
 * const informer = new SharedIndexInformer(pods, { indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] } });
 * await using _running = informer.start();
 * await informer.synced(AbortSignal.timeout(30_000)).catch(() => {});
 * for (const [node, count] of informer.indexer.indexValueCounts("byNode")) console.log(node, count);
 * ```
 *
 * @module
 */

export * from "./src/meta/mod.ts";
export * from "./src/store/mod.ts";
export * from "./src/queue/mod.ts";
export * from "./src/reflector/mod.ts";
export * from "./src/informer/mod.ts";
export * from "./src/watch/mod.ts";
export * from "./src/schema/mod.ts";
export * from "./src/client/mod.ts";
export {
  Backoff,
  BackoffManager,
  type BackoffManagerOptions,
  type BackoffParameters,
  newReflectorBackoff,
  type Random,
  type ReflectorBackoffOptions,
} from "./src/util/backoff.ts";
export { KeyedBackoff, type KeyedBackoffOptions } from "./src/util/backoff_keyed.ts";
export { type Clock, realClock, type TimerHandle } from "./src/util/clock.ts";
export { CacheError, type CacheErrorOptions } from "./src/util/errors.ts";
export { consoleLogger, type LogFields, type Logger, silentLogger } from "./src/util/logger.ts";
export type { MetricLabels, Metrics } from "./src/util/metrics.ts";
export { RetryWithDeadline, type RetryWithDeadlineOptions } from "./src/util/retry_with_deadline.ts";
