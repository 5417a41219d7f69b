import assert from "node:assert/strict";
import { it } from "node:test";
import { newCluster, silentLogger } from "@listwatch/cache";
import { newNamespaceKeyedIndexerAndReflector } from "@listwatch/cache/compat";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";

it("newNamespaceKeyedIndexerAndReflector makes a store keyed by namespace and name, indexed by namespace, which its reflector fills", async () => {
  const clock = new FakeClock();
  using server = new InMemoryApiServer({ clock });
  server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  server.create("v1/pods", pod("web-1", { namespace: "bank" }));
  const pods = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource("v1/pods");
  const options = { clock, logger: silentLogger, name: "all pods" };
  const [indexer, reflector] = newNamespaceKeyedIndexerAndReflector(pods, options);
  assert.equal(reflector.name, "all pods");
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  const until = async (isSo: () => boolean) => {
    for (let turns = 0; turns < 1_000 && !isSo(); turns++) await clock.advance(0);
  };
  await until(() => reflector.status().phase === "watching");
  assert.deepEqual(indexer.listKeys().sort(), ["bank/web-1", "shop/web-1"]);
  assert.deepEqual(indexer.indexKeys("namespace", "shop"), ["shop/web-1"]);

  server.delete("v1/pods", "shop/web-1");
  const { resourceVersion } = server;
  await until(() => indexer.lastStoreSyncResourceVersion() === resourceVersion);
  assert.deepEqual(indexer.listKeys(), ["bank/web-1"]);
  stop.abort();
  await running;
});
