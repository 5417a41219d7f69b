/**
 * `describe` and `it` that run each suite once for every storage that a served store can have: `cold` is short texts with
 * nothing kept decoded.
 * @module
 */

import { type Indexers, metaNamespaceKey, shortTexts, texts } from "@listwatch/cache";
import type { NewHolding } from "@listwatch/cache/store";
import { type Cache, newCache } from "../../src/store/cache.ts";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Storage = "objects" | "encoded" | "cold" | "texts";

type Suites = StorageSuites<Storage>;

const suites: Suites = suitesFor(["objects", "encoded", "cold", "texts"]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;

/** The storage of the suite that runs, as an option. */
export function storage(): NewHolding | undefined {
  switch (suites.storage()) {
    case "objects":
      return undefined;
    case "encoded":
      return shortTexts();
    case "cold":
      return shortTexts({ hotObjects: 0 });
    case "texts":
      return texts();
  }
}

/** Makes an empty store with the storage of the suite. */
export function newTestStore<T>(indexers: Indexers<T, string>): Cache<T, string> {
  return newCache<T, string>(metaNamespaceKey, indexers, { storage: storage() });
}
