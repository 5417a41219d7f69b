import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { labelIndexFunc } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

function apiOf(count: number, options: Partial<ReadApiOptions> & { informer?: FakeInformer } = {}) {
  const { informer, ...rest } = options;
  const objects: TestObject[] = Array.from(
    { length: count },
    (_, i) => object(`shop/pod-${String(i).padStart(5, "0")}`, i + 1, { labels: { app: `app-${i % 50}` } }),
  );
  const served = informer ?? FakeInformer.with(objects, count);
  return {
    api: readApi({
      resources: [{ informer: served, resource: "v1/pods" }],
      allowAnonymous: true,
      ...rest,
    }),
    informer: served,
    objects,
  };
}

const list = (what: { labels?: string; fields?: string }, more = "") =>
  `/api/v1/pods?${more}labelSelector=${encodeURIComponent(what.labels ?? "")}&fieldSelector=${
    encodeURIComponent(what.fields ?? "")
  }`;

const repeated = (count: number, one: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => one(i)).join();

describe("Selection", () => {
  it("with too many requirements or values, or too long, is 400 and says how many are accepted", async () => {
    const { api } = apiOf(1);
    const refused = [
      [{ labels: repeated(101, (i) => `k${i}!=v`) }, /label selector has 101 requirements, and at most 100/],
      [{ labels: repeated(2_700, (i) => `k${i}`) }, /2700 requirements/],
      [{ fields: repeated(101, () => "metadata.name!=x") }, /field selector has 101 requirements/],
      [{ labels: `app in (${repeated(1_001, (i) => `v${i}`)})` }, /1001 values, and at most 1000/],
      [{ labels: repeated(50, (k) => `k${k} notin (${repeated(21, (i) => `v${i}`)})`) }, /1050 values/],
      [{ labels: `app=${"x".repeat(200_000)}` }, /has 200004 characters, and at most 131072/],
      [{ fields: `metadata.name=${"x".repeat(200_000)}` }, /field selector has 2000/],
    ] as const;
    for (const [what, message] of refused) {
      for (const more of ["", "watch=1&", "limit=1&"]) {
        const status = await get(api, list(what, more), { status: 400 });
        assert.equal(status.reason, "BadRequest");
        assert.match(status.message, message);
        assert.ok(status.message.length < 2_000);
      }
    }
    await get(api, list({ labels: repeated(100, (i) => `k${i}!=v`) }));
    await get(api, list({ labels: `app notin (${repeated(1_000, (i) => `v${i}`)})` }));
  });

  it("has the limits that one sets", async () => {
    const { api } = apiOf(1, { maxSelectorRequirements: 2, maxSelectorValues: 3 });
    await get(api, list({ labels: "a,b" }));
    await get(api, list({ labels: "a,b,c" }), { status: 400 });
    await get(api, list({ labels: "a in (1,2,3)" }));
    await get(api, list({ labels: "a in (1,2,3,4)" }), { status: 400 });
  });

  it("gives others a turn while it is looked for, in lists, in initial events and in a replay", async () => {
    const { api, informer } = apiOf(60_000, { eventWindow: 30_000 });
    const turnsDuring = async (work: () => Promise<unknown>) => {
      let turns = 0;
      let isOver = false;
      const count = () => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      setImmediate(count);
      await work();
      isOver = true;
      return turns;
    };
    const labels = repeated(100, (i) => `k${i}!=v`) + ",app=nothing";
    const selector = labels.slice(labels.indexOf(",") + 1);
    const listTurns = await turnsDuring(() => get(api, list({ labels: selector })));
    assert.ok(listTurns >= 4, `${listTurns} turns for a list`);
    const bookmarks = "watch=1&allowWatchBookmarks=1&";
    const watchTurns = await turnsDuring(async () => {
      const watch = await WatchReader.open(api, list({ labels: selector }, bookmarks));
      assert.deepEqual(await watch.lines(1), ["BOOKMARK 60000 end"]);
      await watch.cancel();
    });
    assert.ok(watchTurns >= 4, `${watchTurns} turns for initial events`);
    for (let i = 0; i < 30_000; i++) informer.put(object("shop/pod-00000", 60_001 + i));
    informer.put(object("shop/last", 100_000, { labels: { app: "nothing" } }));
    const replayTurns = await turnsDuring(async () => {
      const watch = await WatchReader.open(api, list({ labels: selector }, "watch=1&resourceVersion=60002&"));
      assert.deepEqual(await watch.lines(1), ["ADDED shop/last 100000"]);
      await watch.cancel();
    });
    assert.ok(replayTurns >= 4, `${replayTurns} turns for a replay`);
  });

  it("stops once the client has disconnected", async () => {
    const { api, informer } = apiOf(50_000);
    let looks = 0;
    const counting = (version: number) => ({
      ...object(`shop/pod-${version}`, version),
      metadata: {
        ...object(`shop/pod-${version}`, version).metadata,
        get labels() {
          looks++;
          return { app: "web" };
        },
      },
    });
    informer.relist(Array.from({ length: 50_000 }, (_, i) => counting(i + 50_001)), 100_000);
    const client = new AbortController();
    const request = new Request(`http://cache${list({ labels: "app=nothing" })}`, { signal: client.signal });
    looks = 0;
    const answer = api.fetch(request);
    await Promise.resolve();
    client.abort();
    assert.equal((await answer).status, 499);
    assert.ok(looks > 0 && looks < 25_000, `${looks} looks`);
  });

  it("that an index by labels answers looks at what the index has only, in lists, pages and watches", async () => {
    let looks = 0;
    const objects = Array.from({ length: 5_000 }, (_, i) => {
      const plain = object(`shop/pod-${String(i).padStart(5, "0")}`, i + 1);
      const labels = { app: `app-${i % 500}` };
      return {
        ...plain,
        metadata: {
          ...plain.metadata,
          get labels() {
            looks++;
            return labels;
          },
        },
      };
    });
    const informer = FakeInformer.with(objects, 5_000, { labels: labelIndexFunc() });
    const { api } = apiOf(0, { informer });
    looks = 0;
    assert.equal((await get(api, list({ labels: "app in (app-7,app-8),other!=x" }))).items.length, 20);
    const page = await get(api, list({ labels: "app=app-7" }, "limit=4&"));
    assert.deepEqual(names(page)[3], "shop/pod-01507");
    const watch = await WatchReader.open(api, list({ labels: "app=app-7" }, "watch=1&"));
    assert.equal((await watch.lines(10)).length, 10);
    await watch.cancel();
    await settle();
    assert.ok(looks < 300, `${looks} looks`);
  });
});

describe("parseListQuery, the limits of texts", () => {
  it("that are very long are refused soon, with a short answer", async () => {
    const { api } = apiOf(1);
    const long = "9".repeat(100_000);
    for (
      const query of [
        `limit=${long}`,
        `limit=${"x".repeat(100_000)}`,
        `resourceVersion=${long}`,
        `resourceVersion=1&resourceVersionMatch=${long}`,
        `timeoutSeconds=-${long}`,
        `continue=${long}`,
        `watch=1&resourceVersion=${long}`,
        `fieldSelector=${long}%3D1`,
        `labelSelector=${long}`,
      ]
    ) {
      const response = await api.request(`/api/v1/pods?${query}`);
      assert.ok(response.status >= 400, query.slice(0, 50));
      assert.ok((await response.text()).length < 5_000, query.slice(0, 50));
    }
    const name = await api.request(`/api/v1/namespaces/shop/pods/${"x".repeat(100_000)}`);
    assert.ok(name.status >= 400);
    assert.ok((await name.text()).length < 5_000);
  });
});
