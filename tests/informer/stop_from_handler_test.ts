import assert from "node:assert/strict";
import { type HandlerRegistration, type Running, SharedInformerFactory } from "@listwatch/cache";
import { FakeClock, FakeControllerSource } from "@listwatch/cache/testing";
import { sleep } from "../../src/util/abort.ts";
import { LogRecorder } from "../log_recorder.ts";
import { named, newRig } from "./rig.ts";
import { describe, it } from "./storages.ts";

describe("Running.stop awaited by a handler of the informer", () => {
  it("gets it, as its own call is not waited for", async () => {
    const rig = newRig();
    const ends: string[] = [];
    rig.informer.addEventHandler({
      onAdd: async () => {
        await running.stop();
        ends.push("stopped");
      },
    });
    rig.source.add(named("a"));
    const running: Running = rig.informer.start();
    await rig.settle();
    assert.deepEqual(ends, ["stopped"]);
    await running.done;
    assert.ok(rig.informer.isStopped());
    assert.equal(rig.clock.pendingTimers, 0);
    assert.deepEqual(rig.log.of("warn"), []);
  });

  it("gets it too where it aborts the signal and awaits the run", async () => {
    const rig = newRig();
    const stop = new AbortController();
    let isOver = false;
    rig.informer.addEventHandler({
      onAdd: async () => {
        stop.abort();
        await done;
        isOver = true;
      },
    });
    rig.source.add(named("a"));
    const done: Promise<void> = rig.informer.run(stop.signal);
    await rig.settle();
    assert.equal(isOver, true);
  });

  it("is waited for as long as any other call where it asks after something else, and is then named", async () => {
    const rig = newRig();
    let isOver = false;
    rig.informer.addEventHandler({
      onAdd: async () => {
        await Promise.resolve();
        await running.stop();
        isOver = true;
      },
    }, { name: "impatient" });
    rig.source.add(named("a"));
    const running: Running = rig.informer.start();
    await rig.settle();
    await rig.clock.advance(9_999);
    assert.equal(isOver, false);
    await rig.clock.advance(1);
    assert.equal(isOver, true);
    assert.match(rig.log.of("warn")[0], /impatient: a call has not ended 10000 ms after the stop/);
    assert.equal(rig.clock.pendingTimers, 0);
  });

  it("is not waited for by others that stop: their own calls are", async () => {
    const rig = newRig();
    const done: string[] = [];
    rig.informer.addEventHandler({
      onAdd: async () => {
        await running.stop();
        done.push("the stop");
      },
    });
    rig.informer.addEventHandler({
      onAdd: async () => {
        await sleep(5_000, { clock: rig.clock });
        done.push("the other call");
      },
    });
    rig.source.add(named("a"));
    const running: Running = rig.informer.start();
    await rig.clock.advance(5_000);
    assert.deepEqual(done, ["the other call", "the stop"]);
  });

  it("may take itself away, and await that", async () => {
    await using rig = newRig();
    const received: string[] = [];
    const registration: HandlerRegistration = rig.informer.addEventHandler({
      onAdd: async (object) => {
        received.push(object.metadata!.name!);
        await rig.informer.removeEventHandler(registration);
        received.push("removed");
      },
    });
    rig.source.add(named("a"));
    rig.source.add(named("b"));
    await rig.start();
    assert.deepEqual(received, ["a", "removed"]);
    assert.equal(registration.isRemoved, true);
  });

  it("may shut its factory down, and await that", async () => {
    const clock = new FakeClock();
    const source = new FakeControllerSource();
    const factory = new SharedInformerFactory({ resource: () => source }, {
      informer: { clock, logger: new LogRecorder(), reflector: { useWatchList: false } },
    });
    let isOver = false;
    factory.forResource("v1/pods").informer.addEventHandler({
      onAdd: async () => {
        await factory.shutdown();
        isOver = true;
      },
    });
    factory.forResource("v1/nodes");
    source.add(named("a"));
    factory.start();
    await clock.advance(0);
    assert.equal(isOver, true);
  });
});

describe("Running.stop", () => {
  it("waits for a call for as long as its options say", async () => {
    for (const handlerStopTimeoutMs of [1_000, Infinity]) {
      const rig = newRig({ handlerStopTimeoutMs });
      let end = () => {};
      rig.informer.addEventHandler({ onAdd: () => new Promise<void>((resolve) => (end = resolve)) });
      rig.source.add(named("a"));
      const running = rig.informer.start();
      await rig.settle();
      let hasStopped = false;
      const stopped = running.stop().then(() => (hasStopped = true));
      await rig.clock.advance(100_000);
      assert.equal(hasStopped, handlerStopTimeoutMs === 1_000);
      end();
      await stopped;
    }
    assert.throws(() => newRig({ handlerStopTimeoutMs: NaN }), RangeError);
  });
});

describe("Running.stop", () => {
  it("ends the call of a handler that waits for a version, which will not come any more", async () => {
    const rig = newRig();
    const ends: unknown[] = [];
    rig.informer.addEventHandler({
      onAdd: () => rig.informer.waitForVersion("99").catch(({ code }) => void ends.push(code)),
    });
    rig.source.add(named("a"));
    const running: Running = rig.informer.start();
    await rig.settle();
    void running.stop();
    await rig.settle();
    assert.deepEqual(ends, ["NotFresh"]);
    await running.done;
    assert.deepEqual(rig.log.of("warn"), []);
  });
});
