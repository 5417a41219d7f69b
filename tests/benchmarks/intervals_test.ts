import assert from "node:assert/strict";
import { it } from "node:test";
import { overlapOf } from "../../benchmarks/contestants/intervals.ts";

it("overlapOf sums up what two lists of intervals have in common", () => {
  const times = (...bounds: [number, number][]) => bounds.map(([startMs, endMs]) => ({ startMs, endMs }));
  assert.equal(overlapOf(times([0, 10]), times([2, 3], [8, 12])), 3);
  assert.equal(overlapOf(times([0, 1], [2, 3], [4, 5]), times([0, 9])), 3);
  assert.equal(overlapOf(times([0, 1], [5, 6]), times([1, 5])), 0);
  assert.equal(overlapOf(times(), times([1, 5])), 0);
});
