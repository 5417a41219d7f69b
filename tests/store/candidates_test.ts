import assert from "node:assert/strict";
import {
  fieldIndex,
  type IndexFunc,
  type KubernetesObject,
  labelIndexFunc,
  metaNamespaceIndex,
  metaNamespaceKey,
} from "@listwatch/cache";
import { parseFieldSelector, parseLabelSelector } from "@listwatch/cache/selectors";
import { NoMetaError } from "@listwatch/cache/store";
import { candidateKeysOf, candidatesOf } from "../../src/store/candidates.ts";
import { indexesField, indexesLabel } from "../../src/store/index_func.ts";
import type { Indexer } from "../../src/store/store.ts";
import { describe, it, newIndexer } from "./storages.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

/** Ten pods: half of them in namespace `a`, two of them `app=web`, each with a number. */
function newPods(): Indexer<Pod> {
  const pods = newIndexer<Pod, string>(metaNamespaceKey, {
    namespace: metaNamespaceIndex as IndexFunc<Pod>,
    label: labelIndexFunc(),
    node: fieldIndex("spec.nodeName"),
  });
  for (let i = 0; i < 10; i++) {
    const labels = {
      app: i < 2 ? "web" : "db",
      half: i < 5 ? "yes" : "no",
      n: String(i),
      rest: String(9 - i),
      tier: "x",
      ...(i === 3 && { odd: "" }),
    };
    const metadata = { name: `p${i}`, namespace: i < 5 ? "a" : "b", resourceVersion: "1", labels };
    pods.add({ metadata, spec: i < 3 ? { nodeName: "n1" } : {} });
  }
  return pods as unknown as Indexer<Pod>;
}

interface Query {
  readonly labels?: string;
  readonly fields?: string;
  readonly namespace?: string;
}

function parsed({ labels, fields, namespace }: Query) {
  return {
    ...(labels !== undefined && { labels: parseLabelSelector(labels) }),
    ...(fields !== undefined && { fields: parseFieldSelector(fields).requirements }),
    ...(namespace !== undefined && { namespace }),
  };
}

describe("candidatesOf", () => {
  const cases: [query: Query, names: string[] | undefined][] = [
    [{}, undefined],
    [{ labels: "" }, undefined],
    [{ labels: "!app" }, undefined],
    [{ labels: "app!=web,n notin (1)" }, undefined],
    [{ labels: "app=web" }, ["p0", "p1"]],
    [{ labels: "app==web,n=1" }, ["p1"]],
    [{ labels: "n=1,tier=x,!odd" }, ["p1"]],
    [{ labels: "n=1,app=db" }, []],
    [{ labels: "app=none,tier=x" }, []],
    [{ labels: "n in (7,1,7),tier=x" }, ["p1", "p7"]],
    [{ labels: "app=web,n in (7,1)" }, ["p0", "p1"]],
    [{ labels: "n in (1,7),app in (web,db),tier=x" }, ["p1", "p7"]],
    [{ labels: "n in (1,7),app=db,half=no" }, ["p7"]],
    [{ labels: "odd" }, ["p3"]],
    [{ labels: "n>100,odd" }, ["p3"]],
    [{ namespace: "a" }, ["p0", "p1", "p2", "p3", "p4"]],
    [{ namespace: "none", labels: "app=web" }, []],
    [{ namespace: "b", labels: "n in (1,7)" }, ["p7"]],
    [{ fields: "spec.nodeName=n1" }, ["p0", "p1", "p2"]],
    [{ fields: "spec.nodeName=n1", labels: "app=db" }, ["p2"]],
    [{ fields: "spec.nodeName=" }, undefined],
    [{ fields: "spec.nodeName!=n1" }, undefined],
    [{ fields: "spec.other=n1" }, undefined],
    [{ fields: "spec.other=n1,spec.nodeName=n1" }, ["p0", "p1", "p2"]],
  ];
  for (const [query, names] of cases) {
    it(`are ${names === undefined ? "unknown" : names.join(" ") || "none"} for ${JSON.stringify(query)}`, () => {
      const found = candidatesOf(newPods(), parsed(query));
      assert.deepEqual(found?.map(({ metadata }) => metadata?.name).sort(), names);
    });
  }

  it("are not in an index without the label", () => {
    const pods = newIndexer<Pod, string>(metaNamespaceKey, { label: labelIndexFunc(["app"]) });
    pods.add({ metadata: { name: "p", resourceVersion: "1", labels: { n: "1" } } });
    assert.equal(candidatesOf(pods as unknown as Indexer<Pod>, parsed({ labels: "n=1" })), undefined);
    assert.deepEqual(candidatesOf(pods as unknown as Indexer<Pod>, parsed({ labels: "n=1,app=web" })), []);
  });
});

