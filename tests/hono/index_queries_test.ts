import assert from "node:assert/strict";
import { Hono } from "hono";
import { fieldIndex, metaNamespaceIndex } from "@listwatch/cache";
import { allowNamespaces, type ReadApiOptions } from "@listwatch/cache/hono";
import { FakeInformer, object, type TestObject } from "./fake_informer.ts";
import { get, type Json, names } from "./reading.ts";
import { describe, it } from "./storages.ts";
import { readApi } from "./read_api.ts";

const byApp = ({ metadata }: TestObject) => [metadata?.labels?.app ?? ""];

function pods(): TestObject[] {
  return Array.from(
    { length: 30 },
    (_, i) =>
      object(`${i % 3 === 0 ? "blog" : "shop"}/p-${String(i).padStart(2, "0")}`, i + 1, {
        ...(i % 5 !== 0 && { labels: { app: `app/${i % 5} ü` } }),
        spec: { nodeName: `n-${i % 2}` },
      }),
  );
}

function apiOf(options: Partial<ReadApiOptions> = {}) {
  const informer = FakeInformer.with(pods(), 100, {
    namespace: metaNamespaceIndex,
    byNode: fieldIndex("spec.nodeName"),
    byApp,
  });
  const deployments = FakeInformer.with([object("shop/web", 5)], 10, { namespace: metaNamespaceIndex });
  const nodes = FakeInformer.with([object("n-1", 5)], 10, { zone: () => ["a"] });
  const api = readApi({
    resources: [
      { informer, resource: "v1/pods" },
      { informer: deployments, resource: "apps/v1/deployments" },
      { informer: nodes, resource: "v1/nodes" },
    ],
    allowAnonymous: true,
    ...options,
  });
  return { informer, api };
}

const APP_1 = encodeURIComponent("app/1 ü");

describe("readApi, GET /indices/{resource}/{index}", () => {
  it("has the values in ascending order with the number of objects under each", async () => {
    const { api } = apiOf();
    assert.deepEqual(await get(api, "/indices/pods/byNode"), {
      kind: "IndexValueList",
      apiVersion: "indices.listwatch/v1",
      metadata: { resourceVersion: "100" },
      resource: "pods",
      index: "byNode",
      items: [{ value: "n-0", count: 15 }, { value: "n-1", count: 15 }],
    });
    const { items } = await get(api, "/indices/pods/byApp");
    assert.deepEqual(items.map(({ value }: Json) => value), ["", "app/1 ü", "app/2 ü", "app/3 ü", "app/4 ü"]);
    assert.deepEqual((await get(api, "/indices/pods")).items.map(({ name }: Json) => name), [
      "byApp",
      "byNode",
      "namespace",
    ]);
    for (const name of ["deployments.apps", "deployments.v1.apps"]) {
      assert.deepEqual((await get(api, `/indices/${name}/namespace`)).items, [{ value: "shop", count: 1 }]);
    }
  });

  it("counts those of one namespace, and leaves out the values that it does not have", async () => {
    const { api, informer } = apiOf();
    informer.put(object("blog/only", 101, { spec: { nodeName: "n-2" } }));
    const shop = await get(api, "/indices/pods/byNode?namespace=shop");
    assert.deepEqual(shop.items, [{ value: "n-0", count: 10 }, { value: "n-1", count: 10 }]);
    assert.equal(shop.namespace, "shop");
    // The key of this object is between the namespace's name and its objects.
    informer.put(object("shop-2/other", 102, { spec: { nodeName: "n-0" } }));
    const { items } = await get(api, "/indices/pods/byNode?namespace=shop");
    assert.deepEqual(items.map(({ count }: Json) => count), [10, 10]);
    const blog = await get(api, "/indices/pods/byNode?namespace=blog");
    assert.deepEqual(blog.items.map(({ count }: Json) => count), [5, 5, 1]);
    assert.deepEqual((await get(api, "/indices/pods/byNode?namespace=none")).items, []);
    assert.match(
      (await get(api, "/indices/nodes/zone?namespace=shop", { status: 400 })).message,
      /not in namespaces/,
    );
  });

  it("comes in pages, which continue after the last value whatever has changed", async () => {
    const { api, informer } = apiOf();
    const first = await get(api, "/indices/pods/byApp?limit=2");
    assert.deepEqual(first.items.map(({ value }: Json) => value), ["", "app/1 ü"]);
    assert.equal(first.metadata.remainingItemCount, 3);
    const second = await get(
      api,
      `/indices/pods/byApp?limit=2&continue=${encodeURIComponent(first.metadata.continue)}`,
    );
    assert.deepEqual(second.items.map(({ value }: Json) => value), ["app/2 ü", "app/3 ü"]);
    informer.relist([object("shop/new", 101, { labels: { app: "app/1a" } })], 102);
    const token = encodeURIComponent(first.metadata.continue);
    const next = await get(api, `/indices/pods/byApp?limit=2&continue=${token}`);
    assert.deepEqual(next.items, [{ value: "app/1a", count: 1 }]);
    assert.equal(next.metadata.continue, undefined);
    for (const query of ["limit=-1", "limit=x", "continue=%21", "continue=_w"]) {
      await get(api, `/indices/pods/byApp?${query}`, { status: 400 });
    }
  });

  it("answers 404 for an index that is not known, naming those that are", async () => {
    const { api } = apiOf();
    for (const path of ["/indices/pods/absent", "/indices/pods/absent/x", "/indices/pods/__proto__"]) {
      const status = await get(api, path, { status: 404 });
      assert.match(
        status.message,
        /^index ".*" not found: the indices of pods are byApp, byNode, namespace$/,
      );
      assert.equal(status.reason, "NotFound");
    }
    for (
      const path of ["/indices/absent/byNode", "/indices/pods/byNode/a/b", "/indices/", "/indices/pods//x"]
    ) {
      await get(api, path, { status: 404 });
    }
    const response = await api.request("/indices/pods/byNode", { method: "POST", body: "{}" });
    assert.equal(response.status, 405);
  });
});

