/**
 * What a store does to be replaced: it puts a few differences in one by one, and many as a whole.
 * @module
 */

import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type IndexFuncError, ThreadSafeStore } from "@listwatch/cache/store";
import { propertyOptions } from "../property.ts";

interface Thing {
  readonly name: string;
  readonly node: string;
}

type ThingStore = ThreadSafeStore<Thing, "byNode">;

function newThings(asked?: Thing[]): ThingStore {
  return new ThreadSafeStore<Thing, "byNode">({
    byNode: (thing) => {
      asked?.push(thing);
      if (thing.node === "broken") throw new Error("no such node");
      return [thing.node];
    },
  });
}

const things = (count: number, node: string) =>
  Array.from({ length: count }, (_, i) => ({ name: `thing-${i}`, node }));
const keyed = (list: readonly Thing[]) => list.map((thing) => [thing.name, thing] as const);

/** Everything that can be read from a store, in an order that does not depend on it. */
function contentOf(store: ThingStore): unknown {
  const nodes = store.listIndexFuncValues("byNode").sort();
  return {
    things: store.list().sort((a, b) => a.name < b.name ? -1 : 1),
    keys: store.listKeys().sort(),
    nodes: nodes.map((node) => [node, store.indexKeys("byNode", node), store.countByIndex("byNode", node)]),
    resourceVersion: store.lastStoreSyncResourceVersion(),
  };
}

