import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeTreeFailure, simulateTree } from "./simulate_tree.ts";
import { newTreeScenario, TREE_FAULTS } from "./tree_scenario.ts";

const SEEDS = 2_000;

/** Each found a defect once, of the library or of the judge. */
const FOUND = [
  8015687,
  9143355,
  8015914,
  9143930,
  9144361,
  9143553,
  51235998,
  3300075,
  880052598,
  880053148,
  880053353,
  880053412,
  263531065,
  263534995,
  263535903,
  696330106,
  263534737,
  263537414,
  696329594,
  162879168,
  227232962,
  310468505,
  235302370,
  850076326,
  161811592,
  577217622,
  577217297,
  577223332,
  766059087,
];

describe("simulateTree", () => {
  it("ends well for the seeds that found something once", async () => {
    for (const seed of FOUND) {
      const result = await simulateTree(seed);
      assert.equal(result.violations.length, 0, describeTreeFailure(result));
    }
  });

  it(`ends well for each of ${SEEDS} seeds`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulateTree(seed);
      assert.equal(result.violations.length, 0, describeTreeFailure(result));
    }
  });

  it("is the same tree whenever its seed is the same", async () => {
    for (const seed of [2, 19, 402]) {
      const first = await simulateTree(seed, { trace: true });
      const second = await simulateTree(seed, { trace: true });
      assert.ok(first.trace.length > 20);
      assert.deepEqual(second.trace, first.trace);
    }
  });

  it("has every kind of fault in some of the first 200 seeds", () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      for (const fault of newTreeScenario(seed).faults) seen.add(fault);
    }
    assert.deepEqual([...seen].sort(), [...TREE_FAULTS].sort());
  });
});
