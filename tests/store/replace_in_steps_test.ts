/**
 * Long work on a store, and what others do to the store in its middle.
 * @module
 */

import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { IndexFuncError, ThreadSafeStore } from "@listwatch/cache/store";
import { finish, type Steps } from "../../src/util/turns.ts";
import { newEntry } from "../../src/store/index_bucket.ts";
import { additionSteps, type ContentReplacement, type StoreContent } from "../../src/store/long_writes.ts";
import { StoreIndex } from "../../src/store/store_index.ts";
import { propertyOptions } from "../property.ts";

interface Thing {
  readonly name: string;
  readonly node: string;
}

type ThingStore = ThreadSafeStore<Thing, string>;
type IndexFuncs = Record<string, (thing: Thing) => string[]>;

const NAMES = Array.from({ length: 12 }, (_, i) => `thing-${i}`);
const NODES = ["one", "two", "three"];

/** Names as users choose them; the number is one that objects put first. */
const MORE: IndexFuncs = {
  "byName": ({ name }) => [name],
  "7": ({ name, node }) => [node, name],
  "byLength": ({ node }) => [String(node.length)],
};
/** Throws for some of what is stored, and of what is to be stored. */
const THROWING: IndexFuncs = {
  "throwing": ({ node }) => {
    if (node === "two") throw new Error("not two");
    return [node];
  },
};

function newThings(): ThingStore {
  return new ThreadSafeStore<Thing, string>({ byNode: ({ node }) => [node] });
}

const keyed = (list: readonly Thing[]) => list.map((thing) => [thing.name, thing] as const);

/** What a store must be: a plain map, and lookups that look at everything. */
class Model {
  things = new Map<string, Thing>();
  readonly indexers: IndexFuncs = { byNode: ({ node }) => [node] };
  resourceVersion = "";

  check(store: ThingStore): void {
    assert.deepEqual(store.listKeys().sort(), [...this.things.keys()].sort());
    for (const [name, thing] of this.things) assert.equal(store.get(name), thing);
    assert.equal(store.lastStoreSyncResourceVersion(), this.resourceVersion);
    assert.deepEqual(Object.keys(store.getIndexers()).sort(), Object.keys(this.indexers).sort());
    for (const [name, indexFunc] of Object.entries(this.indexers)) {
      const wanted = new Map<string, string[]>();
      for (const thing of this.things.values()) {
        for (const value of indexFunc(thing)) wanted.set(value, [...wanted.get(value) ?? [], thing.name]);
      }
      assert.deepEqual(store.listIndexFuncValues(name).sort(), [...wanted.keys()].sort(), name);
      for (const [value, names] of wanted) {
        assert.deepEqual(store.indexKeys(name, value), names.sort(), `${name} of ${value}`);
        assert.equal(store.countByIndex(name, value), names.length);
        assert.equal(
          store.byIndex(name, value).every((thing) => this.things.get(thing.name) === thing),
          true,
        );
      }
    }
  }
}

const anyThing = fc.record({ name: fc.constantFrom(...NAMES), node: fc.constantFrom(...NODES) });
/** What comes between two steps. */
const anyAction = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ do: "steps", count: 1 } as const) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("steps" as const), count: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("put" as const), thing: anyThing }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("delete" as const), name: fc.constantFrom(...NAMES) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom("addIndexers" as const, "addIndexersSteps" as const),
      names: fc.subarray(Object.keys(MORE), { minLength: 1 }),
      throws: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("replaceSteps" as const),
      kept: fc.subarray(NAMES),
      changed: fc.array(anyThing, { maxLength: 6 }),
    }),
  },
);

/** Work that is under way, and what it comes to when it is over. */
interface Work {
  readonly steps: Steps;
  readonly over: () => void;
  readonly failed: (error: unknown) => void;
}

function* replaceSteps(replacement: Pick<ContentReplacement<unknown>, "prepare" | "commit">): Steps {
  do yield* replacement.prepare(); while (!replacement.commit());
}

