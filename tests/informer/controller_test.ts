import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  InformerStateError,
  type KubernetesObject,
  SharedIndexInformer,
  waitForCacheSync,
} from "@listwatch/cache";
import {
  Controller,
  type ControllerConfig,
  type InformerOptions,
  newInformer,
} from "@listwatch/cache/informer";
import { DeltaFIFO, RealFIFO } from "@listwatch/cache/queue";
import { FakeClock, FakeControllerSource } from "@listwatch/cache/testing";
import { nextTurn } from "../../src/util/clock.ts";
import { inBackground } from "../in_background.ts";
import { LogRecorder } from "../log_recorder.ts";
import { named, Recorder, text } from "./rig.ts";

function newController(config: Partial<ControllerConfig<KubernetesObject>> = {}) {
  const source = new FakeControllerSource();
  const clock = new FakeClock();
  const log = new LogRecorder();
  const processed: string[] = [];
  const controller = new Controller<KubernetesObject>({
    listerWatcher: source,
    queue: new RealFIFO<KubernetesObject>({ atomicEvents: true }),
    process: (deltas) => {
      for (const { type, object } of deltas) {
        processed.push(type === "ReplacedAll" ? type : `${type} ${text(object as KubernetesObject)}`);
      }
    },
    reflector: { clock, logger: log, useWatchList: false, name: "pods" },
    ...config,
  });
  return { source, clock, log, processed, controller };
}

describe("Controller", () => {
  it("processes what the reflector queues, in order", async () => {
    const { source, clock, processed, controller } = newController();
    source.add(named("a"));
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    assert.equal(controller.hasSynced(), false);
    const synced = controller.synced();
    await clock.advance(0);
    await synced;
    await controller.synced(AbortSignal.abort());
    source.modify(named("a"));
    source.delete(named("a"));
    await clock.advance(0);
    assert.deepEqual(processed, ["ReplacedAll", "Updated a@2", "Deleted a@3"]);
    assert.equal(controller.hasSynced(), true);
    assert.equal(controller.lastSyncResourceVersion(), "3");
    assert.equal(controller.name, "pods");
    assert.equal(controller.status().phase, "watching");
    abort.abort();
    await running;
    assert.equal(controller.status().phase, "stopped");
    assert.equal(clock.pendingTimers, 0);
    assert.equal(source.openWatches, 0);
  });

  it("has the failure and the status of its reflector", async () => {
    const { source, clock, controller } = newController();
    const phases: string[] = [];
    controller.onStatus(({ phase }) => phases.push(phase));
    source.listError = new Error("it broke");
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(0);
    assert.deepEqual([controller.failure()?.failedTries, controller.failure()?.error.message], [
      1,
      "it broke",
    ]);
    assert.deepEqual(phases, ["listing", "backingOff"]);
    abort.abort();
    await running;
  });

  it("synced rejects when the controller stops before it has synced, and after that", async () => {
    const { source, clock, controller } = newController();
    source.listError = new Error("it broke");
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    const ends = [controller.synced(), waitForCacheSync([controller])];
    await clock.advance(0);
    abort.abort();
    await running;
    ends.push(controller.synced());
    const outcomes: unknown[] = [];
    for (const end of ends) end.then((value) => outcomes.push(value), (error) => outcomes.push(error));
    await nextTurn();
    assert.equal(outcomes.length, 3);
    assert.equal(outcomes.filter((outcome) => outcome instanceof InformerStateError).length, 2);
    assert.ok(outcomes.includes(false)); // waitForCacheSync
  });

  it("synced rejects when the controller stops in the middle of its first list", async () => {
    const abort = new AbortController();
    const { source, clock, controller } = newController({
      queue: new DeltaFIFO<KubernetesObject>(),
      process: () => abort.abort(),
    });
    for (const name of ["a", "b"]) source.add(named(name));
    const outcomes: unknown[] = [];
    controller.synced().then((value) => outcomes.push(value), (error) => outcomes.push(error));
    const running = controller.run(abort.signal);
    await clock.advance(0);
    await running;
    await nextTurn();
    assert.ok(outcomes[0] instanceof InformerStateError);
  });

  it("closes its queue when it ends", async () => {
    const queue = new RealFIFO<KubernetesObject>({ atomicEvents: true });
    const { controller } = newController({ queue });
    await controller.run(AbortSignal.abort());
    assert.equal(queue.isClosed, true);
  });

  it("cannot be run twice", async () => {
    const { controller } = newController();
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await assert.rejects(controller.run(abort.signal), InformerStateError);
    abort.abort();
    await running;
    await assert.rejects(controller.run(abort.signal), InformerStateError);
  });

  it("logs what processing throws, and continues with the next", async () => {
    const seen: string[] = [];
    const { source, clock, log, controller } = newController({
      process: ([{ type }]) => {
        seen.push(type);
        if (type === "ReplacedAll") throw new Error("process broke");
      },
    });
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(0);
    source.add(named("a"));
    await clock.advance(0);
    assert.deepEqual(seen, ["ReplacedAll", "Added"]);
    assert.deepEqual(log.of("error"), ["error: pods: could not process a change: process broke"]);
    abort.abort();
    await running;
  });

  it("puts back an item whose processing threw, with retryOnError, unless something newer came", async () => {
    const attempts: string[] = [];
    let failures = 2;
    const { source, clock, log, controller } = newController({
      queue: new DeltaFIFO<KubernetesObject>({ emitDeltaTypeReplaced: true }),
      retryOnError: true,
      process: (deltas) => {
        attempts.push(
          deltas.map(({ type, object }) => `${type} ${text(object as KubernetesObject)}`).join(", "),
        );
        if (failures-- > 0) throw new Error("process broke");
      },
    });
    source.add(named("a"));
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(0);
    assert.deepEqual(attempts, ["Replaced a@1", "Replaced a@1", "Replaced a@1"]);
    assert.equal(log.of("error").length, 2);
    failures = 1;
    source.modify(named("a"));
    await clock.advance(0);
    assert.deepEqual(attempts.slice(3), ["Updated a@2", "Updated a@2"]);
    abort.abort();
    await running;
  });

  it("puts nothing back without retryOnError, as client-go", async () => {
    const attempts: string[] = [];
    const { source, clock, controller } = newController({
      queue: new DeltaFIFO<KubernetesObject>({ emitDeltaTypeReplaced: true }),
      process: ([{ type }]) => {
        if (attempts.push(type) < 3) throw new Error("process broke");
      },
    });
    source.add(named("a"));
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(0);
    assert.deepEqual(attempts, ["Replaced"]);
    abort.abort();
    await running;
  });

  it("gives others a turn when there is much to process", async () => {
    const { source, clock, controller, processed } = newController({
      queue: new DeltaFIFO<KubernetesObject>({ emitDeltaTypeReplaced: true }),
    });
    for (let i = 0; i < 2_500; i++) source.add(named(`pod-${i}`));
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    const counts = new Set<number>();
    for (let i = 0; i < 20; i++) {
      await nextTurn();
      counts.add(processed.length);
    }
    await clock.advance(0);
    assert.equal(processed.length, 2_500);
    assert.ok([...counts].some((count) => count > 0 && count < 2_500), "all were processed in one turn");
    abort.abort();
    await running;
  });
});

