import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type Blocks,
  blocksOf,
  readerOf,
  sharesValues,
  withChanges,
} from "../../../src/hono/content/states.ts";
import { propertyOptions } from "../../property.ts";

const KEYS = Array.from({ length: 3_000 }, (_, i) => `key-${String(i).padStart(4, "0")}`);

function valuesOf(blocks: Blocks<number>, from: number, to: number): number[] {
  const { value } = readerOf(blocks);
  return Array.from({ length: to - from }, (_, i) => value(from + i));
}

describe("sharesValues", () => {
  const all = blocksOf(KEYS, (key) => KEYS.indexOf(key));

  it("is so where no block differs, begins elsewhere or is missing", () => {
    const changed = withChanges(all, [KEYS[700]], () => -1);
    assert.equal(sharesValues(all, all, 0, 3_000), true);
    assert.equal(sharesValues(all, changed, 0, 512), true);
    assert.equal(sharesValues(all, changed, 0, 513), false);
    assert.equal(sharesValues(all, changed, 1_024, 3_000), true);
    const shorter = withChanges(all, [KEYS[700]], () => undefined);
    assert.equal(sharesValues(all, shorter, 100, 150), true);
    assert.equal(sharesValues(all, shorter, 1_100, 1_150), false);
    assert.equal(sharesValues(all, shorter, 2_990, 3_000), false);
  });

  it("is never so where a value differs", () => {
    const change = fc.tuple(fc.nat(KEYS.length - 1), fc.option(fc.nat()));
    const range = fc.tuple(fc.nat(2_900), fc.integer({ min: 0, max: 100 }));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 6 }), range, (changes, [from, count]) => {
        const byKey = new Map(changes.map(([i, value]) => [KEYS[i], value ?? undefined]));
        const next = withChanges(all, byKey.keys(), (key) => byKey.get(key));
        if (!sharesValues(next, all, from, from + count)) return;
        assert.deepEqual(valuesOf(next, from, from + count), valuesOf(all, from, from + count));
      }),
      propertyOptions(300),
    );
  });
});
