import type { Cluster, KubernetesObject } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import { type ControllerDefinition, defineController } from "@listwatch/cache/controller";
import {
  answerStatus,
  FakeClock,
  hang,
  InMemoryApiServer,
  type RecordedRequest,
} from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, startRig, widget, widgetController } from "./rig.ts";
import { WIDGET_RESOURCE, widgetDefinition, WIDGETS } from "../widgets.ts";

const SERVICES = "v1/services";

interface Shared {
  readonly clock: FakeClock;
  readonly server: InMemoryApiServer;
}

function newServer(options: { readonly initialEvents?: "serve" | "refuse" } = {}): Shared {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  return { clock, server: new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE], ...options }) };
}

/** What was read, as `watch widgets`. */
function reads({ requests }: InMemoryApiServer): string[] {
  return requests.filter(({ method }) => method === "GET").map(({ path, isWatch }) =>
    `${isWatch ? "watch" : "get"} ${path.split("/").at(-1)}`
  ).sort();
}

/** Writes to a resource that no controller reads, as the nodes of a cluster do all the time. */
function beBusy({ server, clock }: Shared): () => void {
  server.create(SERVICES, { metadata: { namespace: "shop", name: "busy" } });
  let number = 0;
  let isOver = false;
  const next = () => {
    if (isOver) return;
    server.patch(SERVICES, "shop/busy", { metadata: { labels: { number: `${number++}` } } });
    clock.setTimeout(next, 20);
  };
  next();
  return () => isOver = true;
}

