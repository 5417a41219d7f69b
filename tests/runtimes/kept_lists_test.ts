/**
 * Kept and compressed lists, conditional requests and server-sent events, on every runtime.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { etag } from "hono/etag";
import { metaNamespaceIndex, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi, type ReadApiOptions } from "@listwatch/cache/hono";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";

const PATH = "/api/v1/pods";
const COUNT = 400;

async function start(options: Partial<ReadApiOptions> = {}) {
  const server = new InMemoryApiServer();
  for (let i = 0; i < COUNT; i++) {
    const annotations = { text: `${i} é `.repeat(200) };
    server.create("v1/pods", pod(`web-${i}`, { namespace: `shop-${i % 4}`, annotations }));
  }
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
  const metrics = new PrometheusMetrics();
  const informer = new SharedIndexInformer(cluster.resource("v1/pods"), {
    indexers: { namespace: metaNamespaceIndex },
    metrics,
  });
  const running = informer.start();
  await informer.synced();
  const resources = [{ informer, resource: "v1/pods" }];
  const api = readApi({ resources, allowAnonymous: true, metrics, ...options });
  return {
    api,
    server,
    stop: async () => {
      await running.stop();
      server.close();
    },
  };
}

async function bytesOf(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  assert.equal(response.status, 200);
  return new Uint8Array(await response.arrayBuffer());
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Response(bytes).body!.pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

describe("readApi, a kept list", () => {
  it("is the same for readers one after the other and at once, plain and compressed", async () => {
    const { api, stop } = await start();
    const { api: plain, stop: stopPlain } = await start();
    const decoder = new TextDecoder();
    const expected = JSON.parse(decoder.decode(await bytesOf(await plain.request(PATH))));
    assert.equal(expected.items.length, COUNT);
    const headers = { "Accept-Encoding": "gzip" };
    let text = "";
    for (let i = 0; i < 3; i++) {
      const bodies = await Promise.all([1, 2, 3].map(async () => await bytesOf(await api.request(PATH))));
      for (const body of bodies) {
        text ||= decoder.decode(body);
        assert.ok(decoder.decode(body) === text);
      }
      const compressed = await Promise.all([1, 2].map(async () => await api.request(PATH, { headers })));
      for (const response of compressed) {
        assert.equal(response.headers.get("Content-Encoding"), "gzip");
        const body = await bytesOf(response);
        assert.ok(body.byteLength < text.length / 4);
        assert.ok(await gunzip(body) === text);
      }
    }
    const names = (list: { items: { metadata: { name: string } }[] }) =>
      list.items.map(({ metadata }) => metadata.name);
    assert.deepEqual(names(JSON.parse(text)), names(expected));
    await stop();
    await stopPlain();
  });

  it("of a few objects is the same again and again", async () => {
    const { api, stop } = await start();
    const path = `${PATH}?limit=3`;
    const first = await (await api.request(path)).text();
    for (let i = 0; i < 3; i++) assert.equal(await (await api.request(path)).text(), first);
    assert.equal(JSON.parse(first).items.length, 3);
    await stop();
  });

  it("is written for one reader, and compressed, where it is too large to be kept", async () => {
    const { api, stop } = await start({ maxReaderBytes: 450_000 });
    const plain = await (await api.request(PATH)).text();
    const response = await api.request(PATH, { headers: { "Accept-Encoding": "gzip" } });
    assert.ok(await gunzip(await bytesOf(response)) === plain);
    await stop();
  });

  it("has a tag, which a conditional request gets 304 for until something changes", async () => {
    const { api, server, stop } = await start();
    for (const path of [PATH, "/api/v1/namespaces/shop-1/pods/web-1"]) {
      const response = await api.request(path);
      await response.text();
      const headers = { "If-None-Match": response.headers.get("ETag")! };
      const again = await api.request(path, { headers });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), "");
      assert.equal(again.headers.get("Cache-Synced"), "true");
      const watch =
        (await api.request(`${PATH}?watch=1&resourceVersion=${again.headers.get("Resource-Version")}`))
          .body!.getReader();
      server.update(
        "v1/pods",
        pod("web-1", { namespace: "shop-1", labels: { changed: String(path.length) } }),
      );
      await watch.read();
      await watch.cancel();
      assert.equal((await api.request(path, { headers })).status, 200);
    }
    await stop();
  });
});

describe("readApi, a list behind hono's compress() and etag()", () => {
  it("is compressed once, and has the tag that the read API gave it", async () => {
    const { api, stop } = await start();
    const app = new Hono();
    app.use("*", compress({ threshold: 1 }), etag());
    app.route("/", api);
    const headers = { "Accept-Encoding": "gzip" };
    for (const path of [PATH, `${PATH}?limit=3`]) {
      const own = await api.request(path);
      const text = await own.text();
      for (let i = 0; i < 2; i++) {
        const response = await app.request(path, { headers });
        assert.equal(response.headers.get("Content-Encoding"), "gzip");
        assert.equal(response.headers.get("ETag"), own.headers.get("ETag"));
        assert.ok(await gunzip(await bytesOf(response)) === text);
      }
      const conditional = { headers: { ...headers, "If-None-Match": own.headers.get("ETag")! } };
      assert.equal((await app.request(path, conditional)).status, 304);
    }
    await stop();
  });
});

describe("readApi, server-sent events", () => {
  it("come as they happen, and resume by Last-Event-ID", async () => {
    const { api, server, stop } = await start();
    const { metadata } = await (await api.request(`${PATH}?limit=1`)).json();
    const headers = { "Accept": "text/event-stream", "Last-Event-ID": metadata.resourceVersion };
    const response = await api.request(`${PATH}?watch=1`, { headers });
    assert.equal(response.headers.get("Content-Type"), "text/event-stream; charset=utf-8");
    const reader = response.body!.getReader();
    server.create("v1/pods", pod("new", { namespace: "shop-1" }));
    const decoder = new TextDecoder();
    let text = "";
    while (!text.includes('"name":"new"')) {
      const { done, value } = await reader.read();
      assert.ok(!done);
      text += decoder.decode(value, { stream: true });
    }
    assert.match(text, /^retry: 1000\n\nid: [0-9]+\ndata: \{"type":"ADDED",/);
    await reader.cancel();
    await stop();
  });
});

describe("readApi, metrics and indices", () => {
  it("are served", async () => {
    const { api, stop } = await start({ cors: { origins: ["https://a.example"] } });
    const { items } = await (await api.request("/indices/pods/namespace")).json();
    assert.deepEqual(items[1], { value: "shop-1", count: COUNT / 4 });
    const response = await api.request("/metrics", { headers: { Origin: "https://a.example" } });
    assert.equal(response.headers.get("Access-Control-Allow-Origin"), "https://a.example");
    assert.match(await response.text(), /^informer_objects\{name="[^"]*"\} 400$/m);
    await stop();
  });
});
