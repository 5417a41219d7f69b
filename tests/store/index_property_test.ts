/**
 * Lookups by index after random writes, compared with a scan of what was written.
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type Indexer,
  type IndexFunc,
  type KubernetesObject,
  LABEL_INDEX,
  labelIndexFunc,
  metaNamespaceIndex,
  metaNamespaceKey,
  newLister,
} from "@listwatch/cache";
import { listAll, listAllByNamespace } from "@listwatch/cache/informer";
import { LabelRequirement, LabelSelector } from "@listwatch/cache/selectors";
import { propertyOptions } from "../property.ts";
import { describe, it, newIndexer } from "./storages.ts";

interface Thing {
  metadata: { name: string };
  one: string[];
  many: string[];
}

// More keys than a small value has room for, so that values grow large and small again.
const KEYS = Array.from({ length: 14 }, (_, i) => `k${i}`);
const MANY = ["p", "q", "r", "s", "t"];

const thing: fc.Arbitrary<Thing> = fc.record({
  metadata: fc.record({ name: fc.constantFrom(...KEYS) }),
  one: fc.array(fc.constantFrom("x", "y"), { minLength: 0, maxLength: 1 }),
  many: fc.array(fc.constantFrom(...MANY), { maxLength: 7 }),
});

type Write =
  | { op: "update" | "delete" | "walk"; object: Thing }
  | { op: "replace"; objects: Thing[] };

const write: fc.Arbitrary<Write> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ op: fc.constant("update" as const), object: thing }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant("delete" as const), object: thing }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("walk" as const), object: thing }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("replace" as const),
      objects: fc.array(thing, { maxLength: 30 }),
    }),
  },
);

function nameOf(object: { metadata?: { name?: string } }): string {
  return object.metadata?.name ?? "";
}

function assertLookups(indexer: Indexer<Thing, "one" | "many">, model: ReadonlyMap<string, Thing>): void {
  const scan = (matches: (object: Thing) => boolean) =>
    [...model.values()].filter(matches).map(nameOf).sort();
  for (const [name, values] of [["one", ["x", "y"]], ["many", MANY]] as const) {
    const counts = indexer.indexValueCounts(name);
    assert.deepEqual([...counts.keys()].sort(), indexer.listIndexFuncValues(name).sort());
    for (const value of values) {
      const expected = scan((object) => object[name].includes(value));
      assert.deepEqual(indexer.byIndex(name, value).map(nameOf).sort(), expected);
      assert.deepEqual(Array.from(indexer.eachByIndex(name, value), nameOf).sort(), expected);
      assert.equal(indexer.countByIndex(name, value), expected.length);
      assert.equal(counts.get(value) ?? 0, expected.length);
      const both = scan((object) => object.one.includes("x") && object[name].includes(value));
      const found = name === "one"
        ? indexer.byIndices({ one: ["x", value] })
        : indexer.byIndices({ one: "x", many: value });
      assert.deepEqual(found.map(nameOf).sort(), both);
    }
  }
}

describe("StoreIndex under random writes", () => {
  it("finds, walks, counts and intersects what a scan finds", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 40, size: "max" }), (writes) => {
        const indexer = newIndexer<Thing, "one" | "many">(metaNamespaceKey, {
          one: (object) => object.one,
          many: (object) => object.many,
        });
        const model = new Map<string, Thing>();
        // Walks that are under way while the others are written: what is still to come, of what has stayed.
        const walks: { walk: Iterator<Thing>; rest: Set<string>; value: string }[] = [];
        for (const write of writes) {
          if (write.op === "replace") {
            walks.length = 0;
            model.clear();
            for (const object of write.objects) model.set(nameOf(object), object);
            indexer.replace(write.objects, "1");
          } else if (write.op === "walk") {
            const [value = "p"] = write.object.many;
            const walk = indexer.eachByIndex("many", value);
            const rest = new Set([...model.values()].filter(({ many }) => many.includes(value)).map(nameOf));
            rest.delete(nameOf(walk.next().value ?? {}));
            walks.push({ walk, rest, value });
          } else {
            const { op, object } = write;
            const name = nameOf(object);
            if (op === "delete") model.delete(name);
            else model.set(name, object);
            indexer[op](object);
            for (const { rest, value } of walks) {
              if (op === "delete" || !object.many.includes(value)) rest.delete(name);
            }
          }
          assertLookups(indexer, model);
        }
        for (const { walk, rest, value } of walks) {
          const came: string[] = [];
          for (let next = walk.next(); !next.done; next = walk.next()) {
            assert.deepEqual(next.value, model.get(nameOf(next.value)));
            assert.ok(next.value.many.includes(value));
            came.push(nameOf(next.value));
          }
          assert.equal(new Set(came).size, came.length);
          for (const name of rest) assert.ok(came.includes(name), `${name} stayed under ${value}`);
        }
      }),
      propertyOptions(700),
    );
  });
});

// "app=web" is no label key, but nothing here refuses it: what is under it must not be mistaken for app=web.
const LABEL_KEYS = ["app", "tier", "build", "app=web", "__proto__"];
const LABEL_VALUES = ["web", "db", "1", "7", ""];

const pod: fc.Arbitrary<KubernetesObject> = fc.record({
  metadata: fc.record({
    name: fc.constantFrom(...KEYS),
    namespace: fc.constantFrom("shop", "blog"),
    labels: fc.option(
      fc.array(fc.tuple(fc.constantFrom(...LABEL_KEYS), fc.constantFrom(...LABEL_VALUES)), { maxLength: 4 })
        .map((labels) => Object.fromEntries(labels)),
      { nil: undefined },
    ),
  }, { requiredKeys: ["name", "namespace"] }),
});

const selectorKey = fc.constantFrom("app", "tier", "build");
const selectorValue = fc.constantFrom(...LABEL_VALUES, "other");
const requirement: fc.Arbitrary<LabelRequirement> = fc.oneof(
  fc.tuple(selectorKey, fc.constantFrom("=" as const, "==" as const, "!=" as const), selectorValue)
    .map(([key, operator, value]) => new LabelRequirement(key, { operator, values: [value] })),
  fc.tuple(
    selectorKey,
    fc.constantFrom("in" as const, "notin" as const),
    fc.array(selectorValue, { minLength: 1, maxLength: 4 }),
  ).map(([key, operator, values]) => new LabelRequirement(key, { operator, values })),
  fc.tuple(selectorKey, fc.constantFrom("exists" as const, "!" as const))
    .map(([key, operator]) => new LabelRequirement(key, { operator })),
  fc.tuple(fc.constantFrom("gt" as const, "lt" as const), fc.constantFrom("1", "3"))
    .map(([operator, value]) => new LabelRequirement("build", { operator, values: [value] })),
);
const selector = fc.array(requirement, { maxLength: 3 }).map((requirements) =>
  new LabelSelector(requirements)
);

const INDEXERS: Readonly<Record<string, Readonly<Record<string, IndexFunc<KubernetesObject>>>>> = {
  "an index by labels": { [LABEL_INDEX]: labelIndexFunc() },
  "indices by labels and namespace": { [LABEL_INDEX]: labelIndexFunc(), namespace: metaNamespaceIndex },
  "indices by some labels, of other names": {
    byApp: labelIndexFunc(["app"]),
    namespace: metaNamespaceIndex,
    byBuild: labelIndexFunc(["build", "nothing"]),
  },
  "an index by namespace only": { namespace: metaNamespaceIndex },
  "an index of the name that is none by labels": { [LABEL_INDEX]: () => ["app=web"] },
};

describe("listAll under random writes", () => {
  for (const [name, indexers] of Object.entries(INDEXERS)) {
    it(`finds with ${name} what a scan finds`, () => {
      const change = fc.record({
        op: fc.constantFrom("update" as const, "update" as const, "delete" as const),
        pod,
      });
      fc.assert(
        fc.property(
          fc.array(change, { maxLength: 60, size: "max" }),
          fc.array(selector, { minLength: 1, maxLength: 12 }),
          (changes, selectors) => {
            const indexer = newIndexer<KubernetesObject>(metaNamespaceKey, indexers);
            const lister = newLister(indexer, "v1/pods");
            const model = new Map<string, KubernetesObject>();
            for (const { op, pod } of changes) {
              indexer[op](pod);
              if (op === "delete") model.delete(metaNamespaceKey(pod));
              else model.set(metaNamespaceKey(pod), pod);
            }
            for (const selector of selectors) {
              const scan = (namespace: string) =>
                [...model.values()].filter(({ metadata }) =>
                  (namespace === "" || metadata!.namespace === namespace) &&
                  selector.matches(metadata!.labels)
                ).map(metaNamespaceKey).sort();
              const keysOf = (found: KubernetesObject[]) => found.map(metaNamespaceKey).sort();
              assert.deepEqual(keysOf(listAll(indexer, selector)), scan(""), `${selector}`);
              assert.deepEqual(keysOf(lister.list(selector)), scan(""));
              for (const namespace of ["", "shop", "blog", "nowhere"]) {
                const found = listAllByNamespace(indexer, namespace, selector);
                assert.deepEqual(keysOf(found), scan(namespace), `${selector} in ${namespace}`);
                assert.deepEqual(keysOf(lister.byNamespace(namespace).list(selector)), scan(namespace));
              }
            }
          },
        ),
        propertyOptions(300),
      );
    });
  }
});
