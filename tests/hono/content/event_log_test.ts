import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventLog } from "../../../src/hono/content/event_log.ts";
import type { LogEntry, LogFollower } from "../../../src/hono/content/log_history.ts";
import { heldStoreOf } from "../../../src/store/holding.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";

function newLog(informer: FakeInformer, { capacity = 100, capacityBytes = Infinity } = {}) {
  const store = heldStoreOf<TestObject, FakeInformer["indexer"]>(informer.indexer) as never;
  return new EventLog<TestObject>(informer as never, store, {
    clock: new FakeClock(),
    capacity,
    capacityBytes,
  });
}

/** A log at version 10, of an informer with one object. */
function begun(options: { readonly capacity?: number; readonly capacityBytes?: number } = {}) {
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  return { informer, log: newLog(informer, options) };
}

describe("EventLog.resume", () => {
  it("begins with the late entries of the position that a reader is at, and with no others", () => {
    const { informer, log } = begun();
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/late", 7));
    assert.equal(log.resume("11"), 1);
    informer.bookmark(15);
    assert.equal(log.resume("15"), 2);
    assert.equal(log.resume("12"), 2);
    assert.equal(log.resume("10"), 0);
    assert.equal(log.resume("9"), undefined);
    assert.equal(log.resume("99"), 2);
  });

  it("refuses a reader behind a late entry that was dropped, and none who is at the present position", () => {
    const { informer, log } = begun({ capacity: 1 });
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/late-1", 7));
    informer.put(object("shop/late-2", 8));
    assert.equal(log.resume("11"), 2);
    informer.bookmark(15);
    assert.equal(log.resume("11"), undefined);
    assert.equal(log.resume("12"), 3);
  });
});

describe("EventLog.firstAfter", () => {
  it("seeks from an entry on, if one is given", () => {
    const { informer, log } = begun();
    for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
    assert.deepEqual(["10", "12", "13"].map((version) => log.firstAfter(version)), [0, 2, 3]);
    assert.equal(log.firstAfter("10", 2), 2);
  });
});

describe("EventLog.reaches", () => {
  it("says at once that an informer that has stopped reaches nothing more", async () => {
    const informer = FakeInformer.with([], 10);
    informer.phase = "stopped";
    assert.equal(await newLog(informer).reaches("11", { timeoutMs: 60_000 }), false);
  });
});

describe("EventLog.trim", () => {
  it("gives up what was made of the entries that it drops, and of no others", () => {
    const { informer, log } = begun({ capacity: 2 });
    const forgotten: string[] = [];
    const trimmed: number[] = [];
    const follower: LogFollower<TestObject> = {
      interrupted: () => () => {},
      isSending: true,
      grown: () => log.trim(),
      heard: () => {},
      forget: ({ position }: LogEntry<TestObject>) => void forgotten.push(position),
      trimmed: (tail) => void trimmed.push(tail),
      end: () => {},
    };
    log.follow(follower);
    informer.put(object("shop/web-2", 11));
    log.window.entries.at(0)!.views = { encoded: new Map(), bytes: 0 };
    for (const version of [12, 13, 14]) informer.put(object("shop/web-2", version));
    assert.deepEqual(forgotten, ["11"]);
    assert.deepEqual(trimmed, [1, 2]);
    assert.deepEqual([log.window.tail, log.head, log.oldestResourceVersion], [2, 4, "12"]);
    assert.equal(log.oldestState, "12");
  });
});