describe("readApi, GET /indices/{resource}/{index}/{value}", () => {
  it("is a list of the objects under the value, with selectors, pages, forms and tags of lists", async () => {
    const { api } = apiOf();
    const list = await get(api, `/indices/pods/byApp/${APP_1}`);
    assert.equal(list.kind, "PodList");
    assert.equal(list.items.length, 6);
    assert.ok(list.items.every(({ metadata }: Json) => metadata.labels.app === "app/1 ü"));
    assert.deepEqual(names(list), names(list).toSorted());
    assert.equal((await get(api, "/indices/pods/byApp/")).items.length, 6);
    assert.deepEqual((await get(api, "/indices/pods/byApp/absent")).items, []);
    const narrowed = await get(
      api,
      `/indices/pods/byApp/${APP_1}?namespace=shop&fieldSelector=spec.nodeName%3Dn-1`,
    );
    assert.ok(
      narrowed.items.every(({ metadata, spec }: Json) =>
        metadata.namespace === "shop" && spec.nodeName === "n-1"
      ),
    );
    assert.equal(narrowed.items.length, 2);
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert.equal((await get(api, `/indices/pods/byApp/${APP_1}`, { accept })).rows.length, 6);
    const tags = await Promise.all(
      ["byNode/n-0", "byNode/n-1", "byNode/n-1?namespace=shop"].map(async (path) =>
        (await api.request(`/indices/pods/${path}`)).headers.get("ETag")
      ),
    );
    assert.equal(new Set(tags).size, 3);
    const headers = { "If-None-Match": tags[1]! };
    const again = await api.request("/indices/pods/byNode/n-1", { headers });
    assert.equal(again.status, 304);
    assert.equal(again.headers.get("Resource-Version"), "100");
  });

  it("continues at the state of its first page", async () => {
    const { api, informer } = apiOf();
    const whole = names(await get(api, "/indices/pods/byNode/n-1"));
    const first = await get(api, "/indices/pods/byNode/n-1?limit=4");
    informer.put(object("shop/p-28", 101, { spec: { nodeName: "n-1" } }));
    informer.put(object("shop/p-29", 102, { spec: { nodeName: "n-0" } }));
    const token = encodeURIComponent(first.metadata.continue);
    const rest = await get(api, `/indices/pods/byNode/n-1?limit=100&continue=${token}`);
    assert.deepEqual([...names(first), ...names(rest)], whole);
    await get(api, `/indices/pods/byNode/n-0?limit=4&continue=${token}`, { status: 400 });
    assert.ok(names(await get(api, "/indices/pods/byNode/n-1")).includes("shop/p-28"));
  });

  it("continues with the selectors of its first page, also where that is of the past", async () => {
    const { api, informer } = apiOf();
    const path = `/indices/pods/byNode/n-1?labelSelector=app&fieldSelector=metadata.namespace%3Dshop`;
    const whole = names(await get(api, path));
    const first = await get(api, `${path}&limit=2`);
    informer.put(object("shop/p-28", 101, { spec: { nodeName: "n-1" } }));
    const token = encodeURIComponent(first.metadata.continue);
    const rest = await get(api, `${path}&limit=100&continue=${token}`);
    assert.ok(whole.length > 4 && whole.length < 15, `${whole.length}`);
    assert.deepEqual([...names(first), ...names(rest)], whole);
  });

  it("has one order: a screen's sortBy is refused", async () => {
    const { api } = apiOf();
    const { message } = await get(api, "/indices/pods/byNode/n-1?sortBy=metadata.name", { status: 400 });
    assert.equal(
      message,
      "sortBy: objects under a value of an index have one order; request a list with a filter",
    );
  });

  it("is of no value whose path is longer than any of Kubernetes, rather than of its beginning", async () => {
    const value = "x".repeat(2_048 - "/indices/pods/long/".length);
    const informer = FakeInformer.with([object("shop/a", 1)], 1, { long: () => [value] });
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    assert.equal((await get(api, `/indices/pods/long/${value}`)).items.length, 1);
    await get(api, `/indices/pods/long/${value}x`, { status: 404 });
  });

  it("ignores watch", async () => {
    const { api } = apiOf();
    assert.equal((await get(api, "/indices/pods/byNode/n-1?watch=1")).kind, "PodList");
  });
});

