/**
 * `describe` and `it` that run each suite once for every storage that a store can have, and the functions
 * that make stores with it: `cold` is short texts with nothing kept decoded.
 * @module
 */

import assert from "node:assert/strict";
import { type Indexer, type Indexers, type KeyFunc, shortTexts } from "@listwatch/cache";
import { newIndexer as newIndexerOf, type Store, type StoreOptions } from "@listwatch/cache/store";
import type { NewHolding } from "../../src/store/holding.ts";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Storage = "objects" | "encoded" | "cold";

const HOLDINGS: Record<Storage, () => NewHolding | undefined> = {
  objects: () => undefined,
  encoded: () => shortTexts(),
  cold: () => shortTexts({ hotObjects: 0 }),
};

type Suites = StorageSuites<Storage>;

const suites: Suites = suitesFor(["objects", "encoded", "cold"]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;
export const storage: Suites["storage"] = suites.storage;

/** The holding of the suite; `undefined` for plain objects. */
export function newHolding(): NewHolding | undefined {
  return HOLDINGS[storage()]();
}

/** Asserts that both are one object; that they are equal if nothing is kept decoded. */
export function assertSameObject(actual: unknown, expected: unknown): void {
  if (storage() === "cold") assert.deepEqual(actual, expected);
  else assert.equal(actual, expected);
}

/** As the package's, with the storage of the suite. */
export function newStore<T>(keyFunc: KeyFunc, options: StoreOptions<T> = {}): Store<T> {
  return newIndexer<T, never>(keyFunc, {}, options);
}

/** As the package's, with the storage of the suite. */
export function newIndexer<T, I extends string = string>(
  keyFunc: KeyFunc,
  indexers: Indexers<T, I>,
  options: StoreOptions<T> = {},
): Indexer<T, I> {
  return newIndexerOf<T, I>(keyFunc, indexers, { storage: newHolding(), ...options });
}
