import { FakeClock } from "@listwatch/cache/testing";
import { DelayingQueue, type RateLimiter, RateLimitingQueue } from "@listwatch/cache/workqueue";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertyOptions } from "../property.ts";

async function drain(queue: DelayingQueue): Promise<string[]> {
  const items = [];
  while (queue.length > 0) {
    const { item } = await queue.get();
    if (item === undefined) break;
    items.push(item);
    queue.done(item);
  }
  return items;
}

describe("DelayingQueue", () => {
  it("adds an item when its delay has passed, not before", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter("a", 50);
    await clock.advance(49);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.deepEqual(await drain(queue), ["a"]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("adds an item immediately for a delay that is not above 0", () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter("a", 0);
    queue.addAfter("b", -5);
    assert.deepEqual([queue.length, clock.pendingTimers], [2, 0]);
  });

  it("refuses a delay that is not a number: to add the item at once may be a hot loop", () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    assert.throws(() => queue.addAfter("a", NaN), {
      name: "RangeError",
      message: /^Cannot add an item with a delayMs of NaN: /,
    });
    assert.deepEqual([queue.length, clock.pendingTimers], [0, 0]);
    const limiter: RateLimiter<string> = { when: () => NaN, forget: () => {}, numRequeues: () => 0 };
    const limited = new RateLimitingQueue<string>(limiter, { clock });
    assert.throws(() => limited.addRateLimited("a"), RangeError);
    assert.equal(limited.length, 0);
  });

  it("adds of two items with one key and one time the one that came first", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue<{ readonly id: string; readonly by: number }>({
      clock,
      keyOf: ({ id }) => id,
    });
    queue.addAfter({ id: "a", by: 1 }, 50);
    queue.addAfter({ id: "a", by: 2 }, 50);
    await clock.advance(50);
    assert.deepEqual((await queue.get()).item, { id: "a", by: 1 });
    assert.equal(queue.length, 0);
  });

  it("adds an item that waits twice once, at the earlier time", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter("later", 50);
    queue.addAfter("later", 70);
    queue.addAfter("sooner", 50);
    queue.addAfter("sooner", 30);
    await clock.advance(30);
    assert.deepEqual(await drain(queue), ["sooner"]);
    await clock.advance(20);
    assert.deepEqual(await drain(queue), ["later"]);
    await clock.advance(1_000);
    assert.equal(queue.length, 0);
  });

  it("adds items by their times, whatever order they came in, with one timer", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    for (const [item, delayMs] of [["c", 30], ["a", 10], ["b", 20]] as const) queue.addAfter(item, delayMs);
    assert.equal(clock.pendingTimers, 1);
    await clock.advance(30);
    assert.deepEqual(await drain(queue), ["a", "b", "c"]);
  });

  it("accepts an immediate add of a waiting item, and adds it again after its delay", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    queue.addAfter("a", 10);
    queue.add("a");
    assert.deepEqual(await drain(queue), ["a"]);
    await clock.advance(10);
    assert.deepEqual(await drain(queue), ["a"]);
  });

  it("gives an item directly to a waiting worker", async () => {
    const clock = new FakeClock();
    const queue = new DelayingQueue({ clock });
    const waiting = queue.get();
    queue.addAfter("a", 10);
    await clock.advance(10);
    assert.deepEqual(await waiting, { item: "a", shutdown: false });
  });

  it("drops waiting items and its timer at a shutdown of either kind", async () => {
    for (const shutDown of ["shutDown", "shutDownWithDrain"] as const) {
      const clock = new FakeClock();
      const queue = new DelayingQueue({ clock });
      queue.addAfter("a", 10);
      await queue[shutDown]();
      queue.addAfter("b", 10);
      assert.equal(clock.pendingTimers, 0, shutDown);
      await clock.advance(100);
      assert.deepEqual(await queue.get(), { shutdown: true });
    }
    assert.ok(
      new DelayingQueue({ signal: AbortSignal.abort() }).shuttingDown,
      "also where it begins with one",
    );
  });

  it("ends a drain by a shutdown, also where it was shut down before", async () => {
    const queue = new DelayingQueue({ clock: new FakeClock() });
    queue.add("a");
    await queue.get(); // never done
    queue.shutDown();
    const drained = queue.shutDownWithDrain();
    queue.shutDown();
    await drained;
  });

  it("continues to wait when its timer fires too early, as timers of more than 24 days do", async () => {
    const clock = new FakeClock();
    const hasty = {
      now: () => clock.now(),
      setTimeout: (callback: () => void, ms: number) => clock.setTimeout(callback, Math.min(ms, 1_000)),
      clearTimeout: (timer: unknown) => clock.clearTimeout(timer),
    };
    const queue = new DelayingQueue({ clock: hasty });
    queue.addAfter("a", 2_500);
    queue.addAfter("never", Infinity);
    await clock.advance(2_499);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.deepEqual(await drain(queue), ["a"]);
    assert.equal(clock.pendingTimers, 0, "what never comes needs no timer");
  });

  it("adds each item at the earliest of its times, whatever the calls", async () => {
    const call = fc.record({
      item: fc.constantFrom("a", "b", "c"),
      delayMs: fc.integer({ min: 1, max: 40 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
        const clock = new FakeClock();
        const queue = new DelayingQueue({ clock });
        const due = new Map<string, number>();
        for (const { item, delayMs } of calls) {
          queue.addAfter(item, delayMs);
          due.set(item, Math.min(due.get(item) ?? Infinity, delayMs));
        }
        const added = new Map<string, number>();
        for (let next = queue.get(); added.size < due.size; next = queue.get()) {
          const result = next.then(({ item = "" }) => added.set(item, clock.now()));
          const before = added.size;
          await clock.advance(0); // what is due already comes at this time
          while (added.size === before) await clock.advance(1);
          await result;
        }
        assert.deepEqual(added, new Map([...added.keys()].map((item) => [item, due.get(item)])));
      }),
      propertyOptions(100),
    );
  });
});

