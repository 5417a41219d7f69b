import { resourceVersionOf } from "../meta/object.ts";
import type { Steps } from "../util/turns.ts";
import { BucketIterator, type Entry, newEntry } from "./index_bucket.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";
import { additionSteps, ContentReplacement, type NewContent, type StoreContent } from "./long_writes.ts";
import type { Indexer, KeyedTransaction, OnIndexFailure, ReplaceOptions } from "./store.ts";
import { StoreIndex, type Values } from "./store_index.ts";

/**
 * Objects by key, with indices and the resourceVersion that the content has reached.
 *
 * Every call is synchronous and either happens whole or, when it throws, not at all; so readers never see a
 * store whose indices disagree with its objects. Objects are handed out as they were put in: shared, and
 * read-only.
 *
 * Mirrors client-go's
 * [`ThreadSafeStore`](https://github.com/kubernetes/client-go/blob/master/tools/cache/thread_safe_store.go);
 * JavaScript's single thread stands in for its lock. If an index function throws, client-go panics; this
 * throws an `IndexFuncError` and leaves the store as it was.
 *
 * @example
 * ```ts
 * import { indexFuncToKeyFunc, ThreadSafeStore } from "@listwatch/cache/store";
 * const byUser = (object: { user: string }) => [object.user];
 * const store = new ThreadSafeStore<{ user: string }, "byUser">({ byUser });
 * store.add("one", { user: "ernie" });
 * store.add("two", { user: "bert" });
 * console.log(store.indexKeys("byUser", "bert")); // ["two"]
 * console.log(indexFuncToKeyFunc(byUser)({ user: "bert" })); // bert
 * ```
 */
export class ThreadSafeStore<T, I extends string = string> implements Lookups<T, I> {
  readonly #content: Content<T>;

  constructor(indexers: Indexers<T, I> = {} as Indexers<T, I>) {
    this.#content = new Content<T>(indexers);
  }

  /** How many objects are stored. */
  get size(): number {
    return this.#content.entries.size;
  }

  /** Puts an object in, whether or not the key is there; the same as {@linkcode ThreadSafeStore.update}. */
  add(key: string, object: T): T | undefined {
    return this.#write(key, object, "add");
  }

  /**
   * Puts an object in, whether or not the key is there, and returns the one it replaces.
   * The store's resourceVersion becomes the object's; a value without metadata leaves it.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  update(key: string, object: T): T | undefined {
    return this.#write(key, object, "update");
  }

  /** Removes a key and returns its object; an absent key is fine. Leaves the store's resourceVersion. */
  delete(key: string): T | undefined {
    return this.deleteWithObject(key, undefined);
  }

  /**
   * Removes a key and returns its object; the store's resourceVersion becomes that of `object`, the state
   * that the delete came with, if it has metadata. An absent key is fine.
   */
  deleteWithObject(key: string, object: unknown): T | undefined {
    const old = this.#content.remove(key);
    this.#advance(object);
    return old;
  }

  /** The object of a key. */
  get(key: string): T | undefined {
    return this.#content.entries.get(key)?.object;
  }

  /** As {@linkcode ThreadSafeStore.get}: stores have it under this name. */
  getByKey(key: string): T | undefined {
    return this.get(key);
  }

  /** Whether a key is there: an absent object differs from a stored `undefined`. */
  has(key: string): boolean {
    return this.#content.entries.has(key);
  }

