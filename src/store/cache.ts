/**
 * Stores and indexers over a {@linkcode ThreadSafeStore}.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { STEP_OBJECTS, type Steps } from "../util/turns.ts";
import {
  type FieldIndexFunc,
  type Indexers,
  type IndexFunc,
  type IndexValues,
  readsLiveMetadata,
} from "./index_func.ts";
import {
  type IndexedInSteps,
  type Indexer,
  type Keyed,
  type KeyedTransaction,
  keyedWrites,
  type OnIndexFailure,
  type ReplacedInSteps,
  type Replacement,
  replaceNow,
  type ReplaceOptions,
  type Store,
  type Transaction,
} from "./store.ts";
import {
  type Held,
  type HeldTransform,
  type Holding,
  type HoldingOptions,
  type NewHolding,
  UnopenedHolding,
} from "./holding.ts";
import { TextHolding } from "./text_holding.ts";
import { ThreadSafeStore } from "./thread_safe_store.ts";
import { transformed, type TransformFunc } from "./transform.ts";

/**
 * Options of {@linkcode newStore} and {@linkcode newIndexer}.
 *
 * @category Stores
 */
export interface StoreOptions<T> {
  /** Runs on every object of `add`, `update` and `replace`, after its key was computed. None by default. */
  readonly transform?: TransformFunc<T>;
  /**
   * How objects are held: as they are by default; as short texts with `shortTexts()`. Keys, indices and all
   * calls are the same.
   */
  readonly storage?: NewHolding | undefined;
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
 *
 * @category Stores
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
 *
 * @category Stores
 */
export function newIndexer<T, I extends string = string>(
  keyFunc: KeyFunc,
  indexers: Indexers<T, I>,
  options: StoreOptions<T> = {},
): Indexer<T, I> {
  return newCache(keyFunc, indexers, options);
}

/** Makes the store of an informer: {@linkcode newIndexer}, with the options of its holding. */
export function newCache<T, I extends string>(
  keyFunc: KeyFunc,
  indexers: Indexers<T, I>,
  { storage, transform, ...holding }: StoreOptions<T> & HoldingOptions,
): Cache<T, I> {
  if (storage === undefined) {
    return new Cache(new TextHolding<T>(keyFunc, undefined, holding), indexers, transform);
  }
  if (typeof storage === "function") {
    return new Cache(storage<T>(keyFunc, holding), indexers, transform);
  }
  throw new TypeError(
    `Cannot make a store with the storage ${
      JSON.stringify(storage)
    }: import and pass shortTexts(), or leave it out`,
  );
}

/** A store whose objects can be written by key, for a writer that knows the keys. */
export interface KeyedStore<T> extends Store<T> {
  /** What is below the key function: objects in their held form. */
  readonly keyed: Pick<
    ThreadSafeStore<T>,
    "size" | "get" | "update" | "deleteWithObject" | "bookmark" | "lastStoreSyncResourceVersion"
  >;
  readonly holding: Pick<Holding<T>, "keyFunc" | "isSameContent" | "listStored"> & {
    /** The held form of an object of this key. */
    hold(object: T, key: string): T;
  };
}

/** A key function and a holding over a {@linkcode ThreadSafeStore}: client-go's `cache`. */
export class Cache<T, I extends string> implements Indexer<T, I>, ReplacedInSteps<T>, IndexedInSteps<T> {
  readonly #keyFunc: KeyFunc;
  readonly #storage: ThreadSafeStore<Held<T>, I>;
  /** What objects pass through before they are stored, if anything. */
  readonly #take: HeldTransform<T> | undefined;
  /** The index functions as they were added, by those for the held form. */
  readonly #added = new WeakMap<IndexFunc<Held<T>>, IndexFunc<T>>();
  readonly holding: Holding<T>;
  #held: Cache<Held<T>, I> | undefined;
  readonly #listed = (held: Held<T>): T => this.holding.openListed(held);
  readonly #listedAll = (held: Held<T>[]): T[] => held.map(this.#listed);
  readonly #listedEach = (held: IterableIterator<Held<T>>): IterableIterator<T> => each(held, this.#listed);

  /** Makes an empty store, or one more view of the storage of another. */
  constructor(
    holding: Holding<T>,
    indexers: Indexers<T, I>,
    transform?: TransformFunc<T>,
    storage?: ThreadSafeStore<Held<T>, I>,
  ) {
    this.holding = holding;
    this.#keyFunc = holding.keyFunc;
    this.#take = holding.heldTransform(transform && ((object) => transformed(transform, object)));
    if (storage !== undefined) {
      this.#storage = storage;
      return;
    }
    const held = this.#heldIndexers(indexers);
    this.#storage = new ThreadSafeStore<Held<T>, I>(held);
    holding.indexersAdded(held);
  }

  get keyed(): ThreadSafeStore<Held<T>, I> {
    return this.#storage;
  }

  /** The same store with its objects in their held form. */
  get held(): Cache<Held<T>, I> {
    return this.#held ??= this.holding.convert<Cache<T, I>, Cache<Held<T>, I>>(this, newHeldView);
  }

  get size(): number {
    return this.#storage.size;
  }

  add(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "add");
    return this.#opened(this.#storage.add(key, this.#taken(object, key)));
  }

