import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { MergedInformer, type MergedInformerOptions, type ReadApi } from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { decodeMergedVersion, encodeMergedVersion } from "../../../src/meta/merged_version.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { LogRecorder } from "../../log_recorder.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { get, type Json, names, WatchReader } from "../reading.ts";
import { describe, it } from "../storages.ts";
import { readApi } from "../read_api.ts";
import { Screen } from "../screen.ts";

const PODS = "/api/v1/pods";
const BY_NODE = { byNode: ({ node }: TestObject) => typeof node === "string" ? [node] : [] };
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const CLUSTER = "listwatch.dev/cluster";

interface Merged {
  readonly clock: FakeClock;
  readonly informers: FakeInformer[];
  readonly merged: MergedInformer;
  readonly api: ReadApi;
}

function merge(
  informers: FakeInformer[],
  options: MergedInformerOptions & { names?: string[] } = {},
): Merged {
  const clock = new FakeClock();
  const { names = informers.map((_, i) => `s${i}`), ...rest } = options;
  const merged = new MergedInformer(informers.map((informer, i) => ({ name: names[i], informer })), rest);
  const api = readApi({
    resources: [{ informer: merged, resource: "v1/pods" }],
    allowAnonymous: true,
    clock,
    logger: silentLogger,
  });
  return { clock, informers, merged, api };
}

function two(options: MergedInformerOptions & { names?: string[] } = {}): Merged {
  return merge([
    FakeInformer.with(
      [object("shop/a", 3, { node: "n1" }), object("shop/c", 5, { node: "n2" })],
      10,
      BY_NODE,
    ),
    FakeInformer.with([object("bar/z", 4, { node: "n1" }), object("shop/b", 7)], 20, BY_NODE),
  ], options);
}

function clusters(): Merged {
  return merge([
    FakeInformer.with([object("shop/web", 3, { labels: { app: "web" } })], 10),
    FakeInformer.with([object("shop/web", 900), object("bar/db", 800)], 1_000),
  ], { by: "cluster", names: ["eu-1", "us-1"] });
}

function parts(version: string): readonly string[] | undefined {
  return decodeMergedVersion(version)?.parts;
}

/** A version of the same sources. */
function at(version: string, ...parts: (number | string)[]): string {
  return encodeMergedVersion({ layout: decodeMergedVersion(version)!.layout, parts: parts.map(String) });
}

/** The events of a watch up to now, versions of bookmarks as their parts. */
async function shown(watch: WatchReader, count: number): Promise<string[]> {
  return (await watch.lines(count)).map((line) =>
    line.replace(/\b[0-9]{21,}\b/, (version) => `[${parts(version)}]`)
  );
}

function withUid(
  name: string,
  version: number,
  uid: string,
  fields: Record<string, unknown> = {},
): TestObject {
  const made = object(name, version, fields);
  return { ...made, metadata: { ...made.metadata, uid } };
}

