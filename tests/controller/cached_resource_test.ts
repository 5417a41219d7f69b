import { type KubernetesObject, type Logger, NamespaceSet, newCluster, silentLogger } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import {
  answerStatus,
  delayRequest,
  FakeClock,
  InMemoryApiServer,
  type RecordedRequest,
} from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CachedResource, OWNER_INDEX, type Written } from "../../src/controller/cached_resource.ts";
import { LogRecorder } from "../log_recorder.ts";
import { SlowWatches } from "./rig.ts";

const MAPS = "v1/configmaps";

interface Options {
  readonly namespace?: string;
  readonly namespaces?: NamespaceSet;
  readonly cluster?: string;
  readonly metadataOnly?: boolean;
  readonly logger?: Logger;
  readonly fetch?: (server: InMemoryApiServer) => FetchFunction;
}

/** The cache of a resource of an empty server, which does not run yet. */
function newCache(
  { namespace, namespaces, cluster = "", metadataOnly = false, logger = silentLogger, fetch }: Options = {},
  of: typeof MAPS | "v1/nodes" = MAPS,
) {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const where = { metadataOnly, ...(namespaces ? { namespaces } : namespace ? { namespace } : {}) };
  const from = newCluster({
    server: "http://in-memory",
    fetch: fetch?.(server) ?? server.fetch,
    clock,
  });
  const cache = new CachedResource(from.resource<KubernetesObject>(of, where as { namespace?: string }), {
    clock,
    random: () => 0.5,
    logger,
    metrics: undefined,
    resyncPeriodMs: 0,
    cluster,
  });
  const asked: string[] = [];
  let startMs = 0;
  server.intercept((request, next) => {
    const { pathname, searchParams } = new URL(request.url);
    const kind = searchParams.has("watch") ? "watch" : searchParams.get("limit") ?? "";
    asked.push(`${clock.now() - startMs} ${pathname.split("/").slice(-3).join("/")} ${kind}`.trimEnd());
    return next(request);
  });
  return {
    clock,
    server,
    cache,
    never: new AbortController().signal,
    map: (name: string, of = "shop") =>
      server.create<KubernetesObject>(MAPS, { metadata: { name, namespace: of } }),
    /** What was requested since it was called last, with the times since then. */
    asked(): string[] {
      startMs = clock.now();
      return asked.splice(0);
    },
    async run(test: () => Promise<void>): Promise<void> {
      const running = cache.informer.start();
      await clock.advance(1_000);
      try {
        await test();
      } finally {
        const stopped = running.stop();
        await clock.advance(1_000);
        await stopped;
        server.close();
      }
    },
  };
}

const written = (of: Partial<Written>): Written => ({
  versions: new Map(),
  deleted: new Map(),
  unseen: 0,
  answered: 0,
  ...of,
});

describe("CachedResource.name", () => {
  it("has the cluster, the resource and where it is", () => {
    assert.equal(newCache().cache.name, "v1/configmaps");
    assert.equal(newCache({ namespace: "shop" }).cache.name, "v1/configmaps in shop");
    const { cache } = newCache({ namespaces: new NamespaceSet(["a", "b"]), cluster: "eu-1" });
    assert.deepEqual([cache.name, cache.informer.name], [
      "eu-1: v1/configmaps in 2 namespaces",
      "eu-1: v1/configmaps in 2 namespaces",
    ]);
  });
});

describe("CachedResource.addIndexers", () => {
  it("adds those that are not there, and refuses another function under the name of one", () => {
    const { cache } = newCache();
    const byName = ({ metadata }: KubernetesObject) => [metadata?.name ?? ""];
    cache.addIndexers({ byName });
    cache.addIndexers({ byName, byNone: () => [] });
    assert.deepEqual(Object.keys(cache.informer.indexer.getIndexers()).sort(), [
      "byName",
      "byNone",
      OWNER_INDEX,
    ]);
    assert.throws(() => cache.addIndexers({ byName: () => [] }), {
      name: "TypeError",
      message:
        'Cannot index v1/configmaps by "byName": two controllers have different functions of this name; ' +
        "give both the same `indexed(...)`, or two names",
    });
  });
});

