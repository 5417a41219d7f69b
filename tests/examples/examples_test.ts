/**
 * Runs what is in `examples/`, against an API server in memory.
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { allowNamespaces, readApi } from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import type { Hono } from "hono";
import { newApp as newWarmApp } from "../../examples/serve_from_deno_kv.ts";
import { newApp } from "../../examples/serve_with_hono.ts";
import "../../examples/widget_controller_test.ts"; // tests by itself

function newServer(): InMemoryApiServer {
  const server = new InMemoryApiServer();
  server.create("v1/pods", pod("web-1", { namespace: "shop", nodeName: "node-1" }));
  server.create("v1/pods", pod("web-2", { namespace: "shop", nodeName: "node-1" }));
  server.create("v1/pods", pod("dns-1", { namespace: "kube-system", nodeName: "node-2" }));
  return server;
}

/** Tries to get at what is in another namespace than `shop`. */
async function assertShopOnly(app: Hono): Promise<void> {
  const page = await (await app.request("/api/v1/namespaces/shop/pods?limit=1")).json();
  assert.equal(page.items.length, 1);
  const forged = btoa(JSON.stringify({ v: "meta.k8s.io/v1", rv: "1", start: "a" }));
  const ways = [
    "/api/v1/pods",
    "/api/v1/pods?watch=1",
    "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
    "/api/v1/pods?limit=1",
    `/api/v1/pods?continue=${page.metadata.continue}`,
    `/api/v1/pods?continue=${forged}`,
    "/api/v1/pods?fieldSelector=metadata.namespace%3Dshop",
    "/api/v1/namespaces/kube-system/pods",
    "/api/v1/namespaces/kube-system/pods?watch=1",
    `/api/v1/namespaces/kube-system/pods?continue=${page.metadata.continue}`,
    "/api/v1/namespaces/kube-system/pods/dns-1",
    "/api/v1/namespaces//pods",
    "/api/v1/namespaces/shop/../kube-system/pods",
    "/api/v1/namespaces/shop%2f..%2fkube-system/pods",
    "/api/v1/namespaces/*/pods",
    `/api/v1/namespaces/shop/pods?continue=${forged}`,
  ];
  for (const path of ways) {
    const response = await app.request(path);
    assert.ok(response.status >= 400, `${path}: ${response.status}`);
    assert.doesNotMatch(await response.text(), /node-2/, path);
  }
  for (const path of ["/api", "/apis", "/api/v1", "/nodes/node-2/pods", "/readyz?verbose"]) {
    assert.doesNotMatch(await (await app.request(path)).text(), /dns-1/, path);
  }
}

describe("examples/", () => {
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

  it("serve_with_hono.ts answers by index, and as a Kubernetes API that refuses other namespaces", async () => {
    using server = newServer();
    const stop = new AbortController();
    const app = newApp(newCluster({ server: "http://in-memory", fetch: server.fetch }), stop.signal);
    assert.equal((await app.request("/nodes/node-1/pods")).status, 503);
    const ready = async () => (await app.request("/readyz")).status === 200;
    for (let tries = 0; tries < 1_000 && !await ready(); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const byNode = await (await app.request("/nodes/node-1/pods")).json();
    assert.deepEqual(byNode, { names: ["web-1", "web-2"], at: server.resourceVersion });
    const list = await (await app.request("/api/v1/namespaces/shop/pods")).json();
    assert.deepEqual([list.kind, list.items.length], ["PodList", 2]);
    await assertShopOnly(app);
    stop.abort();
  });

  it("serve_from_deno_kv.ts serves what it had while the API server is away", async () => {
    using server = newServer();
    server.create("v1/services", { metadata: { name: "web", namespace: "shop" } });
    using kv = await Deno.openKv(":memory:");
    let isAway = false;
    const fetch: typeof globalThis.fetch = (...request) =>
      isAway
        ? Promise.reject(new TypeError("away"))
        : server.fetch(...request as Parameters<typeof server.fetch>);
    const get = async (app: ReturnType<typeof newWarmApp>) => {
      for (let tries = 0;; tries++) {
        const url = "http://cache/api/v1/namespaces/shop/services";
        const response = await app.fetch(new Request(url));
        if (response.status === 200 || tries === 1_000) return response;
        await response.body?.cancel();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    for (const synced of ["true", "false"]) {
      const stop = new AbortController();
      const app = newWarmApp(newCluster({ server: "http://in-memory", fetch }), kv, stop.signal);
      const response = await get(app);
      assert.equal(response.headers.get("Cache-Synced"), synced);
      assert.equal((await response.json()).items[0].metadata.name, "web");
      stop.abort();
      await app.finished;
      isAway = true;
    }
  });

  it("the rule of the documents holds against every way around it", async () => {
    using server = newServer();
    const stop = new AbortController();
    const pods = new SharedIndexInformer(
      newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods"),
    );
    pods.start(stop.signal);
    await pods.synced();
    const text = await documents("README.md", "docs/serving.md", "docs/workers.md");
    const rules = Array.from(text.matchAll(/authorize: (.*?),\n/g), ([, rule]) => rule);
    assert.ok(rules.length > 0);
    for (const rule of rules) {
      assert.equal(rule, 'allowNamespaces(["shop"])');
      const app = readApi({
        resources: [{ informer: pods, resource: "v1/pods" }],
        authorize: allowNamespaces(["shop"]),
      });
      await assertShopOnly(app);
    }
    // Everything that listens does so on this machine only.
    for (const [, options] of text.matchAll(/Deno\.serve\((.*)\)/g)) assert.match(options, /127\.0\.0\.1/);
    stop.abort();
  });
});

async function documents(...paths: string[]): Promise<string> {
  const texts = paths.map((path) => readFile(new URL(`../../${path}`, import.meta.url), "utf8"));
  return (await Promise.all(texts)).join("\n");
}
