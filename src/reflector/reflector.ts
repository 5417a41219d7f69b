/** The reflector: keeps a store equal to what a server holds. */

import type { ReflectorStore } from "../queue/queue.ts";
import { ListWatchLoop } from "./list_watch_loop.ts";
import { type ListerWatcher, refuseNamespaces } from "./lister_watcher.ts";
import type { FailedTry, ReflectorStatus } from "./status.ts";
import type { ReflectorOptions } from "./reflector_options.ts";

/**
 * Lists a resource into a store, then watches it until its signal is aborted. After a failure
 * it waits, and continues from the last resourceVersion. The store is written to
 * synchronously, in the order of the server's events.
 *
 * Mirrors client-go's
 * [`Reflector`](https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go), but does not
 * hang or run hot where streamed lists do not come to their end.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, newCluster } from "@listwatch/cache";
 * import { Reflector } from "@listwatch/cache/reflector";
 * import { newStore } from "@listwatch/cache/store";
 * const source = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const store = newStore<KubernetesObject>(metaNamespaceKey);
 * const stop = new AbortController();
 * const done = new Reflector(source, store).run(stop.signal);
 * stop.abort();
 * await done;
 * ```
 *
 * @category Reflector
 */
export class Reflector<T> {
  readonly #loop: ListWatchLoop<T>;

  /**
   * Where the store is a `Store`, a quarantined object of a list leaves
   * the state before it; in a queue it is a delete.
   *
   * @throws {RangeError} A number among the options is negative,
   * `NaN`, or infinite where that has no meaning.
   * @throws {TypeError} The source has a set of namespaces.
   */
  constructor(source: ListerWatcher<T>, store: ReflectorStore<T>, options: ReflectorOptions = {}) {
    refuseNamespaces(source);
    this.#loop = new ListWatchLoop(source, store, options);
  }

  /** Its name in log lines. */
  get name(): string {
    return this.#loop.name;
  }

  /**
   * Runs until the signal is aborted; resolves when everything it started has stopped. A failure of the
   * server never rejects the promise.
   *
   * @throws {TypeError} It is running already.
   */
  run(signal: AbortSignal): Promise<void> {
    return this.#loop.run(signal);
  }

  /**
   * Runs one cycle: streams or lists, then watches until something ends the watch. For callers with a loop of
   * their own.
   *
   * @returns When the cycle is over; at once if the signal is aborted.
   * @throws The error that ended the cycle, if it was a failed list or a refused watch.
   */
  listAndWatch(signal: AbortSignal): Promise<void> {
    return this.#loop.listAndWatch(signal);
  }

  /** The last resourceVersion seen, in a list, an event or a bookmark; `""` before the first list. */
  lastSyncResourceVersion(): string {
    return this.#loop.lastSyncResourceVersion();
  }

  /** Whether the server last refused that resourceVersion, as too old or not reached yet. */
  isLastSyncResourceVersionUnavailable(): boolean {
    return this.#loop.isLastSyncResourceVersionUnavailable();
  }

  /** What it does now. */
  status(): ReflectorStatus {
    return this.#loop.status();
  }

  /** The last failed request of the present outage; `undefined` unless it runs and there is one. */
  failure(): FailedTry | undefined {
    return this.#loop.failure();
  }

  /**
   * Calls `listener` whenever the phase changes or a list progresses, within that turn; not for single
   * events.
   *
   * @returns A function that removes the listener.
   */
  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    return this.#loop.onStatus(listener);
  }
}
