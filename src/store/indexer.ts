/**
 * The indexer interface: a store with indices.
 * @module
 */

import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";
import type { Store } from "./store.ts";

/**
 * A store with indices. The names given at construction are the ones that lookups accept, checked by the
 * compiler.
 *
 * Mirrors client-go's `Indexer`.
 *
 * @category Keys, indices, listers
 */
export interface Indexer<T, I extends string = string> extends Store<T> {
  /**
   * The objects that share a value with `object` in an index, each once; in no order that may be relied on.
   *
   * @throws {IndexNotFoundError} There is no such index.
   * @throws What the index function throws for `object`.
   */
  index(indexName: I, object: T): T[];
  /**
   * The keys under a value of an index, ascending by code unit.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  indexKeys(indexName: I, value: string): string[];
  /** The values under which an index has objects; none for an unknown index. */
  listIndexFuncValues(indexName: I): string[];
  /**
   * The objects under a value of an index: a new array, in no order that may be relied on.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  byIndex(indexName: I, value: string): T[];
  /**
   * The objects under a value of an index, one by one and without an array of them; in no order that may be
   * relied on.
   *
   * The store may be written to meanwhile. Each object that stays under the value from the call until its
   * turn comes once, in its state of that moment. One that has left the value is passed over (and perhaps
   * also if it is back), one that is new under it since the call does not come. What comes after a `replace`,
   * or after indices were added in steps, may be of before it.
   *
   * The first call after a change of what is under the value costs O(what is under it), others O(1) until
   * they are read.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  eachByIndex(indexName: I, value: string): IterableIterator<T>;
  /**
   * How many objects are under a value of an index. O(1).
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  countByIndex(indexName: I, value: string): number;
  /**
   * How many objects there are under each value of an index: a new map, in no order that may be relied on.
   * O(values).
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  indexValueCounts(indexName: I): Map<string, number>;
  /**
   * The objects that are under a value in each of several indices (under all of them, where several values
   * are named for one index), such as `{ byNode: "node-1", namespace: "shop" }`: a new array, in no order
   * that may be relied on. All objects, where nothing is named.
   *
   * Costs what the rarest of these values holds, times the number of values.
   *
   * @throws {IndexNotFoundError} There is no such index.
   * @throws {TypeError} A value is not a string.
   */
  byIndices(values: IndexValues<I>): T[];
  /** The index functions by name: a copy. */
  getIndexers(): Record<I, IndexFunc<T>>;
  /**
   * Adds indices, at any time: what is stored already is indexed at once.
   *
   * @returns This indexer, with the new names in its type.
   * @throws {IndexerConflictError} A name is taken; nothing was added.
   * @throws {IndexFuncError} An index function threw; nothing was added.
   */
  addIndexers<J extends string>(indexers: Indexers<T, J>): Indexer<T, I | J>;
}
