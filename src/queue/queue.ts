/** The interface of every queue between a reflector and a store. */

import type { DeletedFinalStateUnknown } from "../meta/object.ts";
import type { TransformFunc } from "../store/transform.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import type { BookmarkInfo, Deltas } from "./delta.ts";

/**
 * Where a reflector writes: a queue, or a store.
 *
 * Calls are synchronous. One that throws has not taken the object: the reflector quarantines it and
 * continues. Mirrors client-go's `ReflectorStore` with its optional parts.
 */
export interface ReflectorStore<T> {
  /** An ADDED event. */
  add(object: T): unknown;
  /** A MODIFIED event. */
  update(object: T): unknown;
  /** A DELETED event. */
  delete(object: T): unknown;
  /**
   * A DELETED event whose object cannot be accepted: deletes the object of this key. Without it the delete is
   * lost, and a relist is due.
   * @param resourceVersion That of the event, if it is known.
   */
  deleteKey?(key: string, resourceVersion?: string): void;
  /** A whole list, at `resourceVersion`. */
  replace(objects: readonly T[], resourceVersion: string): void;
  /**
   * A whole list, of which some objects could not be accepted: what is known of their keys when the list is
   * applied stays. Without it, the reflector adds to the list what is stored of them at present.
   */
  replaceKeeping?(objects: readonly T[], resourceVersion: string, keptKeys: readonly string[]): void;
  /** The time for a resync has come. */
  resync(): void;
  /**
   * A BOOKMARK event: nothing else happened up to `resourceVersion`.
   * @param how See {@linkcode BookmarkInfo}.
   */
  bookmark?(resourceVersion: string, how?: Pick<BookmarkInfo, "byState">): void;
}

/**
 * The objects that the consumer knows: lets a queue notice what a list no longer has.
 * Mirrors client-go's `KeyListerGetter`. Every `Store` is one.
 */
export interface KeyListerGetter<T> {
  /** The known keys. */
  listKeys(): string[];
  /** The known object of a key, or `undefined`. */
  getByKey(key: string): T | undefined;
}

/**
 * Handles what was popped. What it throws does not put the item back (but see `ErrRequeue`); it is what `pop`
 * rejects with.
 * @param item What was popped.
 * @param isInInitialList Whether it was popped before the queue had synced.
 */
export type PopProcessFunc<I> = (item: I, isInInitialList: boolean) => void | Promise<void>;

/** As {@linkcode PopProcessFunc}, without waiting for anything. */
export type SyncProcessFunc<I> = (item: I, isInInitialList: boolean) => void;

/** Options of `pop`. */
export interface PopOptions {
  /** Ends the wait for an item; `pop` then rejects with its reason, and nothing was popped. */
  readonly signal?: AbortSignal;
}

/** A queue of changes, which a `Controller` drains. Mirrors client-go's `Queue`. */
export interface Queue<T> extends ReflectorStore<T> {
  /**
   * Waits for an item, takes it out and hands it to `process`, whose promise is awaited.
   * @returns What was popped.
   * @throws {FIFOClosedError} The queue is closed and empty.
   * @throws What `process` threw, or the signal's reason.
   */
  pop(process: PopProcessFunc<Deltas<T>>, options?: PopOptions): Promise<Deltas<T>>;
  /**
   * Takes the next item out and hands it to `process`, all within this turn.
   * @returns `false` when there was none.
   * @throws What `process` threw.
   */
  tryPop(process: SyncProcessFunc<Deltas<T>>): boolean;
  /** Resolves once there is something to pop, or the queue is closed; rejects with the signal's reason. */
  wait(signal?: AbortSignal): Promise<void>;
  /** Whether everything of the first `replace`, or anything before it, was popped. Stays true. */
  hasSynced(): boolean;
  /**
   * Resolves when {@linkcode Queue.hasSynced} becomes true; rejects with the signal's reason.
   * @throws {FIFOClosedError} The queue was closed before anything was queued.
   */
  readonly synced: SyncedMethod;
  /** Closes the queue: what is queued can still be popped, then `pop` throws instead of waiting. */
  close(): void;
  /** Whether {@linkcode Queue.close} was called. */
  readonly isClosed: boolean;
  /** What runs on objects as they are queued, if anything. */
  readonly transform?: TransformFunc<T> | undefined;
}

/** What a queue's items may be where only a key is needed. */
export type Queued<T> = T | DeletedFinalStateUnknown<T>;
