/**
 * `describe` and `it` that run each suite once for every storage that an informer can have.
 * @module
 */

import { type StorageSuites, suitesFor } from "../storages.ts";

type Suites = StorageSuites<"objects" | "encoded">;

const suites: Suites = suitesFor(["objects", "encoded"]);

export const describe: Suites["describe"] = suites.describe;
export const it: Suites["it"] = suites.it;
export const storage: Suites["storage"] = suites.storage;
