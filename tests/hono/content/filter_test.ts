import assert from "node:assert/strict";
import { fieldIndex, type Indexers, labelIndexFunc } from "@listwatch/cache";
import fc from "fast-check";
import { parseFieldFilter } from "../../../src/protocol/field_filter.ts";
import type { Holding } from "../../../src/store/holding.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";

const apiOf = (informer: FakeInformer, signal?: AbortSignal) =>
  readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    ...(signal !== undefined && { signal }),
  });

const query = (filter: string, more = "") => `?${more}filter=${encodeURIComponent(filter)}`;

const FOUR = [
  object("shop/web-1", 1, { labels: { app: "web" }, spec: { nodeName: "n1" }, status: { restarts: 0 } }),
  object("shop/web-2", 2, { labels: { app: "web" }, spec: { nodeName: "n2" }, status: { restarts: 12 } }),
  object("shop/db-1", 3, { labels: { app: "db" }, spec: { nodeName: "n1" }, status: { restarts: 3 } }),
  object("blog/web-1", 4, { labels: { app: "web" }, status: { restarts: 100 } }),
];

describe("newSelection, of a filter,", () => {
  it("selects by any field, name or label, with selectors, namespaces and fields", async () => {
    const api = apiOf(FakeInformer.with(FOUR, 10));
    const selected = async (path: string) => names(await get(api, path)).join(" ");
    assert.equal(await selected(PODS + query("spec.nodeName=n1")), "shop/db-1 shop/web-1");
    assert.equal(await selected(PODS + query("status.restarts>3")), "blog/web-1 shop/web-2");
    assert.equal(
      await selected(PODS + query("metadata.name~WEB,spec.nodeName")),
      "shop/web-1 shop/web-2",
    );
    assert.equal(await selected(PODS + query("metadata.labels.app!=web")), "shop/db-1");
    assert.equal(await selected(PODS + query("metadata.name in (db-1,web-2)")), "shop/db-1 shop/web-2");
    assert.equal(await selected(`/api/v1/namespaces/blog/pods${query("metadata.name~1")}`), "blog/web-1");
    assert.equal(
      await selected(PODS + query("status.restarts<50", "labelSelector=app%3Dweb&")),
      "shop/web-1 shop/web-2",
    );
    assert.equal(
      await selected(PODS + query("status.restarts>0", "fieldSelector=spec.nodeName%3Dn1&")),
      "shop/db-1",
    );
    assert.deepEqual((await get(api, PODS + query("metadata.name=db-1", "fields=spec.nodeName&"))).items, [
      { metadata: { name: "db-1", namespace: "shop", resourceVersion: "3" }, spec: { nodeName: "n1" } },
    ]);
    assert.equal(names(await get(api, PODS + query(""))).length, 4);
  });

  it("takes for a label what is one, and no other field with such a name", async () => {
    const one = object("a", 1, { labels: { app: "web" }, spec: { labels: { app: "db" } } });
    const annotated = { ...one, metadata: { ...one.metadata, annotations: { app: "cache" } } };
    const api = apiOf(FakeInformer.with([annotated], 10));
    const has = async (filter: string) => names(await get(api, PODS + query(filter))).length === 1;
    for (
      const filter of ["metadata.labels.app=web", "spec.labels.app=db", "metadata.annotations.app=cache"]
    ) {
      assert.equal(await has(filter), true, filter);
    }
    for (const filter of ["spec.labels.app=web", "metadata.annotations.app=web", "metadata.labels.app.x"]) {
      assert.equal(await has(filter), false, filter);
    }
  });

  it("is part of pages: a token continues the list of the same filter only, however that is written", async () => {
    const api = apiOf(FakeInformer.with(FOUR, 10));
    const first = await get(api, PODS + query("metadata.labels.app=web,status.restarts>0", "limit=1&"));
    assert.deepEqual(names(first), ["blog/web-1"]);
    const more = `limit=1&continue=${first.metadata.continue}&`;
    const same = 'status.restarts>"0", metadata.labels["app"] == web';
    assert.deepEqual(names(await get(api, PODS + query(same, more))), ["shop/web-2"]);
    for (const other of [query("metadata.labels.app=web", more), `?${more}`]) {
      const refusal = await get(api, PODS + other, { status: 400 });
      assert.match(refusal.message, /token: it is of another list/);
    }
  });

  it("has tags and bodies of its own", async () => {
    const api = apiOf(FakeInformer.with(FOUR, 10));
    const answer = async (path: string, tag = "") => {
      const response = await api.request(path, { headers: { "If-None-Match": tag } });
      const text = await response.text();
      return { status: response.status, tag: response.headers.get("ETag")!, text };
    };
    const one = await answer(PODS + query("spec.nodeName=n1"));
    const two = await answer(PODS + query("spec.nodeName=n2"));
    const all = await answer(PODS);
    assert.equal(new Set([one.tag, two.tag, all.tag]).size, 3);
    assert.equal(new Set([one.text, two.text, all.text]).size, 3);
    assert.equal((await answer(PODS + query("spec.nodeName == n1"), one.tag)).status, 304);
    assert.equal((await answer(PODS + query("spec.nodeName=n2"), one.tag)).status, 200);
  });

  it("is of a list under a value of an index, too", async () => {
    const informer = FakeInformer.with(FOUR, 10, { node: fieldIndex<TestObject>("spec.nodeName") });
    const list = await get(apiOf(informer), `/indices/pods/node/n1${query("metadata.name~web")}`);
    assert.deepEqual(names(list), ["shop/web-1"]);
  });

  it("is of pages of an order, of windows and of groups", async () => {
    const informer = FakeInformer.with(FOUR, 10);
    const api = apiOf(informer);
    const filter = "metadata.labels.app=web";
    const sorted = await get(api, PODS + query(filter, "sortBy=status.restarts:desc&limit=2&"));
    assert.deepEqual(names(sorted), ["blog/web-1", "shop/web-2"]);
    const groups = await get(api, PODS + query(filter, "groupBy=metadata.namespace&"));
    assert.deepEqual(groups.items.map(({ count }: Json) => count).sort(), [1, 2]);
    const window = await WatchReader.open(
      api,
      PODS + query(filter, "watch=1&sortBy=metadata.name&limit=10&fields=status.restarts&"),
    );
    const [{ object: { items } }] = await window.events(1);
    assert.equal(items.length, 3);
    assert.deepEqual(Object.keys(items[0]), ["metadata", "status"]);
  });

  it("shows on a watch what begins to match as added, and what ceases to as deleted", async () => {
    const informer = FakeInformer.with(FOUR, 10);
    const api = apiOf(informer);
    const watch = await WatchReader.open(api, PODS + query("status.restarts>10", "watch=1&"));
    assert.deepEqual(await watch.lines(2), ["ADDED blog/web-1 4", "ADDED shop/web-2 2"]);
    informer.put(object("shop/db-1", 11, { status: { restarts: 11 } }));
    informer.put(object("shop/db-1", 12, { status: { restarts: 12 } }));
    informer.put(object("shop/web-1", 13, { status: { restarts: 1 } }));
    informer.put(object("blog/web-1", 14, { status: { restarts: "0" } }));
    informer.remove("shop/db-1", 15);
    informer.remove("shop/web-1", 16);
    assert.deepEqual(await watch.lines(4), [
      "ADDED shop/db-1 11",
      "MODIFIED shop/db-1 12",
      "DELETED blog/web-1 14",
      "DELETED shop/db-1 15",
    ]);
  });

  it("opens no object for its name and its labels, nor those that an index does not find", async () => {
    const informer = FakeInformer.with(FOUR, 10, { node: fieldIndex<TestObject>("spec.nodeName") });
    const { holding } = informer.indexer as unknown as { holding: Holding<TestObject> };
    const peek = holding.peek.bind(holding);
    const opened: string[] = [];
    Object.assign(holding, {
      peek: (held: TestObject) => {
        const one = peek(held);
        opened.push(`${one.metadata?.name}`);
        return one;
      },
    });
    const api = apiOf(informer);
    const openedBy = async (filter: string) => {
      opened.length = 0;
      // Nothing is opened to be written: nothing is left.
      assert.deepEqual(names(await get(api, PODS + query(filter))), []);
      return opened.sort().join(" ");
    };
    assert.equal(await openedBy("metadata.name~nginx"), "");
    assert.equal(await openedBy("metadata.labels.app=nginx"), "");
    assert.equal(await openedBy("spec.nodeName=n2,status.none"), "web-2");
    assert.equal(await openedBy("metadata.name=db-1,status.none"), "db-1");
  });

  it("has the limits of selectors", async () => {
    const api = readApi({
      resources: [{ informer: FakeInformer.with(FOUR, 10), resource: "v1/pods" }],
      allowAnonymous: true,
      maxSelectorRequirements: 2,
      maxSelectorValues: 3,
    });
    assert.equal((await get(api, PODS + query("metadata.name,metadata.uid in (1,2,3)"))).items.length, 0);
    for (const more of ["", "watch=1&"]) {
      const three = await get(api, PODS + query("a,b,c", more), { status: 400 });
      assert.match(three.message, /^filter: it has 3 requirements, and at most 2 are accepted/);
      const four = await get(api, PODS + query("a in (1,2,3,4)", more), { status: 400 });
      assert.match(four.message, /^filter: it has 4 values, and at most 3 are accepted/);
    }
    const long = await api.request(PODS + query(`a=${"x".repeat(200_000)}`));
    assert.equal(long.status, 400);
    assert.ok((await long.text()).length < 2_000);
  });

  const value = fc.constantFrom<unknown>("n1", "N2", "", "1", 1, "100m", true, null, ["n1"], { a: "n1" });
  const pod = fc.record({
    name: fc.constantFrom("shop/n1", "shop/n2", "blog/n1", "blog/1"),
    labels: fc.option(fc.dictionary(fc.constantFrom("app", "a.b/c"), fc.constantFrom("n1", "1", "")), {
      nil: undefined,
    }),
    spec: fc.record({ nodeName: value, items: fc.array(fc.record({ a: value })) }, { requiredKeys: [] }),
  });
  const path = fc.constantFrom(
    "metadata.name",
    "metadata.namespace",
    "metadata.labels.app",
    'metadata.labels["a.b/c"]',
    "metadata.labels",
    "spec.nodeName",
    "spec.items[].a",
    "spec.__proto__.x",
  );
  const term = fc.oneof(
    fc.tuple(
      path,
      fc.constantFrom("=", "!=", "~"),
      fc.constantFrom("n1", "n2", "1", '""', "shop"),
    ),
    fc.tuple(path, fc.constantFrom(">1", "<2", " in (n1,1)", " notin (n1)", "")),
    fc.tuple(fc.constant("!"), path),
  ).map((parts) => parts.join(""));
  const INDEXERS: Indexers<TestObject, string> = {
    node: fieldIndex("spec.nodeName"),
    item: fieldIndex("spec.items[].a"),
    labels: labelIndexFunc(),
  };

  it("selects the objects that it matches, with indices or without, in lists, pages and watches", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(pod, { selector: ({ name }) => name, maxLength: 4 }),
        fc.uniqueArray(pod, { selector: ({ name }) => name, maxLength: 4 }),
        fc.array(term, { minLength: 1, maxLength: 3 }),
        async (before, after, terms) => {
          const filter = terms.join(",");
          const matcher = parseFieldFilter(filter);
          const made = (of: typeof before, from: number) =>
            of.map(({ name, labels, ...fields }, i) =>
              object(name, from + i, { ...fields, ...(labels && { labels }) })
            );
          const matching = (objects: readonly TestObject[]) =>
            objects.filter((one) => matcher.matches(one))
              .map(({ metadata }) => `${metadata!.namespace}/${metadata!.name}`).sort();
          const objects = made(before, 1);
          for (const indexers of [{}, INDEXERS]) {
            const informer = FakeInformer.with(objects, 10, indexers);
            const stop = new AbortController();
            const api = apiOf(informer, stop.signal);
            assert.deepEqual(names(await get(api, PODS + query(filter))), matching(objects), filter);
            const page = await get(api, PODS + query(filter, "limit=1&resourceVersion=10&"));
            assert.deepEqual(names(page), matching(objects).slice(0, 1), filter);
            const watch = await WatchReader.open(api, PODS + query(filter, "watch=1&timeoutSeconds=9&"));
            const present = new Map(
              objects.map((one) => [`${one.metadata!.namespace}/${one.metadata!.name}`, one]),
            );
            for (const one of made(after, 11)) {
              informer.put(one);
              present.set(`${one.metadata!.namespace}/${one.metadata!.name}`, one);
            }
            const known = new Set<string>();
            stop.abort();
            for (const line of await watch.toEnd()) {
              const [type, name] = line.split(" ");
              assert.equal(type === "ADDED", !known.has(name), `${filter}: ${line}`);
              if (type === "DELETED") known.delete(name);
              else known.add(name);
            }
            assert.deepEqual([...known].sort(), matching([...present.values()]), filter);
          }
        },
      ),
      propertyOptions(150),
    );
  });
});
