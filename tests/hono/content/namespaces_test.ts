/**
 * A read API over one informer of a set of namespaces.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NamespaceSet, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { ReadApi } from "@listwatch/cache/hono";
import { answerStatus, FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import type { ServedInformer } from "../../../src/hono/content/served_informer.ts";
import { decodeMergedVersion, encodeMergedVersion } from "../../../src/meta/merged_version.ts";
import { momentOf } from "../../../src/util/clock.ts";
import { readApi } from "../read_api.ts";
import { get, names, WatchReader } from "../reading.ts";

interface Rig extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly server: InMemoryApiServer;
  readonly namespaces: NamespaceSet;
  readonly informer: ServedInformer;
  readonly api: ReadApi;
  settle(): Promise<void>;
  /** Lets the time pass that an answer needs. */
  within<T>(answer: Promise<T>): Promise<T>;
}

async function serve(freshness: "as-is" | "consistent" = "as-is", refused = ""): Promise<Rig> {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  for (const key of ["a/x", "b/y", "c/z"]) create(server, key);
  if (refused !== "") {
    server.intercept(answerStatus(403), { match: ({ path }) => path.includes(`/namespaces/${refused}/`) });
  }
  const namespaces = new NamespaceSet(["a", "b"]);
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const informer = new SharedIndexInformer(cluster.resource("v1/pods", { namespaces }), {
    clock,
    logger: silentLogger,
  });
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    freshness,
    clock,
    logger: silentLogger,
  });
  const running = informer.start();
  const settle = async () => {
    for (let i = 0; i < 40; i++) await clock.advance(0);
  };
  await settle();
  return {
    clock,
    server,
    namespaces,
    informer,
    api,
    settle,
    within: async (answer) => {
      let isOver = false;
      const over = answer.finally(() => isOver = true);
      for (let i = 0; i < 100 && !isOver; i++) await clock.advance(100);
      return await over;
    },
    async [Symbol.asyncDispose]() {
      const stopped = running.stop();
      await settle();
      await stopped;
      server.close();
    },
  };
}

function create(server: InMemoryApiServer, key: string): void {
  const [namespace, name] = key.split("/");
  server.create("v1/pods", pod(name, { namespace }));
}

const PODS = "/api/v1/pods";

describe("readApi over a set of namespaces", () => {
  it("lists all of them, or one, at a version that a watch continues", async () => {
    await using rig = await serve();
    const { server, api } = rig;
    const all = await get(api, PODS);
    assert.deepEqual(names(all).sort(), ["a/x", "b/y"]);
    assert.deepEqual(names(await get(api, "/api/v1/namespaces/b/pods")), ["b/y"]);
    create(server, "a/late");
    server.delete("v1/pods", "b/y");
    await rig.settle();
    const watch = await WatchReader.open(
      api,
      `${PODS}?watch=1&resourceVersion=${all.metadata.resourceVersion}`,
    );
    const events = await watch.events(2);
    assert.deepEqual(
      events.map(({ type, object }) => `${type} ${object.metadata.namespace}/${object.metadata.name}`).sort(),
      ["ADDED a/late", "DELETED b/y"],
    );
  });

  it("opens the watch of the namespace again that lacks what the server has, and no other", async () => {
    await using rig = await serve();
    const { server, clock, informer } = rig;
    await clock.advance(30_000);
    const before = server.requests.length;
    const [ofA] = informer.sources!.filter(({ name }) => name === "a");
    ofA.informer.overdue!(momentOf(clock));
    informer.overdue!(momentOf(clock)); // all have no watch
    await rig.settle();
    const opened = server.requests.slice(before).map(({ path, isWatch }) => `${path} ${isWatch}`);
    assert.deepEqual(opened, ["/api/v1/namespaces/a/pods true"]);
  });

  it("sends watchers what leaves with a namespace and what comes with one", async () => {
    await using rig = await serve();
    const { api } = rig;
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const watch = await WatchReader.open(api, `${PODS}?watch=1&resourceVersion=${resourceVersion}`);
    rig.namespaces.set(["b", "c"]);
    await rig.settle();
    assert.deepEqual(names(await get(api, PODS)).sort(), ["b/y", "c/z"]);
    // The version has another layout from then on: what was read before says nothing about it.
    assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
    const again = await get(api, PODS);
    const next = await WatchReader.open(
      api,
      `${PODS}?watch=1&resourceVersion=${again.metadata.resourceVersion}`,
    );
    create(rig.server, "c/late");
    await rig.settle();
    const [{ type, object }] = await next.events(1);
    assert.deepEqual([type, object.metadata.name], ["ADDED", "late"]);
  });

  it("refuses a watch from what it has not reached at once: it may come there in another order", async () => {
    await using rig = await serve();
    const { api } = rig;
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const { layout, parts: [a, b] } = decodeMergedVersion(resourceVersion)!;
    const later = String(Number(b) + 1);
    for (const parts of [[a, later], [later, b]]) {
      const from = encodeMergedVersion({ layout, parts });
      const watch = await WatchReader.open(api, `${PODS}?watch=1&resourceVersion=${from}`);
      assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
    }
  });

  it("proves reads fresh namespace by namespace, also of one that came later", async () => {
    await using rig = await serve("consistent");
    const { server, api } = rig;
    create(server, "a/late");
    assert.deepEqual(names(await rig.within(get(api, PODS))).sort(), ["a/late", "a/x", "b/y"]);
    rig.namespaces.set(["c"]);
    await rig.settle();
    create(server, "c/late");
    assert.deepEqual(names(await rig.within(get(api, PODS))).sort(), ["c/late", "c/z"]);
  });

  it("names the namespace that cannot be read, and serves the others on request", async () => {
    await using rig = await serve("as-is", "b");
    const { api } = rig;
    const refused = await get(api, PODS, { status: 503 });
    assert.match(refused.message, /nothing of "b" yet; partial=true/);
    assert.deepEqual(names(await get(api, `${PODS}?partial=true`)), ["a/x"]);
    const ready = await (await api.request("/readyz?verbose")).text();
    assert.match(ready, /informer\/pods of a ok/);
    assert.match(ready, /informer\/pods of b/);
  });
});
