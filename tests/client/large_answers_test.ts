import { newCluster, parseResource, type ResourceOptions } from "@listwatch/cache";
import { DecodeError } from "@listwatch/cache/client";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { createGzip } from "node:zlib";

const MIB = 1024 * 1024;

/** Text around a number of zeros: some kilobytes of gzip. */
const BOMBS: Record<string, readonly [head: string, zeros: number, tail: string]> = {
  "/api/v1/items": [
    '{"kind":"ItemList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"',
    64,
    '"}}]}',
  ],
  "/api/v1/unended": [
    '{"kind":"UnendedList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"',
    64,
    "",
  ],
  "/api/v1/scalars": ['{"kind":"ScalarList","apiVersion":"v1","metadata":{},"items":[', 64, "]}"],
  "/api/v1/envelopes": ['{"kind":"EnvelopeList","apiVersion":"v1","metadata":{"x":"', 64, '"},"items":[]}'],
  "/api/v1/keys": ['{"', 64, '":1}'],
  "/api/v1/configmaps/one": [
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one"},"data":"',
    100,
    '"}',
  ],
  "/api/v1/blanks": ['{"kind":"BlankList"', 0, ',"apiVersion":"v1","metadata":{},"items":[]}'],
};

describe("newCluster: a response that is too long", () => {
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const [head, megabytes, tail] = BOMBS[new URL(request.url ?? "", "http://x").pathname] ?? ["", 0, ""];
    const closed = once(response, "close");
    const gzip = createGzip();
    gzip.on("error", () => {});
    response.writeHead(200, { "Content-Type": "application/json", "Content-Encoding": "gzip" });
    gzip.pipe(response);
    gzip.write(head);
    const zeros = "0".repeat(MIB);
    for (let i = 0; i < megabytes && !response.destroyed; i++) {
      if (!gzip.write(zeros)) await Promise.race([once(gzip, "drain"), closed]);
    }
    if (head.includes("BlankList")) {
      for (let i = 0; i < 64 && !response.destroyed; i++) gzip.write(" ".repeat(MIB));
    }
    gzip.end(tail);
  });
  let url = "";
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Lists, and counts the bytes that were read before it failed. */
  async function listed(resource: string, options: ResourceOptions<{ metadata?: object }> = {}) {
    let bytes = 0;
    const context = { onBytes: (count: number) => void (bytes += count) };
    try {
      await newCluster({ server: url }).resource(parseResource(`v1/${resource}`), options).list({}, context);
    } catch (error) {
      assert.ok(error instanceof DecodeError, String(error));
      return { bytes, message: error.message };
    }
    throw new Error("it was accepted");
  }

  it("is given up at the item that is too long, whether it ends or not", async () => {
    for (const resource of ["items", "unended", "scalars"]) {
      const { bytes, message } = await listed(resource, { maxItemBytes: MIB });
      assert.match(message, /Cannot list ".*": items\[0\] is longer than 1048576 bytes; raise maxItemBytes/);
      assert.ok(bytes < 2 * MIB, `${bytes} bytes of ${resource}`);
    }
  });

  it("is given up at 16 MiB by default", async () => {
    const { bytes, message } = await listed("items");
    assert.match(message, /items\[0\] is longer than 16777216 bytes/);
    assert.ok(bytes < 18 * MIB, `${bytes} bytes`);
  });

  it("is given up where what is around the items is too long", async () => {
    for (const resource of ["envelopes", "keys", "blanks"]) {
      const { bytes, message } = await listed(resource, { maxItemBytes: MIB });
      assert.match(message, /: what is around its items is longer than 1048576 bytes/);
      assert.ok(bytes < 2 * MIB, `${bytes} bytes of ${resource}`);
    }
  });

  it("is given up where the list as a whole is too long, also if each item is short", async () => {
    const { bytes, message } = await listed("items", { maxListBytes: 3 * MIB, maxItemBytes: Infinity });
    assert.match(message, /is longer than 3145728 bytes; ask for pages \(limit\), or raise maxListBytes/);
    assert.ok(bytes < 4 * MIB, `${bytes} bytes`);
    const items = `{"metadata":{"name":"a"}},`.repeat(100_000);
    const body =
      `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[${items}{"metadata":{"name":"b"}}]}`;
    const cluster = newCluster({ server: url, fetch: () => new Response(body) });
    assert.equal((await cluster.resource("v1/pods", { maxItemBytes: 100 }).list()).items.length, 100_001);
    await assert.rejects(cluster.resource("v1/pods", { maxListBytes: 1_000_000 }).list(), DecodeError);
    await assert.rejects(
      cluster.resource("v1/pods", { maxItemBytes: 20 }).list(),
      /items\[0\] is longer than 20/,
    );
    await assert.rejects(cluster.resource("v1/pods", { maxItemBytes: 0 }).list(), RangeError);
    await assert.rejects(cluster.resource("v1/pods", { maxListBytes: NaN }).list(), RangeError);
  });

  it("is given up where it is one object, too", async () => {
    const answer = newCluster({ server: url }).resource("v1/configmaps").get("one");
    await assert.rejects(answer, /is longer than 67108864 bytes; ask for less/);
  });
});
