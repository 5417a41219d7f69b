/**
 * The reflector.
 * @module
 */

export { type ListerWatcher, newListWatch } from "./lister_watcher.ts";
export { listAllPages, type PagedList, type PagerOptions } from "./pager.ts";
export {
  Reflector,
  type ReflectorOptions,
  VeryShortWatchError,
  type WatchErrorHandler,
} from "./reflector.ts";
export type { ReflectorError, ReflectorPhase, ReflectorStatus } from "./status.ts";
