import { type OnTransformFailure, transformedAll } from "../store/transform.ts";
import { requireNumbers } from "../util/require_number.ts";
import { AtomicFIFO, isBatchable, type QueueOptions } from "./atomic_fifo.ts";
import type { Delta, Deltas, KeyListerGetter, PopOptions, PopProcessFunc, SyncProcessFunc } from "./queue.ts";

/** Options of {@linkcode RealFIFO}: atomic, or with the objects that the consumer knows. */
export type RealFIFOOptions<T> =
  & QueueOptions<T>
  & {
    /** The largest batch of {@linkcode RealFIFO.popBatch}; 1000 by default. */
    readonly batchSize?: number;
  }
  & (
    | {
      /** A relist is one `ReplacedAll` delta, a resync one `SyncAll`. */
      readonly atomicEvents: true;
      /** Whether bookmarks are queued; `false` by default. */
      readonly emitDeltaTypeBookmark?: boolean;
      readonly knownObjects?: undefined;
      /**
       * Whether `replace` transforms, all in one turn; `true` by default. Otherwise the objects of a
       * `ReplacedAll` are as they came, for a consumer who transforms them one by one.
       */
      readonly transformsLists?: boolean;
    }
    | {
      readonly atomicEvents?: false;
      /** The consumer's store, as a rule. */
      readonly knownObjects: KeyListerGetter<T>;
      readonly emitDeltaTypeBookmark?: undefined;
      readonly transformsLists?: undefined;
    }
  );

const DEFAULT_BATCH_SIZE = 1_000;

/**
 * A queue of deltas in the order they happened, across all keys; nothing
 * is merged. `pop` returns one delta at a time.
 *
 * In atomic mode a relist is one `ReplacedAll` delta, which the consumer compares with its store and applies
 * as one step. Otherwise the queue itself finds the objects that the list lacks, among queued and known ones.
 *
 * A call that reads a key throws a `KeyError` where the key function threw; one that queues an object a
 * `TransformError` where the transform threw.
 *
 * Mirrors client-go's
 * [`RealFIFO`](https://github.com/kubernetes/client-go/blob/master/tools/cache/the_real_fifo.go),
 * today's default.
 * @throws {TypeError} The options contradict each other.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import { RealFIFO } from "@listwatch/cache/queue";
 * const queue = new RealFIFO<KubernetesObject>({ atomicEvents: true });
 * queue.replace([{ metadata: { name: "a" } }, { metadata: { name: "b" } }], "10");
 * queue.update({ metadata: { name: "a" } });
 * queue.tryPop(([delta]) => console.log(delta.type)); // ReplacedAll
 * queue.tryPop(([delta]) => console.log(delta.type)); // Updated
 * ```
 */
export class RealFIFO<T> extends AtomicFIFO<T> {
  readonly #knownObjects: KeyListerGetter<T> | undefined;
  readonly #batchSize: number;
  readonly #transformsLists: boolean;
  readonly #onTransformFailure: OnTransformFailure<T> | undefined;

  constructor(options: RealFIFOOptions<T>) {
    super(options);
    if (options.atomicEvents && options.knownObjects !== undefined) {
      throw new TypeError(
        "Cannot make an atomic RealFIFO with knownObjects: the consumer compares a relist itself",
      );
    }
    if (!options.atomicEvents && options.knownObjects === undefined) {
      throw new TypeError("Cannot make a RealFIFO without knownObjects: pass them, or atomicEvents: true");
    }
    if (!options.atomicEvents && options.emitDeltaTypeBookmark) {
      throw new TypeError("Cannot queue bookmarks in a RealFIFO that is not atomic: pass atomicEvents: true");
    }
    const { batchSize = DEFAULT_BATCH_SIZE } = options;
    requireNumbers("make a RealFIFO", { batchSize }, { least: 1, isWhole: true });
    this.#knownObjects = options.knownObjects;
    this.#batchSize = batchSize;
    this.#transformsLists = options.transformsLists ?? true;
    this.#onTransformFailure = options.onTransformFailure;
  }

