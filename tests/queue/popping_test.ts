import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Clock, type Logger, metaNamespaceKey } from "@listwatch/cache";
import {
  DeltaFIFO,
  FIFO,
  FIFOClosedError,
  NotDeltasError,
  RealFIFO,
  ZeroLengthDeltasError,
} from "@listwatch/cache/queue";
import { ErrRequeue } from "@listwatch/cache/compat";
import type { LogFields } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";

interface Thing {
  metadata: { name: string };
}

function thing(name: string): Thing {
  return { metadata: { name } };
}

interface QueueOptions {
  name?: string;
  clock?: Clock;
  logger?: Logger;
}

/** What the three queues have in common. */
interface AnyQueue {
  add(object: Thing): void;
  replace(objects: Thing[], resourceVersion: string): void;
  pop(
    process: (item: unknown, isInInitialList: boolean) => void | Promise<void>,
    options?: { signal?: AbortSignal },
  ): Promise<unknown>;
  tryPop(process: (item: unknown, isInInitialList: boolean) => void): boolean;
  wait(signal?: AbortSignal): Promise<void>;
  hasSynced(): boolean;
  synced(signal?: AbortSignal): Promise<void>;
  close(): void;
  readonly isClosed: boolean;
}

const kinds: Record<string, (options?: QueueOptions) => AnyQueue> = {
  FIFO: (options) => new FIFO<Thing>(metaNamespaceKey, options),
  DeltaFIFO: (options) => new DeltaFIFO<Thing>(options),
  "atomic RealFIFO": (options) => new RealFIFO<Thing>({ ...options, atomicEvents: true }),
  "RealFIFO with known objects": (options) =>
    new RealFIFO<Thing>({ ...options, knownObjects: { listKeys: () => [], getByKey: () => undefined } }),
};

/** The name of the object that a queue handed out, whatever the queue. */
function nameOf(item: unknown): string {
  const object = Array.isArray(item) ? item[0].object : item;
  return (object as Thing).metadata.name;
}

/** Lets everything that is ready run. */
async function turn(): Promise<void> {
  await new FakeClock().advance(0);
}

function recordingLogger(): {
  logger: Logger;
  lines: { level: string; message: string; fields: LogFields }[];
} {
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const log = (level: string) => (message: string, fields: LogFields = {}) => {
    lines.push({ level, message, fields });
  };
  return {
    logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
    lines,
  };
}

