/**
 * `describe` and `it` that run each suite once for every storage that a store can have, and the functions that make
 * stores with it. The third, `cold`, is the encoded one with nothing kept decoded.
 * @module
 */

import assert from "node:assert/strict";
import { describe as describeOnce, it as itOnce } from "node:test";
import {
  type Indexer,
  type Indexers,
  type KeyFunc,
  newIndexer as newIndexerOf,
  type Store,
  type StoreOptions,
} from "@listwatch/cache";
import { newEncodedIndexer } from "../../src/store/cache.ts";

type Storage = "objects" | "encoded" | "cold";

let current: Storage = "objects";

/** Describes a suite for every storage. */
export function describe(name: string, suite: () => void): void {
  for (const storage of ["objects", "encoded", "cold"] as const) {
    describeOnce(storage === "objects" ? name : `${name} (${storage})`, () => {
      current = storage;
      suite();
    });
  }
}

/** The storage of the suite that runs. */
export function storage(): Storage {
  return current;
}

/** Asserts that both are one object; where nothing is kept decoded, that they are equal. */
export function assertSameObject(actual: unknown, expected: unknown): void {
  if (current === "cold") assert.deepEqual(actual, expected);
  else assert.equal(actual, expected);
}

/** A test that makes its stores with the storage of its suite. */
export function it(name: string, test: () => void): void {
  const storage = current;
  itOnce(name, () => {
    current = storage;
    test();
  });
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
  if (current === "cold") {
    return newEncodedIndexer<T, I>(keyFunc, indexers, { ...options, hotObjects: 0 }).indexer;
  }
  return newIndexerOf<T, I>(keyFunc, indexers, { storage: current, ...options });
}
