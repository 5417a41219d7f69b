/**
 * `describe` and `it` that run each suite once for every storage that a served store can have: `cold` is
 * short texts with nothing kept decoded, `bytes` a holding of a user's own, `disk` texts in a database.
 * @module
 */

import { type Indexers, metaNamespaceKey, shortTexts } from "@listwatch/cache";
import type { NewHolding } from "../../src/store/holding.ts";
import { type Cache, newCache } from "../../src/store/cache.ts";
import { DiskObjects } from "@listwatch/cache/workers";
import { NodeSql } from "../workers/node_sql.ts";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Storage = "objects" | "encoded" | "cold" | "disk";

type Suites = StorageSuites<Storage>;

const suites: Suites = suitesFor([
  "objects",
  "encoded",
  "cold",
  "disk",
]);

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
    case "disk":
      return new DiskObjects(new NodeSql()).texts;
  }
}

/** Makes an empty store with the storage of the suite. */
export function newTestStore<T>(indexers: Indexers<T, string>): Cache<T, string> {
  return newCache<T, string>(metaNamespaceKey, indexers, { storage: storage() });
}
