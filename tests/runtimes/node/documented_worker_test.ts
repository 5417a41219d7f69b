/**
 * The program of docs/workers.md, as it is printed there, in a real workerd without
 * compatibility flags, in front of an API server in memory.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { answerStatus, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { bundle, loadMiniflare, type Miniflare } from "./workerd.ts";
import { isWholeList } from "../../workers/whole_lists.ts";

const TOKEN = "a-reader-token-of-enough-length";
/** The age in the document is too long for a test. */
const MAX_AGE_MS = 300;

/** The TypeScript block of docs/workers.md that has the Worker. */
function documentedProgram(): string {
  // The driver runs this suite in tests/runtimes.
  const text = readFileSync(resolve(process.cwd(), "../../docs/workers.md"), "utf8");
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code);
  const program = blocks.find((code) => code.includes("context.waitUntil"));
  assert.ok(program !== undefined, "docs/workers.md has no program for Workers");
  assert.equal(
    program.split("isFresh(90_000)").length,
    2,
    "the Worker of docs/workers.md has no maximum age of 90 s",
  );
  assert.equal(program.split("10_000").length, 2, "the Worker of docs/workers.md has no pause of 10 s");
  assert.equal(program.split("5_000").length, 2, "the Worker of docs/workers.md has no time limit of 5 s");
  return program.replace("isFresh(90_000)", `isFresh(${MAX_AGE_MS})`).replace("10_000", String(MAX_AGE_MS))
    .replace("5_000", "500");
}

describe("docs/workers.md: the Worker", () => {
  const server = new InMemoryApiServer();
  let worker: Miniflare;
  const watches = () => server.requests.filter(({ isWatch }) => isWatch).length;
  /**
   * Lists of all objects; an informer that continues requests at
   * most 100, as a proof of how far the server is.
   */
  const lists = () => server.requests.filter(isWholeList).length;

  before(async () => {
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    server.create("v1/pods", pod("dns-1", { namespace: "kube-system" }));
    const miniflare = await loadMiniflare();
    worker = new miniflare.Miniflare({
      modules: true,
      script: await bundle(documentedProgram()),
      compatibilityDate: "2026-07-01",
      bindings: { READER_TOKEN: TOKEN },
      // What the Worker fetches from the API server.
      outboundService: async ({ url, method, headers, signal }: Request) => {
        const { status, headers: answered, body } = await server.fetch(url, { method, headers, signal });
        return new miniflare.Response(body, { status, headers: answered });
      },
    });
  });
  after(async () => {
    await worker.dispose();
    server.close();
  });

  const read = (path: string, token = TOKEN) =>
    worker.dispatchFetch(`http://cache.example${path}`, { headers: { Authorization: `Bearer ${token}` } });
  const names = async (path: string) => {
    const { items } = await (await read(path)).json() as { items: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name);
  };

  it("serves lists and objects of the allowed namespace from one copy", async () => {
    assert.deepEqual(await names("/api/v1/namespaces/shop/pods"), ["web-1"]);
    assert.equal((await read("/api/v1/namespaces/shop/pods/web-1")).status, 200);
    assert.equal((await read("/api/v1/namespaces/shop/pods/web-2")).status, 404);
    assert.equal((await read("/api/v1/namespaces/kube-system/pods")).status, 403);
    assert.equal((await read("/api/v1/pods")).status, 403);
    assert.equal((await read("/api/v1/namespaces/shop/pods", "another-token-of-enough-length")).status, 401);
    const response = await worker.dispatchFetch("http://cache.example/api/v1/namespaces/shop/pods");
    assert.equal(response.status, 401);
    await response.text();
  });

  it("compresses what is large once, which workerd would do again", async () => {
    const annotations = { large: "large ".repeat(50_000) };
    server.create("v1/pods", pod("large", { namespace: "shop", annotations }));
    const headers = { Authorization: `Bearer ${TOKEN}`, "Accept-Encoding": "gzip" };
    const metadataOf = async (path: string) => {
      const text = await (await worker.dispatchFetch(`http://cache.example${path}`, { headers })).text();
      const { metadata, items } = JSON.parse(text);
      return [metadata, ...items?.map((item: { metadata: unknown }) => item.metadata) ?? []]
        .find(({ name }) => name === "large");
    };
    const path = "/api/v1/namespaces/shop/pods";
    while (!(await names(path)).includes("large"));
    for (const url of [path, `${path}/large`]) {
      assert.deepEqual((await metadataOf(url)).annotations, annotations, url);
    }
    server.delete("v1/pods", "shop/large");
    while ((await names(path)).includes("large"));
  });

  it("continues by a watch, in a new informer, when its copy is older than the maximum age", async () => {
    const path = "/api/v1/namespaces/shop/pods";
    const earlier = watches();
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    // Without further events the copy becomes too old soon; no assertion depends on when.
    while (watches() === earlier) await names(path);
    while ((await names(path)).length < 2);
    assert.deepEqual(await names(path), ["web-1", "web-2"]);
    assert.equal(lists(), 1);
  });

  it("serves what it has, as stale, while the API server does not answer", async () => {
    const path = "/api/v1/namespaces/shop/pods";
    const stopRefusing = server.intercept(answerStatus(503), {});
    server.closeWatches();
    let response = await read(path);
    while (response.headers.get("Cache-Synced") !== "false") {
      await response.text();
      response = await read(path);
    }
    assert.equal(response.status, 200);
    assert.match(response.headers.get("Warning") ?? "", /^299 /);
    assert.match(response.headers.get("Age") ?? "", /^[0-9]+$/);
    assert.equal((await response.json() as { items: unknown[] }).items.length, 2);
    const ready = await read("/readyz");
    await ready.text();
    assert.equal(ready.status, 503);
    stopRefusing();
    server.delete("v1/pods", "shop/web-2");
    while ((await names(path)).length > 1);
    while ((await read(path)).headers.get("Cache-Synced") !== "true");
  });
});
