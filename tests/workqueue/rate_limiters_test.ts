import type { Clock } from "@listwatch/cache";
import { FakeClock } from "@listwatch/cache/testing";
import {
  bucketRateLimiter,
  defaultControllerRateLimiter,
  defaultItemBasedRateLimiter,
  itemExponentialFailureRateLimiter,
  itemFastSlowRateLimiter,
  maxOfRateLimiter,
  type RateLimiter,
  withMaxWaitRateLimiter,
} from "@listwatch/cache/workqueue";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertyOptions } from "../property.ts";

function ask<T>(limiter: RateLimiter<T>, item: T, times: number): number[] {
  return Array.from({ length: times }, () => limiter.when(item));
}

describe("itemExponentialFailureRateLimiter", () => {
  it("doubles each item's delay up to the maximum, until forget is called", () => {
    const limiter = itemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: 10 });
    assert.deepEqual(ask(limiter, "a", 6), [1, 2, 4, 8, 10, 10]);
    assert.deepEqual(ask(limiter, "b", 2), [1, 2]);
    assert.deepEqual([limiter.numRequeues("a"), limiter.numRequeues("b"), limiter.numRequeues("c")], [
      6,
      2,
      0,
    ]);
    limiter.forget("a");
    assert.deepEqual([limiter.numRequeues("a"), limiter.when("a")], [0, 1]);
  });

  it("stays at the largest delay when the power is beyond every number", () => {
    const limiter = itemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: 1_000 });
    assert.equal(ask(limiter, "a", 2_000)[1_999], 1_000);
  });

  it("distinguishes objects by keyOf", () => {
    const limiter = itemExponentialFailureRateLimiter<{ name: string }>({
      baseDelayMs: 1,
      maxDelayMs: 10,
      keyOf: ({ name }) => name,
    });
    limiter.when({ name: "a" });
    assert.equal(limiter.when({ name: "a" }), 2);
    limiter.forget({ name: "a" });
    assert.equal(limiter.numRequeues({ name: "a" }), 0);
  });

  it("distinguishes objects by keyOf as part of what controllers use, too", () => {
    const keyOf = ({ name }: { name: string }) => name;
    for (const limiter of [defaultControllerRateLimiter({ keyOf }), defaultItemBasedRateLimiter({ keyOf })]) {
      for (const name of ["a", "b", "a"]) limiter.when({ name });
      assert.deepEqual(["a", "b"].map((name) => limiter.numRequeues({ name })), [2, 1]);
      limiter.forget({ name: "a" });
      assert.deepEqual(["a", "b"].map((name) => limiter.numRequeues({ name })), [0, 1]);
    }
  });
});

describe("itemFastSlowRateLimiter", () => {
  it("is fast for the first failures of an item, then slow, until forget is called", () => {
    const limiter = itemFastSlowRateLimiter({ fastDelayMs: 5, slowDelayMs: 10_000, maxFastAttempts: 3 });
    assert.deepEqual(ask(limiter, "a", 5), [5, 5, 5, 10_000, 10_000]);
    assert.equal(limiter.when("b"), 5);
    limiter.forget("a");
    assert.equal(limiter.when("a"), 5);
  });
});

describe("bucketRateLimiter", () => {
  it("loses no tokens when a clock without a monotonic one is set back", () => {
    let nowMs = 100_000;
    const clock: Clock = { now: () => nowMs, setTimeout: () => 0, clearTimeout: () => {} };
    const limiter = bucketRateLimiter({ qps: 10, burst: 2, clock });
    assert.deepEqual(ask(limiter, "a", 3), [0, 0, 100]);
    nowMs -= 60_000;
    assert.deepEqual(ask(limiter, "a", 1), [200]);
    nowMs += 1_000;
    assert.deepEqual(ask(limiter, "a", 2), [0, 0]);
  });

  it("lets a burst through, then makes each wait for a token of its own", async () => {
    const clock = new FakeClock();
    const limiter = bucketRateLimiter({ qps: 10, burst: 2, clock });
    assert.deepEqual(ask(limiter, "a", 4), [0, 0, 100, 200]);
    await clock.advance(200);
    assert.equal(limiter.when("b"), 100, "two tokens came, both are taken");
    await clock.advance(10_000);
    assert.deepEqual(ask(limiter, "c", 3), [0, 0, 100], "it holds no more than the burst");
    limiter.forget("a");
    assert.equal(limiter.numRequeues("a"), 0);
  });

  it("has no limit at an infinite rate, and gives nothing without a burst or after it without a rate", () => {
    assert.deepEqual(ask(bucketRateLimiter({ qps: Infinity, burst: 0 }), "a", 3), [0, 0, 0]);
    assert.deepEqual(ask(bucketRateLimiter({ qps: 10, burst: 0 }), "a", 2), [Infinity, Infinity]);
    assert.deepEqual(ask(bucketRateLimiter({ qps: 0, burst: 1 }), "a", 3), [0, Infinity, Infinity]);
  });

  it("never lets more through in any window than the burst and what the rate brings", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(300), { minLength: 1, maxLength: 12 }),
        async (qps, burst, pausesMs) => {
          const clock = new FakeClock();
          const limiter = bucketRateLimiter<string>({ qps, burst, clock });
          const times: number[] = [];
          for (const pauseMs of pausesMs) {
            await clock.jump(pauseMs);
            times.push(clock.now() + limiter.when("a"));
          }
          times.sort((a, b) => a - b);
          times.forEach((startMs, from) =>
            times.slice(from).forEach((endMs, more) =>
              assert.ok(more + 1 <= burst + (endMs - startMs) * qps / 1_000 + 1e-6)
            )
          );
        },
      ),
      propertyOptions(20),
    );
  });
});

