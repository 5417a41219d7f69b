import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { median, type MemorySample, memoryTrend } from "./memory_trend.ts";

describe("memoryTrend", () => {
  const samples = (...heaps: number[]): MemorySample[] =>
    heaps.map((heapBytes, i) => ({ timeMs: i * 1_000, heapBytes, rssBytes: 7 }));

  it("compares the medians of the first and the last third", () => {
    const trend = memoryTrend(samples(10, 90, 11, 50, 50, 50, 12, 13, 1), "heapBytes", 0);
    assert.deepEqual(trend, { firstBytes: 11, lastBytes: 12, growth: 12 / 11 - 1 });
  });

  it("leaves the warm-up out", () => {
    const trend = memoryTrend(samples(1, 1, 1, 20, 20, 20, 30, 30, 30), "heapBytes", 3_000);
    assert.equal(trend?.growth, 0.5);
  });

  it("returns nothing for a few samples", () => {
    assert.equal(memoryTrend(samples(1, 2, 3, 4, 5), "heapBytes", 0), undefined);
    assert.equal(memoryTrend(samples(1, 2, 3, 4, 5, 6), "rssBytes", 0)?.growth, 0);
  });

  it("takes the middle", () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([9, 1, 5, 6]), 5.5);
  });
});