describe("Store.replace", () => {
  it("holds what a new store would, whatever was there before", () => {
    const thing = fc.record({
      name: fc.integer({ min: 0, max: 11 }).map((i) => `thing-${i}`),
      node: fc.constantFrom("one", "two", "three", "broken"),
    });
    const before = fc.array(thing.filter(({ node }) => node !== "broken"), { maxLength: 20 });
    const change = fc.record({
      drop: fc.subarray(Array.from({ length: 12 }, (_, i) => `thing-${i}`)),
      add: fc.array(thing, { maxLength: 6 }),
    });
    fc.assert(
      fc.property(before, fc.array(change, { maxLength: 3 }), (first, changes) => {
        const store = newThings();
        store.replace(keyed(first), "1");
        for (const { drop, add } of changes) {
          const next = [...store.list().filter(({ name }) => !drop.includes(name)), ...add];
          const rejected: string[] = [];
          const expected = new Map<string, Thing>();
          for (const one of next) expected.set(one.name, one);
          for (const [name, one] of expected) {
            const old = store.get(name);
            if (one.node !== "broken") continue;
            if (old === undefined) expected.delete(name);
            else expected.set(name, old);
          }
          store.replace(keyed(next), "2", (error, object) => {
            rejected.push(`${error.key} ${object.node}`);
            return store.get(error.key);
          });
          assert.equal(rejected.every((text) => text.endsWith(" broken")), true);
          const fresh = newThings();
          fresh.replace(expected, "2");
          assert.deepEqual(contentOf(store), contentOf(fresh));
        }
      }),
      propertyOptions(2_000),
    );
  });

  it("asks index functions about nothing but what is new, with few differences and with many", () => {
    for (const changed of [3, 1_500]) {
      const asked: Thing[] = [];
      const store = newThings(asked);
      const list = things(3_000, "one");
      store.replace(keyed(list), "1");
      asked.length = 0;
      const next = list.map((thing, i) => i < changed ? { ...thing, node: "two" } : thing);
      store.replace(keyed(next), "2");
      assert.deepEqual(asked, next.slice(0, changed));
      assert.equal(store.countByIndex("byNode", "two"), changed);
      assert.equal(store.countByIndex("byNode", "one"), 3_000 - changed);
    }
  });

  it("takes many away, and few", () => {
    for (const left of [2_998, 10, 0]) {
      const store = newThings();
      const list = things(3_000, "one");
      store.replace(keyed(list), "1");
      store.replace(keyed(list.slice(0, left)), "2");
      assert.equal(store.size, left);
      assert.equal(store.countByIndex("byNode", "one"), left);
    }
  });

  it("changes nothing where an index function throws, with few differences and with many", () => {
    for (const changed of [1, 5]) {
      const store = newThings();
      const list = things(8, "one");
      store.replace(keyed(list), "1");
      const before = contentOf(store);
      const next = list.map((thing, i) =>
        i < changed ? { ...thing, node: i === 0 ? "broken" : "two" } : thing
      );
      assert.throws(
        () => store.replace(keyed(next.slice(0, 7)), "2"),
        (error: IndexFuncError) => error.key === "thing-0",
      );
      assert.deepEqual(contentOf(store), before);
    }
  });

  it("keeps what takes the place of a refused value, whatever that is, with few differences and with many", () => {
    for (const count of [4, 1]) {
      const store = new ThreadSafeStore<number, "sign">({
        sign: (value) => {
          if (value === 13) throw new Error("no luck");
          return [String(Math.sign(value))];
        },
      });
      const before: [string, number][] = [["a", 0], ["b", 1], ["c", 2], ["d", 3]];
      store.replace(before.slice(0, count), "1");
      store.replace([["a", 13], ...before.slice(1, count)], "2", ({ key }) => store.get(key));
      assert.equal(store.get("a"), 0);
      assert.deepEqual(store.indexKeys("sign", "0"), ["a"]);
    }
  });

  it("leaves a refused value out where nothing takes its place, with few differences and with many", () => {
    for (const broken of [1, 9]) {
      const store = newThings();
      const before = things(10, "one");
      store.replace(keyed(before), "1");
      const list = before.map((thing, i) => i < broken ? { ...thing, node: "broken" } : thing);
      store.replace(keyed(list), "2", () => undefined);
      assert.deepEqual(store.listKeys().sort(), list.slice(broken).map(({ name }) => name));
      assert.equal(store.countByIndex("byNode", "one"), 10 - broken);
    }
  });

  it("asks no index function about what takes the place of a refused value and is stored already", () => {
    for (const count of [4, 1]) {
      let isBroken = false;
      const store = new ThreadSafeStore<number, "sign">({
        sign: (value) => {
          if (isBroken) throw new Error("no luck today");
          return [String(Math.sign(value))];
        },
      });
      const before: [string, number][] = [["a", 5], ["b", 6], ["c", 7], ["d", 8]];
      store.replace(before.slice(0, count), "1");
      isBroken = true;
      const rejected: string[] = [];
      store.replace([["a", -5], ...before.slice(1, count)], "2", ({ key }) => {
        rejected.push(key);
        return store.get(key);
      });
      assert.deepEqual(rejected, ["a"]);
      assert.equal(store.lastStoreSyncResourceVersion(), "2");
      assert.equal(store.get("a"), 5);
      assert.equal(store.countByIndex("sign", "1"), count);
    }
  });

  it("reads what can be read only once", () => {
    function* once(list: readonly Thing[]): Iterable<readonly [string, Thing]> {
      yield* keyed(list);
    }
    const store = newThings();
    store.replace(once(things(10, "one")), "1");
    store.replace(once(things(20, "two")), "2");
    assert.equal(store.countByIndex("byNode", "two"), 20);
  });

  it("is replaced as of its last step, also if it was written to meanwhile", () => {
    for (const changed of [1, 300]) {
      const store = newThings();
      const list = things(400, "one");
      store.replace(keyed(list), "1");
      const next = list.map((thing, i) => i < changed ? { ...thing, node: "two" } : thing);
      const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" });
      const steps = replacement.prepare();
      steps.next();
      store.add("between", { name: "between", node: "three" });
      while (!steps.next().done);
      if (!replacement.commit()) replacement.now();
      assert.equal(store.has("between"), false);
      assert.equal(store.countByIndex("byNode", "two"), changed);
      assert.deepEqual(store.listIndexFuncValues("byNode").sort(), ["one", "two"]);
    }
  });
});
