/** A store that calls a function with its whole content after every write. */

import type { KeyFunc } from "../meta/keys.ts";
import { TransactionError } from "../store/errors.ts";
import { newStore, type StoreOptions } from "../store/cache.ts";
import type { Keyed, Store, Transaction } from "../store/store.ts";

/**
 * Receives the whole content of a store: a new array, in no order that may be relied on, of shared objects.
 */
export type PushFunc<T> = (objects: T[]) => void;

/**
 * A store that pushes all of its objects after each write, for consumers that want states and not changes.
 *
 * `push` is called once, synchronously, by every `add`, `update`, `delete`, `replace` and `transaction` that
 * has written, before the call returns; never by a read, a bookmark, a resync or a write that threw. What
 * `push` throws is thrown by that call; the write stays.
 *
 * Each push costs a copy of the list: a reflector that fills it one event at a time does work in the square
 * of the size.
 *
 * Mirrors client-go's `UndeltaStore`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { UndeltaStore } from "@listwatch/cache/compat";
 * const store = new UndeltaStore<{ metadata: { name: string } }>(
 *   (objects) => console.log(objects.map((object) => object.metadata.name)),
 *   metaNamespaceKey,
 * );
 * store.add({ metadata: { name: "a" } }); // ["a"]
 * store.replace([{ metadata: { name: "b" } }, { metadata: { name: "c" } }], "10"); // ["b", "c"]
 * ```
 */
export class UndeltaStore<T> implements Store<T> {
  readonly #push: PushFunc<T>;
  readonly #store: Store<T>;

  constructor(push: PushFunc<T>, keyFunc: KeyFunc, options: StoreOptions<T> = {}) {
    this.#push = push;
    this.#store = newStore(keyFunc, options);
  }

  /** How many objects are stored. */
  get size(): number {
    return this.#store.size;
  }

  /**
   * Puts an object in, pushes, and returns the object it replaces.
   *
   * @throws {KeyError} The key function threw.
   * @throws {TransformError} The transform threw.
   */
  add(object: T): T | undefined {
    const old = this.#store.add(object);
    this.#push(this.#store.list());
    return old;
  }

  /** The same as {@linkcode UndeltaStore.add}. */
  update(object: T): T | undefined {
    const old = this.#store.update(object);
    this.#push(this.#store.list());
    return old;
  }

  /**
   * Removes an object, pushes (also when it was absent), and returns the stored one.
   *
   * @throws {KeyError} The key function threw.
   */
  delete(object: Keyed<T>): T | undefined {
    const old = this.#store.delete(object);
    this.#push(this.#store.list());
    return old;
  }

  /** All objects: a new array, in no order that may be relied on. */
  list(): T[] {
    return this.#store.list();
  }

  /** All keys: a new array, in no order that may be relied on. */
  listKeys(): string[] {
    return this.#store.listKeys();
  }

  /** All objects without a copy; do not write to the store while iterating. */
  values(): IterableIterator<T> {
    return this.#store.values();
  }

  /**
   * The stored object that has the key of the given one.
   *
   * @throws {KeyError} The key function threw.
   */
  get(object: Keyed<T>): T | undefined {
    return this.#store.get(object);
  }

  /** The object of a key. */
  getByKey(key: string): T | undefined {
    return this.#store.getByKey(key);
  }

  /** Whether a key is there. */
  has(key: string): boolean {
    return this.#store.has(key);
  }

  /**
   * Replaces the whole content, and pushes.
   *
   * @throws {KeyError} The key function threw; nothing was changed.
   * @throws {TransformError} The transform threw; nothing was changed.
   */
  replace(objects: readonly T[], resourceVersion: string): void {
    this.#store.replace(objects, resourceVersion);
    this.#push(this.#store.list());
  }

  /**
   * Applies several writes in order, as one step, and pushes once.
   *
   * @throws {TransactionError} Some had no key; the others, if any, were applied and pushed.
   */
  transaction(writes: readonly Transaction<T>[]): void {
    try {
      this.#store.transaction(writes);
    } catch (error) {
      const wrote = error instanceof TransactionError && error.successfulIndices.length > 0;
      if (wrote) this.#push(this.#store.list());
      throw error;
    }
    this.#push(this.#store.list());
  }

  /** Does nothing. */
  resync(): void {}

  /** Records that the content has reached a later resourceVersion. */
  bookmark(resourceVersion: string): void {
    this.#store.bookmark(resourceVersion);
  }

  /** The resourceVersion that the content has reached. */
  lastStoreSyncResourceVersion(): string {
    return this.#store.lastStoreSyncResourceVersion();
  }
}