for (const [kind, make] of Object.entries(kinds)) {
  describe(`every queue: ${kind}`, () => {
    it("hands out one item per pop, in order, and returns it", async () => {
      const queue = make();
      queue.add(thing("a"));
      queue.add(thing("b"));
      const seen: unknown[] = [];
      const first = await queue.pop((item) => void seen.push(item));
      const second = await queue.pop((item) => void seen.push(item));
      assert.deepEqual(seen.map(nameOf), ["a", "b"]);
      assert.equal(seen[0], first);
      assert.equal(seen[1], second);
    });

    it("waits for an item", async () => {
      const queue = make();
      const popped = queue.pop(() => {});
      await turn();
      queue.add(thing("a"));
      assert.equal(nameOf(await popped), "a");
    });

    it("wakes a waiting pop by a list", async () => {
      const queue = make();
      const popped = queue.pop(() => {});
      await turn();
      queue.replace([thing("a")], "1");
      assert.match(JSON.stringify(await popped), /"name":"a"/);
    });

    it("serves several waiting pops, each with its own item", async () => {
      const queue = make();
      const popped = Promise.all([queue.pop(() => {}), queue.pop(() => {}), queue.pop(() => {})]);
      await turn();
      for (const name of ["a", "b", "c"]) queue.add(thing(name));
      assert.deepEqual((await popped).map(nameOf).sort(), ["a", "b", "c"]);
    });

    it("continues to wait if another pop took the item", async () => {
      const queue = make();
      const served: string[] = [];
      const popped = [0, 1].map((i) => queue.pop((item) => void served.push(`${i}: ${nameOf(item)}`)));
      await turn();
      queue.add(thing("a"));
      await turn();
      assert.equal(served.length, 1);
      queue.add(thing("b"));
      await Promise.all(popped);
      assert.deepEqual(served, ["0: a", "1: b"]);
    });

    it("waits until an asynchronous process callback has finished", async () => {
      const queue = make();
      queue.add(thing("a"));
      const clock = new FakeClock();
      let isDone = false;
      const popped = queue.pop(() => new Promise<void>((resolve) => void clock.setTimeout(resolve, 10)))
        .then(() => void (isDone = true));
      await clock.advance(9);
      assert.equal(isDone, false);
      await clock.advance(1);
      await popped;
    });

    it("ends a wait with the signal's reason, and takes nothing", async () => {
      const queue = make();
      const controller = new AbortController();
      const popped = queue.pop(() => assert.fail("nothing to process"), { signal: controller.signal });
      const reason = new Error("enough");
      controller.abort(reason);
      await assert.rejects(popped, reason);
      await assert.rejects(queue.pop(() => {}, { signal: controller.signal }), reason);
      queue.add(thing("a"));
      assert.equal(nameOf(await queue.pop(() => {})), "a");
    });

    it("ends one wait while the others continue", async () => {
      const queue = make();
      const controller = new AbortController();
      const ended = queue.pop(() => {}, { signal: controller.signal });
      const served = queue.pop(() => {});
      controller.abort();
      await assert.rejects(ended, { name: "AbortError" });
      queue.add(thing("a"));
      assert.equal(nameOf(await served), "a");
    });

    it("wakes all waiting pops when it is closed", async () => {
      const queue = make();
      const controller = new AbortController();
      const popped = [
        queue.pop(() => {}),
        queue.pop(() => {}),
        queue.pop(() => {}, { signal: controller.signal }),
      ];
      const waited = queue.wait();
      assert.equal(queue.isClosed, false);
      queue.close();
      assert.equal(queue.isClosed, true);
      for (const result of await Promise.allSettled(popped)) {
        assert.equal(result.status, "rejected");
        assert.ok(result.reason instanceof FIFOClosedError);
        assert.equal(result.reason.code, "FIFOClosed");
      }
      await waited;
    });

    it("hands out what it holds after it was closed, and only then refuses", async () => {
      const queue = make();
      queue.add(thing("a"));
      queue.close();
      queue.close();
      assert.equal(nameOf(await queue.pop(() => {})), "a");
      await assert.rejects(queue.pop(() => {}), FIFOClosedError);
      assert.equal(queue.tryPop(() => {}), false);
    });

    it("tries to pop within the turn", () => {
      const queue = make();
      assert.equal(queue.tryPop(() => assert.fail("nothing to process")), false);
      queue.add(thing("a"));
      const seen: string[] = [];
      assert.equal(queue.tryPop((item) => void seen.push(nameOf(item))), true);
      assert.deepEqual(seen, ["a"]);
      assert.equal(queue.tryPop(() => {}), false);
    });

    it("loses the item where the process callback throws, and rejects with what it threw", async () => {
      const queue = make();
      queue.add(thing("a"));
      queue.add(thing("b"));
      const thrown = new Error("no use");
      await assert.rejects(queue.pop(() => Promise.reject(thrown)), thrown);
      assert.throws(() =>
        queue.tryPop(() => {
          throw thrown;
        }), thrown);
      assert.equal(queue.tryPop(() => {}), false);
    });

    it("rejects with anything that can be thrown, undefined too", async () => {
      const queue = make();
      queue.add(thing("a"));
      let rejected = false;
      await queue.pop(() => Promise.reject(undefined)).catch((error) => {
        assert.equal(error, undefined);
        rejected = true;
      });
      assert.equal(rejected, true);
    });

    it("can be written to by the process callback", async () => {
      const queue = make();
      queue.add(thing("a"));
      await queue.pop(() => queue.add(thing("b")));
      assert.equal(nameOf(await queue.pop(() => {})), "b");
    });

    it("waits without popping: for an item, for the close, or until the signal", async () => {
      const queue = make();
      const waited = queue.wait();
      queue.add(thing("a"));
      await waited;
      await queue.wait();
      assert.equal(queue.tryPop(() => {}), true);
      const reason = new Error("enough");
      await assert.rejects(queue.wait(AbortSignal.abort(reason)), reason);
      const last = queue.wait();
      queue.close();
      await last;
      await queue.wait();
    });

    it("ends a wait for the sync with the signal's reason", async () => {
      const reason = new Error("enough");
      await assert.rejects(make().synced(AbortSignal.abort(reason)), reason);
      const synced = make();
      synced.add(thing("a"));
      await synced.synced(AbortSignal.abort(reason)); // there is nothing to wait for
    });

    it("has not synced before anything came", () => {
      assert.equal(make().hasSynced(), false);
    });

    it("has synced as soon as something else than a list came first", async () => {
      const queue = make();
      queue.add(thing("a"));
      assert.equal(queue.hasSynced(), true);
      await queue.synced();
      let inInitialList: boolean | undefined;
      await queue.pop((_item, isInInitialList) => void (inInitialList = isInInitialList));
      assert.equal(inInitialList, false);
    });

    it("resolves synced when the last item of the first list is popped, and stays synced", async () => {
      const queue = make();
      queue.replace([thing("a"), thing("b")], "1");
      let resolved = false;
      const synced = queue.synced().then(() => void (resolved = true));
      while (!queue.hasSynced()) {
        await turn();
        assert.equal(resolved, false);
        assert.equal(queue.tryPop((_item, isInInitialList) => assert.equal(isInInitialList, true)), true);
      }
      await synced;
      queue.replace([thing("a"), thing("b"), thing("c")], "2");
      assert.equal(queue.hasSynced(), true);
      assert.equal(queue.tryPop((_item, isInInitialList) => assert.equal(isInInitialList, false)), true);
    });

    it("rejects synced when it is closed before anything came", async () => {
      const queue = make();
      const before = queue.synced();
      queue.close();
      await assert.rejects(before, FIFOClosedError);
      await assert.rejects(queue.synced(), FIFOClosedError);
      assert.equal(queue.hasSynced(), false);
    });

    it("resolves synced when the first list is popped after the close", async () => {
      const queue = make();
      queue.replace([thing("a"), thing("b")], "1");
      const synced = queue.synced();
      queue.close();
      while (queue.tryPop(() => {}));
      await synced;
      await queue.synced();
    });

    it("flags what was queued behind the first list but popped before the sync", () => {
      const queue = make();
      queue.replace([thing("a")], "1");
      queue.add(thing("late"));
      const flags: boolean[] = [];
      while (queue.tryPop((_item, isInInitialList) => void flags.push(isInInitialList)));
      assert.deepEqual(flags, [true, false]);
    });

    it("flags the last item of the first list, too, where its processing is waited for", async () => {
      const queue = make();
      queue.replace([thing("a")], "1");
      const flags: boolean[] = [];
      await queue.pop((_item, isInInitialList) => void flags.push(isInInitialList));
      assert.deepEqual(flags, [true]);
    });

    it("warns of a consumer that takes more than 100 ms while more than 10 others wait", async () => {
      const clock = new FakeClock();
      const { logger, lines } = recordingLogger();
      const queue = make({ name: "pods", clock, logger });
      for (let i = 0; i < 13; i++) queue.add(thing(`pod-${i}`));
      await queue.pop(() => clock.jump(100));
      assert.equal(lines.length, 0);
      await queue.pop(() => clock.jump(101));
      assert.equal(lines.length, 1);
      assert.equal(lines[0].level, "warn");
      assert.match(lines[0].message, /"pods".*101 ms/);
      assert.deepEqual(
        [lines[0].fields.queue, lines[0].fields.key, lines[0].fields.depth, lines[0].fields.tookMs],
        ["pods", "pod-1", 11, 101],
      );
      await queue.pop(() => clock.jump(10_000));
      assert.equal(lines.length, 1, "10 others are no backlog");
    });

    it("warns of a consumer that is slow within the turn, and fails", () => {
      let nowMs = 0;
      const clock: Clock = { now: () => nowMs, setTimeout: () => {}, clearTimeout: () => {} };
      const { logger, lines } = recordingLogger();
      const queue = make({ clock, logger });
      for (let i = 0; i < 12; i++) queue.add(thing(`pod-${i}`));
      assert.throws(() =>
        queue.tryPop(() => {
          nowMs += 150;
          throw new Error("slow and wrong");
        }), /slow and wrong/);
      assert.equal(lines.length, 1);
      assert.match(lines[0].message, /^slow event handlers block the queue: processing took 150 ms$/);
    });
  });
}

