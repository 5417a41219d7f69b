/**
 * The storage under every store: objects by key, with indices.
 * @module
 */

import { resourceVersionOf } from "../meta/object.ts";
import { IndexFuncError } from "./errors.ts";
import type { Indexers, IndexFunc } from "./index_func.ts";
import type { OnRejected } from "./store.ts";
import { type Entry, StoreIndex, type Values } from "./store_index.ts";

/**
 * One write of a {@linkcode ThreadSafeStore} transaction.
 *
 * The object of a delete is the state that the delete came with, as in {@linkcode ThreadSafeStore.deleteWithObject}.
 *
 * @example
 * ```ts
 * import { type KeyedTransaction, ThreadSafeStore } from "@listwatch/cache";
 * const writes: KeyedTransaction<string>[] = [
 *   { type: "Add", key: "a", object: "one" },
 *   { type: "Delete", key: "b", object: undefined },
 * ];
 * new ThreadSafeStore<string>().transaction(writes);
 * ```
 */
export type KeyedTransaction<T> =
  | { readonly type: "Add" | "Update"; readonly key: string; readonly object: T }
  | { readonly type: "Delete"; readonly key: string; readonly object: unknown };

/**
 * Objects by key, with indices and the resourceVersion that the content stands at.
 *
 * Every call is synchronous and either happens whole or, when it throws, not at all; so readers never see a store
 * whose indices disagree with its objects. Objects are handed out as they were put in: shared, and read-only.
 *
 * Mirrors client-go's `ThreadSafeStore`; JavaScript's single thread stands in for its lock. Where an index function
 * throws, client-go panics; this throws an `IndexFuncError` and leaves the store as it was.
 *
 * @example
 * ```ts
 * import { ThreadSafeStore } from "@listwatch/cache";
 * const store = new ThreadSafeStore<{ user: string }, "byUser">({ byUser: (object) => [object.user] });
 * store.add("one", { user: "ernie" });
 * store.add("two", { user: "bert" });
 * console.log(store.indexKeys("byUser", "bert")); // ["two"]
 * ```
 */
export class ThreadSafeStore<T, I extends string = string> {
  #entries = new Map<string, Entry<T>>();
  #index: StoreIndex<T>;
  #resourceVersion = "";

  /** Makes an empty store with these indices; none by default. */
  constructor(indexers: Indexers<T, I> = {} as Indexers<T, I>) {
    this.#index = new StoreIndex<T>(indexers);
  }

  /** How many objects are stored. */
  get size(): number {
    return this.#entries.size;
  }

  /** Puts an object in, whether or not the key is there; the same as {@linkcode ThreadSafeStore.update}. */
  add(key: string, object: T): T | undefined {
    const old = this.#write(key, object, "add");
    this.#advance(object);
    return old;
  }

  /**
   * Puts an object in, whether or not the key is there, and returns the one it replaces.
   * The store's resourceVersion becomes the object's; a value without metadata leaves it.
   *
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  update(key: string, object: T): T | undefined {
    const old = this.#write(key, object, "update");
    this.#advance(object);
    return old;
  }

  /** Removes a key and returns its object; an absent key is fine. Leaves the store's resourceVersion. */
  delete(key: string): T | undefined {
    return this.deleteWithObject(key, undefined);
  }

  /**
   * Removes a key and returns its object; the store's resourceVersion becomes that of `object`, the state that the
   * delete came with, if it has metadata. An absent key is fine.
   *
   * @throws {IndexFuncError} An index function threw for the stored object; nothing was changed.
   */
  deleteWithObject(key: string, object: unknown): T | undefined {
    const old = this.#remove(key, this.#storedValues(key, "delete"));
    this.#advance(object);
    return old;
  }

  /** The object of a key. */
  get(key: string): T | undefined {
    return this.#entries.get(key)?.object;
  }

