/**
 * Informers of a set of namespaces: one store, a list and a watch for each namespace.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Cluster,
  type KubernetesObject,
  NamespaceSet,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  SharedInformerFactory,
  silentLogger,
} from "@listwatch/cache";
import { newInformer } from "@listwatch/cache/informer";
import { Reflector } from "@listwatch/cache/reflector";
import { memorySnapshot } from "@listwatch/cache/snapshots";
import { newStore } from "@listwatch/cache/store";
import {
  answerStatus,
  FakeClock,
  InMemoryApiServer,
  pod,
  type RecordedRequest,
} from "@listwatch/cache/testing";
import { NamespaceLoops } from "../../src/informer/namespaces/namespace_loops.ts";
import { MOST_SHARDS } from "../../src/meta/merged_version.ts";
import { settle } from "../../src/util/clock.ts";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import { AtomicFIFO } from "../../src/queue/atomic_fifo.ts";
import { CountingSignal } from "../counting_signal.ts";
import { LogRecorder } from "../log_recorder.ts";
import { at, openWatch, page, ScriptedSource } from "../reflector/scripted_source.ts";
import { Recorder } from "./rig.ts";

interface Rig extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly log: LogRecorder;
  readonly server: InMemoryApiServer;
  readonly cluster: Cluster;
  readonly namespaces: NamespaceSet;
  readonly informer: SharedIndexInformer<KubernetesObject, "byNode">;
  readonly recorder: Recorder;
  start(): Promise<void>;
  settle(): Promise<void>;
}

function newRig(
  names: readonly string[],
  options: Pick<SharedIndexInformerOptions<KubernetesObject, "byNode">, "resyncPeriodMs" | "transform"> = {},
): Rig {
  const clock = new FakeClock();
  const log = new LogRecorder();
  const server = new InMemoryApiServer({ clock });
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const namespaces = new NamespaceSet(names);
  const informer = new SharedIndexInformer<KubernetesObject, "byNode">(
    cluster.resource("v1/pods", { namespaces }),
    {
      clock,
      logger: log,
      indexers: {
        byNode: (pod) => [(pod as { spec?: { nodeName?: string } }).spec?.nodeName ?? ""],
      },
      ...options,
    },
  );
  const recorder = new Recorder();
  informer.addEventHandler(recorder);
  const stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const settle = async () => {
    for (let i = 0; i < 40; i++) await clock.advance(0);
  };
  return {
    clock,
    log,
    server,
    cluster,
    namespaces,
    informer,
    recorder,
    settle,
    start: async () => {
      running = informer.run(stop.signal);
      await settle();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await settle();
      await running;
      server.close();
    },
  };
}

function create(server: InMemoryApiServer, ...keys: readonly string[]): void {
  for (const key of keys) {
    const [namespace, name] = key.split("/");
    server.create("v1/pods", pod(name, { namespace, nodeName: `node-of-${namespace}` }));
  }
}

function isIn(namespace: string) {
  return ({ path }: RecordedRequest) => path === `/api/v1/namespaces/${namespace}/pods`;
}

/** What a server lists. */
function listed(server: InMemoryApiServer): string[] {
  return server.requests.filter(({ isWatch, query }) => !isWatch || query.sendInitialEvents === "true")
    .map(({ path }) => path.split("/")[4]);
}

