import { realClock } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import { DelayingQueue } from "@listwatch/cache/workqueue";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { ageMs, letNetworkThrough, monotonicNow, nextTurn } from "../../src/util/clock.ts";

const HOUR_MS = 3_600_000;

describe("Clock", () => {
  it("monotonicNow does not go back, and is the wall clock of a clock without a monotonic one", () => {
    const before = monotonicNow(realClock);
    assert.ok(monotonicNow(realClock) >= before);
    assert.equal(monotonicNow({ now: () => 42, setTimeout: () => {}, clearTimeout: () => {} }), 42);
  });

  it("realClock does not fire at once after a delay that the timers of runtimes cannot hold", () => {
    const { setTimeout } = globalThis;
    const delays: (number | undefined)[] = [];
    globalThis.setTimeout = ((_: () => void, ms?: number) => delays.push(ms)) as unknown as typeof setTimeout;
    try {
      for (const ms of [2 ** 31, 60 * 24 * HOUR_MS, Infinity, -5]) realClock.setTimeout(() => {}, ms);
    } finally {
      globalThis.setTimeout = setTimeout;
    }
    const most = 2 ** 31 - 1;
    assert.deepEqual(delays, [most, most, most, 0]);
  });

  it("FakeClock.setWallClock moves neither the monotonic clock nor a timer", async () => {
    const clock = new FakeClock(1_000);
    let rang = false;
    clock.setTimeout(() => (rang = true), 500);
    clock.setWallClock(1_000 + HOUR_MS);
    await clock.advance(499);
    assert.deepEqual([clock.now(), clock.monotonicNow(), rang], [1_499 + HOUR_MS, 1_499, false]);
    await clock.advance(1);
    assert.equal(rang, true);
  });

  it("FakeClock.until moves from timer to timer until the condition holds, and not further", async () => {
    const clock = new FakeClock(1_000);
    let rung = 0;
    for (const ms of [100, 200, 300]) clock.setTimeout(() => rung++, ms);
    assert.equal(await clock.until(() => rung === 0), 0);
    assert.equal(await clock.until(() => Promise.resolve(rung === 2)), 200);
    assert.equal(clock.now(), 1_200);
    await assert.rejects(
      clock.until(() => rung === 3, 99),
      /Not within 99 ms of the clock: .*rung === 3/,
    );
    assert.equal(await clock.until(() => rung === 3, 100), 100);
    await assert.rejects(clock.until(() => false), /Not within 60000 ms/);
  });

  it("FakeClock.setTimeout takes a negative delay for none", async () => {
    const clock = new FakeClock(1_000);
    const fired: string[] = [];
    clock.setTimeout(() => fired.push("now"), 0);
    clock.setTimeout(() => fired.push("negative"), -5);
    assert.equal(clock.nextTimerMs, 1_000);
    await clock.advance(0);
    assert.deepEqual(fired, ["now", "negative"]);
  });

  it("FakeClock.setTimeout fires no timer before its time, however large the times are", async () => {
    for (const startMs of [0, 1_790_000_000_000]) {
      const clock = new FakeClock(startMs);
      const early: number[] = [];
      let fired = 0;
      for (let ms = 0.05; ms < 1; ms += 0.05) {
        clock.setTimeout(() => {
          fired++;
          if (clock.monotonicNow() - startMs < ms) early.push(ms);
        }, ms);
      }
      await clock.advance(1);
      assert.deepEqual([fired, early], [19, []]);
    }
  });
});

describe("ageMs", () => {
  it("is a whole number that is not too small", () => {
    const clock = {
      now: () => 0,
      monotonicNow: () => 1_000.25,
      setTimeout: () => {},
      clearTimeout: () => {},
    };
    assert.equal(ageMs({ wallMs: 0, monotonicMs: 1_000 }, clock), 1);
  });

  it("is the larger of what both clocks say, at the time of asking", async () => {
    const clock = new FakeClock(10 * 3_600_000);
    const contact = { wallMs: clock.now(), monotonicMs: clock.monotonicNow() };
    await clock.jump(5_000);
    assert.equal(ageMs(contact, clock), 5_000);
    clock.setWallClock(clock.now() - 3_600_000);
    assert.equal(ageMs(contact, clock), 5_000, "the wall clock was set back");
    clock.setWallClock(contact.wallMs + 3_600_000);
    assert.equal(ageMs(contact, clock), 3_600_000, "the monotonic clock was stopped");
    assert.equal(ageMs({ wallMs: clock.now(), monotonicMs: clock.monotonicNow() }, clock), 0);
  });
});

describe("DelayingQueue", () => {
  for (const [how, shiftMs] of [["back", -HOUR_MS], ["forward", HOUR_MS]] as const) {
    it(`addAfter waits as long as before when the wall clock is set ${how} by an hour`, async () => {
      const clock = new FakeClock(10 * HOUR_MS);
      const queue = new DelayingQueue<string>({ clock });
      queue.addAfter("a", 2_000);
      queue.addAfter("b", 60_000);
      clock.setWallClock(clock.now() + shiftMs);
      await clock.advance(1_999);
      assert.equal(queue.length, 0);
      await clock.advance(1);
      assert.equal(queue.length, 1);
      await clock.advance(58_000);
      assert.equal(queue.length, 2);
    });
  }
});

describe("letNetworkThrough", () => {
  it("lets nextTurn leave time for the network, also where each turn has work", async () => {
    // On Deno only each 61st turn would have some.
    letNetworkThrough();
    const server = createServer((_, response) => response.end("ok"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    let isAnswered = false;
    const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text()).then((text) => {
      isAnswered = true;
      return text;
    });
    let turns = 0;
    for (; !isAnswered; turns++) {
      for (const endMs = performance.now() + 5; performance.now() < endMs;);
      await nextTurn();
    }
    assert.equal(await answer, "ok");
    assert.ok(turns < 60, `${turns} turns`);
    await new Promise((resolve) => server.close(resolve));
  });
});
