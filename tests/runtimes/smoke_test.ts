/**
 * The whole way, on every runtime: an informer list-watches the API server in memory
 * through `fetch`, notifies its handlers of changes, and is served over HTTP to a
 * second informer. Time is a fake clock's throughout.
 *
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  newCluster,
  parseResource,
  SharedIndexInformer,
  silentLogger,
  StatusError,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { itemExponentialFailureRateLimiter, RateLimitingQueue } from "@listwatch/cache/workqueue";

type Pod = KubernetesObject & { spec?: { nodeName?: string } };

/** Gives streams, timers and pumps their turns until `condition` holds. */
async function until(
  condition: () => boolean,
  clock: FakeClock,
  what: string,
): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (condition()) return;
    await clock.advance(turn < 50 ? 0 : 100);
  }
  assert.fail(`never came: ${what}`);
}

function newWorld(): {
  clock: FakeClock;
  server: InMemoryApiServer;
  informer: SharedIndexInformer<Pod, "byNode">;
} {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  server.create(
    "v1/pods",
    pod("web-1", { namespace: "shop", nodeName: "node-1" }),
  );
  server.create(
    "v1/pods",
    pod("web-2", { namespace: "shop", nodeName: "node-2" }),
  );
  server.create(
    "v1/pods",
    pod("dns-1", { namespace: "kube-system", nodeName: "node-1" }),
  );
  const cluster = newCluster({
    server: "http://in-memory",
    fetch: server.fetch,
    clock,
  });
  const informer = new SharedIndexInformer(cluster.resource<Pod>("v1/pods"), {
    indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] },
    clock,
    logger: silentLogger,
  });
  return { clock, server, informer };
}

/** Records what a handler receives. */
function record(informer: SharedIndexInformer<Pod, "byNode">): string[] {
  const received: string[] = [];
  informer.addEventHandler({
    onAdd: (object, isInInitialList) =>
      void received.push(
        `${isInInitialList ? "found" : "added"} ${object.metadata?.name}`,
      ),
    onUpdate: (oldObject, newObject) =>
      void received.push(
        `${newObject.metadata?.name} ${oldObject.spec?.nodeName} -> ${newObject.spec?.nodeName}`,
      ),
    onDelete: (deleted) =>
      void received.push(
        `${deleted.finalStateUnknown ? "lost" : "deleted"} ${deleted.key}`,
      ),
  });
  return received;
}

function storeOf(informer: SharedIndexInformer<Pod, "byNode">): string[] {
  return informer.indexer.list().map(({ metadata }) =>
    `${metadata?.namespace}/${metadata?.name} ${metadata?.resourceVersion}`
  )
    .sort();
}

function truthOf(server: InMemoryApiServer): string[] {
  return server.list("v1/pods").items.map(({ metadata }) =>
    `${metadata?.namespace}/${metadata?.name} ${metadata?.resourceVersion}`
  ).sort();
}

