/** What a watcher says of itself: kubernetes-fluent-client's events. */

import { GuardedEmitter } from "../../node/guarded_emitter.ts";

/**
 * The names of the events: the values of upstream's enum `WatchEvent`, which can be used as well. Those that
 * a watcher here has no reason for are never emitted; they are marked.
 */
export const WatcherEvent = {
  /** A watch is open; with its path. */
  CONNECT: "connect",
  /** No answer came; with the error. It is tried again. */
  NETWORK_ERROR: "network_error",
  /** The callback threw or rejected; with the error. It is called again. */
  DATA_ERROR: "data_error",
  /** A try has failed, and another follows; with the number of failed tries. */
  RECONNECT: "reconnect",
  /** More tries have failed than `resyncFailureMax` allows; with an error. The watcher is closed. */
  GIVE_UP: "give_up",
  /** The watcher was closed. */
  ABORT: "abort",
  /** A change is about to be handed to the callback; with the object and the phase. */
  DATA: "data",
  /** Never emitted: a version that is too old leads to a list silently. */
  OLD_RESOURCE_VERSION: "old_resource_version",
  /** Never emitted: there is one try at a time. */
  RECONNECT_PENDING: "reconnect_pending",
  /** Never emitted: a list is delivered object by object. */
  LIST: "list",
  /** Never emitted: `watch_error` is for lists, too. */
  LIST_ERROR: "list_error",
  /** Never emitted: no change is missed that a list must repair. */
  CACHE_MISS: "cache_miss",
  /** The number of failed tries has changed; with the number, 0 when a watch is open. */
  INC_RESYNC_FAILURE_COUNT: "inc_resync_failure_count",
  /** Never emitted: there are no lists on a period. */
  INIT_CACHE_MISS: "init_cache_miss",
  /** The server refused a list or a watch; with the error. It is tried again. */
  WATCH_ERROR: "watch_error",
} as const;

/** The name of an event. */
export type WatcherEvent = (typeof WatcherEvent)[keyof typeof WatcherEvent];

/**
 * Node's event emitter, in which a listener that throws ends nothing: what it throws is logged.
 *
 * @example
 * ```ts
 * import { WatcherEvent, type WatcherEvents } from "@listwatch/cache/compat/fluent";
 * function warn(events: WatcherEvents) {
 *   events.on(WatcherEvent.GIVE_UP, (error) => console.warn(error.message));
 * }
 * ```
 */
export class WatcherEvents extends GuardedEmitter {}
