import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { ExplicitKey, TransactionError } from "@listwatch/cache/store";
import { newExpirationStore, newTTLStore, TTLPolicy } from "@listwatch/cache/compat";
import { FakeClock } from "@listwatch/cache/testing";

interface Thing {
  metadata: { name: string; resourceVersion?: string };
  value?: string;
}

function thing(name: string, value = ""): Thing {
  return { metadata: { name, resourceVersion: "7" }, value };
}

describe("newTTLStore", () => {
  it("neither sees nor keeps an object that is older", async () => {
    const clock = new FakeClock(1_000);
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock });
    for (
      const read of [
        () => store.getByKey("a"),
        () => store.get(thing("a")),
        () => store.has("a") || undefined,
      ]
    ) {
      store.add(thing("a"));
      await clock.jump(101);
      assert.deepEqual(store.listKeys(), ["a"], "no read has met it yet");
      assert.equal(store.size, 1);
      assert.equal(read(), undefined);
      assert.deepEqual(store.listKeys(), []);
    }
    assert.equal(clock.pendingTimers, 0);
  });

  it("keeps an object that is exactly as old", async () => {
    const clock = new FakeClock();
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock });
    store.add(thing("a"));
    await clock.jump(100);
    assert.equal(store.has("a"), true);
    await clock.jump(1);
    assert.equal(store.has("a"), false);
  });

  it("keeps everything for ever where the time is 0 or less", async () => {
    for (const ttlMs of [0, -5]) {
      const clock = new FakeClock();
      const store = newTTLStore<Thing>(metaNamespaceKey, ttlMs, { clock });
      store.add(thing("a"));
      await clock.jump(1e12);
      assert.equal(store.list().length, 1);
    }
  });

  it("makes an object young again with every write", async () => {
    const clock = new FakeClock();
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock });
    store.replace([thing("a"), thing("b"), thing("c")], "1");
    await clock.jump(60);
    store.update(thing("a"));
    store.transaction([{ type: "Update", object: thing("b") }]);
    await clock.jump(60);
    assert.deepEqual(store.list().map((object) => object.metadata.name), ["a", "b"]);
    assert.deepEqual(store.listKeys(), ["a", "b"]);
  });

  it("shows an object that is added after its predecessor expired, and does not return that one", async () => {
    const clock = new FakeClock();
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock });
    store.add(thing("a", "first"));
    await clock.jump(101);
    assert.equal(store.add(thing("a", "second")), undefined);
    assert.equal(store.getByKey("a")?.value, "second");
    await clock.jump(101);
    assert.equal(store.delete(new ExplicitKey("a")), undefined);
    assert.equal(store.size, 0);
  });

  it("drops only what expired when it lists", async () => {
    const clock = new FakeClock();
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock });
    store.add(thing("old"));
    await clock.jump(60);
    store.add(thing("young"));
    await clock.jump(60);
    assert.deepEqual([...store.values()].map((object) => object.metadata.name), ["young"]);
    assert.deepEqual(store.listKeys(), ["young"]);
  });

  it("does not move its resourceVersion with what is added, but with deletes, lists and bookmarks", () => {
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock: new FakeClock() });
    store.add(thing("a"));
    store.transaction([{ type: "Add", object: thing("b") }]);
    assert.equal(store.lastStoreSyncResourceVersion(), "");
    store.delete(thing("a"));
    assert.equal(store.lastStoreSyncResourceVersion(), "7");
    store.replace([], "8");
    assert.equal(store.lastStoreSyncResourceVersion(), "8");
    store.bookmark("9");
    assert.equal(store.lastStoreSyncResourceVersion(), "9");
    store.transaction([{ type: "Delete", object: thing("absent") }]);
    assert.equal(store.lastStoreSyncResourceVersion(), "7");
  });

  it("makes the writes of a transaction that have a key, and says which have none", () => {
    const store = newTTLStore<Thing>(metaNamespaceKey, 100, { clock: new FakeClock() });
    const writes = [{} as Thing, thing("b")].map((object) => ({ type: "Add", object }) as const);
    assert.throws(
      () => store.transaction(writes),
      (error) => error instanceof TransactionError && String(error.successfulIndices) === "1",
    );
    assert.deepEqual(store.listKeys(), ["b"]);
  });

  it("cannot have a time that is not a number", () => {
    assert.throws(() => newTTLStore(metaNamespaceKey, NaN), RangeError);
  });
});

describe("newExpirationStore", () => {
  it("asks it with the key, the object and both times", async () => {
    const clock = new FakeClock(500);
    const asked: unknown[] = [];
    const store = newExpirationStore<Thing>(metaNamespaceKey, {
      isExpired: (entry, nowMs) => {
        asked.push([entry.key, entry.object.value, entry.timestampMs, nowMs]);
        return entry.object.value === "expired";
      },
    }, { clock });
    store.add(thing("a", "expired"));
    store.add(thing("b", "alive"));
    await clock.jump(20);
    assert.deepEqual(store.list().map((object) => object.value), ["alive"]);
    assert.deepEqual(asked, [["a", "expired", 500, 520], ["b", "alive", 500, 520]]);
  });

  it("takes one policy for objects of any type", () => {
    const store = newExpirationStore<Thing>(metaNamespaceKey, new TTLPolicy(100));
    store.add(thing("a"));
    assert.equal(store.has("a"), true);
  });
});
