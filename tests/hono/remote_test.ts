import { silentLogger } from "@listwatch/cache";
import {
  bearerTokens,
  type ReadApi,
  readApi,
  type ReadApiOptions,
  type RemoteFetch,
} from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "../../src/util/clock.ts";
import { FakeInformer, object } from "./fake_informer.ts";
import { type Json, names, WatchReader } from "./reading.ts";

const PODS = "/api/v1/pods";
const JANE = { Authorization: "Bearer jane-has-a-long-token" };
const BOB = { Authorization: "Bearer bob-has-a-long-token-too" };
const USERS = bearerTokens([
  { token: "jane-has-a-long-token", user: { name: "jane" } },
  { token: "bob-has-a-long-token-too", user: { name: "bob" } },
]);

/** A reader in front of a remote, which is another read API. */
class Remote {
  readonly clock = new FakeClock();
  readonly informer = FakeInformer.with(
    [object("shop/web-1", 5, { labels: { app: "web" } }), object("shop/web-2", 6), object("store/db-1", 7)],
    10,
    { byNamespace: ({ metadata }) => [metadata!.namespace!] },
  );
  readonly requests: Request[] = [];
  readonly holder: ReadApi;
  readonly reader: ReadApi;
  answer: RemoteFetch;

  constructor(options: Partial<ReadApiOptions> & { maxStaleMs?: number; resource?: string } = {}) {
    const { maxStaleMs, resource = "v1/pods", ...rest } = options;
    const common = { clock: this.clock, logger: silentLogger };
    this.holder = readApi({
      ...common,
      resources: [{ informer: this.informer, resource }],
      allowAnonymous: true,
      allowSecrets: true,
    });
    this.answer = (request) => this.holder.fetch(request);
    this.reader = readApi({
      ...common,
      resources: [{
        resource,
        fetch: (request) => {
          this.requests.push(request);
          return this.answer(request);
        },
        ...(maxStaleMs !== undefined && { maxStaleMs }),
      }],
      ...(rest.authorize === undefined && { allowAnonymous: true }),
      ...rest,
    });
  }

  get last(): Request {
    return this.requests.at(-1)!;
  }
}

