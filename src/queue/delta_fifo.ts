import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  KeyError,
  type KeyFunc,
  keyOf,
} from "../meta/object.ts";
import {
  type OnTransformFailure,
  transformed,
  transformedAll,
  type TransformFunc,
} from "../store/transform.ts";
import { type KeyListerGetter, newest, type ObjectDelta, type Queue, type Queued } from "./queue.ts";
import { ErrRequeue, NotDeltasError, ZeroLengthDeltasError } from "./errors.ts";
import { type Failure, NOTHING, PoppingQueue, type QueueOptions } from "./atomic_fifo.ts";

/** Options of {@linkcode DeltaFIFO}. */
export interface DeltaFIFOOptions<T> extends QueueOptions<T> {
  /** The consumer's store; without it `replace` infers deletes from the queue, and `resync` does nothing. */
  readonly knownObjects?: KeyListerGetter<T>;
  /** Whether `replace` queues `Replaced` deltas; `Sync` deltas by default, as in client-go. */
  readonly emitDeltaTypeReplaced?: boolean;
}

/** The deltas of one key, oldest first: what {@linkcode DeltaFIFO} hands out. */
export type ObjectDeltas<T> = readonly ObjectDelta<T>[];

/**
 * A queue that keeps the deltas of each key, oldest first, and pops the keys in the order in which they first
 * got one, each with all of its deltas. Nothing that happens to one object is lost or reordered; the order
 * across keys is lost. A call that reads a key throws a {@linkcode KeyError} where the key function threw;
 * one that queues an object a `TransformError` where the transform threw.
 *
 * Mirrors client-go's
 * [`DeltaFIFO`](https://github.com/kubernetes/client-go/blob/v0.24.17/tools/cache/delta_fifo.go) of the 1.24
 * generation, with its `Store` side, `addIfNotPresent` and `ErrRequeue`.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import { DeltaFIFO } from "@listwatch/cache/queue";
 * const queue = new DeltaFIFO<KubernetesObject>();
 * queue.add({ metadata: { name: "a", resourceVersion: "1" } });
 * queue.update({ metadata: { name: "a", resourceVersion: "2" } });
 * const deltas = await queue.pop(() => {});
 * console.log(deltas.map((delta) => delta.type)); // ["Added", "Updated"]
 * ```
 */
export class DeltaFIFO<T> extends PoppingQueue<ObjectDeltas<T>, string> implements Queue<T> {
  readonly #keyFunc: KeyFunc;
  readonly #knownObjects: KeyListerGetter<T> | undefined;
  readonly #replaceType: "Replaced" | "Sync";
  readonly #items = new Map<string, ObjectDelta<T>[]>();
  readonly #onTransformFailure: OnTransformFailure<T> | undefined;
  /** The function that runs on objects as they are queued. */
  readonly transform: TransformFunc<T> | undefined;

  constructor(options: DeltaFIFOOptions<T> = {}) {
    super(options);
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#knownObjects = options.knownObjects;
    this.#replaceType = options.emitDeltaTypeReplaced ? "Replaced" : "Sync";
    this.#onTransformFailure = options.onTransformFailure;
    this.transform = options.transform;
  }

  /** Queues an `Added` delta. */
  add(object: T): void {
    this.population.populate();
    this.#queueDelta("Added", object, "add");
  }

  /** Queues an `Updated` delta, whether or not the object is known. */
  update(object: T): void {
    this.population.populate();
    this.#queueDelta("Updated", object, "update");
  }

