import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, silentLogger } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { RelayedInformer, type UpstreamStatus } from "../../src/cli/relayed_informer.ts";

describe("RelayedInformer", () => {
  it("is as old as its cache says of the API server, however often the cache itself answers", async () => {
    const clock = new FakeClock();
    using server = new InMemoryApiServer({ clock });
    const cluster = newCluster({ server: "http://cache", fetch: server.fetch, clock, logger: silentLogger });
    const pods = cluster.resource("v1/pods");
    let upstream: UpstreamStatus | undefined;
    const informer = new RelayedInformer(pods, { clock, logger: silentLogger }, {
      status: () => upstream,
      epoch: () => undefined,
      metadata: () => undefined,
    });
    const running = informer.start();
    await informer.synced();
    assert.equal(informer.status().lagMs, 0);
    upstream = { lagMs: 300_000, hasNoBookmarks: true };
    assert.equal(informer.status().lagMs, 300_000);
    assert.equal(informer.status().hasNoBookmarks, true);
    assert.equal(informer.isFresh(90_000), false);
    upstream = { lagMs: 0 };
    await clock.advance(1_000);
    assert.equal(informer.status().lagMs, 1_000);
    assert.equal(informer.metadata(), undefined);
    await running.stop();
  });
});