describe("SharedIndexInformer", () => {
  it("lists the present objects, and finds them by index", async () => {
    const { clock, server, informer } = newWorld();
    const received = record(informer);
    const running = informer.start();
    await until(() => informer.hasSynced() && received.length === 3, clock, "the initial list");

    assert.deepEqual(storeOf(informer), truthOf(server));
    assert.deepEqual([...received].sort(), [
      "found dns-1",
      "found web-1",
      "found web-2",
    ]);
    assert.deepEqual(
      informer.indexer.byIndex("byNode", "node-1").map(({ metadata }) => metadata?.name).sort(),
      [
        "dns-1",
        "web-1",
      ],
    );
    await running.stop();
    server.close();
  });

  it("notifies handlers of changes in their order", async () => {
    const { clock, server, informer } = newWorld();
    const received = record(informer);
    const running = informer.start();
    await until(() => informer.hasSynced() && received.length === 3, clock, "the initial list");

    server.create(
      "v1/pods",
      pod("web-3", { namespace: "shop", nodeName: "node-2" }),
    );
    server.patch("v1/pods", "shop/web-1", { spec: { nodeName: "node-2" } });
    server.delete("v1/pods", "shop/web-2");
    server.patch("v1/pods", "shop/web-3", { spec: { nodeName: "node-3" } });
    await until(() => received.length === 7, clock, "four changes");

    assert.deepEqual(received.slice(3), [
      "added web-3",
      "web-1 node-1 -> node-2",
      "deleted shop/web-2",
      "web-3 node-2 -> node-3",
    ]);
    assert.deepEqual(storeOf(informer), truthOf(server));
    assert.deepEqual(informer.indexer.listIndexFuncValues("byNode").sort(), [
      "node-1",
      "node-2",
      "node-3",
    ]);
    await running.stop();
    server.close();
  });

  it("relists when its resourceVersion has expired (410), and detects what was deleted meanwhile", async () => {
    const { clock, server, informer } = newWorld();
    const received = record(informer);
    const running = informer.start();
    await until(() => informer.hasSynced() && server.openWatches === 1, clock, "the watch");

    // A watch that ends at once would be taken for a sick server; one that has lasted is simply opened again.
    await clock.advance(2_000);
    const errors = new Set<string | undefined>();
    informer.onStatus(({ lastError }) => errors.add(lastError?.message));
    server.closeWatches();
    server.delete("v1/pods", "shop/web-2");
    server.create(
      "v1/pods",
      pod("web-3", { namespace: "shop", nodeName: "node-2" }),
    );
    server.compact();
    await until(() => received.includes("added web-3") && server.openWatches === 1, clock, "the second list");

    assert.ok(
      [...errors].some((message) => message?.includes("too old resource version")),
      [...errors].join("; "),
    );
    // What is listed again unchanged is received as an update, as client-go does.
    const news = received.slice(3).filter((line) => !line.endsWith("node-1 -> node-1"));
    assert.deepEqual(news.sort(), ["added web-3", "lost shop/web-2"]);
    assert.deepEqual(storeOf(informer), truthOf(server));
    server.patch("v1/pods", "shop/web-3", { spec: { nodeName: "node-9" } });
    await until(() => received.at(-1) === "web-3 node-2 -> node-9", clock, "a change after the second list");
    await running.stop();
    server.close();
  });

  it("leaves no timer, no watch and no pump behind when it stops", async () => {
    const { clock, server, informer } = newWorld();
    const received = record(informer);
    const stop = new AbortController();
    const running = informer.run(stop.signal);
    await until(() => informer.hasSynced() && server.openWatches === 1, clock, "the watch");
    stop.abort();
    await running;

    await until(() => server.openWatches === 0, clock, "the end of the watch");
    assert.equal(clock.pendingTimers, 0);
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    await clock.advance(600_000);
    assert.equal(received.length, 3);
    assert.equal(server.openWatches, 0);
    server.close();
  });

  it("stops while its server does not answer", async () => {
    const { clock, server, informer } = newWorld();
    server.intercept(() => new Promise<Response>(() => {}));
    const running = informer.start();
    await clock.advance(1_000);
    await running.stop();

    assert.equal(clock.pendingTimers, 0);
    assert.equal(informer.hasSynced(), false);
    server.close();
  });
});

describe("readApi", () => {
  it("serves a second informer, whose store becomes equal", async () => {
    const { clock, server, informer } = newWorld();
    const running = informer.start();
    await until(() => informer.hasSynced(), clock, "the first informer");
    const closing = new AbortController();
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock,
      logger: silentLogger,
      signal: closing.signal,
    });

    const response = await api.request("/api/v1/namespaces/shop/pods");
    assert.equal(response.status, 200);
    const list = await response.json() as { kind: string; items: Pod[] };
    assert.equal(list.kind, "PodList");
    assert.deepEqual(list.items.map(({ metadata }) => metadata?.name), [
      "web-1",
      "web-2",
    ]);

    const served = newCluster({
      server: "http://cache",
      fetch: (input, init) => Promise.resolve(api.request(input as string, init)),
      clock,
    });
    const reader = new SharedIndexInformer(served.resource<Pod>("v1/pods"), {
      indexers: { byNode: (pod: Pod) => [pod.spec?.nodeName ?? ""] },
      clock,
      logger: silentLogger,
    });
    const reading = reader.start();
    await until(() => reader.hasSynced(), clock, "the second informer");
    server.delete("v1/pods", "kube-system/dns-1");
    server.create(
      "v1/pods",
      pod("web-3", { namespace: "shop", nodeName: "node-1" }),
    );
    await until(() => reader.lastSyncResourceVersion() === server.resourceVersion, clock, "the changes");
    assert.deepEqual(storeOf(reader), truthOf(server));

    await reading.stop();
    closing.abort();
    await running.stop();
    server.close();
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("RateLimitingQueue", () => {
  it("returns a failed key again after its backoff", async () => {
    const clock = new FakeClock();
    const queue = new RateLimitingQueue<string>(
      itemExponentialFailureRateLimiter({ baseDelayMs: 100, maxDelayMs: 1_000 }),
      { clock },
    );
    queue.add("shop/web-1");
    const first = await queue.get();
    assert.deepEqual(first, { item: "shop/web-1", shutdown: false });
    queue.addRateLimited("shop/web-1");
    queue.done("shop/web-1");
    assert.equal(queue.length, 0);
    await clock.advance(100);
    assert.equal(queue.length, 1);
    queue.shutDown();
    await clock.advance(1_000);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("StatusError and other names", () => {
  it("are shown by errors and stack traces, also where the code is minified", () => {
    assert.equal(new StatusError({ code: 404 }).name, "StatusError");
    assert.equal(SharedIndexInformer.name, "SharedIndexInformer");
    assert.throws(() => parseResource("pods"), ({ stack }: Error) => stack!.includes("parseResource"));
  });
});
