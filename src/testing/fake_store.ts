import type { Store } from "../store/store.ts";

type StoreMethods<T> = Omit<Store<T>, "size" | "values" | "has">;

/** The methods of a {@linkcode FakeCustomStore}, as far as they do something. */
export type FakeStoreFuncs<T> = Partial<StoreMethods<T>>;

/**
 * A `Store` of the functions that it is made with: to see how code uses its store, or to make the store fail.
 * A method without a function does nothing, and a read without one returns nothing. `size`, `values` and
 * `has` use `list` and `getByKey`. Mirrors client-go's `FakeCustomStore`.
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
  constructor(funcs: FakeStoreFuncs<T> = {}) {
    Object.assign(this, DOES_NOTHING, funcs);
  }

  /** The length of the list. */
  get size(): number {
    return this.list().length;
  }

  /** The items of the list. */
  values(): IterableIterator<T> {
    return this.list().values();
  }

  /** Whether `getByKey` returns an object. */
  has(key: string): boolean {
    return this.getByKey(key) !== undefined;
  }
}

/** The functions that it was made with. */
export interface FakeCustomStore<T> extends StoreMethods<T> {}

const nothing = (): undefined => undefined;
const DOES_NOTHING: StoreMethods<never> = {
  add: nothing,
  update: nothing,
  delete: nothing,
  list: () => [],
  listKeys: () => [],
  get: nothing,
  getByKey: nothing,
  replace: nothing,
  transaction: nothing,
  resync: nothing,
  bookmark: nothing,
  lastStoreSyncResourceVersion: () => "",
};

/**
 * An expiration policy under which every entry is expired at once, except for some keys.
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

  constructor(neverExpire: Iterable<string> = []) {
    this.neverExpire = new Set(neverExpire);
  }

  /** Whether the entry's key is not among those. */
  isExpired(entry: { readonly key: string }): boolean {
    return !this.neverExpire.has(entry.key);
  }
}