describe("CachedResource.informer", () => {
  it("logs to the manager's logger", async () => {
    const logger = new LogRecorder();
    const { run, server } = newCache({ logger });
    server.intercept(answerStatus(403));
    await run(() => Promise.resolve());
    assert.notDeepEqual(logger.lines, []);
  });
});

describe("CachedResource.applied", () => {
  it("is remembered while an object changes, and forgotten at its delete, that of a relist, too", async () => {
    const { cache, run, map, server, clock } = newCache();
    for (const name of ["deleted", "missed", "kept"]) {
      map(name);
      cache.applied.set("x", `shop/${name}`, "it");
    }
    const known = () =>
      ["deleted", "missed", "kept"].filter((name) => cache.applied.get("x", `shop/${name}`) !== undefined);
    await run(async () => {
      server.patch(MAPS, "shop/kept", { data: { a: "1" } });
      server.delete(MAPS, "shop/deleted");
      await clock.advance(0);
      assert.deepEqual(known(), ["missed", "kept"]);
      const restore = server.intercept(answerStatus(503));
      server.closeWatches({ reset: true });
      server.delete(MAPS, "shop/missed");
      server.compact();
      await clock.advance(1_000);
      assert.deepEqual(known(), ["missed", "kept"]);
      restore();
      await clock.advance(60_000);
      assert.deepEqual(known(), ["kept"]);
    });
  });
});

describe("CachedResource.description", () => {
  it("is that of any object in the cache, without a request", async () => {
    const { cache, map, run, never, asked, server } = newCache();
    map("m");
    await run(async () => {
      asked();
      const maps = { apiVersion: "v1", kind: "ConfigMap", isNamespaced: true };
      assert.deepEqual(await cache.description(never), maps);
      server.delete(MAPS, "shop/m");
      assert.deepEqual(await cache.description(never), maps);
      assert.deepEqual(asked(), []);
    });
    const nodes = newCache({}, "v1/nodes");
    nodes.server.create("v1/nodes", { metadata: { name: "n" } });
    await nodes.run(async () => {
      nodes.asked();
      assert.deepEqual(await nodes.cache.description(nodes.never), {
        apiVersion: "v1",
        kind: "Node",
        isNamespaced: false,
      });
      assert.deepEqual(nodes.asked(), []);
    });
  });

  it("is requested once for all that wait for it, where the cache has nothing, and not again", async () => {
    const { cache, run, never, asked, server, clock } = newCache();
    await run(async () => {
      asked();
      server.intercept(delayRequest(1_000), { match: ({ path }) => path === "/api/v1" });
      const ending = new AbortController();
      const [one, other] = [cache.description(ending.signal), cache.description(never)];
      await clock.advance(500);
      ending.abort(new Error("too late"));
      await assert.rejects(one, /too late/);
      const third = cache.description(never);
      await clock.advance(500);
      const maps = { apiVersion: "v1", kind: "ConfigMap", isNamespaced: true };
      assert.deepEqual([await other, await third, await cache.description(never)], [maps, maps, maps]);
      assert.deepEqual(asked(), ["0 /api/v1"]);
    });
  });

  it("is requested where the cache has metadata only, whose kind is not the objects' own", async () => {
    const { cache, map, run, never, asked } = newCache({ metadataOnly: true });
    map("m");
    await run(async () => {
      asked();
      assert.equal((await cache.description(never)).kind, "ConfigMap");
      assert.deepEqual(asked(), ["0 /api/v1"]);
    });
  });

  it("is requested again after a failure", async () => {
    const { cache, run, never, asked, server } = newCache();
    await run(async () => {
      asked();
      server.intercept(answerStatus(503), { match: ({ path }) => path === "/api/v1", times: 1 });
      await assert.rejects(cache.description(never));
      assert.equal((await cache.description(never)).kind, "ConfigMap");
      assert.equal((await cache.description(never)).kind, "ConfigMap");
    });
  });
});

describe("CachedResource.covers", () => {
  it("is true for the namespaces that the cache has", () => {
    const asked = ["a", "b", "c", ""];
    const of = (options: Options) => asked.filter((namespace) => newCache(options).cache.covers(namespace));
    assert.deepEqual(of({}), asked);
    assert.deepEqual(of({ namespace: "a" }), ["a"]);
    assert.deepEqual(of({ namespaces: new NamespaceSet(["a", "b"]) }), ["a", "b"]);
  });
});