describe("ContentReplacement and additionSteps", () => {
  it("is what a plain map is, whatever is written, added and replaced in between", () => {
    fc.assert(
      fc.property(
        fc.array(anyThing, { maxLength: 20 }),
        fc.array(anyAction, { maxLength: 60 }),
        (first, actions) => {
          const store = newThings();
          const model = new Model();
          store.replace(keyed(first), "1");
          for (const thing of first) model.things.set(thing.name, thing);
          model.resourceVersion = "1";
          let version = 1;
          const works: Work[] = [];
          const step = (work: Work) => {
            try {
              if (!work.steps.next().done) return;
              work.over();
            } catch (error) {
              work.failed(error);
            }
            works.splice(works.indexOf(work), 1);
            model.check(store);
          };
          for (const action of actions) {
            switch (action.do) {
              case "steps":
                for (let i = 0; i < action.count && works.length > 0; i++) step(works[i % works.length]);
                break;
              case "put":
                store.update(action.thing.name, action.thing);
                model.things.set(action.thing.name, action.thing);
                break;
              case "delete":
                store.delete(action.name);
                model.things.delete(action.name);
                break;
              case "addIndexers":
              case "addIndexersSteps": {
                const { names, throws } = action;
                const indexers: IndexFuncs = Object.fromEntries(names.map((name) => [name, MORE[name]]));
                if (throws && ![...model.things.values()].some(({ node }) => node === "two")) break;
                if (throws) Object.assign(indexers, THROWING);
                const failed = (error: unknown) => {
                  if (names.some((name) => name in model.indexers)) return;
                  if (!throws || !(error instanceof IndexFuncError)) throw error;
                };
                const over = () => {
                  if (throws) {
                    assert.deepEqual(
                      [...model.things.values()].filter(({ node }) => node === "two"),
                      [],
                    );
                  }
                  Object.assign(model.indexers, indexers);
                };
                if (throws && action.do === "addIndexersSteps") break; // what throws then depends on the writes
                if (action.do === "addIndexersSteps") {
                  works.push({ steps: store.addIndexersSteps(indexers, { stepObjects: 1 }), over, failed });
                  break;
                }
                try {
                  store.addIndexers(indexers);
                  over();
                } catch (error) {
                  failed(error);
                }
                break;
              }
              case "replaceSteps": {
                if (works.some(({ steps }) => steps === undefined)) break;
                const list = new Map<string, Thing>();
                for (const name of action.kept) {
                  const thing = model.things.get(name);
                  if (thing !== undefined) list.set(name, thing);
                }
                for (const thing of action.changed) list.set(thing.name, thing);
                const resourceVersion = String(++version);
                const replacement = store.newReplacement(
                  { objects: list, resourceVersion },
                  { stepObjects: 1 },
                );
                works.push({
                  steps: replaceSteps(replacement),
                  over: () => {
                    model.things = new Map(list);
                    model.resourceVersion = resourceVersion;
                  },
                  failed: (error) => {
                    throw error;
                  },
                });
              }
            }
            model.check(store);
          }
          while (works.length > 0) step(works[0]);
          model.check(store);
        },
      ),
      propertyOptions(3_000),
    );
  });

  for (const changed of [1, 8]) {
    it(`does not keep what is written behind its back, of ${changed} differences`, () => {
      for (let at = 0; at < 40; at++) {
        const store = newThings();
        const list = Array.from({ length: 10 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
        store.replace(keyed(list), "1");
        const next = list.map((thing, i) => i < changed ? { ...thing, node: "two" } : thing);
        const objects = new Map(keyed(next));
        const replacement = store.newReplacement({ objects, resourceVersion: "2" }, { stepObjects: 1 });
        const steps = replacement.prepare();
        for (let i = 0; i < at; i++) steps.next();
        store.update("thing-9", { name: "thing-9", node: "three" });
        store.delete("thing-8");
        store.add("between", { name: "between", node: "three" });
        finish(steps);
        if (!replacement.commit()) replacement.now();
        assert.deepEqual(
          store.list().sort((a, b) => a.name < b.name ? -1 : 1),
          next,
          `written after ${at} steps`,
        );
        assert.equal(store.countByIndex("byNode", "three"), 0);
      }
    });
  }

  it("takes a step for as many objects as stepObjects says, whatever it compares, removes or makes", () => {
    const list = Array.from({ length: 400 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
    const stepsOf = (store: ThingStore, next: readonly Thing[]) =>
      [
        ...store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" }, { stepObjects: 10 })
          .prepare(),
      ]
        .length;
    // None of 400 is stored: each is made and indexed.
    assert.equal(stepsOf(newThings(), list), 40);
    const store = newThings();
    store.replace(keyed(list), "1");
    // 305 of 400 stay as they are: these are compared, and then all are looked at for those to be removed.
    assert.equal(stepsOf(store, list.slice(0, 305)), 70);
  });

  it("takes a step for as many objects as it puts, or as an index is added to, or were written meanwhile", () => {
    const list = Array.from({ length: 400 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
    const store = newThings();
    store.replace(keyed(list), "1");
    const next = list.map((thing, i) => i < 100 ? { ...thing, node: "two" } : thing);
    const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" }, {
      stepObjects: 10,
    });
    // All are compared, and a hundred are indexed.
    assert.equal([...replacement.prepare()].length, 50);
    const addition = store.addIndexersSteps({ byName: ({ name }) => [name] }, { stepObjects: 10 });
    for (let i = 0; i < 40; i++) assert.equal(addition.next().done, false);
    for (let i = 0; i < 25; i++) store.delete(`thing-${i}`);
    assert.equal([...addition].length, 2);
    assert.equal(store.listIndexFuncValues("byName").length, 375);
  });

  it("adds indices beside others that come in between", () => {
    for (let at = 0; at < 12; at++) {
      const store = newThings();
      store.replace(keyed(NAMES.slice(0, 10).map((name) => ({ name, node: "one" }))), "1");
      const steps = store.addIndexersSteps({ byName: ({ name }) => [name] }, { stepObjects: 1 });
      for (let i = 0; i < at; i++) steps.next();
      store.addIndexers({ byLength: ({ node }) => [String(node.length)] });
      finish(steps);
      assert.deepEqual(Object.keys(store.getIndexers()).sort(), ["byLength", "byName", "byNode"]);
      assert.equal(store.countByIndex("byLength", "3"), 10);
      assert.equal(store.countByIndex("byName", NAMES[3]), 1);
      store.update(NAMES[3], { name: NAMES[3], node: "three" });
      assert.deepEqual([store.countByIndex("byLength", "5"), store.countByIndex("byNode", "one")], [1, 9]);
    }
  });

  it("does not put differences into content that has come in place of what they were found in", () => {
    const store = newThings();
    const list = Array.from({ length: 10 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
    store.replace(keyed(list), "1");
    const next = list.map((thing, i) => i === 0 ? { ...thing, node: "two" } : thing);
    const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "3" });
    finish(replacement.prepare());
    store.replace(keyed(list.map(({ name }) => ({ name: `${name}-b`, node: "three" }))), "2");
    assert.equal(replacement.commit(), false);
    replacement.now();
    assert.deepEqual(store.list().sort((a, b) => a.name < b.name ? -1 : 1), next);
    assert.equal(store.countByIndex("byNode", "three"), 0);
  });

  it("does not put content without an index in place of content that has come to have it", () => {
    const store = newThings();
    store.replace(keyed(NAMES.map((name) => ({ name, node: "one" }))), "1");
    const next = NAMES.map((name) => ({ name, node: "two" }));
    const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" });
    finish(replacement.prepare());
    finish(store.addIndexersSteps({ byName: ({ name }) => [name] }, { stepObjects: 1 }));
    assert.equal(replacement.commit(), false);
    replacement.now();
    assert.deepEqual(store.byIndex("byName", NAMES[0]), [next[0]]);
    assert.equal(store.countByIndex("byNode", "two"), NAMES.length);
  });

  it("does not put differences without an index into content that has come to have it", () => {
    const store = newThings();
    const list = NAMES.map((name) => ({ name, node: "one" }));
    store.replace(keyed(list), "1");
    const next = list.map((thing, i) => i === 0 ? { ...thing, node: "two" } : thing);
    const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" });
    finish(replacement.prepare());
    assert.equal(store.addIndexers({ byLength: ({ node }) => [node] }), store);
    assert.equal(replacement.commit(), false);
    replacement.now();
    assert.deepEqual(store.byIndex("byLength" as never, "two"), [next[0]]);
    assert.equal(store.countByIndex("byNode", "two"), 1);
  });

  it("reports a quarantined object once, however often it starts again, and keeps what takes its place, if anything", () => {
    for (let at = 0; at < 40; at++) {
      const store = new ThreadSafeStore<Thing, string>({
        byNode: ({ node }) => {
          if (node === "broken") throw new Error("no such node");
          return [node];
        },
      });
      const list = Array.from({ length: 10 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
      store.replace(keyed(list), "1");
      const next = list.map((thing, i) => i < 8 ? { ...thing, node: i % 2 === 0 ? "broken" : "two" } : thing);
      const asked: string[] = [];
      const replacement = store.newReplacement({ objects: new Map(keyed(next)), resourceVersion: "2" }, {
        stepObjects: 1,
        onIndexFailure: ({ key }) => {
          asked.push(key);
          return key === "thing-6" ? undefined : store.get(key);
        },
      });
      const steps = replacement.prepare();
      for (let i = 0; i < at; i++) steps.next();
      store.addIndexers({ [`more-${at}`]: ({ name }: Thing) => [name] });
      finish(steps);
      if (!replacement.commit()) replacement.now();
      assert.deepEqual(asked, ["thing-0", "thing-2", "thing-4", "thing-6"], `after ${at} steps`);
      assert.deepEqual(store.countByIndex("byNode", "one"), 5);
      assert.equal(store.listIndexFuncValues(`more-${at}`).length, 9);
    }
  });

  it("keeps values where they belong, whatever the names of indices", () => {
    const store = newThings();
    const list = Array.from({ length: 10 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
    store.replace(keyed(list), "1");
    store.addIndexers({ "1": ({ name }) => [name] });
    store.replace(keyed([...list, ...list.map(({ name }) => ({ name: `${name}-b`, node: "two" }))]), "2");
    assert.deepEqual(store.listIndexFuncValues("byNode").sort(), ["one", "two"]);
    assert.equal(store.indexKeys("1", "thing-3").length, 1);
  });

  it("adds indices as one step, with what was written meanwhile; or none, where one throws", () => {
    const store = newThings();
    const list = Array.from({ length: 10 }, (_, i) => ({ name: `thing-${i}`, node: "one" }));
    store.replace(keyed(list), "1");
    const steps = store.addIndexersSteps({ byName: ({ name }) => [name] }, { stepObjects: 1 });
    for (let i = 0; i < 6; i++) steps.next();
    assert.deepEqual(Object.keys(store.getIndexers()), ["byNode"]);
    store.delete("thing-0");
    store.add("late", { name: "late", node: "two" });
    finish(steps);
    assert.equal(store.countByIndex("byName", "thing-0"), 0);
    assert.equal(store.countByIndex("byName", "late"), 1);
    assert.equal(store.countByIndex("byNode", "one"), 9);
    assert.throws(() => finish(store.addIndexersSteps(THROWING, { stepObjects: 1 })), IndexFuncError);
    assert.deepEqual(Object.keys(store.getIndexers()), ["byNode", "byName"]);
    store.update("late", { name: "late", node: "three" });
    assert.equal(store.countByIndex("byNode", "three"), 1);
  });

  it("notes no writes any more once indices were added, or an index function has thrown, or it was left", () => {
    const entries = new Map(NAMES.map((name) => [name, newEntry(name, { name, node: "two" })]));
    const content: StoreContent<Thing> = {
      entries,
      index: new StoreIndex<Thing>({}),
      resourceVersion: "",
      writes: 0,
      indexChanges: 0,
      journals: new Set(),
      put: () => undefined,
      remove: () => undefined,
      become: () => {},
    };
    const steps = () => additionSteps<Thing>(content, { byName: ({ name }) => [name] }, 1);
    finish(steps());
    assert.throws(() => finish(additionSteps<Thing>(content, THROWING, 1)), IndexFuncError);
    const left = steps();
    left.next();
    assert.equal(content.journals.size, 1);
    left.return();
    assert.equal(content.journals.size, 0);
  });
});
