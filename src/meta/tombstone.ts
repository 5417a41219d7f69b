/**
 * Deletes: seen, or inferred from a list.
 * @module
 */

/**
 * A tombstone: the object was deleted, and the cache did not see the delete. A list no longer had the object,
 * so {@linkcode DeletedFinalStateUnknown.object} is the last state that the cache knew, which may be stale,
 * or `undefined`.
 *
 * Mirrors client-go's `DeletedFinalStateUnknown`.
 *
 * @example
 * ```ts
 * import { DeletedFinalStateUnknown } from "@listwatch/cache";
 * const tombstone = new DeletedFinalStateUnknown("shop/web-1", { metadata: { name: "web-1", namespace: "shop" } });
 * console.log(tombstone.key, tombstone.finalStateUnknown); // shop/web-1 true
 * ```
 *
 * @category Informers
 */
export class DeletedFinalStateUnknown<T> {
  /** Always true; distinguishes a tombstone from a delete that was seen. */
  readonly finalStateUnknown = true as const;
  /** The object's key in the store. */
  readonly key: string;
  /** The last known state, if there is one. */
  readonly object: T | undefined;

  /** Makes a tombstone for the object that had this key. */
  constructor(key: string, object: T | undefined) {
    this.key = key;
    this.object = object;
  }
}

/**
 * A delete that the cache saw: {@linkcode Deleted.object} is the object's final state, as the server sent it.
 *
 * @category Informers
 */
export interface Deleted<T> {
  /** Always false. */
  readonly finalStateUnknown: false;
  /** The object's key in the store. */
  readonly key: string;
  /** The final state. */
  readonly object: T;
}

/**
 * The argument of a delete handler: a delete that was seen, or a tombstone. `finalStateUnknown` distinguishes
 * them and narrows the type: `object` may be `undefined` in a tombstone only.
 *
 * Mirrors client-go's `DeletedObject`, which replaces a type assertion that many handlers lacked.
 *
 * @category Informers
 */
export type DeletedObject<T> = Deleted<T> | DeletedFinalStateUnknown<T>;
