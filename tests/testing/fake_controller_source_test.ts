import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isExpired, isInvalid, type KubernetesObject } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { WatchItem } from "@listwatch/cache/reflector";
import { FakeControllerSource, FakeWatcher, pod } from "@listwatch/cache/testing";
import { CountingSignal } from "../counting_signal.ts";

// Made on demand: workerd makes no signals while a module is loaded.
const context = {
  get signal(): AbortSignal {
    return new AbortController().signal;
  },
};

/** Takes batches until there are so many events, and leaves. */
async function take(
  stream: AsyncIterable<readonly WatchItem<KubernetesObject>[]>,
  count: number,
): Promise<string[]> {
  const seen: string[] = [];
  for await (const batch of stream) {
    for (const item of batch) {
      if (item.type === "QUARANTINED") continue;
      const { metadata } = item.object as KubernetesObject;
      seen.push(`${item.type} ${metadata?.name ?? ""}@${metadata?.resourceVersion}`);
    }
    if (seen.length >= count) break;
  }
  return seen;
}

describe("FakeControllerSource", () => {
  it("counts resourceVersions, and lists its objects", async () => {
    const source = new FakeControllerSource();
    assert.deepEqual(await source.list({}, context), { metadata: { resourceVersion: "0" }, items: [] });
    source.add(pod("b"));
    source.add(pod("a"));
    source.modify(pod("b", { phase: "Failed" }));
    source.delete(pod("a"));
    const { metadata, items } = await source.list({}, context);
    assert.deepEqual([metadata, items.map((item) => item.metadata?.name)], [{ resourceVersion: "4" }, ["b"]]);
    assert.equal(items[0].metadata?.resourceVersion, "3");
  });

  it("replays from a resourceVersion, and continues with new events", async () => {
    const source = new FakeControllerSource();
    for (const phase of ["Pending", "Running", "Failed"] as const) source.modify(pod("a", { phase }));
    const stream = await source.watch({ resourceVersion: "1" }, context);
    source.delete(pod("a"));
    assert.deepEqual(await take(stream, 3), ["MODIFIED a@2", "MODIFIED a@3", "DELETED a@4"]);
    assert.equal(source.openWatches, 0, "leaving the loop closes the watch");
  });

  it("knows whether a reader has left a watch, or had read it to its end", async () => {
    const left = new FakeWatcher();
    await left[Symbol.asyncIterator]().return!();
    assert.equal(left.isClosedByReader, true);
    const over = new FakeWatcher();
    over.stop();
    await over[Symbol.asyncIterator]().return!();
    assert.equal(over.isClosedByReader, false);
  });

  it("leaves no listener at the signal of a watch that is over", async () => {
    const source = new FakeControllerSource();
    const counting = new CountingSignal();
    await source.watch({ resourceVersion: "0" }, { ...context, signal: counting.signal });
    source.resetWatch();
    assert.equal(counting.listeners, 0);
  });

  it("hides a change from watchers, which a list then shows", async () => {
    const source = new FakeControllerSource();
    source.add(pod("a"));
    const stream = await source.watch({ resourceVersion: "1" }, context);
    source.modifyDropWatch(pod("a", { phase: "Failed" }));
    source.addDropWatch(pod("b"));
    source.deleteDropWatch(pod("a"));
    source.add(pod("c"));
    assert.deepEqual(await take(stream, 1), ["ADDED c@5"]);
    const { items } = await source.list({}, context);
    assert.deepEqual(items.map((item) => item.metadata?.name), ["b", "c"]);
  });

  it("ends every watch at a reset, and answers 410 to older versions", async () => {
    const source = new FakeControllerSource();
    source.add(pod("a"));
    const stream = await source.watch({ resourceVersion: "1" }, context);
    source.addDropWatch(pod("b"));
    source.resetWatch();
    assert.deepEqual(await take(stream, 1), []);
    await assert.rejects(source.watch({ resourceVersion: "1" }, context), (error) => {
      assert.equal((error as Error).message, "too old resource version: 1 (2)");
      return isExpired(error);
    });
    const present = await source.watch({ resourceVersion: "2" }, context);
    source.add(pod("c"));
    assert.deepEqual(await take(present, 1), ["ADDED c@3"]);
  });

  it("refuses a version that is not a number, or in the future", async () => {
    const source = new FakeControllerSource();
    await assert.rejects(source.watch({}, context), /it is not a number/);
    await assert.rejects(source.watch({ resourceVersion: "1" }, context), /the fake is at 0/);
  });

  it("refuses sendInitialEvents, or serves it by option", async () => {
    const options = { sendInitialEvents: true, allowWatchBookmarks: true } as const;
    await assert.rejects(new FakeControllerSource().watch(options, context), isInvalid);
    const source = new FakeControllerSource({ watchList: true });
    source.add(pod("a"));
    const stream = await source.watch(options, context);
    source.add(pod("b"));
    assert.deepEqual(await take(stream, 3), ["ADDED a@1", "BOOKMARK @1", "ADDED b@2"]);
  });

  it("fails lists and watches with the given errors", async () => {
    const source = new FakeControllerSource();
    source.listError = new Error("no lists");
    source.watchError = new Error("no watches");
    await assert.rejects(source.list({}, context), { message: "no lists" });
    await assert.rejects(source.watch({ resourceVersion: "0" }, context), { message: "no watches" });
    source.listError = undefined;
    assert.equal((await source.list({ limit: 5 }, context)).items.length, 0);
    assert.deepEqual(source.requests.map(({ verb, options }) => [verb, options]), [
      ["list", {}],
      ["watch", { resourceVersion: "0" }],
      ["list", { limit: 5 }],
    ]);
  });

  it("returns copies, which a transform may change", async () => {
    const source = new FakeControllerSource();
    const given = pod("a");
    source.add(given);
    const list = await source.list({}, context);
    (list.items[0].metadata as { name: string }).name = "changed";
    given.status.phase = "Failed";
    const again = await source.list({}, context);
    assert.equal(again.items[0].metadata?.name, "a");
    assert.deepEqual((again.items[0] as typeof given).status.phase, "Pending");
  });

  it("ends a watch with the signal's reason", async () => {
    const source = new FakeControllerSource();
    const stop = new AbortController();
    const stream = await source.watch({ resourceVersion: "0" }, { signal: stop.signal });
    const reading = take(stream, 1);
    stop.abort(new Error("stop"));
    await assert.rejects(reading, { message: "stop" });
    assert.equal(source.openWatches, 0);
    await assert.rejects(source.list({}, { signal: stop.signal }), { message: "stop" });
  });

  it("closeWatches breaks its watches, and shutdown refuses later requests", async () => {
    const source = new FakeControllerSource();
    const stream = await source.watch({ resourceVersion: "0" }, context);
    source.closeWatches(new TypeError("reset"));
    await assert.rejects(take(stream, 1), { message: "reset" });
    source.shutdown();
    await assert.rejects(source.list({}, context), /after its shutdown/);
    assert.throws(() => source.add(pod("a")), /after its shutdown/);
  });
});

