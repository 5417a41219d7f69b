import assert from "node:assert/strict";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { newInformerSnapshot } from "@listwatch/cache/informer";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { Disk } from "../../informer/snapshot_rig.ts";
import { names, WatchReader } from "../reading.ts";
import { describe, it, storage } from "../storages.ts";
import { readApi } from "../read_api.ts";

/** A cache that is stopped and started again, before an API server in memory. */
class Restarts {
  readonly clock = new FakeClock(1_000_000);
  readonly server = new InMemoryApiServer({ clock: this.clock });
  readonly disk: Disk;

  constructor(disk: Disk = new Disk()) {
    this.disk = disk;
  }

  async start(options: Partial<ReadApiOptions> = {}) {
    const { clock, server, disk } = this;
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const informer = new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/pods"), {
      clock,
      logger: silentLogger,
      storage: storage(),
      snapshot: newInformerSnapshot(disk.open()),
    });
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock,
      logger: silentLogger,
      ...options,
    });
    const running = informer.start();
    const isAsking = () => /^(resuming|listing|streaming)$/.test(informer.status().phase);
    for (let i = 0; i < 5 || (i < 100 && isAsking()); i++) await clock.advance(0);
    return { informer, api, stop: () => running.stop() };
  }

  /** Saves some pods; then the server is away. Returns how to bring it back. */
  async away(...podNames: string[]): Promise<() => void> {
    for (const name of podNames) this.server.create("v1/pods", pod(name));
    const first = await this.start();
    await first.stop();
    return this.server.intercept(() => Promise.reject(new TypeError("connection refused")));
  }
}

describe("readApi over the content of a snapshot", () => {
  it("serves it, and says that it is not confirmed and how old it is", async () => {
    const restarts = new Restarts();
    const back = await restarts.away("a", "b");
    await restarts.clock.advance(600_000);
    const { api, stop } = await restarts.start({ freshness: "as-is" });
    const list = await api.request("/api/v1/pods");
    assert.deepEqual(names(await list.json()), ["default/a", "default/b"]);
    const one = await api.request("/api/v1/namespaces/default/pods/a");
    for (const { status, headers } of [list, one]) {
      assert.equal(status, 200);
      assert.equal(headers.get("Cache-Synced"), "false");
      assert.equal(headers.get("Age"), "600");
      assert.equal(headers.get("Resource-Version"), "3");
      assert.equal(
        headers.get("Warning"),
        '299 - "this is a saved state, which the API server has not confirmed yet"',
      );
    }
    const ready = await api.request("/readyz");
    assert.equal(ready.status, 503);
    assert.match(
      await ready.text(),
      /^\[-\]informer\/pods failed: a snapshot, not confirmed by the API server, backingOff$/m,
    );
    back();
    await restarts.clock.advance(60_000);
    const fresh = await api.request("/api/v1/pods");
    assert.equal(fresh.headers.get("Cache-Synced"), "true");
    assert.equal(fresh.headers.get("Warning"), null);
    assert.ok(Number(fresh.headers.get("Age")) < 60);
    assert.equal((await api.request("/readyz")).status, 200);
    await stop();
  });

  it("refuses reads that must be fresh, until they are proven to be", async () => {
    const restarts = new Restarts();
    const back = await restarts.away("a");
    const { api, stop } = await restarts.start({ freshness: "consistent", freshnessTimeoutMs: 1_000 });
    const refused = api.request("/api/v1/pods");
    await restarts.clock.advance(1_000);
    assert.equal((await refused).status, 504);
    assert.equal((await api.request("/api/v1/pods?resourceVersion=0")).status, 200);
    back();
    await restarts.clock.advance(60_000);
    const answered = api.request("/api/v1/pods");
    await restarts.clock.advance(1_000);
    assert.equal((await answered).status, 200);
    await stop();
  });

  it("ends a watch from before the snapshot with 410, and continues one from its version without a gap", async () => {
    const restarts = new Restarts();
    const back = await restarts.away("a", "b");
    restarts.server.delete("v1/pods", "default/a");
    const { api, stop } = await restarts.start();
    const early = await api.request("/api/v1/pods?watch=1&resourceVersion=2");
    const { object } = JSON.parse(await early.text());
    assert.deepEqual([object.code, object.reason], [410, "Expired"]);
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=1&resourceVersion=3");
    back();
    await restarts.clock.advance(60_000);
    assert.deepEqual(await watch.lines(1), ["DELETED default/a 4"]);
    await watch.cancel();
    await stop();
  });

  it("answers no tag of another process with 304", async () => {
    const restarts = new Restarts();
    await restarts.away("a");
    const { api, stop } = await restarts.start({ freshness: "as-is" });
    const before = (await api.request("/api/v1/pods")).headers.get("ETag")!;
    const headers = { "If-None-Match": before };
    assert.equal((await api.request("/api/v1/pods", { headers })).status, 304);
    await stop();
    const second = await restarts.start({ freshness: "as-is" });
    // Another process: it cannot know which states this one had under the same versions.
    assert.equal((await second.api.request("/api/v1/pods", { headers })).status, 200);
    await second.stop();
  });

  it("ends watches, and gives other tags, where the server has another history", async () => {
    const restarts = new Restarts();
    await restarts.away("a", "b", "c");
    const other = new Restarts(restarts.disk);
    other.server.create("v1/pods", pod("a"));
    const back = other.server.intercept(() => Promise.reject(new TypeError("connection refused")));
    const { api, stop } = await other.start();
    const before = await api.request("/api/v1/namespaces/default/pods/a");
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=1&resourceVersion=4");
    const events = watch.toEnd();
    back();
    await other.clock.advance(60_000);
    assert.deepEqual(await events, ["ERROR 410 Expired"]);
    const after = await api.request("/api/v1/namespaces/default/pods/a");
    assert.equal(after.headers.get("Cache-Synced"), "true");
    assert.notEqual(after.headers.get("ETag"), before.headers.get("ETag"));
    await stop();
  });
});