describe("CachedResource.presentVersion", () => {
  it("is that of the server, of one namespace where there is a set of them", async () => {
    for (
      const [options, path] of [
        [{}, "api/v1/configmaps 1"],
        [{ namespace: "shop" }, "namespaces/shop/configmaps 1"],
        [{ namespaces: new NamespaceSet(["b", "a"]) }, "namespaces/b/configmaps 1"],
      ] as const
    ) {
      const { cache, never, asked, map } = newCache(options);
      const version = map("m").metadata!.resourceVersion;
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal(await cache.presentVersion(never), version);
      assert.deepEqual(asked(), [`0 ${path}`]);
    }
    const none = newCache({ namespaces: new NamespaceSet([]) });
    assert.equal(await none.cache.presentVersion(none.never), "1");
    assert.deepEqual(none.asked(), []);
  });

  it("fails where the answer has no version", async () => {
    const { cache, never, server } = newCache();
    server.intercept(() => Response.json({ metadata: {}, items: [] }));
    await assert.rejects(cache.presentVersion(never), /the list has no resourceVersion/);
  });

  it("ends with its signal", async () => {
    const { cache } = newCache();
    await assert.rejects(cache.presentVersion(AbortSignal.abort(new Error("over"))), /over/);
  });
});

describe("CachedResource.caughtUp", () => {
  it("asks nothing where what is there is from after the moment", async () => {
    const { cache, run, never, asked, clock } = newCache();
    await run(async () => {
      const consistentMs = cache.informer.consistentMs()!;
      asked();
      await cache.caughtUp(consistentMs, never);
      assert.deepEqual(asked(), []);
      const late = cache.caughtUp(consistentMs + 1, never);
      await clock.advance(0);
      await late;
      assert.deepEqual(asked(), ["0 api/v1/configmaps 1"]);
    });
  });

  it("compares all objects 20 ms later, and 20 ms after the answer, where other resources are written", async () => {
    const { cache, run, never, asked, clock, server, map } = newCache();
    map("m");
    await run(async () => {
      server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
      asked();
      let isOver = false;
      void cache.caughtUp(clock.monotonicNow(), never).then(() => isOver = true);
      await clock.advance(39);
      assert.equal(isOver, false);
      await clock.advance(1);
      assert.equal(isOver, true);
      assert.deepEqual(asked(), ["0 api/v1/configmaps 1", "20 api/v1/configmaps 500"]);
    });
  });

  it("compares again after 40 ms, twice as long each time and 2 s at most, and ends with its signal", async () => {
    let watches!: SlowWatches;
    const fetch = (server: InMemoryApiServer) => {
      watches = new SlowWatches(server, () => true);
      return watches.fetch;
    };
    const { cache, run, asked, clock, map } = newCache({ fetch });
    await run(async () => {
      watches.hold();
      map("m");
      asked();
      const ending = new AbortController();
      const caughtUp = cache.caughtUp(clock.monotonicNow(), ending.signal);
      await clock.advance(6_800);
      const times = [20, 80, 180, 360, 700, 1_360, 2_660, 4_680, 6_700];
      const compared = times.map((ms) => `${ms} api/v1/configmaps 500`);
      assert.deepEqual(asked().filter((line) => !line.endsWith("watch")), [
        "0 api/v1/configmaps 1",
        ...compared,
      ]);
      const timers = clock.pendingTimers;
      ending.abort(new Error("over"));
      await assert.rejects(caughtUp, /over/);
      assert.equal(clock.pendingTimers, timers - 1);
      watches.release();
    });
  });

  it("has a short watch in place of a comparison of more objects than a page has", async () => {
    const { cache, run, never, asked, clock, server, map } = newCache();
    for (let i = 0; i < 501; i++) map(`m${i}`);
    await run(async () => {
      server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
      asked();
      let isOver = false;
      void cache.caughtUp(clock.monotonicNow(), never).then(() => isOver = true);
      await clock.advance(4_000);
      assert.equal(isOver, true);
      const [present, compared, watched] = asked();
      assert.deepEqual([present, compared], ["0 api/v1/configmaps 1", "20 api/v1/configmaps 500"]);
      assert.equal(watched, "20 api/v1/configmaps watch");
    });
  });

  it("gives up what it asks as its signal is aborted: a comparison, the wait after it, and a short watch", async () => {
    for (const [what, asksMs, count] of [["list", 20, 1], ["pause", 30, 1], ["watch", 20, 501]] as const) {
      const { cache, run, clock, server, map } = newCache();
      for (let i = 0; i < count; i++) map(`m${i}`);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await run(async () => {
        server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
        let given: AbortSignal | undefined;
        const match = ({ query }: RecordedRequest) =>
          what === "list" ? query.limit === "500" : query.timeoutSeconds === "3";
        server.intercept((request) => {
          given = request.signal;
          return new Promise<Response>(() => {});
        }, { match });
        const ending = new AbortController();
        const caughtUp = cache.caughtUp(clock.monotonicNow(), ending.signal);
        await clock.advance(asksMs);
        assert.equal(given !== undefined, what !== "pause", what);
        const timers = clock.pendingTimers;
        ending.abort();
        await assert.rejects(caughtUp);
        await clock.advance(0);
        if (what === "pause") assert.equal(clock.pendingTimers, timers - 1);
        else assert.equal(given!.aborted, true, what);
      });
    }
  });

  it("says of a proof by the state that it is one", async () => {
    const { cache, run, never, clock, server } = newCache();
    await run(async () => {
      server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
      const { informer } = cache;
      const after = informer.indexer.lastStoreSyncResourceVersion();
      const { proven } = informer;
      const proofs: unknown[] = [];
      informer.proven = (proof) => {
        proofs.push({ ...proof, asked: undefined });
        return proven.call(informer, proof);
      };
      const caughtUp = cache.caughtUp(clock.monotonicNow(), never);
      await clock.advance(40);
      await caughtUp;
      assert.deepEqual(proofs, [{ after, through: server.resourceVersion, asked: undefined, byState: true }]);
    });
  });

  it("has another short watch where one ends without a bookmark", async () => {
    const { cache, run, never, asked, clock, server, map } = newCache();
    for (let i = 0; i < 501; i++) map(`m${i}`);
    await run(async () => {
      server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
      const match = ({ query }: RecordedRequest) => query.timeoutSeconds === "3";
      server.intercept(() => new Response(""), { match, times: 1 });
      asked();
      let isOver = false;
      void cache.caughtUp(clock.monotonicNow(), never).then(() => isOver = true);
      await clock.advance(4_000);
      assert.equal(isOver, true);
      assert.deepEqual(
        asked(),
        ["0 1", "20 500", "20 watch", "60 500", "60 watch"].map((line) => {
          const [ms, what] = line.split(" ");
          return `${ms} api/v1/configmaps ${what}`;
        }),
      );
    });
  });

  it("waits for the changes that come on a short watch", async () => {
    let watches!: SlowWatches;
    const fetch = (server: InMemoryApiServer): FetchFunction => {
      watches = new SlowWatches(server, () => true);
      return (url, init) => (url.includes("timeoutSeconds=3&") ? server : watches).fetch(url, init);
    };
    const { cache, run, never, clock, server, map } = newCache({ fetch });
    for (let i = 0; i < 501; i++) map(`m${i}`);
    await run(async () => {
      watches.hold();
      map("late");
      server.create("v1/services", { metadata: { name: "other", namespace: "shop" } });
      let isOver = false;
      void cache.caughtUp(clock.monotonicNow(), never).then(() => isOver = true);
      await clock.advance(5_000);
      assert.equal(isOver, false);
      watches.release();
      await clock.advance(100);
      assert.equal(isOver, true);
      assert.notEqual(cache.informer.indexer.getByKey("shop/late"), undefined);
    });
  });

  it("looks at each namespace of a set by itself", async () => {
    const { cache, run, never, asked, clock, map } = newCache({ namespaces: new NamespaceSet(["a", "b"]) });
    await run(async () => {
      map("m", "a");
      await clock.advance(0);
      asked();
      const caughtUp = cache.caughtUp(clock.monotonicNow(), never);
      await clock.advance(40);
      await caughtUp;
      assert.deepEqual(asked(), ["0 namespaces/a/configmaps 1", "20 namespaces/b/configmaps 500"]);
    });
  });
});

