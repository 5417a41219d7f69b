/**
 * Random writes to an indexer, compared after each with a plain map from which everything is computed again.
 * @module
 */

import assert from "node:assert/strict";
import { describe as describeOnce } from "node:test";
import fc from "fast-check";
import { type Clock, type Indexer, metaNamespaceKey } from "@listwatch/cache";
import { TransactionError } from "@listwatch/cache/store";
import { newTTLStore } from "@listwatch/cache/compat";
import { propertyOptions } from "../property.ts";
import { assertSameObject, describe, it, newIndexer, storage } from "./storages.ts";

const INDICES = ["first", "second", "late", "later"] as const;
type IndexName = typeof INDICES[number];

interface Thing {
  /** Has no key where it is undefined: the key function throws. */
  key: string | undefined;
  metadata: { resourceVersion: string };
  /** Under which values each index finds it. */
  values: Partial<Record<IndexName, string[]>>;
  /** The indices whose functions throw. */
  fails: IndexName[];
}

type Write =
  | { op: "add" | "update" | "delete"; object: Thing }
  | { op: "replace"; objects: Thing[]; resourceVersion: string }
  | { op: "transaction"; writes: { type: "Add" | "Update" | "Delete"; object: Thing }[] }
  | { op: "addIndexers"; names: IndexName[] };

const key = fc.constantFrom("a", "b", "c", "d", "e");
const resourceVersion = fc.nat(99).map(String);
const values = fc.array(fc.constantFrom("x", "y", "z"), { maxLength: 3 });
const thing: fc.Arbitrary<Thing> = fc.record({
  key: fc.oneof({ weight: 15, arbitrary: key }, { weight: 1, arbitrary: fc.constant(undefined) }),
  metadata: fc.record({ resourceVersion }),
  values: fc.record({ first: values, second: values, late: values, later: values }),
  fails: fc.oneof(
    { weight: 12, arbitrary: fc.constant<IndexName[]>([]) },
    { weight: 1, arbitrary: fc.subarray([...INDICES]) },
  ),
});
const write: fc.Arbitrary<Write> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constantFrom("add" as const, "update" as const, "delete" as const),
      object: thing,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("replace" as const),
      objects: fc.array(thing, { maxLength: 4 }),
      resourceVersion,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("transaction" as const),
      writes: fc.array(
        fc.record({
          type: fc.constantFrom("Add" as const, "Update" as const, "Delete" as const),
          object: thing,
        }),
        { maxLength: 5 },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant("addIndexers" as const), names: fc.subarray([...INDICES]) }),
  },
);

function keyFunc(value: unknown): string {
  const { key } = value as Thing;
  if (key === undefined) throw new Error("no key");
  return key;
}

function indexFuncOf(name: IndexName): (object: Thing) => string[] {
  return (object) => {
    if (object.fails.includes(name)) throw new Error(`the function of ${name} was made to fail`);
    return object.values[name] ?? [];
  };
}

function indexersOf(names: readonly IndexName[]): Record<string, (object: Thing) => string[]> {
  return Object.fromEntries(names.map((name) => [name, indexFuncOf(name)]));
}

/** What an indexer must do, said as plainly as possible. */
class Model {
  objects = new Map<string, Thing>();
  indices = new Set<IndexName>(["first", "second"]);
  resourceVersion = "";

