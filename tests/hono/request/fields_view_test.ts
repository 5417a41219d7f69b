import assert from "node:assert/strict";
import fc from "fast-check";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { InMemoryApiServer, seededRandom } from "@listwatch/cache/testing";
import type { Holding } from "../../../src/store/holding.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import type { FieldCut } from "../../../src/text/field_cut.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { describe, it, storage } from "../storages.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";
const FIELDS = "fields=status.phase,spec.containers[].image";

function pod(name: string, resourceVersion: number, phase = "Running", fields: Json = {}): TestObject {
  return object(name, resourceVersion, {
    labels: { app: "web" },
    spec: { nodeName: "n1", containers: [{ name: "app", image: "web:1" }, { name: "side", image: "s:2" }] },
    status: { phase, podIP: "10.0.0.1" },
    ...fields,
  });
}

/** What `FIELDS` shows of a pod. */
function shown(name: string, resourceVersion: number, phase = "Running"): Json {
  return {
    metadata: { name, namespace: "shop", resourceVersion: String(resourceVersion) },
    spec: { containers: [{ image: "web:1" }, { image: "s:2" }] },
    status: { phase },
  };
}

const TYPE = { kind: "Pod", apiVersion: "v1" };

function apiOf(objects: readonly TestObject[], options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with(objects, 10);
  const cuts = { count: 0 };
  const { holding } = informer.indexer as unknown as { holding: Holding<TestObject> };
  const json = holding.json.bind(holding);
  Object.assign(holding, {
    json: (held: TestObject, fields?: FieldCut) => {
      if (fields !== undefined) cuts.count++;
      return json(held, fields);
    },
  });
  const resources = [{ informer, resource: "v1/pods" }];
  return { clock, informer, cuts, api: readApi({ resources, allowAnonymous: true, clock, ...options }) };
}

const TWO = [pod("shop/web-1", 5), pod("shop/web-2", 6, "Pending")];

describe("newRowCut, of the rows of a Table,", () => {
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const fields = "fields=metadata.labels.app,spec.nodeName";
  const metadata = { name: "web-1", namespace: "shop", resourceVersion: "5", labels: { app: "web" } };

  it("leaves the fields of the object, and the cells as they are", async () => {
    const { api } = apiOf(TWO);
    for (const path of ["/api/v1/namespaces/shop/pods/web-1", `${PODS}?fieldSelector=metadata.name=web-1`]) {
      const query = path.includes("?") ? "&" : "?";
      const whole = await get(api, path, { accept });
      const partial = await get(api, `${path}${query}${fields}`, { accept });
      assert.deepEqual(partial.rows, [{
        cells: whole.rows[0].cells,
        object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata },
      }]);
      const own = await get(api, `${path}${query}${fields}&includeObject=Object`, { accept });
      assert.deepEqual(own.rows[0].object, { ...TYPE, metadata, spec: { nodeName: "n1" } });
      assert.deepEqual(own.rows[0].cells, whole.rows[0].cells);
      const none = await get(api, `${path}${query}${fields}&includeObject=None`, { accept });
      assert.equal(none.rows[0].object, null);
    }
  });

  it("hides no change of a watch: a cell may show it", async () => {
    const { api, informer } = apiOf(TWO);
    const path = `${PODS}?watch=1&allowWatchBookmarks=true&resourceVersion=10&${fields}`;
    const watch = await WatchReader.open(api, path, accept);
    informer.put(pod("shop/web-1", 11, "Failed"));
    const [{ type, object }] = await watch.events(1);
    assert.equal(type, "MODIFIED");
    assert.ok(object.rows[0].cells.includes("Failed"));
    assert.deepEqual(object.rows[0].object.metadata, { ...metadata, resourceVersion: "11" });
    await watch.cancel();
  });
});