describe("CachedResource.has", () => {
  it("is false for what may have been written, and for a version that it has not reached", async () => {
    const { cache, run, map } = newCache({ namespace: "shop" });
    assert.equal(cache.has(written({ versions: new Map([["", "0"]]) })), false);
    const version = map("m").metadata!.resourceVersion!;
    const next = String(Number(version) + 1);
    await run(() => {
      assert.equal(cache.has(written({})), true);
      assert.equal(cache.has(written({ unseen: 1 })), false);
      assert.equal(cache.has(written({ unseen: 1, answered: 1 })), true);
      for (const namespace of ["", "shop"]) {
        assert.equal(cache.has(written({ versions: new Map([[namespace, version]]) })), true);
        assert.equal(cache.has(written({ versions: new Map([[namespace, next]]) })), false);
        const both = new Map([[namespace, version], ["other", next]]);
        assert.equal(cache.has(written({ versions: both })), true, "it does not have that namespace");
      }
      return Promise.resolve();
    });
  });

  it("is false for a delete that it has not seen: of this object, not of another one of the name", async () => {
    const { cache, run, server } = newCache();
    const finalizers = ["example.com/other"];
    const { uid = "" } = server.create<KubernetesObject>(MAPS, {
      metadata: { name: "m", namespace: "shop", finalizers },
    })
      .metadata!;
    const of = (key: string, uid: string) => written({ deleted: new Map([[key, uid]]) });
    await run(async () => {
      assert.equal(cache.has(of("shop/m", uid)), false);
      assert.equal(cache.has(of("shop/m", "another")), true);
      assert.equal(cache.has(of("shop/n", uid)), true);
      server.delete(MAPS, "shop/m");
      await Promise.resolve();
    });
  });
});

