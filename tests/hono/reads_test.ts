import assert from "node:assert/strict";
import { Hono } from "hono";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { nextTurn } from "../../src/util/clock.ts";
import { labelIndexFunc } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { FakeInformer, object, type TestObject } from "./fake_informer.ts";
import { get, type Json, names } from "./reading.ts";
import { describe, it } from "./storages.ts";
import { readApi } from "./read_api.ts";
import { EntityTags } from "../../src/hono/send/answers.ts";
import { LogRecorder } from "../log_recorder.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";

function apiOf(
  objects: readonly TestObject[],
  resourceVersion: number,
  options: Partial<ReadApiOptions> = {},
) {
  const clock = new FakeClock();
  const informer = FakeInformer.with(objects, resourceVersion);
  const resources = [{ informer, resource: "v1/pods" }];
  return { clock, informer, api: readApi({ resources, allowAnonymous: true, clock, ...options }) };
}

const THREE = [
  object("shop/web-2", 7, { labels: { app: "web" } }),
  object("shop/web-10", 6),
  object("shop-2/db", 5),
];

describe("readApi, for a deprecated resource", () => {
  it("is answered with a warning, whatever the answer is", async () => {
    const informer = FakeInformer.with([], 10);
    const deprecated = {
      ...WIDGET_RESOURCE,
      deprecationWarning: 'use "gadgets", naïve',
    };
    const api = readApi({
      resources: [{ informer, resource: deprecated }, { informer, resource: "v1/endpoints" }],
      allowAnonymous: true,
      clock: new FakeClock(),
    });
    const warning = async (path: string) => (await api.request(path)).headers.get("Warning");
    // Headers are bytes: in UTF-8.
    const expected = '299 - "use \\"gadgets\\", na\u00c3\u00afve"';
    assert.equal(await warning("/apis/example.com/v1/widgets"), expected);
    assert.equal(await warning("/apis/example.com/v1/namespaces/shop/widgets/none"), expected);
    assert.match(await warning("/api/v1/endpoints") ?? "", /^299 - "v1 Endpoints is deprecated in v1.33\+; /);
  });
});

describe("get", () => {
  it("gives the object with its kind and apiVersion, which lists leave out", async () => {
    const { api } = apiOf([object("shop/web-1", 5, { spec: { nodeName: "n1" } })], 10);
    assert.deepEqual(await get(api, "/api/v1/namespaces/shop/pods/web-1"), {
      kind: "Pod",
      apiVersion: "v1",
      metadata: { name: "web-1", namespace: "shop", resourceVersion: "5" },
      spec: { nodeName: "n1" },
    });
    const half = { ...object("shop/web-1", 5), kind: "Pod" };
    const { kind, apiVersion } = await get(apiOf([half], 10).api, "/api/v1/namespaces/shop/pods/web-1");
    assert.deepEqual([kind, apiVersion], ["Pod", "v1"]);
  });

  it("has no ETag of an object without a resourceVersion: nothing says that it has not changed", async () => {
    const { api } = apiOf([{ metadata: { name: "web-1", namespace: "shop" } }], 10);
    const path = "/api/v1/namespaces/shop/pods/web-1";
    const response = await api.request(path, { headers: { "If-None-Match": "*" } });
    assert.deepEqual([response.status, response.headers.get("ETag")], [200, null]);
    await response.text();
  });

  it("answers 404 with the message that kubectl shows", async () => {
    const { api } = apiOf(THREE, 10);
    const status = await get(api, "/api/v1/namespaces/shop/pods/absent", { status: 404 });
    assert.equal(status.message, 'pods "absent" not found');
    assert.deepEqual(status.details, { name: "absent", kind: "pods" });
  });

  it("ignores watch", async () => {
    const { api } = apiOf(THREE, 10);
    assert.equal((await get(api, "/api/v1/namespaces/shop/pods/web-2?watch=1")).kind, "Pod");
  });

  it("waits for a resourceVersion from the future, and answers as soon as it is reached", async () => {
    const { api, informer, clock } = apiOf(THREE, 10);
    const answer = get(api, "/api/v1/namespaces/shop/pods/late?resourceVersion=12");
    await clock.advance(2_999);
    informer.put(object("shop/late", 12));
    assert.equal((await answer).metadata.name, "late");
    assert.equal(clock.pendingTimers, 0);
  });

  it("answers 504 with Retry-After when the resourceVersion does not come within 3 s", async () => {
    const { api, clock } = apiOf(THREE, 10);
    const answer = api.request("/api/v1/namespaces/shop/pods/web-2?resourceVersion=12");
    await clock.advance(3_000);
    const response = await answer;
    assert.equal(response.status, 504);
    assert.equal(response.headers.get("Retry-After"), "1");
    const status = await response.json();
    assert.equal(status.reason, "Timeout");
    assert.equal(status.details.causes[0].reason, "ResourceVersionTooLarge");
    assert.equal(clock.pendingTimers, 0);
  });

  it("keeps keys such as __proto__, which objects inherit", async () => {
    const data = JSON.parse('{"__proto__":"a","constructor":"b"}');
    const { api } = apiOf([object("shop/web-1", 5, { data })], 10);
    const response = await api.request("/api/v1/namespaces/shop/pods/web-1");
    assert.match(await response.text(), /"data":\{"__proto__":"a","constructor":"b"\}/);
  });

  it("has, indented, the escapes of an API server, as its texts have", async () => {
    const text = "<a href='?b&c'> \u2028\u2029\u007f\t\b\f ü \u{1f600}";
    const { api } = apiOf([object("shop/a", 1, { note: text })], 10);
    const escapes = "\\u003ca href='?b\\u0026c'\\u003e \\u2028\\u2029\u007f\\t\\b\\f ü \u{1f600}";
    for (const path of ["/api/v1/namespaces/shop/pods/a?pretty=1", "/api/v1/pods?pretty=1"]) {
      const answer = await (await api.request(path)).text();
      assert.ok(answer.includes(`"note": "${escapes}"`), answer);
    }
    const refusal = await (await api.request("/api/v1/namespaces/shop/pods/a%3Cb%3E%26")).text();
    assert.match(refusal, /pods \\"a\\u003cb\\u003e\\u0026\\" not found/);
  });

  it("is indented for people: with pretty, and for curl", async () => {
    const { api } = apiOf(THREE, 10);
    const path = "/api/v1/namespaces/shop/pods/web-2";
    const headers = { "User-Agent": "curl/8.5.0" };
    for (const response of [await api.request(`${path}?pretty=true`), await api.request(path, { headers })]) {
      assert.match(await response.text(), /^\{\n {2}"kind": "Pod",\n {2}"apiVersion"/);
    }
    assert.doesNotMatch(await (await api.request(`${path}?pretty=false`, { headers })).text(), /\n {2}/);
  });
});

describe("EntityTags.ofObject", () => {
  it("is another one for another object of the same name, although its resourceVersion is the same", () => {
    const tags = new EntityTags(() => 0.5);
    const log = { window: { rewrites: 0 } } as Parameters<EntityTags["ofObject"]>[0];
    const tagOf = (uid: string) =>
      tags.ofObject(log, { metadata: { name: "web", namespace: "shop", uid, resourceVersion: "5" } }, "web");
    assert.equal(tagOf("one"), tagOf("one"));
    assert.notEqual(tagOf("one"), tagOf("another"));
  });
});

describe("list", () => {
  it("has an object that is created after a delete of it came although it was not stored", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    assert.deepEqual(names(await get(api, "/api/v1/pods")), ["shop/a"]);
    informer.remove("shop/b", 11);
    informer.put(object("shop/b", 12));
    assert.deepEqual(names(await get(api, "/api/v1/pods")), ["shop/a", "shop/b"]);
  });

  it("is in the order of keys, byte by byte, at one resourceVersion", async () => {
    const { api } = apiOf(THREE, 10);
    const list = await get(api, "/api/v1/pods");
    assert.equal(list.kind, "PodList");
    assert.equal(list.apiVersion, "v1");
    assert.deepEqual(list.metadata, { resourceVersion: "10" });
    // "-" comes before "/".
    assert.deepEqual(names(list), ["shop-2/db", "shop/web-10", "shop/web-2"]);
    assert.ok(list.items.every((item: Json) => !("kind" in item)));
  });

  it("has kind and apiVersion in the items of custom resources", async () => {
    const informer = FakeInformer.with([object("shop/w", 5)], 10);
    const resource = WIDGET_RESOURCE;
    const api = readApi({ resources: [{ informer, resource }], allowAnonymous: true });
    const list = await get(api, "/apis/example.com/v1/widgets");
    assert.equal(list.kind, "WidgetList");
    assert.deepEqual([list.items[0].kind, list.items[0].apiVersion], ["Widget", "example.com/v1"]);
    assert.deepEqual(list.metadata, { continue: "", resourceVersion: "10" });
  });

  it("follows the store: what came, changed and went", async () => {
    const { api, informer } = apiOf(THREE, 10);
    await get(api, "/api/v1/pods");
    informer.put(object("shop/web-3", 11));
    informer.put(object("shop/aaa", 12));
    informer.remove("shop-2/db", 13);
    informer.put(object("shop/web-2", 14, { spec: 1 }));
    const list = await get(api, "/api/v1/pods");
    assert.deepEqual(names(list), ["shop/aaa", "shop/web-10", "shop/web-2", "shop/web-3"]);
    assert.equal(list.metadata.resourceVersion, "14");
    assert.equal(list.items[2].spec, 1);
    informer.put(object("shop-2/db", 15));
    informer.remove("shop/aaa", 16);
    informer.relist([object("zoo/new", 20), object("shop/web-2", 14)], 21);
    assert.deepEqual(names(await get(api, "/api/v1/pods")), ["shop/web-2", "zoo/new"]);
  });

  it("has another tag once an object of it has changed, in a namespace or in none", async () => {
    for (const [key, path] of [["n-1", "/api/v1/nodes"], ["shop/web-1", "/api/v1/pods"]]) {
      const informer = FakeInformer.with([object(key, 5)], 10);
      const resource = key === "n-1" ? "v1/nodes" : "v1/pods";
      const api = readApi({ resources: [{ informer, resource }], allowAnonymous: true });
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { headers } = await api.request(path);
      informer.put(object(key, 11, { labels: { changed: "yes" } }));
      // deno-lint-ignore no-await-in-loop -- one after the other
      const next = await api.request(path, { headers: { "If-None-Match": headers.get("ETag")! } });
      assert.equal(next.status, 200, path);
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal((await next.json()).items[0].metadata.labels.changed, "yes");
    }
  });

  it("has another tag in a namespace that has changed, however many others have changed since", async () => {
    const { api, informer } = apiOf([object("first/web", 5)], 10, { eventWindow: 10_000 });
    const path = "/api/v1/namespaces/first/pods";
    const { headers } = await api.request(path);
    const again = () => api.request(path, { headers: { "If-None-Match": headers.get("ETag")! } });
    assert.equal((await again()).status, 304);
    informer.put(object("first/web", 11));
    for (let i = 0; i < 4_200; i++) informer.put(object(`other-${i}/web`, 12 + i));
    assert.equal((await again()).status, 200);
  });

  it("is at a bookmark's resourceVersion once one came", async () => {
    const { api, informer } = apiOf(THREE, 10);
    informer.bookmark(99);
    assert.equal((await get(api, "/api/v1/pods")).metadata.resourceVersion, "99");
  });

  it("of a namespace holds that namespace only; of an unknown one nothing", async () => {
    const { api } = apiOf(THREE, 10);
    assert.deepEqual(names(await get(api, "/api/v1/namespaces/shop/pods")), ["shop/web-10", "shop/web-2"]);
    assert.deepEqual(names(await get(api, "/api/v1/namespaces/shop-2/pods")), ["shop-2/db"]);
    assert.deepEqual((await get(api, "/api/v1/namespaces/nowhere/pods")).items, []);
  });

  it("selects by labels and fields", async () => {
    const { api } = apiOf([
      ...THREE,
      object("shop/run", 8, { spec: { nodeName: "n1" }, status: { phase: "Running" } }),
    ], 10);
    assert.deepEqual(names(await get(api, "/api/v1/pods?labelSelector=app+in+(web,api)")), ["shop/web-2"]);
    assert.deepEqual(names(await get(api, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")), ["shop/run"]);
    assert.deepEqual(names(await get(api, "/api/v1/pods?fieldSelector=metadata.namespace%3Dshop-2")), [
      "shop-2/db",
    ]);
    // The key shows the one that is required, and not the one that is excluded.
    for (const [excluded, expected] of [["run", []], ["db", ["shop/run"]]] as const) {
      const fields = encodeURIComponent(`metadata.name=run,metadata.name!=${excluded}`);
      assert.deepEqual(names(await get(api, `/api/v1/pods?fieldSelector=${fields}`)), expected);
    }
    const status = await get(api, "/api/v1/pods?fieldSelector=spec.priority%3D1", { status: 400 });
    assert.equal(status.message, "field label not supported: spec.priority");
  });

  it("streams a large list, whose pieces make one document", async () => {
    const objects = Array.from(
      { length: 3_000 },
      (_, i) => object(`shop/p-${i}`, i + 1, { spec: "x".repeat(500) }),
    );
    const { api } = apiOf(objects, 5_000);
    for (const query of ["", "?pretty=1"]) {
      const list = await get(api, `/api/v1/pods${query}`);
      assert.deepEqual(names(list), objects.map(({ metadata }) => `shop/${metadata?.name}`).sort());
    }
  });

  it("is indented when asked, and the same document", async () => {
    const { api } = apiOf(THREE, 10);
    const text = await (await api.request("/api/v1/pods?pretty=true")).text();
    assert.equal(text, JSON.stringify(await get(api, "/api/v1/pods"), null, 2));
    const empty = await (await api.request("/api/v1/namespaces/nowhere/pods?pretty=true")).text();
    assert.equal(empty, JSON.stringify(JSON.parse(empty), null, 2));
  });

  it("answers 503 with Retry-After, and names the resource, before the informer has synced", async () => {
    const informer = new FakeInformer();
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    for (const path of ["/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/shop/pods/web-2"]) {
      const response = await api.request(path);
      assert.equal(response.status, 503);
      assert.equal(response.headers.get("Retry-After"), "1");
      assert.match((await response.json()).message, /the cache of pods has not synced yet/);
    }
    informer.relist(THREE, 10);
    assert.equal(names(await get(api, "/api/v1/pods")).length, 3);
  });
});

describe("readApi, a page", () => {
  const TEN = Array.from({ length: 10 }, (_, i) => object(`shop/p-${i}`, i + 1));

  async function walk(api: Hono, path: string, between: () => void = () => {}): Promise<Json[]> {
    const pages = [await get(api, path)];
    between();
    while (pages[pages.length - 1].metadata.continue !== undefined) {
      const token = encodeURIComponent(pages[pages.length - 1].metadata.continue);
      pages.push(await get(api, `${path}&continue=${token}`));
    }
    return pages;
  }

  it("hold limit objects each, and the number that come after", async () => {
    const { api } = apiOf(TEN, 20);
    const pages = await walk(api, "/api/v1/pods?limit=4");
    assert.deepEqual(pages.map(({ items }) => items.length), [4, 4, 2]);
    assert.deepEqual(pages.map(({ metadata }) => metadata.remainingItemCount), [6, 2, undefined]);
    assert.deepEqual(pages.flatMap(names), TEN.map(({ metadata }) => `shop/${metadata?.name}`));
  });

  it("are of one snapshot, whatever happens in between", async () => {
    const { api, informer } = apiOf(TEN, 20);
    const pages = await walk(api, "/api/v1/namespaces/shop/pods?limit=3", () => {
      informer.put(object("shop/p-5a", 21));
      informer.put(object("shop/p-6", 22, { spec: "new" }));
      informer.remove("shop/p-8", 23);
      informer.put(object("shop/p-8", 24, { spec: "again" }));
      informer.remove("shop/p-9", 25);
      informer.put(object("shop/z", 26));
      informer.put(object("shop/z", 27));
    });
    assert.deepEqual(pages.flatMap(({ items }) => items), TEN);
    assert.deepEqual(new Set(pages.map(({ metadata }) => metadata.resourceVersion)), new Set(["20"]));
  });

  it("are of one snapshot across a relist", async () => {
    const { api, informer } = apiOf(TEN, 20);
    const pages = await walk(api, "/api/v1/pods?limit=6", () => {
      informer.put(object("shop/p-7", 30));
      informer.relist([object("shop/p-8", 33), object("shop/q", 34)], 40);
    });
    assert.deepEqual(pages.flatMap(({ items }) => items), TEN);
  });

  it("ends where a field selector names the only object that there can be", async () => {
    const { api, informer } = apiOf(TEN, 20);
    const one = "limit=1&fieldSelector=metadata.name%3Dp-3";
    const past = "&resourceVersion=20&resourceVersionMatch=Exact";
    informer.put(object("shop-2/p-3", 21));
    for (const query of [one, `${one},metadata.name!%3Dp-4`, `${one}&labelSelector=!none`, one + past]) {
      const pages = await walk(api, `/api/v1/namespaces/shop/pods?${query}`);
      assert.deepEqual(pages.map(names), [["shop/p-3"]], query);
    }
    // Another namespace may have an object of that name.
    assert.deepEqual((await walk(api, `/api/v1/pods?${one}`)).flatMap(names), ["shop-2/p-3", "shop/p-3"]);
  });

  it("have no remainingItemCount under a selector", async () => {
    const objects = TEN.map((pod, i) =>
      object(`shop/p-${i}`, i + 1, { labels: { odd: String(i % 2) }, pod })
    );
    const { api } = apiOf(objects, 20);
    const pages = await walk(api, "/api/v1/pods?limit=2&labelSelector=odd%3D1");
    assert.deepEqual(pages.flatMap(names), ["shop/p-1", "shop/p-3", "shop/p-5", "shop/p-7", "shop/p-9"]);
    assert.ok(pages.every(({ metadata }) => !("remainingItemCount" in metadata)));
  });

  it("may continue with another limit, or with none", async () => {
    const { api } = apiOf(TEN, 20);
    const token = (await get(api, "/api/v1/pods?limit=2")).metadata.continue;
    assert.equal((await get(api, `/api/v1/pods?limit=5&continue=${token}`)).items.length, 5);
    assert.equal((await get(api, `/api/v1/pods?continue=${token}`)).items.length, 8);
  });

  it("are refused with a token that is none: 400", async () => {
    const { api } = apiOf(TEN, 20);
    const odd = btoa('{"v":"meta.k8s.io/v1","rv":"-7","start":"a"}');
    for (const token of ["zzz", "%00", btoa("{}"), btoa("3"), odd]) {
      await get(api, `/api/v1/pods?limit=2&continue=${token}`, { status: 400 });
    }
  });

  it("that are too old are 410, with a token to continue inconsistently", async () => {
    const { api, informer } = apiOf(TEN, 20, { eventWindow: 2 });
    const token = (await get(api, "/api/v1/pods?limit=4")).metadata.continue;
    for (let i = 0; i < 4; i++) informer.put(object("shop/p-9", 21 + i));
    const status = await get(api, `/api/v1/pods?limit=4&continue=${token}`, { status: 410 });
    assert.equal(status.reason, "Expired");
    const rest = await get(api, `/api/v1/pods?continue=${status.metadata.continue}`);
    assert.equal(rest.items.length, 6);
    assert.equal(rest.metadata.resourceVersion, "24");
  });

  it("shows nothing of another namespace to a request there with a token of another namespace", async () => {
    const { api } = apiOf(["a/x", "a/y", "b/x", "b/y", "c/x"].map((name, i) => object(name, i + 1)), 10);
    const of = (namespace: string) => `/api/v1/${namespace && `namespaces/${namespace}/`}pods`;
    for (const from of ["a", "b", ""]) {
      const token = (await get(api, `${of(from)}?limit=1`)).metadata.continue;
      for (const into of ["a", "b", "c", ""]) {
        if (into === from) continue;
        const { message } = await get(api, `${of(into)}?limit=9&continue=${token}`, { status: 400 });
        assert.match(message, /it is of another list/);
      }
    }
  });

  it("end with their namespace, though another one's name begins with its name", async () => {
    const found = ["b-1/x", "b/x", "b0/x", "b00/x", "bb/x"].map((name, i) => object(name, i + 1));
    const { api } = apiOf(found, 10);
    for (const query of ["", "?limit=1", "?limit=9"]) {
      const list = await get(api, `/api/v1/namespaces/b/pods${query}`);
      assert.deepEqual([names(list), list.metadata.continue], [["b/x"], undefined]);
    }
  });

  it("show what is there now, though the same was listed before it changed", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6)], 10);
    const versions = async () =>
      (await get(api, "/api/v1/pods")).items.map(({ metadata }: Json) => metadata.resourceVersion);
    assert.deepEqual(await versions(), ["5", "6"]);
    informer.put(object("shop/a", 11));
    assert.deepEqual(await versions(), ["11", "6"]);
    informer.remove("shop/a", 12);
    informer.put(object("shop/a", 13));
    assert.deepEqual(await versions(), ["13", "6"]);
  });

  it("stay in the namespace of the request, whatever place a client writes into a token", async () => {
    const { api } = apiOf(["a/x", "a/y", "b/x", "b/y", "c/x"].map((name, i) => object(name, i + 1)), 10);
    const path = "/api/v1/namespaces/b/pods";
    const token = (await get(api, `${path}?limit=1`)).metadata.continue;
    const content = JSON.parse(atob(token));
    for (
      const [start, found] of [["A", 2], ["/x\0", 1], ["x\0", 1], [
        "/y0",
        0,
      ]] as const
    ) {
      const forged = btoa(JSON.stringify({ ...content, start })).replace(/=+$/, "");
      for (const limit of ["", "&limit=9"]) {
        const list = await get(api, `${path}?continue=${forged}${limit}`);
        assert.deepEqual(names(list), ["b/x", "b/y"].slice(2 - found), start);
      }
    }
    for (const start of ["/../a/", "//a/x"]) {
      await get(api, `${path}?continue=${btoa(JSON.stringify({ ...content, start }))}`, { status: 400 });
    }
  });

  it("come in the order of their keys where labels are looked up in an index", async () => {
    const objects = ["d", "b", "a", "e", "c", "f"].map((name, i) =>
      object(`shop/${name}`, i + 1, { labels: { app: i % 2 === 0 ? "web" : "api" } })
    );
    for (let i = 0; i < 20; i++) objects.push(object(`shop/z-${i}`, i + 10, { labels: { app: "db" } }));
    const informer = FakeInformer.with(objects, 40, { labels: labelIndexFunc() });
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    const path = `/api/v1/pods?limit=2&labelSelector=${encodeURIComponent("app in (web,api)")}`;
    const found: string[] = [];
    let page = await get(api, path);
    found.push(...names(page));
    while (page.metadata.continue !== undefined) {
      page = await get(api, `${path}&continue=${page.metadata.continue}`);
      found.push(...names(page));
    }
    assert.deepEqual(found, ["a", "b", "c", "d", "e", "f"].map((name) => `shop/${name}`));
  });

  it("do not apply to a list at resourceVersion 0", async () => {
    const { api } = apiOf(TEN, 20);
    assert.equal((await get(api, "/api/v1/pods?limit=3&resourceVersion=0")).items.length, 10);
  });
});

