import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import { FakeClock, FakeWatcher } from "@listwatch/cache/testing";
import { encodeMergedVersion } from "../../src/meta/merged_version.ts";
import { nextTurn } from "../../src/util/clock.ts";

const merged = (...parts: string[]) => encodeMergedVersion({ layout: "0000000001", parts });
const object = (name: string, resourceVersion: string): KubernetesObject => ({
  metadata: { name, resourceVersion },
});

describe("SharedIndexInformer over a merged resource", () => {
  it("stores the changes up to a bookmark in one turn, also where an object changes twice", async () => {
    const clock = new FakeClock();
    const watcher = new FakeWatcher();
    const source: ListerWatcher<KubernetesObject> = {
      list: () => Promise.resolve({ metadata: { resourceVersion: merged("1", "1") }, items: [] }),
      watch: () => Promise.resolve(watcher),
    };
    const informer = new SharedIndexInformer(source, {
      clock,
      logger: silentLogger,
      turnObjects: 1,
      reflector: { useWatchList: false },
    });
    await using running = informer.start();
    await clock.advance(0);
    const sizes = new Set<number>();
    let isDone = false;
    informer.observe(({ type }) => isDone ||= type === "bookmark");
    for (const name of ["a", "b", "c"]) watcher.add(object(name, "2"));
    watcher.delete(object("a", "3"));
    watcher.add(object("d", "4"));
    watcher.bookmark(merged("4", "1"));
    for (let i = 0; i < 1_000 && !isDone; i++) {
      await nextTurn();
      sizes.add(informer.indexer.size);
    }
    assert.deepEqual(sizes, new Set([3]));
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), merged("4", "1"));
    watcher.stop();
    await running.stop();
  });
});