describe("newFieldsView, of a get and a list,", () => {
  it("shows the fields, the type as without it, and what identifies the objects", async () => {
    const { api } = apiOf(TWO);
    assert.deepEqual(await get(api, `/api/v1/namespaces/shop/pods/web-1?${FIELDS}`), {
      ...TYPE,
      ...shown("web-1", 5),
    });
    assert.deepEqual(await get(api, `${PODS}?${FIELDS}`), {
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: "10" },
      items: [shown("web-1", 5), shown("web-2", 6, "Pending")],
    });
    const { metadata } = (await get(api, `${PODS}?fields=metadata.labels`)).items[0];
    assert.deepEqual(metadata, {
      name: "web-1",
      namespace: "shop",
      resourceVersion: "5",
      labels: { app: "web" },
    });
    assert.deepEqual((await get(api, `${PODS}?fields=metadata`)).items[0], { metadata });
  });

  it("shows no field that is not there, and a value of another type as it is", async () => {
    const { api } = apiOf([TWO[0]]);
    const [{ metadata: _, ...item }] =
      (await get(api, `${PODS}?fields=status.none,spec.nodeName.x,__proto__.y`)).items;
    assert.deepEqual(item, { status: {}, spec: { nodeName: "n1" } });
  });

  it("works with selectors, namespaces, the status and pages", async () => {
    const { api } = apiOf([...TWO, pod("store/db-1", 7), object("shop/x", 8)]);
    const page = await get(api, `/api/v1/namespaces/shop/pods?${FIELDS}&labelSelector=app%3Dweb&limit=1`);
    assert.deepEqual(page.items, [shown("web-1", 5)]);
    const next = `labelSelector=app%3Dweb&limit=1&continue=${page.metadata.continue}`;
    const rest = await get(api, `/api/v1/namespaces/shop/pods?${FIELDS}&${next}`);
    assert.deepEqual(rest.items, [shown("web-2", 6, "Pending")]);
    const status = await get(api, `/api/v1/namespaces/shop/pods/web-2/status?${FIELDS}`);
    assert.deepEqual(status, { ...TYPE, ...shown("web-2", 6, "Pending") });
  });

  it("is indented, or YAML, where that is accepted", async () => {
    const { api } = apiOf([TWO[0]]);
    const pretty = await (await api.request(`${PODS}?${FIELDS}&pretty=true`)).text();
    assert.match(pretty, /\n {6}"status": \{\n {8}"phase": "Running"\n {6}\}\n/);
    assert.deepEqual(JSON.parse(pretty).items, [shown("web-1", 5)]);
    const yaml = await api.request(`${PODS}?fields=status.phase`, {
      headers: { Accept: "application/yaml" },
    });
    assert.equal(
      await yaml.text(),
      "apiVersion: v1\nitems:\n- metadata:\n    name: web-1\n    namespace: shop\n" +
        '    resourceVersion: "5"\n  status:\n    phase: Running\n' +
        'kind: PodList\nmetadata:\n  resourceVersion: "10"\n',
    );
  });

  it("has tags and bodies of its own, whatever the order in which the same fields are requested", async () => {
    const { api } = apiOf(TWO);
    for (const path of [PODS, "/api/v1/namespaces/shop/pods/web-1"]) {
      const bodies = new Map<string, string>();
      const queries = [
        "",
        "?fields=status.phase",
        "?fields=status",
        "?fields=status.phase,spec",
        "?fields=spec,status.phase",
      ];
      for (const query of queries) {
        const response = await api.request(path + query);
        const tag = response.headers.get("ETag")!;
        const text = await response.text();
        assert.equal(bodies.get(tag) ?? text, text);
        bodies.set(tag, text);
        for (const [other] of bodies) {
          const again = await api.request(path + query, { headers: { "If-None-Match": other } });
          assert.equal(again.status, other === tag ? 304 : 200, query);
        }
      }
      assert.equal(bodies.size, 4);
      assert.equal(new Set(bodies.values()).size, 4);
    }
  });

  it("is kept and compressed for many readers: each object is cut once", async () => {
    const { api, cuts } = apiOf(Array.from({ length: 3_000 }, (_, i) => pod(`shop/web-${i}`, i + 11)));
    const gzip = { headers: { "Accept-Encoding": "gzip" } };
    const texts: string[] = [];
    for (let i = 0; i < 3; i++) {
      const response = await api.request(`${PODS}?${FIELDS}`, gzip);
      assert.equal(response.headers.get("Content-Encoding"), "gzip");
      const plain = response.body!.pipeThrough(new DecompressionStream("gzip"));
      texts.push(await new Response(plain).text());
    }
    assert.equal(JSON.parse(texts[0]).items.length, 3_000);
    assert.deepEqual(JSON.parse(texts[0]).items[9], shown("web-1005", 1_016));
    assert.equal(new Set(texts).size, 1);
    assert.equal(cuts.count, 3_000);
  });

  it("is cut from the texts that an API server has sent", async () => {
    const server = new InMemoryApiServer();
    for (const { metadata: { resourceVersion: _, ...metadata } = {}, ...rest } of TWO) {
      server.create("v1/pods", { ...rest, metadata });
    }
    const informer = new SharedIndexInformer(
      newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods"),
      {
        storage: storage(),
        logger: silentLogger,
      },
    );
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    await using _running = informer.start();
    await informer.synced();
    const whole = await get(api, PODS);
    const cut = await get(api, `${PODS}?${FIELDS}`);
    assert.deepEqual(names(cut), ["shop/web-1", "shop/web-2"]);
    for (const [i, { metadata, status, spec }] of cut.items.entries()) {
      const { name, namespace, uid, resourceVersion } = whole.items[i].metadata;
      assert.deepEqual(metadata, { name, namespace, uid, resourceVersion });
      assert.deepEqual(status, { phase: whole.items[i].status.phase });
      assert.deepEqual(spec, shown(name, 0).spec);
    }
  });
});

