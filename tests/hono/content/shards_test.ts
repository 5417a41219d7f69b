import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { MergedInformer, type ReadApi } from "@listwatch/cache/hono";
import { shardOf } from "@listwatch/cache/reflector";
import assert from "node:assert/strict";
import fc from "fast-check";
import { type ShardField, ShardSelector } from "../../../src/meta/shard_hash.ts";
import { LogRecorder } from "../../log_recorder.ts";
import { propertyOptions } from "../../property.ts";
import { WIDGET_RESOURCE } from "../../widgets.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";

const PODS = "/api/v1/pods";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/** The uids differ in their first characters: those decide on a hash's place most of all. */
function pod(name: string, resourceVersion: number, uid = `${name.split("-").at(-1)}-uid`): TestObject {
  const { metadata } = object(name, resourceVersion);
  return { metadata: { ...metadata, uid, labels: { app: "web" } }, spec: { nodeName: "n1" } };
}

const NAMESPACES = ["shop", "blog", "db", "kube-system", "a", "web", "prod"];
const ALL = Array.from({ length: 40 }, (_, i) => pod(`${NAMESPACES[i % 7]}/web-${i}`, i + 1));
const KEYS = ALL.map(({ metadata }) => `${metadata!.namespace}/${metadata!.name}`).toSorted();

function serve(objects: readonly TestObject[] = ALL, resource: string | typeof WIDGET_RESOURCE = "v1/pods") {
  const informer = FakeInformer.with(objects, 1_000, { byApp: ({ metadata }) => [metadata!.labels!.app] });
  return { informer, api: readApi({ resources: [{ informer, resource }], allowAnonymous: true }) };
}

/** The selector of a shard, as a parameter and as it is shown; and the keys of its objects. */
function shard(index: number, of = 2, by: ShardField = "uid") {
  const selector = ShardSelector.range(by, index, of);
  const keys = KEYS.filter((key) =>
    selector.matches(ALL.find(({ metadata }) => key.endsWith(`/${metadata!.name}`)))
  );
  return { query: `shardSelector=${encodeURIComponent(String(selector))}`, text: String(selector), keys };
}

const [LOW, HIGH] = [shard(0), shard(1)];

/** A list of all pages. */
async function pages(api: ReadApi, path: string): Promise<Json[]> {
  const all: Json[] = [];
  for (let next = ""; all.length === 0 || next !== "";) {
    const page = await get(api, path + (next && `&continue=${next}`));
    all.push(page);
    next = page.metadata.continue ?? "";
  }
  return all;
}

