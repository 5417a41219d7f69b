import { SyncTracker } from "../util/sync_tracking.ts";

/**
 * Tracks whether an asynchronous consumer of an informer has synced: the informer has, and every item of the
 * initial list that was started is finished. Items have keys, may be handled at the same time and finish in
 * any order.
 *
 * Start every item of the initial list before the call of {@linkcode AsyncTracker.upstreamHasSynced}; a
 * handler does so by starting those whose `isInInitialList` is true. Once synced, it stays so.
 *
 * Mirrors client-go's `synctrack.AsyncTracker`.
 *
 * @example
 * ```ts
 * import { AsyncTracker, SingleFileTracker } from "@listwatch/cache/compat";
 * const tracker = new AsyncTracker<string>("endpoints writer");
 * tracker.start("shop/web-1");
 * tracker.upstreamHasSynced();
 * console.log(tracker.hasSynced()); // false
 * tracker.finished("shop/web-1");
 * console.log(tracker.hasSynced()); // true
 * const counter = new SingleFileTracker();
 * counter.upstreamHasSynced();
 * console.log(counter.hasSynced()); // true
 * ```
 */
export class AsyncTracker<K> extends SyncTracker {
  readonly #waiting = new Set<K>();

  /** @internal */
  protected override get outstanding(): number {
    return this.#waiting.size;
  }

  /** An item is being handled; again before it is finished changes nothing. */
  start(key: K): void {
    this.#waiting.add(key);
  }

  /** An item was handled; one that was not started is fine. */
  finished(key: K): void {
    this.#waiting.delete(key);
    this.check();
  }
}

/**
 * A value that is computed when it is read, and again only after a `notify`: for values that are derived from
 * a whole store and needed occasionally.
 *
 * Reads during an evaluation share it. One that fails is not remembered: the next read tries again. A read
 * after a `notify` never returns a value whose evaluation started before it.
 *
 * Mirrors client-go's `synctrack.Lazy`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { Lazy } from "@listwatch/cache/compat";
 * const nodes = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/nodes");
 * const informer = new SharedIndexInformer(nodes);
 * const names = new Lazy(() => informer.indexer.listKeys().sort());
 * informer.observe(() => names.notify());
 * console.log(await names.get()); // []
 * ```
 */
export class Lazy<V> {
  readonly #evaluate: () => V | Promise<V>;
  #value: Promise<V> | undefined;

  constructor(evaluate: () => V | Promise<V>) {
    this.#evaluate = evaluate;
  }

  /** The source has changed. */
  notify(): void {
    this.#value = undefined;
  }

  /**
   * The value.
   *
   * @throws The error of the evaluation.
   */
  get(): Promise<V> {
    if (this.#value !== undefined) return this.#value;
    const value = new Promise<V>((resolve) => resolve(this.#evaluate()));
    this.#value = value;
    value.catch(() => {
      if (this.#value === value) this.#value = undefined;
    });
    return value;
  }
}
