import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  newCluster,
  type PartialObjectMetadata,
  SharedIndexInformer,
  SharedInformerFactory,
} from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { ResourceSource } from "@listwatch/cache/informer";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";

const KIND = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };

function serverWithPod(): InMemoryApiServer {
  const server = new InMemoryApiServer();
  server.create("v1/pods", pod("web-1", { labels: { app: "web" } }));
  return server;
}

function clusterOf(server: InMemoryApiServer) {
  return newCluster({ server: "http://in-memory", fetch: server.fetch });
}

/** Makes the server one that knows of no metadata alone. */
function sendWholeObjects(server: InMemoryApiServer): void {
  server.intercept(
    (request, next) => next(new Request(request, { headers: { Accept: "application/json" } })),
    { match: ({ method }) => method === "GET" },
  );
}

/** Resolves when a handler of the informer has received so many notifications. */
function told(informer: SharedIndexInformer<KubernetesObject>, count: number): Promise<string[]> {
  const seen: string[] = [];
  return new Promise((resolve) => {
    const see = (text: string) => {
      seen.push(text);
      if (seen.length === count) resolve(seen);
    };
    informer.addEventHandler({
      onAdd: (object) => see(`add ${object.kind} ${Object.keys(object).length}`),
      onUpdate: (_, object) => see(`update ${object.kind} ${Object.keys(object).length}`),
      onDelete: ({ object }) => see(`delete ${object?.kind} ${Object.keys(object ?? {}).length}`),
    });
  });
}

describe("ResourceClient for metadata only", () => {
  it("asks for metadata, and hands out nothing else", async () => {
    using server = serverWithPod();
    const pods = clusterOf(server).resource("v1/pods", { metadataOnly: true });
    const page = await pods.list();
    assert.deepEqual(page.items.map(({ kind, apiVersion }) => ({ kind, apiVersion })), [KIND]);
    assert.deepEqual(Object.keys(page.items[0]).sort(), ["apiVersion", "kind", "metadata"]);
    const one: PartialObjectMetadata = await pods.get("web-1", { namespace: "default" });
    assert.equal(one.metadata.labels?.app, "web");
    const patched = await pods.patch("web-1", { metadata: { labels: { app: "db" } } }, {
      namespace: "default",
    });
    assert.deepEqual([patched.kind, patched.metadata.labels?.app], ["PartialObjectMetadata", "db"]);
    await pods.delete("web-1", { namespace: "default" });
    assert.deepEqual((await pods.list()).items, []);
  });

  it("cannot write whole objects, and says so", async () => {
    using server = serverWithPod();
    const pods = clusterOf(server).resource("v1/pods", { metadataOnly: true, namespace: "default" });
    const object = { ...KIND, metadata: { name: "web-2" } } as PartialObjectMetadata;
    const wanted = { name: "TypeError", message: /knows metadata only; take one without metadataOnly/ };
    await assert.rejects(pods.create(object), wanted);
    await assert.rejects(pods.replace(object), wanted);
    assert.equal(server.list("v1/pods").items.length, 1);
  });

  for (const understands of [true, false]) {
    const which = understands ? "that has it" : "that sends whole objects";
    it(`feeds an informer with metadata, streamed or listed, from a server ${which}`, async () => {
      for (const useWatchList of [true, false]) {
        using server = serverWithPod();
        if (!understands) sendWholeObjects(server);
        const pods = clusterOf(server).resource("v1/pods", { metadataOnly: true });
        const informer = new SharedIndexInformer<KubernetesObject>(pods, { reflector: { useWatchList } });
        const seen = told(informer, 3);
        const running = informer.start();
        // deno-lint-ignore no-await-in-loop -- one server after the other
        await informer.synced();
        server.patch("v1/pods", "default/web-1", { metadata: { labels: { app: "db" } } });
        server.delete("v1/pods", "default/web-1");
        // deno-lint-ignore no-await-in-loop
        assert.deepEqual(await seen, [
          "add PartialObjectMetadata 3",
          "update PartialObjectMetadata 3",
          "delete PartialObjectMetadata 3",
        ]);
        // deno-lint-ignore no-await-in-loop
        await running.stop();
      }
    });
  }

  it("makes a factory of metadata informers, whose objects are found by their labels", async () => {
    for (const understands of [true, false]) {
      using server = serverWithPod();
      if (!understands) sendWholeObjects(server);
      const cluster = clusterOf(server);
      const source: ResourceSource = {
        resource: (resource, options) => cluster.resource(resource, { ...options, metadataOnly: true }),
      };
      // deno-lint-ignore no-await-in-loop -- one server after the other
      await using factory = new SharedInformerFactory(source);
      const { lister } = factory.forResource<PartialObjectMetadata>("v1/pods");
      factory.start();
      // deno-lint-ignore no-await-in-loop
      await factory.synced();
      assert.deepEqual(lister.list("app=web").map(({ kind }) => kind), ["PartialObjectMetadata"]);
      assert.deepEqual(lister.list("app=db"), []);
    }
  });

  it("still reads bookmarks, errors and what is quarantined", async () => {
    const lines = [
      { type: "ADDED", object: { kind: "Pod", metadata: { name: "a" }, spec: {} } },
      { type: "ADDED", object: { kind: "Pod", metadata: {} } },
      { type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "7" } } },
    ];
    const body = lines.map((line) => JSON.stringify(line)).join("\n") + "\n";
    const cluster = newCluster({ server: "http://in-memory", fetch: () => new Response(body) });
    const stream = await cluster.resource("v1/pods", { metadataOnly: true }).watch();
    const items = (await Array.fromAsync(stream)).flat();
    assert.deepEqual(items.map(({ type }) => type), ["ADDED", "QUARANTINED", "BOOKMARK"]);
    assert.deepEqual(items[0], { type: "ADDED", object: { ...KIND, metadata: { name: "a" } } });
  });

  it("hands an error and a bookmark of a watch out as they are: that its version is too old, for one", async () => {
    const events = [
      { type: "BOOKMARK", object: { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "9" } } },
      { type: "ERROR", object: newStatus(410, "Expired", "too old resource version") },
    ];
    const answer = events.map((event) => `${JSON.stringify(event)}\n`).join("");
    const fetch = () => new Response(answer, { headers: { "Content-Type": "application/json" } });
    const cluster = newCluster({ server: "http://in-memory", fetch });
    for (const metadataOnly of [true, false]) {
      const stream = await cluster.resource("v1/pods", { metadataOnly }).watch({ resourceVersion: "1" });
      assert.deepEqual((await Array.fromAsync(stream)).flat(), events);
    }
  });
});
