/**
 * Stores and indexers: objects that know their own key.
 * @module
 */

import { type ExplicitKey, type KeyFunc, keyOf } from "../meta/keys.ts";
import type { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import { toError } from "../util/errors.ts";
import { finish, type Steps } from "../util/steps.ts";
import { type IndexFuncError, TransactionError, TransformError } from "./errors.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";
import { type Held, ObjectCodec, type ObjectCodecOptions } from "./object_codec.ts";
import { type KeyedTransaction, ThreadSafeStore } from "./thread_safe_store.ts";

/**
 * Decides what becomes of an object of a `replace` that cannot be indexed.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, OnRejected } from "@listwatch/cache";
 * const leaveOut: OnRejected<KubernetesObject> = (error) => {
 *   console.warn(`${error.key} cannot be indexed by ${error.indexName}`);
 *   return undefined;
 * };
 * ```
 */
export type OnRejected<T> = (error: IndexFuncError, object: T) => T | undefined;

/**
 * What may stand for an object where only its key matters.
 *
 * @example
 * ```ts
 * import { ExplicitKey, type Keyed, type KubernetesObject, metaNamespaceKey, newStore } from "@listwatch/cache";
 * const store = newStore<KubernetesObject>(metaNamespaceKey);
 * const which: Keyed<KubernetesObject> = new ExplicitKey("shop/web-1");
 * console.log(store.get(which)); // undefined
 * ```
 */
export type Keyed<T> = T | DeletedFinalStateUnknown<T> | ExplicitKey;

/**
 * One write of a transaction.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, Transaction } from "@listwatch/cache";
 * const write: Transaction<KubernetesObject> = { type: "Update", object: { metadata: { name: "web-1" } } };
 * ```
 */
export type Transaction<T> =
  | { readonly type: "Add" | "Update"; readonly object: T }
  | { readonly type: "Delete"; readonly object: Keyed<T> };

/**
 * Changes an object before it is stored; may change it in place, as long as nobody else holds it.
 *
 * @throws Whatever it likes: the write fails with a `TransformError`.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, TransformFunc } from "@listwatch/cache";
 * const dropManagedFields: TransformFunc<KubernetesObject> = (object) => {
 *   const { managedFields: _, ...metadata } = object.metadata ?? {};
 *   return { ...object, metadata };
 * };
 * ```
 */
export type TransformFunc<T> = (object: T) => T;

/**
 * Objects under the keys that a key function gives them.
 *
 * Calls are synchronous; a write that throws has changed nothing. Objects are handed out as they were put in: shared by
 * all readers, and read-only.
 *
 * Mirrors client-go's `Store`, with errors thrown instead of returned, and the old object returned by a write.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey, newStore, type Store } from "@listwatch/cache";
 * const store: Store<{ metadata: { name: string } }> = newStore(metaNamespaceKey);
 * store.add({ metadata: { name: "a" } });
 * console.log(store.getByKey("a")?.metadata.name); // a
 * ```
 */
export interface Store<T> {
  /** How many objects are stored. */
  readonly size: number;
  /**
   * Puts an object in, whether or not its key is there, and returns the one it replaces.
   *
   * @throws {KeyError} The key function threw.
   * @throws {TransformError} The transform threw.
   * @throws {IndexFuncError} An index function threw.
   */
  add(object: T): T | undefined;
  /** The same as {@linkcode Store.add}. */
  update(object: T): T | undefined;
  /**
   * Removes an object and returns the stored one; an absent one is fine.
   *
   * @throws {KeyError} The key function threw.
   */
  delete(object: Keyed<T>): T | undefined;
  /** All objects: a new array, in no order that may be relied on. */
  list(): T[];
  /** All keys: a new array, in no order that may be relied on. */
  listKeys(): string[];
  /** All objects without a copy; do not write to the store while iterating. */
  values(): IterableIterator<T>;
  /**
   * The stored object that has the key of the given one.
   *
   * @throws {KeyError} The key function threw.
   */
  get(object: Keyed<T>): T | undefined;
  /** The object of a key. */
  getByKey(key: string): T | undefined;
  /** Whether a key is there. */
  has(key: string): boolean;
  /**
   * Replaces the whole content, which then stands at `resourceVersion`; of several objects with one key the last counts.
   *
   * @param onRejected Told of each object for which an index function throws, instead of throwing. What it returns, an
   * object that was stored before, is kept in its place; the key is left out if that is `undefined`.
   * @throws {KeyError} The key function threw; nothing was changed.
   * @throws {TransformError} The transform threw; nothing was changed.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  replace(objects: readonly T[], resourceVersion: string, onRejected?: OnRejected<T>): void;
  /**
   * Applies several writes in order, as one step. Objects are not transformed.
   *
   * @throws {TransactionError} Some had no key; the others were applied.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  transaction(writes: readonly Transaction<T>[]): void;
  /** Does nothing in a store; queues resend what is known. */
  resync(): void;
  /** Records that the content also stands at a later resourceVersion. */
  bookmark(resourceVersion: string): void;
  /** The resourceVersion that the content stands at; `""` before the first write. */
  lastStoreSyncResourceVersion(): string;
}

/**
 * A store with indices. The names given at construction are the ones that lookups accept, checked by the compiler.
 *
 * Mirrors client-go's `Indexer`.
 *
 * @example
 * ```ts
 * import { type Indexer, metaNamespaceIndex, metaNamespaceKey, newIndexer } from "@listwatch/cache";
 * type Named = { metadata: { namespace: string; name: string } };
 * const indexer: Indexer<Named, "namespace"> = newIndexer<Named, "namespace">(metaNamespaceKey, {
 *   namespace: metaNamespaceIndex,
 * });
 * indexer.add({ metadata: { namespace: "shop", name: "web-1" } });
 * console.log(indexer.byIndex("namespace", "shop").length); // 1
 * ```
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
   * The objects under a value of an index, one by one and without an array of them; in no order that may be relied on.
   *
   * The store may be written to meanwhile. Each object that stays under the value from the call until its turn comes
   * once, in its state of that moment. One that has left the value is passed over (and perhaps also if it is back), one
   * that is new under it since the call does not come. A `replace` is not seen: what was there before it comes.
   *
   * The first call after a change of what is under the value costs O(what is under it), others O(1) until they are read.
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
   * How many objects there are under each value of an index: a new map, in no order that may be relied on. O(values).
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  indexValueCounts(indexName: I): Map<string, number>;
  /**
   * The objects that are under a value in each of several indices (under all of them, where several values are named
   * for one index), such as `{ byNode: "node-1", namespace: "shop" }`: a new array, in no order that may be relied on.
   * All objects, where nothing is named.
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

/**
 * Options of {@linkcode newStore} and {@linkcode newIndexer}.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, newStore, type StoreOptions } from "@listwatch/cache";
 * const options: StoreOptions<KubernetesObject> = { transform: ({ metadata }) => ({ metadata }) };
 * const names = newStore<KubernetesObject>(metaNamespaceKey, options);
 * ```
 */
export interface StoreOptions<T> {
  /** Runs on every object of `add`, `update` and `replace`, after its key was computed. None by default. */
  readonly transform?: TransformFunc<T>;
  /**
   * How objects are held: `objects`, the default, as they are; `encoded` as short texts that are decoded when they are
   * read, for a sixth of the memory. Keys and indices are the same in both, and so are all calls; but a decoded object is
   * another one than was put in, equal to it, unless it was written or looked up a short while ago. Only what can be
   * written as JSON is encoded; other values are held as they are, and a property that is `undefined` is left out.
   */
  readonly storage?: "objects" | "encoded";
}

/**
 * Makes an empty store.
 *
 * Mirrors client-go's `NewStore`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey, newStore } from "@listwatch/cache";
 * const store = newStore<{ metadata: { name: string } }>(metaNamespaceKey);
 * store.add({ metadata: { name: "a" } });
 * console.log(store.listKeys()); // ["a"]
 * ```
 */
export function newStore<T>(keyFunc: KeyFunc, options: StoreOptions<T> = {}): Store<T> {
  return newIndexer<T, never>(keyFunc, {}, options);
}

/**
 * Makes an empty store with indices.
 *
 * Mirrors client-go's `NewIndexer`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey, newIndexer } from "@listwatch/cache";
 * interface Pod {
 *   metadata: { name: string };
 *   spec: { nodeName: string };
 * }
 * const pods = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode: (pod) => [pod.spec.nodeName] });
 * pods.add({ metadata: { name: "web-1" }, spec: { nodeName: "node-1" } });
 * console.log(pods.listIndexFuncValues("byNode")); // ["node-1"]
 * ```
 */
export function newIndexer<T, I extends string = string>(
  keyFunc: KeyFunc,
  indexers: Indexers<T, I>,
  options: StoreOptions<T> = {},
): Indexer<T, I> {
  const { storage = "objects", transform } = options;
  if (storage === "encoded") return newEncodedIndexer(keyFunc, indexers, options).indexer;
  if (storage === "objects") return new Cache<T, I>(keyFunc, new ThreadSafeStore<T, I>(indexers), transform);
  throw new TypeError(
    `Cannot make a store with the storage ${JSON.stringify(storage)}: it must be "objects" or "encoded"`,
  );
}

/** An indexer over encoded objects, and the same store as seen by those who pass objects on without looking inside. */
export interface EncodedIndexer<T, I extends string> {
  readonly indexer: Indexer<T, I>;
  /** Objects as they are held. What is not encoded yet will be. */
  readonly held: Indexer<Held<T>, I>;
  readonly codec: ObjectCodec<T>;
}

/** Makes an empty indexer with `storage: "encoded"`. */
export function newEncodedIndexer<T, I extends string>(
  keyFunc: KeyFunc,
  indexers: Indexers<T, I>,
  options: Pick<StoreOptions<T>, "transform"> & ObjectCodecOptions = {},
): EncodedIndexer<T, I> {
  const codec = new ObjectCodec<T>(keyFunc, options);
  const storage = new ThreadSafeStore<Held<T>, I>(codec.wrapped(indexers));
  return {
    indexer: new Cache<T, I>(keyFunc, storage, options.transform, codec),
    held: new Cache<Held<T>, I>(codec.keyFunc, storage, (object) => codec.encode(object)),
    codec,
  };
}

/** A store that can be replaced in steps: see `ThreadSafeStore.replaceSteps`. */
export interface ReplacedInSteps<T> {
  replaceSteps(objects: readonly T[], resourceVersion: string, onRejected?: OnRejected<T>): Steps;
}

/** A key function over a {@linkcode ThreadSafeStore}: client-go's `cache`. */
class Cache<T, I extends string> implements Indexer<T, I>, ReplacedInSteps<T> {
  readonly #keyFunc: KeyFunc;
  readonly #storage: ThreadSafeStore<Held<T>, I>;
  readonly #transform: TransformFunc<T> | undefined;
  readonly #codec: ObjectCodec<T> | undefined;

  constructor(
    keyFunc: KeyFunc,
    storage: ThreadSafeStore<T, I> | ThreadSafeStore<Held<T>, I>,
    transform: TransformFunc<T> | undefined,
    codec?: ObjectCodec<T>,
  ) {
    this.#keyFunc = keyFunc;
    this.#storage = storage as ThreadSafeStore<Held<T>, I>;
    this.#transform = transform;
    this.#codec = codec;
  }

  get size(): number {
    return this.#storage.size;
  }

  add(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "add");
    return this.#opened(this.#storage.add(key, this.#held(key, this.#transformed(object))));
  }

  update(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "update");
    return this.#opened(this.#storage.update(key, this.#held(key, this.#transformed(object))));
  }

  delete(object: Keyed<T>): T | undefined {
    return this.#opened(this.#storage.deleteWithObject(keyOf(this.#keyFunc, object, "delete"), object));
  }

  list(): T[] {
    return this.#allOpened(this.#storage.list());
  }

  listKeys(): string[] {
    return this.#storage.listKeys();
  }

  values(): IterableIterator<T> {
    const held = this.#storage.values();
    return this.#codec === undefined ? held as IterableIterator<T> : this.#codec.peekAll(held);
  }

  get(object: Keyed<T>): T | undefined {
    return this.#opened(this.#storage.get(keyOf(this.#keyFunc, object, "get")));
  }

  getByKey(key: string): T | undefined {
    return this.#opened(this.#storage.get(key));
  }

  has(key: string): boolean {
    return this.#storage.has(key);
  }

  replace(objects: readonly T[], resourceVersion: string, onRejected?: OnRejected<T>): void {
    finish(this.replaceSteps(objects, resourceVersion, onRejected));
  }

  *replaceSteps(objects: readonly T[], resourceVersion: string, onRejected?: OnRejected<T>): Steps {
    const keyed: [string, Held<T>][] = [];
    for (let i = 0; i < objects.length; i++) {
      const key = keyOf(this.#keyFunc, objects[i], "replace");
      keyed.push([key, this.#held(key, this.#transformed(objects[i]))]);
      if (i % 128 === 127) yield;
    }
    yield* this.#storage.replaceSteps(
      keyed,
      resourceVersion,
      onRejected && ((error, held) => {
        const instead = onRejected(error, this.#opened(held) as T);
        return instead === undefined ? undefined : this.#held(error.key, instead);
      }),
    );
  }

  transaction(writes: readonly Transaction<T>[]): void {
    const keyed = keyedWrites(this.#keyFunc, writes);
    const { writes: held } = keyed as { writes: KeyedTransaction<Held<T>>[] };
    if (this.#codec !== undefined) {
      for (let i = 0; i < held.length; i++) {
        const write = held[i];
        if (write.type !== "Delete") {
          held[i] = { ...write, object: this.#codec.encode(write.object, write.key) };
        }
      }
    }
    this.#storage.transaction(held);
    if (keyed.error !== undefined) throw keyed.error;
  }

  resync(): void {
    this.#storage.resync();
  }

  bookmark(resourceVersion: string): void {
    this.#storage.bookmark(resourceVersion);
  }

  lastStoreSyncResourceVersion(): string {
    return this.#storage.lastStoreSyncResourceVersion();
  }

  index(indexName: I, object: T): T[] {
    return this.#allOpened(this.#storage.index(indexName, object));
  }

  indexKeys(indexName: I, value: string): string[] {
    return this.#storage.indexKeys(indexName, value);
  }

  listIndexFuncValues(indexName: I): string[] {
    return this.#storage.listIndexFuncValues(indexName);
  }

  byIndex(indexName: I, value: string): T[] {
    return this.#allOpened(this.#storage.byIndex(indexName, value));
  }

  eachByIndex(indexName: I, value: string): IterableIterator<T> {
    const held = this.#storage.eachByIndex(indexName, value);
    return this.#codec === undefined ? held as IterableIterator<T> : this.#codec.peekAll(held);
  }

  countByIndex(indexName: I, value: string): number {
    return this.#storage.countByIndex(indexName, value);
  }

  indexValueCounts(indexName: I): Map<string, number> {
    return this.#storage.indexValueCounts(indexName);
  }

  byIndices(values: IndexValues<I>): T[] {
    return this.#allOpened(this.#storage.byIndices(values));
  }

  getIndexers(): Record<I, IndexFunc<T>> {
    const indexers = this.#storage.getIndexers();
    return this.#codec === undefined ? indexers as Record<I, IndexFunc<T>> : this.#codec.unwrapped(indexers);
  }

  addIndexers<J extends string>(indexers: Indexers<T, J>): Indexer<T, I | J> {
    this.#storage.addIndexers(
      this.#codec === undefined ? indexers as Indexers<Held<T>, J> : this.#codec.wrapped(indexers),
    );
    return this as unknown as Indexer<T, I | J>;
  }

  #transformed(object: T): T {
    return this.#transform === undefined ? object : transformed(this.#transform, object);
  }

  #held(key: string, object: T): Held<T> {
    return this.#codec === undefined ? object : this.#codec.encode(object, key);
  }

  #opened(held: Held<T> | undefined): T | undefined {
    return this.#codec === undefined || held === undefined ? held as T | undefined : this.#codec.decode(held);
  }

  #allOpened(held: Held<T>[]): T[] {
    if (this.#codec !== undefined) {
      for (let i = 0; i < held.length; i++) held[i] = this.#codec.peek(held[i]) as Held<T>;
    }
    return held as T[];
  }
}

