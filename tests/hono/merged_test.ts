import { compareResourceVersions, silentLogger } from "@listwatch/cache";
import { mergedResource, type MergedResourceOptions, type ReadApi, readApi } from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeMergedVersion } from "../../src/meta/merged_version.ts";
import { FakeClock } from "../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "./fake_informer.ts";
import { get, type Json, names, WatchReader } from "./reading.ts";

const PODS = "/api/v1/pods";
const BY_NODE = { byNode: ({ node }: TestObject) => typeof node === "string" ? [node] : [] };

const INITIAL =
  `${PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;

/** A line of a watch. */
function event(type: string, metadata: Json): string {
  return `${JSON.stringify({ type, object: { metadata } })}\n`;
}

/** A shard whose watch is what the test makes of it. */
function body(start: (controller: ReadableStreamDefaultController<Uint8Array>) => void) {
  return () =>
    new Response(new ReadableStream({ start }), { headers: { "Content-Type": "application/json" } });
}

/** A shard whose watch is a text. */
function textBody(text: string, { staysOpen = false } = {}) {
  return body((controller) => {
    controller.enqueue(new TextEncoder().encode(text));
    if (!staysOpen) controller.close();
  });
}

/** Shards behind read APIs of their own, and one read API over them all. */
class Shards {
  readonly clock = new FakeClock();
  readonly informers: FakeInformer[];
  readonly apis: ReadApi[];
  readonly api: ReadApi;
  /** What takes the place of a shard's answers. */
  readonly instead: (((request: Request) => Response | Promise<Response>) | undefined)[] = [];
  readonly requests: string[][];

  constructor(
    informers: FakeInformer[],
    options: Partial<MergedResourceOptions> & { names?: string[] } = {},
  ) {
    const { names = informers.map((_, i) => `s${i}`), resource = "v1/pods", ...rest } = options;
    const common = { clock: this.clock, logger: silentLogger };
    this.informers = informers;
    this.requests = informers.map(() => []);
    this.apis = informers.map((informer) =>
      readApi({ ...common, resources: [{ informer, resource }], allowAnonymous: true })
    );
    const merged = mergedResource({
      ...common,
      resource,
      shards: informers.map((_, i) => ({
        name: names[i],
        fetch: (request) => {
          const { pathname, search } = new URL(request.url);
          this.requests[i].push(pathname + search);
          return this.instead[i]?.(request) ?? this.apis[i].fetch(request);
        },
      })),
      ...rest,
    });
    this.api = readApi({ ...common, resources: [merged], allowAnonymous: true });
  }

  /** The parts of a merged version. */
  parts(version: string): readonly string[] | undefined {
    return decodeMergedVersion(version)?.parts;
  }
}

function two(options: Partial<MergedResourceOptions> = {}): Shards {
  return new Shards([
    FakeInformer.with(
      [object("shop/a", 3, { node: "n1" }), object("shop/c", 5, { node: "n2" })],
      10,
      BY_NODE,
    ),
    FakeInformer.with([object("bar/z", 4, { node: "n1" }), object("shop/b", 7)], 20, BY_NODE),
  ], options);
}

/** What a shard must not answer. */
const WRONG: readonly (readonly [string, () => Response])[] = [
  ["a page", () => new Response("<html></html>", { headers: { "Content-Type": "text/html" } })],
  [
    "no JSON",
    body((controller) => {
      controller.enqueue(new TextEncoder().encode("<html>"));
      controller.close();
    }),
  ],
  ["null", () => Response.json(null)],
  ["a Status", () => Response.json({ kind: "Status", code: 500, metadata: { resourceVersion: "9" } })],
  [
    "other objects",
    () =>
      Response.json({ kind: "SecretList", metadata: { resourceVersion: "9" }, items: [{ metadata: {} }] }),
  ],
  ["another object", () => Response.json({ kind: "Secret", metadata: { resourceVersion: "9" }, data: {} })],
  ["a redirect", () => new Response(null, { status: 302, headers: { Location: "http://x/" } })],
  ["304 to no condition", () => new Response(null, { status: 304 })],
  ["nothing more after the head", body(() => {})],
  ["a refusal that never ends", () => new Response(new ReadableStream(), { status: 500 })],
];

/** Bytes without end, and how many were read of them. */
class EndlessBody {
  readBytes = 0;
  isCancelled = false;
  readonly #first: string;

  constructor(first: string) {
    this.#first = first;
  }

  response(status: number): Response {
    const encoder = new TextEncoder();
    const stream = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const bytes = encoder.encode(this.readBytes === 0 ? this.#first : " ".repeat(64 * 1024));
        this.readBytes += bytes.length;
        // The test ends, whatever the shard does with it.
        if (this.readBytes > 64 << 20) controller.close();
        else controller.enqueue(bytes);
        await new Promise((resolve) => setTimeout(resolve));
      },
      cancel: () => void (this.isCancelled = true),
    });
    return new Response(stream, { status, headers: { "Content-Type": "application/json" } });
  }
}

describe("A shard of a mergedResource", () => {
  for (const [what, answer] of WRONG) {
    it(`that answers ${what} is away, for lists, gets and indices`, async () => {
      for (const path of [PODS, "/api/v1/namespaces/shop/pods/none", "/indices/pods/byNode"]) {
        const shards = two();
        shards.instead[1] = answer;
        const pending = Promise.resolve(shards.api.request(path));
        await shards.clock.advance(5_000);
        const response = await pending;
        const text = await response.text();
        assert.equal(response.status, 503, `${path}: ${text}`);
        assert.equal(JSON.parse(text).details.causes[0].field, "s1");
        assert.equal(shards.clock.pendingTimers, 0);
      }
    });
  }

  it("that answers a page to a watch is away", async () => {
    const shards = two();
    shards.instead[1] = WRONG[0][1];
    assert.equal((await shards.api.request(`${PODS}?watch=true`)).status, 503);
  });

  it("is not read without end", async () => {
    const list = '{"kind":"PodList","metadata":{"resourceVersion":"9"}';
    for (
      const [first, status, path] of [
        ["{", 200, PODS],
        [`${list},"items":[]`, 200, PODS],
        ["{", 500, PODS],
        ["{", 200, "/api/v1/namespaces/shop/pods/none"],
        ["{", 200, "/indices/pods"],
      ] as const
    ) {
      const shards = two();
      const endless = new EndlessBody(first);
      shards.instead[1] = () => endless.response(status);
      const response = await shards.api.request(path);
      await response.text().catch(() => {});
      assert.ok(endless.isCancelled, `${path}: ${first}: ${endless.readBytes} bytes were read`);
      assert.ok(endless.readBytes < 20 << 20);
    }
  });
});

describe("mergedResource lists", () => {
  it("merges the shards in the order of the keys, at a version that has that of each", async () => {
    const shards = two();
    const response = await shards.api.request(PODS);
    const list: Json = await response.json();
    assert.deepEqual(names(list), ["bar/z", "shop/a", "shop/b", "shop/c"]);
    assert.equal(list.kind, "PodList");
    assert.deepEqual(shards.parts(list.metadata.resourceVersion), ["10", "20"]);
    assert.deepEqual(list.items.map(({ metadata }: Json) => metadata.resourceVersion), ["4", "3", "7", "5"]);
    assert.equal(response.headers.get("Resource-Version"), list.metadata.resourceVersion);
    assert.equal(response.headers.get("Snapshot"), "per-shard");
    assert.equal(response.headers.get("Cache-Synced"), "true");
  });

  it("narrow to a namespace, to labels and to fields", async () => {
    const shards = two();
    assert.deepEqual(names(await get(shards.api, "/api/v1/namespaces/shop/pods")), [
      "shop/a",
      "shop/b",
      "shop/c",
    ]);
    assert.deepEqual(names(await get(shards.api, `${PODS}?fieldSelector=metadata.name=b`)), ["shop/b"]);
    assert.deepEqual(names(await get(shards.api, `${PODS}?labelSelector=app=none`)), []);
    const refusal = await get(shards.api, `${PODS}?labelSelector=app in (`, { status: 400 });
    assert.equal(refusal.kind, "Status");
    const unknown = await get(shards.api, `${PODS}?fieldSelector=spec.unknown=1`, { status: 400 });
    assert.match(unknown.message, /spec\.unknown/);
  });

  for (const limit of [1, 2, 3]) {
    it(`come in pages of ${limit}, each of the same state of each shard`, async () => {
      const shards = two();
      const first = await get(shards.api, `${PODS}?limit=${limit}`);
      assert.equal(first.items.length, limit);
      assert.equal(first.metadata.remainingItemCount, 4 - limit);
      shards.informers[0].put(object("shop/aa", 11));
      shards.informers[1].remove("shop/b", 21);
      const seen = names(first);
      let last = first;
      while (last.metadata.continue) {
        last = await get(shards.api, `${PODS}?limit=${limit}&continue=${last.metadata.continue}`);
        assert.equal(last.metadata.resourceVersion, first.metadata.resourceVersion);
        seen.push(...names(last));
        assert.ok(seen.length <= 4, `the pages do not end: ${seen}`);
      }
      assert.deepEqual(seen, ["bar/z", "shop/a", "shop/b", "shop/c"]);
      assert.equal(last.metadata.remainingItemCount, undefined);
    });
  }

  it("say in the continue token that each shard is consistent, and not the whole", async () => {
    const { metadata } = await get(two().api, `${PODS}?limit=1`);
    assert.equal(JSON.parse(atob(metadata.continue)).consistency, "per-shard");
  });

  it("refuse a continue token of another list, one of other shards, and one that is none", async () => {
    const shards = two();
    const { metadata } = await get(shards.api, `${PODS}?limit=1`);
    await get(shards.api, `/api/v1/namespaces/shop/pods?limit=1&continue=${metadata.continue}`, {
      status: 400,
    });
    await get(shards.api, `${PODS}?limit=1&continue=nonsense`, { status: 400 });
    const other = new Shards(shards.informers, { names: ["s0", "new"] });
    const status = await get(other.api, `${PODS}?limit=1&continue=${metadata.continue}`, { status: 410 });
    assert.equal(status.reason, "Expired");
  });

  it("continue with the present state of a shard whose token has expired, if the reader wants that", async () => {
    const shards = two();
    const first = await get(shards.api, `${PODS}?limit=3`);
    assert.deepEqual(names(first), ["bar/z", "shop/a", "shop/b"]);
    shards.informers[0].put(object("shop/d", 11));
    shards.instead[0] = (request) => {
      if (!new URL(request.url).searchParams.has("resourceVersion")) return shards.apis[0].fetch(request);
      return Response.json({ kind: "Status", code: 410, reason: "Expired" }, { status: 410 });
    };
    const path = `${PODS}?limit=3&continue=`;
    const status = await get(shards.api, path + first.metadata.continue, { status: 410 });
    assert.equal(status.reason, "Expired");
    const rest = await get(shards.api, path + status.metadata.continue);
    assert.deepEqual(names(rest), ["shop/c", "shop/d"]);
    assert.deepEqual(shards.parts(rest.metadata.resourceVersion), ["11", "20"]);
  });

  it("are read at a version of each shard: exactly, or not older", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    shards.informers[0].put(object("shop/new", 11));
    const exact = await get(
      shards.api,
      `${PODS}?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`,
    );
    assert.deepEqual(names(exact), ["bar/z", "shop/a", "shop/b", "shop/c"]);
    assert.equal(exact.metadata.resourceVersion, resourceVersion);
    const newer = await get(
      shards.api,
      `${PODS}?resourceVersion=${resourceVersion}&resourceVersionMatch=NotOlderThan`,
    );
    assert.equal(newer.items.length, 5);
    assert.equal(compareResourceVersions(newer.metadata.resourceVersion, resourceVersion), 1);
    assert.equal((await get(shards.api, `${PODS}?resourceVersion=0&limit=1`)).items.length, 5);
  });

  it("are answered 410 at a version of other shards, and of one cluster at a version of that cluster", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const other = new Shards([...shards.informers, FakeInformer.with([], 1)]);
    assert.equal(
      (await get(other.api, `${PODS}?resourceVersion=${resourceVersion}`, { status: 410 })).reason,
      "Expired",
    );
    assert.equal((await get(shards.api, `${PODS}?resourceVersion=10`)).items.length, 4);
  });

  it("come as Tables, as metadata, indented and as YAML", async () => {
    const shards = two();
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    const table = await get(shards.api, PODS, { accept });
    assert.equal(table.kind, "Table");
    assert.deepEqual(table.rows.map(({ cells }: Json) => cells[0]), ["z", "a", "b", "c"]);
    assert.ok(table.columnDefinitions.length > 1);
    const bare = await get(shards.api, `${PODS}?includeObject=None&limit=3`, { accept });
    assert.deepEqual(bare.rows.map(({ cells, object }: Json) => [cells[0], object]), [
      ["z", null],
      ["a", null],
      ["b", null],
    ]);
    const metadata = await get(shards.api, PODS, {
      accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    });
    assert.equal(metadata.kind, "PartialObjectMetadataList");
    assert.equal(metadata.items[0].node, undefined);
    const pretty = await (await shards.api.request(`${PODS}?pretty=true`)).text();
    const alone = readApi({
      resources: [{ informer: FakeInformer.with(everything(shards), 1), resource: "v1/pods" }],
      allowAnonymous: true,
    });
    const withoutVersion = (text: string) => text.replace(/(resourceVersion"?: ")([0-9]{21,}|1)"/, '$1"');
    assert.equal(
      withoutVersion(pretty),
      withoutVersion(await (await alone.request(`${PODS}?pretty=true`)).text()),
    );
    const headers = { Accept: "application/yaml" };
    assert.equal(
      withoutVersion(await (await shards.api.request(PODS, { headers })).text()),
      withoutVersion(await (await alone.request(PODS, { headers })).text()),
    );
  });

  it("of nothing are lists", async () => {
    const shards = new Shards([FakeInformer.with([], 1), FakeInformer.with([], 2)]);
    const list = await get(shards.api, `${PODS}?limit=5`);
    assert.deepEqual(list.items, []);
    assert.deepEqual(shards.parts(list.metadata.resourceVersion), ["1", "2"]);
    for (const query of ["?pretty=true", ""]) {
      assert.deepEqual((await get(shards.api, PODS + query)).items, []);
    }
  });

  it("have an ETag of those of the shards: 304 while none of them changes", async () => {
    const shards = two();
    const first = await shards.api.request(PODS);
    const headers = { "If-None-Match": first.headers.get("ETag")! };
    assert.match(headers["If-None-Match"], /^W\/"merged-/);
    assert.equal((await shards.api.request(PODS, { headers })).status, 304);
    assert.equal((await shards.api.request(`${PODS}?pretty=true`, { headers })).status, 200);
    shards.informers[1].put(object("shop/new", 21));
    const changed = await shards.api.request(PODS, { headers });
    assert.equal(changed.status, 200);
    assert.equal((await changed.json()).items.length, 5);
  });

  it("read a list that has its metadata behind the items, and one in pages", async () => {
    const shards = two();
    shards.instead[0] = () =>
      Response.json({
        apiVersion: "v1",
        items: [{ metadata: { namespace: "shop", name: "a" }, items: ["]", { items: [] }] }],
        kind: "PodList",
        metadata: { resourceVersion: "12" },
      });
    shards.instead[1] = (request) =>
      Response.json(
        new URL(request.url).searchParams.has("continue")
          ? { kind: "PodList", metadata: { resourceVersion: "9" }, items: [{ metadata: { name: "two" } }] }
          : {
            kind: "PodList",
            metadata: { resourceVersion: "9", continue: "more" },
            items: [{ metadata: { name: "one" } }],
          },
      );
    const list = await get(shards.api, PODS);
    assert.deepEqual(names(list), ["one", "shop/a", "two"]);
    assert.deepEqual(shards.parts(list.metadata.resourceVersion), ["12", "9"]);
    assert.equal(list.metadata.continue ?? "", "");
  });

  it("break off with a shard's list, and are refused when it cannot be read from the start", async () => {
    const shards = two();
    const json = { headers: { "Content-Type": "application/json" } };
    const start = '{"kind":"PodList","metadata":{"resourceVersion":"1"}';
    shards.instead[0] = () => new Response(`${start},"items":[{"metadata":{"name":"a"}}`, json);
    assert.equal((await get(shards.api, PODS, { status: 503 })).details.causes[0].field, "s0");
    for (const body of ["", "{}", '{"items":[]}', "<html>", start]) {
      shards.instead[0] = () => new Response(body, json);
      await get(shards.api, PODS, { status: 503 });
    }
  });
});

/** The objects of all shards. */
function everything({ informers }: Shards): TestObject[] {
  return informers.flatMap(({ indexer }) => indexer.list());
}

describe("mergedResource gets", () => {
  it("find an object in whichever shard has it, with its own version and tag", async () => {
    const shards = two();
    const response = await shards.api.request("/api/v1/namespaces/shop/pods/b");
    assert.equal((await response.json()).metadata.resourceVersion, "7");
    const headers = { "If-None-Match": response.headers.get("ETag")! };
    assert.equal((await shards.api.request("/api/v1/namespaces/shop/pods/b", { headers })).status, 304);
    const status = await get(shards.api, "/api/v1/namespaces/shop/pods/none", { status: 404 });
    assert.equal(status.message, 'pods "none" not found');
  });

  it("do not say 404 while a shard is away that may have the object", async () => {
    const shards = two();
    shards.instead[1] = () => Promise.reject(new Error("connection refused"));
    await get(shards.api, "/api/v1/namespaces/shop/pods/a");
    await get(shards.api, "/api/v1/namespaces/shop/pods/b", { status: 503 });
  });

  it("do not wait for shards that are slower than the one that has the object", async () => {
    const shards = two();
    shards.instead[1] = () => new Promise(() => {});
    assert.equal((await get(shards.api, "/api/v1/namespaces/shop/pods/a")).metadata.name, "a");
  });

  it("go to the one shard that has the namespace", async () => {
    const shards = two();
    const merged = mergedResource({
      resource: "v1/pods",
      shards: [
        { name: "shop", namespaces: ["shop"], fetch: (request) => shards.apis[0].fetch(request) },
        { name: "rest", namespaces: ["bar"], fetch: () => Promise.reject(new Error("not asked")) },
      ],
    });
    const list = await (await merged.fetch(new Request("http://x/api/v1/namespaces/shop/pods"))).json();
    assert.deepEqual(names(list), ["shop/a", "shop/c"]);
    const one = await merged.fetch(new Request("http://x/api/v1/namespaces/shop/pods/a"));
    assert.equal(one.status, 200);
  });

  it("come as YAML and indented, and have subresources", async () => {
    const shards = two();
    const yaml = await shards.api.request("/api/v1/namespaces/shop/pods/a", {
      headers: { Accept: "application/yaml" },
    });
    assert.match(await yaml.text(), /^apiVersion: v1\nkind: Pod\n/);
    assert.equal((await get(shards.api, "/api/v1/namespaces/shop/pods/a/status")).metadata.name, "a");
  });
});

describe("mergedResource with a shard that is away", () => {
  it("refuses lists and watches with 503, which names the shard", async () => {
    const shards = two({ timeoutMs: 1_000 });
    shards.instead[1] = () => Promise.reject(new Error("connection refused"));
    for (const query of ["", "?limit=1", "?watch=true"]) {
      const status = await get(shards.api, PODS + query, { status: 503 });
      assert.match(status.message, /no answer of the shard "s1"/);
      assert.deepEqual(status.details.causes, [
        { reason: "ShardUnavailable", message: "connection refused", field: "s1" },
      ]);
    }
    shards.instead[1] = () => Response.json({ kind: "Status", message: "not yet" }, { status: 503 });
    await get(shards.api, PODS, { status: 503 });
    shards.instead[1] = () => new Promise(() => {});
    const late = get(shards.api, PODS, { status: 503 });
    await new Promise((resolve) => setTimeout(resolve, 0));
    shards.clock.advance(1_000);
    assert.match((await late).details.causes[0].message, /no answer within 1000 ms/);
  });

  it("lists the others on request, with a Warning, and brings its objects when it is back", async () => {
    const shards = two();
    shards.instead[1] = () => Promise.reject(new Error("connection refused"));
    const response = await shards.api.request(`${PODS}?partial=true`);
    const list: Json = await response.json();
    assert.deepEqual(names(list), ["shop/a", "shop/c"]);
    assert.equal(response.headers.get("Warning"), '299 - "incomplete: no answer of the shard s1"');
    assert.equal(response.headers.get("ETag"), null);
    assert.deepEqual(shards.parts(list.metadata.resourceVersion), ["10", "0"]);
    const { resourceVersion } = list.metadata;
    await get(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`, { status: 503 });
    shards.instead[1] = undefined;
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    const events = await watch.events(2);
    assert.deepEqual(events.map(({ type, object }) => `${type} ${object.metadata.name}`), [
      "ADDED z",
      "ADDED b",
    ]);
    shards.informers[1].put(object("shop/late", 21));
    const [{ object: late }] = await watch.events(1);
    assert.deepEqual(shards.parts(late.metadata.resourceVersion), ["10", "21"]);
    await watch.cancel();
  });

  it("refuses a shard that does not serve the resource", async () => {
    const shards = two();
    shards.instead[1] = (request) => {
      const { pathname } = new URL(request.url);
      return Response.json({ kind: "Status", message: `no ${pathname}`, code: 404 }, { status: 404 });
    };
    const status = await get(shards.api, PODS, { status: 503 });
    assert.match(status.details.causes[0].message, /does not serve the resource/);
  });
});