describe("readApi with a remote resource", () => {
  it("answers as the remote does: gets, lists, pages, selectors, Tables, metadata, YAML, indices", async () => {
    const remote = new Remote();
    const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (
      const [path, accept] of [
        ["/api/v1/namespaces/shop/pods/web-1"],
        ["/api/v1/namespaces/shop/pods/web-1/status"],
        ["/api/v1/namespaces/shop/pods/none"],
        [PODS],
        [`${PODS}?pretty=true`],
        ["/api/v1/namespaces/shop/pods"],
        [`${PODS}?labelSelector=app%3Dweb`],
        [`${PODS}?fieldSelector=metadata.name%3Ddb-1`],
        [`${PODS}?fieldSelector=spec.unknown%3D1`],
        [`${PODS}?limit=2`],
        [`${PODS}?limit=x`],
        [`${PODS}?resourceVersion=0`],
        [PODS, table],
        [`${PODS}?includeObject=None`, table],
        [PODS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"],
        [PODS, "application/yaml"],
        [PODS, "application/vnd.kubernetes.protobuf,application/json"],
        [PODS, "text/html"],
        ["/indices/pods"],
        ["/indices/pods/byNamespace"],
        ["/indices/pods/byNamespace?namespace=shop&limit=1"],
        ["/indices/pods/byNamespace/shop"],
        ["/indices/pods/none"],
        ["/api/v1"],
        ["/api/v1/nodes"],
      ]
    ) {
      const init = accept === undefined ? {} : { headers: { Accept: accept } };
      const expected = await remote.holder.request(path, init);
      const actual = await remote.reader.request(path, init);
      const text = await actual.text();
      assert.equal(actual.status, expected.status, `${path}: ${text}`);
      assert.equal(text, await expected.text(), path);
      const headers = actual.status === 200
        ? ["ETag", "Resource-Version", "Cache-Synced", "Cache-Epoch", "Vary"]
        : [];
      for (const header of ["Content-Type", ...headers]) {
        assert.equal(actual.headers.get(header), expected.headers.get(header), `${path}: ${header}`);
      }
    }
  });

  it("follows pages with the remote's tokens, for every user that may read the list", async () => {
    const remote = new Remote({ authenticate: USERS });
    const first: Json = await (await remote.reader.request(`${PODS}?limit=2`, { headers: JANE })).json();
    assert.deepEqual(names(first), ["shop/web-1", "shop/web-2"]);
    const next = `${PODS}?limit=2&continue=${encodeURIComponent(first.metadata.continue)}`;
    assert.deepEqual(names(await (await remote.reader.request(next, { headers: JANE })).json()), [
      "store/db-1",
    ]);
    const elsewhere = next.replace("/api/v1/", "/api/v1/namespaces/shop/");
    assert.equal((await remote.reader.request(elsewhere, { headers: JANE })).status, 400);
  });

  it("decides itself, before the remote receives anything", async () => {
    const remote = new Remote({
      authenticate: USERS,
      authorize: ({ user, namespace, name }) =>
        user?.name === "jane" && (namespace === "shop" || name === "db-1"),
    });
    const status = async (path: string, headers?: Record<string, string>) =>
      (await remote.reader.request(path, headers === undefined ? {} : { headers })).status;
    assert.equal(await status(PODS), 401);
    assert.equal(await status(PODS, BOB), 403);
    assert.equal(await status(PODS, JANE), 403);
    assert.equal(await status("/indices/pods/byNamespace", JANE), 403);
    assert.equal(await status(`${PODS}?watch=true`, JANE), 403);
    assert.equal(await status(PODS, { ...JANE, "Impersonate-User": "root" }), 403);
    assert.deepEqual(remote.requests, []);
    assert.equal(await status("/api/v1/namespaces/shop/pods", JANE), 200);
    assert.equal(await status("/indices/pods/byNamespace/shop?namespace=shop", JANE), 200);
    assert.equal(new URL(remote.last.url).search, "?namespace=shop");
  });

  it("sends nothing of the user on, and of repeated parameters what it has decided on", async () => {
    const remote = new Remote({ authenticate: USERS });
    const headers = {
      ...JANE,
      Cookie: "session=1",
      "User-Agent": "kubectl",
      "X-Forwarded-For": "10.0.0.1",
      "If-None-Match": '"tag"',
      "Accept-Encoding": "gzip",
    };
    await remote.reader.request(`${PODS}?limit=1&limit=2&a;b=c&labelSelector=app%3Dweb`, { headers });
    assert.deepEqual(Object.fromEntries(remote.last.headers), {
      accept: "application/json",
      "accept-encoding": "gzip",
      "if-none-match": '"tag"',
      "user-agent": "listwatch-reader",
    });
    assert.equal(new URL(remote.last.url).search, "?limit=1&limit=2&labelSelector=app%3Dweb");
  });

  it("shows how fresh the remote is, and the epoch that relays behind it need, and no other header", async () => {
    const remote = new Remote();
    const shown = {
      "Age": "7",
      "Cache-Epoch": "a.1",
      "Cache-Synced": "false",
      "Resource-Version": "12",
      "Warning": '299 - "not confirmed"',
    };
    const headers = { "Content-Type": "application/json", ...shown, "Set-Cookie": "a=b", "Server": "x" };
    remote.answer = () => new Response("{}", { headers });
    for (const path of [PODS, `${PODS}?watch=true`]) {
      const response = await remote.reader.request(path);
      await response.text();
      for (const [name, value] of Object.entries(shown)) {
        assert.equal(response.headers.get(name), value, path);
      }
      assert.deepEqual([response.headers.get("Set-Cookie"), response.headers.get("Server")], [null, null]);
    }
  });

  it("serves Secrets only with allowSecrets", () => {
    const resources = [{ resource: "v1/secrets", fetch: () => new Response() }];
    assert.throws(() => readApi({ resources, allowAnonymous: true }), /allowSecrets/);
  });

  it("refuses a resource that has neither informer nor fetch, and a timeout of 0", () => {
    const serve = (resource: Json) => () => readApi({ resources: [resource], allowAnonymous: true });
    assert.throws(serve({ resource: "v1/pods" }), /give readApi an informer for it, or the `fetch`/);
    assert.throws(serve({ resource: "v1/pods", fetch: "https://x" }), TypeError);
    assert.throws(serve({ resource: "v1/pods", fetch: () => new Response(), timeoutMs: 0 }), RangeError);
  });

  it("answers mounted below a path", async () => {
    const remote = new Remote();
    const { Hono } = await import("hono");
    const app = new Hono().route("/clusters/one", remote.reader);
    assert.equal((await app.request("/clusters/one/api/v1/namespaces/shop/pods/web-1")).status, 200);
    assert.equal(new URL(remote.last.url).pathname, "/api/v1/namespaces/shop/pods/web-1");
  });
});

describe("ReadApiRemote that fails", () => {
  const html = { "Content-Type": "text/html" };
  const json = { "Content-Type": "application/json" };
  const cases: [string, RemoteFetch, number][] = [
    ["is away", () => Promise.reject(new Error("connection refused by 10.1.2.3")), 503],
    ["throws", () => {
      throw new Error("10.1.2.3");
    }, 503],
    ["answers a page", () => new Response("<html>", { headers: html }), 502],
    ["answers a page of a proxy", () => new Response("<html>", { status: 502, headers: html }), 503],
    ["refuses this cache", () => Response.json({ kind: "Status", code: 403 }, { status: 403 }), 502],
    ["does not know this cache", () => Response.json({ kind: "Status" }, { status: 401 }), 502],
    ["redirects", () => new Response(null, { status: 302, headers: { Location: "http://x/" } }), 502],
    ["does not serve the resource", () => Response.json({ kind: "Status" }, { status: 404 }), 502],
    ["answers 304 to no condition", () => new Response(null, { status: 304 }), 502],
    ["has an own refusal", () => Response.json({ kind: "Status", code: 503 }, { status: 503 }), 503],
    [
      "has too many readers",
      () => new Response("{}", { status: 429, headers: { ...json, "Retry-After": "3" } }),
      429,
    ],
  ];
  for (const [what, answer, status] of cases) {
    it(`that ${what} is answered ${status}, for lists and watches`, async () => {
      const remote = new Remote();
      remote.answer = answer;
      for (const path of [PODS, `${PODS}?watch=true`]) {
        const response = await remote.reader.request(path);
        const text = await response.text();
        assert.equal(response.status, status, text);
        assert.match(response.headers.get("Content-Type") ?? "", /^application\/json/);
        assert.doesNotMatch(text, /10\.1\.2\.3|html/);
      }
    });
  }

  it("by being slow is answered 504 within its time limit, and its late answer is dropped", async () => {
    const remote = new Remote();
    let isDropped = false;
    let resolve: (response: Response) => void = () => {};
    let aborted = false;
    remote.answer = (request) => {
      request.signal.addEventListener("abort", () => (aborted = true));
      return new Promise((done) => (resolve = done));
    };
    const response = remote.reader.request(PODS);
    await remote.clock.advance(10_000);
    assert.equal((await response).status, 504);
    assert.ok(aborted);
    resolve(new Response(new ReadableStream({ cancel: () => void (isDropped = true) })));
    await remote.clock.advance(0);
    assert.ok(isDropped);
    assert.equal(remote.clock.pendingTimers, 0);
  });

  it("by sending nothing after the head of a compressed answer is answered 504, and its body is dropped", async () => {
    const remote = new Remote();
    let isDropped = false;
    remote.answer = () =>
      new Response(new ReadableStream({ cancel: () => void (isDropped = true) }), {
        headers: { ...json, "Content-Encoding": "gzip" },
      });
    const response = remote.reader.request(PODS, { headers: { "Accept-Encoding": "gzip" } });
    await remote.clock.advance(10_000);
    assert.equal(isDropped, true);
    assert.equal((await response).status, 504);
    const leaving = new AbortController();
    isDropped = false;
    const left = Promise.resolve(remote.reader.request(PODS, { signal: leaving.signal }));
    left.catch(() => {});
    await remote.clock.advance(0);
    leaving.abort();
    await remote.clock.advance(0);
    assert.equal(isDropped, true);
    assert.equal(remote.clock.pendingTimers, 0);
  });

  it("knows a compressed answer whose first bytes come one by one", async () => {
    const remote = new Remote();
    const gzip = new Blob(['{"kind":"PodList"}']).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(gzip).arrayBuffer());
    remote.answer = () =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
            controller.close();
          },
        }),
        { headers: { ...json, "Content-Encoding": "gzip" } },
      );
    const response = await remote.reader.request(PODS, { headers: { "Accept-Encoding": "gzip" } });
    assert.equal(response.headers.get("Content-Encoding"), "gzip");
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes);
  });

  it("in the middle of a list breaks the answer off", async () => {
    const remote = new Remote();
    let fail: (error: Error) => void = () => {};
    remote.answer = () =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            controller.enqueue(new TextEncoder().encode('{"kind":'));
            fail = (error) => controller.error(error);
          },
        }),
        { headers: json },
      );
    const response = await remote.reader.request(PODS);
    fail(new Error("cut"));
    await assert.rejects(response.text());
    const silent = await remote.reader.request(PODS);
    const text = silent.text();
    text.catch(() => {});
    await remote.clock.advance(10_000);
    await assert.rejects(text, /has sent nothing for 10000 ms/);
    assert.equal(remote.clock.pendingTimers, 0);
  });
});

