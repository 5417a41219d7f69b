/** Stores and policies that a test defines. */

import type { ExplicitKey } from "../meta/keys.ts";
import type { DeletedFinalStateUnknown } from "../meta/object.ts";

type Keyed<T> = T | DeletedFinalStateUnknown<T> | ExplicitKey;

interface Write<T> {
  readonly type: "Add" | "Update" | "Delete";
  readonly object: Keyed<T>;
}

/** The methods of a {@linkcode FakeCustomStore}, as far as they do something. */
export type FakeStoreFuncs<T> = Partial<Omit<FakeCustomStore<T>, "size" | "values" | "has">>;

/**
 * A `Store` of the functions that it is made with: to see how code uses its store, or to make the store fail.
 * A method without a function does nothing, and a read without one returns nothing. `size`, `values` and
 * `has` use `list` and `getByKey`.
 *
 * Mirrors client-go's `FakeCustomStore`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, silentLogger } from "@listwatch/cache";
 * import { Reflector } from "@listwatch/cache/reflector";
 * import { FakeControllerSource, FakeCustomStore, pod } from "@listwatch/cache/testing";
 * const source = new FakeControllerSource();
 * source.add(pod("web-1"));
 * const stop = new AbortController();
 * const store = new FakeCustomStore<KubernetesObject>({
 *   replace(objects, resourceVersion) {
 *     console.log(objects.length, "at", resourceVersion); // 1 at 1
 *     stop.abort();
 *   },
 * });
 * await new Reflector(source, store, { logger: silentLogger }).run(stop.signal);
 * ```
 */
export class FakeCustomStore<T> {
  readonly #funcs: FakeStoreFuncs<T>;

  /** Makes a store of these functions. */
  constructor(funcs: FakeStoreFuncs<T> = {}) {
    this.#funcs = funcs;
  }

  /** The length of the list. */
  get size(): number {
    return this.list().length;
  }

  /** Calls `add`. */
  add(object: T): T | undefined {
    return this.#funcs.add?.(object);
  }

  /** Calls `update`. */
  update(object: T): T | undefined {
    return this.#funcs.update?.(object);
  }

  /** Calls `delete`. */
  delete(object: Keyed<T>): T | undefined {
    return this.#funcs.delete?.(object);
  }

  /** Calls `list`. */
  list(): T[] {
    return this.#funcs.list?.() ?? [];
  }

  /** Calls `listKeys`. */
  listKeys(): string[] {
    return this.#funcs.listKeys?.() ?? [];
  }

  /** The items of the list. */
  values(): IterableIterator<T> {
    return this.list().values();
  }

  /** Calls `get`. */
  get(object: Keyed<T>): T | undefined {
    return this.#funcs.get?.(object);
  }

  /** Calls `getByKey`. */
  getByKey(key: string): T | undefined {
    return this.#funcs.getByKey?.(key);
  }

  /** Whether `getByKey` returns an object. */
  has(key: string): boolean {
    return this.getByKey(key) !== undefined;
  }

  /** Calls `replace`. */
  replace(objects: readonly T[], resourceVersion: string): void {
    this.#funcs.replace?.(objects, resourceVersion);
  }

  /** Calls `transaction`. */
  transaction(writes: readonly Write<T>[]): void {
    this.#funcs.transaction?.(writes);
  }

  /** Calls `resync`. */
  resync(): void {
    this.#funcs.resync?.();
  }

  /** Calls `bookmark`. */
  bookmark(resourceVersion: string): void {
    this.#funcs.bookmark?.(resourceVersion);
  }

  /** Calls `lastStoreSyncResourceVersion`; `""` without it. */
  lastStoreSyncResourceVersion(): string {
    return this.#funcs.lastStoreSyncResourceVersion?.() ?? "";
  }
}

/**
 * An expiration policy under which every entry is expired at once, except for some keys.
 *
 * Mirrors client-go's `FakeExpirationPolicy`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newExpirationStore } from "@listwatch/cache/compat";
 * import { FakeExpirationPolicy, pod } from "@listwatch/cache/testing";
 * const store = newExpirationStore(metaNamespaceKey, new FakeExpirationPolicy(["default/web-1"]));
 * store.add(pod("web-1"));
 * store.add(pod("web-2"));
 * console.log(store.has("default/web-1"), store.has("default/web-2")); // true false
 * ```
 */
export class FakeExpirationPolicy {
  /** The keys that never expire; may be changed at any time. */
  readonly neverExpire: Set<string>;

  /** Makes a policy for which these keys never expire. */
  constructor(neverExpire: Iterable<string> = []) {
    this.neverExpire = new Set(neverExpire);
  }

  /** Whether the entry's key is not among those. */
  isExpired(entry: { readonly key: string }): boolean {
    return !this.neverExpire.has(entry.key);
  }
}