describe("readApi, a list with a shardSelector", () => {
  it("has the objects of the shard, and says whose they are", async () => {
    const { api } = serve();
    for (const { query, text, keys } of [LOW, HIGH, shard(2, 5), shard(1, 2, "namespace")]) {
      assert.ok(keys.length > 0 && keys.length < ALL.length);
      const list = await get(api, `${PODS}?${query}`);
      assert.deepEqual(names(list), keys);
      assert.deepEqual(list.metadata, { resourceVersion: "1000", shardInfo: { selector: text } });
    }
    assert.deepEqual((await get(api, PODS)).metadata, { resourceVersion: "1000" });
  });

  it("says so in each form but a Table, as kube-apiserver", async () => {
    const { api } = serve();
    const shardInfo = { selector: LOW.text };
    const partial = await get(api, `${PODS}?${LOW.query}`, { accept: PARTIAL });
    assert.deepEqual([names(partial), partial.metadata.shardInfo], [LOW.keys, shardInfo]);
    const cut = await get(api, `${PODS}?${LOW.query}&fields=spec.nodeName`);
    assert.deepEqual([names(cut), cut.metadata.shardInfo], [LOW.keys, shardInfo]);
    const yaml = await api.request(`${PODS}?${LOW.query}`, { headers: { Accept: "application/yaml" } });
    assert.match(
      await yaml.text(),
      /\n {2}shardInfo:\n {4}selector: "?shardRange\(object\.metadata\.uid, '0x0/,
    );
    const table = await get(api, `${PODS}?${LOW.query}`, { accept: TABLE });
    assert.deepEqual(table.metadata, { resourceVersion: "1000" });
    assert.deepEqual(
      table.rows.map(({ object: { metadata } }: Json) => `${metadata.namespace}/${metadata.name}`),
      LOW.keys,
    );
    const { api: widgets } = serve(ALL, WIDGET_RESOURCE);
    const { group, version, resource } = WIDGET_RESOURCE;
    const custom = await get(widgets, `/apis/${group}/${version}/${resource}?${LOW.query}`);
    assert.deepEqual(custom.metadata, { continue: "", resourceVersion: "1000", shardInfo });
  });

  it("is narrowed by everything else in the request", async () => {
    const { api } = serve();
    const [key] = LOW.keys;
    const [namespace, name] = key.split("/");
    const own = LOW.keys.filter((each) => each.startsWith(`${namespace}/`));
    assert.deepEqual(names(await get(api, `/api/v1/namespaces/${namespace}/pods?${LOW.query}`)), own);
    const one = `fieldSelector=metadata.name%3D${name}`;
    assert.deepEqual(names(await get(api, `${PODS}?${LOW.query}&${one}`)), [key]);
    assert.deepEqual(names(await get(api, `${PODS}?${HIGH.query}&${one}`)), []);
    for (
      const selected of [
        "labelSelector=app%3Dweb",
        "filter=spec.nodeName%3Dn1",
        "fieldSelector=spec.nodeName%3Dn1",
      ]
    ) {
      assert.deepEqual(names(await get(api, `${PODS}?${LOW.query}&${selected}`)), LOW.keys, selected);
    }
    assert.deepEqual(names(await get(api, `${PODS}?${LOW.query}&labelSelector=app%3Ddb`)), []);
    assert.deepEqual(names(await get(api, `/indices/pods/byApp/web?${LOW.query}`)), LOW.keys);
  });

  it("has pages of the shard, without a count of the rest, and its own tokens", async () => {
    const { api } = serve();
    const all = await pages(api, `${PODS}?limit=3&${LOW.query}`);
    assert.deepEqual(all.flatMap(names), LOW.keys);
    for (const { items, metadata } of all) {
      assert.ok(items.length <= 3);
      assert.deepEqual([metadata.remainingItemCount, metadata.shardInfo], [undefined, {
        selector: LOW.text,
      }]);
    }
    const token = all[0].metadata.continue;
    for (const other of [`&${HIGH.query}`, ""]) {
      const refused = await get(api, `${PODS}?limit=3${other}&continue=${token}`, { status: 400 });
      assert.match(refused.message, /it is of another list/);
    }
    const exact = "limit=3&resourceVersion=1000&resourceVersionMatch=Exact";
    assert.deepEqual(names(await get(api, `${PODS}?${exact}&${HIGH.query}`)), HIGH.keys.slice(0, 3));
  });

  it("has orders, pages of them and groups of the shard", async () => {
    const { api } = serve();
    const sorted = await pages(api, `${PODS}?limit=4&sortBy=metadata.name:desc&${LOW.query}`);
    const whole = names(await get(api, `${PODS}?sortBy=metadata.name:desc`));
    assert.deepEqual(sorted.flatMap(names), whole.filter((key) => LOW.keys.includes(key)));
    for (const { metadata, window } of sorted) {
      assert.deepEqual([metadata.shardInfo, window.total], [{ selector: LOW.text }, LOW.keys.length]);
    }
    const token = sorted[0].metadata.continue;
    await get(api, `${PODS}?limit=4&sortBy=metadata.name:desc&${HIGH.query}&continue=${token}`, {
      status: 400,
    });
    const counts = async (query: string) =>
      (await get(api, `${PODS}?groupBy=spec.nodeName${query}`)).items.map(({ count }: Json) => count);
    assert.deepEqual(await counts(`&${LOW.query}`), [LOW.keys.length]);
    assert.deepEqual(await counts(""), [ALL.length]);
  });

  it("shares its body and its tag with lists of the same shard only", async () => {
    const { api } = serve();
    const ask = async (query: string, tag = "") => {
      const response = await api.request(`${PODS}?${query}`, { headers: { "If-None-Match": tag } });
      return { status: response.status, tag: response.headers.get("ETag")!, text: await response.text() };
    };
    const [low, high, whole] = [await ask(LOW.query), await ask(HIGH.query), await ask("")];
    assert.equal(new Set([low.tag, high.tag, whole.tag]).size, 3);
    assert.deepEqual(await ask(LOW.query), low);
    assert.deepEqual(names(JSON.parse((await ask(HIGH.query)).text)), HIGH.keys);
    assert.deepEqual(names(JSON.parse((await ask("")).text)), KEYS);
    const spaced = LOW.query.replaceAll("%2C%20", "%2C");
    assert.notEqual(spaced, LOW.query);
    assert.equal((await ask(spaced, low.tag)).status, 304, "the same shard, written in another way");
    assert.equal((await ask(HIGH.query, low.tag)).status, 200);
    assert.equal((await ask("", low.tag)).status, 200);
  });
});

