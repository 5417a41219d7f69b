import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { serve } from "@hono/node-server";
import { configMap, InMemoryApiServer } from "@listwatch/cache/testing";
import { summary, WatchReader } from "./helpers.ts";

it("InMemoryApiServer.fetch serves on a socket: lists, watches that end with their client, and refusals of unread bodies", async () => {
  const server = new InMemoryApiServer();
  const listener = serve({ fetch: server.fetch, port: 0, hostname: "127.0.0.1" });
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/api/v1/configmaps`;
  try {
    server.create("v1/configmaps", configMap("a"));
    assert.equal((await (await fetch(url)).json()).items.length, 1);

    const refused = await fetch(url, { method: "POST", body: "x".repeat(200_000) });
    assert.equal(refused.status, 415);
    await refused.body?.cancel();

    const stop = new AbortController();
    const reader = new WatchReader(await fetch(`${url}?watch=1&resourceVersion=1`, { signal: stop.signal }));
    server.create("v1/configmaps", configMap("b"));
    assert.deepEqual(summary(await reader.take(2)), ["ADDED default/a 2", "ADDED default/b 3"]);
    assert.equal(server.openWatches, 1);
    const rest = reader.rest();
    stop.abort();
    await assert.rejects(rest);
    // The server receives the cancellation over the network, later.
    while (server.openWatches > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  } finally {
    server.close();
    listener.close();
  }
});
