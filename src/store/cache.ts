/**
 * Stores and indexers over a {@linkcode ThreadSafeStore}.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/object.ts";
import type { Steps } from "../util/turns.ts";
import { type Indexers, type IndexFunc, type IndexValues, readsLiveMetadata } from "./index_func.ts";
import {
  type Indexer,
  type Keyed,
  type KeyedTransaction,
  keyedWrites,
  type OnIndexFailure,
  type Store,
  type Transaction,
} from "./store.ts";
import type { Held, HeldTransform, Holding, HoldingOptions, NewHolding } from "./holding.ts";
import { type HeldIndex, TextHolding } from "./text_holding.ts";
import { ThreadSafeStore } from "./thread_safe_store.ts";
import { transformed, type TransformFunc } from "./transform.ts";

/** Options of {@linkcode newStore} and {@linkcode newIndexer}. */
export interface StoreOptions<T> {
  /** Runs on every object of `add`, `update` and `replace`, after its key was computed. None by default. */
  readonly transform?: TransformFunc<T>;
  /**
   * How objects are held: as they are by default; as short texts with `shortTexts()`. Keys, indices and all
   * calls are the same.
   */
  readonly storage?: NewHolding | undefined;
}

/** Makes an empty store. Mirrors client-go's `NewStore`. */
export function newStore<T>(keyFunc: KeyFunc, options: StoreOptions<T> = {}): Store<T> {
  return newIndexer<T, never>(keyFunc, {}, options);
}

/**
 * Makes an empty store with indices. Mirrors client-go's `NewIndexer`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newIndexer, newStore } from "@listwatch/cache/store";
 * interface Pod {
 *   metadata: { name: string };
 *   spec: { nodeName: string };
 * }
 * const pods = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode: (pod) => [pod.spec.nodeName] });
 * pods.add({ metadata: { name: "web-1" }, spec: { nodeName: "node-1" } });
 * console.log(pods.listIndexFuncValues("byNode")); // ["node-1"]
 * console.log(newStore<Pod>(metaNamespaceKey).listKeys()); // []
 * ```
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
    return new Cache(new TextHolding<T>(keyFunc, holding), indexers, transform);
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

/** A store that is written in the held form of its objects, by a writer that knows their keys. */
export interface HeldStore<H> {
  readonly held: Omit<ThreadSafeStore<H>, "addIndexers">;
  readonly holding: Pick<Holding<unknown>, "keyFunc" | "listStored"> & {
    hold(object: H, key: string): H;
    isSameContent(a: H, b: H): boolean;
  };
}

/** A key function and a holding over a {@linkcode ThreadSafeStore}: client-go's `cache`. */
export class Cache<T, I extends string> implements Indexer<T, I> {
  readonly #keyFunc: KeyFunc;
  /** The function through which objects pass before they are stored, if there is one. */
  readonly #take: HeldTransform<T> | undefined;
  readonly holding: Holding<T>;
  /** The store below the key function: objects in their held form. */
  readonly held: ThreadSafeStore<Held<T>, I>;
  readonly #listed = (held: Held<T>): T => this.holding.openListed(held);

  constructor(holding: Holding<T>, indexers: Indexers<T, I>, transform?: TransformFunc<T>) {
    this.holding = holding;
    this.#keyFunc = holding.keyFunc;
    this.#take = holding.heldTransform(transform && ((object) => transformed(transform, object)));
    const held = this.#heldIndexers(indexers);
    this.held = new ThreadSafeStore<Held<T>, I>(held);
    holding.indexersAdded(held);
    if (holding.origin) {
      holding.origin.onReleased = (text, object) => this.held.exchange(text, object as T);
    }
  }

  get size(): number {
    return this.held.size;
  }