describe("readApi, a watch with a shardSelector", () => {
  it("begins with the shard, and sends the events of its objects, beside watches of others", async () => {
    const { informer, api } = serve();
    const shards = [LOW, HIGH, { query: "", keys: KEYS }];
    const start = "watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan";
    const watches = await Promise.all(
      shards.map(({ query }) => WatchReader.open(api, `${PODS}?${start}&${query}`)),
    );
    for (const [i, { keys }] of shards.entries()) {
      const lines = await watches[i].lines(keys.length + 1);
      assert.deepEqual(lines.slice(0, -1).map((line) => line.split(" ")[1]), keys);
      assert.equal(lines.at(-1), "BOOKMARK 1000 end");
    }
    const [low, high] = [LOW.keys[0], HIGH.keys[0]];
    informer.put(pod(low, 1_001));
    informer.put(pod(high, 1_002));
    informer.remove(low, 1_003);
    informer.put(pod(high, 1_004));
    assert.deepEqual(await watches[0].lines(2), [`MODIFIED ${low} 1001`, `DELETED ${low} 1003`]);
    assert.deepEqual(await watches[1].lines(2), [`MODIFIED ${high} 1002`, `MODIFIED ${high} 1004`]);
    assert.equal((await watches[2].lines(4)).length, 4);
    for (const watch of watches) await watch.cancel();
  });

  it("sees an object that another one has replaced leave its shard, or enter it", async () => {
    const { informer, api } = serve();
    const watches = await Promise.all(
      [LOW, HIGH].map(({ query }) => WatchReader.open(api, `${PODS}?watch=1&resourceVersion=1000&${query}`)),
    );
    const [key] = LOW.keys;
    const uid = ALL.find(({ metadata }) => HIGH.keys[0].endsWith(`/${metadata!.name}`))!.metadata!.uid;
    informer.put(pod(key, 1_001, uid));
    assert.deepEqual(await watches[0].lines(1), [`DELETED ${key} 1001`]);
    assert.deepEqual(await watches[1].lines(1), [`ADDED ${key} 1001`]);
    for (const watch of watches) await watch.cancel();
  });

  it("of a window has the rows of the shard, and says whose they are", async () => {
    const { api } = serve();
    const watch = await WatchReader.open(api, `${PODS}?watch=1&sortBy=metadata.name&limit=100&${LOW.query}`);
    const [{ object: list }] = await watch.events(1);
    assert.deepEqual(names(list).toSorted(), LOW.keys);
    assert.deepEqual(list.metadata.shardInfo, { selector: LOW.text });
    await watch.cancel();
  });
});