describe("readApi, a page at a resourceVersion", () => {
  it("is at least as new by default, exactly that with Exact", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    informer.put(object("shop/b", 11));
    informer.put(object("shop/c", 12));
    assert.equal((await get(api, "/api/v1/pods?resourceVersion=11")).metadata.resourceVersion, "12");
    const notOlder = await get(api, "/api/v1/pods?resourceVersion=11&resourceVersionMatch=NotOlderThan");
    assert.deepEqual(names(notOlder), ["shop/a", "shop/b", "shop/c"]);
    const page = "/api/v1/pods?limit=1&resourceVersion=11";
    const version = async (match: string) => (await get(api, page + match)).metadata.resourceVersion;
    assert.equal(await version("&resourceVersionMatch=NotOlderThan"), "12");
    assert.equal(await version(""), "11");
    const exact = await get(api, "/api/v1/pods?resourceVersion=11&resourceVersionMatch=Exact");
    assert.deepEqual(names(exact), ["shop/a", "shop/b"]);
    assert.equal(exact.metadata.resourceVersion, "11");
  });

  it("that is not kept any more is 410", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    await get(api, "/api/v1/pods?resourceVersion=9&resourceVersionMatch=Exact", { status: 410 });
    informer.relist([object("shop/a", 15)], 20);
    // What the cache held before the relist is known; what happened on the way to it is not.
    assert.equal(
      (await get(api, "/api/v1/pods?resourceVersion=10&resourceVersionMatch=Exact")).items[0].metadata
        .resourceVersion,
      "5",
    );
    await get(api, "/api/v1/pods?resourceVersion=16&resourceVersionMatch=Exact", { status: 410 });
  });

  it("from the future waits, then is 504", async () => {
    const { api, informer, clock } = apiOf([object("shop/a", 5)], 10);
    const fulfilled = get(api, "/api/v1/pods?resourceVersion=12&resourceVersionMatch=Exact");
    const late = get(api, "/api/v1/pods?resourceVersion=13", { status: 504 });
    await clock.advance(1_000);
    informer.bookmark(12);
    assert.equal((await fulfilled).metadata.resourceVersion, "12");
    await clock.advance(2_000);
    assert.match((await late).message, /Too large resource version: 13, current: 12/);
  });

  it("compares resourceVersions as numbers of any length", async () => {
    const { api, informer, clock } = apiOf([object("shop/a", 5)], 9);
    const answer = get(api, "/api/v1/pods?resourceVersion=10");
    await clock.advance(0);
    informer.put(object("shop/b", 10));
    assert.equal((await answer).items.length, 2);
  });
});

