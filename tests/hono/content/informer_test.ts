import assert from "node:assert/strict";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { InMemoryApiServer, node, pod, type RecordedRequest } from "@listwatch/cache/testing";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { get, names, WatchReader } from "../reading.ts";
import { describe, it, storage } from "../storages.ts";
import { readApi } from "../read_api.ts";

/** An API server in memory, an informer of its pods, and the informer served. */
function chain(
  clock?: FakeClock,
  transform?: (object: KubernetesObject) => KubernetesObject,
) {
  clock ??= new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const informer = informerOf(server.fetch, clock, transform);
  const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true, clock });
  return { clock, server, informer, api };
}

function informerOf(
  fetch: (input: Request) => Promise<Response>,
  clock: FakeClock,
  transform?: (object: KubernetesObject) => KubernetesObject,
) {
  const cluster = newCluster({
    server: "http://in-memory",
    fetch: (input, init) => fetch(new Request(input, init)),
  });
  return new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/pods"), {
    clock,
    logger: silentLogger,
    storage: storage(),
    ...(transform && { transform }),
  });
}

const version = (one: KubernetesObject) =>
  `${one.metadata?.namespace}/${one.metadata?.name}@${one.metadata?.resourceVersion}`;

const isInitial = ({ isWatch, query }: RecordedRequest) => !isWatch || query.sendInitialEvents === "true";

