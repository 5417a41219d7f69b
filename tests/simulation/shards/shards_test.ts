import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeShardsFailure, simulateShards } from "./simulate_shards.ts";

const SEEDS = 500;

describe("simulateShards", () => {
  it(`ends well for each of ${SEEDS} seeds`, async () => {
    let checks = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulateShards(seed);
      assert.equal(result.violations.length, 0, describeShardsFailure(result));
      checks += result.checks;
    }
    assert.ok(checks > 50 * SEEDS, `${checks} checks`);
  });

  it("is the same world whenever its seed is the same", async () => {
    for (const seed of [2, 19]) {
      const first = await simulateShards(seed, { trace: true });
      const second = await simulateShards(seed, { trace: true });
      assert.ok(first.trace.length > 20);
      assert.deepEqual(second.trace, first.trace);
    }
  });
});