describe("MergedInformer lists", () => {
  it("have the objects of all sources in the order of their keys, with their own versions, at a version of each", async () => {
    const { api } = two();
    const response = await api.request(PODS);
    const list: Json = await response.json();
    assert.deepEqual(names(list), ["bar/z", "shop/a", "shop/b", "shop/c"]);
    assert.deepEqual(list.items.map(({ metadata }: Json) => metadata.resourceVersion), ["4", "3", "7", "5"]);
    assert.deepEqual(parts(list.metadata.resourceVersion), ["10", "20"]);
    assert.equal(response.headers.get("Resource-Version"), list.metadata.resourceVersion);
    assert.equal(response.headers.get("Snapshot"), "per-shard");
    assert.equal(response.headers.get("Cache-Synced"), "true");
    const one = await get(api, "/api/v1/namespaces/shop/pods/b");
    assert.equal(one.metadata.resourceVersion, "7");
    await get(api, "/api/v1/namespaces/shop/pods/x", { status: 404 });
  });

  it("narrow to a namespace, to labels, to fields and to an index", async () => {
    const { api, informers } = two();
    informers[0].put(object("shop/l", 30, { labels: { app: "web" }, node: "n1" }));
    assert.deepEqual(names(await get(api, "/api/v1/namespaces/shop/pods")), [
      "shop/a",
      "shop/b",
      "shop/c",
      "shop/l",
    ]);
    assert.deepEqual(names(await get(api, `${PODS}?labelSelector=app=web`)), ["shop/l"]);
    assert.deepEqual(names(await get(api, `${PODS}?fieldSelector=metadata.name=z`)), ["bar/z"]);
    assert.deepEqual(names(await get(api, "/indices/pods/byNode/n1")), ["bar/z", "shop/a", "shop/l"]);
    const { items } = await get(api, "/indices/pods/byNode");
    assert.deepEqual(items, [{ value: "n1", count: 3 }, { value: "n2", count: 1 }]);
  });

  it("are read at versions of the sources: exactly, not older, in pages, and of one cluster at its own", async () => {
    const { api, informers } = two();
    const before = await get(api, `${PODS}?limit=2`);
    const version: string = before.metadata.resourceVersion;
    informers[1].put(object("shop/b", 21));
    informers[0].put(object("shop/new", 11));
    informers[0].remove("shop/a", 12);
    const rest = await get(api, `${PODS}?limit=9&continue=${before.metadata.continue}`);
    assert.deepEqual([...names(before), ...names(rest)], ["bar/z", "shop/a", "shop/b", "shop/c"]);
    assert.equal(rest.metadata.resourceVersion, version);
    const exact = (version: string) => `${PODS}?resourceVersion=${version}&resourceVersionMatch=Exact`;
    assert.deepEqual(names(await get(api, exact(version))), ["bar/z", "shop/a", "shop/b", "shop/c"]);
    const between = await get(api, exact(at(version, 11, 21)));
    assert.deepEqual(names(between), ["bar/z", "shop/a", "shop/b", "shop/c", "shop/new"]);
    // Neither of these was ever here: the other source's change came first.
    for (const never of [at(version, 11, 20), at(version, 12, 20)]) {
      await get(api, exact(never), { status: 410 });
    }
    const notOlder = `${PODS}?resourceVersionMatch=NotOlderThan&resourceVersion=`;
    assert.equal((await get(api, notOlder + at(version, 12, 20))).items.length, 4);
    assert.equal((await get(api, `${notOlder}12`)).items.length, 4);
  });

  it("wait for each source to come to its part, and are 504 if one does not", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const path = `${PODS}?resourceVersionMatch=NotOlderThan&resourceVersion=`;
    const reached = api.request(path + at(resourceVersion, 10, 25));
    await clock.advance(100);
    informers[0].bookmark(40);
    informers[1].bookmark(25);
    assert.equal((await reached).status, 200);
    const late = api.request(path + at(resourceVersion, 11, 26));
    await clock.advance(3_000);
    assert.equal((await late).status, 504);
  });

  it("are 410 at a version of other sources, and of clusters at that of one", async () => {
    const { api, merged } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const others = two({ names: ["s1", "s0"] }).api;
    const path = `${PODS}?resourceVersionMatch=NotOlderThan&resourceVersion=`;
    await get(others, path + resourceVersion, { status: 410 });
    await get(clusters().api, `${path}10`, { status: 410 });
    assert.equal(merged.partsOf("12")?.length, 2);
    const watch = await WatchReader.open(others, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
  });

  it("come as Tables, and with an ETag that stays while nothing changes", async () => {
    const { api, informers } = two();
    const table = await get(api, PODS, { accept: TABLE });
    assert.deepEqual(table.rows.map(({ cells }: Json) => cells[0]), ["z", "a", "b", "c"]);
    const etag = (await api.request(PODS)).headers.get("ETag")!;
    informers[0].bookmark(14);
    const again = await api.request(PODS, { headers: { "If-None-Match": etag } });
    assert.equal(again.status, 304);
    informers[1].put(object("shop/b", 21));
    assert.equal((await api.request(PODS, { headers: { "If-None-Match": etag } })).status, 200);
  });
});

