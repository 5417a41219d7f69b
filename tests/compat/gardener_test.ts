import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { type GardenerInformerOptions, Informer, type Predicate } from "@listwatch/cache/compat/gardener";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";

type Pod = KubernetesObject & { spec?: { nodeName?: string; containers?: { name: string }[] } };

/** A server with pods, an informer of them, and what its listeners have received. */
class World {
  readonly clock = new FakeClock(1_000_000);
  readonly server = new InMemoryApiServer({ clock: this.clock });
  readonly logger = new LogRecorder();
  readonly events: string[] = [];
  readonly informer: Informer<Pod>;

  constructor(options: GardenerInformerOptions<Pod> = {}) {
    const { clock, logger } = this;
    const cluster = newCluster({ server: "http://in-memory", fetch: this.server.fetch, clock, logger });
    this.informer = new Informer(cluster.resource<Pod>("v1/pods"), { clock, logger, ...options });
    const { events, informer } = this;
    informer.on("add", ({ metadata }) => events.push(`add ${metadata?.name} ${metadata?.uid}`));
    informer.on("delete", ({ metadata }) => events.push(`delete ${metadata?.name} ${metadata?.uid}`));
    informer.on("update", (object, old) => events.push(`update ${nodeOf(old)} -> ${nodeOf(object)}`));
  }

  create(name: string, nodeName = "node-1"): Pod {
    const made = pod(name, { namespace: "shop" });
    return this.server.create<Pod>("v1/pods", { ...made, spec: { ...made.spec, nodeName } });
  }

  async start(): Promise<void> {
    this.informer.run();
    await this.clock.advance(0);
    await this.informer.store.untilHasSynced;
  }

  /** The events since the last time. */
  async received(): Promise<string[]> {
    await this.clock.advance(0);
    return this.events.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.informer.abort();
    await this.clock.advance(0);
    this.server.close();
  }
}

function nodeOf(object: Pod): string {
  return `${object.metadata?.name} on ${object.spec?.nodeName}`;
}

describe("Informer of compat/gardener", () => {
  it("calls a listener that is added by another one from the next change on", async () => {
    await using world = new World();
    let added = 0;
    world.informer.on("add", () => {
      if (added++ === 0) {
        world.informer.on("add", ({ metadata }) => world.events.push(`late ${metadata?.name}`));
      }
    });
    await world.start();
    for (const name of ["web-1", "web-2"]) world.create(name);
    const late = (await world.received()).filter((event) => event.startsWith("late"));
    assert.deepEqual(late, ["late web-2"]);
  });

  it("calls its listeners for what is added, changed and deleted, with the old state of a change", async () => {
    await using world = new World();
    const one = world.create("web-1");
    await world.start();
    const two = world.create("web-2");
    world.server.update<Pod>("v1/pods", { ...one, spec: { ...one.spec, nodeName: "node-2" } });
    world.server.delete("v1/pods", "shop/web-2");
    assert.deepEqual(await world.received(), [
      `add web-1 ${one.metadata?.uid}`,
      `add web-2 ${two.metadata?.uid}`,
      "update web-1 on node-1 -> web-1 on node-2",
      `delete web-2 ${two.metadata?.uid}`,
    ]);
  });

  it("is an emitter of Node, whose listeners receive what gardener's do", async () => {
    await using world = new World();
    const { informer } = world;
    const seen: unknown[] = [];
    const once = (...values: unknown[]) => seen.push(values.length);
    const never = () => seen.push("never");
    informer.once("add", once).once("update", once).once("delete", once).addListener("add", never);
    informer.off("add", never);
    assert.ok(informer instanceof EventEmitter);
    assert.equal(informer.emit("unheard"), false);
    await world.start();
    for (const name of ["web-1", "web-2"]) {
      const { metadata, ...rest } = world.create(name);
      world.server.update<Pod>("v1/pods", { ...rest, metadata: { ...metadata, labels: { v: "2" } } });
      world.server.delete("v1/pods", `shop/${name}`);
    }
    await world.received();
    assert.deepEqual(seen, [1, 2, 1]);
  });

  it("reports an object that was made again between two lists as a delete and an add", async () => {
    await using world = new World();
    const before = world.create("web-1");
    await world.start();
    await world.received();
    world.server.closeWatches();
    world.server.delete("v1/pods", "shop/web-1");
    const after = world.create("web-1");
    world.server.compact();
    await world.clock.advance(60_000);
    const [old, made] = [before.metadata!.uid!, after.metadata!.uid!];
    assert.notEqual(old, made);
    assert.deepEqual(await world.received(), [`delete web-1 ${old}`, `add web-1 ${made}`]);
    const { store } = world.informer;
    assert.deepEqual([store.listKeys(), store.hasByKey(old)], [[made], false]);
  });

  it("calls the other listeners when one throws, and logs why", async () => {
    await using world = new World();
    const seen: string[] = [];
    world.informer
      .on("add", () => {
        throw new Error("not now");
      })
      .on("add", ({ metadata }) => seen.push(metadata!.name!));
    world.create("web-1");
    world.create("web-2");
    await world.start();
    assert.deepEqual(seen, ["web-1", "web-2"]);
    assert.match(world.logger.of("error")[0], /a listener for "add" threw: not now$/);
  });

  it("runs until its signal or abort, and keeps what it holds", async () => {
    for (const ends of ["signal", "abort"]) {
      await using world = new World();
      const { clock, informer } = world;
      const ended = new AbortController();
      world.create("web-1");
      informer.run(ended.signal);
      await clock.advance(0);
      assert.ok(informer.hasSynced);
      assert.equal(informer.lastSyncResourceVersion, world.server.resourceVersion);
      if (ends === "signal") ended.abort();
      else informer.abort();
      world.create("web-2");
      await clock.advance(60_000);
      assert.equal(informer.store.list().length, 1);
      assert.ok(informer.shared.isStopped());
    }
  });
});

