import {
  Backoff,
  BackoffManager,
  type BackoffParameters,
  newReflectorBackoff,
} from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

const noJitter = () => 0;

function take(count: number, next: () => number): number[] {
  return Array.from({ length: count }, next);
}

describe("Backoff", () => {
  const steps = (parameters: BackoffParameters, count = 5) => {
    const backoff = new Backoff(parameters, { random: noJitter });
    return take(count, () => backoff.step());
  };

  it("grows by its factor up to its cap", () => {
    assert.deepEqual(steps({ durationMs: 10, factor: 2, capMs: 50 }), [10, 20, 40, 50, 50]);
  });

  it("stays the same without a factor, and after its last step", () => {
    assert.deepEqual(steps({ durationMs: 10 }), [10, 10, 10, 10, 10]);
    assert.deepEqual(steps({ durationMs: 10, factor: 3, steps: 2 }), [10, 30, 90, 90, 90]);
    assert.deepEqual(steps({ durationMs: 10, factor: 3, steps: 0 }), [10, 10, 10, 10, 10]);
    assert.deepEqual(steps({ durationMs: 100, capMs: 50 }), [100, 100, 100, 100, 100]);
    assert.deepEqual(steps({ durationMs: 100, factor: 0.5, capMs: 30 }), [100, 30, 30, 30, 30]);
  });

  it("adds jitter to each delay, not to the next ones", () => {
    const backoff = new Backoff({ durationMs: 10, factor: 2, jitter: 0.5 }, { random: () => 0.5 });
    assert.deepEqual(take(3, () => backoff.step()), [12.5, 25, 50]);
  });

  it("reset starts again at the first delay", () => {
    const backoff = new Backoff({ durationMs: 10, factor: 2, steps: 1 }, { random: noJitter });
    take(3, () => backoff.step());
    backoff.reset();
    assert.deepEqual(take(3, () => backoff.step()), [10, 20, 20]);
  });

  it("never becomes infinite", () => {
    const backoff = new Backoff({ durationMs: 1, factor: 1e9, jitter: 1 }, { random: () => 0 });
    for (const delayMs of take(100, () => backoff.step())) assert.ok(Number.isFinite(delayMs));
  });

  it("refuses jitter without random numbers", () => {
    assert.throws(() => new Backoff({ durationMs: 10, jitter: 0.1 }), TypeError);
    assert.equal(new Backoff({ durationMs: 10 }).nextDelayMs(), 10);
  });

  it("refuses parameters that are not numbers from 0 up", () => {
    for (const wrong of [{ durationMs: -1 }, { durationMs: NaN }, { durationMs: 1, factor: -2 }]) {
      assert.throws(() => new Backoff(wrong, { random: noJitter }), RangeError);
    }
  });

  it("stays within its jitter, whatever the randomness", () => {
    fc.assert(fc.property(fc.double({ min: 0, max: 0.999_999, noNaN: true }), fc.nat(10), (random, count) => {
      const backoff = new Backoff({ durationMs: 800, factor: 2, capMs: 30_000, jitter: 1 }, {
        random: () => random,
      });
      const base = Math.min(800 * 2 ** count, 30_000);
      const delayMs = take(count + 1, () => backoff.step())[count];
      assert.ok(delayMs >= base && delayMs < base * 2);
    }));
  });
});

describe("BackoffManager", () => {
  const parameters = { durationMs: 10, factor: 2 };

  it("starts again every interval, even while failures continue", async () => {
    const clock = new FakeClock();
    const manager = new BackoffManager(parameters, { clock, random: noJitter, resetMs: 100 });
    assert.deepEqual(take(3, () => manager.nextDelayMs()), [10, 20, 40]);
    await clock.advance(60);
    assert.equal(manager.nextDelayMs(), 80);
    await clock.advance(40);
    assert.equal(manager.nextDelayMs(), 160, "not after exactly the interval");
    await clock.advance(1);
    assert.deepEqual(take(2, () => manager.nextDelayMs()), [10, 20]);
    await clock.advance(100);
    assert.equal(manager.nextDelayMs(), 40, "the interval started again");
  });

  it("starts again only after a quiet time, if `resetAfter` is quiet", async () => {
    const clock = new FakeClock();
    const manager = new BackoffManager(parameters, {
      clock,
      random: noJitter,
      resetMs: 100,
      resetAfter: "quiet",
    });
    const delays = [];
    for (let i = 0; i < 4; i++) {
      delays.push(manager.nextDelayMs());
      await clock.advance(60);
    }
    assert.deepEqual(delays, [10, 20, 40, 80]);
    await clock.advance(41);
    assert.equal(manager.nextDelayMs(), 10);
  });

  it("returns the first delay every time without a reset time", () => {
    const manager = new BackoffManager(parameters, { clock: new FakeClock(), random: noJitter, resetMs: 0 });
    assert.deepEqual(take(3, () => manager.nextDelayMs()), [10, 10, 10]);
    const short = new BackoffManager(parameters, { clock: new FakeClock(), random: noJitter, resetMs: 1 });
    assert.deepEqual(take(3, () => short.nextDelayMs()), [10, 20, 40]);
  });

  it("refuses a reset time that is no number", () => {
    const options = { clock: new FakeClock(), random: noJitter, resetMs: NaN };
    assert.throws(
      () => new BackoffManager(parameters, options),
      /^RangeError: Cannot back off with a resetMs of/,
    );
  });

  it("reset starts again at the first delay, and the interval from then", async () => {
    const clock = new FakeClock();
    const manager = new BackoffManager(parameters, { clock, random: noJitter, resetMs: 100 });
    take(3, () => manager.nextDelayMs());
    await clock.advance(90);
    manager.reset();
    await clock.advance(90);
    assert.deepEqual(take(2, () => manager.nextDelayMs()), [10, 20]);
    await clock.advance(10);
    assert.equal(manager.nextDelayMs(), 40);
    await clock.advance(50);
    manager.reset();
    assert.equal(manager.nextDelayMs(), 10);
    await clock.advance(60);
    assert.equal(manager.nextDelayMs(), 20);
  });
});

describe("newReflectorBackoff", () => {
  it("doubles from 800 ms to 15 s, each stretched to less than its double, so that none exceeds 30 s", () => {
    const base = [800, 1600, 3200, 6400, 12_800, 15_000, 15_000, 15_000];
    const delays = (random: number) => {
      const backoff = newReflectorBackoff({ clock: new FakeClock(), random: () => random });
      return take(8, () => backoff.nextDelayMs());
    };
    assert.deepEqual(delays(0), base);
    assert.deepEqual(delays(0.5), base.map((ms) => ms * 1.5));
    assert.ok(Math.max(...delays(1 - Number.EPSILON)) <= 30_000);
  });

  it("continues to grow through a long outage, and starts again after two quiet minutes", async () => {
    const clock = new FakeClock();
    const backoff = newReflectorBackoff({ clock, random: noJitter });
    let delayMs = 0;
    for (let i = 0; i < 20; i++) {
      delayMs = backoff.nextDelayMs();
      await clock.jump(delayMs);
    }
    assert.equal(delayMs, 15_000);
    await clock.jump(120_001);
    assert.equal(backoff.nextDelayMs(), 800);
  });

  it("accepts other delays and keeps the reset", async () => {
    const clock = new FakeClock();
    const backoff = newReflectorBackoff({ clock, random: noJitter, backoff: { durationMs: 10, factor: 10 } });
    assert.deepEqual(take(2, () => backoff.nextDelayMs()), [10, 100]);
    await clock.jump(120_001);
    assert.equal(backoff.nextDelayMs(), 10);
  });
});
