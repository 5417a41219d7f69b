/** The first request of a program loads modules, which takes real time: the only test of its process. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";

it("FakeClock.advance waits for what the first request of a program loads", async () => {
  const clock = new FakeClock();
  using server = new InMemoryApiServer({ clock });
  server.create("v1/configmaps", { metadata: { name: "a" } });
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const informer = new SharedIndexInformer(cluster.resource("v1/configmaps"), { clock });
  await using _running = informer.start();
  await clock.advance(0);
  assert.deepEqual(informer.indexer.listKeys(), ["default/a"]);
});