describe("readApi, the access to indices", () => {
  it("is that of a list of the resource, cluster-wide or in a namespace", async () => {
    const asked: string[] = [];
    const { api } = apiOf({
      allowAnonymous: undefined,
      authorize: (request, c) => {
        asked.push(
          [request.verb, request.scope, request.resource, request.namespace, request.path].join(" "),
        );
        return allowNamespaces(["shop"])(request, c);
      },
    });
    const paths = [
      "/indices/pods",
      "/indices/pods/byNode",
      "/indices/pods/byNode/n-1",
      "/indices/pods/absent",
    ];
    for (const path of paths) {
      await get(api, path, { status: 403 });
      await get(api, `${path}?namespace=blog`, { status: 403 });
      await get(api, `${path}?namespace=shop`, { status: path.endsWith("absent") ? 404 : 200 });
    }
    assert.deepEqual([...new Set(asked)], [
      "list cluster pods  /api/v1/pods",
      "list namespace pods blog /api/v1/namespaces/blog/pods",
      "list namespace pods shop /api/v1/namespaces/shop/pods",
    ]);
    for (const { metadata } of (await get(api, "/indices/pods/byNode/n-1?namespace=shop")).items) {
      assert.equal(metadata.namespace, "shop");
    }
    await get(api, "/indices/absent/byNode", { status: 404 });
  });

  it("works where the API is mounted below another path, and waits for the first list", async () => {
    const { api } = apiOf();
    const app = new Hono().route("/cache", api);
    assert.equal((await get(app, "/cache/indices/pods/byNode/n-1")).items.length, 15);
    assert.equal((await get(app, "/cache/indices/pods.v1/byNode/n-1")).items.length, 15);
    const informer = new FakeInformer({ zone: () => ["a"] });
    const empty = readApi({ resources: [{ informer, resource: "v1/nodes" }], allowAnonymous: true });
    for (const path of ["/indices/nodes/zone", "/indices/nodes/zone/a"]) {
      const response = await empty.request(path);
      assert.equal(response.status, 503);
      assert.equal(response.headers.get("Cache-Synced"), "false");
      assert.match((await response.json()).message, /^the cache of nodes has not synced yet/);
    }
  });

  it("has 5,000 values in a page at most", async () => {
    const values = Array.from({ length: 5_001 }, (_, i) => `v-${i}`);
    const informer = FakeInformer.with([object("n-1", 5)], 10, { many: () => values });
    const api = readApi({ resources: [{ informer, resource: "v1/nodes" }], allowAnonymous: true });
    assert.equal((await get(api, "/indices/nodes/many?limit=6000")).items.length, 5_000);
    assert.equal((await get(api, "/indices/nodes/many")).items.length, 500);
    const last = await get(api, `/indices/nodes/many?limit=1000&continue=${btoa("v-90")}`);
    assert.deepEqual([last.items.length < 1_000, last.metadata.continue], [true, undefined]);
    const all = await get(apiOf().api, "/indices/pods/byNode?limit=2");
    assert.deepEqual(
      [all.items.length, all.metadata.continue],
      [2, undefined],
      "no page without values follows",
    );
  });
});