  update(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "update");
    return this.#opened(this.#storage.update(key, this.#taken(object, key)));
  }

  delete(object: Keyed<T>): T | undefined {
    return this.#opened(this.#storage.deleteWithObject(keyOf(this.#keyFunc, object, "delete"), object));
  }

  list(): T[] {
    return this.holding.convert(this.#storage.list(), this.#listedAll);
  }

  listKeys(): string[] {
    return this.#storage.listKeys();
  }

  values(): IterableIterator<T> {
    return this.holding.convert(this.#storage.values(), this.#listedEach);
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

  replace(objects: readonly T[], resourceVersion: string, onIndexFailure?: OnIndexFailure<T>): void {
    replaceNow(
      this.newReplacement(objects, resourceVersion, onIndexFailure === undefined ? {} : { onIndexFailure }),
    );
  }

  newReplacement(
    objects: readonly T[],
    resourceVersion: string,
    { onIndexFailure, stepObjects = STEP_OBJECTS }: ReplaceOptions<T> = {},
  ): Replacement {
    let replacement: Replacement | undefined;
    const begin = (held: readonly Held<T>[], keys: readonly string[] | undefined) =>
      this.#storage.newReplacement(
        { objects: { [Symbol.iterator]: () => this.#keyed(held, keys) }, resourceVersion },
        {
          stepObjects,
          ...(onIndexFailure && {
            onIndexFailure: (error, held) => {
              const instead = onIndexFailure(error, this.#opened(held) as T);
              return instead === undefined ? undefined : this.holding.hold(instead, error.key);
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

  /** Objects as they will be held; with the keys that they had, if anything was done to them. */
  *#heldSteps(
    objects: readonly T[],
    stepObjects: number,
  ): Generator<undefined, { held: readonly Held<T>[]; keys: readonly string[] | undefined }, undefined> {
    if (this.#take === undefined) return { held: objects, keys: undefined };
    const held: Held<T>[] = [];
    const keys: string[] = [];
    for (const object of objects) {
      const key = keyOf(this.#keyFunc, object, "replace");
      held.push(this.#take(object, key));
      if (keys.push(key) % stepObjects === 0) yield;
    }
    return { held, keys };
  }

  /** Pairs are made one by one: a long list of them would be the most memory that a `replace` needs. */
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
    for (let i = 0; i < held.length; i++) {
      const write = held[i];
      if (write.type === "Delete") continue;
      const object = this.holding.hold(write.object, write.key);
      if (object !== write.object) held[i] = { ...write, object };
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
    return this.holding.convert(this.#storage.index(indexName, object), this.#listedAll);
  }

  indexKeys(indexName: I, value: string): string[] {
    return this.#storage.indexKeys(indexName, value);
  }

  listIndexFuncValues(indexName: I): string[] {
    return this.#storage.listIndexFuncValues(indexName);
  }

  byIndex(indexName: I, value: string): T[] {
    return this.holding.convert(this.#storage.byIndex(indexName, value), this.#listedAll);
  }

  eachByIndex(indexName: I, value: string): IterableIterator<T> {
    return this.holding.convert(this.#storage.eachByIndex(indexName, value), this.#listedEach);
  }

  countByIndex(indexName: I, value: string): number {
    return this.#storage.countByIndex(indexName, value);
  }

  indexValueCounts(indexName: I): Map<string, number> {
    return this.#storage.indexValueCounts(indexName);
  }

  byIndices(values: IndexValues<I>): T[] {
    return this.holding.convert(this.#storage.byIndices(values), this.#listedAll);
  }

  getIndexers(): Record<I, IndexFunc<T>> {
    return mapped(this.#storage.getIndexers(), (held) => this.#added.get(held) ?? held as IndexFunc<T>);
  }

  addIndexers<J extends string>(indexers: Indexers<T, J>): Indexer<T, I | J> {
    const held = this.#heldIndexers(indexers);
    this.#storage.addIndexers(held);
    this.holding.indexersAdded(held);
    return this as unknown as Indexer<T, I | J>;
  }

  *addIndexersSteps(indexers: Indexers<T>, options?: { readonly stepObjects?: number }): Steps {
    const held = this.#heldIndexers(indexers);
    yield* this.#storage.addIndexersSteps(held, options);
    this.holding.indexersAdded(held);
  }

  #taken(object: T, key: string): Held<T> {
    return this.#take === undefined ? object : this.#take(object, key);
  }

  #heldIndexers<J extends string>(indexers: Indexers<T, J>): Indexers<Held<T>, J> {
    return mapped(indexers, (indexFunc) => {
      if (readsLiveMetadata(indexFunc)) return indexFunc as IndexFunc<Held<T>>;
      const held = this.holding.heldIndex(indexFunc);
      if (held === indexFunc) return held;
      this.#added.set(held, indexFunc);
      const { fieldPath } = indexFunc as Partial<FieldIndexFunc<T>>;
      return fieldPath === undefined ? held : Object.assign(held, { fieldPath });
    });
  }

  #opened(held: Held<T> | undefined): T | undefined {
    return held === undefined ? undefined : this.holding.open(held);
  }
}

function* each<T, U>(values: Iterable<T>, map: (value: T) => U): IterableIterator<U> {
  for (const value of values) yield map(value);
}

function mapped<I extends string, F, G>(byName: Readonly<Record<I, F>>, map: (value: F) => G): Record<I, G> {
  const entries = Object.entries<F>(byName).map(([name, value]) => [name, map(value)]);
  return Object.fromEntries(entries) as Record<I, G>;
}

function newHeldView<T, I extends string>({ holding, keyed }: Cache<T, I>): Cache<Held<T>, I> {
  return new Cache<Held<T>, I>(
    new UnopenedHolding(holding),
    {} as Indexers<Held<T>, I>,
    undefined,
    keyed as ThreadSafeStore<Held<Held<T>>, I>,
  );
}