describe("SharedIndexInformer behind readApi", () => {
  it("is not ready after two minutes without news from its API server, by whichever clock", async () => {
    const { informer, api, clock } = chain();
    const readyz = async () => (await api.request("/readyz")).status;
    await using _running = informer.start();
    await informer.synced();
    await clock.advance(0);
    assert.equal(await readyz(), 200);
    // Frozen: not a single timer fires, and the first thing that happens is the question.
    clock.setWallClock(clock.now() + 120_000);
    assert.equal(await readyz(), 200);
    clock.setWallClock(clock.now() + 1_000);
    assert.equal(await readyz(), 503);
    assert.match(
      await (await api.request("/readyz")).text(),
      /informer\/pods failed: no news from the API server for 121 s, 1 s more than the maximum of 120 s; watching/,
    );
    await clock.advance(15_000); // it notices, and opens its watch again, which shows nothing
    assert.equal(await readyz(), 503);
    await clock.advance(60_000); // a bookmark
    assert.equal(await readyz(), 200);
    assert.equal(informer.isFresh(60_000), true);
  });

  it("that has stopped is not ready, and a read at a version that it never reaches is answered at once", async () => {
    const { informer, api, clock } = chain();
    const running = informer.start();
    await informer.synced();
    await clock.advance(0);
    const waiting = api.request("/api/v1/pods?resourceVersion=999999");
    await clock.advance(0);
    const stopping = running.stop();
    await clock.advance(0);
    await stopping;
    assert.equal((await waiting).status, 504);
    assert.match(await (await api.request("/readyz")).text(), /informer\/pods failed: stopped/);
    // The clock does not move: nothing that waits would ever end.
    assert.equal((await api.request("/api/v1/pods?resourceVersion=999999")).status, 504);
  });

  it("is ready for as long as its options say", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const informer = informerOf(server.fetch, clock);
    const served = { resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true, clock };
    const [strict, lenient] = [1_000, Infinity].map((maxLagMs) => readApi({ ...served, maxLagMs }));
    assert.throws(() => readApi({ ...served, maxLagMs: NaN }), RangeError);
    const running = informer.start();
    await informer.synced();
    await clock.advance(0);
    await clock.advance(1_001);
    assert.equal((await strict.request("/readyz")).status, 503);
    await clock.jump(10_000_000);
    assert.equal((await lenient.request("/readyz")).status, 200);
    const stopped = running.stop();
    await clock.advance(0);
    await stopped;
    server.close();
  });

  it("is not ready before its first list, and then says what the API server says", async () => {
    const { server, informer, api, clock } = chain();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    assert.equal((await api.request("/readyz")).status, 503);
    await using _running = informer.start();
    await informer.synced();
    await clock.advance(0);
    assert.equal((await api.request("/readyz")).status, 200);
    const [served, real] = await Promise.all([
      get(api, "/api/v1/namespaces/shop/pods/web-1"),
      server.fetch("http://in-memory/api/v1/namespaces/shop/pods/web-1").then((response) => response.json()),
    ]);
    assert.deepEqual(served, real);
    server.close();
  });

  it("hands on every event of its watch, in order, with the API server's resourceVersions", async () => {
    const { server, informer, api, clock } = chain();
    await using _running = informer.start();
    await informer.synced();
    await clock.advance(0);
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=1");
    const seen: string[] = [];
    for (let i = 0; i < 5; i++) {
      const created = server.create("v1/pods", pod(`p-${i}`, { namespace: "shop" }));
      seen.push(`ADDED shop/p-${i} ${created.metadata?.resourceVersion}`);
    }
    server.delete("v1/pods", "shop/p-2");
    seen.push(`DELETED shop/p-2 ${server.resourceVersion}`);
    await clock.advance(0);
    assert.deepEqual(await watch.lines(6), seen);
    await watch.cancel();
    server.close();
  });

  it("has a delete whose object the transform refuses at the delete's resourceVersion, and no earlier", async () => {
    let refused = "";
    const { server, informer, api, clock } = chain(undefined, (object) => {
      if (object.metadata?.resourceVersion === refused) throw new Error("refused");
      return object;
    });
    await using _running = informer.start();
    server.create("v1/pods", pod("a", { namespace: "shop" }));
    await informer.synced();
    await clock.advance(0);
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=1&resourceVersion=0");
    await watch.lines(1);
    const lists: Promise<string>[] = [];
    const unobserve = informer.observe(() => {
      lists.push(get(api, "/api/v1/pods").then((list) => `${names(list)} ${list.metadata.resourceVersion}`));
    });
    refused = String(Number(server.resourceVersion) + 2);
    server.create("v1/pods", pod("b", { namespace: "shop" }));
    const created = server.resourceVersion;
    server.delete("v1/pods", "shop/a");
    assert.equal(server.resourceVersion, refused);
    await clock.advance(0);
    assert.deepEqual(await watch.lines(2), [`ADDED shop/b ${created}`, `DELETED shop/a ${refused}`]);
    const before = `shop/a,shop/b ${created}`;
    const after = `shop/b ${refused}`;
    for (const list of await Promise.all(lists)) assert.ok(list === before || list === after, list);
    unobserve();
    await watch.cancel();
    server.close();
  });

  it("is, once synced, at a resourceVersion from which a watch can resume", async () => {
    const { server, informer, api, clock } = chain();
    server.create("v1/pods", pod("a", { namespace: "shop" }));
    await using _running = informer.start();
    await informer.synced();
    await clock.advance(0);
    const list = await get(api, "/api/v1/pods");
    assert.equal(list.metadata.resourceVersion, server.resourceVersion);
    server.create("v1/pods", pod("b", { namespace: "shop" }));
    await clock.advance(0);
    const watch = await WatchReader.open(
      api,
      `/api/v1/pods?watch=1&resourceVersion=${list.metadata.resourceVersion}`,
    );
    assert.deepEqual(await watch.lines(1), [`ADDED shop/b ${server.resourceVersion}`]);
    await watch.cancel();
    server.close();
  });

  it("feeds an informer of its own kind, through relists too", async () => {
    const { server, informer, api, clock } = chain();
    for (let i = 0; i < 30; i++) {
      server.create("v1/pods", pod(`p-${i}`, { namespace: i % 2 ? "shop" : "shop-2" }));
    }
    await using _running = informer.start();
    const second = informerOf((request) => Promise.resolve(api.fetch(request)), clock);
    await using _second = second.start();
    await clock.advance(5_000);
    const same = () =>
      assert.deepEqual(
        second.indexer.list().map(version).sort(),
        server.list("v1/pods").items.map(version).sort(),
      );
    assert.equal(second.hasSynced(), true);
    same();

    for (let i = 0; i < 30; i += 3) server.delete("v1/pods", i % 2 ? `shop/p-${i}` : `shop-2/p-${i}`);
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    await clock.advance(1_000);
    same();

    // The API server compacts its history and closes its watches: the first
    // informer lists again, the second receives that.
    server.closeWatches({ reset: true });
    server.create("v1/pods", pod("unseen", { namespace: "shop" }));
    server.delete("v1/pods", "shop/p-1");
    server.compact();
    const listsBefore = server.requests.filter(isInitial).length;
    await clock.advance(60_000);
    assert.ok(server.requests.filter(isInitial).length > listsBefore, "it has listed again");
    same();
    server.close();
  });

  it("feeds a cache above it no state that the API server never had: a relist is one there, too", async () => {
    const { server, informer, api, clock } = chain();
    for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
    await using _running = informer.start();
    const second = informerOf((request) => Promise.resolve(api.fetch(request)), clock);
    const contents: string[] = [];
    second.observe(() => void contents.push(second.indexer.listKeys().sort().join()));
    await using _second = second.start();
    await clock.advance(5_000);
    server.closeWatches({ reset: true });
    server.delete("v1/pods", "shop/a");
    server.create("v1/pods", pod("d", { namespace: "shop" }));
    server.delete("v1/pods", "shop/b");
    server.create("v1/pods", pod("a", { namespace: "shop" }));
    server.compact();
    await clock.advance(60_000);
    assert.deepEqual([...new Set(contents)], ["shop/a,shop/b,shop/c", "shop/a,shop/c,shop/d"]);
    server.close();
  });

  it("leaves no timer and no observer when everything has stopped", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const informer = informerOf(server.fetch, clock);
    const controller = new AbortController();
    const { signal } = controller;
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock,
      signal,
    });
    const running = informer.start();
    await informer.synced();
    await clock.advance(0);
    const watch = await WatchReader.open(
      api,
      "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300",
    );
    controller.abort();
    await running.stop();
    await watch.toEnd();
    server.close();
    await settle();
    assert.equal(clock.pendingTimers, 0);
  });

  it("serves several resources, each at its own resourceVersion", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const options = { clock, logger: silentLogger, storage: storage() };
    const pods = new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/pods"), options);
    const nodes = new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/nodes"), options);
    const api = readApi({
      resources: [{ informer: pods, resource: "v1/pods" }, { informer: nodes, resource: "v1/nodes" }],
      allowAnonymous: true,
      clock,
    });
    await using _pods = pods.start();
    await using _nodes = nodes.start();
    server.create("v1/nodes", node("n1"));
    server.create("v1/pods", pod("web-1", { namespace: "shop", nodeName: "n1" }));
    await clock.advance(0);
    assert.deepEqual(names(await get(api, "/api/v1/nodes")), ["n1"]);
    assert.deepEqual(names(await get(api, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")), ["shop/web-1"]);
    server.close();
  });
});
