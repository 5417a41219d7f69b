/** The consuming side that all queues share, and the queue of informers. */

import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
  keyOf,
} from "../meta/object.ts";
import { type OnTransformFailure, transformed, type TransformFunc } from "../store/transform.ts";
import { abortable } from "../util/abort.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { Deque } from "../util/collections.ts";
import { InitialItems, type SyncedMethod, Wakeup } from "../util/deferred.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { FIFOClosedError } from "./errors.ts";
import type {
  BookmarkInfo,
  Delta,
  Deltas,
  PopOptions,
  PopProcessFunc,
  Queue,
  Queued,
  SyncProcessFunc,
} from "./queue.ts";

/** How slow consumers are reported: over 100 ms an item (1 s a batch) while more than 10 others wait. */
export interface SlowTraceOptions {
  /** The queue's name in log lines. */
  readonly name?: string;
  /** Receives log lines; warnings and errors go to the console by default. */
  readonly logger?: Logger;
  /** The clock that measures the consumer; the system's clock by default. */
  readonly clock?: Clock;
}

/** Options of a queue of deltas. */
export interface QueueOptions<T> extends SlowTraceOptions {
  /**
   * Computes keys; `metaNamespaceKey` by default. Tombstones and deltas are unwrapped before it is called.
   */
  readonly keyFunc?: KeyFunc;
  /** Runs on every object as it is queued, but not on tombstones and resyncs. */
  readonly transform?: TransformFunc<T> | undefined;
  /** Called for each object of a `replace` that the transform throws for; without it the call is refused. */
  readonly onTransformFailure?: OnTransformFailure<T>;
}

const SLOW_DEPTH = 10;
const SLOW_MS = 100;
const SLOW_MAX_MS = 1_000;

export interface Failure {
  readonly error: unknown;
}

/** The result of {@linkcode PoppingQueue.take} if there is no place, or the objects of all were deleted. */
export const NOTHING: unique symbol = Symbol();

/**
 * A queue's consuming side, which all queues share: `pop`, `tryPop`, `wait`, `close` and `hasSynced`, over
 * what the concrete queue says its next item is. Not meant to be extended outside of this package.
 */
export abstract class PoppingQueue<I, P = unknown> {
  /**
   * The places of the queue, in order: its items, or their keys.
   * @internal
   */
  protected readonly places: Deque<P> = new Deque<P>();
  /**
   * The callers that wait for something to pop.
   * @internal
   */
  protected readonly consumers: Wakeup = new Wakeup();
  /** @internal */
  protected readonly population: InitialItems = new InitialItems();
  readonly #options: SlowTraceOptions;
  #closed = false;

  constructor(options: SlowTraceOptions) {
    this.#options = options;
  }

  /**
   * Removes and returns the next item, or {@linkcode NOTHING}.
   * @internal
   */
  protected abstract take(): I | typeof NOTHING;
  /**
   * A key for log lines.
   * @internal
   */
  protected abstract labelOf(item: I): string;
  /**
   * The item has been processed, with or without an error.
   * @internal
   */
  protected finished(_item: I): void {
    this.population.popped(1);
  }
  /**
   * How many objects an item has, to judge how long its processing took.
   * @internal
   */
  protected countOf(_item: I): number {
    return 1;
  }
  /**
   * Says what an error of the process callback comes to: nothing (the item was put back), or an error to
   * report.
   * @internal
   */
  protected failed(_item: I, error: unknown): Failure | undefined {
    return { error };
  }

  /** As {@linkcode Queue.pop}. */
  async pop(process: PopProcessFunc<I>, options: PopOptions = {}): Promise<I> {
    for (;;) {
      const isInInitialList = !this.hasSynced();
      const item = this.take();
      if (item !== NOTHING) return await this.process(item, process, isInInitialList);
      await this.waitOrThrow(options.signal);
    }
  }

  /** As {@linkcode Queue.tryPop}. */
  tryPop(process: SyncProcessFunc<I>): boolean {
    const isInInitialList = !this.hasSynced();
    const item = this.take();
    if (item === NOTHING) return false;
    this.processNow(item, process, isInInitialList);
    return true;
  }

