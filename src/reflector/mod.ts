/**
 * The reflector.
 * @module
 */

export { type ListerWatcher, newListWatch } from "./lister_watcher.ts";
export { eachListItem, type EachListItemOptions } from "./each_list_item.ts";
export { newNamespaceKeyedIndexerAndReflector } from "./namespace_keyed_reflector.ts";
export type { FailedTry, ReflectorOutage } from "./outage.ts";
export { listAllPages, type PagedList, type PagerOptions } from "./pager.ts";
export { Reflector } from "./reflector.ts";
export { type ReflectorOptions, VeryShortWatchError, type WatchErrorHandler } from "./reflector_options.ts";
export type { RetryBackoff } from "./retry_pacing.ts";
export type { ReflectorError, ReflectorPhase, ReflectorStatus, StreamPause } from "./status.ts";