describe("SharedIndexInformer over a set of namespaces", () => {
  it("lists and watches each into one store, and nothing of the others", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer, recorder } = rig;
    create(server, "a/x", "b/x", "b/y", "c/z");
    await rig.start();
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/x", "b/x", "b/y"]);
    assert.equal(informer.indexer.byIndex("byNode", "node-of-b").length, 2);
    assert.deepEqual(recorder.take().length, 3);
    create(server, "a/new", "c/new");
    server.delete("v1/pods", "b/x");
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/new", "a/x", "b/y"]);
    const calls = recorder.take().map((call) => call.split("@")[0]);
    assert.deepEqual(calls.sort(), ["add new", "delete x"]);
    assert.equal(server.openWatches, 2);
  });

  it("has stopped where it was run with a signal that was aborted before", async () => {
    await using rig = newRig(["a"]);
    const { informer, server } = rig;
    const phases: string[] = [];
    informer.onStatus(({ phase }) => phases.push(phase));
    await informer.run(AbortSignal.abort());
    assert.deepEqual([informer.isStopped(), informer.status().phase], [true, "stopped"]);
    assert.deepEqual([phases, server.requests.length], [["stopped"], 0]);
  });

  it("has synced when every namespace was listed, and its handlers have received all of them", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer, recorder } = rig;
    create(server, "a/x", "b/y");
    const forgive = server.intercept(answerStatus(403, { message: "pods is forbidden in b" }), {
      match: isIn("b"),
    });
    await rig.start();
    assert.deepEqual(informer.indexer.listKeys(), ["a/x"]);
    assert.equal(informer.hasSynced(), false);
    assert.match(informer.failure()!.error.message, /"pods" in "b": .*forbidden in b/);
    const { namespaces } = informer.status();
    assert.deepEqual(Object.entries(namespaces!).map(([name, { phase }]) => [name, phase]), [
      ["a", "watching"],
      ["b", "backingOff"],
    ]);
    // The other continues meanwhile.
    create(server, "a/new");
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/new", "a/x"]);
    forgive();
    await rig.clock.advance(60_000);
    await rig.settle();
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/new", "a/x", "b/y"]);
    assert.equal(informer.failure(), undefined);
    assert.deepEqual(recorder.take().map((call) => call.replace(/@\d+/, "")), [
      "add x initial",
      "add new initial",
      "add y initial",
    ]);
  });

  it("is consistent with the server as of the namespace that was read first", async () => {
    await using rig = newRig(["a"]);
    const { clock, informer, namespaces } = rig;
    const startMs = clock.monotonicNow();
    await rig.start();
    assert.equal(informer.consistentMs(), startMs);
    await clock.advance(10_000);
    namespaces.set(["a", "b"]);
    assert.equal(informer.consistentMs(), undefined);
    await rig.settle();
    assert.equal(informer.consistentMs(), startMs);
    namespaces.set(["b"]);
    assert.equal(informer.consistentMs(), startMs + 10_000);
  });

  it("has synced once a namespace that cannot be read was taken out", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer } = rig;
    create(server, "a/x");
    server.intercept(answerStatus(403), { match: isIn("b") });
    await rig.start();
    assert.equal(informer.hasSynced(), false);
    rig.namespaces.set(["a"]);
    await rig.settle();
    assert.equal(informer.hasSynced(), true);
    assert.equal(informer.failure(), undefined);
  });

  it("deletes what a namespace had that leaves, as tombstones, and adds what one has that comes", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer, recorder } = rig;
    create(server, "a/x", "b/y", "c/z");
    await rig.start();
    recorder.take();
    const before = listed(server).length;
    rig.namespaces.set(["b", "c"]);
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["b/y", "c/z"]);
    assert.deepEqual(recorder.take().map((call) => call.replace(/@\d+/, "")), ["tombstone x", "add z"]);
    assert.deepEqual(listed(server).slice(before), ["c"]);
    assert.equal(server.openWatches, 2);
    // The informer follows the namespaces in its set; one that has left may come back.
    create(server, "a/late", "c/late");
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["b/y", "c/late", "c/z"]);
    rig.namespaces.set(["a", "b", "c"]);
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/late", "a/x", "b/y", "c/late", "c/z"]);
    assert.equal(informer.isFresh(1_000), true);
  });

  it("may become empty, and begin so", async () => {
    await using rig = newRig([]);
    const { server, informer } = rig;
    create(server, "a/x");
    await rig.start();
    assert.equal(informer.hasSynced(), true);
    rig.namespaces.set(["a"]);
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys(), ["a/x"]);
    rig.namespaces.set([]);
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys(), []);
    assert.equal(server.openWatches, 0);
  });

  it("finds what a namespace lost while its watch was away, and leaves the others alone", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer, recorder } = rig;
    create(server, "a/x", "b/y");
    await rig.start();
    recorder.take();
    const refuse = server.intercept(answerStatus(410), { match: (request) => isIn("b")(request) });
    const before = listed(server).length;
    server.closeWatches();
    await rig.settle();
    server.delete("v1/pods", "b/y");
    create(server, "b/new");
    await rig.clock.advance(20_000);
    refuse();
    await rig.clock.advance(60_000);
    await rig.settle();
    assert.deepEqual(informer.indexer.listKeys().sort(), ["a/x", "b/new"]);
    const calls = recorder.take().map((call) => call.split("@")[0]);
    assert.deepEqual(calls.filter((call) => call !== "update x").sort(), ["add new", "tombstone y"]);
    // As client-go does, a list hands out what it brings unchanged: of its own namespace.
    const lists = listed(server).slice(before).filter((name) => name === "a");
    assert.equal(calls.filter((call) => call === "update x").length, lists.length);
  });

  it("waits for a version of the server in every namespace, and in one by its own", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer } = rig;
    create(server, "a/x", "b/y");
    await rig.start();
    const { metadata } = server.create("v1/pods", pod("late", { namespace: "a" }));
    const waits = { all: false, own: false };
    const [a] = informer.sources!;
    const { signal } = new AbortController();
    const all = informer.waitForVersion(metadata!.resourceVersion!).then(() => waits.all = true);
    a.informer.waitForVersion(metadata!.resourceVersion!, { signal }).then(() => waits.own = true);
    await rig.settle();
    assert.deepEqual(waits, { all: false, own: true }); // of b nothing says that it has come so far
    await rig.clock.advance(61_000); // a bookmark does
    await rig.settle();
    await all;
    assert.deepEqual(waits, { all: true, own: true });
  });

  /** An informer of the namespaces a and b, each of which answers from a script. */
  async function scripted(
    { a, b }: { readonly a: ScriptedSource; readonly b: ScriptedSource },
    options: SharedIndexInformerOptions<KubernetesObject, string> = {},
  ) {
    const clock = new FakeClock();
    const source = {
      namespaces: new NamespaceSet(["a", "b"]),
      inNamespace: (name: string) => name === "a" ? a : b,
      list: () => Promise.reject(new Error("unused")),
      watch: () => Promise.reject(new Error("unused")),
    };
    const informer = new SharedIndexInformer<KubernetesObject, string>(source, {
      clock,
      logger: silentLogger,
      reflector: { useWatchList: false, random: () => 0 },
      ...options,
    });
    const running = informer.start();
    await clock.advance(0);
    return { clock, informer, running };
  }

  const inA = (written: string): KubernetesObject => {
    const { metadata, ...pod } = at(written);
    return { ...pod, metadata: { ...metadata, namespace: "a" } };
  };
  const listOf = (version: string, ...items: KubernetesObject[]) => ({
    list: { ...page("", version), items },
  });

  it("lists a namespace again whose watch sends an older event, as nothing behind it knows the order", async () => {
    const [watch, next] = [openWatch(), openWatch()];
    const a = new ScriptedSource(listOf("10", inA("x@5")), { watch }, listOf("13", inA("x@13")), {
      watch: next,
    });
    const b = new ScriptedSource(listOf("10"), { watch: openWatch() });
    const { clock, informer, running } = await scripted({ a, b });
    watch.modify(inA("x@12"));
    watch.modify(inA("x@8"));
    await clock.advance(1_000);
    const version = () => informer.indexer.getByKey("a/x")?.metadata?.resourceVersion;
    assert.equal(version(), "12");
    await clock.advance(60_000);
    assert.equal(version(), "13");
    assert.deepEqual([a.left, b.left, b.requests.length], [0, 0, 2]);
    await running.stop();
  });

  it("deletes by its key what it cannot read, without a list", async () => {
    const watch = openWatch();
    const a = new ScriptedSource(listOf("10", inA("x@5"), inA("y@6")), { watch });
    const b = new ScriptedSource(listOf("10"), { watch: openWatch() });
    const { clock, informer, running } = await scripted({ a, b });
    const torn = { reason: "torn", path: "", key: "a/x", resourceVersion: "12", eventType: "DELETED" };
    watch.send({ type: "QUARANTINED", quarantined: torn });
    await clock.advance(70_000);
    assert.deepEqual(informer.indexer.listKeys(), ["a/y"]);
    const { quarantined, namespaces } = informer.status();
    assert.deepEqual([quarantined, namespaces?.a.resourceVersion], [1, "12"]);
    assert.deepEqual([a.problems, b.problems], [[], []]);
    await running.stop();
  });

  it("notifies of no delete of an object that was quarantined, in a list or in a watch", async () => {
    await using rig = newRig(["a", "b"], {
      transform: (object) => {
        if (object.metadata?.name === "bad") throw new Error("it is bad");
        return object;
      },
    });
    create(rig.server, "a/bad", "a/x");
    await rig.start();
    create(rig.server, "b/bad", "b/y");
    await rig.settle();
    for (const key of ["a/bad", "b/bad", "b/y"]) rig.server.delete("v1/pods", key);
    await rig.settle();
    const calls = rig.recorder.take().map((call) => call.split("@")[0]);
    assert.deepEqual(calls, ["add x", "add y", "delete y"]);
    assert.deepEqual(rig.informer.indexer.listKeys(), ["a/x"]);
  });

  it("lists all of them again after a change that the store has refused: it may be of any", async () => {
    const watch = openWatch();
    const a = new ScriptedSource(listOf("10"), { watch }, listOf("13"), { watch: openWatch() });
    const b = new ScriptedSource(listOf("10"), { watch: openWatch() }, listOf("13"), { watch: openWatch() });
    const { clock, running } = await scripted({ a, b }, {
      indexers: {
        strict: ({ metadata }) => {
          if (metadata?.name === "bad") throw new Error("no");
          return [];
        },
      },
    });
    watch.add(inA("bad@12"));
    await clock.advance(61_000);
    assert.deepEqual([a.left, b.left], [0, 0]);
    await running.stop();
  });

  it("has the status of the first that is behind, reports each change, and follows no set after its stop", async () => {
    await using rig = newRig(["a", "b"]);
    const { server, informer, clock, namespaces } = rig;
    const phases: string[] = [];
    informer.onStatus(({ phase }) => phases.push(phase));
    const forgive = server.intercept(answerStatus(403), { match: isIn("b") });
    const running = informer.start();
    await rig.settle();
    assert.deepEqual([informer.status().phase, informer.lagMs()], ["backingOff", undefined]);
    assert.equal(phases.at(-1), "backingOff");
    forgive();
    await clock.advance(60_000);
    assert.deepEqual([informer.status().phase, phases.at(-1)], ["watching", "watching"]);
    assert.ok(informer.lagMs()! <= 60_000);
    await running.stop();
    assert.deepEqual([informer.status().phase, phases.at(-1)], ["stopped", "stopped"]);
    assert.equal(server.openWatches, 0);
    const before = server.requests.length;
    namespaces.set(["a", "b", "c"]);
    await rig.settle();
    assert.equal(server.requests.length, before);
    assert.equal(clock.pendingTimers, 0);
  });

  it("leaves no observer of a wait in one namespace that was given up", async () => {
    await using rig = newRig(["a", "b"]);
    const { informer } = rig;
    await rig.start();
    const observe = informer.observeHeld.bind(informer);
    let observers = 0;
    informer.observeHeld = (observer) => {
      const unobserve = observe(observer);
      observers++;
      return () => {
        observers--;
        unobserve();
      };
    };
    const giveUp = new AbortController();
    const [a] = informer.sources!;
    const waiting = a.informer.waitForVersion("9999", { signal: giveUp.signal });
    assert.equal(observers, 1);
    giveUp.abort(new Error("too late"));
    await assert.rejects(waiting, /too late/);
    assert.equal(observers, 0);
  });

  it("resyncs each object once in a period", async () => {
    await using rig = newRig(["a", "b"], { resyncPeriodMs: 10_000 });
    create(rig.server, "a/x", "b/y");
    await rig.start();
    rig.recorder.take();
    await rig.clock.advance(10_000);
    await rig.settle();
    assert.deepEqual(rig.recorder.take().map((call) => call.split("@")[0]).sort(), ["update x", "update y"]);
  });

  it("resyncs at the period of its first namespace, whose watch began later than that of another", async () => {
    await using rig = newRig(["b"], { resyncPeriodMs: 10_000 });
    create(rig.server, "a/x", "b/y");
    await rig.start();
    await rig.clock.advance(3_000);
    rig.namespaces.set(["a", "b"]);
    await rig.settle();
    rig.recorder.take();
    await rig.clock.advance(9_999);
    assert.deepEqual(rig.recorder.take(), []);
    await rig.clock.advance(1);
    await rig.settle();
    assert.deepEqual(rig.recorder.take().map((call) => call.split("@")[0]).sort(), ["update x", "update y"]);
  });

  it("refuses a snapshot, and a queue of one's own", () => {
    const cluster = newCluster({ server: "http://in-memory", fetch: () => Promise.reject(new Error()) });
    const pods = cluster.resource("v1/pods", { namespaces: new NamespaceSet(["a"]) });
    const snapshot = memorySnapshot();
    assert.throws(() => new SharedIndexInformer(pods, { snapshot }), /pods in 1 namespaces with a snapshot/);
    assert.throws(
      () => new Reflector(pods, newStore<KubernetesObject>(() => "")),
      /pods in 1 namespaces by one list and watch: give the source to a SharedIndexInformer/,
    );
    assert.throws(() => newInformer({ listerWatcher: pods, handler: {} }), /by one list and watch/);
  });
});