describe("FIFO whose key function throws of an item that was slow", () => {
  it("warns of it without its key", async () => {
    const clock = new FakeClock();
    const { logger, lines } = recordingLogger();
    let isBroken = false;
    const keyFunc = (object: unknown) => {
      if (isBroken) throw new Error("no key any more");
      return metaNamespaceKey(object);
    };
    const queue = new FIFO<Thing>(keyFunc, { name: "pods", clock, logger });
    for (let i = 0; i < 12; i++) queue.add(thing(`pod-${i}`));
    await queue.pop(() => {
      clock.jump(150);
      isBroken = true;
    });
    assert.deepEqual(lines.map(({ fields }) => fields.key), ["(no key)"]);
  });
});

function requeueNow(queue: AnyQueue): void {
  queue.tryPop(() => {
    throw new ErrRequeue();
  });
}

async function requeueLater(queue: AnyQueue): Promise<void> {
  await queue.pop(() => Promise.reject(new ErrRequeue()));
}

for (const kind of ["FIFO", "DeltaFIFO"]) {
  describe(`a queue that requeues: ${kind}`, () => {
    it("puts the item back at the end where the process callback says so, and succeeds", async () => {
      const queue = kinds[kind]();
      queue.add(thing("a"));
      queue.add(thing("b"));
      const popped = await queue.pop(() => {
        throw new ErrRequeue();
      });
      assert.equal(nameOf(popped), "a");
      assert.equal(nameOf(await queue.pop(() => {})), "b");
      assert.equal(nameOf(await queue.pop(() => {})), "a");
    });

    it("puts the item back and reports the cause, if there is one", async () => {
      const queue = kinds[kind]();
      queue.add(thing("a"));
      const cause = new Error("later, please");
      await assert.rejects(
        queue.pop(() => {
          throw new ErrRequeue({ cause });
        }),
        cause,
      );
      assert.equal(nameOf(await queue.pop(() => {})), "a");
    });

    it("wakes a waiting pop with the item that was put back", async () => {
      const queue = kinds[kind]();
      queue.add(thing("a"));
      const waiting = queue.pop(() => Promise.reject(new ErrRequeue())).then(() => "requeued");
      const served = queue.pop(() => {});
      assert.equal(await waiting, "requeued");
      assert.equal(nameOf(await served), "a");
    });

    it("counts an item that was put back once", async () => {
      for (const requeue of [requeueNow, requeueLater]) {
        const queue = kinds[kind]();
        queue.replace([thing("a"), thing("b"), thing("c")], "1");
        await requeue(queue);
        assert.equal(queue.tryPop(() => {}), true);
        assert.equal(queue.hasSynced(), false);
        assert.equal(queue.tryPop(() => {}), true);
        assert.equal(queue.hasSynced(), true);
      }
    });

    it("lets what came meanwhile win over the item that is put back", async () => {
      const queue = kinds[kind]();
      const older = thing("a");
      const newer = thing("a");
      queue.add(older);
      await queue.pop(() => {
        queue.add(newer);
        throw new ErrRequeue();
      });
      const popped = await queue.pop(() => {});
      assert.equal(Array.isArray(popped) ? popped[0].object : popped, newer);
      assert.equal(queue.tryPop(() => {}), false);
    });
  });
}

describe("ErrRequeue and the errors of queues", () => {
  it("have codes and client-go's texts", () => {
    const errors = [
      new FIFOClosedError(),
      new ErrRequeue(),
      new ErrRequeue({ cause: new Error("later, please") }),
      new ZeroLengthDeltasError(),
      new NotDeltasError("a"),
    ];
    assert.deepEqual(errors.map(({ code, message }) => `${code}: ${message}`), [
      "FIFOClosed: DeltaFIFO: manipulating with closed queue",
      "Requeue: the popped item should be requeued",
      "Requeue: the popped item should be requeued: later, please",
      "ZeroLengthDeltas: 0 length Deltas object; can't get key",
      "NotDeltas: object must be of type deltas, but got a value of type string",
    ]);
  });
});
