/**
 * The reflector, which lists and watches a source and writes a store, and what an implementer of
 * `ListerWatcher` needs: the types of lists and watches, the pager, backoffs.
 *
 * @module
 */

export { Reflector } from "./reflector.ts";
export type { ReflectorOptions, WatchErrorHandler } from "./reflector_options.ts";
export type { FailedTry, ReflectorError, ReflectorOutage, StreamPause } from "./failures.ts";
export type { ReflectorPhase } from "./state.ts";
export { type RetryBackoff, VeryShortWatchError } from "./failures.ts";

export { type ListerWatcher, newListWatch, shardOf, type ShardOptions } from "./lister_watcher.ts";
export {
  eachListItem,
  type EachListItemOptions,
  listAllPages,
  type PagedList,
  type PagerOptions,
} from "./lists.ts";
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
export { realClock, type TimerHandle } from "../util/clock.ts";
export type { LogFields } from "../util/logger.ts";
export type { MetricLabels } from "../util/metrics.ts";