describe("FakeWatcher", () => {
  it("passes waiting events as one batch, in order", async () => {
    const watcher = new FakeWatcher();
    watcher.add(pod("a", { resourceVersion: "1" }));
    watcher.modify(pod("a", { resourceVersion: "2" }));
    watcher.delete(pod("a", { resourceVersion: "3" }));
    watcher.bookmark("4", { "k8s.io/initial-events-end": "true" });
    watcher.error(newStatus(410, "Expired", "too old"));
    watcher.stop();
    watcher.add(pod("late"));
    const batches: (readonly WatchItem<KubernetesObject>[])[] = [];
    for await (const batch of watcher) batches.push(batch);
    assert.deepEqual(batches.map((batch) => batch.map(({ type }) => type)), [
      ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"],
    ]);
  });

  it("wakes a waiting reader", async () => {
    const watcher = new FakeWatcher();
    const reader = watcher[Symbol.asyncIterator]();
    const next = reader.next();
    watcher.add(pod("a"));
    assert.equal((await next).value?.length, 1);
    const end = reader.next();
    watcher.stop();
    assert.equal((await end).done, true);
  });

  it("throws its error once, after the sent events", async () => {
    const watcher = new FakeWatcher();
    watcher.add(pod("a"));
    watcher.fail(new Error("lost"));
    const reader = watcher[Symbol.asyncIterator]();
    assert.equal((await reader.next()).value?.length, 1);
    await assert.rejects(reader.next(), { message: "lost" });
    assert.equal((await reader.next()).done, true);
  });

  it("reports whether its reader closed it", async () => {
    let closes = 0;
    const left = new FakeWatcher({ onClose: () => closes++ });
    left.add(pod("a"));
    for await (const _ of left) break;
    assert.deepEqual([left.isStopped, left.isClosedByReader, closes], [true, true, 1]);
    const stopped = new FakeWatcher({ onClose: () => closes++ });
    stopped.stop();
    stopped.stop();
    assert.deepEqual([stopped.isStopped, stopped.isClosedByReader, closes], [true, false, 2]);
  });
});
