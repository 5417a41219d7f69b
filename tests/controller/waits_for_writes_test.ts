import { newStatus } from "@listwatch/cache/client";
import { type KubernetesObject, newCluster, silentLogger, StatusError } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CachedResource, OwnWrites, type Written } from "../../src/controller/cached_resource.ts";
import { CountingSignal } from "../counting_signal.ts";

const refused = (code: number, reason: string) => new StatusError(newStatus(code, reason, ""));

describe("OwnWrites", () => {
  /** A cache that records what is looked for, and never has it. */
  const cache = () => {
    const asked: Written[] = [];
    const resource = {
      has: (written: Written) => (asked.push(written), false),
      waitFor: () => Promise.resolve(false),
      presentVersion: () => Promise.resolve("50"),
    };
    return { asked, resource: resource as unknown as CachedResource };
  };
  const never = new AbortController().signal;

  it("wait for the highest version of each namespace", () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    for (const [version, of] of [["9", "x"], ["11", "x"], ["10", "x"], ["7", "y"]]) {
      writes.wrote(resource, version, of);
    }
    assert.equal(writes.isInCaches(), false);
    assert.deepEqual([...asked[0].versions], [["x", "11"], ["y", "7"]]);
  });

  it("ask the server after a write that may have been made, and after no other", () => {
    const mayBe = [refused(408, "Timeout"), refused(500, ""), refused(504, "Timeout"), new Error("reset")];
    const isNot = [
      refused(400, "BadRequest"),
      refused(499, ""),
      refused(409, "Conflict"),
      refused(429, "TooManyRequests"),
    ];
    for (const error of [...mayBe, ...isNot]) {
      const writes = new OwnWrites();
      writes.failed(cache().resource, error);
      assert.equal(writes.isEmpty, isNot.includes(error as StatusError), String(error));
    }
  });

  it("are read from the server in one reconcile, and waited for again in the next", async () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    writes.wrote(resource, "11");
    await writes.settle({ timeoutMs: 1, signal: never });
    assert.deepEqual([writes.readsThrough(resource), writes.isInCaches()], [true, true]);
    writes.ended();
    assert.deepEqual([writes.readsThrough(resource), writes.isInCaches()], [false, false]);
    assert.deepEqual([...asked.at(-1)!.versions], [["", "50"]]); // the server's: 11 may never come
  });

  it("are not waited for any more where the server is behind them, as after a restore from a backup", async () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    writes.wrote(resource, "100", "x");
    await writes.settle({ timeoutMs: 1, signal: never });
    writes.ended();
    assert.equal(writes.isInCaches(), false);
    assert.deepEqual([...asked.at(-1)!.versions], [["", "50"]]);
  });

  it("cause a question where the answer has no version that can be compared", () => {
    const { resource, asked } = cache();
    const writes = new OwnWrites();
    writes.wrote(resource, "of-another-kind");
    assert.deepEqual([writes.isEmpty, writes.isInCaches()], [false, false]);
    assert.deepEqual([asked[0].unseen, asked[0].answered, asked[0].versions.size], [1, 0, 0]);
  });

  it("are dropped once the cache has them", async () => {
    const resource = {
      has: () => true,
      waitFor: () => Promise.resolve(true),
    } as unknown as CachedResource;
    const writes = new OwnWrites();
    writes.wrote(resource, "10");
    assert.equal(writes.isEmpty, false);
    await writes.settle({ timeoutMs: 1, signal: never });
    assert.equal(writes.isEmpty, true);
  });

  describe("that come while one waits", () => {
    /** A cache that has reached a version, and whose waits and questions end as the test says. */
    const slowCache = () => {
      const cache = {
        reached: "5",
        waits: [] as ((isThere: boolean) => void)[],
        questions: [] as ((version: string) => void)[],
      };
      const resource = {
        has: ({ versions, unseen, answered }: Written) =>
          unseen === answered &&
          [...versions.values()].every((version) => Number(version) <= Number(cache.reached)),
        waitFor: () => new Promise<boolean>((end) => cache.waits.push(end)),
        presentVersion: () => new Promise<string>((end) => cache.questions.push(end)),
      };
      return { cache, resource: resource as unknown as CachedResource };
    };

    it("are waited for, too", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10");
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      writes.wrote(resource, "20");
      cache.reached = "10";
      cache.waits[0](true);
      await settled;
      assert.equal(writes.isInCaches(), false);
      cache.reached = "20";
      assert.equal(writes.isInCaches(), true);
      assert.equal(writes.isEmpty, true);
    });

    it("outlast a wait for earlier ones that ends after them", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10");
      const both = [1, 2].map(() => writes.settle({ timeoutMs: 1, signal: never }));
      cache.reached = "10";
      cache.waits[0](true);
      await both[0];
      writes.wrote(resource, "20");
      cache.waits[1](true);
      await both[1];
      assert.equal(writes.isInCaches(), false);
    });

    it("ask once about a write that may have been made, however often it is waited for", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.unseen(resource);
      const settle = () => writes.settle({ timeoutMs: 1, signal: never });
      const first = settle();
      cache.questions[0]("10");
      await new Promise((resolve) => setTimeout(resolve, 0));
      const second = settle();
      assert.deepEqual([cache.questions.length, cache.waits.length], [1, 2]);
      cache.reached = "10";
      for (const end of cache.waits) end(true);
      await Promise.all([first, second]);
    });

    it("cause another question where they may have been made after the question", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.unseen(resource);
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      writes.unseen(resource);
      cache.reached = "10";
      cache.questions[0]("10");
      await Promise.resolve();
      await Promise.resolve();
      cache.waits[0](true);
      await settled;
      assert.equal(writes.isInCaches(), false);
    });

    it("are waited for where the cache was given up for older ones", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.wrote(resource, "10", "x");
      const settled = writes.settle({ timeoutMs: 1, signal: never });
      cache.waits[0](false);
      await Promise.resolve();
      await Promise.resolve();
      writes.wrote(resource, "20", "x");
      cache.questions[0]("8"); // the server was restored from a backup: 10 may never come
      await settled;
      writes.ended();
      cache.reached = "8";
      assert.equal(writes.isInCaches(), false);
      cache.reached = "20";
      assert.equal(writes.isInCaches(), true);
    });

    it("cause a question of each read that waits for them", async () => {
      const { cache, resource } = slowCache();
      const writes = new OwnWrites();
      writes.unseen(resource);
      const both = [1, 2].map(() => writes.settle({ timeoutMs: 1, signal: never }));
      assert.deepEqual([cache.questions.length, cache.waits.length], [2, 0]);
      cache.reached = "10";
      for (const answer of cache.questions) answer("10");
      await Promise.resolve();
      await Promise.resolve();
      for (const end of cache.waits) end(true);
      await Promise.all(both);
      assert.equal(writes.isInCaches(), true);
    });

    it("cause the question again where it was not answered", async () => {
      const writes = new OwnWrites();
      const { resource } = slowCache();
      const away = Object.assign(resource, { presentVersion: () => Promise.reject(new Error("away")) });
      writes.unseen(away);
      await assert.rejects(writes.settle({ timeoutMs: 1, signal: never }), /away/);
      assert.equal(writes.isInCaches(), false);
    });
  });
});