  /**
   * Queues a `Deleted` delta; ignored when the key is neither queued nor known. One of two deletes in a row
   * is kept: a delete that was seen rather than a tombstone, else the older.
   */
  delete(object: Queued<T>): void {
    const key = this.#keyIn(object, "delete");
    this.population.populate();
    if (!this.#items.has(key) && (this.#knownObjects === undefined || !this.#isKnown(key))) return;
    this.#queueDelta("Deleted", object, "delete");
  }

  /** Queues a `Deleted` delta of a tombstone; ignored when the key is neither queued nor known. */
  deleteKey(key: string): void {
    const last = newest(this.#items.get(key) ?? []);
    const isQueued = last !== undefined && last.type !== "Deleted";
    const lastKnown = isQueued ? last.object : this.#knownObjects?.getByKey(key);
    this.delete(new DeletedFinalStateUnknown(key, lastKnown));
  }

  /**
   * Queues these deltas unless their key is queued: how a popped item is put back.
   * @throws {NotDeltasError} The item is no array of deltas.
   * @throws {KeyError} The key function threw, or there are no deltas.
   */
  addIfNotPresent(deltas: ObjectDeltas<T>): void {
    if (!Array.isArray(deltas)) throw new NotDeltasError(deltas);
    this.#putIfNotPresent(this.#keyIn(deltas, "addIfNotPresent"), deltas);
  }

  /**
   * Queues a `Replaced` (or `Sync`) delta for each object, and a tombstone for every key that is queued or
   * known and is not among them. One that throws keeps what it queued before.
   */
  replace(objects: readonly T[], _resourceVersion?: string): void {
    const keys = new Set<string>();
    const isTransformed = this.transform !== undefined && this.#onTransformFailure !== undefined;
    const accepted = isTransformed
      ? transformedAll(this.transform!, objects, this.#onTransformFailure)
      : objects;
    for (const object of accepted) {
      keys.add(this.#keyIn(object, "replace"));
      this.#queueDelta(this.#replaceType, object, "replace", { transforms: !isTransformed });
    }
    for (const [key, deltas] of [...this.#items]) {
      if (keys.has(key)) continue;
      const last = newest(deltas)?.object;
      this.#queueTombstone(key, last instanceof DeletedFinalStateUnknown ? last.object : last);
    }
    for (const key of this.#knownObjects?.listKeys() ?? []) {
      if (this.#items.has(key)) continue; // as those of the list are, too
      this.#queueTombstone(key, this.#knownObjects!.getByKey(key));
    }
    this.population.populate(this.places.length);
  }

  /** Queues a `Sync` delta for every known object that has nothing queued. */
  resync(): void {
    if (this.#knownObjects === undefined) return;
    for (const key of this.#knownObjects.listKeys()) {
      const object = this.#knownObjects.getByKey(key);
      if (object === undefined) continue; // deleted meanwhile
      if (this.#items.has(this.#keyIn(object, "resync"))) continue;
      this.#queueDelta("Sync", object, "resync");
    }
  }

  /** The newest object of each queued key, which may be a tombstone: a new array, in no certain order. */
  list(): Queued<T>[] {
    return [...this.#items.values()].map((deltas) => newest(deltas)!.object);
  }

  /** The queued keys, in the order they will be popped: a new array. */
  listKeys(): string[] {
    return [...this.places];
  }

  /** The queued deltas of an object's key: a new array. */
  get(object: Queued<T>): ObjectDeltas<T> | undefined {
    return this.getByKey(this.#keyIn(object, "get"));
  }

  /** The queued deltas of a key: a new array. */
  getByKey(key: string): ObjectDeltas<T> | undefined {
    return this.#items.get(key)?.slice();
  }

  /**
   * The key of an object, a tombstone, or of the newest of some deltas.
   * @throws {KeyError} There are no deltas.
   * @throws The error of the key function.
   */
  keyOf(item: Queued<T> | ObjectDeltas<T>): string {
    let object: unknown = item;
    if (Array.isArray(item)) {
      if (item.length === 0) throw new KeyError(item, "read the key of", new ZeroLengthDeltasError());
      object = (newest(item) as ObjectDelta<T>).object;
    }
    return object instanceof DeletedFinalStateUnknown ? object.key : this.#keyFunc(object);
  }

  #keyIn(item: Queued<T> | ObjectDeltas<T>, operation: string): string {
    return keyOf((value) => this.keyOf(value as T), item, operation);
  }

  #isKnown(key: string): boolean {
    return this.#knownObjects!.getByKey(key) !== undefined;
  }

  #queueTombstone(key: string, lastKnown: T | undefined): void {
    this.#queueDelta("Deleted", new DeletedFinalStateUnknown(key, lastKnown), "replace");
  }

  #queueDelta(
    type: ObjectDelta<T>["type"],
    object: Queued<T>,
    operation: string,
    { transforms = type !== "Sync" }: { readonly transforms?: boolean } = {},
  ): void {
    const key = this.#keyIn(object, operation);
    if (this.transform !== undefined && transforms && !(object instanceof DeletedFinalStateUnknown)) {
      object = transformed(this.transform, object);
    }
    const deltas = this.#items.get(key);
    const delta = { type, object } as ObjectDelta<T>;
    if (deltas === undefined) {
      this.places.push(key);
      this.#items.set(key, [delta]);
    } else {
      pushDeduplicated(deltas, delta);
    }
    this.consumers.wakeAll();
  }

  #putIfNotPresent(key: string, deltas: ObjectDeltas<T>): void {
    this.population.populate();
    if (this.#items.has(key)) return;
    this.places.push(key);
    this.#items.set(key, deltas.slice());
    this.consumers.wakeAll();
  }

  /** @internal */
  protected override take(): ObjectDeltas<T> | typeof NOTHING {
    const key = this.places.shift();
    if (key === undefined) return NOTHING;
    this.population.popped(1); // before it is processed, unlike in the other queues
    const deltas = this.#items.get(key)!;
    this.#items.delete(key);
    return deltas;
  }

  /** @internal */
  protected override labelOf(item: ObjectDeltas<T>): string {
    return this.#keyIn(item, "pop");
  }

  /** @internal */
  protected override finished(_item: ObjectDeltas<T>): void {}

  /** @internal */
  protected override failed(item: ObjectDeltas<T>, error: unknown): Failure | undefined {
    if (!(error instanceof ErrRequeue)) return { error };
    this.#putIfNotPresent(this.#keyIn(item, "requeue"), item);
    return error.cause === undefined ? undefined : { error: error.cause };
  }
}

/** Two deletes in a row say no more than one: keeps the older, unless it is a tombstone. */
function pushDeduplicated<T>(deltas: ObjectDelta<T>[], delta: ObjectDelta<T>): void {
  const last = deltas[deltas.length - 1];
  if (delta.type !== "Deleted" || last.type !== "Deleted") deltas.push(delta);
  else if (last.object instanceof DeletedFinalStateUnknown) deltas[deltas.length - 1] = delta;
}
