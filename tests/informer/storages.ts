/**
 * `describe` and `it` that run each suite once for every storage that an informer can have.
 * @module
 */

import { shortTexts } from "@listwatch/cache";
import type { NewHolding } from "../../src/store/holding.ts";
import { DiskObjects } from "@listwatch/cache/workers";
import { NodeSql } from "../workers/node_sql.ts";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Suites = StorageSuites<"objects" | "encoded" | "disk">;

const suites: Suites = suitesFor([
  "objects",
  "encoded",
  "disk",
]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;

/** The storage of the suite that runs, as an option. */
export function storage(): NewHolding | undefined {
  if (suites.storage() === "disk") return new DiskObjects(new NodeSql()).texts;
  return suites.storage() === "encoded" ? shortTexts() : undefined;
}
