import type { KeyFunc } from "../meta/object.ts";
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
 * `push` is called once, synchronously, by every `add`, `update`, `delete` (also of an absent object),
 * `replace` and `transaction` that has written, before the call returns; never by a read, a bookmark, a
 * resync or a write that threw. An error that `push` throws is thrown by that call; the write stays. Each
 * push costs a copy of the list.
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

  get size(): number {
    return this.#store.size;
  }

  add(object: T): T | undefined {
    return this.#pushed(this.#store.add(object));
  }

  update(object: T): T | undefined {
    return this.#pushed(this.#store.update(object));
  }

  delete(object: Keyed<T>): T | undefined {
    return this.#pushed(this.#store.delete(object));
  }

  list(): T[] {
    return this.#store.list();
  }

  listKeys(): string[] {
    return this.#store.listKeys();
  }

  values(): IterableIterator<T> {
    return this.#store.values();
  }

  get(object: Keyed<T>): T | undefined {
    return this.#store.get(object);
  }

  getByKey(key: string): T | undefined {
    return this.#store.getByKey(key);
  }

  has(key: string): boolean {
    return this.#store.has(key);
  }

  replace(objects: readonly T[], resourceVersion: string): void {
    this.#pushed(this.#store.replace(objects, resourceVersion));
  }

  transaction(writes: readonly Transaction<T>[]): void {
    try {
      this.#store.transaction(writes);
    } catch (error) {
      if (error instanceof TransactionError && error.successfulIndices.length > 0) this.#pushed(undefined);
      throw error;
    }
    this.#pushed(undefined);
  }

  resync(): void {}

  bookmark(resourceVersion: string): void {
    this.#store.bookmark(resourceVersion);
  }

  lastStoreSyncResourceVersion(): string {
    return this.#store.lastStoreSyncResourceVersion();
  }

  #pushed<R>(result: R): R {
    this.#push(this.#store.list());
    return result;
  }
}