describe("RateLimitingQueue", () => {
  const newLimiter = () => {
    const failures = new Map<string, number>();
    const limiter: RateLimiter<string> = {
      when: (item) => {
        failures.set(item, (failures.get(item) ?? 0) + 1);
        return (failures.get(item) ?? 0) * 10;
      },
      forget: (item) => void failures.delete(item),
      numRequeues: (item) => failures.get(item) ?? 0,
    };
    return limiter;
  };

  it("adds an item after the delay that its limiter gives, and asks the limiter about failures", async () => {
    const clock = new FakeClock();
    const queue = new RateLimitingQueue(newLimiter(), { clock });
    queue.addRateLimited("a");
    await clock.advance(10);
    assert.deepEqual(await drain(queue), ["a"]);
    queue.addRateLimited("a");
    assert.equal(queue.numRequeues("a"), 2);
    await clock.advance(19);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.deepEqual(await drain(queue), ["a"]);
    queue.forget("a");
    assert.equal(queue.numRequeues("a"), 0);
  });

  it("counts retries in its metrics", () => {
    let retries = 0;
    const nothing = { inc() {}, dec() {}, set() {}, observe() {} };
    const metrics = {
      depth: nothing,
      adds: nothing,
      latency: nothing,
      workDuration: nothing,
      unfinishedWorkSeconds: nothing,
      longestRunningProcessorSeconds: nothing,
      retries: { inc: () => retries++ },
    };
    const clock = new FakeClock();
    const metricsProvider = { queueMetrics: () => metrics };
    const queue = new RateLimitingQueue(newLimiter(), { clock, name: "pods", metricsProvider });
    queue.addRateLimited("a");
    queue.addAfter("b", 0);
    queue.add("c");
    queue.shutDown();
    queue.addRateLimited("d");
    assert.deepEqual([retries, clock.pendingTimers], [2, 0]);
  });
});

describe("DelayingQueue", () => {
  it("sets no timer for an item whose time comes after that of another one", () => {
    const clock = new FakeClock();
    let timers = 0;
    const counting = {
      now: () => clock.now(),
      monotonicNow: () => clock.monotonicNow(),
      setTimeout: (callback: () => void, ms: number) => (timers++, clock.setTimeout(callback, ms)),
      clearTimeout: (handle: unknown) => clock.clearTimeout(handle),
    };
    const queue = new DelayingQueue<string>({ clock: counting });
    for (const [item, ms] of [["a", 10], ["b", 20], ["c", 10], ["d", 5]] as const) queue.addAfter(item, ms);
    assert.deepEqual([timers, clock.pendingTimers], [2, 1]);
    queue.shutDown();
  });

  it("has the system's clock by default", async () => {
    const queue = new DelayingQueue<string>();
    queue.addAfter("a", 1);
    assert.deepEqual(await queue.get(), { shutdown: false, item: "a" });
    queue.shutDown();
  });
});