describe("Store of compat/gardener", () => {
  it("is by uid, or by another path", async () => {
    for (const keyPath of ["metadata.uid", "spec.nodeName"]) {
      await using world = new World(keyPath === "metadata.uid" ? {} : { keyPath });
      const { store } = world.informer;
      const one = world.create("web-1", "node-1");
      const two = world.create("web-2", "node-2");
      assert.deepEqual([store.hasSynced, store.list(), store.has(one)], [false, [], false]);
      await world.start();
      const keys = [one, two].map((object) => store.getKey(object));
      assert.deepEqual(keys, keyPath === "metadata.uid" ? [one, two].map(uidOf) : ["node-1", "node-2"]);
      assert.deepEqual(store.listKeys().sort(), [...keys].sort());
      assert.deepEqual(store.list().map((object) => object.metadata?.name).sort(), ["web-1", "web-2"]);
      assert.equal(store.getByKey(keys[1])?.metadata?.name, "web-2");
      assert.equal(store.get(one), store.getByKey(keys[0]));
      assert.deepEqual([store.has(two), store.hasByKey("none"), store.getByKey("none")], [
        true,
        false,
        undefined,
      ]);
    }
  });

  it("finds by what lodash's shorthands say", async () => {
    await using world = new World();
    const one = world.create("web-1", "node-1");
    world.create("web-2", "");
    await world.start();
    const { store } = world.informer;
    const name = (object: Pod | undefined) => object?.metadata?.name;
    assert.equal(name(store.find("spec.nodeName")), "web-1");
    assert.equal(name(store.find(["spec.nodeName", ""])), "web-2");
    assert.equal(name(store.find(["metadata.uid", uidOf(one)])), "web-1");
    assert.equal(name(store.find({ metadata: { name: "web-2" } })), "web-2");
    assert.equal(name(store.find({ metadata: { namespace: "shop", name: "web-2" } })), "web-2");
    assert.equal(name(store.find((object) => object.spec?.nodeName === "node-1")), "web-1");
    assert.equal(
      name(store.find({ spec: { containers: [{ name: one.spec!.containers![0].name }] } })),
      "web-1",
    );
    for (
      const none of [
        "spec.paused.by",
        ["metadata.uid", "none"],
        ["spec.nodeName", undefined],
        { metadata: { namespace: "shop", name: "web-3" } },
        { metadata: { namespace: "shop", name: "web-2" }, spec: { nodeName: "node-1" } },
        { spec: { containers: [{ name: "none" }] } },
        { spec: { nodeName: { name: "node-1" } } },
        { spec: { none: undefined } },
        { toString: undefined },
      ] as const
    ) assert.equal(store.find(none), undefined, JSON.stringify(none));
    assert.throws(
      () => store.find(undefined!),
      /^TypeError: Cannot find an object: a predicate is a function/,
    );
  });

  it("finds as lodash does: paths with brackets, parts of arrays, and what is not there", async () => {
    await using world = new World();
    const { spec, ...rest } = pod("web-1", { namespace: "shop", labels: { "example.com/app": "web" } });
    const containers = ["main", "side"].map((name) => ({ name, image: "registry.example/app:1" }));
    world.server.create("v1/pods", { ...rest, spec: { ...spec, containers } });
    await world.start();
    // Each is what lodash 4.17 finds.
    const found: [predicate: Predicate<Pod>, isFound: boolean][] = [
      ["spec.containers[0].name", true],
      ["spec.containers.1.name", true],
      ["spec.containers[2]", false],
      ["metadata.labels['example.com/app']", true],
      ["", false],
      [['metadata.labels["example.com/app"]', "web"], true],
      [[["metadata", "name"], "web-1"], true],
      [["metadata.none", undefined], false],
      [["metadata.labels", {}], true],
      [{ spec: { containers: [] } }, true],
      [{ spec: { containers: {} } }, false],
      [{ metadata: [] }, false],
      [{ spec: { containers: [{ name: "side" }, { name: "main" }] } }, true],
      [{ spec: { containers: [{ name: "main" }, { name: "main" }] } }, false],
      [{ spec: { containers: [{}, {}] } }, true],
      [{ spec: { containers: [{}, {}, {}] } }, false],
    ];
    for (const [predicate, isFound] of found) {
      assert.equal(world.informer.store.find(predicate) !== undefined, isFound, JSON.stringify(predicate));
    }
  });

  it("looks an object up by its uid or its name, without a try of each", async () => {
    await using world = new World();
    for (let i = 0; i < 100; i++) world.create(`web-${i}`);
    const { store, shared } = world.informer;
    await world.start();
    let read = 0;
    const { values } = shared.indexer;
    shared.indexer.values = function* () {
      for (const object of values.call(shared.indexer)) yield (read++, object);
    };
    const uid = uidOf(store.find({ metadata: { namespace: "shop", name: "web-99" } })!);
    assert.equal(store.find(["metadata.uid", uid])?.metadata?.name, "web-99");
    assert.equal(read, 0);
    assert.equal(store.find(["metadata.name", "web-99"]) === undefined, false);
    assert.equal(read > 0, true);
  });

  it("says by `untilHasSynced` that the informer has stopped", async () => {
    await using world = new World();
    world.informer.run();
    world.informer.abort();
    await world.clock.advance(0);
    await assert.rejects(world.informer.store.untilHasSynced, { name: "InformerStateError" });
  });
});

function uidOf(object: Pod): string {
  return object.metadata!.uid!;
}
