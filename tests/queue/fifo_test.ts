import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { ErrRequeue } from "@listwatch/cache/compat";
import { FIFO } from "@listwatch/cache/queue";
import { ExplicitKey, KeyError } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";

interface Thing {
  metadata: { name: string };
  value: number;
}

function thing(name: string, value = 0): Thing {
  return { metadata: { name }, value };
}

async function pop(queue: FIFO<Thing>): Promise<[string, number]> {
  const { metadata, value } = await queue.pop(() => {});
  return [metadata.name, value];
}

describe("FIFO", () => {
  it("pops an object that was added and updated once, in its newest state", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.add(thing("foo", 10));
    queue.update(thing("foo", 15));
    assert.deepEqual(queue.list().map((object) => object.value), [15]);
    assert.deepEqual(await pop(queue), ["foo", 15]);
    assert.equal(queue.getByKey("foo"), undefined);
    assert.equal(queue.tryPop(() => {}), false);
  });

  it("keeps the place of an object that is added again, and gives a new one to a popped object", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    for (const [name, value] of [["foo", 10], ["bar", 1], ["foo", 11], ["foo", 13], ["zab", 30]] as const) {
      queue.add(thing(name, value));
    }
    assert.deepEqual(await pop(queue), ["foo", 13]);
    queue.add(thing("foo", 14));
    assert.deepEqual(await pop(queue), ["bar", 1]);
    assert.deepEqual(await pop(queue), ["zab", 30]);
    assert.deepEqual(await pop(queue), ["foo", 14]);
  });

  it("does not let addIfNotPresent win over what is queued", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.add(thing("a", 1));
    queue.addIfNotPresent(thing("a", 2));
    queue.addIfNotPresent(thing("b", 3));
    assert.deepEqual(await pop(queue), ["a", 1]);
    assert.deepEqual(await pop(queue), ["b", 3]);
  });

  it("skips what was deleted, and keeps its place for one that is added again", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    for (const name of ["a", "b", "c"]) queue.add(thing(name, 1));
    queue.delete(thing("a"));
    queue.delete(new ExplicitKey("b"));
    queue.add(thing("b", 2));
    assert.deepEqual(queue.listKeys().sort(), ["b", "c"]);
    assert.deepEqual(await pop(queue), ["b", 2]);
    assert.deepEqual(await pop(queue), ["c", 1]);
  });

  it("replaces everything, in the order of the list and with the last of several", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.add(thing("deleted"));
    queue.replace([thing("foo", 15), thing("bar", 1), thing("foo", 16)], "0");
    assert.deepEqual(await pop(queue), ["foo", 16]);
    assert.deepEqual(await pop(queue), ["bar", 1]);
    assert.equal(queue.tryPop(() => {}), false);
  });

  it("replaces nothing where an object has no key", () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.add(thing("a"));
    assert.throws(() => queue.replace([thing("b"), null as unknown as Thing]), KeyError);
    assert.deepEqual(queue.listKeys(), ["a"]);
  });

  it("resends nothing at a resync that has its place in the queue", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.add(thing("a", 1));
    queue.add(thing("b", 1));
    queue.resync();
    assert.deepEqual(await pop(queue), ["a", 1]);
    queue.add(thing("a", 2));
    assert.deepEqual(await pop(queue), ["b", 1]);
    queue.add(thing("c", 1));
    assert.deepEqual(await pop(queue), ["a", 2]);
    queue.add(thing("a", 3));
    assert.deepEqual(await pop(queue), ["c", 1]);
    assert.deepEqual(await pop(queue), ["a", 3]);
  });

  it("says which call an object without a key was refused at", async () => {
    const bad = {} as Thing;
    let isBad = true;
    const queue = new FIFO<Thing>((object) => {
      if (isBad) throw new Error("no key");
      return metaNamespaceKey(object);
    });
    const calls: Record<string, () => void> = {
      add: () => queue.add(bad),
      update: () => queue.update(bad),
      addIfNotPresent: () => queue.addIfNotPresent(bad),
      delete: () => queue.delete(bad),
      get: () => queue.get(bad),
      replace: () => queue.replace([bad]),
    };
    for (const [operation, call] of Object.entries(calls)) {
      assert.throws(call, (error) => error instanceof KeyError && error.operation === operation);
    }
    isBad = false;
    queue.add(thing("a", 1));
    assert.deepEqual(queue.get(thing("a")), thing("a", 1));
    const popped = queue.pop(() => {
      isBad = true;
      throw new ErrRequeue();
    });
    await assert.rejects(popped, (error) => error instanceof KeyError && error.operation === "requeue");
  });

  it("ends no wait by an empty list", async () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    let isAwake = false;
    const woken = queue.wait().then(() => void (isAwake = true));
    queue.replace([]);
    await new FakeClock().advance(0);
    assert.equal(isAwake, false);
    queue.replace([thing("a")]);
    await woken;
  });

  it("counts the places of deleted objects for hasSynced", () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.replace([thing("a"), thing("b")]);
    queue.delete(thing("a"));
    queue.delete(thing("b"));
    assert.equal(queue.hasSynced(), false);
    assert.equal(queue.tryPop(() => {}), false);
    assert.equal(queue.hasSynced(), true);
  });

  it("has synced after one pop of a list that holds one key twice", () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.replace([thing("a", 1), thing("a", 2)]);
    assert.equal(queue.hasSynced(), false);
    queue.tryPop(() => assert.equal(queue.hasSynced(), false, "it is still being processed"));
    assert.equal(queue.hasSynced(), true);
  });

  it("has synced at once with an empty list", () => {
    const queue = new FIFO<Thing>(metaNamespaceKey);
    queue.replace([]);
    assert.equal(queue.hasSynced(), true);
  });
});