describe("newFieldsView, of a watch,", () => {
  it("shows the fields of initial events, changes and deletes", async () => {
    const { api, informer } = apiOf([TWO[0]]);
    const watch = await WatchReader.open(api, `${PODS}?watch=1&${FIELDS}`);
    informer.put(pod("shop/web-2", 11, "Pending"));
    informer.put(pod("shop/web-1", 12, "Failed"));
    informer.remove("shop/web-2", 13);
    assert.deepEqual(await watch.events(4), [
      { type: "ADDED", object: { ...TYPE, ...shown("web-1", 5) } },
      { type: "ADDED", object: { ...TYPE, ...shown("web-2", 11, "Pending") } },
      { type: "MODIFIED", object: { ...TYPE, ...shown("web-1", 12, "Failed") } },
      { type: "DELETED", object: { ...TYPE, ...shown("web-2", 13, "Pending") } },
    ]);
  });

  it("has every change of the objects without bookmarks, so that the reader's version moves", async () => {
    const { api, informer } = apiOf([TWO[0]]);
    const watch = await WatchReader.open(api, `${PODS}?watch=1&resourceVersion=10&${FIELDS}`);
    informer.put(pod("shop/web-1", 11, "Running", { note: 1 }));
    informer.put(pod("shop/web-1", 12, "Running", { note: 2 }));
    assert.deepEqual(await watch.lines(2), ["MODIFIED shop/web-1 11", "MODIFIED shop/web-1 12"]);
  });

  it("has, with bookmarks, only changes that show, and the version in the next bookmark", async () => {
    const { api, informer, clock } = apiOf(TWO);
    const query = `watch=1&resourceVersion=10&allowWatchBookmarks=true&${FIELDS}`;
    const watch = await WatchReader.open(api, `${PODS}?${query}`);
    informer.put(pod("shop/web-1", 11, "Running", { note: 1 }));
    informer.put(pod("shop/web-2", 12, "Running"));
    informer.put(pod("shop/web-2", 13, "Running", { note: 2 }));
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop/web-2 12"]);
    await clock.advance(60_000);
    assert.deepEqual(await watch.lines(1), ["BOOKMARK 13"]);
    // From there the reader resumes, and misses nothing.
    informer.put(pod("shop/web-1", 14, "Failed"));
    const next = await WatchReader.open(api, `${PODS}?${query.replace("=10", "=13")}`);
    assert.deepEqual(await next.lines(1), ["MODIFIED shop/web-1 14"]);
  });

  it("has, with bookmarks, another object of the same name, and one that a selector gains or loses", async () => {
    const { api, informer } = apiOf([pod("shop/web-1", 5, "Running", { uid: "u1" })]);
    const query = `watch=1&resourceVersion=10&allowWatchBookmarks=true&fields=status.phase`;
    const watch = await WatchReader.open(api, `${PODS}?${query}&labelSelector=app%3Dweb`);
    informer.put(pod("shop/web-1", 11, "Running", { labels: { app: "db" } }));
    informer.put(pod("shop/web-1", 12));
    assert.deepEqual(await watch.lines(2), ["DELETED shop/web-1 11", "ADDED shop/web-1 12"]);
    const { metadata, ...rest } = pod("shop/web-1", 13);
    informer.put({ ...rest, metadata: { ...metadata, uid: "u2" } });
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop/web-1 13"]);
  });

  it("has, with bookmarks, each change of a version that is one of the fields", async () => {
    const { api, informer } = apiOf([TWO[0]]);
    const query = "watch=1&resourceVersion=10&allowWatchBookmarks=true&fields=metadata.resourceVersion";
    const watch = await WatchReader.open(api, `${PODS}?${query}`);
    informer.put(pod("shop/web-1", 11));
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop/web-1 11"]);
  });

  it("changes nothing for watchers of whole objects, with bookmarks or without", async () => {
    const { api, informer } = apiOf([TWO[0]]);
    const open = (query: string) => WatchReader.open(api, `${PODS}?watch=1&resourceVersion=10${query}`);
    const cut = await open(`&allowWatchBookmarks=true&${FIELDS}`);
    const whole = [await open("&allowWatchBookmarks=true"), await open("")];
    informer.put(pod("shop/web-1", 11, "Running", { note: 1 }));
    for (const watch of whole) assert.equal((await watch.events(1))[0].object.note, 1);
    assert.ok(await cut.isSilent());
  });

  it("is made and compared once for all watchers of the same fields", async () => {
    const { api, informer, cuts } = apiOf(TWO);
    const query = `watch=1&resourceVersion=10&allowWatchBookmarks=true`;
    const watches: WatchReader[] = [];
    for (let i = 0; i < 20; i++) {
      // The same fields in another order are the same.
      const fields = i % 2 === 0 ? "fields=spec,status.phase" : "fields=status.phase,spec";
      watches.push(await WatchReader.open(api, `${PODS}?${query}&${fields}`));
    }
    informer.put(pod("shop/web-1", 11, "Failed"));
    informer.put(pod("shop/web-2", 12, "Pending", { note: 1 }));
    for (const watch of watches) assert.deepEqual(await watch.lines(1), ["MODIFIED shop/web-1 11"]);
    // Each event is compared, and one of them is sent.
    assert.equal(cuts.count, 2 + 2 + 1);
  });

  it("is an event stream whose ids move with its bookmarks", async () => {
    const { api, informer, clock } = apiOf([TWO[0]]);
    const response = await api.request(`${PODS}?watch=1&resourceVersion=10&${FIELDS}`, {
      headers: { Accept: "text/event-stream" },
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const until = async (part: string) => {
      while (!text.includes(part)) text += (await reader.read()).value ?? "";
    };
    informer.put(pod("shop/web-1", 11, "Running", { note: 1 }));
    informer.put(pod("shop/web-1", 12, "Failed"));
    informer.put(pod("shop/web-1", 13, "Failed", { note: 2 }));
    await until("id: 12\n");
    assert.ok(text.includes('"status":{"phase":"Failed"}'));
    await clock.advance(60_000);
    await until("id: 13\n");
    assert.ok(!text.includes("id: 11\n"));
    await reader.cancel();
  });

  it("leads to what a list of the fields shows, through relists and breaks, with a filter or without", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const random = seededRandom(seed);
        const below = (limit: number) => Math.floor(random() * limit);
        let version = 10;
        const made = (): TestObject =>
          object(`shop/p-${below(4)}`, ++version, { spec: { a: below(2), b: below(3), c: version } });
        const relisted = () => {
          const objects = new Map(
            Array.from({ length: below(5) }, made).map((one) => [one.metadata!.name, one]),
          );
          return [...objects.values()];
        };
        const { api, informer, clock } = apiOf([], { bookmarkIntervalMs: 1_000 });
        informer.relist(relisted(), ++version);
        const query = `fields=spec.a${below(2) === 0 ? "&filter=spec.b%3E0" : ""}`;
        const known = new Map<string, unknown>();
        let position = "";
        let watch: WatchReader | undefined;
        const shownOf = ({ metadata: { resourceVersion: _, ...metadata }, spec }: Json) => ({
          metadata,
          spec,
        });
        /** Reads what is there, up to a bookmark that says so. */
        const catchUp = async () => {
          const from = position === "" ? "" : `&resourceVersion=${position}`;
          watch ??= await WatchReader.open(api, `${PODS}?watch=1&allowWatchBookmarks=true&${query}${from}`);
          await clock.advance(1_000);
          for (;;) {
            const [{ type, object }] = await watch.events(1);
            if (type === "ERROR") {
              known.clear();
              position = "";
              watch = undefined;
              return catchUp();
            }
            position = object.metadata.resourceVersion;
            if (type === "DELETED") known.delete(object.metadata.name);
            else if (type !== "BOOKMARK") known.set(object.metadata.name, shownOf(object));
            else if (position === String(version)) return;
          }
        };
        for (let i = 0; i < 12; i++) {
          await catchUp();
          const { items } = await get(api, `${PODS}?${query}`);
          assert.deepEqual(
            [...known.values()].map((one) => JSON.stringify(one)).sort(),
            items.map((one: Json) => JSON.stringify(shownOf(one))).sort(),
            `seed ${seed}, step ${i}`,
          );
          if (below(4) === 0) {
            await watch!.cancel();
            watch = undefined;
          }
          for (let changes = below(4); changes > 0; changes--) {
            const change = below(8);
            if (change === 0) informer.relist(relisted(), ++version);
            else if (change > 2) informer.put(made());
            else {
              const name = `shop/p-${below(4)}`;
              if (informer.indexer.getByKey(name) !== undefined) informer.remove(name, ++version);
            }
          }
        }
        await watch?.cancel();
      }),
      propertyOptions(60),
    );
  });
});
