import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { FakeClock, FakeWatcher } from "@listwatch/cache/testing";
import { openWatch } from "../../src/reflector/open_watch.ts";

/** A watch that has been followed to its end, and its clock. */
async function followedWatch() {
  const clock = new FakeClock();
  const watcher = new FakeWatcher<KubernetesObject>();
  const source = { list: () => Promise.reject(new Error("unused")), watch: () => Promise.resolve(watcher) };
  const watch = await openWatch<KubernetesObject>(source, { signal: new AbortController().signal }, {
    name: "pods",
    clock,
    random: () => 0,
    openTimeoutMs: 30_000,
    minWatchTimeoutMs: 300_000,
  });
  const followed = watch.follow({ write: () => {} }, {
    bookmarkSilenceMs: 90_000,
    expectsBookmarks: true,
    relistDueMs: undefined,
  });
  watcher.stop();
  await followed;
  return { clock, watch };
}

describe("OpenWatch.follow", () => {
  it("leaves no timer behind when the watch ends", async () => {
    const { clock } = await followedWatch();
    assert.equal(clock.pendingTimers, 0);
  });

  it("starts no timer on a watch that has ended: what it brought is processed in a later turn", async () => {
    const { clock, watch } = await followedWatch();
    watch.relistAt(clock.monotonicNow() + 60_000);
    watch.expectBookmarks();
    assert.equal(clock.pendingTimers, 0);
  });
});
