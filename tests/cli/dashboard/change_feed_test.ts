import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ChangeFeed } from "../../../src/cli/dashboard/change_feed.ts";
import { podOn, Reflection } from "./reflected.ts";

describe("ChangeFeed", () => {
  it("has one entry for the first list, and one for every later change", async () => {
    await using reflection = new Reflection(["v1/pods"]);
    reflection.server.create("v1/pods", podOn("a", "shop", "n1", true));
    reflection.server.create("v1/pods", podOn("b", "shop", "n1", true));
    const feed = new ChangeFeed(reflection.resources, { clock: reflection.clock });
    await reflection.sync();
    assert.deepEqual(feed.since(0).map(({ type, key }) => [type, key]), [["listed", "2 objects"]]);

    reflection.server.create("v1/pods", podOn("c", "shop", undefined, false));
    reflection.server.update("v1/pods", podOn("a", "shop", "n1", false));
    reflection.server.delete("v1/pods", "shop/b");
    await reflection.settle();
    assert.deepEqual(
      feed.since(1).map(({ seq, type, resource, key, note }) => [seq, type, resource, key, note]),
      [
        [2, "added", "pods", "shop/c", "Running 0/1"],
        [3, "updated", "pods", "shop/a", "Running 0/1"],
        [4, "deleted", "pods", "shop/b", undefined],
      ],
    );
    assert.equal(feed.lastSeq, 4);
    assert.deepEqual(feed.since(4), []);
    feed.close();
  });

  it("keeps only the last entries", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    const feed = new ChangeFeed(reflection.resources, { clock: reflection.clock, limit: 3 });
    await reflection.sync();
    for (let i = 1; i <= 20; i++) {
      reflection.server.create("v1/configmaps", { metadata: { name: `c${i}`, namespace: "shop" } });
    }
    await reflection.settle();
    assert.deepEqual(feed.since(0).map(({ key }) => key), ["shop/c18", "shop/c19", "shop/c20"]);
    assert.deepEqual(feed.since(20).map(({ key }) => key), ["shop/c20"]);
    feed.close();
  });

  it("has an entry for each change of a relist, up to a limit", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    const feed = new ChangeFeed(reflection.resources, { clock: reflection.clock });
    await reflection.sync();
    const relist = async (): Promise<void> => {
      reflection.server.compact();
      reflection.server.closeWatches();
      await reflection.clock.advance(120_000);
    };
    // The watch is closed first, so that only the next list has the new objects.
    reflection.server.closeWatches();
    reflection.server.create("v1/configmaps", { metadata: { name: "one", namespace: "shop" } });
    await relist();
    assert.ok(feed.since(0).some(({ key }) => key === "shop/one"));
    const before = feed.lastSeq;

    reflection.server.closeWatches();
    for (let i = 0; i < 500; i++) {
      reflection.server.create("v1/configmaps", { metadata: { name: `many-${i}`, namespace: "shop" } });
    }
    await relist();
    const lines = feed.since(before);
    assert.deepEqual(lines.map(({ type, key }) => [type, key]), [["listed", "relist, 500 objects changed"]]);
    feed.close();
  });

  it("counts the changes of each of the last 60 seconds", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    const feed = new ChangeFeed(reflection.resources, { clock: reflection.clock });
    await reflection.sync();
    assert.deepEqual(feed.changesPerSecond(), new Array(60).fill(0));
    const create = async (name: string): Promise<void> => {
      reflection.server.create("v1/configmaps", { metadata: { name, namespace: "shop" } });
      await reflection.settle();
    };
    await create("a");
    await create("b");
    await reflection.clock.advance(3_000);
    await create("c");
    assert.deepEqual(feed.changesPerSecond().slice(-5), [0, 2, 0, 0, 1]);
    await reflection.clock.advance(58_000);
    assert.deepEqual(feed.changesPerSecond().slice(0, 3), [0, 1, 0]);
    await reflection.clock.advance(600_000);
    assert.deepEqual(feed.changesPerSecond(), new Array(60).fill(0));
    feed.close();
  });

  it("calls onChange synchronously, and never after close", async () => {
    await using reflection = new Reflection(["v1/configmaps"]);
    let calls = 0;
    const feed = new ChangeFeed(reflection.resources, { clock: reflection.clock, onChange: () => calls++ });
    await reflection.sync();
    assert.equal(calls, 1);
    feed.close();
    reflection.server.create("v1/configmaps", { metadata: { name: "a", namespace: "shop" } });
    await reflection.settle();
    assert.equal(calls, 1);
  });
});
