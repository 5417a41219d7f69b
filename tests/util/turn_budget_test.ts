import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { TurnBudget } from "../../src/util/turn_budget.ts";

/** How many steps of this length a turn has. */
async function stepsOf(stepMs: number, ms: number, steps: number): Promise<number> {
  const clock = new FakeClock();
  const budget = new TurnBudget(clock, ms, steps);
  for (let done = 1;; done++) {
    await clock.advance(stepMs);
    if (budget.isSpent()) return done;
  }
}

describe("TurnBudget", () => {
  it("is spent after its steps", async () => {
    assert.equal(await stepsOf(0, 10, 100), 100);
    assert.equal(await stepsOf(0, 10, 1), 1);
  });

  it("is spent after its time, to the step where steps are long", async () => {
    assert.equal(await stepsOf(5, 10, 100), 2);
    assert.equal(await stepsOf(2, 10, 100), 5);
    assert.equal(await stepsOf(30, 10, 100), 1);
    assert.equal(await stepsOf(0, 0, 100), 1);
  });

  it("lasts up to eight steps longer where steps are short", async () => {
    const steps = await stepsOf(1, 20, 100);
    assert.ok(steps >= 20 && steps < 28, String(steps));
  });
});