describe("SharedInformerFactory with a set of namespaces", () => {
  it("narrows every resource to it", async () => {
    using server = new InMemoryApiServer();
    create(server, "a/x", "b/y", "c/z");
    const namespaces = new NamespaceSet(["a", "b"]);
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    await using factory = new SharedInformerFactory(cluster, {
      namespaces,
      informer: { logger: silentLogger },
    });
    await using pods = factory.use("v1/pods");
    await factory.synced();
    assert.deepEqual(pods.lister.list().map(({ metadata }) => metadata?.name).sort(), ["x", "y"]);
    assert.deepEqual(pods.lister.byNamespace("b").list().map(({ metadata }) => metadata?.name), ["y"]);
  });
});

describe("ResourceClient.list over a set of namespaces", () => {
  it("lists all of them, at a version that each has reached", async () => {
    using server = new InMemoryApiServer();
    create(server, "a/x", "b/y", "b/z", "c/w");
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const pods = cluster.resource("v1/pods", { namespaces: new NamespaceSet(["a", "b"]) });
    const { items, metadata } = await pods.list({ limit: 1 });
    assert.deepEqual(items.map(({ metadata }) => metadata?.name), ["x", "y", "z"]);
    assert.match(metadata.resourceVersion!, /^\d+$/);
    await assert.rejects(async () => await pods.watch(), /Cannot watch pods in 2 namespaces at once/);
    assert.throws(
      () => cluster.resource("v1/pods", { namespace: "a", namespaces: new NamespaceSet(["b"]) }),
      /with namespace and namespaces/,
    );
    assert.throws(
      () => cluster.resource("v1/pods", { namespaces: ["a"] as never }),
      /with a list as namespaces: give a NamespaceSet/,
    );
  });
});