describe("newInformer", () => {
  function newPlain(options: Partial<InformerOptions<KubernetesObject>> = {}) {
    const source = new FakeControllerSource();
    const clock = new FakeClock();
    const log = new LogRecorder();
    const recorder = new Recorder();
    const [store, controller] = newInformer<KubernetesObject>({
      listerWatcher: source,
      handler: recorder,
      reflector: { clock, logger: log, useWatchList: false, backoff: { nextDelayMs: () => 1 } },
      ...options,
    });
    return {
      source,
      clock,
      log,
      recorder,
      store,
      controller,
      ...inBackground(clock, (signal) => controller.run(signal)),
    };
  }

  it("keeps a store, and calls its handler in the turn of each write", async () => {
    await using plain = newPlain();
    plain.source.add(named("a"));
    await plain.start();
    for (const [change, name] of [["add", "b"], ["modify", "a"], ["delete", "b"]] as const) {
      plain.source[change](named(name));
      await plain.clock.advance(0);
    }
    assert.deepEqual(plain.recorder.calls, ["add a@1 initial", "add b@2", "update a@1>3", "delete b@4"]);
    assert.deepEqual(plain.store.list().map(text), ["a@3"]);
  });

  it("notifies alike over a queue that has each list as one", async () => {
    await using plain = newPlain({ queue: () => new RealFIFO<KubernetesObject>({ atomicEvents: true }) });
    for (const name of ["a", "b"]) plain.source.add(named(name));
    await plain.start();
    plain.source.deleteDropWatch(named("a"));
    plain.source.resetWatch();
    await plain.clock.advance(5);
    assert.deepEqual(plain.recorder.calls, [
      "add a@1 initial",
      "add b@2 initial",
      "tombstone a@1",
      "update b@2>2",
    ]);
  });

  it("has the name of its options, or the description of its source", () => {
    const source = new FakeControllerSource();
    const list = source.list.bind(source);
    const watch = source.watch.bind(source);
    const nameOf = (description?: string, name?: string) =>
      newPlain({
        listerWatcher: { list, watch, ...(description && { description }) },
        ...(name && { reflector: { name } }),
      }).controller.name;
    assert.deepEqual([nameOf("pods", "mine"), nameOf("pods"), nameOf()], ["mine", "pods", "objects"]);
  });

  it("reports what it missed: changes first, then deletes", async () => {
    await using plain = newPlain();
    for (const name of ["a", "b"]) plain.source.add(named(name));
    await plain.start();
    plain.recorder.take();
    plain.source.modifyDropWatch(named("b"));
    plain.source.deleteDropWatch(named("a"));
    plain.source.addDropWatch(named("c"));
    plain.source.resetWatch();
    await plain.clock.advance(5);
    assert.deepEqual(plain.recorder.calls, ["update b@2>3", "add c@5", "tombstone a@1"]);
  });

  it("transforms objects before the store and the handler see them", async () => {
    const labels: unknown[] = [];
    const look = (object: KubernetesObject) => labels.push(object.metadata?.labels);
    await using plain = newPlain({
      transform: (object) => ({ metadata: { ...object.metadata, labels: { seen: "yes" } } }),
      handler: {
        onAdd: (object) => void look(object),
        onUpdate: (_oldObject, newObject) => void look(newObject),
        onDelete: (deleted) => void look(deleted.object!),
      },
    });
    plain.source.add(named("a"));
    await plain.start();
    plain.source.modify(named("a"));
    await plain.clock.advance(0);
    assert.deepEqual(plain.store.list().map((object) => object.metadata?.labels), [{ seen: "yes" }]);
    plain.source.delete(named("a"));
    await plain.clock.advance(0);
    assert.deepEqual(labels, [{ seen: "yes" }, { seen: "yes" }, { seen: "yes" }]);
    assert.deepEqual(plain.store.list(), []);
  });

  it("has the indices of its options, and sends everything again at its resync period", async () => {
    const source = new FakeControllerSource();
    const clock = new FakeClock();
    const recorder = new Recorder();
    source.add(named("a", { app: "web" }));
    const [store, controller] = newInformer<KubernetesObject, "byApp">({
      listerWatcher: source,
      handler: recorder,
      indexers: { byApp: (object) => [object.metadata?.labels?.app ?? ""] },
      resyncPeriodMs: 1_000,
      reflector: { clock, useWatchList: false },
    });
    const abort = new AbortController();
    const running = controller.run(abort.signal);
    await clock.advance(2_000);
    assert.deepEqual(store.indexKeys("byApp", "web"), ["a"]);
    assert.deepEqual(recorder.calls, ["add a@1 initial", "update a@1>1", "update a@1>1"]);
    abort.abort();
    await running;
    assert.equal(clock.pendingTimers, 0);
  });

  it("logs what its handler throws or rejects with, and continues", async () => {
    await using plain = newPlain({
      handler: {
        onAdd: () => {
          throw new Error("it broke");
        },
        onUpdate: () => Promise.reject(new Error("it broke later")),
      },
    });
    plain.source.add(named("a"));
    await plain.start();
    plain.source.modify(named("a"));
    await plain.clock.advance(0);
    assert.deepEqual(plain.log.of("error").map((line) => line.replace(/^.*threw: /, "")), [
      "it broke",
      "it broke later",
    ]);
    assert.deepEqual(plain.store.list().map(text), ["a@2"]);
  });
});

describe("newInformer with a transform that removes the metadata", () => {
  it("leave the store at the resourceVersion of the last list", async () => {
    const source = new FakeControllerSource();
    source.add(named("a"));
    const clock = new FakeClock();
    const informer = new SharedIndexInformer<unknown>(source as never, {
      clock,
      keyFunc: () => "the key",
      transform: () => "bare",
      logger: new LogRecorder(),
      reflector: { useWatchList: false, backoff: { nextDelayMs: () => 1 } },
    });
    await using _running = informer.start();
    await clock.advance(0);
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "1");
    source.modify(named("a"));
    await clock.advance(0);
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "1");
    assert.equal(informer.lastSyncResourceVersion(), "2");
    source.modifyDropWatch(named("a"));
    source.resetWatch();
    await clock.advance(5);
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "3");
    assert.deepEqual(informer.indexer.list(), ["bare"]);
  });
});
