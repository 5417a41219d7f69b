/**
 * The reflector, which lists and watches a source and writes a store, and what an implementer of
 * `ListerWatcher` needs: the types of lists and watches, the pager, backoffs.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, newCluster } from "@listwatch/cache";
 * import { Reflector } from "@listwatch/cache/reflector";
 * import { newStore } from "@listwatch/cache/store";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const reflector = new Reflector(pods, newStore<KubernetesObject>(metaNamespaceKey));
 * reflector.run(AbortSignal.timeout(1_000));
 * ```
 *
 * @module
 */

export { Reflector } from "./reflector.ts";
export { type ReflectorOptions, VeryShortWatchError, type WatchErrorHandler } from "./reflector_options.ts";
export type { ReflectorError, ReflectorPhase, StreamPause } from "./status.ts";
export type { FailedTry, ReflectorOutage } from "./outage.ts";
export type { RetryBackoff } from "./retry_pacing.ts";

export { type ListerWatcher, newListWatch } from "./lister_watcher.ts";
export { shardOf, type ShardOptions } from "./shard_of.ts";
export { eachListItem, type EachListItemOptions } from "./each_list_item.ts";
export { listAllPages, type PagedList, type PagerOptions } from "./pager.ts";
export type { ListOptions, ListPage, Quarantined, WatchItem, WatchStream } from "../meta/list_watch.ts";
export type { ListWatchContext } from "../text/object_text_reader.ts";
export type { ListMeta } from "../meta/object.ts";
export type { ObjectHead } from "../text/object_reader.ts";
export type { BookmarkObject, WatchEvent } from "../meta/list_watch.ts";

export {
  Backoff,
  BackoffManager,
  type BackoffManagerOptions,
  type BackoffParameters,
  newReflectorBackoff,
  type Random,
  type ReflectorBackoffOptions,
} from "../util/backoff.ts";
export { KeyedBackoff, type KeyedBackoffOptions } from "../util/backoff.ts";
export { realClock, type TimerHandle } from "../util/clock.ts";
export type { CacheErrorOptions } from "../util/errors.ts";
export type { LogFields } from "../util/logger.ts";
export type { MetricLabels } from "../util/metrics.ts";
export { RetryWithDeadline, type RetryWithDeadlineOptions } from "../util/backoff.ts";
