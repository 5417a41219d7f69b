import { KeyError } from "@listwatch/cache/store";
import { Heap, HeapClosedError, HeapItemNotFoundError } from "@listwatch/cache/compat";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

interface Item {
  readonly name: string;
  readonly priority: number;
}

function newHeap(): Heap<Item> {
  return new Heap<Item>((item) => {
    if (typeof item.name !== "string") throw new Error("no name");
    return item.name;
  }, (a, b) => a.priority < b.priority);
}

const bad = {} as Item;

describe("Heap", () => {
  it("pops by priority, and gives an updated object its new place", async () => {
    const heap = newHeap();
    heap.bulkAdd([{ name: "a", priority: 3 }, { name: "b", priority: 2 }, { name: "c", priority: 1 }]);
    heap.update({ name: "c", priority: 4 });
    const names = [];
    for (let i = 0; i < 3; i++) names.push((await heap.pop()).name);
    assert.deepEqual(names, ["b", "a", "c"]);
    assert.equal(heap.size, 0);
  });

  it("keeps the object it has when one is added that must not replace it", () => {
    const heap = newHeap();
    heap.add({ name: "a", priority: 1 });
    heap.addIfNotPresent({ name: "a", priority: 2 });
    heap.addIfNotPresent({ name: "b", priority: 3 });
    assert.deepEqual(heap.getByKey("a"), { name: "a", priority: 1 });
    assert.deepEqual(heap.listKeys().sort(), ["a", "b"]);
  });

  it("deletes any object by its key, and says so when there is none", () => {
    const heap = newHeap();
    heap.bulkAdd([{ name: "a", priority: 1 }, { name: "b", priority: 2 }]);
    heap.delete({ name: "a", priority: 99 });
    assert.deepEqual(heap.list(), [{ name: "b", priority: 2 }]);
    assert.throws(() => heap.delete({ name: "a", priority: 1 }), (error) => {
      return error instanceof HeapItemNotFoundError && error.code === "NotFound" && error.key === "a";
    });
  });

  it("wraps what the key function throws", () => {
    const heap = newHeap();
    for (const call of ["add", "update", "addIfNotPresent", "delete", "get"] as const) {
      assert.throws(() => heap[call](bad), (error) => {
        return error instanceof KeyError && (error.cause as Error).message === "no name" &&
          error.object === bad;
      });
    }
  });

  it("keeps what a bulk add had added before it failed, and hands it to the waiting calls", async () => {
    const heap = newHeap();
    const popped = heap.pop();
    assert.throws(
      () => heap.bulkAdd([{ name: "a", priority: 1 }, bad, { name: "b", priority: 0 }]),
      KeyError,
    );
    assert.equal((await popped).name, "a");
    assert.deepEqual(heap.listKeys(), []);
  });

  it("wakes the waiting calls of pop in the order they came, and only after a whole bulk add", async () => {
    const heap = newHeap();
    const popped = [heap.pop(), heap.pop(), heap.pop()];
    heap.bulkAdd([{ name: "a", priority: 3 }, { name: "b", priority: 1 }, { name: "c", priority: 2 }]);
    assert.deepEqual((await Promise.all(popped)).map(({ name }) => name), ["b", "c", "a"]);
  });

  it("leaves calls waiting for which a bulk add has brought nothing", async () => {
    const heap = newHeap();
    const popped: string[] = [];
    const waiting = Array.from({ length: 3 }, () => heap.pop().then(({ name }) => popped.push(name)));
    heap.bulkAdd([{ name: "a", priority: 1 }]);
    await waiting[0];
    assert.deepEqual(popped, ["a"]);
    heap.bulkAdd([{ name: "b", priority: 2 }, { name: "c", priority: 1 }]);
    await Promise.all(waiting);
    assert.deepEqual(popped, ["a", "c", "b"]);
  });

  it("ends the wait of one pop when its signal is aborted, and loses nothing", async () => {
    const heap = newHeap();
    const stop = new AbortController();
    const given = heap.pop(stop.signal);
    const patient = heap.pop();
    stop.abort(new Error("enough"));
    heap.add({ name: "a", priority: 1 });
    await assert.rejects(given, /enough/);
    assert.equal((await patient).name, "a");
    heap.add({ name: "b", priority: 1 });
    await assert.rejects(heap.pop(stop.signal), /enough/);
    assert.equal(heap.size, 1);
  });

  it("hands out what is left after it was closed, and then fails, as it does for waiting calls", async () => {
    const heap = newHeap();
    const waiting = heap.pop();
    heap.close();
    await assert.rejects(waiting, HeapClosedError);

    const filled = newHeap();
    filled.add({ name: "a", priority: 1 });
    filled.close();
    assert.ok(filled.isClosed);
    assert.throws(() => filled.add({ name: "b", priority: 1 }), (error) => {
      return error instanceof HeapClosedError && error.code === "HeapClosed";
    });
    assert.throws(() => filled.bulkAdd([]), HeapClosedError);
    assert.throws(() => filled.addIfNotPresent({ name: "b", priority: 1 }), HeapClosedError);
    assert.throws(() => filled.add(bad), KeyError, "the key comes first");
    assert.equal((await filled.pop()).name, "a");
    await assert.rejects(filled.pop(), HeapClosedError);
    assert.throws(() => filled.tryPop(), HeapClosedError);
  });

  it("pops without waiting where asked to", () => {
    const heap = newHeap();
    assert.equal(heap.tryPop(), undefined);
    heap.add({ name: "a", priority: 1 });
    assert.equal(heap.tryPop()?.name, "a");
  });
});
