import assert from "node:assert/strict";
import {
  InformerStateError,
  type KubernetesObject,
  metaNamespaceIndex,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  silentLogger,
  StatusError,
} from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { StoreEvent } from "@listwatch/cache/informer";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { FakeClock, FakeControllerSource, pod } from "@listwatch/cache/testing";
import { CountingSignal } from "../counting_signal.ts";
import { named, newRig, Recorder, text } from "./rig.ts";
import { describe, it, storage } from "./storages.ts";

describe("SharedIndexInformer.start", () => {
  it("leaves no listener on a signal that outlives the informer", async () => {
    const { informer, clock } = newRig();
    const signal = new CountingSignal();
    const running = informer.start(signal.signal);
    await clock.advance(0);
    await running.stop();
    assert.equal(signal.listeners, 0);
  });
});

describe("SharedIndexInformer.restored", () => {
  it("resolves with the first list where there is no snapshot", async () => {
    await using rig = newRig();
    let isRestored = false;
    void rig.informer.restored().then(() => isRestored = true);
    await rig.start();
    assert.equal(isRestored, true);
  });
});

describe("SharedIndexInformer", () => {
  it("notifies of the objects at the start, and then of every change in order", async () => {
    await using rig = newRig();
    const { source, informer } = rig;
    source.add(named("a"));
    const { recorder } = rig.record();
    await rig.start();
    source.add(named("b"));
    source.modify(named("a"));
    source.delete(named("b"));
    await rig.settle();
    assert.deepEqual(recorder.calls, ["add a@1 initial", "add b@2", "update a@1>3", "delete b@4"]);
    assert.deepEqual(informer.indexer.list().map(text), ["a@3"]);
  });

  it("writes the store before it notifies of a change", async () => {
    await using rig = newRig();
    const seen: string[] = [];
    const look = (what: string, name: string) => {
      const stored = rig.informer.indexer.getByKey(name);
      seen.push(`${what}: ${stored === undefined ? "absent" : text(stored)}`);
    };
    rig.informer.addEventHandler({
      onAdd: (object) => look("add", object.metadata!.name!),
      onUpdate: (_old, object) => look("update", object.metadata!.name!),
      onDelete: (deleted) => look("delete", deleted.key),
    });
    await rig.start();
    for (const change of ["add", "modify", "delete"] as const) {
      rig.source[change](named("a"));
      await rig.settle();
    }
    assert.deepEqual(seen, ["add: a@1", "update: a@2", "delete: absent"]);
  });

  it("notifies of an object that vanished unseen by a tombstone with its last known state", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const { recorder } = rig.record();
    await rig.start();
    rig.source.deleteDropWatch(named("a"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(recorder.calls, ["add a@1 initial", "tombstone a@1"]);
  });

  it("finds after a relist what it missed; what is as it was goes to those that resync only", async () => {
    await using rig = newRig({ resyncPeriodMs: 3_600_000 });
    for (const name of ["pod1", "pod2"]) rig.source.add(named(name));
    const resyncing = rig.record().recorder;
    const plain = rig.record({ resyncPeriodMs: 0 }).recorder;
    await rig.start();
    // The first resync marks who takes part in the next ones.
    await rig.clock.advance(3_600_000);
    resyncing.take();
    plain.take();
    rig.source.addDropWatch(named("pod3"));
    rig.source.modifyDropWatch(named("pod2"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(resyncing.take(), ["update pod1@1>1", "update pod2@2>4", "add pod3@3"]);
    assert.deepEqual(plain.take(), ["update pod2@2>4", "add pod3@3"]);
  });

  it("flags the objects at the start as initial, and nothing after them", async () => {
    await using rig = newRig();
    rig.source.add(named("pod-1"));
    const { recorder } = rig.record();
    await rig.start();
    rig.source.modifyDropWatch(named("pod-1"));
    rig.source.addDropWatch(named("pod-2"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(recorder.calls, ["add pod-1@1 initial", "update pod-1@1>2", "add pod-2@3"]);
  });

  it("knows the resourceVersion of its store", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    assert.equal(rig.informer.lastSyncResourceVersion(), "");
    await rig.start();
    assert.equal(rig.informer.indexer.lastStoreSyncResourceVersion(), "1");
    rig.source.modify(named("a"));
    rig.source.delete(named("a"));
    await rig.settle();
    assert.equal(rig.informer.indexer.lastStoreSyncResourceVersion(), "3");
    assert.equal(rig.informer.lastSyncResourceVersion(), "3");
  });

  it("has synced when the store holds the whole first list, which may be empty", async () => {
    await using rig = newRig();
    assert.equal(rig.informer.hasSynced(), false);
    await rig.start();
    assert.equal(rig.informer.hasSynced(), true);
    await rig.informer.synced();
  });

  it("has not synced while the list fails, and calls the watch error handler", async () => {
    const errors: Error[] = [];
    await using rig = newRig();
    rig.informer.setWatchErrorHandler((error) => errors.push(error));
    rig.source.listError = new StatusError(newStatus(403, "Forbidden", "pods is forbidden"));
    await rig.start();
    assert.equal(rig.informer.hasSynced(), false);
    assert.deepEqual(errors, [rig.source.listError]);
    rig.source.listError = undefined;
    await rig.retry();
    assert.equal(rig.informer.hasSynced(), true);
    assert.equal(errors.length, 1);
  });

  it("reports its phases as they come", async () => {
    const rig = newRig();
    const phases: string[] = [];
    const unlisten = rig.informer.onStatus(({ phase }) => {
      if (phases.at(-1) !== phase) phases.push(phase);
    });
    assert.equal(rig.informer.status().phase, "idle");
    rig.source.listError = new Error("it broke");
    await rig.start();
    assert.equal(rig.informer.status().phase, "backingOff");
    rig.source.listError = undefined;
    await rig.retry();
    await rig.stop();
    assert.deepEqual(phases, ["listing", "backingOff", "listing", "watching", "stopped"]);
    unlisten();
  });

  it("is not stopped by a status listener that throws", async () => {
    await using rig = newRig();
    rig.informer.onStatus(() => {
      throw new Error("listener broke");
    });
    await rig.start();
    assert.equal(rig.informer.hasSynced(), true);
    assert.match(rig.log.of("error")[0], /a status listener threw: listener broke/);
  });

  it("runs the transform once on each object, before anyone sees it", async () => {
    const transformed: string[] = [];
    await using rig = newRig({
      transform: (object) => {
        transformed.push(text(object));
        const { name = "", ...rest } = object.metadata!;
        return { ...object, metadata: { ...rest, name: name.toUpperCase() } };
      },
    });
    rig.source.add(named("pod1"));
    const { recorder } = rig.record();
    await rig.start();
    rig.source.add(named("pod2"));
    rig.source.modify(named("pod1"));
    rig.source.delete(named("pod2"));
    await rig.settle();
    const late = rig.record().recorder;
    await rig.settle();
    assert.deepEqual(recorder.calls, [
      "add POD1@1 initial",
      "add POD2@2",
      "update POD1@1>3",
      "delete POD2@4",
    ]);
    assert.deepEqual(late.calls, ["add POD1@3 initial"]);
    assert.deepEqual(rig.informer.indexer.listKeys(), ["POD1"]);
    assert.deepEqual(transformed, ["pod1@1", "pod2@2", "pod1@3", "pod2@4"]);
  });

  it("runs the transform once on each object of a streamed list too", async () => {
    const clock = new FakeClock();
    const source = new FakeControllerSource({ watchList: true });
    source.add(named("a"));
    const transformed: string[] = [];
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      storage: storage(),
      clock,
      transform: (object) => {
        transformed.push(text(object));
        return object;
      },
    });
    await using _running = informer.start();
    await clock.advance(0);
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(source.requests.map(({ verb }) => verb), ["watch"]);
    assert.deepEqual(transformed, ["a@1"]);
  });

  it("passes the transform that was set last", async () => {
    await using rig = newRig({ transform: () => named("first") });
    rig.informer.setTransform(() => named("last"));
    rig.source.add(named("a"));
    await rig.start();
    assert.deepEqual(rig.informer.indexer.listKeys(), ["last"]);
  });

  it("quarantines an object that its indices cannot take, and continues with the others", async () => {
    await using rig = newRig({
      indexers: {
        byApp: (object: KubernetesObject) => {
          if (object.metadata?.name === "bad") throw new Error("index func broke");
          return [object.metadata?.labels?.app ?? ""];
        },
      },
    });
    rig.source.add(named("bad"));
    rig.source.add(named("a", { app: "web" }));
    const { recorder } = rig.record();
    await rig.start();
    rig.source.modify(named("bad"));
    rig.source.modify(named("a", { app: "db" }));
    await rig.settle();
    assert.deepEqual(recorder.calls, ["add a@2 initial", "update a@2>4"]);
    assert.deepEqual(rig.informer.indexer.indexKeys("byApp", "db"), ["a"]);
    assert.equal(rig.informer.status().quarantined, 2);
    assert.equal(rig.informer.hasSynced(), true);
  });

  it("with freezeObjects freezes objects, so that a handler that changes one fails there", async () => {
    await using rig = newRig({
      freezeObjects: true,
      transform: (object) => ({ ...object, metadata: { ...object.metadata, labels: { app: "web" } } }),
    });
    rig.source.add(named("a"));
    rig.informer.addEventHandler({
      onAdd: (object) => {
        (object.metadata!.labels as Record<string, string>).app = "db";
      },
    });
    await rig.start();
    assert.equal(rig.informer.indexer.getByKey("a")?.metadata?.labels?.app, "web");
    assert.match(rig.log.of("error")[0], /handler 1 threw when notified of an add: .*read.?only/i);
  });

  it("does not freeze anything by default", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    assert.equal(Object.isFrozen(rig.informer.indexer.getByKey("a")), false);
  });
});

describe("SharedIndexInformer.addIndexers", () => {
  const indexers = { byApp: (object: KubernetesObject) => [object.metadata?.labels?.app ?? "none"] };

  it("answer when they are there from the start, are added before it, or after it", async () => {
    await using rig = newRig({ indexers });
    const early = rig.informer.addIndexers({ namespace: metaNamespaceIndex });
    rig.source.add(pod("web-1", { namespace: "shop", labels: { app: "web" } }));
    await rig.start();
    const late = early.addIndexers({ byName: (object) => [object.metadata?.name ?? ""] });
    assert.deepEqual(late.indexer.indexKeys("byApp", "web"), ["shop/web-1"]);
    assert.deepEqual(late.indexer.indexKeys("namespace", "shop"), ["shop/web-1"]);
    assert.deepEqual(late.indexer.indexKeys("byName", "web-1"), ["shop/web-1"]);
    rig.source.add(pod("web-2", { namespace: "shop", labels: { app: "web" } }));
    await rig.settle();
    assert.deepEqual(late.indexer.indexKeys("byName", "web-2"), ["shop/web-2"]);
  });

  it("cannot be added under a name that is taken", async () => {
    await using rig = newRig({ indexers });
    assert.throws(() => rig.informer.addIndexers(indexers), { code: "IndexerConflict" });
    await rig.start();
    assert.throws(() => rig.informer.addIndexers(indexers), { code: "IndexerConflict" });
  });

  it("cannot be added after it stopped", async () => {
    const rig = newRig();
    await rig.start();
    await rig.stop();
    assert.throws(() => rig.informer.addIndexers(indexers), InformerStateError);
  });
});

describe("SharedIndexInformer.run, start and stop", () => {
  it("goes from made to started to stopped", async () => {
    const rig = newRig();
    assert.deepEqual([rig.informer.isStarted(), rig.informer.isStopped()], [false, false]);
    await rig.start();
    assert.deepEqual([rig.informer.isStarted(), rig.informer.isStopped()], [true, false]);
    await rig.stop();
    assert.deepEqual([rig.informer.isStarted(), rig.informer.isStopped()], [true, true]);
    assert.equal(rig.informer.status().phase, "stopped");
  });

  it("leaves no timer and no watch behind", async () => {
    const rig = newRig({ resyncPeriodMs: 60_000 });
    rig.record();
    await rig.start();
    assert.equal(rig.source.openWatches, 1);
    await rig.stop();
    assert.equal(rig.source.openWatches, 0);
    assert.equal(rig.clock.pendingTimers, 0);
  });

  it("cannot be run or started twice, and continues when that is tried", async () => {
    await using rig = newRig();
    await rig.start();
    await assert.rejects(rig.informer.run(new AbortController().signal), InformerStateError);
    assert.throws(() => rig.informer.start(), InformerStateError);
    rig.source.add(named("a"));
    await rig.settle();
    assert.equal(rig.informer.indexer.has("a"), true);
  });

  it("cannot be run again after it stopped", async () => {
    const rig = newRig();
    await rig.start();
    await rig.stop();
    await assert.rejects(rig.informer.run(new AbortController().signal), InformerStateError);
  });

  it("ends at once when the signal is aborted already", async () => {
    const rig = newRig();
    await rig.informer.run(AbortSignal.abort());
    assert.equal(rig.informer.isStopped(), true);
    assert.deepEqual(rig.source.requests, []);
  });

  it("takes no handler after it stopped", async () => {
    const rig = newRig();
    await rig.start();
    await rig.stop();
    assert.throws(() => rig.informer.addEventHandler({}), {
      name: "InformerStateError",
      message: /was not added to shared informer because it has stopped already/,
    });
  });

  it("takes no transform and no watch error handler after it started", async () => {
    await using rig = newRig();
    await rig.start();
    assert.throws(() => rig.informer.setTransform((object) => object), /informer has already started/);
    assert.throws(() => rig.informer.setWatchErrorHandler(() => {}), /informer has already started/);
  });

  it("ends with the scope of an await using", async () => {
    const clock = new FakeClock();
    const source = new FakeControllerSource();
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      storage: storage(),
      clock,
      logger: silentLogger,
    });
    {
      await using _running = informer.start();
      await clock.advance(0);
      assert.equal(source.openWatches, 1);
    }
    assert.equal(informer.isStopped(), true);
    assert.equal(source.openWatches, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends when the signal of start is aborted, and by stop()", async () => {
    for (const how of ["signal", "stop"] as const) {
      const informer = new SharedIndexInformer<KubernetesObject>(new FakeControllerSource(), {
        storage: storage(),
        clock: new FakeClock(),
      });
      const abort = new AbortController();
      const running = informer.start(abort.signal);
      if (how === "signal") abort.abort();
      else running.stop();
      await running.done;
      assert.equal(informer.isStopped(), true);
    }
  });

  it("rejects synced() when it stops before", async () => {
    const rig = newRig();
    rig.source.listError = new Error("it broke");
    const synced = rig.informer.synced();
    await rig.start();
    await rig.stop();
    await assert.rejects(synced, /stopped before it had synced/);
    await assert.rejects(rig.informer.synced(), InformerStateError);
  });

  it("rejects synced() when its signal is aborted", async () => {
    const rig = newRig();
    await assert.rejects(rig.informer.synced(AbortSignal.abort(new Error("too late"))), /too late/);
  });

  it("has synced after its stop, if it had before", async () => {
    const rig = newRig();
    await rig.start();
    await rig.stop();
    await rig.informer.synced();
    await rig.informer.synced(AbortSignal.abort());
  });
});