/**
 * Runs a transform.
 *
 * @throws {TransformError} It threw.
 */
export function transformed<T>(transform: TransformFunc<T>, object: T): T {
  try {
    return transform(object);
  } catch (error) {
    throw new TransformError(object, error);
  }
}

/** The writes of a transaction that have a key, with it; and the error to throw, once they are applied, about the others. */
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
 * Decides what becomes of an object that a transform throws for: what takes its place, or nothing.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, OnTransformRejected } from "@listwatch/cache";
 * const leaveOut: OnTransformRejected<KubernetesObject> = (error) => {
 *   console.warn(error.message);
 *   return undefined;
 * };
 * ```
 */
export type OnTransformRejected<T> = (error: TransformError, object: T) => T | undefined;

/**
 * Runs a transform on every object.
 *
 * @param onRejected Told of each one it throws for, instead of throwing; what it returns takes the object's place.
 * @throws {TransformError} It threw, and there is no `onRejected`.
 */
export function transformedAll<T>(
  transform: TransformFunc<T>,
  objects: readonly T[],
  onRejected?: OnTransformRejected<T>,
): T[] {
  const accepted: T[] = [];
  for (const object of objects) {
    try {
      accepted.push(transformed(transform, object));
    } catch (error) {
      if (onRejected === undefined) throw error;
      const instead = onRejected(error as TransformError, object);
      if (instead !== undefined) accepted.push(instead);
    }
  }
  return accepted;
}