describe("readApi, all shards of a content", () => {
  it("have each object once: lists, pages, watches, and of several sources", async () => {
    const name = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 99 }));
    const content = fc.uniqueArray(name, { selector: String, maxLength: 60 });
    const by = fc.constantFrom<ShardField>("uid", "namespace");
    const property = fc.asyncProperty(content, fc.integer({ min: 1, max: 6 }), by, async (all, of, by) => {
      const objects = all.map(([namespace, name], i) =>
        pod(`${namespace}-ns/p-${name}`, i + 1, `${name}${i}`)
      );
      const keys = objects.map(({ metadata }) => `${metadata!.namespace}/${metadata!.name}`).toSorted();
      const sources = [0, 1].map((i) => ({
        name: `s${i}`,
        informer: FakeInformer.with(objects.filter((_, j) => j % 2 === i), 1_000),
      }));
      const merged = readApi({
        resources: [{ informer: new MergedInformer(sources), resource: "v1/pods" }],
        allowAnonymous: true,
      });
      for (const api of [serve(objects).api, merged]) {
        const [listed, paged, watched]: string[][] = [[], [], []];
        for (let index = 0; index < of; index++) {
          const { query } = shard(index, of, by);
          const own = names(await get(api, `${PODS}?${query}`));
          listed.push(...own);
          paged.push(...(await pages(api, `${PODS}?limit=4&${query}`)).flatMap(names));
          const watch = await WatchReader.open(api, `${PODS}?watch=1&${query}`);
          watched.push(...(await watch.lines(own.length)).map((line) => line.split(" ")[1]));
          await watch.cancel();
        }
        assert.deepEqual(listed.toSorted(), keys);
        assert.deepEqual(paged, listed);
        assert.deepEqual(watched.toSorted(), keys);
      }
    });
    await fc.assert(property, propertyOptions(10));
  });
});

describe("shardOf a read API", () => {
  for (const useWatchList of [true, false]) {
    it(`is sent its own objects only, ${useWatchList ? "by a watch" : "by a list, then a watch"}`, async () => {
      const { informer, api } = serve();
      const log = new LogRecorder();
      const sent: string[] = [];
      const selectors = new Set<string>();
      const fetch = async (url: string, init?: RequestInit) => {
        const response = await api.request(url, init);
        if (!new URL(url).searchParams.has("watch")) {
          const list = await response.clone().json();
          sent.push(...names(list));
          selectors.add(list.metadata.shardInfo.selector);
          return response;
        }
        const tap = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
          transform(chunk, controller) {
            const text = new TextDecoder().decode(chunk);
            for (const [, name] of text.matchAll(/"type":"ADDED".*?"name":"([^"]+)"/g)) sent.push(name);
            controller.enqueue(chunk);
          },
        });
        return new Response(response.body!.pipeThrough(tap), response);
      };
      const pods = newCluster({ server: "http://cache", fetch }).resource<KubernetesObject>("v1/pods");
      const informers = [0, 1, 2].map((index) =>
        new SharedIndexInformer(shardOf(pods, { index, of: 3, by: "uid", logger: log }), {
          logger: silentLogger,
          reflector: { useWatchList },
        })
      );
      const running = informers.map((each) => each.start());
      await Promise.all(informers.map((each) => each.synced(AbortSignal.timeout(5_000))));
      assert.equal(sent.length, ALL.length, "each once");
      if (!useWatchList) assert.deepEqual([...selectors], [0, 1, 2].map((index) => shard(index, 3).text));
      informer.put(pod("shop/late", 1_001));
      informer.bookmark(1_002);
      const keys = () => informers.flatMap(({ indexer }) => indexer.listKeys());
      for (let i = 0; i < 100 && keys().length === ALL.length; i++) {
        await new Promise((done) => setTimeout(done, 0));
      }
      assert.deepEqual(keys().toSorted(), [...KEYS, "shop/late"].toSorted());
      assert.equal(sent.length, ALL.length + 1);
      assert.deepEqual(log.lines, []);
      await Promise.all(running.map((each) => each.stop()));
    });
  }
});
