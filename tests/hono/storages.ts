/**
 * `describe` and `it` that run each suite once for every storage that a served store can have. The third, `cold`, is the
 * encoded one with nothing kept decoded.
 * @module
 */

import { describe as describeOnce, it as itOnce } from "node:test";
import { type Indexer, type Indexers, metaNamespaceKey, newIndexer } from "@listwatch/cache";
import { newEncodedIndexer } from "../../src/store/cache.ts";
import type { Held, ObjectCodec } from "../../src/store/object_codec.ts";

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

/** A test that makes its informers with the storage of its suite. */
export function it(name: string, test: () => void | Promise<void>): void {
  const storage = current;
  itOnce(name, async () => {
    current = storage;
    await test();
  });
}

/** The storage of the suite that runs, as an option. */
export function storage(): "objects" | "encoded" {
  return current === "objects" ? "objects" : "encoded";
}

/** A store with the storage of the suite, as it is read and as it is held. */
export interface TestStore<T> {
  readonly indexer: Indexer<T, string>;
  readonly held: Indexer<Held<T>, string>;
  readonly codec: ObjectCodec<T> | undefined;
}

/** Makes an empty one. */
export function newTestStore<T>(indexers: Indexers<T, string>): TestStore<T> {
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
