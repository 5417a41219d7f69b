import { FakeClock } from "@listwatch/cache/testing";
import { itemExponentialFailureRateLimiter } from "@listwatch/cache/workqueue";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Deliveries, type WatchPhase } from "../../src/compat/fluent/watcher.ts";

/** A callback that fails when the test says so, and when it was called with what. */
class Callback {
  readonly clock = new FakeClock();
  readonly calls: string[] = [];
  readonly errors: unknown[] = [];
  /** Thrown by the next calls. */
  failing: (object: string) => boolean = () => false;
  readonly deliveries: Deliveries<string>;

  constructor(maxRetries?: number) {
    this.deliveries = new Deliveries<string>({
      call: (object, phase) => {
        this.calls.push(`${this.clock.now()} ${phase} ${object}`);
        if (this.failing(object)) throw new Error(object);
      },
      onError: (error) => this.errors.push(error),
      limiter: itemExponentialFailureRateLimiter({ baseDelayMs: 100, maxDelayMs: 1_000 }),
      ...(maxRetries !== undefined && { maxRetries }),
      clock: this.clock,
    });
  }

  deliver(key: string, object: string, phase: WatchPhase = "MODIFIED"): Promise<void> {
    return this.deliveries.deliver(key, { object, phase });
  }
}

describe("Deliveries of compat/fluent", () => {
  it("begin with the shortest delay again after a success", async () => {
    const one = new Callback();
    let left = 2;
    one.failing = () => left-- > 0;
    await one.deliver("a", "a1");
    await one.clock.advance(1_000);
    assert.deepEqual(one.calls, ["0 MODIFIED a1", "100 MODIFIED a1", "300 MODIFIED a1"]);
    left = 1;
    await one.deliver("a", "a2");
    await one.clock.advance(99);
    assert.equal(one.calls.length, 4);
    await one.clock.advance(1);
    assert.equal(one.calls.length, 5);
  });

  it("give up a change after its tries, and count those of the next one by themselves", async () => {
    const one = new Callback(1);
    one.failing = () => true;
    for (const object of ["a1", "a2"]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await one.deliver("a", object);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await one.clock.advance(1_000);
    }
    assert.deepEqual(one.calls, ["0 MODIFIED a1", "100 MODIFIED a1", "1000 MODIFIED a2", "1100 MODIFIED a2"]);
    assert.equal(one.errors.length, 4);
    assert.equal(one.clock.pendingTimers, 0);
  });

  it("call at once for a change of an object whose last one has failed, with both in one", async () => {
    const one = new Callback();
    let left = 1;
    one.failing = () => left-- > 0;
    await one.deliver("a", "a1", "ADDED");
    await one.clock.advance(50);
    await one.deliver("a", "a2");
    await one.clock.advance(1_000);
    assert.deepEqual(one.calls, ["0 ADDED a1", "50 ADDED a2"]);
    assert.equal(one.clock.pendingTimers, 0);
  });

  it("keep what comes while a call runs that fails", async () => {
    const one = new Callback();
    let left = 1;
    one.failing = (object) => {
      if (object === "a1" && left === 1) {
        void one.deliver("a", "a1", "DELETED");
        void one.deliver("a", "a2", "ADDED");
      }
      return left-- > 0;
    };
    await one.deliver("a", "a1", "ADDED");
    await one.clock.advance(1_000);
    assert.deepEqual(one.calls.slice(1), ["100 DELETED a1", "100 ADDED a2"]);
  });

  it("of one object wait for its delay, whatever else was to be done in the meantime", async () => {
    const one = new Callback();
    one.failing = (object) => object === "a1";
    const all = [one.deliver("a", "a1", "ADDED"), one.deliver("a", "a1"), one.deliver("b", "b1")];
    await Promise.all(all);
    assert.deepEqual(one.calls, ["0 ADDED a1", "0 MODIFIED b1"]);
    await one.clock.advance(100);
    assert.equal(one.calls.length, 3);
  });

  it("end with a close: nothing is called again, and no timer is left", async () => {
    const one = new Callback();
    one.failing = () => true;
    await one.deliver("a", "a1");
    assert.equal(one.clock.pendingTimers, 1);
    one.deliveries.close();
    assert.equal(one.clock.pendingTimers, 0);
    await one.deliver("a", "a2");
    await one.clock.advance(10_000);
    assert.equal(one.calls.length, 1);
  });

  it("set no timer for a call that fails after the close", async () => {
    const one = new Callback();
    one.failing = () => {
      one.deliveries.close();
      return true;
    };
    await one.deliver("a", "a1");
    assert.deepEqual([one.errors.length, one.clock.pendingTimers], [1, 0]);
  });
});