describe("ReadApiRemote watches", () => {
  it("has the remote's events, and ends there when its reader leaves", async () => {
    const remote = new Remote();
    const watch = await WatchReader.open(remote.reader, `${PODS}?watch=true&resourceVersion=10`);
    assert.equal(watch.response.headers.get("Cache-Control"), "no-cache, private, no-transform");
    const direct = await remote.holder.request(`${PODS}?watch=true&resourceVersion=10`);
    for (const header of ["Cache-Epoch", "Cache-Synced", "Resource-Version"]) {
      assert.equal(watch.response.headers.get(header), direct.headers.get(header), header);
    }
    await direct.body!.cancel();
    remote.informer.put(object("shop/web-3", 11));
    remote.informer.remove("shop/web-1", 12);
    assert.deepEqual(await watch.lines(2), ["ADDED shop/web-3 11", "DELETED shop/web-1 12"]);
    assert.deepEqual(remote.reader.openWatches(), [1]);
    assert.deepEqual(remote.holder.openWatches(), [1]);
    await watch.cancel();
    await remote.clock.advance(0);
    assert.deepEqual([remote.reader.openWatches(), remote.holder.openWatches()], [[0], [0]]);
    assert.equal(remote.clock.pendingTimers, 0);
  });

  it("ends at a line's end, without an error, when the remote's connection breaks", async () => {
    const remote = new Remote();
    let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
    remote.answer = () =>
      new Response(new ReadableStream({ start: (own) => void (feed = own) }), {
        headers: { "Content-Type": "application/json" },
      });
    const response = await remote.reader.request(`${PODS}?watch=true`);
    const encoder = new TextEncoder();
    feed!.enqueue(encoder.encode('{"type":"ADDED","object":{}}\n{"type":"MODI'));
    feed!.enqueue(encoder.encode('FIED","object":{}}\n{"type":"DEL'));
    await remote.clock.advance(0);
    feed!.error(new Error("cut"));
    assert.equal(await response.text(), '{"type":"ADDED","object":{}}\n{"type":"MODIFIED","object":{}}\n');
    assert.deepEqual(remote.reader.openWatches(), [0]);
  });

  it("ends when a remote that owes bookmarks is silent", async () => {
    const remote = new Remote();
    remote.answer = () =>
      new Response(new ReadableStream(), { headers: { "Content-Type": "application/json" } });
    const response = await remote.reader.request(`${PODS}?watch=true&allowWatchBookmarks=true`);
    const text = response.text();
    await remote.clock.advance(150_000);
    assert.equal(await text, "");
  });

  it("ends at the reader's lifetime, which the remote knows and sends a last bookmark for", async () => {
    const remote = new Remote({ watchLifetimeMs: 60_000, random: () => 0.5 });
    const watch = await WatchReader.open(
      remote.reader,
      `${PODS}?watch=true&resourceVersion=10&allowWatchBookmarks=true`,
    );
    assert.equal(new URL(remote.last.url).searchParams.get("timeoutSeconds"), "54");
    remote.informer.bookmark(11);
    const end = watch.toEnd();
    await remote.clock.advance(54_000);
    const lines = await end;
    assert.equal(lines.at(-1), "BOOKMARK 11");
    const shorter = await remote.reader.request(`${PODS}?watch=true&resourceVersion=10&timeoutSeconds=5`);
    assert.equal(new URL(remote.last.url).searchParams.get("timeoutSeconds"), "5");
    await shorter.body!.cancel();
  });

  it("ends at the reader's lifetime although the remote does not end it", async () => {
    const remote = new Remote({ watchLifetimeMs: 60_000, random: () => 0 });
    remote.answer = () =>
      new Response(new ReadableStream(), { headers: { "Content-Type": "application/json" } });
    const response = await remote.reader.request(`${PODS}?watch=true`);
    const text = response.text();
    await remote.clock.advance(62_000);
    assert.equal(await text, "");
    assert.equal(remote.clock.pendingTimers, 0);
  });

  it("ends with its permission, and by endWatches and the signal", async () => {
    let isAllowed = true;
    const stopping = new AbortController();
    const remote = new Remote({
      authenticate: USERS,
      authorize: () => isAllowed,
      watchRecheckMs: 1_000,
      signal: stopping.signal,
    });
    const open = async () =>
      new WatchReader(await remote.reader.request(`${PODS}?watch=true`, { headers: JANE }));
    const first = (await open()).toEnd();
    isAllowed = false;
    await remote.clock.advance(1_000);
    await first;
    isAllowed = true;
    const second = (await open()).toEnd();
    assert.equal(remote.reader.endWatches((user) => user?.name === "bob"), 0);
    assert.equal(remote.reader.endWatches((user) => user?.name === "jane"), 1);
    await second;
    const third = (await open()).toEnd();
    stopping.abort();
    await third;
    assert.deepEqual(remote.reader.openWatches(), [0]);
  });

  it("comes as server-sent events, resumed by Last-Event-ID", async () => {
    const remote = new Remote();
    const headers = { Accept: "text/event-stream", "Last-Event-ID": "10" };
    const response = await remote.reader.request(`${PODS}?watch=true`, { headers });
    assert.equal(response.headers.get("Content-Type"), "text/event-stream; charset=utf-8");
    const { searchParams } = new URL(remote.last.url);
    assert.equal(searchParams.get("resourceVersion"), "10");
    assert.equal(searchParams.get("allowWatchBookmarks"), "true");
    remote.informer.put(object("shop/web-3", 11));
    const reader = response.body!.getReader();
    let text = "";
    while (!text.includes("data:")) text += new TextDecoder().decode((await reader.read()).value);
    assert.match(text, /^retry: 1000\n\nid: 11\ndata: {"type":"ADDED"/);
    await reader.cancel();
  });

  it("is disconnected when its reader reads nothing, and holds a bounded number of bytes", async () => {
    const remote = new Remote({ watchBufferBytes: 1_000 });
    let sent = 0;
    remote.answer = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => {
            sent += 500;
            controller.enqueue(new TextEncoder().encode(`{"type":"ADDED","object":"${"x".repeat(470)}"}\n`));
          },
        }, { highWaterMark: 0 }),
        { headers: { "Content-Type": "application/json" } },
      );
    const response = await remote.reader.request(`${PODS}?watch=true`);
    await remote.clock.advance(29_000);
    assert.ok(sent <= 2_000, String(sent));
    await remote.clock.advance(1_000);
    await assert.rejects(response.text(), /has read nothing of the watch for 30000 ms/);
    assert.deepEqual(remote.reader.openWatches(), [0]);
    assert.equal(remote.clock.pendingTimers, 0);
  });
});

