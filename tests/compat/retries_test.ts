import { KeyedBackoff, RetryWithDeadline } from "@listwatch/cache/compat";
import { FakeClock } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

describe("KeyedBackoff", () => {
  it("doubles the delay of each key separately, up to the largest", () => {
    const clock = new FakeClock();
    const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 350, clock });
    const delays = Array.from({ length: 4 }, () => {
      backoff.next("a", clock.now());
      return backoff.get("a");
    });
    assert.deepEqual(delays, [100, 200, 350, 350]);
    assert.equal(backoff.get("b"), 0);
    backoff.reset("a");
    assert.equal(backoff.get("a"), 0);
  });

  it("is backing off for less than the delay since the event, or since the last failure", async () => {
    const clock = new FakeClock(1_000);
    const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 350, clock });
    backoff.next("a", clock.now());
    await clock.jump(99);
    assert.ok(backoff.isInBackOffSince("a", 1_000));
    assert.ok(backoff.isInBackOffSinceUpdate("a", clock.now()));
    await clock.jump(1);
    assert.equal(backoff.isInBackOffSince("a", 1_000), false);
    assert.equal(backoff.isInBackOffSinceUpdate("a", clock.now()), false);
    assert.equal(backoff.isInBackOffSince("b", 1_000), false);
  });

  it("starts again after more than twice the largest delay, and gc removes the entry", async () => {
    const clock = new FakeClock();
    const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 350, clock });
    backoff.next("a", 0);
    await clock.jump(700);
    backoff.gc();
    assert.equal(backoff.size, 1, "not after exactly that");
    await clock.jump(1);
    backoff.next("a", clock.now());
    assert.equal(backoff.get("a"), 100);
    await clock.jump(701);
    backoff.gc();
    assert.equal(backoff.size, 0);
  });

  it("adds jitter with random numbers, and refuses jitter without them", () => {
    const clock = new FakeClock();
    const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 1_000, clock, jitter: 0.5, random: () => 0.5 });
    backoff.next("a", 0);
    assert.equal(backoff.get("a"), 125);
    backoff.next("a", 0);
    assert.equal(backoff.get("a"), 125 + 125 * 1.25);
    assert.throws(() => new KeyedBackoff({ initialMs: 100, maxMs: 1_000, clock, jitter: 0.5 }), TypeError);
  });

  it("refuses numbers that are not delays", () => {
    for (const wrong of [NaN, -1, Infinity]) {
      assert.throws(
        () => new KeyedBackoff({ initialMs: wrong, maxMs: 1, clock: new FakeClock() }),
        RangeError,
      );
      assert.throws(
        () => new KeyedBackoff({ initialMs: 1, maxMs: wrong, clock: new FakeClock() }),
        RangeError,
      );
    }
  });

  it("is not prolonged by a wall clock that is set back, nor ended by one that is set forward", async () => {
    for (const byMs of [-3_600_000, -500, 3_600_000]) {
      const clock = new FakeClock(10_000_000);
      const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 350, clock });
      const failedMs = clock.now();
      backoff.next("a", failedMs);
      clock.setWallClock(clock.now() + byMs);
      assert.ok(backoff.isInBackOffSinceUpdate("a", clock.now()), "ended");
      backoff.next("a", clock.now());
      assert.equal(backoff.get("a"), 200);
      await clock.jump(200);
      assert.equal(backoff.isInBackOffSinceUpdate("a", clock.now()), false, "prolonged");
      if (byMs < 0) assert.equal(backoff.isInBackOffSince("a", failedMs), false, "prolonged");
      backoff.gc();
      assert.equal(backoff.size, 1);
      await clock.jump(501);
      backoff.gc();
      assert.equal(backoff.size, 0);
    }
  });

  it("uses hasExpired of the caller", () => {
    const clock = new FakeClock();
    const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 1_000, clock, hasExpired: () => true });
    backoff.next("a", 0);
    backoff.next("a", 0);
    assert.equal(backoff.get("a"), 100);
    backoff.gc();
    assert.equal(backoff.size, 0);
  });
});

describe("RetryWithDeadline", () => {
  const retryable = (error: unknown) => error === "retryable";

  it("retries for the time after the first of a series of errors, then starts a new series", async () => {
    const clock = new FakeClock();
    const retry = new RetryWithDeadline({
      maxRetryMs: 1_000,
      minResetMs: 60_000,
      isRetryable: retryable,
      clock,
    });
    const answers = [];
    for (let i = 0; i < 4; i++) {
      retry.after("retryable");
      answers.push(retry.shouldRetry());
      await clock.jump(600);
    }
    assert.deepEqual(answers, [true, true, false, true]);
  });

  it("never retries without time, without an error, or for errors that do not count", () => {
    const clock = new FakeClock();
    const never = new RetryWithDeadline({ maxRetryMs: 0, minResetMs: 0, isRetryable: retryable, clock });
    never.after("retryable");
    assert.equal(never.shouldRetry(), false);
    const retry = new RetryWithDeadline({
      maxRetryMs: Infinity,
      minResetMs: 0,
      isRetryable: retryable,
      clock,
    });
    assert.equal(retry.shouldRetry(), false);
    retry.after("fatal");
    assert.equal(retry.shouldRetry(), false);
    retry.after("retryable");
    assert.equal(retry.shouldRetry(), true);
  });

  it("starts a new series after a long enough pause between errors", async () => {
    const clock = new FakeClock();
    const retry = new RetryWithDeadline({
      maxRetryMs: 1_000,
      minResetMs: 800,
      isRetryable: retryable,
      clock,
    });
    retry.after("retryable");
    await clock.jump(800);
    retry.after("retryable");
    await clock.jump(1_000);
    assert.equal(retry.shouldRetry(), true);
  });
});