  /** Whether a key is there: tells an absent object from a stored `undefined`. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** All objects: a new array, in no order that may be relied on. */
  list(): T[] {
    const objects: T[] = new Array(this.#entries.size);
    let i = 0;
    for (const entry of this.#entries.values()) objects[i++] = entry.object;
    return objects;
  }

  /** All keys: a new array, in no order that may be relied on. */
  listKeys(): string[] {
    return [...this.#entries.keys()];
  }

  /** All objects without a copy; do not write to the store while iterating. */
  *values(): IterableIterator<T> {
    for (const entry of this.#entries.values()) yield entry.object;
  }

  /**
   * Replaces the whole content; of several objects with one key the last counts.
   *
   * @param onRejected Told of each object for which an index function throws, instead of throwing: what it returns is
   * stored in its place if that is an object, and the key is left out if it is `undefined`. An object it returns must
   * have been stored before.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  replace(
    objects: Iterable<readonly [key: string, object: T]>,
    resourceVersion: string,
    onRejected?: OnRejected<T>,
  ): void {
    const entries = new Map<string, Entry<T>>();
    for (const [key, object] of objects) {
      const entry = entries.get(key);
      if (entry === undefined) entries.set(key, { key, object });
      else entry.object = object;
    }
    const index = this.#index.emptyCopy();
    for (const entry of entries.values()) {
      try {
        index.insert(entry, index.valuesOf(entry.key, entry.object, "replace"));
      } catch (error) {
        if (onRejected === undefined || !(error instanceof IndexFuncError)) throw error;
        const instead = onRejected(error, entry.object);
        if (instead === undefined) {
          entries.delete(entry.key);
        } else {
          entry.object = instead;
          index.insert(entry, index.valuesOf(entry.key, instead, "replace"));
        }
      }
    }
    this.#entries = entries;
    this.#index = index;
    this.#resourceVersion = resourceVersion;
  }

  /**
   * Applies several writes in order, as one step. The store's resourceVersion becomes that of the last one's object,
   * if that has metadata.
   *
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  transaction(writes: readonly KeyedTransaction<T>[]): void {
    // All values first: once the loop is over nothing can throw.
    const planned: { readonly before: Values | undefined; readonly after: Values | undefined }[] = [];
    const valuesByKey = new Map<string, Values | undefined>();
    for (const write of writes) {
      const { key } = write;
      const before = valuesByKey.has(key) ? valuesByKey.get(key) : this.#storedValues(key, "transaction");
      const after = write.type === "Delete"
        ? undefined
        : this.#index.valuesOf(key, write.object, "transaction");
      planned.push({ before, after });
      valuesByKey.set(key, after);
    }
    for (let i = 0; i < writes.length; i++) {
      const write = writes[i];
      const { before, after } = planned[i];
      if (write.type === "Delete") this.#remove(write.key, before);
      else this.#put(write.key, write.object, before, after!);
    }
    if (writes.length > 0) this.#advance(writes[writes.length - 1].object);
  }

  /** Does nothing, as in client-go. */
  resync(): void {}

  /** Records that the content also stands at a later resourceVersion. */
  bookmark(resourceVersion: string): void {
    this.#resourceVersion = resourceVersion;
  }

  /**
   * The resourceVersion that the content stands at: of the last object written, the last
   * {@linkcode ThreadSafeStore.replace} or {@linkcode ThreadSafeStore.bookmark}; `""` before. Versions are not compared.
   */
  lastStoreSyncResourceVersion(): string {
    return this.#resourceVersion;
  }

  /**
   * The objects that share a value with `object` in an index, each once; in no order that may be relied on.
   *
   * @throws {IndexNotFoundError} There is no such index.
   * @throws What the index function throws for `object`.
   */
  index(indexName: I, object: T): T[] {
    return objectsOf(this.#index.entriesLike(indexName, object));
  }

  /**
   * The keys under a value of an index, ascending by code unit.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  indexKeys(indexName: I, value: string): string[] {
    const keys: string[] = [];
    for (const entry of this.#index.entries(indexName, value)) keys.push(entry.key);
    return keys.sort(byCodeUnit);
  }

  /** The values under which an index has objects; none for an unknown index. */
  listIndexFuncValues(indexName: I): string[] {
    return this.#index.values(indexName);
  }

  /**
   * The objects under a value of an index: a new array, in no order that may be relied on.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  byIndex(indexName: I, value: string): T[] {
    return objectsOf(this.#index.entries(indexName, value));
  }

  /** The index functions by name: a copy. */
  getIndexers(): Record<I, IndexFunc<T>> {
    return this.#index.indexers() as Record<I, IndexFunc<T>>;
  }

  /**
   * Adds indices, at any time: what is stored already is indexed at once.
   *
   * @returns This store, with the new names in its type.
   * @throws {IndexerConflictError} A name is taken; nothing was added.
   * @throws {IndexFuncError} An index function threw; nothing was added.
   */
  addIndexers<J extends string>(indexers: Indexers<T, J>): ThreadSafeStore<T, I | J> {
    this.#index.add(indexers, this.#entries.values());
    return this as unknown as ThreadSafeStore<T, I | J>;
  }

  #write(key: string, object: T, operation: string): T | undefined {
    const after = this.#index.valuesOf(key, object, operation);
    return this.#put(key, object, this.#storedValues(key, operation), after);
  }

  /** The values of what a key holds now; `undefined` for an absent key. */
  #storedValues(key: string, operation: string): Values | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : this.#index.valuesOf(key, entry.object, operation);
  }

  #put(key: string, object: T, before: Values | undefined, after: Values): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || before === undefined) {
      const added: Entry<T> = { key, object };
      this.#entries.set(key, added);
      this.#index.insert(added, after);
      return undefined;
    }
    const old = entry.object;
    entry.object = object;
    this.#index.move(entry, before, after);
    return old;
  }

  #remove(key: string, before: Values | undefined): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || before === undefined) return undefined;
    this.#entries.delete(key);
    this.#index.remove(entry, before);
    return entry.object;
  }

  #advance(object: unknown): void {
    const resourceVersion = resourceVersionOf(object);
    if (resourceVersion !== undefined) this.#resourceVersion = resourceVersion;
  }
}

function objectsOf<T>(entries: ReadonlySet<Entry<T>>): T[] {
  const objects: T[] = new Array(entries.size);
  let i = 0;
  for (const entry of entries) objects[i++] = entry.object;
  return objects;
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