describe("NamespaceSet", () => {
  it("refuses what is no name, and says nothing where nothing changes", () => {
    assert.throws(() => new NamespaceSet(["Shop"]), /Cannot use the namespace "Shop"/);
    const set = new NamespaceSet(["b", "a", "b"]);
    assert.deepEqual(set.names, ["b", "a"]);
    let changes = 0;
    const stop = set.onChange(() => changes++);
    set.set(["a", "b"]);
    assert.equal(changes, 0);
    set.set(["a"]);
    stop();
    set.set([]);
    assert.equal(changes, 1);
  });

  it("takes names of 63 characters, and as many as there may be shards", () => {
    const longest = "a".repeat(63);
    assert.deepEqual(new NamespaceSet([longest]).names, [longest]);
    assert.throws(() => new NamespaceSet([`${longest}a`]), /a name has up to 63/);
    const most = Array.from({ length: MOST_SHARDS }, (_, i) => `shop-${i}`);
    assert.equal(new NamespaceSet(most).names.length, MOST_SHARDS);
    assert.throws(() => new NamespaceSet([...most, "more"]), /give at most/);
  });

  it("calls for a change the listeners that were there before it", () => {
    const set = new NamespaceSet(["a"]);
    const called: string[] = [];
    set.onChange(() => {
      called.push("first");
      if (called.length === 1) set.onChange(() => void called.push("second"));
    });
    set.set(["b"]);
    assert.deepEqual(called, ["first"]);
    set.set(["c"]);
    assert.deepEqual(called, ["first", "first", "second"]);
  });

  it("calls no listener any more that another one has removed", () => {
    const set = new NamespaceSet(["a"]);
    let calls = 0;
    set.onChange(() => stop());
    const stop = set.onChange(() => calls++);
    set.set(["b"]);
    assert.equal(calls, 0);
  });

  it("calls all listeners after a change where one throws, and logs that", async () => {
    const logger = new LogRecorder();
    const set = new NamespaceSet(["a"], { logger });
    set.onChange(() => {
      throw new Error("cannot save");
    });
    set.onChange(() => Promise.reject(new Error("cannot save later")));
    const received: (readonly string[])[] = [];
    set.onChange(() => received.push(set.names));
    set.set(["a", "b"]);
    assert.deepEqual(received, [["a", "b"]]);
    await settle();
    assert.deepEqual(logger.of("error"), [
      "error: a listener of 2 namespaces threw: cannot save",
      "error: a listener of 2 namespaces threw: cannot save later",
    ]);
  });
});

