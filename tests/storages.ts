/**
 * Suites that run once for every storage of objects. `LISTWATCH_STORAGES=1` runs them for the first one only.
 * @module
 */

import { describe as describeOnce, it as itOnce } from "node:test";
import { type NewHolding, ObjectHolding } from "../src/store/holding.ts";

/** Holds every object as it is, as stores of a user's own do. */
export const plainObjects: NewHolding = (keyFunc) => new ObjectHolding(keyFunc);

/** `describe` and `it` for several storages. */
export interface StorageSuites<S extends string> {
  /** Describes a suite for every storage. */
  readonly describe: (name: string, suite: () => void) => void;
  /** A test with the storage of its suite; tests of one file run one after the other. */
  readonly it: (name: string, test: () => void | Promise<void>) => void;
  /** The storage of the suite that runs. */
  readonly storage: () => S;
}

/** Makes them; the first storage is the one that programs have by default, and names do not mention. */
export function suitesFor<const S extends string>(storages: readonly [S, ...S[]]): StorageSuites<S> {
  // Workers have no `process` without Node's compatibility.
  const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
  const count = Number(process?.env["LISTWATCH_STORAGES"] ?? storages.length);
  if (!(count >= 1)) throw new RangeError(`LISTWATCH_STORAGES must be a number from 1 on, not ${count}`);
  let current: S = storages[0];
  return {
    describe(name, suite) {
      for (const storage of storages.slice(0, count)) {
        describeOnce(storage === storages[0] ? name : `${name} (${storage})`, () => {
          current = storage;
          suite();
        });
      }
    },
    it(name, test) {
      const storage = current;
      itOnce(name, () => {
        current = storage;
        return test();
      });
    },
    storage: () => current,
  };
}