describe("ReadApiRemote with If-None-Match", () => {
  const tagOf = async (remote: Remote, path: string) => {
    const response = await remote.reader.request(path);
    await response.text();
    return response.headers.get("ETag")!;
  };
  const statusOf = async (remote: Remote, path: string, tag: string) => {
    const response = await remote.reader.request(path, { headers: { "If-None-Match": tag } });
    await response.text();
    return response.status;
  };

  it("comes from the remote by default", async () => {
    const remote = new Remote();
    const tag = await tagOf(remote, PODS);
    assert.equal(await statusOf(remote, PODS, tag), 304);
    assert.equal(remote.requests.length, 2);
    remote.informer.put(object("shop/web-3", 11));
    assert.equal(await statusOf(remote, PODS, tag), 200);
  });

  it("needs no request at resourceVersion=0, for a second after the remote has said so", async () => {
    const remote = new Remote();
    const path = `${PODS}?resourceVersion=0`;
    const tag = await tagOf(remote, path);
    assert.equal(await statusOf(remote, path, tag), 304);
    assert.equal(await statusOf(remote, path, 'W/"another"'), 200);
    assert.equal(remote.requests.length, 2);
    remote.informer.put(object("shop/web-3", 11));
    assert.equal(await statusOf(remote, path, tag), 304);
    await remote.clock.advance(1_001);
    assert.equal(await statusOf(remote, path, tag), 200);
    assert.equal(await statusOf(remote, path, tag), 200);
  });

  it("needs no request within maxStaleMs, says its age, and keeps to the resourceVersion of the read", async () => {
    const remote = new Remote({ maxStaleMs: 5_000 });
    remote.informer.lagMs = 2_000;
    const tag = await tagOf(remote, PODS);
    await remote.clock.advance(3_000);
    const response = await remote.reader.request(PODS, { headers: { "If-None-Match": tag } });
    assert.equal(response.status, 304);
    assert.equal(response.headers.get("Age"), "5");
    assert.equal(response.headers.get("Resource-Version"), "10");
    assert.equal(remote.requests.length, 1);
    const older = `${PODS}?resourceVersion=9`;
    const newer = `${PODS}?resourceVersion=11`;
    const olderTag = await tagOf(remote, older);
    assert.equal(await statusOf(remote, older, olderTag), 304);
    assert.equal(remote.requests.length, 2);
    remote.informer.put(object("shop/web-3", 11));
    const newerTag = await tagOf(remote, newer);
    assert.equal(await statusOf(remote, newer, newerTag), 304);
    assert.equal(await statusOf(remote, newer, tag), 200);
    await remote.clock.advance(5_001);
    assert.equal(await statusOf(remote, PODS, tag), 200);
  });

  it("is never made of a remote that has not synced, or warns that it is stale", async () => {
    for (const [name, value] of [["Cache-Synced", "false"], ["Warning", '299 - "stale"']]) {
      const remote = new Remote({ maxStaleMs: 60_000 });
      remote.answer = () =>
        Response.json({}, { headers: { ETag: 'W/"a"', "Resource-Version": "9", [name]: value } });
      const tag = await tagOf(remote, PODS);
      await statusOf(remote, PODS, tag);
      assert.equal(remote.requests.length, 2);
    }
  });
});

