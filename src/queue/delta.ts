/** Deltas: the changes that a queue holds. */

import type { DeletedFinalStateUnknown } from "../meta/object.ts";

/** The payload of a `ReplacedAll` delta: a whole list, to be applied as one step. */
export interface ReplacedAllInfo<T> {
  readonly resourceVersion: string;
  /** What the list holds; transformed, unless the queue's `transformsLists` is `false`. */
  readonly objects: readonly T[];
  /**
   * Keys of objects that the list has and that could not be accepted: what is stored of them by then stays.
   */
  readonly keptKeys?: readonly string[];
  /** The list is of this namespace only: the objects of all others stay. */
  readonly namespace?: string;
}

/** The payload of a `Bookmark` delta: nothing changed up to this resourceVersion. */
export interface BookmarkInfo {
  readonly resourceVersion: string;
  /**
   * Another request has shown that the state of all objects is that of this version. Events of objects that
   * were created and deleted in between may still arrive. Absent where the watch itself has come to it.
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
