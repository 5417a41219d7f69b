/**
 * Nothing is left behind: Deno counts timers, sockets and pending operations before and after each of these
 * tests. On the system's clock and on real sockets, as far as a test is about them.
 *
 * @module
 */

import assert from "node:assert/strict";
import {
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { Reflector } from "@listwatch/cache/reflector";
import { newStore } from "@listwatch/cache/store";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { DelayingQueue } from "@listwatch/cache/workqueue";

const LOGGER = { logger: silentLogger };

/** `Deno.test` with both sanitizers, which are off by default. */
function leakTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: true, sanitizeResources: true, sanitizeExit: true });
}

function newServer(count = 3): InMemoryApiServer {
  const server = new InMemoryApiServer();
  for (let i = 0; i < count; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
  return server;
}

function informerOf(server: InMemoryApiServer): SharedIndexInformer<KubernetesObject> {
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, ...LOGGER });
  return new SharedIndexInformer(cluster.resource("v1/pods"), { resyncPeriodMs: 60_000, ...LOGGER });
}

/** Runs `work` against a server on a socket, which is shut down after it. */
async function onSocket(
  handler: (request: Request) => Response | Promise<Response>,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const listening = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, handler);
  try {
    await work(`http://127.0.0.1:${listening.addr.port}`);
  } finally {
    await listening.shutdown();
  }
}

leakTest("an informer that synced and was stopped", async () => {
  const server = newServer();
  const informer = informerOf(server);
  const received: string[] = [];
  informer.addEventHandler({ onAdd: (object) => void received.push(object.metadata?.name ?? "") });
  const running = informer.start();
  await informer.synced();
  server.create("v1/pods", pod("late", { namespace: "shop" }));
  await informer.waitForVersion(server.resourceVersion);
  await running.stop();
  assert.equal(informer.indexer.list().length, 4);
  server.close();
});

leakTest("an informer that is stopped before its first list is answered", async () => {
  const server = newServer();
  server.intercept(() => new Promise<Response>(() => {}));
  const running = informerOf(server).start();
  await Promise.resolve();
  await running.stop();
  server.close();
});

leakTest("an informer that is stopped while it waits to try again", async () => {
  const informer = new SharedIndexInformer(
    newCluster({
      server: "http://in-memory",
      fetch: () => Promise.reject(new TypeError("connection refused")),
      ...LOGGER,
    }).resource("v1/pods"),
    LOGGER,
  );
  const waiting = Promise.withResolvers<void>();
  informer.onStatus(({ phase }) => phase === "backingOff" && waiting.resolve());
  const running = informer.start();
  await waiting.promise;
  await running.stop();
});

leakTest("an informer on a socket that is stopped in the middle of its watch", async () => {
  const server = newServer(2_000);
  const client = Deno.createHttpClient({});
  await onSocket(server.fetch, async (url) => {
    const cluster = newCluster({
      server: url,
      fetch: (input, init) => fetch(input, { ...init, client } as RequestInit),
      ...LOGGER,
    });
    const informer = new SharedIndexInformer(cluster.resource("v1/pods"), LOGGER);
    const running = informer.start();
    await informer.synced();
    assert.equal(informer.indexer.listKeys().length, 2_000);
    await running.stop();
    server.close();
  });
  client.close();
});

leakTest("many informers, started and stopped one after another", async () => {
  const server = newServer();
  for (let i = 0; i < 50; i++) {
    const informer = informerOf(server);
    const running = informer.start();
    if (i % 2 === 0) await informer.synced();
    await running.stop();
  }
  server.close();
});

leakTest("a reflector into a store", async () => {
  const server = newServer();
  const source = newCluster({ server: "http://in-memory", fetch: server.fetch, ...LOGGER }).resource(
    "v1/pods",
  );
  const store = newStore<KubernetesObject>(metaNamespaceKey);
  const stop = new AbortController();
  const filled = Promise.withResolvers<void>();
  const reflector = new Reflector(source, store, { ...LOGGER });
  reflector.onStatus(({ phase }) => phase === "watching" && filled.resolve());
  const running = reflector.run(stop.signal);
  await filled.promise;
  stop.abort();
  await running;
  assert.equal(store.list().length, 3);
  server.close();
});

leakTest("the cache over HTTP, with a reader that leaves", async () => {
  const server = newServer();
  const informer = informerOf(server);
  const running = informer.start();
  await informer.synced();
  const closing = new AbortController();
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    signal: closing.signal,
    ...LOGGER,
  });
  const client = Deno.createHttpClient({});
  await onSocket((request) => api.fetch(request), async (url) => {
    const leaving = new AbortController();
    const response = await fetch(`${url}/api/v1/pods?watch=1&resourceVersion=0`, {
      client,
      signal: leaving.signal,
    });
    const reader = response.body!.getReader();
    assert.match(new TextDecoder().decode((await reader.read()).value), /ADDED/);
    leaving.abort();
    await reader.read().catch(() => {});
    closing.abort();
  });
  client.close();
  await running.stop();
  server.close();
});

leakTest("a delaying queue that is shut down before its items are due", async () => {
  const queue = new DelayingQueue<string>();
  queue.addAfter("later", 60_000);
  queue.shutDown();
  assert.equal((await queue.get()).shutdown, true);
});
