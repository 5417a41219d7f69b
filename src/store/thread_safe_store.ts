/**
 * The storage under every store: objects by key, with indices.
 * @module
 */

import { resourceVersionOf } from "../meta/object.ts";
import { finish, STEP_OBJECTS, type Steps } from "../util/steps.ts";
import { IndexFuncError } from "./errors.ts";
import { BucketIterator } from "./index_bucket.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";
import type { OnRejected } from "./store.ts";
import { type Entry, newEntry, StoreIndex, type Values } from "./store_index.ts";
import type { KeyedTransaction } from "./transaction.ts";

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
  /** Tells a `replace` that is under way of writes in its middle. */
  #writes = 0;

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
   */
  deleteWithObject(key: string, object: unknown): T | undefined {
    const old = this.#remove(key);
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
   * Replaces the whole content; of several objects with one key the last counts. Index functions are not asked again
   * about an object that is stored already.
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
    finish(this.replaceSteps([...objects], resourceVersion, onRejected)); // it may be read twice
  }

  /**
   * {@linkcode ThreadSafeStore.replace} in steps of less than a millisecond, for those who give way to others between
   * them. The last step replaces the content; until then nothing is changed, and if the store is written to meanwhile,
   * that step does all over again what was done before it. The objects are read more than once.
   *
   * What is not much different from the content is put in one by one; otherwise the content is made anew. So a list of
   * what is known needs next to no memory, and neither way takes long in one turn.
   *
   * @internal
   */
  *replaceSteps(
    objects: Iterable<readonly [key: string, object: T]>,
    resourceVersion: string,
    onRejected?: OnRejected<T>,
  ): Steps {
    const writes = this.#writes;
    const differences = yield* this.#differences(objects);
    const apply = differences === undefined
      ? yield* this.#rebuilt(objects, onRejected)
      : this.#patched(differences, onRejected);
    if (this.#writes !== writes) return finish(this.replaceSteps(objects, resourceVersion, onRejected));
    this.#writes++;
    apply();
    this.#resourceVersion = resourceVersion;
  }

  /** Where the content differs from these objects; `undefined` if that is at so many places that it is made anew. */
  *#differences(
    objects: Iterable<readonly [key: string, object: T]>,
  ): Generator<undefined, Differences<T> | undefined, undefined> {
    const entries = this.#entries;
    const most = Math.min(MOST_DIFFERENCES, entries.size >> 1);
    const changed = new Map<string, T>();
    const present = new Set<Entry<T>>();
    let step = 0;
    for (const [key, object] of objects) {
      const entry = entries.get(key);
      if (entry !== undefined) present.add(entry);
      if (entry !== undefined && entry.object === object) changed.delete(key);
      else if (changed.set(key, object).size > most) return undefined;
      if (++step % STEP_OBJECTS === 0) yield;
    }
    const gone: string[] = [];
    if (entries.size - present.size > most) return undefined;
    if (present.size < entries.size) {
      for (const entry of entries.values()) {
        if (!present.has(entry)) gone.push(entry.key);
        if (++step % STEP_OBJECTS === 0) yield;
      }
    }
    return { changed, gone };
  }

  /** The content with a few differences; returns what puts them in. */
  #patched({ changed, gone }: Differences<T>, onRejected: OnRejected<T> | undefined): () => void {
    const puts: [key: string, object: T, values: Values][] = [];
    for (const [key, object] of changed) {
      const accepted = accept(this.#index, this.#entries.get(key), [key, object], onRejected);
      if (accepted !== undefined) puts.push([key, accepted.object, accepted.values]);
      else if (this.#entries.has(key)) gone.push(key);
    }
    return () => {
      for (const key of gone) this.#remove(key);
      for (const [key, object, values] of puts) this.#put(key, object, values);
    };
  }

  /** All of the content anew; returns what puts it in the place of the old. */
  *#rebuilt(
    objects: Iterable<readonly [key: string, object: T]>,
    onRejected: OnRejected<T> | undefined,
  ): Generator<undefined, () => void, undefined> {
    const entries = new Map<string, Entry<T>>();
    let step = 0;
    for (const [key, object] of objects) {
      const entry = entries.get(key);
      if (entry === undefined) entries.set(key, newEntry(key, object));
      else entry.object = object;
      if (++step % STEP_OBJECTS === 0) yield;
    }
    const index = this.#index.emptyCopy();
    for (const entry of entries.values()) {
      const stored = this.#entries.get(entry.key);
      if (stored !== undefined && stored.object === entry.object) {
        index.insert(entry, this.#index.valuesAt(stored));
      } else {
        const accepted = accept(index, stored, [entry.key, entry.object], onRejected);
        if (accepted === undefined) {
          entries.delete(entry.key);
        } else {
          entry.object = accepted.object;
          index.insert(entry, accepted.values);
        }
      }
      if (++step % STEP_OBJECTS === 0) yield;
    }
    return () => {
      this.#entries = entries;
      this.#index = index;
    };
  }

  /**
   * Applies several writes in order, as one step. The store's resourceVersion becomes that of the last one's object,
   * if that has metadata.
   *
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  transaction(writes: readonly KeyedTransaction<T>[]): void {
    // All values first: once the loop is over nothing can throw.
    const planned: (Values | undefined)[] = new Array(writes.length);
    for (let i = 0; i < writes.length; i++) {
      const write = writes[i];
      if (write.type !== "Delete") planned[i] = this.#index.valuesOf(write.key, write.object, "transaction");
    }
    for (let i = 0; i < writes.length; i++) {
      const write = writes[i];
      if (write.type === "Delete") this.#remove(write.key);
      else this.#put(write.key, write.object, planned[i]!);
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
    const entries = this.#index.bucket(indexName, value)?.list() ?? [];
    return entries.map((entry) => entry.key).sort(byCodeUnit);
  }

  /** The values under which an index has objects; none for an unknown index. */
  listIndexFuncValues(indexName: I): string[] {
    return this.#index.values(indexName);
  }

  /**
   * How many objects there are under each value of an index: a new map, in no order that may be relied on. O(values).
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  indexValueCounts(indexName: I): Map<string, number> {
    return this.#index.counts(indexName);
  }

  /**
   * How many objects are under a value of an index. O(1).
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  countByIndex(indexName: I, value: string): number {
    return this.#index.bucket(indexName, value)?.size ?? 0;
  }

  /**
   * The objects under a value of an index: a new array, in no order that may be relied on.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  byIndex(indexName: I, value: string): T[] {
    return objectsOf(this.#index.bucket(indexName, value)?.list() ?? []);
  }

  /**
   * The objects under a value of an index, one by one and without an array of them; in no order that may be relied on.
   *
   * The store may be written to meanwhile. Each object that stays under the value from the call until its turn comes
   * once, in its state of that moment. One that has left the value is passed over (and perhaps also if it is back), one
   * that is new under it since the call does not come. What comes after a `replace` may be of before it.
   *
   * The first call after a change of what is under the value costs O(what is under it), others O(1) until they are read.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  eachByIndex(indexName: I, value: string): IterableIterator<T> {
    return new BucketIterator(this.#index.bucket(indexName, value));
  }

  /**
   * The objects that are under a value in each of several indices (under all of them, where several values are named
   * for one index): a new array, in no order that may be relied on. All objects, where nothing is named.
   *
   * Costs what the rarest of these values holds, times the number of values.
   *
   * @throws {IndexNotFoundError} There is no such index.
   * @throws {TypeError} A value is not a string.
   */
  byIndices(values: IndexValues<I>): T[] {
    const entries = this.#index.intersection(values);
    return entries === undefined ? this.list() : objectsOf(entries);
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
    this.#writes++;
    this.#index.add(indexers, this.#entries);
    return this as unknown as ThreadSafeStore<T, I | J>;
  }

  #write(key: string, object: T, operation: string): T | undefined {
    return this.#put(key, object, this.#index.valuesOf(key, object, operation));
  }

  #put(key: string, object: T, values: Values): T | undefined {
    this.#writes++;
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const added = newEntry(key, object);
      this.#entries.set(key, added);
      this.#index.insert(added, values);
      return undefined;
    }
    const old = entry.object;
    entry.object = object;
    this.#index.move(entry, values);
    return old;
  }

  #remove(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#writes++;
    this.#entries.delete(key);
    this.#index.remove(entry);
    return entry.object;
  }

  #advance(object: unknown): void {
    const resourceVersion = resourceVersionOf(object);
    if (resourceVersion !== undefined) this.#resourceVersion = resourceVersion;
  }
}