  /**
   * Waits for something to pop; throws if the queue is closed instead.
   * @internal
   */
  protected async waitOrThrow(signal: AbortSignal | undefined): Promise<void> {
    if (this.#closed) throw new FIFOClosedError();
    await this.consumers.wait(signal);
  }

  /**
   * Has an item that was taken processed, and returns it; throws what the processing comes to.
   * @internal
   */
  protected async process(item: I, process: PopProcessFunc<I>, isInInitialList: boolean): Promise<I> {
    const end = this.#begin(item);
    try {
      await process(item, isInInitialList);
    } catch (error) {
      end({ error });
      return item;
    }
    end();
    return item;
  }

  /**
   * As {@linkcode PoppingQueue.process}, within this turn.
   * @internal
   */
  protected processNow(item: I, process: SyncProcessFunc<I>, isInInitialList: boolean): void {
    const end = this.#begin(item);
    try {
      process(item, isInInitialList);
    } catch (error) {
      return end({ error });
    }
    end();
  }

  /** The processing of an item begins; call the returned function at its end, with its error. */
  #begin(item: I): (thrown?: Failure) => void {
    const depth = this.places.length;
    // As client-go does: https://github.com/kubernetes/client-go/blob/master/tools/cache/delta_fifo.go
    const startMs = depth > SLOW_DEPTH ? monotonicNow(this.#options.clock ?? realClock) : undefined;
    return (thrown) => {
      const failure = thrown && this.failed(item, thrown.error);
      this.finished(item);
      if (startMs !== undefined) this.#reportSlow(item, startMs, depth);
      if (failure !== undefined) throw failure.error;
    };
  }

  #reportSlow(item: I, startMs: number, depth: number): void {
    const { name = "", clock = realClock } = this.#options;
    const logger = guardedLogger(this.#options.logger);
    const tookMs = Math.round(monotonicNow(clock) - startMs);
    const count = this.countOf(item);
    if (tookMs <= Math.min(SLOW_MS * count, SLOW_MAX_MS)) return;
    let key: string;
    try {
      key = this.labelOf(item);
    } catch {
      key = "(no key)";
    }
    const queue = name === "" ? "" : ` "${name}"`;
    logger.warn(
      `slow event handlers block the queue${queue}: processing took ${tookMs} ms`,
      { queue: name, key, depth, count, tookMs },
    );
  }

  /** Resolves once there is something to pop, or the queue is closed; rejects with the signal's reason. */
  wait(signal?: AbortSignal): Promise<void> {
    return this.places.length > 0 || this.#closed ? Promise.resolve() : this.consumers.wait(signal);
  }

  /**
   * Whether everything of the first `replace` was popped, or
   * something else was queued before any. Stays true.
   */
  hasSynced(): boolean {
    return this.population.latch.isOpen;
  }

  /** As {@linkcode Queue.synced}. A closed queue can still sync by what is popped of its first list. */
  readonly synced: SyncedMethod = async (signal) => {
    if (!this.hasSynced()) await abortable(this.population.latch.opened, signal);
  };

  /** Closes the queue: queued items can still be popped, then `pop` throws instead of waiting. */
  close(): void {
    this.#closed = true;
    if (!this.population.isPopulated) this.population.latch.giveUp(new FIFOClosedError());
    this.consumers.wakeAll();
  }

  /** Whether {@linkcode PoppingQueue.close} was called. */
  get isClosed(): boolean {
    return this.#closed;
  }
}

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
  readonly #emitBookmarks: boolean | undefined;
  /**
   * How many lists and resyncs are queued: a field, as a call at each event would cost time.
   * @internal
   */
  listsQueued = 0;
  /** The function that runs on objects as they are queued. */
  readonly transform: TransformFunc<T> | undefined;

  constructor(options: AtomicFIFOOptions<T>) {
    super(options);
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#emitBookmarks = options.emitDeltaTypeBookmark;
    this.transform = options.transform;
  }

  /** How many deltas are queued. */
  get length(): number {
    return this.places.length;
  }

  /** Queues an `Added` delta. */
  add(object: T): void {
    this.population.populate();
    this.queueDelta("Added", object, "add");
  }

  /** Queues an `Updated` delta, whether or not the object is known. */
  update(object: T): void {
    this.population.populate();
    this.queueDelta("Updated", object, "update");
  }

  /** Queues a `Deleted` delta, whether or not the object is known. */
  delete(object: Queued<T>): void {
    this.population.populate();
    this.queueDelta("Deleted", object, "delete");
  }

  /** Queues a `Deleted` delta of a tombstone, whether or not the object is known. */
  deleteKey(key: string, resourceVersion?: string): void {
    this.population.populate();
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