describe("mergedResource watches", () => {
  it("bring the events of all shards, each with a version to continue from", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    shards.informers[1].put(object("shop/b", 21, { changed: true }));
    const [first] = await watch.events(1);
    shards.informers[0].remove("shop/a", 11);
    const [second] = await watch.events(1);
    await watch.cancel();
    assert.deepEqual([first.type, first.object.metadata.name], ["MODIFIED", "b"]);
    assert.deepEqual([second.type, second.object.metadata.name], ["DELETED", "a"]);
    const versions = [first, second].map(({ object }) => object.metadata.resourceVersion);
    assert.deepEqual(versions.map((version) => shards.parts(version)), [["10", "21"], ["11", "21"]]);
    assert.equal(compareResourceVersions(versions[1], versions[0]), 1);
    const again = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${versions[0]}`);
    assert.deepEqual(await again.lines(1), [`DELETED shop/a ${versions[1]}`]);
    await again.cancel();
  });

  it("begin with the objects of all shards, and one bookmark behind them", async () => {
    const shards = two();
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    );
    const events = await watch.events(5);
    assert.deepEqual(
      events.slice(0, 4).map(({ type, object }) => `${type} ${object.metadata.name}`).sort(),
      ["ADDED a", "ADDED b", "ADDED c", "ADDED z"],
    );
    assert.equal(events[4].type, "BOOKMARK");
    assert.equal(events[4].object.kind, "Pod");
    assert.equal(events[4].object.metadata.annotations["k8s.io/initial-events-end"], "true");
    assert.deepEqual(shards.parts(events[4].object.metadata.resourceVersion), ["10", "20"]);
    shards.informers[0].put(object("shop/new", 11));
    const [{ object: added }] = await watch.events(1);
    assert.deepEqual(shards.parts(added.metadata.resourceVersion), ["11", "20"]);
    await watch.cancel();
  });

  it("hold events of a shard back until the initial events of all have come", async () => {
    const shards = two();
    let open = () => {};
    const opened = new Promise<void>((resolve) => open = resolve);
    shards.instead[0] = async (request) => {
      const response = await shards.apis[0].fetch(request);
      const reader = response.body!.getReader();
      const body = new ReadableStream({
        async pull(controller) {
          await opened;
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
      return new Response(body, response);
    };
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
    );
    await watch.events(2);
    shards.informers[1].put(object("shop/early", 21));
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    open();
    const events = await watch.events(4);
    assert.deepEqual(events.map(({ type, object }) => `${type} ${object.metadata.name ?? ""}`), [
      "ADDED a",
      "ADDED c",
      "BOOKMARK ",
      "ADDED early",
    ]);
    await watch.cancel();
  });

  it("hold events back that come in one chunk with the end of the initial ones", async () => {
    const shards = two();
    const end = { "k8s.io/initial-events-end": "true" };
    let second: ReadableStreamDefaultController<Uint8Array> | undefined;
    shards.instead[0] = body((controller) => {
      const lines = event("ADDED", { name: "a", resourceVersion: "1" }) +
        event("BOOKMARK", { resourceVersion: "5", annotations: end }) +
        event("MODIFIED", { name: "a", resourceVersion: "6" });
      controller.enqueue(new TextEncoder().encode(lines));
    });
    shards.instead[1] = body((controller) => {
      second = controller;
    });
    const watch = await WatchReader.open(shards.api, INITIAL);
    await watch.events(1);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    second!.enqueue(new TextEncoder().encode(event("BOOKMARK", { resourceVersion: "9", annotations: end })));
    const events = await watch.events(2);
    assert.deepEqual(
      events.map(({ type, object }) => [type, shards.parts(object.metadata.resourceVersion)]),
      [["BOOKMARK", ["5", "9"]], ["MODIFIED", ["6", "9"]]],
    );
    await watch.cancel();
  });

  it("begin now where they have no version and no initial events", async () => {
    const shards = two();
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`,
    );
    shards.informers[1].put(object("shop/new", 21));
    const [{ type, object: added }] = await watch.events(1);
    assert.deepEqual([type, shards.parts(added.metadata.resourceVersion)], ["ADDED", ["10", "21"]]);
    await watch.cancel();
  });

  it("stay at the version of a shard where an event has an older one", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    shards.instead[0] = body((controller) => {
      const lines = event("MODIFIED", { name: "a", resourceVersion: "30" }) +
        event("DELETED", { name: "c", resourceVersion: "5" });
      controller.enqueue(new TextEncoder().encode(lines));
    });
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    const events = await watch.events(2);
    assert.deepEqual(
      events.map(({ object }) => shards.parts(object.metadata.resourceVersion)),
      [["30", "20"], ["30", "20"]],
    );
    await watch.cancel();
  });

  it("bring one bookmark for those of all shards", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`,
    );
    shards.informers[0].bookmark(15);
    shards.informers[1].bookmark(25);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    shards.clock.advance(30_000);
    const [{ type, object: { metadata } }] = await watch.events(1);
    assert.equal(type, "BOOKMARK");
    assert.deepEqual(shards.parts(metadata.resourceVersion), ["15", "25"]);
    await watch.cancel();
  });

  it("are answered 410 from other shards, from a version of one object, and by a shard that has forgotten", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const expired = async (api: ReadApi, version: string) => {
      const watch = await WatchReader.open(api, `${PODS}?watch=true&resourceVersion=${version}`);
      assert.deepEqual(await watch.toEnd(), ["ERROR 410 Expired"]);
    };
    await expired(new Shards(shards.informers, { names: ["s0", "new"] }).api, resourceVersion);
    await expired(shards.api, "10");
    shards.informers[1].relist([object("shop/b", 30)], 40);
    await expired(shards.api, resourceVersion);
  });

  it("are opened again at a shard that ends its watch, where they were", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    shards.informers[0].put(object("shop/one", 11));
    await watch.events(1);
    shards.clock.advance(2_000);
    shards.apis[0].endWatches();
    shards.informers[0].put(object("shop/two", 12));
    const [{ object: two_ }] = await watch.events(1);
    assert.equal(two_.metadata.name, "two");
    assert.deepEqual(shards.parts(two_.metadata.resourceVersion), ["12", "20"]);
    assert.ok(shards.requests[0].some((request) => request.includes("resourceVersion=11")));
    await watch.cancel();
  });

  it("end when a shard stays away, so that the reader is refused", async () => {
    const shards = two({ awayMs: 3_000 });
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    shards.instead[0] = () => Promise.reject(new Error("connection refused"));
    shards.apis[0].endWatches();
    const ended = watch.toEnd();
    for (let i = 0; i < 40; i++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      shards.clock.advance(500);
    }
    assert.deepEqual(await ended, []);
    assert.deepEqual(shards.apis.map((api) => api.openWatches()), [[0], [0]]);
  });

  for (
    const [what, answer] of [
      ["ends each watch at once", body((controller) => controller.close())],
      ["answers a page as JSON", textBody("<html>\n</html>\n")],
      ["answers a list", textBody(`${JSON.stringify({ kind: "PodList", metadata: {}, items: [] })}\n`)],
      ["answers a page as JSON, and stays open", textBody("<html>", { staysOpen: true })],
    ] as const
  ) {
    it(`end when a shard ${what}, for as long as one that is away`, async () => {
      const shards = two({ awayMs: 3_000 });
      const { metadata: { resourceVersion } } = await get(shards.api, PODS);
      const watch = await WatchReader.open(
        shards.api,
        `${PODS}?watch=true&resourceVersion=${resourceVersion}`,
      );
      shards.instead[1] = answer;
      shards.apis[1].endWatches();
      const ended = watch.toEnd();
      await shards.clock.advance(20_000);
      assert.deepEqual(shards.apis.map((api) => api.openWatches()), [[0], [0]]);
      assert.deepEqual(await ended, []);
      assert.equal(shards.clock.pendingTimers, 0);
    });
  }

  it("stay open while a shard's short watches bring events", async () => {
    const shards = two({ awayMs: 3_000 });
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    let version = 20;
    shards.instead[1] = () => textBody(event("MODIFIED", { name: "z", resourceVersion: `${++version}` }))();
    shards.apis[1].endWatches();
    const lines = watch.lines(6);
    await shards.clock.advance(60_000);
    assert.equal((await lines).length, 6);
    assert.equal(shards.apis[0].openWatches()[0], 1);
    await watch.cancel();
  });

  it("end with the ERROR of a shard while events of another one wait", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const error = {
      type: "ERROR",
      object: { kind: "Status", apiVersion: "v1", code: 410, reason: "Expired" },
    };
    shards.instead[0] = textBody(`${JSON.stringify(error)}\n`, { staysOpen: true });
    shards.instead[1] = textBody(event("MODIFIED", { name: "z", resourceVersion: "21" }), {
      staysOpen: true,
    });
    const response = await shards.api.request(`${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    const lines = (await response.text()).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual([lines.at(-1).type, lines.at(-1).object.code], ["ERROR", 410]);
  });

  it("end their watches of all shards with their reader", async () => {
    const shards = two();
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true`);
    await watch.events(4);
    assert.deepEqual(shards.apis.map((api) => api.openWatches()), [[1], [1]]);
    await watch.cancel();
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    assert.deepEqual(shards.apis.map((api) => api.openWatches()), [[0], [0]]);
  });

  it("end at their timeoutSeconds, with a last bookmark", async () => {
    const shards = two();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=10&resourceVersion=${resourceVersion}`,
    );
    shards.informers[0].bookmark(15);
    const ended = watch.toEnd();
    for (let i = 0; i < 30; i++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      shards.clock.advance(500);
    }
    const lines = await ended;
    assert.match(lines.at(-1)!, /^BOOKMARK /);
    assert.deepEqual(shards.parts(lines.at(-1)!.split(" ")[1]), ["15", "20"]);
  });

  it("come as rows of Tables, with columns in the first event only", async () => {
    const shards = two();
    const watch = await WatchReader.open(
      shards.api,
      `${PODS}?watch=true`,
      "application/json;as=Table;v=v1;g=meta.k8s.io",
    );
    const events = await watch.events(4);
    assert.deepEqual(events.map(({ object }) => object.columnDefinitions === null), [
      false,
      true,
      true,
      true,
    ]);
    shards.informers[0].put(object("shop/new", 11));
    const [{ object: table }] = await watch.events(1);
    assert.deepEqual(shards.parts(table.metadata.resourceVersion), ["11", "20"]);
    assert.equal(table.rows[0].object.metadata.resourceVersion, table.metadata.resourceVersion);
    await watch.cancel();
  });
});