describe("CachedResource.waitFor", () => {
  const inTime = (signal: AbortSignal) => ({ timeoutMs: 500, signal });

  it("sees an object that shows that it is being deleted", async () => {
    const { cache, run, server, clock, never } = newCache();
    const finalizers = ["example.com/other"];
    const { uid = "" } = server.create<KubernetesObject>(MAPS, {
      metadata: { name: "m", namespace: "shop", finalizers },
    })
      .metadata!;
    await run(async () => {
      const seen = cache.waitFor(written({ deleted: new Map([["shop/m", uid]]) }), inTime(never));
      server.delete(MAPS, "shop/m");
      await clock.advance(0);
      assert.equal(await seen, true);
    });
  });

  it("waits for each namespace, and for each delete", async () => {
    const namespaces = new NamespaceSet(["a", "b"]);
    const { cache, run, map, server, clock, never } = newCache({ namespaces });
    const uids = ["a", "b"].map((namespace) => map("m", namespace).metadata!.uid!);
    await run(async () => {
      const deleted = new Map([["a/m", uids[0]], ["b/m", uids[1]]]);
      const ends: boolean[] = [];
      void cache.waitFor(written({ deleted }), inTime(never)).then((end) => ends.push(end));
      server.delete(MAPS, "a/m");
      await clock.advance(10);
      assert.deepEqual(ends, []);
      server.delete(MAPS, "b/m");
      await clock.advance(10);
      assert.deepEqual(ends, [true]);
      const version = map("n", "a").metadata!.resourceVersion!;
      await clock.advance(10);
      for (const [namespace, isThere] of [["a", true], ["b", false], ["", false], ["c", true]] as const) {
        const waits = cache.waitFor(written({ versions: new Map([[namespace, version]]) }), inTime(never));
        // deno-lint-ignore no-await-in-loop -- one after the other
        await clock.advance(500);
        // deno-lint-ignore no-await-in-loop -- one after the other
        assert.equal(await waits, isThere, namespace);
      }
    });
  });

  it("ends with its signal, and passes on what else the wait fails with", async () => {
    const { cache, run, clock, never } = newCache();
    await run(async () => {
      const ending = new AbortController();
      const waits = cache.waitFor(written({ versions: new Map([["", "1000000"]]) }), inTime(ending.signal));
      await clock.advance(10);
      ending.abort();
      assert.equal(await waits, false);
      const { informer } = cache;
      informer.waitForVersion = () => Promise.reject(new Error("of another kind"));
      const failed = cache.waitFor(written({ versions: new Map([["", "1000000"]]) }), inTime(never));
      await assert.rejects(failed, /of another kind/);
    });
  });
});