  /** Performs a write, and returns the code of the error that it must throw. */
  perform(write: Write): string | undefined {
    switch (write.op) {
      case "add":
      case "update":
      case "delete": {
        const { key } = write.object;
        if (key === undefined) return "KeyError";
        if (write.op === "delete") this.objects.delete(key);
        else if (!this.#isIndexable(write.object)) return "IndexFunc";
        else this.objects.set(key, write.object);
        this.resourceVersion = write.object.metadata.resourceVersion;
        return undefined;
      }
      case "replace": {
        const next = new Map<string, Thing>();
        for (const object of write.objects) {
          if (object.key === undefined) return "KeyError";
          next.set(object.key, object);
        }
        for (const object of next.values()) if (!this.#isIndexable(object)) return "IndexFunc";
        this.objects = next;
        this.resourceVersion = write.resourceVersion;
        return undefined;
      }
      case "transaction": {
        const keyed = write.writes.filter(({ object }) => object.key !== undefined);
        if (keyed.some(({ type, object }) => type !== "Delete" && !this.#isIndexable(object))) {
          return "IndexFunc";
        }
        for (const { type, object } of keyed) {
          if (type === "Delete") this.objects.delete(object.key!);
          else this.objects.set(object.key!, object);
        }
        if (keyed.length > 0) this.resourceVersion = keyed[keyed.length - 1].object.metadata.resourceVersion;
        return keyed.length < write.writes.length ? "TransactionError" : undefined;
      }
      case "addIndexers": {
        if (write.names.some((name) => this.indices.has(name))) return "IndexerConflict";
        for (const object of this.objects.values()) {
          if (object.fails.some((name) => write.names.includes(name))) return "IndexFunc";
        }
        for (const name of write.names) this.indices.add(name);
        return undefined;
      }
    }
  }

  #isIndexable(object: Thing): boolean {
    return !object.fails.some((name) => this.indices.has(name));
  }
}

function performOn(indexer: Indexer<Thing>, write: Write): string | undefined {
  try {
    switch (write.op) {
      case "add":
      case "update":
      case "delete":
        indexer[write.op](write.object);
        return undefined;
      case "replace":
        indexer.replace(write.objects, write.resourceVersion);
        return undefined;
      case "transaction":
        indexer.transaction(write.writes);
        return undefined;
      case "addIndexers":
        indexer.addIndexers(indexersOf(write.names));
        return undefined;
    }
  } catch (error) {
    if (error instanceof TransactionError && write.op === "transaction") {
      const expected = write.writes.flatMap(({ object }, i) => object.key === undefined ? [] : [i]);
      assert.deepEqual(error.successfulIndices, expected);
    }
    return (error as { code: string }).code;
  }
}

function assertSame(indexer: Indexer<Thing>, model: Model): void {
  const keys = [...model.objects.keys()].sort();
  assert.deepEqual(indexer.listKeys().sort(), keys);
  assert.equal(indexer.size, keys.length);
  for (const key of keys) assertSameObject(indexer.getByKey(key), model.objects.get(key));
  assert.deepEqual(new Set(indexer.list()), new Set(model.objects.values()));
  assert.equal(indexer.lastStoreSyncResourceVersion(), model.resourceVersion);
  assert.deepEqual(new Set(Object.keys(indexer.getIndexers())), model.indices);
  for (const name of model.indices) {
    const keysByValue = new Map<string, Set<string>>();
    for (const [key, object] of model.objects) {
      for (const value of object.values[name] ?? []) {
        if (!keysByValue.has(value)) keysByValue.set(value, new Set());
        keysByValue.get(value)!.add(key);
      }
    }
    assert.deepEqual(indexer.listIndexFuncValues(name).sort(), [...keysByValue.keys()].sort());
    for (const [value, found] of keysByValue) {
      const sorted = [...found].sort();
      assert.deepEqual(indexer.indexKeys(name, value), sorted);
      const objects = indexer.byIndex(name, value);
      assert.equal(objects.length, sorted.length);
      assert.deepEqual(new Set(objects), new Set(sorted.map((key) => model.objects.get(key))));
    }
    for (const object of model.objects.values()) {
      const expected = [...model.objects.values()].filter((other) =>
        other.values[name]?.some((value) => object.values[name]?.includes(value))
      );
      assert.deepEqual(new Set(indexer.index(name, object)), new Set(expected));
    }
  }
}

describe("Indexer under random writes", () => {
  it("has the indices that its objects say, also where key and index functions throw", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 25, size: "max" }), (writes) => {
        const indexer: Indexer<Thing> = newIndexer<Thing>(keyFunc, indexersOf(["first", "second"]));
        const model = new Model();
        for (const write of writes) {
          assert.equal(performOn(indexer, write), model.perform(write), write.op);
          assertSame(indexer, model);
        }
      }),
      propertyOptions(storage() === "objects" ? 10_000 : 2_000),
    );
  });
});

interface Named {
  metadata: { name: string };
}

type Step =
  | { op: "add" | "delete" | "get" | "list"; key: string }
  | { op: "pass"; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constantFrom("add" as const, "add" as const, "delete" as const, "get" as const, "list" as const),
      key,
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("pass" as const), ms: fc.nat(60) }) },
);

describeOnce("a store with a time to live under random writes", () => {
  it("shows exactly what is young enough", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 25, size: "max" }),
        fc.integer({ min: -1, max: 80 }),
        (steps, ttlMs) => {
          let nowMs = 0;
          const clock: Clock = {
            now: () => nowMs,
            setTimeout: () => assert.fail("no timers"),
            clearTimeout: () => {},
          };
          const store = newTTLStore<Named>(metaNamespaceKey, ttlMs, { clock });
          const writtenMs = new Map<string, number>();
          const isAlive = (key: string) =>
            writtenMs.has(key) && (ttlMs <= 0 || nowMs - writtenMs.get(key)! <= ttlMs);
          for (const step of steps) {
            switch (step.op) {
              case "pass":
                nowMs += step.ms;
                break;
              case "add":
                assert.equal(store.add({ metadata: { name: step.key } }) !== undefined, isAlive(step.key));
                writtenMs.set(step.key, nowMs);
                break;
              case "delete":
                assert.equal(store.delete({ metadata: { name: step.key } }) !== undefined, isAlive(step.key));
                writtenMs.delete(step.key);
                break;
              case "get":
                assert.equal(store.has(step.key), isAlive(step.key));
                break;
              case "list": {
                const alive = [...writtenMs.keys()].filter(isAlive).sort();
                assert.deepEqual(store.list().map(({ metadata }) => metadata.name).sort(), alive);
                assert.deepEqual(store.listKeys().sort(), alive);
              }
            }
          }
        },
      ),
      propertyOptions(2_000),
    );
  });
});
