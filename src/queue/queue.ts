/** Changes of objects, and the interface of every queue of them between a reflector and a store. */

import type { DeletedFinalStateUnknown } from "../meta/object.ts";
import type { TransformFunc } from "../store/transform.ts";
import type { SyncedMethod } from "../util/deferred.ts";

/** The payload of a `ReplacedAll` delta: a whole list, to be applied as one step. */
export interface ReplacedAllInfo<T> {
  readonly resourceVersion: string;
  /** The objects of the list; transformed, unless the queue's `transformsLists` is `false`. */
  readonly objects: readonly T[];
  /** Keys of objects in the list that could not be accepted: their stored states stay. */
  readonly keptKeys?: readonly string[];
  /** The list is of this namespace only: the objects of all others stay. */
  readonly namespace?: string;
}

/** The payload of a `Bookmark` delta: nothing changed up to this resourceVersion. */
export interface BookmarkInfo {
  readonly resourceVersion: string;
  /**
   * Whether another request has proven, by the state of all objects, that this version was reached. Events of
   * objects that were created and deleted in between may still arrive. Absent if the watch itself reached it.
   */
  readonly byState?: true;
}

/** The types of deltas. */
export type DeltaType = Delta<unknown>["type"];

/**
 * One change of one object, or (the last three types) of all of them.
 *
 * - `Added`, `Updated`: the watch said so.
 * - `Replaced`: the object was in a list that replaced everything.
 * - `Sync`: nothing changed; the object is handed out again.
 * - `Deleted`: the object as the server deleted it, or a tombstone where the delete was inferred.
 * - `ReplacedAll`, `SyncAll`, `Bookmark`: what `RealFIFO` queues in its atomic mode.
 * Mirrors client-go's `Delta`.
 */
export type Delta<T> =
  | { readonly type: "Added" | "Updated"; readonly object: T }
  | { readonly type: "Replaced" | "Sync"; readonly object: T }
  | {
    readonly type: "Deleted";
    readonly object: T | DeletedFinalStateUnknown<T>;
    /** The version of the delete, where the object does not say it: it is a tombstone. */
    readonly resourceVersion?: string;
  }
  | { readonly type: "ReplacedAll"; readonly object: ReplacedAllInfo<T> }
  | { readonly type: "SyncAll"; readonly object: SyncAllInfo }
  | { readonly type: "Bookmark"; readonly object: BookmarkInfo };

/** The payload of a `SyncAll` delta: none. */
export type SyncAllInfo = Readonly<Record<never, never>>;

/** A delta of one object: what `DeltaFIFO` holds. */
export type ObjectDelta<T> = Extract<
  Delta<T>,
  { type: "Added" | "Updated" | "Replaced" | "Sync" | "Deleted" }
>;

/** Changes, oldest first. Never empty when a queue hands them out. */
export type Deltas<T> = readonly Delta<T>[];

/** The oldest of some deltas; `undefined` when there are none. */
export function oldest<D>(deltas: readonly D[]): D | undefined {
  return deltas[0];
}

/**
 * The newest of some deltas; `undefined` when there are none.
 *
 * @example
 * ```ts
 * import { newest, oldest } from "@listwatch/cache/queue";
 * const deltas = [{ type: "Added", object: "a1" }, { type: "Updated", object: "a2" }] as const;
 * console.log(oldest(deltas)?.type, newest(deltas)?.type); // Added Updated
 * ```
 */
export function newest<D>(deltas: readonly D[]): D | undefined {
  return deltas[deltas.length - 1];
}

/**
 * The target of a reflector's writes: a queue, or a store.
 *
 * Calls are synchronous. A call that throws has not taken the object: the reflector quarantines it and
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
   * @param resourceVersion The version of the event, if it is known.
   */
  deleteKey?(key: string, resourceVersion?: string): void;
  /** A whole list, at `resourceVersion`. */
  replace(objects: readonly T[], resourceVersion: string): void;
  /**
   * A whole list, of which some objects could not be accepted: the known states of their keys stay when the
   * list is applied. Without it, the reflector adds to the list what is stored of them at present.
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
 * Handles what was popped. An error that it throws does not put the item back (but see `ErrRequeue`); it is
 * what `pop` rejects with.
 * @param item The popped item.
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
   * @returns The popped item.
   * @throws {FIFOClosedError} The queue is closed and empty.
   * @throws The error that `process` threw, or the signal's reason.
   */
  pop(process: PopProcessFunc<Deltas<T>>, options?: PopOptions): Promise<Deltas<T>>;
  /**
   * Takes the next item out and hands it to `process`, all within this turn.
   * @returns `false` when there was none.
   * @throws The error that `process` threw.
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
  /** Closes the queue: queued items can still be popped, then `pop` throws instead of waiting. */
  close(): void;
  /** Whether {@linkcode Queue.close} was called. */
  readonly isClosed: boolean;
  /** The function that runs on objects as they are queued, if there is one. */
  readonly transform?: TransformFunc<T> | undefined;
}

/** A queue's item where only the key is needed: an object or a tombstone. */
export type Queued<T> = T | DeletedFinalStateUnknown<T>;
