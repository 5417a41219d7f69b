/**
 * Stores and indexers over a {@linkcode ThreadSafeStore}.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { STEP_OBJECTS, type Steps } from "../util/steps.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";
import type { Indexer } from "./indexer.ts";
import { type Held, ObjectCodec, type ObjectCodecOptions, setEncodedContent } from "./object_codec.ts";
import {
  type IndexedInSteps,
  type Keyed,
  type OnRejected,
  type ReplacedInSteps,
  type Replacement,
  replaceNow,
  type ReplaceOptions,
  type Store,
  type Transaction,
} from "./store.ts";
import { ThreadSafeStore } from "./thread_safe_store.ts";
import { type KeyedTransaction, keyedWrites } from "./transaction.ts";
import { transformed, type TransformFunc } from "./transform.ts";

/**
 * Options of {@linkcode newStore} and {@linkcode newIndexer}.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
 * import { newStore, type StoreOptions } from "@listwatch/cache/store";
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
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newStore } from "@listwatch/cache/store";
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
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
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
  const wrapped = codec.wrapped(indexers);
  const storage = new ThreadSafeStore<Held<T>, I>(wrapped);
  codec.asksEarly(wrapped);
  const indexer = new Cache<T, I>(keyFunc, storage, options.transform, codec);
  const held = new Cache<Held<T>, I>(codec.keyFunc, storage, (object) => codec.encode(object));
  setEncodedContent(indexer, { held: held as unknown as Indexer<Held<T>>, codec });
  return { indexer, held, codec };
}

/** A key function over a {@linkcode ThreadSafeStore}: client-go's `cache`. */
class Cache<T, I extends string> implements Indexer<T, I>, ReplacedInSteps<T>, IndexedInSteps<T> {
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
    replaceNow(this.newReplacement(objects, resourceVersion, onRejected === undefined ? {} : { onRejected }));
  }

  newReplacement(
    objects: readonly T[],
    resourceVersion: string,
    { onRejected, stepObjects = STEP_OBJECTS }: ReplaceOptions<T> = {},
  ): Replacement {
    let replacement: Replacement | undefined;
    const begin = (held: readonly Held<T>[], keys: readonly string[] | undefined) =>
      this.#storage.newReplacement(
        { objects: { [Symbol.iterator]: () => this.#keyed(held, keys) }, resourceVersion },
        {
          stepObjects,
          ...(onRejected && {
            onRejected: (error, held) => {
              const instead = onRejected(error, this.#opened(held) as T);
              return instead === undefined ? undefined : this.#held(error.key, instead);
            },
          }),
        },
      );
    const heldSteps = () => this.#heldSteps(objects, stepObjects);
    return {
      *prepare() {
        if (replacement === undefined) {
          const { held, keys } = yield* heldSteps();
          replacement = begin(held, keys);
        }
        yield* replacement.prepare();
      },
      commit: () => replacement?.commit() ?? false,
    };
  }

  /** Objects as they will be held; with the keys that they had, unless they are held as they are. */
  *#heldSteps(
    objects: readonly T[],
    stepObjects: number,
  ): Generator<undefined, { held: readonly Held<T>[]; keys: readonly string[] | undefined }, undefined> {
    if (this.#transform === undefined && this.#codec === undefined) return { held: objects, keys: undefined };
    const held: Held<T>[] = [];
    const keys: string[] = [];
    for (const object of objects) {
      const key = keyOf(this.#keyFunc, object, "replace");
      held.push(this.#held(key, this.#transformed(object)));
      if (keys.push(key) % stepObjects === 0) yield;
    }
    return { held, keys };
  }

  /** Pairs are made when they are asked for: a long list of them would be the most that a `replace` needs. */
  *#keyed(
    held: readonly Held<T>[],
    keys: readonly string[] | undefined,
  ): IterableIterator<[key: string, held: Held<T>]> {
    for (let i = 0; i < held.length; i++) {
      yield [keys?.[i] ?? keyOf(this.#keyFunc, held[i], "replace"), held[i]];
    }
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
    const wrapped = this.#wrapped(indexers);
    this.#storage.addIndexers(wrapped);
    this.#codec?.asksEarly(wrapped);
    return this as unknown as Indexer<T, I | J>;
  }

  *addIndexersSteps(indexers: Indexers<T>, options?: { readonly stepObjects?: number }): Steps {
    const wrapped = this.#wrapped(indexers);
    yield* this.#storage.addIndexersSteps(wrapped, options);
    this.#codec?.asksEarly(wrapped);
  }

  #wrapped<J extends string>(indexers: Indexers<T, J>): Indexers<Held<T>, J> {
    return this.#codec === undefined ? indexers as Indexers<Held<T>, J> : this.#codec.wrapped(indexers);
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
