import assert from "node:assert/strict";
import { newInformerSnapshot, type SnapshotIdentity } from "@listwatch/cache/informer";
import { describe, it } from "node:test";
import {
  CacheSyncError,
  InformerStateError,
  type KubernetesObject,
  newCluster,
  SharedInformerFactory,
  type SharedInformerFactoryOptions,
  silentLogger,
} from "@listwatch/cache";
import { formatResource, type GroupVersionResource } from "@listwatch/cache/client";
import type { ResourceSource } from "@listwatch/cache/informer";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import { FakeClock, FakeControllerSource, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { named } from "./rig.ts";

/** A source for each resource, that a test fills. */
class Sources implements ResourceSource {
  readonly asked: string[] = [];
  readonly #sources = new Map<string, FakeControllerSource>();

  resource(
    resource: GroupVersionResource,
    { namespace = "" }: { readonly namespace?: string },
  ): ListerWatcher<KubernetesObject> {
    const name = formatResource(resource);
    this.asked.push(namespace === "" ? name : `${name} in ${namespace}`);
    return this.of(name);
  }

  of(name: string): FakeControllerSource {
    let source = this.#sources.get(name);
    if (source === undefined) {
      source = new FakeControllerSource({ description: name });
      this.#sources.set(name, source);
    }
    return source;
  }
}

function newFactory(options: SharedInformerFactoryOptions = {}) {
  const sources = new Sources();
  const clock = new FakeClock();
  const factory = new SharedInformerFactory(sources, {
    ...options,
    informer: { clock, logger: silentLogger, reflector: { useWatchList: false } },
  });
  return { sources, clock, factory };
}

describe("SharedInformerFactory", () => {
  it("makes one informer for each resource, when it is first asked for", () => {
    const { sources, factory } = newFactory();
    assert.deepEqual(sources.asked, []);
    const pods = factory.forResource("v1/pods");
    assert.equal(factory.forResource({ group: "", version: "v1", resource: "pods" }), pods);
    assert.notEqual(factory.forResource("v1/nodes"), pods);
    assert.deepEqual(sources.asked, ["v1/pods", "v1/nodes"]);
    assert.equal(pods.informer.name, "v1/pods");
    assert.deepEqual(pods.resource, { group: "", version: "v1", resource: "pods" });
  });

  it("starts what was made, and later what was made since; each once", async () => {
    const { sources, clock, factory } = newFactory();
    const pods = factory.forResource("v1/pods");
    factory.start();
    factory.start();
    await clock.advance(0);
    assert.equal(pods.informer.hasSynced(), true);
    const nodes = factory.forResource("v1/nodes");
    await clock.advance(0);
    assert.equal(nodes.informer.isStarted(), false);
    factory.start();
    await clock.advance(0);
    assert.equal(nodes.informer.hasSynced(), true);
    assert.equal(sources.of("v1/pods").openWatches, 1);
    await factory.shutdown();
  });

  it("leaves an informer alone that was started directly", async () => {
    const { sources, clock, factory } = newFactory();
    const { informer } = factory.forResource("v1/pods");
    await using _running = informer.start();
    factory.start();
    await clock.advance(0);
    assert.equal(sources.of("v1/pods").openWatches, 1);
    assert.deepEqual(await factory.waitForCacheSync(), new Map([["v1/pods", true]]));
    await factory.shutdown();
    assert.equal(informer.isStopped(), false);
  });

  it("gives listers over informers that are indexed by namespace", async () => {
    const { sources, clock, factory } = newFactory();
    sources.of("v1/pods").add(pod("web-1", { namespace: "shop" }));
    sources.of("v1/pods").add(pod("web-1", { namespace: "blog" }));
    const { informer, lister } = factory.forResource("v1/pods");
    factory.start();
    await clock.advance(0);
    assert.deepEqual(informer.indexer.listIndexFuncValues("namespace").sort(), ["blog", "shop"]);
    assert.equal(lister.byNamespace("shop").list().length, 1);
    assert.throws(() => lister.byNamespace("shop").get("web-2"), /pods "web-2" not found/);
    await factory.shutdown();
  });

  it("requests only its namespace option", () => {
    const { sources, factory } = newFactory({ namespace: "shop" });
    factory.forResource("v1/pods");
    assert.deepEqual(sources.asked, ["v1/pods in shop"]);
  });

  it("changes the options of every list and watch by tweakListOptions", async () => {
    const { sources, clock, factory } = newFactory({
      tweakListOptions: (options, { resource }) => ({ ...options, labelSelector: `for=${resource}` }),
    });
    factory.forResource("v1/pods");
    factory.start();
    await clock.advance(0);
    const requests = sources.of("v1/pods").requests;
    assert.deepEqual(requests.map(({ verb }) => verb), ["list", "watch"]);
    for (const { options } of requests) assert.equal(options.labelSelector, "for=pods");
    await factory.shutdown();
  });

  it("transforms the objects of every resource by its transform", async () => {
    const { sources, clock, factory } = newFactory({
      transform: (object) => ({ ...object, kind: "Changed" }),
    });
    for (const resource of ["v1/pods", "v1/nodes"] as const) {
      sources.of(resource).add(named("a"));
      factory.forResource(resource);
    }
    factory.start();
    await clock.advance(0);
    for (const resource of ["v1/pods", "v1/nodes"] as const) {
      assert.equal(factory.forResource(resource).lister.get("a").kind, "Changed");
    }
    await factory.shutdown();
  });

  it("resyncs each resource at its own period, or at the common one", async () => {
    const { sources, clock, factory } = newFactory({
      resyncPeriodMs: 5_000,
      resyncPeriodsMs: { "v1/nodes": 2_000, "v1/secrets": 0 },
    });
    const updates: Record<string, number> = {};
    for (const resource of ["v1/pods", "v1/nodes", "v1/secrets"] as const) {
      sources.of(resource).add(named("a"));
      updates[resource] = 0;
      factory.forResource(resource).informer.addEventHandler({
        onUpdate: () => {
          updates[resource]++;
        },
      });
    }
    factory.start();
    await clock.advance(10_000);
    assert.deepEqual(updates, { "v1/pods": 2, "v1/nodes": 5, "v1/secrets": 0 });
    await factory.shutdown();
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("SharedInformerFactory.waitForCacheSync and synced", () => {
  it("return for each started resource whether it has synced", async () => {
    const { sources, clock, factory } = newFactory();
    factory.forResource("v1/pods");
    sources.of("v1/nodes").listError = new Error("it broke");
    factory.forResource("v1/nodes");
    factory.start();
    factory.forResource("v1/secrets");
    const abort = new AbortController();
    const waiting = factory.waitForCacheSync(abort.signal);
    await clock.advance(0);
    abort.abort();
    assert.deepEqual(await waiting, new Map([["v1/pods", true], ["v1/nodes", false]]));
    await factory.shutdown();
  });

  it("ends at once when no informer was made; waitForCacheSync also when none was started", async () => {
    const { factory } = newFactory();
    await factory.synced();
    factory.forResource("v1/pods");
    assert.deepEqual(await factory.waitForCacheSync(), new Map());
  });

  it("refuses synced while an informer was made and not started, and names it", async () => {
    const { clock, factory } = newFactory();
    factory.forResource("v1/pods");
    factory.forResource("v1/nodes");
    const refusal = (names: string) => ({
      name: "InformerStateError",
      message: `Cannot wait for ${names}: call start() of the factory first`,
    });
    await assert.rejects(factory.synced(), refusal("v1/nodes, v1/pods"));
    factory.start();
    const synced = factory.synced();
    await clock.advance(0);
    await synced;
    factory.forResource("v1/secrets");
    await assert.rejects(factory.synced(), refusal("v1/secrets"));
    factory.start();
    const all = factory.synced();
    await clock.advance(0);
    await all;
    await factory.shutdown();
  });

  it("can throw instead, naming what has not synced", async () => {
    const { sources, clock, factory } = newFactory();
    for (const resource of ["v1/pods", "v1/nodes"] as const) {
      sources.of(resource).listError = new Error("it broke");
      factory.forResource(resource);
    }
    factory.start();
    await clock.advance(0);
    const tooLate = new Error("30 s are over");
    await assert.rejects(factory.synced(AbortSignal.abort(tooLate)), (error: unknown) => {
      assert.ok(error instanceof CacheSyncError);
      assert.deepEqual(error.unsynced, ["v1/nodes", "v1/pods"]);
      assert.equal(
        error.message,
        "failed to sync all caches: v1/nodes, v1/pods: v1/nodes: it broke, attempt 1; v1/pods: it broke, attempt 1",
      );
      assert.equal((error.cause as Error).message, "it broke");
      assert.equal(error.endedBy, tooLate);
      return true;
    });
    await factory.shutdown();
    await assert.rejects(
      factory.synced(),
      /failed to sync all caches: v1\/nodes, v1\/pods: an informer was stopped/,
    );
  });
});

describe("SharedInformerFactory.synced", () => {
  it("says that an informer was stopped where the signal was not aborted", async () => {
    const { clock, factory } = newFactory();
    factory.forResource("v1/pods");
    factory.start();
    const synced = assert.rejects(
      factory.synced(new AbortController().signal),
      /Cannot sync v1\/pods: an informer was stopped/,
    );
    await factory.shutdown();
    await clock.advance(0);
    await synced;
  });
});

describe("SharedInformerFactory.shutdown", () => {
  it("stops every informer and waits until they have, as often as one likes", async () => {
    const { sources, clock, factory } = newFactory();
    const informers = (["v1/pods", "v1/nodes"] as const).map((resource) =>
      factory.forResource(resource).informer
    );
    factory.start();
    await clock.advance(0);
    await Promise.all([factory.shutdown(), factory.shutdown()]);
    await factory.shutdown();
    assert.equal(informers.every((informer) => informer.isStopped()), true);
    assert.equal(sources.of("v1/pods").openWatches, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("lets nothing start or be made any more; what is there can still be read", async () => {
    const { sources, clock, factory } = newFactory();
    sources.of("v1/pods").add(named("a"));
    factory.forResource("v1/pods");
    factory.start();
    await clock.advance(0);
    const nodes = factory.forResource("v1/nodes");
    await factory.shutdown();
    factory.start();
    assert.equal(nodes.informer.isStarted(), false);
    assert.throws(() => factory.forResource("v1/secrets"), InformerStateError);
    assert.equal(factory.forResource("v1/pods").lister.list().length, 1);
  });

  it("can be done by the signal of start, too", async () => {
    const { clock, factory } = newFactory();
    const abort = new AbortController();
    const { informer } = factory.forResource("v1/pods");
    factory.start(abort.signal);
    await clock.advance(0);
    abort.abort();
    await clock.advance(0);
    assert.equal(informer.isStopped(), true);
    await factory.shutdown();
  });

  it("is done at the end of an await using", async () => {
    const { clock, factory } = newFactory();
    const { informer } = factory.forResource("v1/pods");
    {
      await using scoped = factory;
      scoped.start();
      await clock.advance(0);
    }
    assert.equal(informer.isStopped(), true);
  });
});

describe("SharedInformerFactory over a cluster", () => {
  it("follows what the API server holds", async () => {
    const server = new InMemoryApiServer();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    server.create("v1/pods", pod("other", { namespace: "blog" }));
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    {
      await using factory = new SharedInformerFactory(cluster, { namespace: "shop" });
      const pods = factory.forResource("v1/pods");
      factory.start();
      await factory.synced();
      assert.deepEqual(pods.informer.indexer.listKeys(), ["shop/web-1"]);
      const added = Promise.withResolvers<string>();
      pods.informer.addEventHandler({
        onAdd: (object, isInInitialList) => {
          if (!isInInitialList) added.resolve(object.metadata!.name!);
        },
      });
      server.create("v1/pods", pod("web-2", { namespace: "shop" }));
      assert.equal(await added.promise, "web-2");
    }
    server.close();
  });

  it("stops an informer when its last user has released it, and makes another one for the next", async () => {
    using server = new InMemoryApiServer();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await using factory = new SharedInformerFactory(
      newCluster({ server: "http://in-memory", fetch: server.fetch }),
    );
    const first = factory.use("v1/pods");
    const second = factory.use("v1/pods");
    assert.equal(first.informer, second.informer);
    await factory.synced();
    assert.equal(server.openWatches, 1);
    await first.release();
    await first.release(); // once is enough
    assert.equal(second.informer.isStopped(), false);
    await second.release();
    assert.equal(second.informer.isStopped(), true);
    const third = factory.use("v1/pods");
    assert.notEqual(third.informer, second.informer);
    await factory.synced();
    assert.deepEqual(third.lister.list().map(({ metadata }) => metadata?.name), ["web-1"]);
    await third[Symbol.asyncDispose]();
  });

  it("is shut down when what was released before has stopped, too", async () => {
    using server = new InMemoryApiServer();
    const factory = new SharedInformerFactory(
      newCluster({ server: "http://in-memory", fetch: server.fetch }),
    );
    const used = factory.use("v1/pods");
    const handling = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    let isRunning = true;
    used.informer.addEventHandler({
      async onAdd() {
        handling.resolve();
        await ended.promise;
        isRunning = false;
      },
    });
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await handling.promise;
    const released = used.release();
    const next = factory.use("v1/pods"); // one of the same name, while the other stops
    assert.notEqual(next.informer, used.informer);
    const shutDown = factory.shutdown().then(() => isRunning);
    await new Promise((resolve) => setImmediate(resolve));
    ended.resolve();
    assert.equal(await shutDown, false);
    await released;
    assert.equal(next.informer.isStopped(), true);
  });

  it("makes another informer for a user where the one before was stopped by the signal of start", async () => {
    using server = new InMemoryApiServer();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await using factory = new SharedInformerFactory(
      newCluster({ server: "http://in-memory", fetch: server.fetch }),
    );
    const { informer } = factory.forResource("v1/pods");
    const stop = new AbortController();
    factory.start(stop.signal);
    await factory.synced();
    stop.abort();
    const used = factory.use("v1/pods");
    assert.notEqual(used.informer, informer);
    await factory.synced();
    assert.equal(used.lister.list().length, 1);
    await used.release();
    assert.equal(used.informer.isStopped(), true);
    assert.equal(server.openWatches, 0);
  });

  it("takes an informer that its user has started, and makes another one once that is stopped", async () => {
    using server = new InMemoryApiServer();
    await using factory = new SharedInformerFactory(
      newCluster({ server: "http://in-memory", fetch: server.fetch }),
    );
    const { informer } = factory.forResource("v1/pods");
    const running = informer.start();
    assert.equal(factory.use("v1/pods").informer, informer);
    await running.stop();
    const used = factory.use("v1/pods");
    assert.notEqual(used.informer, informer);
    await factory.synced();
    assert.equal(used.informer.hasSynced(), true);
  });

  it("keeps an informer that forResource has given out while others release it", async () => {
    using server = new InMemoryApiServer();
    const factory = new SharedInformerFactory(
      newCluster({ server: "http://in-memory", fetch: server.fetch }),
    );
    const { informer } = factory.forResource("v1/pods");
    const used = factory.use("v1/pods");
    assert.equal(used.informer, informer);
    await used.release();
    assert.equal(informer.isStopped(), false);
    await factory.shutdown();
    assert.equal(informer.isStopped(), true);
    assert.throws(() => factory.use("v1/pods"), /Cannot use v1\/pods: its factory was shut down/);
  });

  it("keeps a snapshot of each resource that has one, under an identity with its options", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const identities: SnapshotIdentity[] = [];
    let saves = 0;
    const factory = new SharedInformerFactory(cluster, {
      tweakListOptions: (options) => ({ ...options, labelSelector: "app=web" }),
      snapshot: ({ resource }) =>
        resource !== "pods" ? undefined : newInformerSnapshot({
          load: (identity) => void identities.push(identity),
          save: () => void saves++,
        }),
      informer: { clock },
    });
    const pods = factory.forResource("v1/pods");
    const nodes = factory.forResource("v1/nodes");
    factory.start();
    await clock.advance(0);
    await factory.synced();
    assert.equal(pods.informer.status().snapshot?.load, "none");
    assert.equal(nodes.informer.status().snapshot, undefined);
    await factory.shutdown();
    assert.equal(saves, 1);
    assert.equal(identities.length, 1);
    assert.equal(identities[0].resource, "v1/pods");
    assert.match(identities[0].source, /http:\/\/in-memory.*app=web/);
    server.close();
  });
});