describe("candidateKeysOf", () => {
  const cases: [query: Query, keys: string[] | undefined][] = [
    [{}, undefined],
    [{ labels: "tier=x" }, undefined],
    [{ labels: "!app" }, undefined],
    [{ labels: "app=db" }, undefined],
    [{ labels: "app=web" }, ["a/p0", "a/p1"]],
    [{ labels: "half=yes" }, ["a/p0", "a/p1", "a/p2", "a/p3", "a/p4"]],
    [{ labels: "half=yes,n=7" }, ["b/p7"]],
    [{ labels: "app=web,half=yes" }, ["a/p0", "a/p1"]],
    [{ labels: "n in (9,7,1)" }, ["a/p1", "b/p7", "b/p9"]],
    [{ labels: "rest in (0,8)" }, ["a/p1", "b/p9"]],
    [{ labels: "app=none" }, []],
    [{ fields: "spec.nodeName=n1" }, ["a/p0", "a/p1", "a/p2"]],
    [{ fields: "spec.nodeName=n1", labels: "app=web" }, ["a/p0", "a/p1"]],
    [{ fields: "spec.nodeName=" }, undefined],
  ];
  for (const [query, keys] of cases) {
    it(`are ${keys === undefined ? "unknown" : keys.join(" ") || "none"} for ${JSON.stringify(query)}`, () => {
      const found = candidateKeysOf(newPods(), parsed(query));
      assert.deepEqual(found && Array.from(found.keys), keys);
    });
  }

  it("say which requirement on a field they answer", () => {
    const pods = newPods();
    const [field] = parseFieldSelector("spec.nodeName=n1").requirements;
    assert.deepEqual(candidateKeysOf(pods, parsed({ fields: "spec.nodeName=n1" }))?.answers, field);
    assert.equal(candidateKeysOf(pods, parsed({ labels: "app=web" }))?.answers, undefined);
    assert.equal(
      candidateKeysOf(pods, parsed({ fields: "spec.nodeName=n1", labels: "app=web" }))?.answers,
      undefined,
    );
  });
});

describe("indexesField", () => {
  it("is true of the index by a path, whichever way the path is written", () => {
    const node = fieldIndex("spec.nodeName");
    assert.deepEqual(["spec.nodeName", "spec.node", "spec"].map((field) => indexesField(node, field)), [
      true,
      false,
      false,
    ]);
    assert.ok(indexesField(fieldIndex('spec["nodeName"]'), "spec.nodeName"));
    assert.ok(!indexesField(fieldIndex('spec["node.name"]'), "spec.node.name"));
    assert.ok(!indexesField(fieldIndex("spec.images[].name"), "spec.images.name"));
    assert.ok(!indexesField(() => [], "spec.nodeName"));
  });
});

describe("indexesLabel", () => {
  it("is true of the labels that an index has, or of all", () => {
    const [all, some] = [labelIndexFunc(), labelIndexFunc(["app"])];
    assert.deepEqual(["app", "n"].map((key) => indexesLabel(all, key)), [true, true]);
    assert.deepEqual(["app", "n"].map((key) => indexesLabel(some, key)), [true, false]);
    assert.ok(!indexesLabel(() => [], "app"));
    assert.deepEqual(all({ metadata: { labels: { app: "web", n: "1" } } }), ["app", "app=web", "n", "n=1"]);
    assert.deepEqual(some({ metadata: { labels: { app: "web", n: "1" } } }), ["app", "app=web"]);
    assert.deepEqual([all({ metadata: {} }), all({ metadata: { labels: null } })], [[], []]);
    assert.throws(() => all({}), NoMetaError);
  });
});
