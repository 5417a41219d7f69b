import { abortable } from "../util/abort.ts";
import { Latch, type SyncedMethod } from "../util/deferred.ts";

/** A tracker has synced once the informer has, and nothing is outstanding. */
abstract class SyncTracker {
  /** The name in log lines. */
  readonly name: string;
  readonly #latch = new Latch();
  #upstreamSynced = false;

  constructor(name = "") {
    this.name = name;
  }

  /**
   * How many items were started and not finished.
   * @internal
   */
  protected abstract get outstanding(): number;

  /**
   * An item was finished.
   * @internal
   */
  protected check(): void {
    if (this.#upstreamSynced && this.outstanding === 0) this.#latch.open();
  }

  /** The informer has synced, and every item of its initial list was started. */
  upstreamHasSynced(): void {
    this.#upstreamSynced = true;
    this.check();
  }

  /** Whether the informer has synced and nothing was outstanding since, at least once. */
  hasSynced(): boolean {
    return this.#latch.isOpen;
  }

  /** Resolves when {@linkcode SyncTracker.hasSynced} becomes true; rejects with the signal's reason. */
  readonly synced: SyncedMethod = (signal) => abortable(this.#latch.opened, signal);
}

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
 * As `AsyncTracker`, for a consumer that handles one item after the other: items need no keys, they are
 * counted. Mirrors client-go's `synctrack.SingleFileTracker`.
 */
export class SingleFileTracker extends SyncTracker {
  #count = 0;

  /** @internal */
  protected override get outstanding(): number {
    return this.#count;
  }

  /** An item is on its way, or so many. */
  start(count = 1): void {
    this.#count += count;
  }

  /**
   * An item was handled.
   * @throws {RangeError} More items were finished than started: what `hasSynced` said cannot be relied on.
   */
  finished(): void {
    if (this.#count === 0) {
      const which = this.name === "" ? "" : ` in ${JSON.stringify(this.name)}`;
      throw new RangeError(`Cannot finish an item${which}: every item that started is finished already`);
    }
    this.#count--;
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
