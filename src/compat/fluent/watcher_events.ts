/** What a watcher says of itself, as kubernetes-fluent-client's does with an event emitter of Node. */

import { callGuarded, errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";

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

/** Receives what belongs to the event. What it throws is logged. */
// deno-lint-ignore no-explicit-any -- as listeners of Node's event emitters
export type WatcherListener = (...values: any[]) => unknown;

/**
 * The methods of Node's `EventEmitter` that are used on a watcher's
 * events; for names see {@linkcode WatcherEvent}.
 */
export interface WatcherEvents {
  /** Adds a listener. */
  on(name: string, listener: WatcherListener): this;
  /** Adds a listener; the same as `on`. */
  addListener(name: string, listener: WatcherListener): this;
  /** Adds a listener that is removed when it is called. */
  once(name: string, listener: WatcherListener): this;
  /** Removes a listener, once. */
  off(name: string, listener: WatcherListener): this;
  /** Removes a listener; the same as `off`. */
  removeListener(name: string, listener: WatcherListener): this;
  /** Removes all listeners, or those of one event. */
  removeAllListeners(name?: string): this;
}

/** The events of one watcher. */
export class WatcherEventEmitter implements WatcherEvents {
  readonly #listeners = new Map<string, { readonly listener: WatcherListener; readonly once: boolean }[]>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  on(name: string, listener: WatcherListener): this {
    return this.#add(name, listener, false);
  }

  addListener(name: string, listener: WatcherListener): this {
    return this.#add(name, listener, false);
  }

  once(name: string, listener: WatcherListener): this {
    return this.#add(name, listener, true);
  }

  off(name: string, listener: WatcherListener): this {
    const present = this.#listeners.get(name) ?? [];
    const at = present.findLastIndex((one) => one.listener === listener);
    if (at !== -1) present.splice(at, 1);
    return this;
  }

  removeListener(name: string, listener: WatcherListener): this {
    return this.off(name, listener);
  }

  removeAllListeners(name?: string): this {
    if (name === undefined) this.#listeners.clear();
    else this.#listeners.delete(name);
    return this;
  }

  emit(name: WatcherEvent, ...values: unknown[]): void {
    for (const { listener, once } of [...this.#listeners.get(name) ?? []]) {
      if (once) this.off(name, listener);
      callGuarded(
        () => listener(...values),
        (error) => this.#logger.error(`a listener for "${name}" threw: ${errorMessage(error)}`, { error }),
      );
    }
  }

  #add(name: string, listener: WatcherListener, once: boolean): this {
    const present = this.#listeners.get(name);
    if (present === undefined) this.#listeners.set(name, [{ listener, once }]);
    else present.push({ listener, once });
    return this;
  }
}
