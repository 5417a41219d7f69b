import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { DashboardCounter } from "../../../src/cli/dashboard/dashboard_state.ts";
import { podOn, Reflection } from "./reflected.ts";

function node(name: string, pods: string, unschedulable = false) {
  return { metadata: { name }, spec: { unschedulable }, status: { allocatable: { pods } } };
}

describe("DashboardCounter.count", () => {
  it("accepts objects of any shape, and escapes invisible characters of names", async () => {
    await using reflection = new Reflection(["v1/pods", "v1/nodes"]);
    const counter = new DashboardCounter(reflection.resources, {
      onError: (_, error) => assert.fail(String(error)),
    });
    await reflection.sync();
    const [pods, nodes] = reflection.resources.map(({ informer }) => informer.indexer);
    const odd = [null, {}, [null], "x", 5, { length: 1 }];
    odd.forEach((conditions, i) => {
      const metadata = { name: `p-${i}`, namespace: "shop" };
      pods.add({ metadata, spec: { nodeName: "n" }, status: { conditions } } as KubernetesObject);
      nodes.add({ metadata: { name: `n-${i}` }, status: { allocatable: conditions } } as KubernetesObject);
    });
    nodes.add(
      { metadata: { name: `${"\u202e".repeat(9)}${"x".repeat(500)}` }, status: null } as KubernetesObject,
    );
    counter.changed(reflection.resources[0]);
    counter.changed(reflection.resources[1]);
    const { nodes: shown } = counter.count();
    assert.deepEqual([shown?.pods, shown?.ready], [6, 0]);
    assert.ok(shown?.rows.every(({ name }) => name.length <= 128 && !name.includes("\u202e")));
  });

  it("counts each resource in each namespace, also empty namespaces", async () => {
    await using reflection = new Reflection(["v1/namespaces", "v1/pods", "v1/configmaps"]);
    for (const name of ["shop", "empty"]) reflection.server.create("v1/namespaces", { metadata: { name } });
    reflection.server.create("v1/pods", podOn("a", "shop", "n1", true));
    reflection.server.create("v1/pods", podOn("b", "shop", "n1", true));
    reflection.server.create("v1/configmaps", { metadata: { name: "c", namespace: "other" } });
    const counter = new DashboardCounter(reflection.resources);
    await reflection.sync();
    const { namespaces, resources } = counter.count();
    assert.deepEqual(namespaces?.columns, ["pods", "configmaps"]);
    assert.deepEqual(namespaces?.rows, [
      { name: "empty", counts: [0, 0] },
      { name: "other", counts: [0, 1] },
      { name: "shop", counts: [2, 0] },
    ]);
    assert.equal(namespaces?.others, undefined);
    assert.deepEqual(resources.map(({ name, objects, synced, phase }) => [name, objects, synced, phase]), [
      ["namespaces", 2, true, "watching"],
      ["pods", 2, true, "watching"],
      ["configmaps", 1, true, "watching"],
    ]);
    assert.equal(resources[1].path, "/api/v1/pods");
  });

  it("counts the values of indices, and the readers of each resource", async () => {
    await using reflection = new Reflection(["v1/pods", "v1/nodes"]);
    reflection.server.create("v1/pods", podOn("a", "shop", "n1", true));
    reflection.server.create("v1/pods", podOn("b", "shop", "n1\u202e", true));
    reflection.server.create("v1/pods", podOn("c", "back", "n1", true));
    reflection.server.create("v1/nodes", node("n1", "110"));
    const counter = new DashboardCounter(reflection.resources, { watches: ({ name }) => name.length });
    await reflection.sync();
    const { indices, resources } = counter.count();
    assert.deepEqual(indices, [
      { resource: "pods", index: "namespace", values: 2, largest: { value: "shop", objects: 2 } },
      { resource: "pods", index: "byNode", values: 2, largest: { value: "n1", objects: 2 } },
    ]);
    assert.deepEqual(resources.map(({ watches }) => watches), [4, 5]);
  });

  it("counts a resource again after `changed`", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    const counter = new DashboardCounter(reflection.resources);
    await reflection.sync();
    assert.deepEqual(counter.count().namespaces?.rows, []);
    reflection.server.create("v1/configmaps", { metadata: { name: "c", namespace: "shop" } });
    await reflection.settle();
    counter.changed(reflection.resources[0]);
    assert.deepEqual(counter.count().namespaces?.rows, [{ name: "shop", counts: [1] }]);
  });

  it("counts the pods of each node, also nodes without pods", async () => {
    await using reflection = new Reflection(["v1/nodes", "v1/pods"]);
    reflection.server.create("v1/nodes", node("n2", "110"));
    reflection.server.create("v1/nodes", node("n10", "32", true));
    reflection.server.create("v1/pods", podOn("a", "shop", "n2", true));
    reflection.server.create("v1/pods", podOn("b", "shop", "n2", false));
    reflection.server.create("v1/pods", podOn("c", "shop", undefined, false));
    const counter = new DashboardCounter(reflection.resources);
    await reflection.sync();
    assert.deepEqual(counter.count().nodes, {
      rows: [
        { name: "n2", room: 110, pods: 2, ready: 1 },
        { name: "n10", room: 32, closed: true, pods: 0, ready: 0 },
      ],
      others: 0,
      unassigned: 1,
      pods: 3,
      ready: 1,
    });
  });

  it("counts nodes by their pods if nodes are not reflected, and nothing without pods", async () => {
    await using reflection = new Reflection(["v1/pods"]);
    reflection.server.create("v1/pods", podOn("a", "shop", "n1", true));
    await reflection.sync();
    assert.deepEqual(new DashboardCounter(reflection.resources).count().nodes?.rows, [
      { name: "n1", pods: 1, ready: 1 },
    ]);
    await using other = new Reflection(["v1/nodes"]);
    await other.sync();
    const { nodes, namespaces } = new DashboardCounter(other.resources).count();
    assert.equal(nodes, undefined);
    assert.equal(namespaces, undefined);
  });

  it("has the 40 largest namespaces, and the sum of the others", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    for (let i = 1; i <= 43; i++) {
      const objects = i <= 3 ? 1 : 2;
      for (let j = 0; j < objects; j++) {
        reflection.server.create("v1/configmaps", { metadata: { name: `c${j}`, namespace: `ns-${i}` } });
      }
    }
    await reflection.sync();
    const { namespaces } = new DashboardCounter(reflection.resources).count();
    assert.equal(namespaces?.rows.length, 40);
    assert.deepEqual(namespaces?.rows.map(({ name }) => name).slice(0, 2), ["ns-4", "ns-5"]);
    assert.deepEqual(namespaces?.others, { namespaces: 3, counts: [3] });
  });
});
