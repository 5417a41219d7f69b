import { FakeClock } from "@listwatch/cache/testing";
import {
  defaultControllerRateLimiter,
  type QueueOrder,
  RateLimitingQueue,
  WorkQueue,
} from "@listwatch/cache/workqueue";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CountingSignal } from "../counting_signal.ts";
import { propertyOptions } from "../property.ts";

async function take<T>(queue: WorkQueue<T>): Promise<T> {
  const result = await queue.get();
  if (result.shutdown) throw new Error("the queue was shut down");
  return result.item;
}

/** Whether a promise has settled, once every pending task has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => settled = true;
  promise.then(note, note);
  for (let i = 0; i < 10; i++) await Promise.resolve();
  return settled;
}

describe("WorkQueue", () => {
  it("hands out items in the order they were added, each once", async () => {
    const queue = new WorkQueue();
    for (const item of ["a", "b", "a", "", "b"]) queue.add(item);
    assert.equal(queue.length, 3);
    assert.deepEqual([await take(queue), await take(queue), await take(queue)], ["a", "b", ""]);
    assert.equal(queue.length, 0);
  });

  it("hands out an item that was added while a worker had it once more, after that worker is done", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await take(queue);
    queue.add("a");
    queue.add("a");
    assert.equal(queue.length, 0, "not while it is being worked on");
    queue.done("a");
    assert.equal(queue.length, 1);
    assert.equal(await take(queue), "a");
    queue.done("a");
    assert.equal(queue.length, 0);
  });

  it("ignores done for an item that no worker has", () => {
    const queue = new WorkQueue();
    queue.add("a");
    queue.done("a");
    queue.done("b");
    assert.equal(queue.length, 1);
  });

  it("gives an item to the worker who waited first", async () => {
    const queue = new WorkQueue();
    const waiting = [take(queue), take(queue)];
    queue.add("a");
    queue.add("b");
    assert.deepEqual(await Promise.all(waiting), ["a", "b"]);
    assert.equal(queue.length, 0);
  });

  it("ends one worker's wait when its signal is aborted, and loses no item", async () => {
    const queue = new WorkQueue();
    const stop = new AbortController();
    const impatient = queue.get(stop.signal);
    const patient = take(queue);
    stop.abort(new Error("enough"));
    queue.add("a");
    await assert.rejects(impatient, /enough/);
    assert.equal(await patient, "a");
    queue.add("b");
    await assert.rejects(queue.get(stop.signal), /enough/);
    assert.equal(queue.length, 1);
  });

  it("leaves no listener on a worker's signal, however the wait ends, and none on its own after a shutdown", async () => {
    const own = new CountingSignal();
    const worker = new CountingSignal();
    const queue = new WorkQueue<string>({ signal: own.signal });
    const first = queue.get(worker.signal);
    assert.equal(worker.listeners, 1);
    queue.add("a");
    assert.equal((await first).item, "a");
    assert.equal(worker.listeners, 0);
    queue.add("b");
    await queue.get(worker.signal);
    assert.equal(worker.listeners, 0);
    const drained = queue.shutDownWithDrain(worker.signal);
    assert.equal(own.listeners, 0);
    queue.done("a");
    queue.done("b");
    await drained;
    assert.equal(worker.listeners, 0);
    const other = new WorkQueue<string>();
    const last = other.get(worker.signal);
    other.shutDown();
    assert.equal((await last).shutdown, true);
    assert.equal(worker.listeners, 0);
  });

  it("keeps an item for the worker it was handed to, though that worker's signal is aborted in the same turn", async () => {
    const queue = new WorkQueue();
    const stop = new AbortController();
    const given = queue.get(stop.signal);
    queue.add("a");
    stop.abort();
    assert.deepEqual(await given, { item: "a", shutdown: false });
  });

  it("distinguishes objects by keyOf, and returns the one that was added first", async () => {
    const queue = new WorkQueue<{ name: string; attempt: number }>({ keyOf: ({ name }) => name });
    queue.add({ name: "a", attempt: 1 });
    queue.add({ name: "a", attempt: 2 });
    assert.equal(queue.length, 1);
    const item = await take(queue);
    assert.equal(item.attempt, 1);
    queue.add({ name: "a", attempt: 3 });
    queue.done({ name: "a", attempt: 0 });
    assert.equal((await take(queue)).attempt, 3);
  });

  it("never gives one item to two workers, and has every item worked on after it was last added", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { minLength: 1, maxLength: 60 }),
        fc.scheduler(),
        async (additions, scheduler) => {
          const queue = new WorkQueue<number>();
          const version = [0, 0, 0, 0, 0];
          const seen = [0, 0, 0, 0, 0];
          const busy = new Set<number>();
          const worker = async () => {
            for (let next = await queue.get(); !next.shutdown; next = await queue.get()) {
              assert.ok(!busy.has(next.item), "two workers have it");
              busy.add(next.item);
              const current = version[next.item];
              await scheduler.schedule(Promise.resolve());
              seen[next.item] = current;
              busy.delete(next.item);
              queue.done(next.item);
            }
          };
          const workers = [worker(), worker(), worker()];
          const producer = (async () => {
            for (const item of additions) {
              await scheduler.schedule(Promise.resolve());
              version[item]++;
              queue.add(item);
            }
            queue.shutDown();
          })();
          await scheduler.waitFor(Promise.all([producer, ...workers]));
          assert.deepEqual(seen, version);
        },
      ),
      propertyOptions(200),
    );
  });
});

describe("WorkQueue with an order of its own", () => {
  class ByPriority implements QueueOrder<string> {
    readonly calls: string[] = [];
    readonly #items: string[] = [];
    get length(): number {
      return this.#items.length;
    }
    touch(item: string): void {
      this.calls.push(`touch ${item}`);
      this.#items.splice(this.#items.indexOf(item), 1);
      this.#items.unshift(item);
    }
    push(item: string): void {
      this.calls.push(`push ${item}`);
      this.#items.push(item);
    }
    pop(): string {
      return this.#items.shift() as string;
    }
  }

  it("calls it with every push, and with an item that is added again while it waits", async () => {
    const order = new ByPriority();
    const queue = new WorkQueue({ order });
    queue.add("a");
    queue.add("b");
    queue.add("b");
    assert.equal(await take(queue), "b");
    queue.add("b");
    queue.add("b"); // a worker has it: it is not in the order, so it cannot be touched
    queue.done("b");
    assert.deepEqual(order.calls, ["push a", "push b", "touch b", "push b"]);
  });
});

describe("WorkQueue.shutDown", () => {
  it("refuses new items, returns the remaining ones, and then ends the workers", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    queue.shutDown();
    assert.ok(queue.shuttingDown);
    queue.add("b");
    assert.deepEqual(await queue.get(), { item: "a", shutdown: false });
    assert.deepEqual(await queue.get(), { shutdown: true });
  });

  it("wakes every worker that waits", async () => {
    const queue = new WorkQueue();
    const waiting = [queue.get(), queue.get()];
    queue.shutDown();
    assert.deepEqual(await Promise.all(waiting), [{ shutdown: true }, { shutdown: true }]);
  });

  it("still hands out an item that was added again before the shutdown while a worker had it", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await take(queue);
    queue.add("a");
    queue.shutDown();
    queue.done("a");
    assert.equal(await take(queue), "a");
  });

  it("is called when the signal of the options is aborted, also if it was before", async () => {
    const stop = new AbortController();
    const queue = new WorkQueue({ signal: stop.signal });
    const waiting = queue.get();
    stop.abort();
    assert.deepEqual(await waiting, { shutdown: true });
    assert.ok(new WorkQueue({ signal: stop.signal }).shuttingDown);
  });
});

describe("WorkQueue.onShutDown", () => {
  it("is called once, however often and in whatever way the queue is shut down", async () => {
    let calls = 0;
    class Counting extends WorkQueue {
      protected override onShutDown(): void {
        calls++;
      }
    }
    const stop = new AbortController();
    const queue = new Counting({ signal: stop.signal });
    queue.shutDown();
    await queue.shutDownWithDrain();
    queue.shutDown();
    stop.abort();
    assert.equal(calls, 1);
  });
});

describe("WorkQueue.shutDownWithDrain", () => {
  it("waits until no worker has an item, however many wait in the queue", async () => {
    const queue = new WorkQueue();
    for (const item of ["a", "b", "c"]) queue.add(item);
    await take(queue);
    await take(queue);
    const drained = queue.shutDownWithDrain();
    queue.done("a");
    assert.equal(await isSettled(drained), false);
    queue.done("b");
    await drained;
    assert.equal(queue.length, 1);
  });

  it("does not wait when no worker has anything", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await queue.shutDownWithDrain();
    assert.ok(queue.shuttingDown);
  });

  it("ends although the last item was added again meanwhile; the next get still returns it", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await take(queue);
    queue.add("a");
    const drained = queue.shutDownWithDrain();
    assert.equal(await isSettled(drained), false);
    queue.done("a");
    await drained;
    assert.equal(await take(queue), "a");
  });

  it("is cut short by a plain shutdown", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await take(queue);
    const drained = [queue.shutDownWithDrain(), queue.shutDownWithDrain()];
    assert.equal(await isSettled(drained[0]), false);
    queue.shutDown();
    await Promise.all(drained);
  });

  it("is cut short by its signal, which leaves the queue shut down", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await take(queue);
    const stop = new AbortController();
    const drained = queue.shutDownWithDrain(stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(drained, /enough/);
    assert.ok(queue.shuttingDown);
  });
});

describe("WorkQueue.pause and resume", () => {
  it("hand out nothing meanwhile, while add and done work", async () => {
    const queue = new WorkQueue();
    queue.add("working");
    queue.add("waiting");
    const item = await take(queue);
    queue.pause();
    queue.pause();
    queue.add(item);
    queue.done(item);
    queue.add("later");
    assert.equal(queue.length, 3);
    const gets = [take(queue), take(queue)];
    assert.equal(await isSettled(gets[0]), false);
    queue.resume();
    assert.deepEqual(await Promise.all(gets), ["waiting", "working"]);
    assert.equal(await take(queue), "later");
  });

  it("wake the workers that waited before, in their order, and leave those for whom there is nothing", async () => {
    const queue = new WorkQueue();
    const gets = [take(queue), take(queue), take(queue)];
    queue.pause();
    queue.add("a");
    queue.add("b");
    assert.equal(await isSettled(Promise.race(gets)), false);
    queue.resume();
    assert.deepEqual(await Promise.all(gets.slice(0, 2)), ["a", "b"]);
    assert.equal(await isSettled(gets[2]), false);
    queue.add("c");
    assert.equal(await gets[2], "c");
  });

  it("leave what is queued at a shutdown, which ends the workers, unless the queue is resumed", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    queue.pause();
    const waiting = queue.get();
    queue.shutDown();
    assert.deepEqual(await waiting, { shutdown: true });
    assert.deepEqual(await queue.get(), { shutdown: true });
    assert.equal(queue.length, 1);
    queue.resume();
    assert.equal(await take(queue), "a");
    assert.deepEqual(await queue.get(), { shutdown: true });
  });

  it("let a drain wait for what workers have, and hand out nothing that is queued", async () => {
    const queue = new WorkQueue();
    queue.add("working");
    const item = await take(queue);
    queue.pause();
    queue.add("waiting");
    const worker = queue.get();
    const drained = queue.shutDownWithDrain();
    assert.deepEqual(await worker, { shutdown: true });
    assert.equal(await isSettled(drained), false);
    queue.done(item);
    await drained;
    assert.equal(queue.length, 1);
  });

  it("are those of a delaying and a rate limiting queue, too: what is due is queued", async () => {
    const clock = new FakeClock();
    const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter(), { clock });
    queue.pause();
    queue.addRateLimited("a");
    queue.addAfter("b", 1_000);
    const gets = [take(queue), take(queue)];
    await clock.advance(1_000);
    assert.deepEqual([queue.length, await isSettled(Promise.race(gets))], [2, false]);
    queue.resume();
    assert.deepEqual(await Promise.all(gets), ["a", "b"]);
  });

  it("end a wait by its signal meanwhile, which loses no item", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    queue.pause();
    const stop = new AbortController();
    const waiting = queue.get(stop.signal);
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    queue.resume();
    assert.equal(await take(queue), "a");
  });
});

describe("WorkQueue metrics", () => {
  function record() {
    const log: string[] = [];
    const metric = (name: string) => ({
      inc: () => log.push(`${name} +1`),
      dec: () => log.push(`${name} -1`),
      set: (value: number) => log.push(`${name} = ${value}`),
      observe: (value: number) => log.push(`${name} ${value}`),
    });
    const metricsProvider = {
      queueMetrics: (name: string) => ({
        depth: metric(`${name} depth`),
        adds: metric("adds"),
        latency: metric("latency"),
        workDuration: metric("work"),
        unfinishedWorkSeconds: metric("unfinished"),
        longestRunningProcessorSeconds: metric("longest"),
        retries: metric("retries"),
      }),
    };
    return { log, metricsProvider, flush: () => log.splice(0) };
  }

  it("measure nothing of a queue that is made when its signal is aborted", () => {
    const clock = new FakeClock();
    const { log, metricsProvider } = record();
    const queue = new WorkQueue<string>({ clock, name: "q", metricsProvider, signal: AbortSignal.abort() });
    queue.add("a");
    assert.deepEqual([log, clock.pendingTimers, queue.length], [[], 0, 0]);
  });

  it("report how long items wait and are processed, in seconds", async () => {
    const { flush, metricsProvider } = record();
    const clock = new FakeClock();
    const queue = new WorkQueue({ name: "pods", metricsProvider, clock });
    queue.add("a");
    queue.add("a");
    assert.deepEqual(flush(), ["adds +1", "pods depth +1"], "an item that waits is not added again");
    await clock.advance(200);
    await take(queue);
    assert.deepEqual(flush(), ["pods depth -1", "latency 0.2"]);
    queue.add("a");
    await clock.advance(100);
    queue.done("a");
    assert.deepEqual(flush(), ["adds +1", "pods depth +1", "work 0.1"]);
    await clock.advance(50);
    await take(queue);
    assert.deepEqual(flush(), ["pods depth -1", "latency 0.15"], "since it was added, not since it was done");
  });

  it("report twice a second how long the running work has taken", async () => {
    const { flush, metricsProvider } = record();
    const clock = new FakeClock();
    const queue = new WorkQueue({ name: "pods", metricsProvider, clock });
    queue.add("a");
    await take(queue);
    await clock.advance(250);
    queue.add("b");
    await take(queue);
    flush();
    await clock.advance(250);
    assert.deepEqual(flush(), ["unfinished = 0.75", "longest = 0.5"]);
    queue.done("a");
    flush();
    await clock.advance(500);
    assert.deepEqual(flush(), ["unfinished = 0.75", "longest = 0.75"]);
  });

  it("hold up no item where they throw", async () => {
    const fail = () => {
      throw new Error("no metrics today");
    };
    const metric = { inc: fail, dec: fail, set: fail, observe: fail };
    const [depth, adds, latency, workDuration, retries] = Array.from({ length: 5 }, () => metric);
    const seconds = { unfinishedWorkSeconds: metric, longestRunningProcessorSeconds: metric };
    const metrics = { depth, adds, latency, workDuration, retries, ...seconds };
    const clock = new FakeClock();
    const queue = new WorkQueue({ name: "pods", metricsProvider: { queueMetrics: () => metrics }, clock });
    queue.add("a");
    assert.equal(await take(queue), "a");
    await clock.advance(1_000);
    queue.done("a");
    await queue.shutDownWithDrain();
    assert.equal(clock.pendingTimers, 0);
  });

  it("leave no timer after a shutdown, and are not made for a queue without a name", async () => {
    const { log, metricsProvider } = record();
    const clock = new FakeClock();
    const queue = new WorkQueue({ name: "pods", metricsProvider, clock });
    assert.equal(clock.pendingTimers, 1);
    await queue.shutDownWithDrain();
    assert.equal(clock.pendingTimers, 0);

    const unnamed = new WorkQueue({ metricsProvider, clock });
    unnamed.add("a");
    assert.deepEqual([log, clock.pendingTimers], [[], 0]);
  });
});

describe("WorkQueueOptions.name", () => {
  it("makes no metrics without a provider, and a provider none without a name", async () => {
    const names: string[] = [];
    const metricsProvider = { queueMetrics: (name: string) => (names.push(name), undefined as never) };
    for (const options of [{ name: "q" }, { metricsProvider }, { name: "", metricsProvider }]) {
      const queue = new WorkQueue<string>(options);
      queue.add("a");
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal(await take(queue), "a");
      queue.done("a");
      queue.shutDown();
    }
    assert.deepEqual(names, []);
  });
});