describe("mergedResource indices", () => {
  it("add the counts of all shards, and list what is under a value", async () => {
    const shards = two();
    const values = await get(shards.api, "/indices/pods/byNode");
    assert.deepEqual(values.items, [{ value: "n1", count: 2 }, { value: "n2", count: 1 }]);
    const first = await get(shards.api, "/indices/pods/byNode?limit=1");
    assert.deepEqual(first.items, [{ value: "n1", count: 2 }]);
    const rest = await get(shards.api, `/indices/pods/byNode?limit=1&continue=${first.metadata.continue}`);
    assert.deepEqual(rest.items, [{ value: "n2", count: 1 }]);
    assert.equal(rest.metadata.continue, undefined);
    assert.deepEqual(names(await get(shards.api, "/indices/pods/byNode/n1")), ["bar/z", "shop/a"]);
    assert.deepEqual(names(await get(shards.api, "/indices/pods/byNode/n1?namespace=shop")), ["shop/a"]);
    assert.deepEqual((await get(shards.api, "/indices/pods")).items, [{ name: "byNode" }]);
    await get(shards.api, "/indices/pods/byNothing", { status: 404 });
  });
});

describe("mergedResource of clusters", () => {
  function clusters(): Shards {
    return new Shards([
      FakeInformer.with([object("shop/web", 3), object("shop/a.b", 4)], 10),
      FakeInformer.with([object("shop/web", 900), object("bar/db", 800)], 1_000),
    ], { by: "cluster", names: ["eu-1", "us-1"] });
  }

  it("shows each object under its cluster, so that the same name in two clusters is two objects", async () => {
    const { api } = clusters();
    const list = await get(api, PODS);
    assert.deepEqual(names(list), ["bar/us-1.db", "shop/eu-1.a.b", "shop/eu-1.web", "shop/us-1.web"]);
    assert.deepEqual(
      list.items.map(({ metadata }: Json) => metadata.annotations["listwatch.dev/cluster"]),
      ["us-1", "eu-1", "eu-1", "us-1"],
    );
    const one = await get(api, "/api/v1/namespaces/shop/pods/us-1.web");
    assert.equal(one.metadata.name, "us-1.web");
    assert.equal(one.metadata.resourceVersion, "900");
    assert.equal((await get(api, "/api/v1/namespaces/shop/pods/eu-1.a.b")).metadata.name, "eu-1.a.b");
    for (const name of ["web", "ap-1.web", "us-1.a.b", ".web"]) {
      const status = await get(api, `/api/v1/namespaces/shop/pods/${name}`, { status: 404 });
      assert.match(status.message, new RegExp(`"${name.replace(".", "\\.")}" not found`));
    }
    const table = await get(api, PODS, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
    assert.deepEqual(table.rows.map(({ cells }: Json) => cells[0]), [
      "us-1.db",
      "eu-1.a.b",
      "eu-1.web",
      "us-1.web",
    ]);
  });

  it("selects by the names that it shows", async () => {
    const { api } = clusters();
    const selected = async (selector: string) =>
      names(await get(api, `${PODS}?fieldSelector=${encodeURIComponent(selector)}`));
    assert.deepEqual(await selected("metadata.name=us-1.web"), ["shop/us-1.web"]);
    assert.deepEqual(await selected("metadata.name=web"), []);
    assert.deepEqual(await selected("metadata.name!=us-1.web"), [
      "bar/us-1.db",
      "shop/eu-1.a.b",
      "shop/eu-1.web",
    ]);
    assert.deepEqual(await selected("metadata.name!=web,metadata.namespace=bar"), ["bar/us-1.db"]);
  });

  it("watches with the names that it shows, and refuses a version of one cluster", async () => {
    const shards = clusters();
    const { metadata: { resourceVersion } } = await get(shards.api, PODS);
    const watch = await WatchReader.open(shards.api, `${PODS}?watch=true&resourceVersion=${resourceVersion}`);
    shards.informers[0].put(object("shop/web", 11, { changed: true }));
    const [{ type, object: web }] = await watch.events(1);
    assert.deepEqual([type, web.metadata.name], ["MODIFIED", "eu-1.web"]);
    assert.equal(web.metadata.annotations["listwatch.dev/cluster"], "eu-1");
    assert.deepEqual(shards.parts(web.metadata.resourceVersion), ["11", "1000"]);
    await watch.cancel();
    await get(shards.api, `${PODS}?resourceVersion=10`, { status: 410 });
    await get(shards.api, "/api/v1/namespaces/shop/pods/us-1.web?resourceVersion=10", { status: 410 });
  });
});

describe("mergedResource", () => {
  it("refuses options that cannot work", () => {
    const fetch = () => new Response();
    const merge = (options: Partial<MergedResourceOptions>) => () =>
      mergedResource({ resource: "v1/pods", shards: [{ name: "a", fetch }], ...options });
    assert.throws(merge({ shards: [] }), /0 shards/);
    assert.throws(
      merge({ shards: [{ name: "a", fetch }, { name: "a", fetch }] }),
      /two shards are named "a"/,
    );
    assert.throws(merge({ by: "cluster", shards: [{ name: "eu.1", fetch }] }), /"eu\.1"/);
    assert.throws(merge({ resource: "v1/unknown" }), /v1\/unknown/);
    assert.throws(merge({ timeoutMs: -1 }), RangeError);
  });

  it("passes on what a reader does not accept, and nothing else that it has sent", async () => {
    const sent: string[] = [];
    const { fetch } = mergedResource({
      resource: "v1/pods",
      logger: silentLogger,
      shards: [{
        name: "a",
        fetch: ({ headers }) => {
          sent.push(
            ["Prefer", "Cache-Control", "Authorization", "Cookie"].map((name) => headers.get(name)).join(" "),
          );
          throw new Error("away");
        },
      }],
    });
    const headers = {
      Prefer: "handling=strict, wait=5",
      "Cache-Control": "no-transform, stale-if-error=0",
      Authorization: "Bearer secret",
      Cookie: "a=b",
    };
    for (const path of [PODS, `${PODS}?watch=true`, "/api/v1/namespaces/shop/pods/a"]) {
      await fetch(new Request(`http://x${path}`, { headers }));
    }
    assert.deepEqual(sent, Array(3).fill("handling=strict stale-if-error=0  "));
  });

  it("answers nothing but reads of its resource", async () => {
    const { fetch } = mergedResource({
      resource: "v1/pods",
      shards: [{ name: "a", fetch: () => new Response() }],
    });
    const status = async (path: string, init?: RequestInit) =>
      (await fetch(new Request(`http://x${path}`, init))).status;
    assert.equal(await status("/api/v1/services"), 404);
    assert.equal(await status("/api/v1/%"), 400);
    assert.equal(await status(PODS, { method: "DELETE" }), 405);
    assert.equal(await status(PODS, { headers: { Accept: "text/html" } }), 406);
  });
});
