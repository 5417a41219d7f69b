/** The reading half of gardener's `Store`. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { SharedIndexInformer } from "../../informer/shared_informer.ts";
import { type Predicate, testOf, valueAt } from "./predicate.ts";

/** The index by the store's key. */
export const BY_KEY = "compat/gardener";

/**
 * What an {@linkcode Informer} holds, by uid (or another `keyPath`); it is written by the informer only.
 * Objects are shared: read-only.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { Informer } from "@listwatch/cache/compat/gardener";
 * const { store } = new Informer(newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/namespaces"));
 * console.log(store.hasSynced, store.find(["metadata.name", "garden"])); // false undefined
 * ```
 */
export class InformerStore<T extends KubernetesObject> {
  readonly #informer: SharedIndexInformer<T, typeof BY_KEY>;
  readonly #keyPath: string;

  /** As an {@linkcode Informer} makes it. */
  constructor(informer: SharedIndexInformer<T, typeof BY_KEY>, keyPath: string) {
    this.#informer = informer;
    this.#keyPath = keyPath;
  }

  /** Whether it holds the whole first list. */
  get hasSynced(): boolean {
    return this.#informer.hasSynced();
  }

  /**
   * Resolves when it holds the whole first list.
   *
   * @throws {InformerStateError} The informer has stopped before.
   */
  get untilHasSynced(): Promise<void> {
    return this.#informer.synced();
  }

  /** All keys. */
  listKeys(): string[] {
    return this.#informer.indexer.listIndexFuncValues(BY_KEY);
  }

  /** All objects, in a new array. */
  list(): T[] {
    return this.#informer.indexer.list();
  }

  /** The key of an object: its uid. */
  getKey(object: T): string {
    return String(valueAt(object, this.#keyPath) ?? "");
  }

  /** The object of a key; `undefined` if there is none. */
  getByKey(key: string): T | undefined {
    return this.#informer.indexer.byIndex(BY_KEY, key)[0];
  }

  /** What is held of an object. */
  get(object: T): T | undefined {
    return this.getByKey(this.getKey(object));
  }

  /** Whether there is an object of a key. */
  hasByKey(key: string): boolean {
    return this.#informer.indexer.countByIndex(BY_KEY, key) > 0;
  }

  /** Whether an object is held, in any state. */
  has(object: T): boolean {
    return this.hasByKey(this.getKey(object));
  }

  /**
   * The first object that a predicate finds. By key (`["metadata.uid", uid]`), and by namespace and name
   * (`{ metadata: { namespace, name } }`), it is looked up; otherwise objects are tried one by one.
   *
   * @throws {TypeError} It is no predicate.
   */
  find(predicate: Predicate<T>): T | undefined {
    const test = testOf(predicate);
    for (const object of this.#candidates(predicate)) if (test(object)) return object;
    return undefined;
  }

  #candidates(predicate: Predicate<T>): Iterable<T> {
    const { indexer } = this.#informer;
    if (Array.isArray(predicate) && predicate[0] === this.#keyPath) {
      return indexer.byIndex(BY_KEY, String(predicate[1]));
    }
    const [namespace, name] = ["metadata.namespace", "metadata.name"].map((path) => valueAt(predicate, path));
    if (typeof namespace !== "string" || typeof name !== "string") return indexer.values();
    const found = indexer.getByKey(`${namespace}/${name}`);
    return found === undefined ? [] : [found];
  }
}
