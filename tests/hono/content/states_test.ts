import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Blocks, blocksOf, readerOf, withChanges } from "../../../src/hono/content/states.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { propertyOptions } from "../../property.ts";

function entriesOf<V>(blocks: Blocks<V>): [string, V][] {
  const { key, value } = readerOf(blocks);
  return Array.from({ length: blocks.length }, (_, i) => [key(i), value(i)]);
}

function sorted<V>(map: ReadonlyMap<string, V>): [string, V][] {
  return Array.from(map).sort(([a], [b]) => a < b ? -1 : 1);
}

describe("withChanges", () => {
  it("has what a map has after the same changes, and leaves the blocks before them as they are", () => {
    const { numRuns, seed: first = 1 } = propertyOptions(60);
    for (let seed = first; seed < first + numRuns; seed++) {
      const random = seededRandom(seed);
      const below = (limit: number) => Math.floor(random() * limit);
      const keys = 1 + below(6_000);
      const map = new Map<string, number>();
      for (let i = below(2) * below(keys); i > 0; i--) map.set(`k-${below(keys)}`, i);
      let blocks = blocksOf(Array.from(map.keys()).sort(), (key) => map.get(key));
      for (let round = 0; round < 12; round++) {
        const [before, expected] = [blocks, entriesOf(blocks)];
        const changed = new Set<string>();
        const [share, from, width] = [random(), below(keys), 1 + below(keys)];
        for (let i = below(2_000); i > 0; i--) {
          const key = `k-${(from + below(width)) % keys}`;
          changed.add(key);
          if (random() < share) map.set(key, round * 10_000 + i);
          else map.delete(key);
        }
        blocks = withChanges(blocks, changed, (key) => map.get(key));
        assert.deepEqual(entriesOf(blocks), sorted(map), `seed ${seed}`);
        assert.deepEqual(entriesOf(before), expected, `seed ${seed}`);
        assert.ok(blocks.blocks.every(({ keys }) => keys.length > 0 && keys.length <= 1_024), `seed ${seed}`);
      }
    }
  });

  it("shares the blocks in which nothing differs", () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => String(i).padStart(4, "0"));
    const before = blocksOf(keys, (key) => Number(key));
    const after = withChanges(before, ["0700", "0701"], (key) => -Number(key));
    const shared = after.blocks.filter((block) => before.blocks.includes(block));
    assert.equal(shared.length, before.blocks.length - 1);
    assert.equal(readerOf(after).value(700), -700);
  });

  it("has no block without values where all of one went", () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => String(i).padStart(4, "0"));
    const before = blocksOf(keys, (key) => key);
    for (const { keys: some } of before.blocks) {
      const after = withChanges(before, some, () => undefined);
      assert.equal(after.blocks.length, before.blocks.length - 1);
      const left = keys.filter((key) => !some.includes(key));
      assert.deepEqual(entriesOf(after), left.map((key) => [key, key]));
      const back = withChanges(after, some, (key) => key);
      assert.deepEqual(entriesOf(back), entriesOf(before));
    }
  });

  it("has no block where nothing was, and nothing came", () => {
    const nothing = blocksOf<string>([], () => undefined);
    assert.deepEqual(withChanges(nothing, [], () => undefined), nothing);
    assert.deepEqual(withChanges(nothing, ["a"], () => undefined), nothing);
  });

  it("has few blocks after most values went", () => {
    const keys = Array.from({ length: 100_000 }, (_, i) => String(i).padStart(6, "0"));
    const before = blocksOf(keys, (key) => key);
    const after = withChanges(before, keys, (key) => key.endsWith("00") ? key : undefined);
    assert.equal(after.length, 1_000);
    assert.ok(after.blocks.length < 10, `${after.blocks.length}`);
  });
});

describe("readerOf", () => {
  it("reads in any order", () => {
    const keys = Array.from({ length: 3_000 }, (_, i) => String(i).padStart(4, "0"));
    const { key, value } = readerOf(blocksOf(keys, (key) => Number(key)));
    const random = seededRandom(3);
    for (let i = 0; i < 1_000; i++) {
      const index = Math.floor(random() * 3_000);
      assert.deepEqual([key(index), value(index)], [keys[index], index]);
    }
  });
});
