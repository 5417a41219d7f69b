import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { FakeClock } from "@listwatch/cache/testing";
import { LossRecovery, RetryPacing } from "../../src/reflector/retry_pacing.ts";

const expired = new StatusError(newStatus(410, "Expired", "too old resource version"));
const unavailable = new StatusError(newStatus(503, "ServiceUnavailable", "down"));

function newPacing(): RetryPacing {
  let delayMs = 400;
  const backoff = { nextDelayMs: () => (delayMs *= 2), reset: () => void (delayMs = 400) };
  return new RetryPacing(backoff, { clock: new FakeClock(), random: () => 0 });
}

describe("the delays of a reflector", () => {
  it("are short after a 410, however long they have grown: the server is well, and waits for a list", () => {
    const pacing = newPacing();
    for (let i = 0; i < 5; i++) pacing.delayAfter(unavailable);
    assert.equal(pacing.delayAfter(expired), 800);
    assert.equal(pacing.delayAfter(unavailable), 51_200);
  });

  it("are short for three 410 in a row, and grow when it goes on", () => {
    const pacing = newPacing();
    for (let i = 0; i < 5; i++) pacing.delayAfter(unavailable);
    const delays = [1, 2, 3, 4].map(() => pacing.delayAfter(expired));
    assert.deepEqual(delays, [800, 800, 800, 204_800]);
  });

  it("are what the server asks for, up to ten minutes", () => {
    const asked = (retryAfterMs: number) =>
      newPacing().delayAfter(new StatusError(unavailable.status, { retryAfterMs }));
    assert.deepEqual([0, 20_000, 600_000, 600_001, 1e23, Infinity].map(asked), [
      800,
      20_000,
      600_000,
      600_000,
      600_000,
      600_000,
    ]);
  });
});

describe("the list that makes up for a lost change", () => {
  it("is due after a minute, and twice as long each time that losses go on, up to half an hour", async () => {
    const clock = new FakeClock();
    const losses = new LossRecovery(clock);
    const delays: (number | undefined)[] = [];
    for (let i = 0; i < 7; i++) {
      const startMs = clock.monotonicNow();
      losses.lost();
      losses.lost(); // one list makes up for all
      delays.push((losses.dueMs ?? 0) - startMs);
      await clock.advance(1_000);
      losses.recovered();
      assert.equal(losses.dueMs, undefined);
    }
    assert.deepEqual(delays, [60_000, 120_000, 240_000, 480_000, 960_000, 1_800_000, 1_800_000]);
  });

  it("is due after a minute again when nothing was lost for an hour", async () => {
    const clock = new FakeClock();
    const losses = new LossRecovery(clock);
    for (let i = 0; i < 3; i++) {
      losses.lost();
      losses.recovered();
    }
    await clock.advance(3_600_001);
    const startMs = clock.monotonicNow();
    losses.lost();
    assert.equal(losses.dueMs, startMs + 60_000);
  });
});
