import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AsyncTracker, Lazy, SingleFileTracker } from "@listwatch/cache/compat";

describe("AsyncTracker", () => {
  it("has synced when the informer has and every item that was started is finished, in any order", async () => {
    const tracker = new AsyncTracker<string>("writer");
    for (const key of ["a", "b", "c"]) tracker.start(key);
    tracker.finished("b");
    tracker.upstreamHasSynced();
    tracker.finished("c");
    assert.equal(tracker.hasSynced(), false);
    tracker.finished("a");
    assert.equal(tracker.hasSynced(), true);
    await tracker.synced();
    assert.equal(tracker.name, "writer");
  });

  it("has not synced before the informer has, even with nothing to do", () => {
    const tracker = new AsyncTracker<number>();
    assert.equal(tracker.hasSynced(), false);
    tracker.start(1);
    tracker.finished(1);
    assert.equal(tracker.hasSynced(), false);
    tracker.upstreamHasSynced();
    assert.equal(tracker.hasSynced(), true);
  });

  it("counts an item once that is started twice, and does not mind one that was never started", () => {
    const tracker = new AsyncTracker<string>();
    tracker.start("a");
    tracker.start("a");
    tracker.finished("b");
    tracker.upstreamHasSynced();
    assert.equal(tracker.hasSynced(), false);
    tracker.finished("a");
    assert.equal(tracker.hasSynced(), true);
  });

  it("stays synced", () => {
    const tracker = new AsyncTracker<string>();
    tracker.upstreamHasSynced();
    tracker.start("a");
    assert.equal(tracker.hasSynced(), true);
  });
});

describe("SingleFileTracker", () => {
  it("has synced when the informer has and all that were started are finished", async () => {
    const tracker = new SingleFileTracker();
    tracker.start();
    tracker.start();
    tracker.finished();
    tracker.upstreamHasSynced();
    assert.equal(tracker.hasSynced(), false);
    tracker.finished();
    assert.equal(tracker.hasSynced(), true);
    await tracker.synced();
    tracker.start();
    assert.equal(tracker.hasSynced(), true);
  });

  it("has not synced before the informer has", () => {
    const tracker = new SingleFileTracker();
    tracker.start();
    tracker.finished();
    assert.equal(tracker.hasSynced(), false);
    tracker.upstreamHasSynced();
    assert.equal(tracker.hasSynced(), true);
  });

  it("refuses to finish more than was started", () => {
    const tracker = new SingleFileTracker("writer");
    assert.throws(() => tracker.finished(), {
      name: "RangeError",
      message: 'Cannot finish an item in "writer": every item that started is finished already',
    });
  });
});

describe("Lazy", () => {
  it("is computed when it is read, and again only after a notify", async () => {
    let evaluations = 0;
    const lazy = new Lazy(() => ++evaluations);
    assert.equal(evaluations, 0);
    assert.deepEqual([await lazy.get(), await lazy.get()], [1, 1]);
    lazy.notify();
    lazy.notify();
    assert.equal(evaluations, 1);
    assert.equal(await lazy.get(), 2);
  });

  it("is computed once for all reads meanwhile", async () => {
    const end = Promise.withResolvers<string>();
    let evaluations = 0;
    const lazy = new Lazy(() => {
      evaluations++;
      return end.promise;
    });
    const all = [lazy.get(), lazy.get(), lazy.get()];
    end.resolve("done");
    assert.deepEqual(await Promise.all(all), ["done", "done", "done"]);
    assert.equal(evaluations, 1);
  });

  it("read after a notify is not from the evaluation that started before", async () => {
    const ends: PromiseWithResolvers<string>[] = [];
    const lazy = new Lazy(() => {
      ends.push(Promise.withResolvers());
      return ends.at(-1)!.promise;
    });
    const before = lazy.get();
    lazy.notify();
    const after = lazy.get();
    ends[1].resolve("new");
    assert.equal(await after, "new");
    ends[0].resolve("old");
    assert.equal(await before, "old");
    assert.equal(await lazy.get(), "new");
  });

  it("does not remember an error", async () => {
    const results: (() => string)[] = [
      () => {
        throw new Error("it broke");
      },
      () => "mended",
    ];
    const lazy = new Lazy(() => results.shift()!());
    await assert.rejects(lazy.get(), /it broke/);
    assert.equal(await lazy.get(), "mended");
    assert.equal(await lazy.get(), "mended");
  });

  it("does not forget a value because an evaluation before it failed late", async () => {
    const ends: PromiseWithResolvers<string>[] = [];
    const lazy = new Lazy(() => {
      ends.push(Promise.withResolvers());
      return ends.at(-1)!.promise;
    });
    const before = lazy.get();
    lazy.notify();
    const after = lazy.get();
    ends[0].reject(new Error("it broke"));
    await assert.rejects(before, /it broke/);
    ends[1].resolve("new");
    assert.equal(await after, "new");
    assert.equal(await lazy.get(), "new");
    assert.equal(ends.length, 2);
  });
});