describe("SharedIndexInformer.observe", () => {
  it("calls observers with everything in the turn of the write, in order", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const seen: string[] = [];
    const line = (event: StoreEvent<KubernetesObject>): string => {
      switch (event.type) {
        case "replaced":
          return `replaced ${event.resourceVersion}: ${event.changes.map(line).join(", ")}`;
        case "bookmark":
          return `bookmark ${event.resourceVersion}`;
        default: {
          const stored = rig.informer.indexer.getByKey(event.key);
          return `${event.type} ${text(event.object)} (store: ${
            stored === undefined ? "absent" : text(stored)
          })`;
        }
      }
    };
    const leave = rig.informer.observe((event) => seen.push(line(event)));
    await rig.start();
    rig.source.add(named("b"));
    rig.source.modify(named("a"));
    rig.source.delete(named("b"));
    await rig.settle();
    assert.deepEqual(seen.splice(0), [
      "replaced 1: added a@1 (store: a@1)",
      "added b@2 (store: b@2)",
      "updated a@3 (store: a@3)",
      "deleted b@4 (store: absent)",
    ]);
    rig.source.addDropWatch(named("c"));
    rig.source.deleteDropWatch(named("a"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(seen.splice(0), ["replaced 6: deleted a@3 (store: absent), added c@5 (store: c@5)"]);
    leave();
    rig.source.add(named("d"));
    await rig.settle();
    assert.deepEqual(seen, []);
  });

  it("does not call observers for unchanged objects, in a relist or a resync", async () => {
    await using rig = newRig({ resyncPeriodMs: 10_000 });
    rig.source.add(named("a"));
    rig.record();
    await rig.start();
    const seen: StoreEvent<KubernetesObject>[] = [];
    rig.informer.observe((event) => seen.push(event));
    await rig.clock.advance(10_000);
    assert.deepEqual(seen, []);
    rig.source.addDropWatch(named("b"));
    rig.source.deleteDropWatch(named("b"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(seen, [{ type: "replaced", resourceVersion: "3", changes: [] }]);
  });

  it("logs observers that throw, and calls the others", async () => {
    await using rig = newRig();
    rig.informer.observe(() => {
      throw new Error("observer broke");
    });
    let others = 0;
    rig.informer.observe(() => others++);
    const { recorder } = rig.record();
    await rig.start();
    rig.source.add(named("a"));
    await rig.settle();
    assert.equal(others, 2);
    assert.deepEqual(recorder.calls, ["add a@1"]);
    assert.match(rig.log.of("error")[0], /an observer threw: observer broke/);
  });
});

describe("SharedIndexInformer with asynchronous callbacks that reject", () => {
  it("logs that, and continues", async () => {
    await using rig = newRig();
    const rejecting = () => Promise.reject(new Error("it broke later"));
    rig.informer.observe(rejecting);
    rig.informer.onStatus(rejecting);
    rig.source.add(named("a"));
    await rig.start();
    assert.equal(rig.informer.hasSynced(), true);
    const logged = rig.log.of("error").join("\n");
    for (const what of ["an observer", "a status listener"]) {
      assert.match(logged, new RegExp(`${what} threw: it broke later`));
    }
  });
});

describe("SharedIndexInformer over a DeltaFIFO", () => {
  it("notifies alike", async () => {
    await using rig = newRig({
      queue: (context) => new DeltaFIFO({ ...context, emitDeltaTypeReplaced: true }),
      transform: (object) => object,
    });
    rig.source.add(named("a"));
    rig.source.add(named("b"));
    const { recorder, registration } = rig.record();
    await rig.start();
    rig.source.modify(named("a"));
    await rig.settle();
    rig.source.deleteDropWatch(named("b"));
    rig.source.addDropWatch(named("c"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(recorder.calls, [
      "add a@1 initial",
      "add b@2 initial",
      "update a@1>3",
      "update a@3>3",
      "add c@5",
      "tombstone b@2",
    ]);
    assert.equal(registration.hasSynced(), true);
  });
});

describe("SharedIndexInformer: two over one source", () => {
  it("do not share anything that one could change under the other", async () => {
    const source = new FakeControllerSource();
    source.add(named("a"));
    const clock = new FakeClock();
    const strip = new SharedIndexInformer<KubernetesObject>(source, {
      storage: storage(),
      clock,
      transform: (object) => Object.assign(object, { kind: "Stripped" }),
    });
    const plain = new SharedIndexInformer<KubernetesObject>(source, { storage: storage(), clock });
    const recorder = new Recorder();
    plain.addEventHandler(recorder);
    await using _one = strip.start();
    await using _two = plain.start();
    await clock.advance(0);
    assert.equal(strip.indexer.getByKey("a")?.kind, "Stripped");
    assert.equal(plain.indexer.getByKey("a")?.kind, undefined);
    assert.deepEqual(recorder.calls, ["add a@1 initial"]);
  });
});

describe("SharedIndexInformer: its options", () => {
  it("are refused where they make no sense, when it is made", () => {
    const source = new FakeControllerSource();
    const wrong: readonly SharedIndexInformerOptions<KubernetesObject>[] = [
      { turnObjects: 0 },
      { turnObjects: 1.5 },
      { resyncPeriodMs: -1 },
      { handlerStopTimeoutMs: -1 },
      { reflector: { openTimeoutMs: NaN } },
    ];
    for (const options of wrong) {
      assert.throws(() => new SharedIndexInformer(source, options), RangeError, JSON.stringify(options));
    }
    const namespaces = {
      names: ["a"],
      has: () => true,
      onChange: () => () => {},
      listEach: () => Promise.reject(),
    };
    assert.throws(() => new SharedIndexInformer(Object.assign(source, { namespaces })), {
      name: "TypeError",
      message: /its `namespaces` must be a NamespaceSet$/,
    });
  });
});
