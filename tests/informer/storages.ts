/**
 * `describe` and `it` that run each suite once for every storage that an informer can have.
 * @module
 */

import { describe as describeOnce, it as itOnce } from "node:test";
import type { StoreOptions } from "@listwatch/cache";

type Storage = NonNullable<StoreOptions<unknown>["storage"]>;

let current: Storage = "objects";

/** The storage for the test that runs. */
export function storage(): Storage {
  return current;
}

/** Describes a suite for every storage. */
export function describe(name: string, suite: () => void): void {
  for (const one of ["objects", "encoded"] as const) {
    describeOnce(one === "objects" ? name : `${name} (${one})`, () => {
      current = one;
      suite();
    });
  }
}

/** A test with the storage of its suite; tests of one file run one after the other. */
export function it(name: string, test: () => void | Promise<void>): void {
  const one = current;
  itOnce(name, () => {
    current = one;
    return test();
  });
}
