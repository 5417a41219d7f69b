import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { readApi, type ReadApiOptions } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer } from "@listwatch/cache/testing";

const nextTurn = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("serveFetch with a watch of readApi", () => {
  /** A served cache, and a client that reads as slowly as it likes. */
  async function watched(options: Partial<ReadApiOptions> = {}) {
    const stop = new AbortController();
    const upstream = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: upstream.fetch });
    const informer = new SharedIndexInformer(cluster.resource("v1/configmaps"));
    upstream.create("v1/configmaps", configMap(10));
    const running = informer.start();
    await informer.synced();
    const resources = [{ informer, resource: "v1/configmaps" }];
    const api = readApi({ resources, allowAnonymous: true, logger: silentLogger, ...options });
    const server = await serveFetch(api.fetch, { signal: stop.signal, logger: silentLogger });
    const socket = connect({ host: "127.0.0.1", port: server.port });
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(
      "GET /api/v1/configmaps?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    while (!text.includes("\r\n\r\n")) await nextTurn();
    return {
      ...{ api, socket, closed },
      put: (number: number, length: number) => upstream.update("v1/configmaps", configMap(number, length)),
      text: () => text,
      async [Symbol.asyncDispose]() {
        socket.destroy();
        stop.abort();
        await server.finished;
        await running.stop();
        upstream.close();
      },
    };
  }
  const configMap = (number: number, length = 0) => ({
    metadata: { name: "a", namespace: "shop" },
    data: { number: String(number), text: "x".repeat(length) },
  });
  const versions = (text: string) =>
    Array.from(text.matchAll(/"number":"(\d+)"/g), ([, version]) => Number(version));

  it("sends the head at once, then every event in order, and ends the response after them", async () => {
    await using served = await watched();
    const { api, put, closed, text } = served;
    assert.match(text(), /^HTTP\/1.1 200 OK\r\n(.+\r\n)*content-type: application\/json\r\n/i);
    for (let version = 11; version <= 300; version++) {
      put(version, version * 10);
      if (version % 20 === 0) await nextTurn();
    }
    while (!text().includes('"number":"300"')) await nextTurn();
    assert.deepEqual(versions(text()), Array.from({ length: 290 }, (_, i) => 11 + i));
    assert.equal(api.endWatches(), 1);
    while (!text().endsWith("\r\n0\r\n\r\n")) await nextTurn();
    served.socket.end();
    await closed;
  });

  it("holds little for a client that stops reading, and continues where it stopped, without a gap", async () => {
    await using served = await watched();
    const { put, socket, text } = served;
    socket.pause();
    for (let version = 11; version <= 210; version++) {
      put(version, 100_000);
      await nextTurn();
    }
    socket.resume();
    while (!text().includes('"number":"210"')) await nextTurn();
    assert.deepEqual(versions(text()), Array.from({ length: 200 }, (_, i) => 11 + i));
  });

  it("ends a client that stops reading for too long with 410", async () => {
    await using served = await watched({ eventWindow: 10 });
    const { put, socket, text } = served;
    socket.pause();
    for (let version = 11; version <= 210; version++) {
      put(version, 100_000);
      await nextTurn();
    }
    socket.resume();
    while (!text().endsWith("\r\n0\r\n\r\n")) await nextTurn();
    assert.match(text(), /\{"type":"ERROR".+"code":410\}\}\n/);
  });

  it("frees everything when the client disconnects", async () => {
    await using served = await watched({ maxWatches: 1 });
    const status = async () => {
      const response = await served.api.request("/api/v1/configmaps?watch=1");
      await response.body?.cancel();
      return response.status;
    };
    assert.equal(await status(), 429);
    served.socket.destroy();
    await served.closed;
    while (await status() !== 200) await nextTurn();
    assert.equal(served.api.endWatches(), 0);
  });
});