  /** @internal */
  protected override lastKnown(key: string): T | undefined {
    if (this.#knownObjects === undefined) return undefined;
    let lastKnown = this.#knownObjects.getByKey(key);
    for (const delta of this.places) {
      if (delta.type !== "Deleted" && this.keyOfDelta(delta) === key) lastKnown = delta.object as T;
    }
    return lastKnown;
  }

  /**
   * Queues a list. In atomic mode, this is one `ReplacedAll` delta; no keys are computed, so an object
   * without one is left to the consumer to report, as in client-go. Otherwise, it is a tombstone for every
   * queued key (unless its last delta is a delete) and every known key that is not in the list, then a
   * `Replaced` delta for each object.
   *
   * A call that throws has queued nothing, unless a transform threw in a queue that is not atomic.
   */
  override replace(objects: readonly T[], resourceVersion: string): void {
    super.replace(objects, resourceVersion);
  }

  /** As {@linkcode RealFIFO.replace}; objects of these keys stay as they are. */
  override replaceKeeping(objects: readonly T[], resourceVersion: string, keptKeys: readonly string[]): void {
    if (this.#knownObjects === undefined) return super.replaceKeeping(objects, resourceVersion, keptKeys);
    this.#replaceEach(objects, this.#knownObjects, keptKeys);
    this.population.populate(this.places.length);
  }

  /**
   * Queues a resync: one `SyncAll` delta in atomic mode, otherwise a `Sync` delta for every known object that
   * has nothing queued.
   */
  override resync(): void {
    if (this.#knownObjects === undefined) return super.resync();
    const queued = new Set<string>();
    for (const delta of this.places) queued.add(this.keyOfDelta(delta));
    for (const key of this.#knownObjects.listKeys()) {
      if (queued.has(key)) continue;
      const object = this.#knownObjects.getByKey(key);
      if (object !== undefined) this.queueDelta("Sync", object, "resync");
    }
  }

  /**
   * Waits, and pops as many deltas as may be processed together: of different keys, all within or all after
   * the first list, at most `batchSize`; a `ReplacedAll`, `SyncAll` or `Bookmark` comes alone.
   * @param processBatch Called with two or more deltas.
   * @param processSingle Called with a single one; must do the same work.
   * @returns The popped deltas.
   * @throws {FIFOClosedError} The queue is closed and empty.
   * @throws The error that the callback threw, or the signal's reason. The deltas are not put back.
   */
  async popBatch(
    processBatch: PopProcessFunc<Deltas<T>>,
    processSingle: PopProcessFunc<Deltas<T>>,
    options: PopOptions = {},
  ): Promise<Deltas<T>> {
    while (this.places.length === 0) await this.waitOrThrow(options.signal);
    const isInInitialList = !this.hasSynced();
    const batch = this.#takeBatch();
    return await this.process(batch, batch.length === 1 ? processSingle : processBatch, isInInitialList);
  }

  /**
   * As {@linkcode RealFIFO.popBatch}, all within this turn.
   * @returns `false` when there was nothing to pop.
   * @throws The error that the callback threw. The deltas are not put back.
   */
  tryPopBatch(
    processBatch: SyncProcessFunc<Deltas<T>>,
    processSingle: SyncProcessFunc<Deltas<T>>,
  ): boolean {
    if (this.places.length === 0) return false;
    const isInInitialList = !this.hasSynced();
    const batch = this.#takeBatch();
    this.processNow(batch, batch.length === 1 ? processSingle : processBatch, isInInitialList);
    return true;
  }

  #takeBatch(): Delta<T>[] {
    const initial = this.population.remaining;
    const limit = initial > 0 ? Math.min(this.#batchSize, initial) : this.#batchSize;
    const batch: Delta<T>[] = [];
    const keys = new Set<string>();
    while (batch.length < limit && this.places.length > 0) {
      const delta = this.places.at(0)!;
      if (!isBatchable(delta)) {
        if (batch.length === 0) batch.push(this.shift()!);
        break;
      }
      let key: string;
      try {
        key = this.keyOfDelta(delta);
      } catch {
        batch.push(this.shift()!); // its processing reports it
        break;
      }
      if (keys.has(key)) break;
      keys.add(key);
      batch.push(this.shift()!);
    }
    this.population.popped(batch.length - 1); // the last one counts when it was processed
    return batch;
  }

  /** @internal */
  protected override taken(objects: readonly T[]): T[] {
    return this.transform === undefined || !this.#transformsLists
      ? super.taken(objects)
      : transformedAll(this.transform, objects, this.#onTransformFailure);
  }

  #replaceEach(
    objects: readonly T[],
    knownObjects: KeyListerGetter<T>,
    keptKeys: readonly string[],
  ): void {
    const keys = new Set(keptKeys);
    for (const object of objects) keys.add(this.keyIn(object, "replace"));
    const lastQueued = new Map<string, Delta<T>>();
    for (const delta of this.places) lastQueued.set(this.keyOfDelta(delta), delta);
    for (const [key, delta] of lastQueued) {
      if (keys.has(key) || delta.type === "Deleted") continue;
      this.queueTombstone(key, delta.object as T);
    }
    for (const key of knownObjects.listKeys()) {
      if (keys.has(key) || lastQueued.has(key)) continue;
      this.queueTombstone(key, knownObjects.getByKey(key));
    }
    if (this.transform === undefined || this.#onTransformFailure === undefined) {
      for (const object of objects) this.queueDelta("Replaced", object, "replace");
      return;
    }
    for (const object of transformedAll(this.transform, objects, this.#onTransformFailure)) {
      this.push({ type: "Replaced", object });
    }
  }
}
