/**
 * `describe` and `it` that run each suite once for every storage that a served store can have. The third, `cold`, is the
 * encoded one with nothing kept decoded.
 * @module
 */

import { type Indexer, type Indexers, metaNamespaceKey } from "@listwatch/cache";
import { newIndexer } from "@listwatch/cache/store";
import { newEncodedIndexer } from "../../src/store/cache.ts";
import type { Held, ObjectCodec } from "../../src/store/object_codec.ts";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Storage = "objects" | "encoded" | "cold";

type Suites = StorageSuites<Storage>;

const suites: Suites = suitesFor(["objects", "encoded", "cold"]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;

/** The storage of the suite that runs, as an option. */
export function storage(): "objects" | "encoded" {
  return suites.storage() === "objects" ? "objects" : "encoded";
}

/** A store with the storage of the suite, as it is read and as it is held. */
export interface TestStore<T> {
  readonly indexer: Indexer<T, string>;
  readonly held: Indexer<Held<T>, string>;
  readonly codec: ObjectCodec<T> | undefined;
}

/** Makes an empty one. */
export function newTestStore<T>(indexers: Indexers<T, string>): TestStore<T> {
  const current = suites.storage();
  if (current !== "objects") {
    return newEncodedIndexer<T, string>(
      metaNamespaceKey,
      indexers,
      current === "cold" ? { hotObjects: 0 } : {},
    );
  }
  const indexer = newIndexer<T, string>(metaNamespaceKey, indexers);
  return { indexer, held: indexer as Indexer<Held<T>, string>, codec: undefined };
}
