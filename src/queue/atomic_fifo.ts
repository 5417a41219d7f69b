import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
  keyOf,
} from "../meta/object.ts";
import { transformed, type TransformFunc } from "../store/transform.ts";
import type { BookmarkInfo, Delta, Deltas, Queue, Queued } from "./queue.ts";
import { NOTHING, PoppingQueue, type QueueOptions } from "./popping.ts";

/** Options of {@linkcode AtomicFIFO}. */
export interface AtomicFIFOOptions<T> extends QueueOptions<T> {
  /** Whether bookmarks are queued; `false` by default. */
  readonly emitDeltaTypeBookmark?: boolean;
}

/**
 * The queue of informers: deltas in the order they happened, across all keys. A list is one `ReplacedAll`
 * delta, with its objects as they came, a resync one `SyncAll`. What `RealFIFO` does besides is there, so
 * that programs which do not make one do not load it.
 */
export class AtomicFIFO<T> extends PoppingQueue<Deltas<T>, Delta<T>> implements Queue<T> {
  readonly #keyFunc: KeyFunc;
  readonly #emitBookmarks: boolean;
  /**
   * How many lists and resyncs are queued: read at each event, which a call would slow down.
   * @internal
   */
  listsQueued = 0;
  /** What runs on objects as they are queued. */
  readonly transform: TransformFunc<T> | undefined;

  constructor(options: AtomicFIFOOptions<T>) {
    super(options);
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#emitBookmarks = options.emitDeltaTypeBookmark ?? false;
    this.transform = options.transform;
  }

  /** How many deltas are queued. */
  get length(): number {
    return this.places.length;
  }

  /** Queues an `Added` delta. */
  add(object: T): void {
    this.#populate();
    this.queueDelta("Added", object, "add");
  }

  /** Queues an `Updated` delta, whether or not the object is known. */
  update(object: T): void {
    this.#populate();
    this.queueDelta("Updated", object, "update");
  }

  /** Queues a `Deleted` delta, whether or not the object is known. */
  delete(object: Queued<T>): void {
    this.#populate();
    this.queueDelta("Deleted", object, "delete");
  }

  /** Queues a `Deleted` delta of a tombstone, whether or not the object is known. */
  deleteKey(key: string, resourceVersion?: string): void {
    this.#populate();
    this.queueTombstone(key, this.lastKnown(key), resourceVersion);
  }

  /** Queues one `ReplacedAll` delta. No keys are computed: the consumer reports what has none. */
  replace(objects: readonly T[], resourceVersion: string): void {
    this.replaceKeeping(objects, resourceVersion, []);
  }

  /** As {@linkcode AtomicFIFO.replace}; objects of these keys stay as they are. */
  replaceKeeping(objects: readonly T[], resourceVersion: string, keptKeys: readonly string[]): void {
    this.#queueList(objects, resourceVersion, keptKeys);
    this.population.populate(this.places.length);
  }

  /**
   * Queues one `ReplacedAll` delta of one namespace; the objects of all others stay.
   * @internal
   */
  replaceNamespace(
    objects: readonly T[],
    resourceVersion: string,
    { namespace, keptKeys = [] }: { readonly namespace: string; readonly keptKeys?: readonly string[] },
  ): void {
    this.#queueList(objects, resourceVersion, keptKeys, namespace);
  }

  /**
   * The first list has several parts: `hasSynced` stays false until the last one was popped of what is queued
   * when the returned function is called.
   * @internal
   */
  holdPopulation(): () => void {
    this.population.isHeld = true;
    return () => {
      this.population.isHeld = false;
      this.population.populate(this.places.length);
    };
  }

  /** Queues one `SyncAll` delta. */
  resync(): void {
    this.push({ type: "SyncAll", object: {} });
  }

  /** The delta that is popped next; it stays in the queue. */
  peek(): Delta<T> | undefined {
    return this.places.at(0);
  }

  /** Queues a `Bookmark` delta, if the queue was made with `emitDeltaTypeBookmark`. */
  bookmark(resourceVersion: string, how?: Pick<BookmarkInfo, "byState">): void {
    if (this.#emitBookmarks) this.push({ type: "Bookmark", object: { resourceVersion, ...how } });
  }

  /**
   * The last state of an object that is deleted by its key: here the consumer knows.
   * @internal
   */
  protected lastKnown(_key: string): T | undefined {
    return undefined;
  }

  /**
   * The objects of a list that is queued.
   * @internal
   */
  protected taken(objects: readonly T[]): T[] {
    return objects.slice();
  }

  #queueList(
    objects: readonly T[],
    resourceVersion: string,
    keptKeys: readonly string[],
    namespace?: string,
  ): void {
    const list = {
      resourceVersion,
      objects: this.taken(objects),
      ...(keptKeys.length > 0 && { keptKeys }),
      ...(namespace !== undefined && { namespace }),
    };
    this.push({ type: "ReplacedAll", object: list });
  }

  /** @internal */
  protected queueTombstone(key: string, lastKnown: T | undefined, resourceVersion?: string): void {
    const object = new DeletedFinalStateUnknown(key, lastKnown);
    this.keyIn(object, "replace");
    this.push({ type: "Deleted", object, ...(resourceVersion !== undefined && { resourceVersion }) });
  }

  /** @internal */
  protected queueDelta(
    type: "Added" | "Updated" | "Replaced" | "Sync" | "Deleted",
    object: Queued<T>,
    operation: string,
  ): void {
    this.keyIn(object, operation);
    if (this.transform !== undefined && type !== "Sync" && !(object instanceof DeletedFinalStateUnknown)) {
      object = transformed(this.transform, object);
    }
    this.push({ type, object } as Delta<T>);
  }

  #populate(): void {
    if (!this.population.isPopulated) this.population.populate();
  }

  /** @internal */
  protected shift(): Delta<T> | undefined {
    const delta = this.places.shift();
    if (delta !== undefined && isList(delta)) this.listsQueued--;
    return delta;
  }

  /** @internal */
  protected push(delta: Delta<T>): void {
    if (isList(delta)) this.listsQueued++;
    this.places.push(delta);
    this.consumers.wakeAll();
  }

  /** @internal */
  protected keyIn(object: Queued<T>, operation: string): string {
    return object instanceof DeletedFinalStateUnknown ? object.key : keyOf(this.#keyFunc, object, operation);
  }

  /** @internal */
  protected keyOfDelta(delta: Delta<T>): string {
    return this.keyIn(delta.object as Queued<T>, "read the key of");
  }

  /** @internal */
  protected override take(): Deltas<T> | typeof NOTHING {
    const delta = this.shift();
    return delta === undefined ? NOTHING : [delta];
  }

  /** @internal */
  protected override labelOf([delta]: Deltas<T>): string {
    return isBatchable(delta) ? this.keyOfDelta(delta) : delta.type;
  }

  /** @internal */
  protected override countOf(deltas: Deltas<T>): number {
    return deltas.length;
  }
}

function isList(delta: Delta<unknown>): boolean {
  return delta.type === "ReplacedAll" || delta.type === "SyncAll";
}

/** Whether a delta is of one object. */
export function isBatchable(delta: Delta<unknown>): boolean {
  return !isList(delta) && delta.type !== "Bookmark";
}
