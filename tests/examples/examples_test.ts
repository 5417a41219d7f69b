/**
 * Runs what is in `examples/`, against an API server in memory.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { newApp } from "../../examples/serve_with_hono.ts";
import "../../examples/test_your_controller.ts"; // tests by itself, of reconcile_loop.ts

function newServer(): InMemoryApiServer {
  const server = new InMemoryApiServer();
  server.create("v1/pods", pod("web-1", { namespace: "shop", nodeName: "node-1" }));
  server.create("v1/pods", pod("web-2", { namespace: "shop", nodeName: "node-1" }));
  server.create("v1/pods", pod("dns-1", { namespace: "kube-system", nodeName: "node-2" }));
  return server;
}

describe("the examples", () => {
  it("pods_by_node.ts prints how many pods each node has", async () => {
    using server = newServer();
    const { fetch } = globalThis;
    const { log } = console;
    const lines: string[] = [];
    globalThis.fetch = server.fetch as typeof fetch;
    console.log = (...values: unknown[]) => void lines.push(values.join(" "));
    try {
      await import("../../examples/pods_by_node.ts");
    } finally {
      globalThis.fetch = fetch;
      console.log = log;
    }
    assert.deepEqual(lines.sort(), ["node-1 2", "node-2 1"]);
    assert.equal(server.openWatches, 0);
  });

  it("serve_with_hono.ts answers by index, and as a Kubernetes API that refuses what it is told to refuse", async () => {
    using server = newServer();
    const stop = new AbortController();
    const app = newApp(newCluster({ server: "http://in-memory", fetch: server.fetch }), stop.signal);
    assert.equal((await app.request("/nodes/node-1/pods")).status, 503);
    const ready = async () => (await app.request("/readyz")).status === 200;
    for (let tries = 0; tries < 1_000 && !await ready(); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const byNode = await (await app.request("/nodes/node-1/pods")).json();
    assert.deepEqual(byNode, { names: ["shop/web-1", "shop/web-2"], at: server.resourceVersion });
    const list = await (await app.request("/api/v1/namespaces/shop/pods")).json();
    assert.deepEqual([list.kind, list.items.length], ["PodList", 2]);
    assert.equal((await app.request("/api/v1/namespaces/kube-system/pods")).status, 403);
    stop.abort();
  });
});