describe("MergedInformer watches", () => {
  it("bring objects as their servers have them, and behind them a bookmark with the version of the whole", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const path = `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=`;
    const watch = await WatchReader.open(api, path + resourceVersion);
    informers[0].put(object("shop/a", 11));
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["MODIFIED shop/a 11", "BOOKMARK [11,20]"]);
    informers[1].put(object("shop/d", 21));
    informers[0].remove("shop/c", 12);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 3), ["ADDED shop/d 21", "DELETED shop/c 12", "BOOKMARK [12,21]"]);
    // A reader may continue at each version on the way, also between the two.
    const second = await WatchReader.open(api, path + at(resourceVersion, 11, 21));
    assert.deepEqual(await shown(second, 2), ["DELETED shop/c 12", "BOOKMARK [12,21]"]);
    await watch.cancel();
    await second.cancel();
  });

  it("show the version of the whole in the objects to readers without bookmarks", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const watch = await WatchReader.open(api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    informers[0].put(object("shop/a", 11));
    informers[1].remove("shop/b", 21);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["MODIFIED shop/a [11,20]", "DELETED shop/b [11,21]"]);
    await watch.cancel();
  });

  it("begin with the objects of all sources, and one bookmark behind them", async () => {
    const { api } = two();
    const query =
      "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const watch = await WatchReader.open(api, `${PODS}?${query}`);
    const lines = [
      "ADDED bar/z 4",
      "ADDED shop/a 3",
      "ADDED shop/b 7",
      "ADDED shop/c 5",
      "BOOKMARK [10,20] end",
    ];
    assert.deepEqual(await shown(watch, 5), lines);
    await watch.cancel();
  });

  it("are 410 from a version of one object, and from one of another copy that this one never had", async () => {
    const { api, informers } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    informers[1].bookmark(25);
    informers[0].put(object("shop/a", 11));
    const from = async (version: string) => {
      const watch = await WatchReader.open(
        api,
        `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}`,
      );
      const first = await watch.chunk();
      await watch.cancel();
      return first?.[0].type;
    };
    assert.equal(await from("11"), "ERROR");
    // The other copy had the event before the bookmark: its reader has seen what would come again.
    assert.equal(await from(at(resourceVersion, 11, 22)), "ERROR");
    assert.equal(await from(at(resourceVersion, 9, 26)), "ERROR");
    assert.equal(await from(at(resourceVersion, 100, 100)), "ERROR");
    assert.equal(await from(at(resourceVersion, 10, 22)), "MODIFIED");
  });

  it("do not start or continue behind events that a list of a source has passed for a proof", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const from = (version: string) =>
      WatchReader.open(api, `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}`);
    const before = await from(resourceVersion);
    informers[0].bookmark(15, { byState: true });
    informers[1].bookmark(25);
    const between = await from(at(resourceVersion, 12, 25));
    const after = await from(at(resourceVersion, 15, 25));
    await clock.advance(30_000);
    assert.deepEqual(await shown(before, 1), ["BOOKMARK [10,20]"]);
    assert.deepEqual(await shown(between, 1), ["BOOKMARK [12,25]"]);
    assert.deepEqual(await shown(after, 1), ["BOOKMARK [15,25]"]);
    informers[0].passed();
    assert.deepEqual(await between.toEnd(), ["ERROR 410 Expired"]);
    assert.deepEqual(await shown(before, 1), ["BOOKMARK [15,25]"]);
    await before.cancel();
    await after.cancel();
  });

  it("stay where they are with a late change of a source, and do not lose it", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const path = `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`;
    const watch = await WatchReader.open(api, path);
    informers[0].put(object("shop/late", 8));
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["ADDED shop/late 8", "BOOKMARK [10,20]"]);
    informers[1].put(object("shop/b", 25));
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["MODIFIED shop/b 25", "BOOKMARK [10,25]"]);
    await watch.cancel();
  });

  it("say nothing of another copy of an object, and show another content of the same version", async () => {
    for (const by of [undefined, "cluster"] as const) {
      const { api, informers, clock } = two(by && { by });
      const { metadata: { resourceVersion } } = await get(api, PODS);
      const watch = await WatchReader.open(api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
      informers[0].put(object("shop/a", 3, { node: "n1" }));
      informers[0].put(object("shop/c", 5, { node: "n3" }));
      await clock.advance(30);
      const [{ type, object: { node } }] = await watch.events(1);
      assert.deepEqual([type, node], ["MODIFIED", "n3"]);
      assert.ok(await watch.isSilent());
      await watch.cancel();
    }
  });

  it("end with 410 where a source's server goes back in time", async () => {
    const { api, informers, clock } = two();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const watch = await WatchReader.open(api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    informers[0].relist([object("shop/a", 2)], 6);
    await clock.advance(30);
    assert.deepEqual((await watch.toEnd()).at(-1), "ERROR 410 Expired");
    assert.deepEqual(parts((await get(api, PODS)).metadata.resourceVersion), ["6", "20"]);
  });
});

describe("MergedInformer.observe", () => {
  it("says that events may lack while a proof of a source is further, also after a late change of it", () => {
    const { merged, informers } = two();
    const received: string[] = [];
    const stop = merged.observe((event) => {
      const byState = event.type === "bookmark" && event.byState === true ? " by state" : "";
      const version = event.type === "bookmark" ? ` ${parts(event.resourceVersion)}` : "";
      received.push(`${event.type}${version}${byState}`);
    });
    informers[0].bookmark(15, { byState: true });
    informers[0].put(object("shop/late", 12));
    informers[1].put(object("shop/b", 25));
    informers[0].put(object("shop/a", 16));
    stop();
    assert.deepEqual(received, [
      "bookmark 15,20 by state",
      "added",
      "bookmark 15,20 by state",
      "updated",
      "bookmark 15,25 by state",
      "updated",
      "bookmark 16,25",
    ]);
  });
});

describe("MergedInformer.observe, where an observer throws", () => {
  it("notifies the others of each event, and logs what was thrown", async () => {
    const logger = new LogRecorder();
    const informers = [FakeInformer.with([object("shop/a", 3)], 10), FakeInformer.with([], 20)];
    const merged = new MergedInformer(informers.map((informer, i) => ({ name: `s${i}`, informer })), {
      logger,
    });
    merged.observe(() => {
      throw new Error("cannot count");
    });
    merged.observe(() => Promise.reject(new Error("cannot count later")));
    const received: string[] = [];
    merged.observe((event) => received.push(event.type));
    informers[0].put(object("shop/b", 11));
    informers[1].bookmark(21);
    assert.deepEqual(received, ["added", "bookmark", "bookmark"]);
    await settle();
    for (const why of ["cannot count", "cannot count later"]) {
      assert.equal(logger.of("error").filter((line) => line.endsWith(`an observer threw: ${why}`)).length, 3);
    }
  });
});

