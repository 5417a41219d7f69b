import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, NamespaceSet, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { type ListerWatcher, newListWatch } from "@listwatch/cache/reflector";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";

type ListOptions = Parameters<ListerWatcher<KubernetesObject>["list"]>[0];

const onlyWeb = (options: ListOptions) => ({ ...options, labelSelector: "app=web" });

describe("newListWatch", () => {
  it("lists and watches with the changed options: an informer has what they select", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const create = (name: string, app: string) =>
      server.create("v1/pods", pod(name, { namespace: "shop", labels: { app } }));
    create("web-1", "web");
    create("db-1", "db");
    for (
      const source of [
        cluster.resource("v1/pods"),
        cluster.resource("v1/pods", { namespaces: new NamespaceSet(["shop"]) }),
      ]
    ) {
      const informer = new SharedIndexInformer(newListWatch(source, onlyWeb), { clock });
      const running = informer.start();
      await clock.advance(1_000);
      const name = `web-${server.resourceVersion}`;
      create(name, "web");
      create(`db-${server.resourceVersion}`, "db");
      await clock.advance(1_000);
      const names = informer.indexer.list().map(({ metadata }) => metadata?.name);
      assert.ok(names.includes("web-1") && names.includes(name), names.join());
      assert.ok(names.every((each) => each?.startsWith("web-")), names.join());
      await running.stop();
    }
    const queries = server.requests.filter(({ path }) => path.endsWith("/pods")).map(({ query }) => query);
    assert.equal(queries.length, 2, "the lists are streamed");
    for (const { labelSelector } of queries) assert.equal(labelSelector, "app=web");
    server.close();
  });

  it("says of itself what its source says, and that its options are others", async () => {
    const seen: unknown[] = [];
    const source: ListerWatcher<KubernetesObject> = {
      description: "pods",
      resource: { group: "", version: "v1", resource: "pods" },
      projection: { keep: undefined, drop: undefined } as never,
      namespaces: new NamespaceSet(["shop"]),
      identity: "https://cluster",
      clusterUid: () => Promise.resolve("7"),
      metadata: () => source,
      inNamespace: (namespace) => ({ ...source, description: namespace }),
      list: (options) => (seen.push(options), Promise.reject(new Error("no"))),
      watch: (options) => (seen.push(options), Promise.reject(new Error("no"))),
    };
    const changed = newListWatch(source, onlyWeb);
    for (const name of ["description", "resource", "projection", "namespaces"] as const) {
      assert.equal(changed[name], source[name], name);
    }
    assert.equal(await changed.clusterUid!(new AbortController().signal), "7");
    assert.notEqual(changed.identity, source.identity);
    assert.equal(changed.identity, newListWatch(source, onlyWeb).identity);
    assert.notEqual(changed.identity, newListWatch(source, (options) => options).identity);
    const inShop = changed.inNamespace!("shop");
    assert.equal(inShop.description, "shop");
    const context = { signal: new AbortController().signal };
    for (const each of [changed, changed.metadata!(), inShop]) {
      await assert.rejects(each.list({ limit: 1 }, context as never));
      await assert.rejects(async () => await each.watch({ resourceVersion: "5" }, context as never));
    }
    const list = { limit: 1, labelSelector: "app=web" };
    const watch = { resourceVersion: "5", labelSelector: "app=web" };
    assert.deepEqual(seen, [list, watch, list, watch, list, watch]);
  });

  it("has nothing that its source does not have", () => {
    const plain: ListerWatcher<KubernetesObject> = {
      list: () => Promise.reject(new Error("no")),
      watch: () => Promise.reject(new Error("no")),
    };
    const { description, identity, list: _list, watch: _watch, ...more } = newListWatch(plain, onlyWeb);
    assert.deepEqual([description, identity, more], [undefined, undefined, {}]);
  });
});
