/** The interfaces of stores: objects by their keys, and with indices. */

import { type DeletedFinalStateUnknown, type ExplicitKey, type KeyFunc, keyOf } from "../meta/object.ts";
import { toError } from "../util/errors.ts";
import { type IndexFuncError, TransactionError } from "./errors.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";

/** Decides what is stored in place of an object of a `replace` that cannot be indexed. */
export type OnIndexFailure<T> = (error: IndexFuncError, object: T) => T | undefined;

/** An object, or its substitute where only its key matters. */
export type Keyed<T> = T | DeletedFinalStateUnknown<T> | ExplicitKey;

/** A write of a transaction. */
export type Transaction<T> =
  | { readonly type: "Add" | "Update"; readonly object: T }
  | { readonly type: "Delete"; readonly object: Keyed<T> };

/**
 * One write of a {@linkcode ThreadSafeStore} transaction.
 *
 * The object of a delete is the state that the delete came with, as in {@linkcode
 * ThreadSafeStore.deleteWithObject}.
 */
export type KeyedTransaction<T> =
  | { readonly type: "Add" | "Update"; readonly key: string; readonly object: T }
  | { readonly type: "Delete"; readonly key: string; readonly object: unknown };

/**
 * Objects under the keys that a key function gives them.
 *
 * Calls are synchronous. One throws a `KeyError` where the key function threw, a `TransformError` or an
 * `IndexFuncError` where the transform or an index function did; a write that throws has changed nothing.
 * Objects are handed out as they were put in: shared by all readers, and read-only.
 *
 * Mirrors client-go's `Store`, with errors thrown instead of returned, and the old object returned by a
 * write.
 */
export interface Store<T> {
  /** How many objects are stored. */
  readonly size: number;
  /** Puts an object in, whether or not its key is there, and returns the one it replaces. */
  add(object: T): T | undefined;
  /** As {@linkcode Store.add}. */
  update(object: T): T | undefined;
  /** Removes an object and returns the stored one; an absent one is fine. */
  delete(object: Keyed<T>): T | undefined;
  /** All objects: a new array, in no order that may be relied on. */
  list(): T[];
  /** All keys: a new array, in no order that may be relied on. */
  listKeys(): string[];
  /** All objects without a copy; do not write to the store while iterating. */
  values(): IterableIterator<T>;
  /** The stored object that has the key of the given one. */
  get(object: Keyed<T>): T | undefined;
  /** The object of a key. */
  getByKey(key: string): T | undefined;
  /** Whether a key is there. */
  has(key: string): boolean;
  /**
   * Replaces the whole content, which has then reached `resourceVersion`; the last of several objects with
   * one key counts.
   * @param onIndexFailure Receives each object for which an index function throws,
   * instead of throwing. What it returns, an object that was stored before, is kept in
   * its place; the key is left out if that is `undefined`.
   */
  replace(objects: readonly T[], resourceVersion: string, onIndexFailure?: OnIndexFailure<T>): void;
  /**
   * Applies several writes in order, as one step. Objects are not transformed.
   * @throws {TransactionError} Some had no key; the others were applied.
   */
  transaction(writes: readonly Transaction<T>[]): void;
  /** Does nothing in a store; queues resend what is known. */
  resync(): void;
  /** Records that the content has reached a later resourceVersion. */
  bookmark(resourceVersion: string): void;
  /** The resourceVersion that the content has reached; `""` before the first write. */
  lastStoreSyncResourceVersion(): string;
}

/** How a store is replaced in steps. */
export interface ReplaceOptions<T> {
  /** As for {@linkcode Store.replace}; called at most once about an object. */
  readonly onIndexFailure?: OnIndexFailure<T> | undefined;
  /** How many objects there are to a step. */
  readonly stepObjects?: number;
}

/**
 * The writes of a transaction that have a key, with it; and the error to throw, once they are applied, about
 * the others.
 */
export function keyedWrites<T>(
  keyFunc: KeyFunc,
  writes: readonly Transaction<T>[],
): { readonly writes: KeyedTransaction<T>[]; readonly error: TransactionError | undefined } {
  const keyed: KeyedTransaction<T>[] = [];
  const successfulIndices: number[] = [];
  const errors: Error[] = [];
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i];
    try {
      keyed.push({ ...write, key: keyOf(keyFunc, write.object, write.type.toLowerCase()) });
      successfulIndices.push(i);
    } catch (error) {
      errors.push(toError(error));
    }
  }
  const error = errors.length === 0
    ? undefined
    : new TransactionError(writes.length, successfulIndices, errors);
  return { writes: keyed, error };
}

/**
 * A store with indices. The names given at construction are the ones that lookups accept, checked by the
 * compiler. A lookup in an index that is not there throws an `IndexNotFoundError`.
 * Mirrors client-go's `Indexer`.
 *
 * @category Keys, indices, listers
 */
export interface Indexer<T, I extends string = string> extends Store<T> {
  /**
   * The objects that share a value with `object` in an index, each once; in no order that may be relied on.
   * @throws The error that the index function throws for `object`.
   */
  index(indexName: I, object: T): T[];
  /** The keys under a value of an index, ascending by code unit. */
  indexKeys(indexName: I, value: string): string[];
  /** The values under which an index has objects; none for an unknown index. */
  listIndexFuncValues(indexName: I): string[];
  /** The objects under a value of an index: a new array, in no order that may be relied on. */
  byIndex(indexName: I, value: string): T[];
  /**
   * The objects under a value of an index, one by one and without an array of them; in no order that may be
   * relied on.
   *
   * The store may be written to meanwhile. Each object that stays under the value from the call until its
   * turn comes once, in its state of that moment. One that has left the value is passed over (and perhaps
   * also if it is back), one that is new under it since the call does not come. Objects that come after a
   * `replace`, or after indices were added in steps, may be from before it.
   *
   * The first call after a change of the objects under the value costs O(objects under it), others O(1) until
   * they are read.
   */
  eachByIndex(indexName: I, value: string): IterableIterator<T>;
  /** How many objects are under a value of an index. O(1). */
  countByIndex(indexName: I, value: string): number;
  /**
   * How many objects there are under each value of an index: a new map, in no order that may be relied on.
   * O(values).
   */
  indexValueCounts(indexName: I): Map<string, number>;
  /**
   * The objects that are under a value in each of several indices (under all of them, where several values
   * are named for one index), such as `{ byNode: "node-1", namespace: "shop" }`: a new array, in no order
   * that may be relied on. All objects, where nothing is named.
   *
   * Costs what the rarest of these values holds, times the number of values.
   * @throws {TypeError} A value is not a string.
   */
  byIndices(values: IndexValues<I>): T[];
  /** The index functions by name: a copy. */
  getIndexers(): Record<I, IndexFunc<T>>;
  /**
   * Adds indices, at any time: stored objects are indexed at once.
   * @returns This indexer, with the new names in its type.
   * @throws {IndexerConflictError} A name is taken; nothing was added.
   * @throws {IndexFuncError} An index function threw; nothing was added.
   */
  addIndexers<J extends string>(indexers: Indexers<T, J>): Indexer<T, I | J>;
}
