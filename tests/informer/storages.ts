/**
 * `describe` and `it` that run each suite once for every storage that an informer can have.
 * @module
 */

import { shortTexts } from "@listwatch/cache";
import type { NewHolding } from "@listwatch/cache/store";
import { type StorageSuites, suitesFor } from "../storages.ts";

type Suites = StorageSuites<"objects" | "encoded">;

const suites: Suites = suitesFor(["objects", "encoded"]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;

/** The storage of the suite that runs, as an option. */
export function storage(): NewHolding | undefined {
  return suites.storage() === "encoded" ? shortTexts() : undefined;
}
