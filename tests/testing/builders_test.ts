import assert from "node:assert/strict";
import { it } from "node:test";
import {
  configMap,
  customObject,
  deployment,
  event,
  InMemoryApiServer,
  namespace,
  node,
  pod,
  replicaSet,
  secret,
  seededRandom,
  service,
} from "@listwatch/cache/testing";

it("InMemoryApiServer accepts every object of the builders", () => {
  const server = new InMemoryApiServer();
  const web = server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  server.create("v1/nodes", node("n1", { unschedulable: true }));
  server.create("v1/namespaces", namespace("shop"));
  server.create("v1/configmaps", configMap("c", { data: { k: "v" } }));
  server.create("v1/secrets", secret("s", { data: { k: "ü" } }));
  server.create("v1/services", service("web"));
  server.create("apps/v1/deployments", deployment("web", { replicas: 3 }));
  server.create("apps/v1/replicasets", replicaSet("web-1"));
  server.create("v1/events", event("e", { involvedObject: web }));
  const about = server.list("v1/events", { fieldSelector: `involvedObject.uid=${web.metadata.uid}` });
  assert.deepEqual(about.items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`), ["shop/e"]);
  server.close();
});

it("pod() is Running on a node, and has the given status", () => {
  assert.deepEqual(pod("a").status, { phase: "Pending", conditions: [{ type: "Ready", status: "False" }] });
  const running = pod("a", { nodeName: "n1", labels: { app: "web" }, resourceVersion: "7", image: "i:2" });
  assert.deepEqual([running.status.phase, running.spec.nodeName, running.spec.containers[0].image], [
    "Running",
    "n1",
    "i:2",
  ]);
  assert.deepEqual(running.metadata, {
    name: "a",
    namespace: "default",
    resourceVersion: "7",
    labels: { app: "web" },
  });
});

it("secret() encodes its data in base64, and customObject() makes any kind", () => {
  assert.deepEqual(secret("s", { data: { k: "ü" } }).data, { k: "w7w=" });
  const dial = customObject({ apiVersion: "x.io/v1", kind: "Dial" }, {
    name: "d",
    fields: { spec: { level: 3 } },
  });
  assert.deepEqual(dial, {
    apiVersion: "x.io/v1",
    kind: "Dial",
    metadata: { name: "d" },
    spec: { level: 3 },
  });
});

it("seededRandom returns the same numbers for a seed, in [0, 1)", () => {
  const [a, b, c] = [seededRandom(1), seededRandom(1), seededRandom(2)];
  const first = Array.from({ length: 1_000 }, a);
  assert.deepEqual(Array.from({ length: 1_000 }, b), first);
  assert.notDeepEqual(Array.from({ length: 1_000 }, c), first);
  assert.ok(first.every((value) => value >= 0 && value < 1));
  const mean = first.reduce((sum, value) => sum + value, 0) / first.length;
  assert.ok(Math.abs(mean - 0.5) < 0.05);
});