describe("/readyz with a remote resource", () => {
  it("requests the remote's, keeps the answer for a second, and names it for users that may know", async () => {
    const remote = new Remote();
    assert.equal((await remote.reader.request("/readyz")).status, 200);
    remote.informer.synced = false;
    assert.equal((await remote.reader.request("/readyz")).status, 200);
    assert.equal(remote.requests.length, 1);
    await remote.clock.advance(1_000);
    const response = await remote.reader.request("/readyz");
    assert.equal(response.status, 503);
    assert.match(await response.text(), /\[-\]remote\/pods failed: its remote answered 503/);
    await remote.clock.advance(1_000);
    remote.answer = () => new Promise(() => {});
    const hanging = remote.reader.request("/readyz");
    await remote.clock.advance(3_000);
    assert.equal((await hanging).status, 503);
  });
});

describe("ReadApiRemote and the limits of readers", () => {
  it("count its watches, per client", async () => {
    const remote = new Remote({ authenticate: USERS, maxWatchesPerClient: 1 });
    const watch = await remote.reader.request(`${PODS}?watch=true`, { headers: JANE });
    assert.equal((await remote.reader.request(`${PODS}?watch=true`, { headers: JANE })).status, 429);
    const other = await remote.reader.request(`${PODS}?watch=true`, { headers: BOB });
    assert.equal(other.status, 200);
    await other.body!.cancel();
    await watch.body!.cancel();
    assert.equal((await remote.reader.request(PODS, { headers: JANE })).status, 200);
  });

  it("does not compress twice", async () => {
    const remote = new Remote();
    for (let i = 0; i < 500; i++) {
      remote.informer.put(object(`shop/p-${i}`, 100 + i, { note: "x".repeat(400) }));
    }
    const headers = { "Accept-Encoding": "gzip" };
    const response = await remote.reader.request(PODS, { headers });
    assert.equal(response.headers.get("Content-Encoding"), "gzip");
    const text = await new Response(response.body!.pipeThrough(new DecompressionStream("gzip"))).text();
    assert.equal(JSON.parse(text).items.length, 503);
    // As a fetch over the network gives it: decompressed, with the header.
    remote.answer = async (request) => {
      const { headers, body } = await remote.holder.fetch(request);
      return new Response(body!.pipeThrough(new DecompressionStream("gzip")), { headers });
    };
    const plain = await remote.reader.request(PODS, { headers });
    assert.equal(plain.headers.get("Content-Encoding"), null);
    assert.equal((await plain.json()).items.length, 503);
  });
});
