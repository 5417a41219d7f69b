import assert from "node:assert/strict";
import { it as itOnce } from "node:test";
import fc from "fast-check";
import {
  fieldIndex,
  type IndexFunc,
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  ownerIndex,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { newCache } from "../../src/store/cache.ts";
import type { Held } from "../../src/store/holding.ts";
import { indexesField } from "../../src/store/index_func.ts";
import { EncodedHolding } from "../../src/store/encoded_holding.ts";
import { propertyOptions } from "../property.ts";
import { describe, it, newHolding, newIndexer } from "./storages.ts";

interface Pod extends KubernetesObject {
  spec?: {
    nodeName?: string | null;
    priority?: number;
    hostNetwork?: boolean;
    containers?: { image: string; args?: string[] }[];
  };
}

const pod = (name: string, spec: Pod["spec"], owners: readonly string[] = []): Pod => ({
  metadata: {
    name,
    namespace: "shop",
    resourceVersion: "1",
    annotations: { "example.com/team": "blue" },
    ownerReferences: owners.map((uid) => ({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid })),
  },
  spec,
});

describe("fieldIndex", () => {
  const newPods = () =>
    newIndexer<Pod, "node" | "priority" | "host" | "image" | "arg" | "team" | "owner" | "spec">(
      metaNamespaceKey,
      {
        node: fieldIndex("spec.nodeName"),
        priority: fieldIndex("spec.priority"),
        host: fieldIndex("spec.hostNetwork"),
        image: fieldIndex("spec.containers[].image"),
        arg: fieldIndex("spec.containers[].args[]"),
        team: fieldIndex('metadata.annotations["example.com/team"]'),
        owner: ownerIndex(),
        spec: fieldIndex("spec"),
      },
    );

  it("puts objects under strings as they are, under numbers and booleans as text, and under each element's value once", () => {
    const pods = newPods();
    const containers = [{ image: "web:1", args: ["-v", "-w"] }, { image: "log:1", args: ["-v"] }, {
      image: "web:1",
    }];
    pods.add(pod("web-1", { nodeName: "n1", priority: 10, hostNetwork: false, containers }, ["u-1", "u-2"]));
    const values = Object.fromEntries(
      Object.keys(pods.getIndexers()).map((name) => [name, pods.listIndexFuncValues(name as "node").sort()]),
    );
    assert.deepEqual(values, {
      node: ["n1"],
      priority: ["10"],
      host: ["false"],
      image: ["log:1", "web:1"],
      arg: ["-v", "-w"],
      team: ["blue"],
      owner: ["u-1", "u-2"],
      spec: [],
    });
    assert.equal(pods.countByIndex("image", "web:1"), 1);
    assert.deepEqual(pods.byIndex("owner", "u-2").map(metaNamespaceKey), ["shop/web-1"]);
  });

  it("gives no value for a field that is absent or null, and for objects without it", () => {
    const pods = newPods();
    pods.add(pod("web-1", { nodeName: null }));
    pods.add(pod("web-2", undefined));
    pods.add({ metadata: { name: "web-3", namespace: "shop" } });
    assert.deepEqual(pods.listIndexFuncValues("node"), []);
    assert.equal(pods.countByIndex("team", "blue"), 2);
  });

  it("is not that of a field selector whose dots are of a name", () => {
    assert.ok(indexesField(fieldIndex("spec.nodeName"), "spec.nodeName"));
    assert.ok(indexesField(fieldIndex('spec["nodeName"]'), "spec.nodeName"));
    assert.ok(!indexesField(fieldIndex('spec["node.name"]'), "spec.node.name"));
    assert.ok(!indexesField(fieldIndex("spec.containers[].image"), "spec.containers.image"));
  });

  it("follows updates, deletes, and what was stored before the index was added", () => {
    const pods = newPods();
    for (let i = 0; i < 300; i++) pods.add(pod(`web-${i}`, { nodeName: `n${i % 3}`, priority: i % 2 }));
    const more = pods.addIndexers({ later: fieldIndex("spec.nodeName"), name: fieldIndex("metadata.name") });
    assert.deepEqual(more.indexKeys("later", "n1"), pods.indexKeys("node", "n1"));
    assert.deepEqual(more.indexKeys("name", "web-7"), ["shop/web-7"]);
    pods.update(pod("web-1", { nodeName: "n9" }));
    pods.delete(pod("web-4", {}));
    assert.deepEqual(more.indexKeys("later", "n9"), ["shop/web-1"]);
    assert.equal(more.countByIndex("later", "n1"), 98);
    const byFunction: IndexFunc<Pod> = ({ spec }) => spec?.nodeName ? [spec.nodeName] : [];
    const both = more.addIndexers({ byFunction });
    for (const node of ["n0", "n1", "n2", "n9"]) {
      assert.deepEqual(both.indexKeys("byFunction", node), both.indexKeys("node", node));
    }
  });

  it("carries its path, also as a store returns it", () => {
    const pods = newPods();
    assert.equal((pods.getIndexers().image as { fieldPath?: string }).fieldPath, "spec.containers[].image");
    assert.equal(ownerIndex().fieldPath, "metadata.ownerReferences[].uid");
  });

  it("of kind and apiVersion has the resource's for listed objects, which come without", async () => {
    const server = new InMemoryApiServer();
    const create = (name: string) => server.create("v1/pods", { metadata: { name, namespace: "shop" } });
    create("listed");
    const holding = newHolding();
    const informer = new SharedIndexInformer<KubernetesObject, "kind" | "version">(
      newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods"),
      {
        ...(holding && { storage: holding }),
        reflector: { useWatchList: false },
        indexers: { kind: fieldIndex("kind"), version: fieldIndex("apiVersion") },
      },
    );
    await using running = informer.start();
    await informer.synced();
    create("watched");
    await informer.waitForVersion(server.resourceVersion);
    assert.equal(informer.indexer.countByIndex("kind", "Pod"), 2);
    assert.equal(informer.indexer.countByIndex("version", "v1"), 2);
    await running.stop();
    server.close();
  });

  it("finds under random writes what a function finds", () => {
    const json = fc.oneof(
      fc.constantFrom("a", "b", "é", ""),
      fc.integer({ min: 0, max: 3 }),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.constantFrom("a", "b", 1, null), { maxLength: 3 }),
      fc.record({ value: fc.constantFrom("a", "b", true) }),
    );
    const write = fc.record({
      name: fc.constantFrom("p", "q", "r", "s"),
      spec: fc.oneof(json, fc.array(fc.record({ value: json }), { maxLength: 3 })),
    });
    const texts = (value: unknown) =>
      ["string", "number", "boolean"].includes(typeof value) ? [`${value}`] : [];
    const elements = (value: unknown): unknown[] => Array.isArray(value) ? value : [];
    const valueOf = (value: unknown) => (value as { value?: unknown } | null)?.value;
    const model: Record<string, (spec: unknown) => string[]> = {
      "spec": texts,
      "spec[]": (spec) => elements(spec).flatMap(texts),
      "spec.value": (spec) => Array.isArray(spec) ? [] : texts(valueOf(spec)),
      "spec[].value": (spec) => elements(spec).flatMap((element) => texts(valueOf(element))),
      "spec[].value[]": (spec) =>
        elements(spec).flatMap((element) => elements(valueOf(element)).flatMap(texts)),
    };
    fc.assert(
      fc.property(fc.array(write, { maxLength: 30 }), (writes) => {
        type Loose = KubernetesObject & { spec?: unknown };
        const indexers = Object.fromEntries(
          Object.keys(model).map((path) => [path, fieldIndex<Loose>(path)]),
        );
        const indexer = newIndexer<Loose>(metaNamespaceKey, indexers);
        const stored = new Map<string, unknown>();
        for (const { name, spec } of writes) {
          indexer.update({ metadata: { name }, spec });
          stored.set(name, spec);
        }
        for (const [path, of] of Object.entries(model)) {
          const expected = new Map<string, number>();
          for (const spec of stored.values()) {
            for (const value of new Set(of(spec))) expected.set(value, (expected.get(value) ?? 0) + 1);
          }
          assert.deepEqual(indexer.indexValueCounts(path), expected, path);
        }
      }),
      propertyOptions(300),
    );
  });
});

