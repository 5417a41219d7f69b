import { newStatus } from "@listwatch/cache/client";
import { NetworkError, StatusError } from "@listwatch/cache";
import { FakeClock } from "@listwatch/cache/testing";
import { WorkQueue } from "@listwatch/cache/workqueue";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RetryDelays, type Urgency, WorkOrder } from "../../src/controller/work_order.ts";

/** Adds keys as a queue does, and takes all of them out. */
class Order {
  readonly clock = new FakeClock(1_000_000);
  readonly order = new WorkOrder(this.clock);
  readonly #waiting = new Set<string>();

  add(key: string, urgency: Urgency): void {
    this.order.expect(key, urgency);
    if (this.#waiting.has(key)) this.order.touch(key);
    else this.order.push(key);
    this.#waiting.add(key);
  }

  all(): string {
    const keys: string[] = [];
    while (this.order.length > 0) keys.push(this.order.pop());
    for (const key of keys) this.#waiting.delete(key);
    return keys.join(" ");
  }
}

describe("WorkOrder", () => {
  it("takes a key whose resync became a change after the changes before it", async () => {
    const one = new Order();
    one.add("key", "resync");
    await one.clock.advance(10_001);
    one.add("earlier", "change");
    one.add("key", "change");
    assert.equal(one.all(), "earlier key");
  });

  it("takes changes before resyncs that were added up to 10 s before them, and older ones first", async () => {
    const one = new Order();
    one.add("old", "resync");
    await one.clock.advance(10_001);
    one.add("young", "resync");
    await one.clock.advance(10_000);
    one.add("change", "change");
    assert.equal(one.all(), "old change young");
  });

  it("takes a key to the changes that waits for a resync, and no change to the resyncs", () => {
    const one = new Order();
    for (const key of ["a", "b", "c"]) one.add(key, "resync");
    one.add("d", "change");
    one.add("c", "change");
    one.add("d", "resync");
    one.add("b", "resync");
    assert.equal(one.all(), "d c a b");
  });

  it("takes each key once, and where it was when it came first, however often it is added", () => {
    const one = new Order();
    for (const key of ["a", "b"]) one.add(key, "resync");
    one.add("a", "change");
    assert.equal(one.all(), "a b");
    for (const key of ["a", "b", "a"]) one.add(key, "change");
    assert.equal(one.all(), "a b");
  });

  it("remembers no urgency of a key that waited already: the next time it is what it is then", () => {
    const one = new Order();
    one.add("a", "change");
    one.add("a", "resync");
    assert.equal(one.all(), "a");
    one.add("b", "resync");
    one.order.push("a"); // such as after a failure
    assert.equal(one.all(), "a b");
  });

  it("remembers no urgency of a key that was taken: a failed resync is tried again as a change", () => {
    const one = new Order();
    one.add("a", "resync");
    assert.equal(one.all(), "a");
    one.add("b", "resync");
    one.order.push("a"); // after the failure
    assert.equal(one.all(), "a b");
  });

  it("is that of a change for a key that has changed while a worker had it, whatever came then", async () => {
    const { clock, order } = new Order();
    const queue = new WorkQueue<string>({ clock, order });
    const add = (key: string, urgency: Urgency) => {
      order.expect(key, urgency);
      queue.add(key);
    };
    for (const urgencies of [["change", "resync"], ["resync", "change"]] as const) {
      add("a", "resync");
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal((await queue.get()).item, "a");
      add("b", "resync");
      for (const urgency of urgencies) add("a", urgency);
      queue.done("a");
      for (const expected of ["a", "b"]) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        assert.equal((await queue.get()).item, expected);
        queue.done(expected);
      }
    }
  });
});

const refused = (code: number, reason: string, retryAfterMs?: number) =>
  new StatusError(newStatus(code, reason, ""), retryAfterMs === undefined ? {} : { retryAfterMs });

describe("RetryDelays", () => {
  const delays = (error: unknown, count: number) => {
    const retries = new RetryDelays();
    return Array.from({ length: count }, () => retries.next("a", error));
  };

  it("are 5 ms and twice as long each time: up to a second after conflicts, else up to five minutes", () => {
    assert.deepEqual(delays(refused(409, "Conflict"), 10).slice(-3), [640, 1_000, 1_000]);
    assert.deepEqual(delays(new Error("x"), 3), [5, 10, 20]);
    assert.equal(delays(new Error("x"), 20).at(-1), 300_000);
    assert.equal(delays(refused(422, "Invalid"), 20).at(-1), 300_000);
  });

  it("are 50 ms to 10 s while the server is away or has too much to do", () => {
    const outages = [
      refused(429, "TooManyRequests"),
      refused(500, "InternalError"),
      refused(503, "ServiceUnavailable"),
      new NetworkError("Unreachable", "x"),
    ];
    for (const error of outages) {
      assert.deepEqual(delays(error, 2), [50, 100], String(error));
      assert.equal(delays(error, 20).at(-1), 10_000, String(error));
    }
  });

  it("are at least what the server demands, and begin again after a success", () => {
    assert.deepEqual(delays(refused(429, "TooManyRequests", 75), 2), [75, 100]);
    const retries = new RetryDelays();
    for (const error of [new Error("x"), refused(503, ""), refused(409, "Conflict")]) {
      retries.next("a", error);
    }
    assert.equal(retries.of("a"), 3);
    assert.equal(retries.of("b"), 0);
    retries.forget("a");
    assert.equal(retries.of("a"), 0);
    assert.equal(retries.next("a", new Error("x")), 5);
  });
});