describe("Manager.run: the start", () => {
  it("takes two watches and nothing else when all is as it should be", async () => {
    const shared = newServer();
    const { server } = shared;
    for (let i = 0; i < 20; i++) server.create(WIDGETS, widget(`w${i}`, "red"));
    {
      await using first = startRig(widgetController, {}, shared);
      await first.until(() =>
        server.list("v1/configmaps").items.length === 20 && first.manager.pending === 0
      );
    }
    server.clearRequests();
    await using rig = startRig(widgetController, {}, shared);
    await rig.until(() => rig.manager.status().isLeading);
    await rig.until(() => rig.manager.pending === 0);
    assert.deepEqual(reads(server), ["watch configmaps", "watch widgets"]);
    assert.deepEqual(rig.writes(), []);
  });

  const cases: [title: string, initialEvents: "serve" | "refuse", widgets: number][] = [
    ["of a server that streams lists", "serve", 3],
    ["of a server that does not", "refuse", 3],
    ["of a server that does not, with many objects", "refuse", 600],
  ];
  for (const [title, initialEvents, widgets] of cases) {
    it(`does not wait for a bookmark while other resources are written, ${title}`, async () => {
      const shared = newServer({ initialEvents });
      const { server } = shared;
      for (let i = 0; i < widgets; i++) server.create(WIDGETS, widget(`w${i}`, "red"));
      server.create(SERVICES, { metadata: { namespace: "shop", name: "busy" } });
      let number = 0;
      const fetch: FetchFunction = (url, init) => {
        server.patch(SERVICES, "shop/busy", { metadata: { labels: { number: `${number++}` } } });
        return server.fetch(url, init);
      };
      await using rig = startRig(widgetController, {}, { ...shared, fetch: () => fetch });
      await rig.until(() => rig.manager.status().isLeading, 5_000);
    });
  }

  /** Two copies, of which the second one is to lead while the cluster is busy; returns after how many ms. */
  async function takeOver(
    shared: Shared,
    define: (cluster: Cluster) => ControllerDefinition,
  ): Promise<number> {
    const { clock, server } = shared;
    const start = (identity: string): Rig =>
      startRig(define, { leader: { lease: "widgets", identity } }, shared);
    await using first = start("first");
    await first.until(() => first.manager.status().isLeading);
    await using second = start("second");
    await second.until(() => second.manager.status().hasSynced);
    await first.until(() => first.manager.pending === 0);
    await clock.advance(1_000);
    const endBusy = beBusy(shared);
    await clock.advance(3_000);
    const stopped = first.manager.stop();
    await clock.advance(0);
    await first.until(() => first.manager.status().leader !== "first" || !first.manager.status().isLeading);
    const fromMs = clock.now();
    await second.until(() => second.manager.status().isLeading, 90_000);
    const tookMs = clock.now() - fromMs;
    await stopped;
    endBusy();
    // What is written from now on is seen.
    server.create(WIDGETS, widget("last", "blue"));
    await second.until(() => server.get<KubernetesObject>("v1/configmaps", "shop/widget-last") !== undefined);
    return tookMs;
  }

  it("takes over within a second although other resources are written", async () => {
    const shared = newServer();
    for (let i = 0; i < 20; i++) shared.server.create(WIDGETS, widget(`w${i}`, "red"));
    const tookMs = await takeOver(shared, widgetController);
    assert.ok(tookMs <= 1_100, `${tookMs} ms`);
  });

  it("takes over within seconds with more objects than are compared", async () => {
    const shared = newServer();
    for (let i = 0; i < 600; i++) shared.server.create(WIDGETS, widget(`w${i}`, "red"));
    const tookMs = await takeOver(shared, widgetController);
    assert.ok(tookMs <= 4_000, `${tookMs} ms`);
  });

  it("asks again after 1, 2, 4 and 8 s, then every 15 s, where a cache cannot be confirmed", async () => {
    const shared = newServer({ initialEvents: "refuse" });
    const { clock, server } = shared;
    const askedMs: number[] = [];
    const refuse = (request: RecordedRequest): boolean => {
      const isQuestion = request.path.endsWith("/configmaps") && !request.isWatch &&
        request.query.limit === "1";
      if (isQuestion) askedMs.push(clock.now());
      return isQuestion;
    };
    server.intercept(answerStatus(403), { match: refuse });
    await using rig = startRig(widgetController, {}, shared);
    const warnings = () => rig.lines.filter((line) => line.includes("Cannot confirm the cache")).length;
    await rig.until(() => askedMs.length === 1);
    await clock.advance(10);
    assert.equal(warnings(), 1);
    await rig.until(() => askedMs.length === 7);
    assert.deepEqual(askedMs.slice(1).map((ms, i) => ms - askedMs[i]), [
      1_000,
      2_000,
      4_000,
      8_000,
      15_000,
      15_000,
    ]);
    assert.equal(warnings(), 1);
  });

  it("says nothing of a cache that is not confirmed because of a stop", async () => {
    const shared = newServer({ initialEvents: "refuse" });
    shared.server.intercept(hang(), { match: ({ query }) => query.limit === "1" });
    const rig = startRig(widgetController, {}, shared);
    await shared.clock.advance(1_000);
    assert.deepEqual([rig.manager.status().hasSynced, rig.manager.status().isLeading], [true, false]);
    await rig[Symbol.asyncDispose]();
    assert.equal(await rig.ended, "ended");
    assert.deepEqual(rig.lines, []);
  });

  it("has one informer of a resource that one controller reconciles and others own or watch", async () => {
    const shared = newServer();
    const maps = "v1/configmaps";
    const define = (cluster: Cluster) => [
      defineController({ name: "maps", for: cluster.resource(maps), reconcile: () => {} }),
      widgetController(cluster),
      defineController({
        name: "secrets",
        for: cluster.resource("v1/secrets"),
        watches: { maps: { resource: cluster.resource(maps), keys: () => [] } },
        reconcile: () => {},
      }),
    ];
    await using _rig = startRig(define, {}, shared);
    await shared.clock.advance(1_000);
    assert.deepEqual(reads(shared.server), ["watch configmaps", "watch secrets", "watch widgets"]);
  });

  it("is not ready once it has ended", async () => {
    const rig = startRig(widgetController);
    const ready = async () => await (await rig.manager.fetch(new Request("http://localhost/readyz"))).text();
    await rig.until(() => rig.manager.status().isLeading);
    assert.equal(await ready(), "ok\n");
    await rig[Symbol.asyncDispose]();
    assert.deepEqual(rig.manager.status().problems, ["it has ended"]);
    assert.equal(await ready(), "it has ended\n");
  });

  it("is not ready while a cache is further behind the server than maxLagMs", async () => {
    await using rig = startRig(widgetController, { maxLagMs: 60_000 });
    const ready = async () => (await rig.manager.fetch(new Request("http://localhost/readyz"))).status;
    await rig.until(() => rig.manager.status().isLeading);
    rig.server.intercept(hang());
    rig.server.closeWatches();
    await rig.clock.advance(59_000);
    assert.equal(await ready(), 200);
    await rig.clock.advance(70_000);
    assert.match(rig.manager.status().problems[0], /^the cache of .* is \d+ ms behind the server$/);
    assert.equal(await ready(), 500);
  });

  it("has resyncs for each controller as often as that one wants them", async () => {
    const keys: string[] = [];
    const resynced = (name: string, resyncPeriodMs: number) => (cluster: Cluster) =>
      defineController({
        name,
        for: cluster.resource<KubernetesObject>(WIDGETS),
        resyncPeriodMs,
        reconcile: () => void keys.push(name),
      });
    await using rig = startRig((cluster) => [
      resynced("seldom", 100_000)(cluster),
      resynced("often", 20_000)(cluster),
    ]);
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(90_000);
    assert.equal(keys.filter((name) => name === "seldom").length, 1);
    assert.equal(keys.filter((name) => name === "often").length, 5);
  });

  it("refuses two controllers of one name, which would share a queue's metrics and fields of objects", () => {
    assert.throws(
      () => startRig((cluster) => [widgetController(cluster), widgetController(cluster)]),
      /Cannot make a manager: two controllers are named widgets/,
    );
  });

  it("waits for a resource that comes with its definition, and again when that was deleted", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock });
    const keys: string[] = [];
    await using rig = startRig(
      (cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource(WIDGETS),
          reconcile: (_, { key }) => void keys.push(key),
        }),
      {},
      { server, clock },
    );
    await clock.advance(5_000);
    assert.match(
      rig.manager.status().problems[0],
      /no API group "example.com": is its definition \(CRD\) installed\?/,
    );
    for (const name of ["a", "b"]) {
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", widgetDefinition());
      server.create(WIDGETS, widget(name, "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => keys.at(-1) === `shop/${name}`, 60_000);
      server.delete("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets.example.com");
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(20_000);
      assert.deepEqual(rig.manager.caches[0].informer.indexer.listKeys(), []);
    }
    assert.deepEqual(keys, ["shop/a", "shop/b"]);
  });
});