describe("MergedInformer with a key in two sources", () => {
  async function watched(merged: Merged): Promise<WatchReader> {
    const { metadata: { resourceVersion } } = await get(merged.api, PODS);
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`;
    return await WatchReader.open(merged.api, `${PODS}?${query}`);
  }

  it("never deletes the object that was created again: the end of the old one is dropped", async () => {
    const merged = merge([
      FakeInformer.with([withUid("shop/web-0", 3, "old")], 10),
      FakeInformer.with([], 10),
    ]);
    const { informers: [a, b], clock, api } = merged;
    const watch = await watched(merged);
    b.put(withUid("shop/web-0", 12, "new"));
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 3), [
      "DELETED shop/web-0 3",
      "ADDED shop/web-0 12",
      "BOOKMARK [10,12]",
    ]);
    a.put(withUid("shop/web-0", 4, "old"));
    a.remove("shop/web-0", 11);
    b.put(withUid("shop/web-0", 13, "new"));
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["MODIFIED shop/web-0 13", "BOOKMARK [11,13]"]);
    assert.equal((await get(api, "/api/v1/namespaces/shop/pods/web-0")).metadata.uid, "new");
    await watch.cancel();
  });

  it("takes over the object that has moved, as a change of it", async () => {
    const merged = merge([FakeInformer.with([withUid("shop/x", 3, "u")], 10), FakeInformer.with([], 10)]);
    const { informers: [a, b], clock } = merged;
    const watch = await watched(merged);
    b.put(withUid("shop/x", 12, "u"));
    a.remove("shop/x", 12);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["MODIFIED shop/x 12", "BOOKMARK [10,12]"]);
    await watch.cancel();
  });

  it("shows what is left when the later one is deleted, once that source has come as far", async () => {
    const merged = merge([
      FakeInformer.with([withUid("shop/x", 3, "old")], 10),
      FakeInformer.with([withUid("shop/x", 8, "new")], 10),
    ]);
    const { informers: [a, b], clock, api } = merged;
    const watch = await watched(merged);
    b.remove("shop/x", 15);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["DELETED shop/x 15", "BOOKMARK [10,15]"]);
    assert.deepEqual(names(await get(api, PODS)), []);
    a.bookmark(14);
    a.bookmark(16);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["ADDED shop/x 3", "BOOKMARK [16,15]"]);
    a.remove("shop/x", 17);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["DELETED shop/x 17", "BOOKMARK [17,15]"]);
    await watch.cancel();
  });

  it("lists it once, in the state of the later version, and finds it by the indices once", async () => {
    const { api } = merge([
      FakeInformer.with([withUid("shop/x", 9, "u", { node: "n1" })], 10, BY_NODE),
      FakeInformer.with([withUid("shop/x", 8, "u", { node: "n1" })], 10, BY_NODE),
    ]);
    const { items } = await get(api, PODS);
    assert.deepEqual(items.map(({ metadata }: Json) => metadata.resourceVersion), ["9"]);
    assert.equal((await get(api, "/indices/pods/byNode/n1")).items.length, 1);
  });
});

describe("MergedInformer with a source without content", () => {
  function missing(): Merged {
    return merge([FakeInformer.with([object("shop/a", 3)], 10), new FakeInformer()], { names: ["eu", "us"] });
  }

  it("refuses reads with 503, which names it, but a get that another source can answer", async () => {
    const { api } = missing();
    for (
      const path of [PODS, `${PODS}?watch=true`, "/api/v1/namespaces/shop/pods/x", "/indices/pods/byNode"]
    ) {
      const { details, message } = await (await api.request(path)).json();
      if (!path.startsWith("/indices")) {
        assert.deepEqual(details.causes.map(({ field }: Json) => field), ["us"], path);
        assert.match(message, /partial=true/);
      }
    }
    assert.equal((await get(api, "/api/v1/namespaces/shop/pods/a")).metadata.name, "a");
    const ready = await api.request("/readyz");
    assert.equal(ready.status, 503);
    assert.match(await ready.text(), /^\[\+\]informer\/pods of eu ok\n\[-\]informer\/pods of us failed/m);
  });

  it("refuses queries of indices with 503, which names it", async () => {
    const { api } = merge([FakeInformer.with([], 10, BY_NODE), new FakeInformer(BY_NODE)], {
      names: ["eu", "us"],
    });
    for (const path of ["/indices/pods", "/indices/pods/byNode", "/indices/pods/byNode/n1"]) {
      const { details } = await get(api, path, { status: 503 });
      assert.deepEqual(details.causes.map(({ field }: Json) => field), ["us"], path);
    }
  });

  it("answers with what the others have on request, with a Warning, and brings its objects when they come", async () => {
    const { api, informers, clock } = missing();
    const response = await api.request(`${PODS}?partial=true`);
    assert.equal(response.headers.get("Warning"), '299 - "incomplete: nothing was read of us yet"');
    assert.equal(response.headers.get("Cache-Synced"), "false");
    const list: Json = await response.json();
    assert.deepEqual(names(list), ["shop/a"]);
    const { resourceVersion } = list.metadata;
    assert.deepEqual(parts(resourceVersion), ["10", "0"]);
    const path = `${PODS}?watch=true&allowWatchBookmarks=true&partial=true&resourceVersion=`;
    const watch = await WatchReader.open(api, path + resourceVersion);
    informers[0].put(object("shop/a", 11));
    informers[1].relist([object("shop/b", 5), object("shop/c", 6)], 20);
    await clock.advance(30);
    const lines = await shown(watch, 4);
    assert.deepEqual(lines, ["MODIFIED shop/a 11", "ADDED shop/b 5", "ADDED shop/c 6", "BOOKMARK [11,20]"]);
    // In the middle of its first objects a reader has no place: it lists again, and gets the rest.
    for (const version of ["5", at(resourceVersion, 11, 5), at(resourceVersion, 11, 0)]) {
      const again = await WatchReader.open(api, path + version);
      assert.deepEqual(await again.toEnd(), ["ERROR 410 Expired"]);
    }
    assert.equal((await api.request("/readyz")).status, 200);
    assert.equal((await get(api, PODS)).items.length, 3);
    await watch.cancel();
  });

  it("is no reason to refuse a get of an object of another cluster", async () => {
    const { api, informers, clock } = merge([
      FakeInformer.with([object("shop/a", 3)], 10),
      new FakeInformer(),
    ], {
      names: ["eu", "us"],
      by: "cluster",
    });
    await get(api, "/api/v1/namespaces/shop/pods/eu.x", { status: 404 });
    await get(api, "/api/v1/namespaces/shop/pods/us.x", { status: 503 });
    const { resourceVersion } = (await get(api, `${PODS}?partial=true`)).metadata;
    const path =
      `${PODS}?watch=true&allowWatchBookmarks=true&partial=true&resourceVersion=${resourceVersion}`;
    const watch = await WatchReader.open(api, path);
    informers[1].relist([object("shop/b", 5)], 20);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["ADDED shop/us.b 5", "BOOKMARK [10,20]"]);
    await watch.cancel();
  });
});

describe("MergedInformer of clusters", () => {
  it("shows each object under its cluster, as it is otherwise, so that one name in two clusters is two objects", async () => {
    const { api } = clusters();
    const list = await get(api, PODS);
    assert.deepEqual(names(list), ["bar/us-1.db", "shop/eu-1.web", "shop/us-1.web"]);
    assert.deepEqual(list.items[1].metadata.annotations, { "listwatch.dev/cluster": "eu-1" });
    const one = await get(api, "/api/v1/namespaces/shop/pods/us-1.web");
    assert.equal(one.metadata.resourceVersion, "900");
    assert.equal(one.metadata.annotations["listwatch.dev/cluster"], "us-1");
    await get(api, "/api/v1/namespaces/shop/pods/web", { status: 404 });
    const table = await get(api, PODS, { accept: TABLE });
    assert.deepEqual(table.rows.map(({ cells }: Json) => cells[0]), ["us-1.db", "eu-1.web", "us-1.web"]);
  });

  it("selects by the names that it shows", async () => {
    const { api } = clusters();
    const named = (name: string) => get(api, `${PODS}?fieldSelector=metadata.name${name}`).then(names);
    assert.deepEqual(await named("=eu-1.web"), ["shop/eu-1.web"]);
    assert.deepEqual(await named("=web"), []);
    assert.deepEqual(await named("!=eu-1.web"), ["bar/us-1.db", "shop/us-1.web"]);
    assert.deepEqual(names(await get(api, `${PODS}?labelSelector=app=web`)), ["shop/eu-1.web"]);
  });

  it("says of which cluster an object is, whatever its annotation says", async () => {
    const { api, informers } = clusters();
    const texts = [{ a: "b", [CLUSTER]: "other" }, { [CLUSTER]: "other" }, {}, null];
    for (const [i, annotations] of texts.entries()) {
      const made = object(`shop/n${i}`, 11 + i);
      informers[0].put({ ...made, metadata: { ...made.metadata, annotations } } as unknown as TestObject);
    }
    const response = await api.request(`${PODS}?fieldSelector=metadata.namespace=shop`);
    const text = await response.text();
    const { items } = JSON.parse(text);
    const made = items.filter(({ metadata }: Json) => metadata.name.startsWith("eu-1.n"));
    assert.deepEqual(made.map(({ metadata }: Json) => metadata.annotations), [
      { a: "b", [CLUSTER]: "eu-1" },
      ...Array(3).fill({ [CLUSTER]: "eu-1" }),
    ]);
    assert.equal(text.split(CLUSTER).length - 1, items.length);
  });

  it("watches with the names that it shows, and keeps annotations", async () => {
    const { api, informers, clock } = clusters();
    const { metadata: { resourceVersion } } = await get(api, PODS);
    const watch = await WatchReader.open(
      api,
      `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`,
    );
    const made = object("shop/web", 11);
    informers[0].put({ ...made, metadata: { ...made.metadata, annotations: { a: "b" } } });
    informers[1].remove("shop/web", 1_001);
    await clock.advance(30);
    const [changed, deleted] = await watch.events(2);
    assert.deepEqual(changed.object.metadata.annotations, { a: "b", "listwatch.dev/cluster": "eu-1" });
    assert.deepEqual([deleted.type, deleted.object.metadata.name], ["DELETED", "us-1.web"]);
    await watch.cancel();
  });
});

describe("MergedInformer, screens", () => {
  const counted = (name: string, version: number, count: number, annotations?: Record<string, string>) => {
    const made = object(name, version, { status: { count } });
    return { ...made, metadata: { ...made.metadata, ...(annotations && { annotations }) } };
  };
  const counts = (by?: "cluster") =>
    merge([
      FakeInformer.with([counted("shop/web", 3, 2)], 10),
      FakeInformer.with([counted("shop/db", 900, 3, { a: "b" }), counted("bar/db", 800, 1, {})], 1_000),
    ], { names: ["eu-1", "us-1"], ...(by && { by }) });

  it("order and group objects by what the whole shows of them, in lists and in windows", async () => {
    const byName = { shards: ["bar/db", "shop/db", "shop/web"], cluster: ["eu-1.web", "us-1.db", "us-1.db"] };
    for (const by of [undefined, "cluster"] as const) {
      const { api, informers, clock } = counts(by);
      const shownNames = (list: Json) =>
        by === undefined ? names(list) : list.items.map(({ metadata }: Json) => metadata.name);
      assert.deepEqual(shownNames(await get(api, `${PODS}?sortBy=metadata.name`)), byName[by ?? "shards"]);
      const { items } = await get(api, `${PODS}?groupBy=metadata.name`);
      assert.deepEqual(
        items.map(({ group, count }: Json) => [group["metadata.name"], count]),
        by === undefined ? [["db", 2], ["web", 1]] : [["eu-1.web", 1], ["us-1.db", 2]],
      );
      const screen = await Screen.open(api, "sortBy=status.count:desc&limit=2");
      const own = (prefix: string, name: string) => `shop/${by === undefined ? "" : prefix}${name}`;
      assert.deepEqual(screen.names(), [own("us-1.", "db"), own("eu-1.", "web")]);
      await clock.advance(100);
      informers[0].put(counted("shop/web", 1_001, 4));
      assert.equal(await screen.next(), "CHANGES, move 0 1, update 0");
      assert.deepEqual(screen.names(), [own("eu-1.", "web"), own("us-1.", "db")]);
      await screen.cancel();
    }
  });

  it("read the fields of clusters' objects as these are shown", async () => {
    const { api } = counts("cluster");
    const fields = "fields=metadata.name,metadata.annotations&sortBy=metadata.annotations,status.count";
    const list = await get(api, `${PODS}?${fields}`);
    assert.deepEqual(
      list.items.map(({ metadata }: Json) => [metadata.name, metadata.annotations]),
      [
        ["us-1.db", { [CLUSTER]: "us-1" }],
        ["eu-1.web", { [CLUSTER]: "eu-1" }],
        ["us-1.db", { a: "b", [CLUSTER]: "us-1" }],
      ],
    );
    const { items } = await get(api, `${PODS}?groupBy=metadata.annotations["${CLUSTER}"]`);
    assert.deepEqual(items.map(({ group, count }: Json) => [...Object.values(group), count]), [
      ["eu-1", 1],
      ["us-1", 2],
    ]);
  });
});

describe("MergedInformer", () => {
  it("refuses options that cannot work", () => {
    const informer = FakeInformer.with([], 10);
    assert.throws(() => new MergedInformer([]), /Cannot merge 0 informers/);
    assert.throws(
      () => new MergedInformer([{ name: "a", informer }, { name: "a", informer }]),
      /two of them/,
    );
    assert.throws(() => new MergedInformer([{ name: "a.b", informer }], { by: "cluster" }), /lower-case/);
    const merged = new MergedInformer([{ name: "a", informer }]);
    assert.throws(() => new MergedInformer([{ name: "b", informer: merged }]), /merged itself/);
  });

  it("is as old as its oldest source, and stopped when all are", async () => {
    const { merged, informers: [a, b], api } = two();
    [a.lag, b.lag, a.phase, b.phase] = [1_500, 90_000, "watching", "backing off"];
    assert.deepEqual(merged.status(), { phase: "backing off" });
    assert.equal(merged.lagMs(), 90_000);
    assert.equal((await api.request(PODS)).headers.get("Age"), "90");
    b.phase = "stopped";
    assert.equal(merged.status().phase, "watching");
    a.phase = "stopped";
    assert.equal(merged.status().phase, "stopped");
  });

  it("follows its sources only while it is observed", () => {
    const informer = FakeInformer.with([object("shop/a", 3)], 10);
    const merged = new MergedInformer([{ name: "a", informer }]);
    assert.equal(informer.observers.size, 0);
    const stop = merged.observe(() => {});
    assert.deepEqual(merged.indexer.listKeys(), ["shop/a"]);
    stop();
    assert.equal(informer.observers.size, 0);
    informer.put(object("shop/b", 11));
    merged.observe(() => {});
    assert.deepEqual(merged.indexer.listKeys().sort(), ["shop/a", "shop/b"]);
    assert.equal(merged.indexer.getByKey("shop/b")?.metadata?.name, "b");
  });
});

/** Clusters with servers of their own, and caches above one read API over them. */
class Tower {
  readonly clock = new FakeClock();
  readonly servers = [0, 1].map(() => new InMemoryApiServer({ clock: this.clock }));
  readonly sources = this.servers.map((server, i) => ({
    name: `c${i}`,
    informer: this.#informer(server.fetch),
  }));
  readonly running = this.sources.map(({ informer }) => informer.start());
  readonly api: ReadApi;

  constructor(options: { freshness?: "consistent" | "stale-if-error" } = {}) {
    const informer = new MergedInformer(this.sources, { by: "cluster" });
    this.api = this.serve(informer, options);
  }

  serve(informer: MergedInformer | SharedIndexInformer<Json>, options: Json = {}): ReadApi {
    const resources = [{ informer, resource: "v1/pods" }];
    return readApi({ resources, allowAnonymous: true, clock: this.clock, logger: silentLogger, ...options });
  }

  /** Whether what watches of the merged API bring is held back. */
  holdsWatches = false;

  /** An informer over the merged API. */
  copy(options: { readonly turnObjects?: number } = {}): SharedIndexInformer<Json> {
    const informer = this.#informer(
      async (request) => this.#held(await this.api.fetch(request), request),
      options,
    );
    this.running.push(informer.start());
    return informer;
  }

  /** The informers have their first lists. */
  async synced(): Promise<void> {
    await this.settled(Promise.all(this.sources.map(({ informer }) => informer.synced())));
  }

  /** Lets time pass until something is so. */
  async until(isSo: () => boolean): Promise<void> {
    for (let i = 0; i < 2_000 && !isSo(); i++) await this.clock.advance(5);
    assert.ok(isSo(), String(isSo));
  }

  async settled<R>(promise: Promise<R>): Promise<R> {
    let isDone = false;
    promise.finally(() => (isDone = true)).catch(() => {});
    for (let i = 0; i < 2_000 && !isDone; i++) await this.clock.advance(5);
    return await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.running) await each.stop();
    for (const server of this.servers) server.close();
  }

  #held(response: Response, request: Request): Response {
    const { searchParams } = new URL(request.url);
    if (!searchParams.has("watch") || searchParams.get("timeoutSeconds") === "3") return response;
    const hold = new TransformStream<Uint8Array, Uint8Array>({
      transform: async (chunk, controller) => {
        while (this.holdsWatches) await new Promise((resolve) => setTimeout(resolve, 0));
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body!.pipeThrough(hold), response);
  }

  #informer(
    fetch: (request: Request) => Response | Promise<Response>,
    more: { readonly turnObjects?: number } = {},
  ): SharedIndexInformer<Json> {
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: async (input, init) => await fetch(new Request(input, init)),
      logger: silentLogger,
    });
    const options = { clock: this.clock, logger: silentLogger, ...more };
    return new SharedIndexInformer<Json>(cluster.resource<Json>("v1/pods"), options);
  }
}

describe("MergedInformer and reads that must be fresh", () => {
  it("asks each server, and names the one that does not answer", async () => {
    await using tower = new Tower({ freshness: "consistent" });
    const { servers, api } = tower;
    for (const server of servers) server.create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    assert.equal((await tower.settled(get(api, PODS))).items.length, 2);
    servers[0].create("v1/pods", pod("new", { namespace: "shop" }));
    assert.equal((await tower.settled(get(api, PODS))).items.length, 3);
    const back = servers[1].intercept(() => Promise.reject(new TypeError("connection refused")));
    const refused = await tower.settled(get(api, PODS, { status: 504 }));
    assert.match(refused.message, /of c1/);
    await tower.settled(get(api, "/api/v1/namespaces/shop/pods/c0.web"));
    const partial = await tower.settled(Promise.resolve(api.request(`${PODS}?partial=true`)));
    assert.equal(partial.status, 200);
    assert.match(partial.headers.get("Warning")!, /last known state of c1/);
    back();
  });
});

describe("MergedInformer below another informer", () => {
  it("has the objects as their servers do, in every way that it reads them, and takes nothing twice", async () => {
    await using tower = new Tower();
    const { servers, clock } = tower;
    for (const server of servers) server.create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    const informer = tower.copy();
    const received: string[] = [];
    informer.addEventHandler({
      onAdd: ({ metadata }) => void received.push(`+${metadata.name}`),
      onUpdate: (old, { metadata }) =>
        void received.push(`${metadata.name} ${old.metadata.resourceVersion} ${metadata.resourceVersion}`),
      onDelete: ({ object }: Json) => void received.push(`-${object?.metadata.name}`),
    });
    await tower.settled(informer.synced());
    const copy = tower.serve(informer);
    const first = await tower.settled(get(copy, PODS));
    assert.deepEqual(parts(first.metadata.resourceVersion), ["2", "2"]);
    servers[0].update("v1/pods", { ...pod("web", { namespace: "shop" }), spec: { nodeName: "n" } });
    servers[1].create("v1/pods", pod("db", { namespace: "shop" }));
    servers[1].delete("v1/pods", "shop/web");
    await tower.until(() => received.length === 5);
    assert.deepEqual(received, ["+c0.web", "+c1.web", "c0.web 2 3", "+c1.db", "-c1.web"]);
    const second = await tower.settled(get(copy, PODS));
    assert.deepEqual(second.items.map(({ metadata }: Json) => metadata.resourceVersion), ["3", "3"]);
    assert.deepEqual(parts(second.metadata.resourceVersion), ["3", "4"]);
    assert.equal(informer.lastSyncResourceVersion(), second.metadata.resourceVersion);
    const exact = `${PODS}?resourceVersion=${first.metadata.resourceVersion}&resourceVersionMatch=Exact`;
    assert.deepEqual(names(await get(copy, exact)), ["shop/c0.web", "shop/c1.web"]);
    // A list brings nothing that it has not.
    received.length = 0;
    tower.api.endWatches();
    await clock.advance(5_000);
    servers[0].compact();
    servers[0].closeWatches();
    await clock.advance(60_000);
    assert.deepEqual(received, []);
  });

  it("gives its own readers the versions of the whole, and caches above it the same", async () => {
    await using tower = new Tower();
    const { servers, clock } = tower;
    servers[0].create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    const informer = tower.copy();
    await tower.settled(informer.synced());
    const copy = tower.serve(informer);
    const { metadata: { resourceVersion } } = await tower.settled(get(copy, PODS));
    const path = `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=`;
    const watch = await WatchReader.open(copy, path + resourceVersion);
    servers[1].create("v1/pods", pod("db", { namespace: "shop" }));
    await tower.until(() => informer.indexer.listKeys().length === 2);
    await clock.advance(30);
    assert.deepEqual(await shown(watch, 2), ["ADDED shop/c1.db 2", "BOOKMARK [2,2]"]);
    // The same version is good at the cache below, and the other way round.
    const below = await WatchReader.open(tower.api, path + resourceVersion);
    assert.deepEqual(await shown(below, 2), ["ADDED shop/c1.db 2", "BOOKMARK [2,2]"]);
    await watch.cancel();
    await below.cancel();
  });

  it("takes the changes up to a bookmark in one turn, however many there are", async () => {
    await using tower = new Tower();
    const { servers } = tower;
    servers[0].create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    const informer = tower.copy({ turnObjects: 1 });
    await tower.settled(informer.synced());
    const turns: number[] = [];
    informer.observe(() =>
      void queueMicrotask(() => setTimeout(() => turns.push(informer.indexer.listKeys().length)))
    );
    // The rounds may come with two bookmarks, which are two steps.
    const rounds: string[] = [];
    for (let count = 6; count <= 251; count += 5) {
      turns.length = 0;
      for (let i = 1; i <= 5; i++) {
        servers[0].create("v1/pods", pod(`db-${count - i}`, { namespace: "shop" }));
      }
      await tower.until(() => turns.at(-1) === count);
      rounds.push([...new Set(turns)].join(" "));
      if (rounds.at(-1) === `${count}`) return;
    }
    assert.fail(`no five changes came in one turn: ${rounds}`);
  });

  it("does not go back with changes that a proof has passed, and lists soon, as it has not seen them", async () => {
    await using tower = new Tower({ freshness: "consistent" });
    const { servers, clock } = tower;
    servers[0].create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    const informer = tower.copy();
    await tower.settled(informer.synced());
    const received: string[] = [];
    informer.observe(({ type }) => void received.push(type));
    const copy = tower.serve(informer, { freshness: "consistent" });
    tower.holdsWatches = true;
    servers[1].create("v1/pods", pod("db", { namespace: "shop" }));
    servers[1].delete("v1/pods", "shop/db");
    assert.equal((await tower.settled(get(copy, PODS))).items.length, 1);
    assert.deepEqual(received, ["bookmark"]);
    tower.holdsWatches = false;
    await clock.advance(100);
    assert.deepEqual(names(await get(copy, `${PODS}?resourceVersion=0`)), ["shop/c0.web"]);
    assert.deepEqual(received, ["bookmark"]);
    for (let i = 0; i < 300 && !received.includes("replaced"); i++) await clock.advance(1_000);
    assert.ok(received.includes("replaced"));
    assert.ok(!received.includes("added"));
  });

  it("is as old as the oldest source, although another one sends events", async () => {
    await using tower = new Tower();
    const { servers, clock } = tower;
    servers[0].create("v1/pods", pod("web", { namespace: "shop" }));
    await tower.synced();
    const informer = tower.copy();
    await tower.settled(informer.synced());
    servers[1].intercept(() => Promise.reject(new TypeError("connection refused")));
    servers[1].closeWatches({ reset: true });
    await clock.advance(40_000);
    servers[0].create("v1/pods", pod("db", { namespace: "shop" }));
    await tower.until(() => informer.indexer.listKeys().length === 2);
    assert.ok(informer.status().lagMs! >= 40_000, String(informer.status().lagMs));
  });
});