describe("CachedResource", () => {
  /** A cache of ConfigMaps, of which there is one, and how many observe it. */
  async function startCache() {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const map: KubernetesObject = { metadata: { name: "m", namespace: "shop" } };
    const uid = server.create("v1/configmaps", map).metadata!.uid!;
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const resource = new CachedResource(cluster.resource<KubernetesObject>("v1/configmaps"), {
      clock,
      random: () => 0.5,
      logger: silentLogger,
      metrics: undefined,
      resyncPeriodMs: 0,
      cluster: "",
    });
    const { informer } = resource;
    const observe = informer.observe.bind(informer);
    const observers = new Set<unknown>();
    informer.observe = (observer) => {
      const unobserve = observe(observer);
      observers.add(unobserve);
      return () => {
        observers.delete(unobserve);
        unobserve();
      };
    };
    const running = informer.start();
    await clock.advance(1_000);
    const signal = new CountingSignal();
    const before = clock.pendingTimers;
    return {
      server,
      clock,
      running,
      version: () => informer.indexer.lastStoreSyncResourceVersion(),
      wait: (version: string, deleted: readonly (readonly [string, string])[] = []) =>
        resource.waitFor(
          { versions: new Map([["", version]]), deleted: new Map(deleted), unseen: 0, answered: 0 },
          { timeoutMs: 500, signal: signal.signal },
        ),
      caughtUp: () => resource.caughtUp(clock.monotonicNow(), signal.signal),
      deleted: [["shop/m", uid]] as [string, string][],
      left: () => [clock.pendingTimers - before, signal.listeners, observers.size],
    };
  }

  it("leaves no timer, listener or observer of a wait for what was written before a moment", async () => {
    const cache = await startCache();
    const before = cache.left();
    cache.server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
    let isCaughtUp = false;
    const caughtUp = cache.caughtUp().then(() => isCaughtUp = true);
    await cache.clock.advance(0);
    assert.equal(isCaughtUp, false);
    await cache.clock.advance(1_000);
    assert.equal(await caughtUp, true);
    assert.deepEqual(cache.left(), before);
    const stopped = cache.running.stop();
    await cache.clock.advance(1_000);
    await stopped;
  });

  it("leaves no timer, listener or observer, whether the cache has come to what was written or not", async () => {
    const cache = await startCache();
    const waits = [cache.wait(String(Number(cache.version()) + 1)), cache.wait("1000000", cache.deleted)];
    cache.server.create("v1/configmaps", { metadata: { name: "other", namespace: "shop" } });
    await cache.clock.advance(100);
    assert.equal(await waits[0], true);
    assert.equal(cache.left()[0], 1);
    await cache.clock.advance(400);
    assert.equal(await waits[1], false);
    assert.deepEqual(cache.left(), [0, 0, 0]);
    const seen = cache.wait(cache.version(), cache.deleted);
    cache.server.delete("v1/configmaps", "shop/m");
    await cache.clock.advance(100);
    assert.equal(await seen, true);
    assert.deepEqual(cache.left(), [0, 0, 0]);
    const stopped = cache.running.stop();
    await cache.clock.advance(1_000);
    await stopped;
  });

  it("leaves nothing where the cache stops meanwhile", async () => {
    const cache = await startCache();
    const wait = cache.wait("1000000", cache.deleted);
    const stopped = cache.running.stop();
    await cache.clock.advance(0);
    assert.equal(await wait, false);
    assert.deepEqual(cache.left().slice(1), [0, 0]);
    await cache.clock.advance(1_000);
    await stopped;
    assert.equal(cache.clock.pendingTimers, 0);
  });
});