  list(): T[] {
    const objects: T[] = new Array(this.#content.entries.size);
    let i = 0;
    for (const entry of this.#content.entries.values()) objects[i++] = entry.object;
    return objects;
  }

  listKeys(): string[] {
    return [...this.#content.entries.keys()];
  }

  *values(): IterableIterator<T> {
    for (const entry of this.#content.entries.values()) yield entry.object;
  }

  /**
   * Replaces the whole content; the last of several objects with one key counts. Index functions are not
   * asked again about an object that is stored already.
   * @param onIndexFailure Receives each object for which an index function throws, instead of throwing: what
   * it returns is stored in its place if that is an object, and the key is left out if it is `undefined`. An
   * object it returns must have been stored before.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  replace(
    objects: Iterable<readonly [key: string, object: T]>,
    resourceVersion: string,
    onIndexFailure?: OnIndexFailure<T>,
  ): void {
    const content = { objects: new Map(objects), resourceVersion };
    this.newReplacement(content, { onIndexFailure }).now();
  }

  /**
   * A {@linkcode ThreadSafeStore.replace} in steps, so that other work gets a turn between them. Nothing is
   * changed before it is committed.
   * @internal
   */
  newReplacement(content: NewContent<T>, options?: ReplaceOptions<T>): ContentReplacement<T> {
    return new ContentReplacement(this.#content, content, options);
  }

  /**
   * Applies several writes in order, as one step. The store's resourceVersion becomes that of the last one's
   * object, if that has metadata.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  transaction(writes: readonly KeyedTransaction<T>[]): void {
    // All values first: once the loop is over nothing can throw.
    const planned: (Values | undefined)[] = new Array(writes.length);
    for (let i = 0; i < writes.length; i++) {
      const write = writes[i];
      if (write.type !== "Delete") {
        planned[i] = this.#content.index.valuesOf(write.key, write.object, "transaction");
      }
    }
    for (let i = 0; i < writes.length; i++) {
      const write = writes[i];
      if (write.type === "Delete") this.#content.remove(write.key);
      else this.#content.put(write.key, write.object, planned[i]!);
    }
    if (writes.length > 0) this.#advance(writes[writes.length - 1].object);
  }

  /**
   * Has an object in place of another form of the same, if that is stored: no write, and no other values.
   * @internal
   */
  exchange(form: T & { readonly key: string }, object: T): void {
    const entry = this.#content.entries.get(form.key);
    if (entry?.object === form) entry.object = object;
  }

  /** Does nothing, as in client-go. */
  resync(): void {}

  /** Records that the content has reached a later resourceVersion. */
  bookmark(resourceVersion: string): void {
    this.#content.resourceVersion = resourceVersion;
  }

  /**
   * The resourceVersion that the content has reached: of the last object written, the last {@linkcode
   * ThreadSafeStore.replace} or {@linkcode ThreadSafeStore.bookmark}; `""` before. Versions are not compared.
   */
  lastStoreSyncResourceVersion(): string {
    return this.#content.resourceVersion;
  }

  index(indexName: I, object: T): T[] {
    return objectsOf(this.#content.index.entriesLike(indexName, object));
  }

  indexKeys(indexName: I, value: string): string[] {
    const entries = this.#content.index.bucket(indexName, value)?.list() ?? [];
    return entries.map((entry) => entry.key).sort();
  }

  listIndexFuncValues(indexName: I): string[] {
    return this.#content.index.values(indexName);
  }

  indexValueCounts(indexName: I): Map<string, number> {
    return this.#content.index.counts(indexName);
  }

  countByIndex(indexName: I, value: string): number {
    return this.#content.index.bucket(indexName, value)?.size ?? 0;
  }

  byIndex(indexName: I, value: string): T[] {
    return objectsOf(this.#content.index.bucket(indexName, value)?.list() ?? []);
  }

  eachByIndex(indexName: I, value: string): IterableIterator<T> {
    return new BucketIterator(this.#content.index.bucket(indexName, value));
  }

  byIndices(values: IndexValues<I>): T[] {
    const entries = this.#content.index.intersection(values);
    return entries === undefined ? this.list() : objectsOf(entries);
  }

  getIndexers(): Record<I, IndexFunc<T>> {
    return this.#content.index.indexers() as Record<I, IndexFunc<T>>;
  }

  addIndexers<J extends string>(indexers: Indexers<T, J>): ThreadSafeStore<T, I | J> {
    this.#content.addIndexers(indexers);
    return this as unknown as ThreadSafeStore<T, I | J>;
  }

  /**
   * {@linkcode ThreadSafeStore.addIndexers} in steps, so that other work gets a turn between them. The
   * indices are there from the last step on.
   * @internal
   */
  addIndexersSteps(indexers: Indexers<T>, options: { readonly stepObjects?: number } = {}): Steps {
    return additionSteps(this.#content, indexers, options.stepObjects);
  }

  #write(key: string, object: T, operation: string): T | undefined {
    const content = this.#content;
    const old = content.put(key, object, content.index.valuesOf(key, object, operation));
    this.#advance(object);
    return old;
  }

  #advance(object: unknown): void {
    const resourceVersion = resourceVersionOf(object);
    if (resourceVersion !== undefined) this.#content.resourceVersion = resourceVersion;
  }
}

/** The reading methods of a store, with or without a key function. */
type Lookups<T, I extends string> = Omit<
  Indexer<T, I>,
  "add" | "update" | "delete" | "get" | "replace" | "transaction" | "addIndexers"
>;

/** The entries of a store, their indices, and the resourceVersion that they have reached. */
class Content<T> implements StoreContent<T> {
  entries: Map<string, Entry<T>> = new Map();
  index: StoreIndex<T>;
  resourceVersion = "";
  writes = 0;
  indexChanges = 0;
  readonly journals: Set<Set<string>> = new Set();

  constructor(indexers: Indexers<T>) {
    this.index = new StoreIndex<T>(indexers);
  }

  put(key: string, object: T, values: Values): T | undefined {
    this.#wrote(key);
    const entry = this.entries.get(key);
    if (entry === undefined) {
      const added = newEntry(key, object);
      this.entries.set(key, added);
      this.index.insert(added, values);
      return undefined;
    }
    const old = entry.object;
    entry.object = object;
    this.index.move(entry, values);
    return old;
  }

  remove(key: string): T | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.#wrote(key);
    this.entries.delete(key);
    this.index.remove(entry);
    return entry.object;
  }

  /** Adds indices over what is stored. */
  addIndexers(indexers: Indexers<T>): void {
    this.index.add(indexers, this.entries);
    this.writes++;
    this.indexChanges++;
  }

  become(entries: Map<string, Entry<T>>, index: StoreIndex<T>): void {
    if (index.size !== this.index.size) this.indexChanges++;
    this.writes++;
    this.entries = entries;
    this.index = index;
  }

  #wrote(key: string): void {
    this.writes++;
    if (this.journals.size > 0) { for (const journal of this.journals) journal.add(key); }
  }
}

function objectsOf<T>(entries: readonly Entry<T>[]): T[] {
  const objects: T[] = new Array(entries.length);
  for (let i = 0; i < objects.length; i++) objects[i] = entries[i].object;
  return objects;
}
