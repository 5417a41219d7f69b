import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Deque, firstIndex, getOrMake, KeyedHeap, lowerBound, Recent } from "../../src/util/collections.ts";

describe("Deque", () => {
  it("agrees with an array, whatever is pushed, shifted and cleared, also beyond thousands", () => {
    const step = fc.oneof(
      fc.record({ op: fc.constant("push" as const), count: fc.integer({ min: 1, max: 1_500 }) }),
      fc.record({ op: fc.constant("shift" as const), count: fc.integer({ min: 1, max: 1_500 }) }),
      fc.record({ op: fc.constant("clear" as const), count: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const deque = new Deque<number>();
        let model: number[] = [];
        let next = 0;
        for (const { op, count } of steps) {
          if (op === "clear") {
            deque.clear();
            model = [];
          }
          for (let i = 0; i < count; i++) {
            if (op === "push") {
              deque.push(next);
              model.push(next++);
            } else assert.equal(deque.shift(), model.shift());
          }
          assert.equal(deque.length, model.length);
          assert.deepEqual([...deque], model);
          for (const index of [0, 1, model.length - 1, model.length]) {
            if (index >= 0) assert.equal(deque.at(index), model[index]);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  it("has elements that are pushed while it is iterated", () => {
    const deque = new Deque<number>();
    deque.push(1);
    const seen: number[] = [];
    for (const item of deque) {
      seen.push(item);
      if (item < 3) deque.push(item + 1);
    }
    assert.deepEqual(seen, [1, 2, 3]);
  });
});

describe("lowerBound", () => {
  it("is the first index from which on keys are not less; their number if there is none", () => {
    const keys = ["a", "c", "c", "e"];
    assert.deepEqual(["", "a", "b", "c", "d", "e", "f"].map((bound) => lowerBound(keys, bound)), [
      0,
      0,
      1,
      1,
      3,
      3,
      4,
    ]);
    assert.equal(firstIndex(10, (index) => index >= 2, 5), 5);
    assert.equal(lowerBound([], "a"), 0);
  });
});

describe("getOrMake", () => {
  it("makes a value once", () => {
    const map = new Map<string, object>();
    assert.equal(getOrMake(map, "a", () => ({})), getOrMake(map, "a", () => ({})));
  });
});

describe("Recent", () => {
  it("has at least what was set last up to its weight, and at most twice as much", () => {
    const sets = fc.array(fc.record({ key: fc.nat(20), weight: fc.integer({ min: 0, max: 6 }) }));
    fc.assert(fc.property(sets, fc.integer({ min: 0, max: 12 }), (steps, most) => {
      const recent = new Recent<number, number>(most);
      /** The weights, in the order in which the keys were set last. */
      const model = new Map<number, number>();
      for (const [i, { key, weight }] of steps.entries()) {
        // A key always weighs the same, as a text does.
        const weighs = model.get(key) ?? weight;
        recent.set(key, i, weighs);
        model.delete(key);
        model.set(key, weighs);
        assert.equal(recent.get(key), weighs > most ? undefined : i);
        let latest = 0;
        for (const [other, weight] of [...model].reverse()) {
          if (weight > most) continue;
          if ((latest += weight) > most) break;
          assert.notEqual(recent.get(other), undefined);
        }
        const kept = [...model].filter(([other]) => recent.get(other) !== undefined);
        assert.equal(kept.reduce((sum, [, weight]) => sum + weight, 0) <= 2 * most, true);
      }
    }));
  });

  it("has nothing after clear", () => {
    const recent = new Recent<string, number>(1);
    for (const key of ["a", "b"]) recent.set(key, 1);
    recent.clear();
    assert.deepEqual([recent.get("a"), recent.get("b")], [undefined, undefined]);
  });
});

describe("KeyedHeap", () => {
  it("returns the least item first, and moves an item that is set again", () => {
    const heap = new KeyedHeap<string, number>((a, b) => a < b);
    heap.set("a", 3);
    heap.set("b", 2);
    heap.set("c", 1);
    heap.set("a", 0);
    assert.deepEqual([heap.size, heap.peek(), heap.get("a"), heap.has("d")], [3, 0, 0, false]);
    assert.deepEqual([heap.pop(), heap.pop(), heap.pop(), heap.pop()], [0, 1, 2, undefined]);
  });

  it("is empty after clear", () => {
    const heap = new KeyedHeap<string, number>((a, b) => a < b);
    heap.set("a", 1);
    heap.clear();
    assert.deepEqual([heap.size, heap.peek(), heap.get("a"), heap.delete("a")], [
      0,
      undefined,
      undefined,
      false,
    ]);
  });

  it("returns many items in their order, wherever they were set and moved to", () => {
    const heap = new KeyedHeap<number, number>((a, b) => a < b);
    const items = Array.from({ length: 200 }, (_, i) => (i * 7919) % 211);
    items.forEach((item, i) => heap.set(i, 1_000 - item));
    items.forEach((item, i) => heap.set(i, item));
    for (let i = 0; i < 200; i += 3) assert.ok(heap.delete(i));
    const left = items.filter((_, i) => i % 3 !== 0).sort((a, b) => a - b);
    assert.deepEqual(left.map(() => heap.pop()), left);
    assert.equal(heap.size, 0);
  });

  it("agrees with a sorted list of its items, whatever is set, deleted and popped", () => {
    const step = fc.oneof(
      fc.record({ op: fc.constant("set" as const), key: fc.nat(12), value: fc.integer({ min: 0, max: 30 }) }),
      fc.record({ op: fc.constant("delete" as const), key: fc.nat(12) }),
      fc.record({ op: fc.constant("pop" as const) }),
    );
    fc.assert(fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const heap = new KeyedHeap<number, { key: number; value: number }>((a, b) => a.value < b.value);
      const model = new Map<number, { key: number; value: number }>();
      for (const each of steps) {
        if (each.op === "set") {
          heap.set(each.key, each);
          model.set(each.key, each);
        } else if (each.op === "delete") {
          assert.equal(heap.delete(each.key), model.delete(each.key));
        } else {
          const popped = heap.pop();
          assert.equal(popped?.value, [...model.values()].map(({ value }) => value).sort((a, b) => a - b)[0]);
          if (popped) assert.ok(model.delete(popped.key));
        }
        assert.equal(heap.size, model.size);
        assert.deepEqual(new Map(Array.from(heap.entries(), ({ key, item }) => [key, item])), model);
      }
    }));
  });
});
