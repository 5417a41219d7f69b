import assert from "node:assert/strict";
import type { Clock } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { AGE_ANNOTATION, INITIAL_EVENTS_END_ANNOTATION } from "../../../src/meta/list_watch.ts";
import { EACH_EVENT } from "../../../src/meta/request.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";

const WATCH = "/api/v1/pods?watch=1";
const WATCH_LIST =
  `${WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;

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

describe("openWatch of readers that read nothing yet", () => {
  it("holds one piece for each once much waits for all, so that none is broken off", async () => {
    const { api, informer } = apiOf([], 10, { maxReaderBytes: 100_000 });
    const watches: WatchReader[] = [];
    for (let i = 0; i < 3; i++) watches.push(await WatchReader.open(api, `${WATCH}&resourceVersion=10`));
    const spec = "x".repeat(20_000);
    for (let version = 11; version <= 14; version++) {
      informer.put(object("shop/a", version, { spec }));
      await settle();
    }
    for (const watch of watches) {
      const versions = (await watch.events(4)).map(({ object: { metadata } }) => metadata.resourceVersion);
      assert.deepEqual(versions, ["11", "12", "13", "14"]);
    }
  });
});

describe("openWatch from a resourceVersion", () => {
  it("sends each event on one line also to readers for which U+2028 and U+2029 end a line", async () => {
    const text = "one\u2028two\u2029three";
    const labelled = (resourceVersion: number, app: string) =>
      object("shop/a", resourceVersion, { spec: text, labels: { app } });
    const { api, informer } = apiOf([labelled(5, "web")], 10);
    const initial = await WatchReader.open(api, `${WATCH_LIST}&labelSelector=app%3Dweb`);
    const { object: { spec } } = (await initial.events(2))[0];
    assert.equal(spec, text);
    informer.put(labelled(11, "web"));
    informer.put(labelled(12, "none"));
    const events = await initial.events(2);
    assert.deepEqual(events.map(({ type, object }) => [type, object.spec]), [
      ["MODIFIED", text],
      ["DELETED", text],
    ]);
  });

  it("sends what is added, changed and deleted, as it happens", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.put(object("shop/b", 11));
    informer.put(object("shop/b", 12, { spec: 1 }));
    informer.remove("shop/b", 13);
    const events = await watch.events(3);
    assert.deepEqual(events[0], {
      type: "ADDED",
      object: {
        kind: "Pod",
        apiVersion: "v1",
        metadata: { name: "b", namespace: "shop", resourceVersion: "11" },
      },
    });
    assert.deepEqual(events.map(({ type }) => type), ["ADDED", "MODIFIED", "DELETED"]);
    // As it was, at the resourceVersion of the delete.
    assert.deepEqual([events[2].object.spec, events[2].object.metadata.resourceVersion], [1, "13"]);
    assert.ok(await watch.isSilent());
  });

  it("replays what happened since", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    informer.put(object("shop/b", 11));
    informer.put(object("shop/b", 12));
    informer.remove("shop/b", 15);
    const from = async (version: number, count: number) =>
      await (await WatchReader.open(api, `${WATCH}&resourceVersion=${version}`)).lines(count);
    assert.deepEqual(await from(10, 3), ["ADDED shop/b 11", "MODIFIED shop/b 12", "DELETED shop/b 15"]);
    assert.deepEqual(await from(11, 2), ["MODIFIED shop/b 12", "DELETED shop/b 15"]);
    // Between two events nothing happened to this resource.
    assert.deepEqual(await from(13, 1), ["DELETED shop/b 15"]);
    assert.ok(await (await WatchReader.open(api, `${WATCH}&resourceVersion=15`)).isSilent());
  });

  it("sends what changes although its resourceVersion does not, and nothing that does not change", async () => {
    const { api, informer } = apiOf([object("shop/a", 5, { spec: 1 })], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.put(object("shop/a", 5, { spec: 2 }));
    informer.put(object("shop/a", 5, { spec: 2 }));
    const [{ type, object: sent }] = await watch.events(1);
    assert.deepEqual([type, sent.spec], ["MODIFIED", 2]);
    assert.ok(await watch.isSilent());
  });

  it("sends what came late, under an older resourceVersion, to a watch that resumes right before it", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6)], 10);
    informer.put(object("shop/a", 12));
    const reader = await WatchReader.open(api, `${WATCH}&resourceVersion=12`);
    informer.put(object("shop/granted", 7));
    informer.remove("shop/b", 8);
    const late = ["ADDED shop/granted 7", "DELETED shop/b 12"];
    const from = async (version: number, count: number) =>
      await (await WatchReader.open(api, `${WATCH}&resourceVersion=${version}`)).lines(count);
    assert.deepEqual(await from(12, 2), late);
    assert.deepEqual(await from(10, 3), ["MODIFIED shop/a 12", ...late]);
    informer.put(object("shop/a", 13));
    assert.deepEqual(await from(12, 3), [...late, "MODIFIED shop/a 13"]);
    assert.ok(await (await WatchReader.open(api, `${WATCH}&resourceVersion=13`)).isSilent());
    assert.deepEqual(await reader.lines(3), [...late, "MODIFIED shop/a 13"]);
  });

  it("sends what came late even to a watch from the future", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=20`);
    informer.put(object("shop/granted", 7));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/granted 7"]);
  });

  it("sends what a list at the same resourceVersion brought", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6)], 10);
    informer.put(object("shop/granted", 7));
    informer.relist([object("shop/a", 5), object("shop/granted", 7), object("shop/found", 8)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    assert.deepEqual(await watch.lines(3), [
      "ADDED shop/granted 7",
      "DELETED shop/b 10",
      "ADDED shop/found 8",
    ]);
  });

  it("is too old if what came late was dropped", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10, { eventWindow: 2 });
    informer.put(object("shop/granted", 7));
    for (let version = 11; version <= 12; version++) informer.put(object("shop/a", version));
    const first = async (version: number) =>
      (await (await WatchReader.open(api, `${WATCH}&resourceVersion=${version}`)).events(1))[0];
    assert.equal((await first(10)).object.code, 410);
    assert.equal((await first(11)).object.metadata.resourceVersion, "12");
  });

  it("takes no reader back by a delete of which nothing but the key was known", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.put(object("shop/b", 12));
    informer.remove("shop/a", 5); // as it was last seen
    informer.put(object("shop/c", 14));
    assert.deepEqual(await watch.lines(3), ["ADDED shop/b 12", "DELETED shop/a 12", "ADDED shop/c 14"]);
  });

  it("puts the events of one turn into one chunk", async () => {
    const { api, informer } = apiOf([], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    for (let i = 11; i < 61; i++) informer.put(object(`shop/p-${i}`, i));
    assert.equal((await watch.chunk())?.length, 50);
    informer.put(object("shop/x", 61));
    assert.equal((await watch.chunk())?.length, 1);
  });

  it("that is too old gets an ERROR event with 410, and ends", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10, { eventWindow: 2 });
    const old = await WatchReader.open(api, `${WATCH}&resourceVersion=9`);
    assert.deepEqual(await old.chunk(), [{
      type: "ERROR",
      object: {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: "too old resource version: 9 (10)",
        reason: "Expired",
        code: 410,
      },
    }]);
    assert.equal(await old.chunk(), undefined);
    for (let version = 11; version <= 14; version++) informer.put(object("shop/a", version));
    // Two events are kept: 13 and 14. Who has seen 12 lacks nothing.
    const [expired] = (await (await WatchReader.open(api, `${WATCH}&resourceVersion=11`)).chunk())!;
    assert.equal((expired as Json).object.message, "too old resource version: 11 (12)");
    assert.deepEqual(await (await WatchReader.open(api, `${WATCH}&resourceVersion=11`)).toEnd(), [
      "ERROR 410 Expired",
    ]);
    assert.deepEqual(
      await (await WatchReader.open(api, `${WATCH}&resourceVersion=12`)).lines(2),
      ["MODIFIED shop/a 13", "MODIFIED shop/a 14"],
    );
  });

  it("from the future is silent until something newer happens", async () => {
    const { api, informer } = apiOf([], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=20&allowWatchBookmarks=true`);
    informer.put(object("shop/a", 19));
    informer.put(object("shop/a", 20));
    informer.put(object("shop/a", 21));
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop/a 21"]);
  });

  it("is not answered from another namespace", async () => {
    const { api, informer } = apiOf([], 10);
    const watch = await WatchReader.open(api, "/api/v1/namespaces/shop/pods?watch=true&resourceVersion=10");
    informer.put(object("shop-2/a", 11));
    informer.put(object("shop/a", 12));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/a 12"]);
  });

  it("leaves out a write that changed nothing", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.put(object("shop/a", 5));
    informer.put(object("shop/a", 11));
    assert.deepEqual(await watch.lines(1), ["MODIFIED shop/a 11"]);
  });

  it("is JSON that no proxy may transform or keep", async () => {
    const { api } = apiOf([], 10);
    const { response } = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    assert.equal(response.headers.get("Content-Type"), "application/json");
    assert.match(response.headers.get("Cache-Control") ?? "", /no-transform/);
    assert.equal(response.headers.get("X-Accel-Buffering"), "no");
  });
});

describe("openWatch with selectors", () => {
  const red = (name: string, version: number) => object(name, version, { labels: { color: "red" } });
  const blue = (name: string, version: number) => object(name, version, { labels: { color: "blue" } });

  it("sees an object enter as ADDED and leave as DELETED, as it was before, at the change's resourceVersion", async () => {
    const { api, informer } = apiOf([], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&labelSelector=color%3Dred`);
    informer.put(blue("shop/a", 11));
    informer.put(red("shop/a", 12));
    informer.put(red("shop/a", 13));
    informer.put(blue("shop/a", 14));
    informer.put(blue("shop/a", 15));
    informer.remove("shop/a", 16);
    informer.put(red("shop/b", 17));
    informer.remove("shop/b", 18);
    const events = await watch.events(5);
    assert.deepEqual(events.map(({ type, object }: Json) => [type, object.metadata.resourceVersion]), [
      ["ADDED", "12"],
      ["MODIFIED", "13"],
      ["DELETED", "14"],
      ["ADDED", "17"],
      ["DELETED", "18"],
    ]);
    assert.deepEqual(events[2].object.metadata.labels, { color: "red" });
  });

  it("ends the row of a Table at the resourceVersion at which its object has left", async () => {
    const { api, informer } = apiOf([red("shop/a", 5)], 10);
    const path = `${WATCH}&resourceVersion=10&labelSelector=color%3Dred`;
    const watch = await WatchReader.open(api, path, "application/json;as=Table;v=v1;g=meta.k8s.io");
    informer.put(blue("shop/a", 11));
    const [{ type, object: table }] = await watch.events(1);
    const versions = [table, table.rows[0].object].map(({ metadata }: Json) => metadata.resourceVersion);
    assert.deepEqual([type, ...versions], ["DELETED", "11", "11"]);
  });

  it("shares nothing wrong with a watch without selectors", async () => {
    const { api, informer } = apiOf([red("shop/a", 5)], 10);
    const all = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    const reds = await WatchReader.open(api, `${WATCH}&resourceVersion=10&labelSelector=color%3Dred`);
    const blues = await WatchReader.open(
      api,
      `${WATCH}&resourceVersion=10&fieldSelector=metadata.name%3Da&labelSelector=color%3Dblue`,
    );
    informer.put(blue("shop/a", 11));
    assert.deepEqual(await all.lines(1), ["MODIFIED shop/a 11"]);
    assert.deepEqual(await reds.lines(1), ["DELETED shop/a 11"]);
    assert.deepEqual(await blues.lines(1), ["ADDED shop/a 11"]);
  });

  it("replays the same as it would have sent live", async () => {
    const { api, informer } = apiOf([red("shop/a", 5)], 10);
    informer.put(blue("shop/a", 11));
    informer.put(red("shop/a", 12));
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&labelSelector=color%3Dred`);
    assert.deepEqual(await watch.lines(2), ["DELETED shop/a 11", "ADDED shop/a 12"]);
  });
});

describe("openWatch without a resourceVersion", () => {
  it("starts with what is stored, then continues", async () => {
    const { api, informer } = apiOf([object("shop/b", 7), object("shop/a", 5)], 10);
    for (const query of ["", "&resourceVersion=0", "&resourceVersion="]) {
      const watch = await WatchReader.open(api, WATCH + query);
      assert.deepEqual(await watch.lines(2), ["ADDED shop/a 5", "ADDED shop/b 7"]);
      await watch.cancel();
    }
    const watch = await WatchReader.open(api, WATCH);
    informer.put(object("shop/c", 11));
    assert.deepEqual(await watch.lines(3), ["ADDED shop/a 5", "ADDED shop/b 7", "ADDED shop/c 11"]);
  });

  it("begins now with sendInitialEvents=false", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(
      api,
      `${WATCH}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`,
    );
    informer.put(object("shop/c", 11));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/c 11"]);
  });
});

describe("openWatch with initial events", () => {
  it("ends its initial events with an annotated bookmark of the right kind", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, WATCH_LIST);
    const [added, bookmark] = await watch.events(2);
    assert.equal(added.type, "ADDED");
    assert.deepEqual(bookmark, {
      type: "BOOKMARK",
      object: {
        kind: "Pod",
        apiVersion: "v1",
        metadata: { resourceVersion: "10", annotations: { "k8s.io/initial-events-end": "true" } },
      },
    });
    informer.put(object("shop/b", 11));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/b 11"]);
  });

  it("of nothing is the bookmark alone", async () => {
    const { api } = apiOf([object("shop/a", 5)], 10);
    const watch = await WatchReader.open(api, `${WATCH_LIST}&labelSelector=app%3Dnone`);
    assert.deepEqual(await watch.lines(1), ["BOOKMARK 10 end"]);
  });

  it("is not interrupted by a bookmark, which would say that everything has been sent", async () => {
    const objects = Array.from({ length: 1_000 }, (_, i) => object(`shop/p-${1_000 + i}`, i + 1));
    // The clock's timers fire when the test says so: between the turns in which objects are decoded, too.
    const timers = new Set<() => void>();
    const clock: Clock = {
      now: () => 0,
      setTimeout: (callback) => (timers.add(callback), callback),
      clearTimeout: (handle) => void timers.delete(handle as () => void),
    };
    const { api } = apiOf(objects, 2_000, { clock, watchBufferBytes: 1e9 });
    const watch = await WatchReader.open(api, `${WATCH_LIST}&fieldSelector=metadata.name!%3Dnobody`);
    for (let turn = 0; turn < 20; turn++) {
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer();
      }
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    const lines = await watch.lines(1_001);
    assert.equal(lines.findIndex((line) => line.startsWith("BOOKMARK")), 1_000);
    assert.equal(lines[1_000], "BOOKMARK 2000 end");
  });

  it("is of one moment: what happens while it is sent comes after it", async () => {
    const objects = Array.from(
      { length: 500 },
      (_, i) => object(`shop/p-${i}`, i + 1, { spec: "x".repeat(1_000) }),
    );
    const { api, informer } = apiOf(objects, 600, { watchBufferBytes: 1_000 });
    const watch = await WatchReader.open(api, WATCH_LIST);
    const first = await watch.chunk() ?? [];
    assert.ok(first.length < 100, "a large list is sent in pieces");
    informer.remove("shop/p-99", 601);
    informer.put(object("shop/p-98", 602));
    const rest = await watch.lines(500 - first.length + 3);
    assert.deepEqual(rest.slice(-3), ["BOOKMARK 600 end", "DELETED shop/p-99 601", "MODIFIED shop/p-98 602"]);
    assert.ok(rest.includes("ADDED shop/p-99 100"));
  });

  it("waits for a resourceVersion, and says 504 in an ERROR event if it does not come", async () => {
    const { api, informer, clock } = apiOf([object("shop/a", 5)], 10);
    const opened = WatchReader.open(api, `${WATCH_LIST}&resourceVersion=11`);
    const late = WatchReader.open(api, `${WATCH_LIST}&resourceVersion=99`);
    await clock.advance(1_000);
    informer.put(object("shop/a", 11));
    assert.deepEqual(await (await opened).lines(2), ["ADDED shop/a 11", "BOOKMARK 11 end"]);
    await clock.advance(2_000);
    assert.deepEqual(await (await late).toEnd(), ["ERROR 504 Timeout"]);
  });
});

describe("EventLog at a relist", () => {
  it("reaches connected watches as one chunk: deletes, then changes by resourceVersion, then a bookmark", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6), object("shop/c", 7)], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&allowWatchBookmarks=true`);
    const plain = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.relist([object("shop/d", 40), object("shop/b", 30), object("shop/c", 7)], 50);
    const chunk = await watch.chunk() ?? [];
    assert.deepEqual(
      chunk.map(({ type, object }: Json) =>
        `${type} ${object.metadata.name ?? ""} ${object.metadata.resourceVersion}`
      ),
      // The delete at the position before the relist: its object's own version would take the reader back.
      ["DELETED a 10", "MODIFIED b 30", "ADDED d 40", "BOOKMARK  50"],
    );
    assert.equal((await plain.chunk())?.length, 3);
    informer.put(object("shop/e", 51));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/e 51"]);
  });

  it("sends what has left a selection before what has changed in it: a reader that resumes elsewhere lacks no delete", async () => {
    const web = (name: string, version: number) => object(name, version, { labels: { app: "web" } });
    const other = (name: string, version: number) => object(name, version, { labels: { app: "db" } });
    const { api, informer } = apiOf(["a", "b", "c", "d"].map((name, i) => web(`shop/${name}`, 5 + i)), 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&labelSelector=app%3Dweb`);
    // Objects may have left before 20, which no server sends again to a reader that is at 20.
    informer.relist([other("shop/a", 30), web("shop/b", 20), other("shop/c", 40), web("shop/e", 35)], 50);
    assert.deepEqual(await watch.lines(5), [
      "DELETED shop/d 10",
      "DELETED shop/a 10",
      "DELETED shop/c 10",
      "MODIFIED shop/b 20",
      "ADDED shop/e 35",
    ]);
    informer.put(other("shop/b", 51));
    assert.deepEqual(await watch.lines(1), ["DELETED shop/b 51"]);
  });

  it("at the version where it was takes no reader back that sees an object of another history leave", async () => {
    const web = object("shop/a", 9, { labels: { app: "web" } });
    const { api, informer } = apiOf([web, object("shop/b", 6, { labels: { app: "web" } })], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&labelSelector=app%3Dweb`);
    informer.relist([object("shop/a", 8, { labels: { app: "db" } })], 10);
    assert.deepEqual(await watch.lines(2), ["DELETED shop/b 10", "DELETED shop/a 10"]);
  });

  it("ends a watch that prefers strict handling: the events of a list are not those in between", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6)], 10);
    const headers = { Prefer: "respond-async, handling=strict" };
    const strict = new WatchReader(await api.request(`${WATCH}&resourceVersion=10`, { headers }));
    informer.put(object("shop/a", 12));
    informer.relist([object("shop/a", 12)], 50);
    assert.deepEqual(await strict.toEnd(), ["MODIFIED shop/a 12", "ERROR 410 Expired"]);
    const unchanged = new WatchReader(await api.request(`${WATCH}&resourceVersion=50`, { headers }));
    // An object may have been created and deleted meanwhile.
    informer.relist([object("shop/a", 12)], 60);
    assert.deepEqual(await unchanged.toEnd(), ["ERROR 410 Expired"]);
  });

  it("says in bookmarks how old its content is, to caches above only", async () => {
    const { api, informer, clock } = apiOf([], 10, { bookmarkIntervalMs: 10_000 });
    informer.lag = 7_000;
    for (const [headers, age] of [[{}, {}], [EACH_EVENT, { [AGE_ANNOTATION]: "7000" }]] as const) {
      const watch = new WatchReader(await api.request(WATCH_LIST, { headers }));
      const [first] = await watch.events(1);
      assert.deepEqual(first.object.metadata.annotations, {
        [INITIAL_EVENTS_END_ANNOTATION]: "true",
        ...age,
      });
      await clock.advance(10_000);
      const [next] = await watch.events(1);
      assert.deepEqual({ ...next.object.metadata.annotations }, age);
      await watch.cancel();
    }
  });

  it("ends a watch from the future: what has left its selection since is not known", async () => {
    const { api, informer } = apiOf([object("shop/a", 5, { labels: { app: "db" } })], 10);
    const watch = await WatchReader.open(api, `${WATCH}&labelSelector=app%3Dweb&resourceVersion=20`);
    // Elsewhere it had the label at 20.
    informer.relist([object("shop/a", 30, { labels: { app: "db" } })], 40);
    assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
  });

  it("of many objects is one chunk nevertheless, even beyond the event window", async () => {
    const { api, informer } = apiOf([], 10, { eventWindow: 5 });
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    informer.relist(
      Array.from({ length: 200 }, (_, i) => object(`shop/p-${i}`, 20 + i, { spec: "x".repeat(1_000) })),
      300,
    );
    assert.equal((await watch.chunk())?.length, 200);
  });

  it("at an older version leaves as much room for events as there was before", async () => {
    const { api, informer } = apiOf([], 10, { eventWindowBytes: 40_000 });
    const large = (name: string, version: number) => object(name, version, { spec: "x".repeat(4_000) });
    for (let i = 1; i <= 8; i++) informer.put(large(`shop/p-${i}`, 10 + i));
    informer.relist([large("shop/p-1", 4)], 5);
    for (let i = 1; i <= 3; i++) informer.put(large(`shop/q-${i}`, 5 + i));
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=5`);
    assert.deepEqual(await watch.lines(3), ["ADDED shop/q-1 6", "ADDED shop/q-2 7", "ADDED shop/q-3 8"]);
  });

  it("cuts off watches from before it, and from its middle, with 410", async () => {
    const { api, informer } = apiOf([object("shop/a", 5)], 10);
    informer.put(object("shop/b", 11));
    informer.relist([object("shop/a", 15), object("shop/b", 20)], 20);
    informer.put(object("shop/c", 21));
    for (const version of [10, 11, 15, 19]) {
      const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=${version}`);
      assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
    }
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=20`);
    assert.deepEqual(await watch.lines(1), ["ADDED shop/c 21"]);
  });

  it("at an older resourceVersion, of a restored server, cuts off connected watches and starts a new history", async () => {
    const { api, informer } = apiOf([object("shop/a", 5), object("shop/b", 6)], 100);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=100`);
    informer.put(object("shop/b", 101));
    informer.relist([object("shop/a", 5), object("shop/z", 49)], 50);
    // What came before is sent; what is stored now can only be listed.
    assert.deepEqual(await watch.toEnd(), ["MODIFIED shop/b 101", "ERROR 410 Expired"]);
    informer.put(object("shop/c", 51));
    assert.deepEqual(await (await WatchReader.open(api, `${WATCH}&resourceVersion=50`)).lines(1), [
      "ADDED shop/c 51",
    ]);
    await get(api, "/api/v1/pods?resourceVersion=49&resourceVersionMatch=Exact", { status: 410 });
    const exact = await get(api, "/api/v1/pods?resourceVersion=50&resourceVersionMatch=Exact");
    assert.deepEqual(names(exact), ["shop/a", "shop/z"]);
    assert.deepEqual(names(await get(api, "/api/v1/pods")), ["shop/a", "shop/c", "shop/z"]);
  });

  it("of a restored server cuts off watches that stand in their initial events or in the future, too", async () => {
    const objects = Array.from(
      { length: 200 },
      (_, i) => object(`shop/p-${i}`, i + 1, { spec: "x".repeat(1_000) }),
    );
    const { api, informer, clock } = apiOf(objects, 300, { watchBufferBytes: 1_000 });
    const initial = await WatchReader.open(api, WATCH_LIST);
    const future = await WatchReader.open(api, `${WATCH}&resourceVersion=400&allowWatchBookmarks=true`);
    informer.relist([object("shop/a", 5)], 50);
    const lines = await initial.toEnd();
    assert.ok(lines.length < 200, `${lines.length} events`);
    assert.equal(lines.at(-1), "ERROR 410 Expired");
    assert.deepEqual(await future.toEnd(), ["ERROR 410 Expired"]);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("openWatch, its bookmarks,", () => {
  it("come at an interval to watches that requested them, at the latest resourceVersion, and are the only timer", async () => {
    const { api, informer, clock } = apiOf([object("shop/a", 5)], 10, {
      bookmarkIntervalMs: 10_000,
      watchLifetimeMs: Infinity,
    });
    const asked = await WatchReader.open(api, `${WATCH}&resourceVersion=10&allowWatchBookmarks=true`);
    const again = await WatchReader.open(api, `${WATCH}&resourceVersion=10&allowWatchBookmarks=true`);
    const plain = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    assert.equal(clock.pendingTimers, 1);
    informer.bookmark(44);
    await clock.advance(10_000);
    assert.deepEqual(await asked.lines(1), ["BOOKMARK 44"]);
    informer.put(object("shop/b", 45));
    await clock.advance(10_000);
    assert.deepEqual(await asked.lines(2), ["ADDED shop/b 45", "BOOKMARK 45"]);
    assert.deepEqual(await plain.lines(1), ["ADDED shop/b 45"]);
    await asked.cancel();
    assert.equal(clock.pendingTimers, 1);
    await again.cancel();
    assert.equal(clock.pendingTimers, 0);
    assert.ok(await plain.isSilent());
  });

  it("do not come before what they speak of has been read", async () => {
    const { api, informer, clock } = apiOf([], 10, { bookmarkIntervalMs: 1_000, watchBufferBytes: 100 });
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&allowWatchBookmarks=true`);
    for (let version = 11; version <= 13; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(200) }));
      await settle();
    }
    await clock.advance(5_000); // no client reads
    assert.deepEqual(await watch.lines(3), ["ADDED shop/a 11", "MODIFIED shop/a 12", "MODIFIED shop/a 13"]);
    await clock.advance(1_000);
    assert.deepEqual(await watch.lines(1), ["BOOKMARK 13"]);
  });
});

describe("openWatch, its end,", () => {
  it("comes after timeoutSeconds, with a last bookmark if requested", async () => {
    const { api, informer, clock } = apiOf([], 10);
    const plain = await WatchReader.open(api, `${WATCH}&resourceVersion=10&timeoutSeconds=5`);
    const asked = await WatchReader.open(
      api,
      `${WATCH}&resourceVersion=10&timeoutSeconds=5&allowWatchBookmarks=1`,
    );
    informer.put(object("shop/a", 11));
    informer.bookmark(12);
    await clock.advance(4_999);
    assert.deepEqual(await plain.lines(1), ["ADDED shop/a 11"]);
    await clock.advance(1);
    assert.deepEqual(await plain.toEnd(), []);
    assert.deepEqual(await asked.toEnd(), ["ADDED shop/a 11", "BOOKMARK 12"]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("does not come sooner for a timeoutSeconds of 0", async () => {
    const { api, informer, clock } = apiOf([], 10);
    const watch = await WatchReader.open(api, `${WATCH}&resourceVersion=10&timeoutSeconds=0`);
    await clock.advance(60_000);
    informer.put(object("shop/a", 11));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/a 11"]);
  });

  it("has a tag of its own, so that nothing reads it whole to make one", async () => {
    const { api } = apiOf([], 10);
    const tags: (string | null)[] = [];
    for (let i = 0; i < 2; i++) {
      const response = await api.request(`${WATCH}&resourceVersion=10`);
      tags.push(response.headers.get("ETag"));
      await response.body?.cancel();
    }
    assert.match(tags[0]!, /^W\/".+"$/);
    assert.notEqual(tags[0], tags[1]);
  });

  it("leaves no timer when the client goes first", async () => {
    const { api, clock } = apiOf([], 10);
    const watch = await WatchReader.open(
      api,
      `${WATCH}&resourceVersion=10&timeoutSeconds=5&allowWatchBookmarks=1`,
    );
    assert.equal(clock.pendingTimers, 2);
    await watch.cancel();
    assert.equal(clock.pendingTimers, 0);
  });

  it("comes to all when the signal is aborted, which also lets go of the informer", async () => {
    const controller = new AbortController();
    const { api, informer, clock } = apiOf([object("shop/a", 5)], 10, { signal: controller.signal });
    const watch = await WatchReader.open(api, `${WATCH_LIST}&timeoutSeconds=60`);
    const waiting = api.request("/api/v1/pods?resourceVersion=99");
    await settle();
    informer.put(object("shop/b", 11));
    controller.abort();
    assert.deepEqual(await watch.toEnd(), [
      "ADDED shop/a 5",
      "BOOKMARK 10 end",
      "ADDED shop/b 11",
      "BOOKMARK 11",
    ]);
    assert.equal((await waiting).status, 504);
    assert.equal(informer.observers.size, 0);
    assert.equal(clock.pendingTimers, 0);
    assert.deepEqual(await (await WatchReader.open(api, `${WATCH}&resourceVersion=11`)).toEnd(), []);
  });
});

describe("openWatch, when slow,", () => {
  it("is cut off with 410 once the events it has not read were dropped, while others continue", async () => {
    const { api, informer } = apiOf([], 10, { eventWindow: 20, watchBufferBytes: 2_000 });
    const slow = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    const quick = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    let read = 0;
    for (let version = 11; version <= 110; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(500) }));
      read += (await quick.chunk())?.length ?? 0;
    }
    assert.equal(read, 100);
    const lines = await slow.toEnd();
    assert.equal(lines.at(-1), "ERROR 410 Expired");
    assert.ok(lines.length < 10, `only what its buffer had room for: ${lines.length}`);
    assert.deepEqual(lines[0], "ADDED shop/a 11");
    informer.put(object("shop/a", 111));
    assert.deepEqual(await quick.lines(1), ["MODIFIED shop/a 111"]);
  });

  it("gets everything, in order, if it reads before they are dropped", async () => {
    const { api, informer } = apiOf([], 10, { eventWindow: 100, watchBufferBytes: 2_000 });
    const slow = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    for (let version = 11; version <= 110; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(500) }));
      await Promise.resolve();
    }
    const expected = Array.from(
      { length: 100 },
      (_, i) => `${i === 0 ? "ADDED" : "MODIFIED"} shop/a ${11 + i}`,
    );
    assert.deepEqual(await slow.lines(100), expected);
  });
});

describe("EntryViews", () => {
  it("happens once for all watches, and only if there is one", async () => {
    const { api, informer } = apiOf([], 10);
    let encoded = 0;
    const counting = (version: number) => object("shop/a", version, { spec: { toJSON: () => ++encoded } });
    informer.put(counting(11));
    assert.equal(encoded, 0);
    const open = () => WatchReader.open(api, `${WATCH}&resourceVersion=11`);
    const watches = [await open(), await open(), await open()];
    informer.put(counting(12));
    for (const watch of watches) assert.deepEqual(await watch.lines(1), ["MODIFIED shop/a 12"]);
    assert.equal(encoded, 1);
    const replayed = await WatchReader.open(api, `${WATCH}&resourceVersion=10`);
    assert.deepEqual(await replayed.lines(2), ["ADDED shop/a 11", "MODIFIED shop/a 12"]);
    assert.equal(encoded, 2);
  });

  it("gives every watch bytes of its own, as some runtimes take them away", async () => {
    const { api, informer } = apiOf([], 10);
    const bodies = await Promise.all([1, 2].map(() => api.request(`${WATCH}&resourceVersion=10`)));
    informer.put(object("shop/a", 11));
    const chunks = await Promise.all(bodies.map(async ({ body }) => (await body?.getReader().read())?.value));
    assert.notEqual(chunks[0]?.buffer, chunks[1]?.buffer);
    assert.deepEqual(chunks[0], chunks[1]);
  });
});

describe("openWatch, refused,", () => {
  it("is answered by HTTP status: 400 for what does not parse, 422 for contradictions, 500 as by an API server", async () => {
    const { api } = apiOf([], 10);
    for (
      const query of [
        "labelSelector=a+in",
        "fieldSelector=spec.foo%3D1",
        "timeoutSeconds=soon",
      ]
    ) {
      await get(api, `${WATCH}&${query}`, { status: 400 });
    }
    await get(api, `${WATCH}&resourceVersion=abc`, { status: 500 });
    for (const query of ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan&resourceVersion=1"]) {
      assert.equal((await get(api, `${WATCH}&${query}`, { status: 422 })).reason, "Invalid");
    }
  });
});
