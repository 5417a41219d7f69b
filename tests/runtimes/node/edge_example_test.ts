/**
 * The Worker of examples/edge, as it is, in a real workerd, in front of an API server in memory.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { openWindow } from "@listwatch/cache/screens";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { bundle, loadMiniflare, type Miniflare } from "./workerd.ts";
import { isWholeList } from "../../workers/whole_lists.ts";

const TOKEN = "a-token-for-readers-0123";
// miniflare compresses what it may, and holds back the events of watches then.
const AUTHORIZATION = { Authorization: `Bearer ${TOKEN}`, "Accept-Encoding": "identity" };
const PODS = "http://edge.example/api/v1/namespaces/shop/pods";

/** The driver runs this suite in tests/runtimes. */
const EXAMPLE = resolve(process.cwd(), "../../examples/edge");

describe("examples/edge: the Worker", () => {
  const server = new InMemoryApiServer();
  const disk = mkdtempSync(join(tmpdir(), "listwatch-edge-"));
  let worker: Miniflare;
  let start: () => Miniflare;
  /** The lists of all objects. For a fresh read the object requests at most 100, as a proof. */
  const lists = () => server.requests.filter(isWholeList);
  const read = (url: string, headers: Record<string, string> = AUTHORIZATION) =>
    worker.dispatchFetch(url, { headers });
  const names = async () => {
    const { items = [] } = await (await read(PODS)).json() as { items?: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name);
  };
  /** Repeats until the cache has come so far; the test's time limit ends it. */
  const until = async (isDone: () => Promise<boolean>) => {
    while (!await isDone());
  };

  before(async () => {
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    server.create("v1/pods", pod("dns-1", { namespace: "kube-system" }));
    const miniflare = await loadMiniflare();
    const script = await bundle(readFileSync(join(EXAMPLE, "src/worker.ts"), "utf8"));
    const settings = JSON.parse(readFileSync(join(EXAMPLE, "wrangler.jsonc"), "utf8"));
    const [{ name: binding, class_name: className }] = settings.durable_objects.bindings;
    start = () =>
      new miniflare.Miniflare({
        modules: true,
        script,
        compatibilityDate: settings.compatibility_date,
        bindings: { ...settings.vars, READER_TOKEN: TOKEN },
        durableObjects: { [binding]: { className, useSQLite: true } },
        durableObjectsPersist: disk,
        outboundService: async ({ url, method, headers, signal }: Request) => {
          const { status, headers: answered, body } = await server.fetch(url, { method, headers, signal });
          return new miniflare.Response(body, { status, headers: answered });
        },
      });
    worker = start();
    await until(async () => (await read(PODS)).ok);
  });
  after(async () => {
    await worker.dispose();
    server.close();
    rmSync(disk, { recursive: true, force: true });
  });

  it("serves what its readers may read, from one list", { timeout: 30_000 }, async () => {
    assert.deepEqual(await names(), ["web-1"]);
    assert.equal((await read(`${PODS}/web-1`)).status, 200);
    assert.equal((await read(`${PODS}/web-2`)).status, 404);
    assert.equal((await read(PODS.replace("shop", "kube-system"))).status, 403);
    assert.equal((await read(PODS, { Authorization: "Bearer another-token-0123456789" })).status, 401);
    assert.equal(lists().length, 1);
  });

  it("serves windows, of which its page shows the rows", { timeout: 30_000 }, async () => {
    const pods = openWindow({
      url: PODS,
      sortBy: "column(Name)",
      limit: 1,
      table: true,
      fetch: ({ url, headers, signal }) =>
        worker.dispatchFetch(url, { headers: { ...Object.fromEntries(headers), ...AUTHORIZATION }, signal }),
    });
    const first = () => pods.getSnapshot().rows[0]?.cells[0];
    const shows = (name: string) =>
      new Promise<void>((resolve) => {
        const stop = pods.subscribe(() => {
          if (first() !== name) return;
          stop();
          resolve();
        });
      });
    await shows("web-1");
    server.create("v1/pods", pod("a-first", { namespace: "shop" }));
    await shows("a-first");
    assert.deepEqual([pods.getSnapshot().state, pods.getSnapshot().total], ["live", 2]);
    pods.close();
    server.delete("v1/pods", "shop/a-first");
    await until(async () => (await names()).length === 1);
  });

  it("answers 304 for what the reader has", { timeout: 30_000 }, async () => {
    const response = await read(PODS);
    const tag = response.headers.get("ETag")!;
    await response.text();
    assert.equal((await read(PODS, { ...AUTHORIZATION, "If-None-Match": tag })).status, 304);
  });

  it("serves watches as lines, as server-sent events and over WebSockets", { timeout: 30_000 }, async () => {
    const watch = `${PODS}?watch=true`;
    const lines = (await read(watch)).body!.getReader();
    const messages = (await read(watch, { ...AUTHORIZATION, Accept: "text/event-stream" })).body!.getReader();
    const protocol = `base64url.bearer.authorization.k8s.io.${btoa(TOKEN).replace(/=+$/, "")}, watch`;
    const upgraded = await read(watch, { Upgrade: "websocket", "Sec-WebSocket-Protocol": protocol });
    assert.equal(upgraded.status, 101);
    assert.equal(upgraded.headers.get("Sec-WebSocket-Protocol"), "watch");
    const socket = upgraded.webSocket!;
    let text = "";
    const received = new Promise<void>((done) =>
      socket.addEventListener("message", ({ data }) => {
        text += data;
        if (text.includes('"late"')) done();
      })
    );
    socket.accept();
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    for (const reader of [lines, messages]) {
      let read = "";
      while (!read.includes('"late"')) read += new TextDecoder().decode((await reader.read()).value);
      assert.match(read, /"type":"ADDED"/);
      await reader.cancel();
    }
    await received;
    assert.match(text, /^{"type":"ADDED",.*}\n$/s);
    socket.close();
    const foreign = {
      Upgrade: "websocket",
      Origin: "https://evil.example",
      "Sec-WebSocket-Protocol": protocol,
    };
    assert.equal((await read(watch, foreign)).status, 403);
    server.delete("v1/pods", "shop/late");
    await until(async () => !(await names()).includes("late"));
  });

  it("continues by a watch after a restart, and misses no delete", { timeout: 60_000 }, async () => {
    server.create("v1/pods", pod("removed", { namespace: "shop" }));
    await until(async () => (await names()).includes("removed"));
    const before = lists().length;
    await worker.dispose();
    server.delete("v1/pods", "shop/removed");
    worker = start();
    await until(async () => (await read(PODS)).ok);
    await until(async () => !(await names()).includes("removed"));
    assert.deepEqual(await names(), ["web-1"]);
    assert.equal(lists().length, before);
  });
});