describe("NamespaceLoops.quarantine", () => {
  it("releases a key in each of the ledgers, and explains it by each", () => {
    const { quarantine } = new NamespaceLoops<KubernetesObject>(
      new ScriptedSource(),
      new NamespaceSet([]),
      { name: "pods", shouldResync: () => false, logger: silentLogger, onQuarantined: () => {} },
    );
    const ofLoop = new Quarantine({ name: "pods in a", onQuarantined: () => {} });
    quarantine.loops.add(ofLoop);
    const add = () => {
      for (const each of [quarantine, ofLoop]) each.add({ reason: "it is odd", path: "", key: "a/x" });
    };
    add();
    assert.ok(quarantine.release("a/x"));
    assert.deepEqual([quarantine.keys.size, ofLoop.keys.size], [0, 0]);
    add();
    assert.deepEqual([1, 2].map(() => quarantine.explains("a/x", undefined)), [true, false]);
  });

  it("has no ledger of a namespace that has left, whose loop leaves nothing on the signal", async () => {
    const counting = new CountingSignal();
    const namespaces = new NamespaceSet(["a"]);
    const source = Object.assign(new ScriptedSource(), {
      inNamespace: () => new ScriptedSource({ list: "hang" }),
    });
    const loops = new NamespaceLoops<KubernetesObject>(source, namespaces, {
      name: "pods",
      logger: silentLogger,
      shouldResync: () => false,
      useWatchList: false,
      clock: new FakeClock(),
    });
    const running = loops.fill(new AtomicFIFO({}), {}).run(counting.signal);
    const { listeners } = counting;
    for (const names of [["a", "b"], ["b"]]) namespaces.set(names);
    await settle();
    assert.deepEqual([loops.quarantine.loops.size, counting.listeners], [1, listeners]);
    counting.abort();
    await running;
  });
});