describe("readApi, for what it does not serve,", () => {
  const NOT_FOUND = "the server could not find the requested resource";

  it("is 404 as a Status", async () => {
    const { api } = apiOf(THREE, 10);
    const paths = [
      "/api/v1/gizmos",
      "/api/v2/pods",
      "/apis/apps/v1/deployments",
      "/api/v1/pods/web-2", // no namespace
      "/api/v1/namespaces/shop/pods/web-2/scale",
      "/api/v1/namespaces/shop//pods",
    ];
    for (const path of paths) {
      assert.equal((await get(api, path, { status: 404 })).message, NOT_FOUND, path);
    }
  });

  it("does not find a cluster-scoped object within a namespace", async () => {
    const informer = FakeInformer.with([object("n1", 5)], 10);
    const api = readApi({ resources: [{ informer, resource: "v1/nodes" }], allowAnonymous: true });
    await get(api, "/api/v1/nodes/n1");
    await get(api, "/api/v1/namespaces/shop/nodes/n1", { status: 404 });
    await get(api, "/api/v1/namespaces/shop/nodes", { status: 404 });
  });

  it("refuses writes with 405 that says what this is, and reads their bodies", async () => {
    const { api } = apiOf(THREE, 10);
    const writes = [
      ["POST", "/api/v1/namespaces/shop/pods"],
      ["PUT", "/api/v1/namespaces/shop/pods/web-2"],
      ["PATCH", "/api/v1/namespaces/shop/pods/web-2"],
      ["DELETE", "/api/v1/namespaces/shop/pods/web-2"],
      ["DELETE", "/api/v1/namespaces/shop/pods"],
    ];
    for (const [method, path] of writes) {
      const request = new Request(`http://cache${path}`, { method, body: "{}" });
      const response = await api.fetch(request);
      assert.equal(response.status, 405);
      const status = await response.json();
      assert.equal(status.reason, "MethodNotAllowed");
      assert.match(status.message, /read-only cache of pods.*send writes to the API server/);
      assert.ok(request.bodyUsed);
    }
  });

  it("answers HEAD of custom resources as GET, without a body, and leaves no watch open", async () => {
    const informer = FakeInformer.with([object("shop/one", 5)], 10);
    const resources = [{ informer, resource: WIDGET_RESOURCE }];
    const api = readApi({ resources, allowAnonymous: true, clock: new FakeClock() });
    const path = "/apis/example.com/v1/namespaces/shop/widgets";
    const found: Record<string, number> = {
      "": 200,
      "/one": 200,
      "/none": 404,
      "/one/log": 404,
      "?limit=x": 400,
      "?watch=1": 200,
      "?timeout=1ns": 504,
    };
    for (const [rest, status] of Object.entries(found)) {
      const head = await api.request(path + rest, { method: "HEAD" });
      assert.deepEqual([rest, head.status, head.body], [rest, status, null]);
      assert.equal(head.headers.get("Content-Type"), "application/json");
    }
    await nextTurn();
    assert.deepEqual(api.openWatches(), [0]);
  });

  it("ends with 504 where it takes longer than the request's timeout, as on an API server", async () => {
    const { informer, api, clock } = apiOf(THREE, 10, { freshnessTimeoutMs: 3_000 });
    const late = async (query: string) => {
      const started = clock.now();
      let answer: Response | undefined;
      const request = async () => answer = await api.request(`/api/v1/pods?resourceVersion=11&${query}`);
      const pending = request();
      await clock.until(() => answer !== undefined);
      await pending;
      return [answer!.status, (await answer!.json()).message.split(":")[0], clock.now() - started];
    };
    assert.deepEqual(await late("timeout=1ns"), [504, "Timeout", 0]);
    assert.deepEqual(await late("timeout=1500ms"), [504, "Timeout", 1_500]);
    assert.deepEqual(await late("timeout=1h"), [504, "Timeout", 3_000]);
    assert.deepEqual(await late("timeout=-5s"), [504, "Timeout", 3_000]);
    assert.equal(clock.pendingTimers, 0);
    informer.put(object("shop/web-3", 11));
    assert.equal((await get(api, "/api/v1/pods?resourceVersion=11&timeout=1ms")).items.length, 4);
    assert.equal(clock.pendingTimers, 0);
  });

  it("fails within its timeout as without one", async () => {
    const logger = new LogRecorder();
    const resource = {
      ...WIDGET_RESOURCE,
      get printerColumns(): never {
        throw new Error("no columns");
      },
    };
    const resources = [{ informer: FakeInformer.with([], 10), resource }];
    const api = readApi({ resources, allowAnonymous: true, clock: new FakeClock(), logger });
    const headers = { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    for (const query of ["", "?timeout=1s"]) {
      const answer = await api.request(`/apis/example.com/v1/widgets${query}`, { headers });
      assert.equal(answer.status, 500);
      assert.match((await answer.json()).message, /its log says why/);
    }
    assert.match(logger.lines.join(), /\/apis\/example.com\/v1\/widgets failed: no columns/);
  });

  it("refuses a timeout that is none before whatever else is wrong, as an API server does", async () => {
    const { api } = apiOf(THREE, 10);
    const wrong: Record<string, RequestInit> = {
      "/api/v1/pods?timeoutSeconds=x&limit=ten": {},
      "/api/v1/pods?labelSelector=(&fieldSelector=z": {},
      "/api/v1/pods?resourceVersionMatch=q&resourceVersion=v": {},
      "/api/v1/pods?": { headers: { Accept: "text/html" } },
      "/api/v1/namespaces/shop/pods/none?": {},
      "/api/v1/namespaces/shop/pods/web-1/none?": {},
      "/api/v1/namespaces/shop/pods/web-1?watch=1": {},
      "/api/v1/nodes?": {},
      "/api/v2?": {},
      "/indices/pods?": {},
      "/indices/none?": {},
      "/api/v1/namespaces/shop/pods?x": { method: "POST" },
    };
    for (const [path, init] of Object.entries(wrong)) {
      const answers = ["timeout=1x", "timeout=1us", "t%69meout=1x", "timeout=1x;"].map(async (timeout) =>
        (await api.request(`${path}&${timeout}`, init)).status
      );
      const [invalid, over, escaped, ignored] = await Promise.all(answers);
      assert.deepEqual([path, invalid, over, escaped], [path, 400, 504, 400]);
      assert.equal(ignored, (await api.request(path, init)).status);
    }
    assert.equal((await api.request("/api/v1/pods?watch=1&timeout=1x&timeoutSeconds=-1")).status, 200);
  });

  it("takes a second question mark for a part of a parameter's name", async () => {
    const { api } = apiOf(THREE, 10);
    assert.equal((await get(api, "/api/v1/pods??limit=1")).items.length, 3);
  });

  it("refuses what no API server does either with its own words; HEAD of built-in resources is 405", async () => {
    const { api } = apiOf(THREE, 10);
    const response = await api.request("/api/v1/pods", { method: "POST", body: "{}" });
    assert.equal(response.status, 405);
    assert.equal(
      (await response.json()).message,
      "the server does not allow this method on the requested resource",
    );
    for (const path of ["/api/v1/pods", "/api/v1/pods?watch=1"]) {
      const head = await api.request(path, { method: "HEAD" });
      assert.equal(head.status, 405);
      assert.equal(await head.text(), "");
    }
  });
});

describe("readApi, mounted,", () => {
  it("serves under a path, with parameters in it", async () => {
    const { api } = apiOf(THREE, 10);
    const app = new Hono().route("/clusters/:name", api);
    assert.equal((await get(app, "/clusters/prod/api/v1/namespaces/shop/pods")).items.length, 2);
    assert.equal((await get(app, "/clusters/prod/api/v1/")).kind, "APIResourceList");
    assert.equal(await (await app.request("/clusters/prod/healthz")).text(), "ok");
  });
});

describe("/readyz", () => {
  it("is 503 and names the informers that have not synced", async () => {
    const pods = FakeInformer.with([], 10);
    const deployments = new FakeInformer();
    deployments.phase = "listing";
    const api = readApi({
      resources: [{ informer: pods, resource: "v1/pods" }, {
        informer: deployments,
        resource: "apps/v1/deployments",
      }],
      allowAnonymous: true,
    });
    const response = await api.request("/readyz");
    assert.equal(response.status, 503);
    assert.equal(
      await response.text(),
      "[+]ping ok\n[+]informer/pods ok\n[-]informer/deployments.apps failed: not synced, listing\nreadyz check failed\n",
    );
    deployments.relist([], 3);
    assert.equal(await (await api.request("/readyz")).text(), "ok");
    assert.match(
      await (await api.request("/readyz?verbose")).text(),
      /^\[\+\]informer\/deployments.apps ok$/m,
    );
  });
});
