/**
 * Deltas: the changes that a queue holds.
 * @module
 */

import type { DeletedFinalStateUnknown } from "../meta/tombstone.ts";

/**
 * The payload of a `ReplacedAll` delta: a whole list, to be applied as one step.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { ReplacedAllInfo } from "@listwatch/cache/queue";
 * const info: ReplacedAllInfo<KubernetesObject> = { resourceVersion: "42", objects: [{ metadata: { name: "web-1" } }] };
 * ```
 *
 * @category Queues
 */
export interface ReplacedAllInfo<T> {
  /** The resourceVersion of the list. */
  readonly resourceVersion: string;
  /** What the list holds; transformed, unless the queue's `transformsLists` is `false`. */
  readonly objects: readonly T[];
}

/**
 * The payload of a `Bookmark` delta: nothing changed up to this resourceVersion.
 *
 * @example
 * ```ts
 * import type { BookmarkInfo, Delta } from "@listwatch/cache/queue";
 * const info: BookmarkInfo = { resourceVersion: "42" };
 * const delta: Delta<unknown> = { type: "Bookmark", object: info };
 * ```
 *
 * @category Queues
 */
export interface BookmarkInfo {
  /** The resourceVersion of the bookmark. */
  readonly resourceVersion: string;
}

/**
 * The types of deltas.
 *
 * @example
 * ```ts
 * import type { DeltaType } from "@listwatch/cache/queue";
 * const types: DeltaType[] = ["Added", "Updated", "Deleted"];
 * ```
 *
 * @category Queues
 */
export type DeltaType = Delta<unknown>["type"];

/**
 * One change of one object, or (the last three types) of all of them.
 *
 * - `Added`, `Updated`: the watch said so.
 * - `Replaced`: the object was in a list that replaced everything.
 * - `Sync`: nothing changed; the object is handed out again.
 * - `Deleted`: the object as the server deleted it, or a tombstone where the delete was inferred.
 * - `ReplacedAll`, `SyncAll`, `Bookmark`: what `RealFIFO` queues in its atomic mode.
 *
 * Mirrors client-go's `Delta`.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { Delta } from "@listwatch/cache/queue";
 * const delta: Delta<KubernetesObject> = { type: "Added", object: { metadata: { name: "web-1" } } };
 * ```
 *
 * @category Queues
 */
export type Delta<T> =
  | { readonly type: "Added" | "Updated"; readonly object: T }
  | { readonly type: "Replaced" | "Sync"; readonly object: T }
  | { readonly type: "Deleted"; readonly object: T | DeletedFinalStateUnknown<T> }
  | { readonly type: "ReplacedAll"; readonly object: ReplacedAllInfo<T> }
  | { readonly type: "SyncAll"; readonly object: SyncAllInfo }
  | { readonly type: "Bookmark"; readonly object: BookmarkInfo };

/**
 * The payload of a `SyncAll` delta: none.
 *
 * @example
 * ```ts
 * import type { Delta, SyncAllInfo } from "@listwatch/cache/queue";
 * const info: SyncAllInfo = {};
 * const delta: Delta<unknown> = { type: "SyncAll", object: info };
 * ```
 *
 * @category Queues
 */
export type SyncAllInfo = Readonly<Record<never, never>>;

/**
 * A delta of one object: what `DeltaFIFO` holds.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { ObjectDelta } from "@listwatch/cache/queue";
 * const delta: ObjectDelta<KubernetesObject> = { type: "Updated", object: { metadata: { name: "web-1" } } };
 * ```
 *
 * @category Queues
 */
export type ObjectDelta<T> = Extract<
  Delta<T>,
  { type: "Added" | "Updated" | "Replaced" | "Sync" | "Deleted" }
>;

/**
 * Changes, oldest first. Never empty when a queue hands them out.
 *
 * @example
 * ```ts
 * import { type Deltas, newest, oldest } from "@listwatch/cache/queue";
 * const deltas: Deltas<string> = [{ type: "Added", object: "a1" }, { type: "Updated", object: "a2" }];
 * console.log(oldest(deltas)?.object, newest(deltas)?.object); // a1 a2
 * ```
 *
 * @category Queues
 */
export type Deltas<T> = readonly Delta<T>[];

/**
 * The oldest of some deltas; `undefined` when there are none.
 *
 * @example
 * ```ts
 * import { oldest } from "@listwatch/cache/queue";
 * console.log(oldest([{ type: "Added", object: "a1" }])?.type); // Added
 * ```
 *
 * @category Queues
 */
export function oldest<D>(deltas: readonly D[]): D | undefined {
  return deltas[0];
}

/**
 * The newest of some deltas; `undefined` when there are none.
 *
 * @example
 * ```ts
 * import { newest } from "@listwatch/cache/queue";
 * console.log(newest([{ type: "Added", object: "a1" }, { type: "Updated", object: "a2" }])?.type); // Updated
 * ```
 *
 * @category Queues
 */
export function newest<D>(deltas: readonly D[]): D | undefined {
  return deltas[deltas.length - 1];
}