itOnce("fieldIndex refuses a path that it cannot read", () => {
  for (const path of ["", "[]", "spec.", "spec..a", ".spec", "spec[0]", "spec nodeName"]) {
    assert.throws(() => fieldIndex(path), { name: "TypeError", message: /Cannot read the path/ }, path);
  }
});

itOnce("fieldIndex opens no short text, and a function opens it once for all functions", () => {
  let opened = 0;
  const cache = newCache<Pod, string>(metaNamespaceKey, {}, {
    storage: shortTexts({ hotObjects: 0 }),
    freeze: (value) => (opened++, value),
  });
  for (let i = 0; i < 50; i++) cache.add(pod(`web-${i}`, { nodeName: `n${i % 5}` }, [`u-${i % 2}`]));
  cache.addIndexers({ node: fieldIndex("spec.nodeName"), owner: ownerIndex() });
  assert.equal(cache.countByIndex("node", "n3"), 10);
  assert.equal(cache.countByIndex("owner", "u-1"), 25);
  assert.equal(opened, 0);
  cache.addIndexers({
    a: ({ spec }) => [spec?.nodeName ?? ""],
    b: ({ spec }) => [spec?.nodeName ?? ""],
    image: fieldIndex("spec.containers[].image"),
  });
  assert.equal(opened, 50);
});

itOnce(
  "EncodedHolding.heldIndex gives no values of another object after a text that cannot be read, nor to a field that comes later",
  () => {
    const decode = (text: string) => {
      if (text.includes("lost")) throw new Error("it was deleted");
      return text;
    };
    const form = { encode: (json: string) => json, decode };
    const holding = new EncodedHolding<Pod>(metaNamespaceKey, form, { hotObjects: 0 });
    const hold = (name: string, nodeName: string): Held<Pod> =>
      holding.hold(pod(name, { nodeName, priority: 1 }));
    const [first, second, lost] = [hold("first", "n1"), hold("second", "n2"), hold("lost", "n3")];
    const node = holding.heldIndex(fieldIndex("spec.nodeName"));
    assert.deepEqual([node(first), node(second)], [["n1"], ["n2"]]);
    for (let i = 0; i < 2; i++) assert.throws(() => node(lost), /it was deleted/);
    assert.deepEqual(node(second), ["n2"]);
    const priority = holding.heldIndex(fieldIndex("spec.priority"));
    assert.deepEqual(priority(second), ["1"]);
  },
);