describe("maxOfRateLimiter and withMaxWaitRateLimiter", () => {
  it("take the longest delay of all limiters, and forget in all", () => {
    const exponential = itemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: 100 });
    const fastSlow = itemFastSlowRateLimiter({ fastDelayMs: 3, slowDelayMs: 5, maxFastAttempts: 2 });
    const limiter = maxOfRateLimiter([exponential, fastSlow]);
    assert.deepEqual(ask(limiter, "a", 5), [3, 3, 5, 8, 16]);
    fastSlow.forget("a");
    assert.equal(limiter.numRequeues("a"), 5);
    limiter.forget("a");
    assert.deepEqual([exponential.numRequeues("a"), limiter.numRequeues("a")], [0, 0]);
    assert.equal(maxOfRateLimiter([]).when("a"), 0);
  });

  it("cut delays at the longest wait, and count as the one they wrap", () => {
    const limiter = withMaxWaitRateLimiter(
      itemExponentialFailureRateLimiter({ baseDelayMs: 2, maxDelayMs: 100 }),
      5,
    );
    assert.deepEqual(ask(limiter, "a", 4), [2, 4, 5, 5]);
    assert.equal(limiter.numRequeues("a"), 4);
    limiter.forget("a");
    assert.equal(limiter.when("a"), 2);
  });
});

describe("defaultControllerRateLimiter and defaultItemBasedRateLimiter", () => {
  it("for controllers, double from 5 ms to 1000 s, and let 10 a second through after a burst of 100", () => {
    const limiter = defaultControllerRateLimiter({ clock: new FakeClock() });
    assert.deepEqual(ask(limiter, "a", 3), [5, 10, 20]);
    for (let i = 0; i < 97; i++) limiter.when(`item ${i}`);
    assert.equal(limiter.when("b"), 100);
    assert.equal(ask(limiter, "a", 30)[29], 1_000_000);
  });

  it("for items, double from 1 ms to 1000 s", () => {
    const limiter = defaultItemBasedRateLimiter();
    assert.deepEqual(ask(limiter, "a", 3), [1, 2, 4]);
    assert.equal(ask(limiter, "a", 30)[29], 1_000_000);
  });
});

describe("RateLimiter", () => {
  it("refuses numbers that make no delay, and never gives NaN", () => {
    for (const wrong of [NaN, -1]) {
      const makers = [
        () => itemExponentialFailureRateLimiter({ baseDelayMs: wrong, maxDelayMs: 1 }),
        () => itemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: wrong }),
        () => itemFastSlowRateLimiter({ fastDelayMs: wrong, slowDelayMs: 1, maxFastAttempts: 1 }),
        () => itemFastSlowRateLimiter({ fastDelayMs: 1, slowDelayMs: 1, maxFastAttempts: wrong }),
        () => bucketRateLimiter({ qps: wrong, burst: 1 }),
        () => bucketRateLimiter({ qps: 1, burst: wrong }),
        () => withMaxWaitRateLimiter(bucketRateLimiter({ qps: 1, burst: 1 }), wrong),
      ];
      for (const make of makers) assert.throws(make, RangeError, make.toString());
    }
    const none = itemExponentialFailureRateLimiter({ baseDelayMs: 0, maxDelayMs: 10 });
    assert.deepEqual(new Set(ask(none, "a", 1_100)), new Set([0]));
  });
});