  add(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "add");
    return this.#opened(this.held.add(key, this.#taken(object, key)));
  }

  update(object: T): T | undefined {
    const key = keyOf(this.#keyFunc, object, "update");
    return this.#opened(this.held.update(key, this.#taken(object, key)));
  }

  delete(object: Keyed<T>): T | undefined {
    return this.#opened(this.held.deleteWithObject(keyOf(this.#keyFunc, object, "delete"), object));
  }

  list(): T[] {
    return this.held.list().map(this.#listed);
  }

  listKeys(): string[] {
    return this.held.listKeys();
  }

  values(): IterableIterator<T> {
    return each(this.held.values(), this.#listed);
  }

  get(object: Keyed<T>): T | undefined {
    return this.#opened(this.held.get(keyOf(this.#keyFunc, object, "get")));
  }

  getByKey(key: string): T | undefined {
    return this.#opened(this.held.get(key));
  }

  has(key: string): boolean {
    return this.held.has(key);
  }

  replace(objects: readonly T[], resourceVersion: string, onIndexFailure?: OnIndexFailure<T>): void {
    const keyed = new Map<string, Held<T>>();
    for (const object of objects) {
      const key = keyOf(this.#keyFunc, object, "replace");
      keyed.set(key, this.#taken(object, key));
    }
    this.held.newReplacement({ objects: keyed, resourceVersion }, {
      onIndexFailure: onIndexFailure && ((error, held) => {
        const instead = onIndexFailure(error, this.#opened(held) as T);
        return instead === undefined ? undefined : this.holding.hold(instead, error.key);
      }),
    }).now();
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
    this.held.transaction(held);
    if (keyed.error !== undefined) throw keyed.error;
  }

  resync(): void {
    this.held.resync();
  }

  bookmark(resourceVersion: string): void {
    this.held.bookmark(resourceVersion);
  }

  lastStoreSyncResourceVersion(): string {
    return this.held.lastStoreSyncResourceVersion();
  }

  index(indexName: I, object: T): T[] {
    return this.held.index(indexName, object).map(this.#listed);
  }

  indexKeys(indexName: I, value: string): string[] {
    return this.held.indexKeys(indexName, value);
  }

  listIndexFuncValues(indexName: I): string[] {
    return this.held.listIndexFuncValues(indexName);
  }

  byIndex(indexName: I, value: string): T[] {
    return this.held.byIndex(indexName, value).map(this.#listed);
  }

  eachByIndex(indexName: I, value: string): IterableIterator<T> {
    return each(this.held.eachByIndex(indexName, value), this.#listed);
  }

  countByIndex(indexName: I, value: string): number {
    return this.held.countByIndex(indexName, value);
  }

  indexValueCounts(indexName: I): Map<string, number> {
    return this.held.indexValueCounts(indexName);
  }

  byIndices(values: IndexValues<I>): T[] {
    return this.held.byIndices(values).map(this.#listed);
  }

  getIndexers(): Record<I, IndexFunc<T>> {
    return mapped(
      this.held.getIndexers(),
      (held) => (held as Partial<HeldIndex<T>>).indexFunc ?? held as IndexFunc<T>,
    );
  }

  addIndexers<J extends string>(indexers: Indexers<T, J>): Indexer<T, I | J> {
    const held = this.#heldIndexers(indexers);
    this.held.addIndexers(held);
    this.holding.indexersAdded(held);
    return this as unknown as Indexer<T, I | J>;
  }

  *addIndexersSteps(indexers: Indexers<T>, options?: { readonly stepObjects?: number }): Steps {
    const held = this.#heldIndexers(indexers);
    yield* this.held.addIndexersSteps(held, options);
    this.holding.indexersAdded(held);
  }

  #taken(object: T, key: string): Held<T> {
    return this.#take === undefined ? object : this.#take(object, key);
  }

  #heldIndexers<J extends string>(indexers: Indexers<T, J>): Indexers<Held<T>, J> {
    return mapped(
      indexers,
      (indexFunc) =>
        readsLiveMetadata(indexFunc) ? indexFunc as IndexFunc<Held<T>> : this.holding.heldIndex(indexFunc),
    );
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