/** What a `replace` changes. */
interface Differences<T> {
  /** Objects that are not stored, or not so. */
  readonly changed: ReadonlyMap<string, T>;
  /** Keys that the new content does not have. */
  readonly gone: string[];
}

/** Up to so many, and half of what is stored, are put in one by one, in one step. */
const MOST_DIFFERENCES = 1_000;

/**
 * What is stored of an object, and under which values: itself, or what is to take its place where an index function
 * throws; `undefined` for nothing. What is stored already stays under its values: a function that throws now for what
 * it accepted before must not cost the whole list.
 */
function accept<T>(
  index: StoreIndex<T>,
  stored: Entry<T> | undefined,
  [key, object]: readonly [key: string, object: T],
  onRejected: OnRejected<T> | undefined,
): { readonly object: T; readonly values: Values } | undefined {
  try {
    return { object, values: index.valuesOf(key, object, "replace") };
  } catch (error) {
    if (onRejected === undefined || !(error instanceof IndexFuncError)) throw error;
    const instead = onRejected(error, object);
    if (instead === undefined) return undefined;
    const isStored = stored !== undefined && stored.object === instead;
    return {
      object: instead,
      values: isStored ? index.valuesAt(stored) : index.valuesOf(key, instead, "replace"),
    };
  }
}

function objectsOf<T>(entries: readonly Entry<T>[]): T[] {
  const objects: T[] = new Array(entries.length);
  for (let i = 0; i < objects.length; i++) objects[i] = entries[i].object;
  return objects;
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
