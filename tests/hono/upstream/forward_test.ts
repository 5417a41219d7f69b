import { silentLogger } from "@listwatch/cache";
import { bearerTokens, type ReadApi, type ReadApiForward, type ReadApiOptions } from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LogRecorder } from "../../log_recorder.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { type Json, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";
const SHARD = "shardRange(object.metadata.namespace, '0x4500000000000000', '0x10000000000000000')";
const JANE = { Authorization: "Bearer jane-has-a-long-token" };
const BOB = { Authorization: "Bearer bob-has-a-long-token-too" };
const USERS = bearerTokens([
  { token: "jane-has-a-long-token", user: { name: "jane" } },
  { token: "bob-has-a-long-token-too", user: { name: "bob" } },
]);

/** A reader in front of a holder, which is another read API. */
class Forwarding {
  readonly clock = new FakeClock();
  readonly informer = FakeInformer.with(
    [object("shop/web-1", 5, { labels: { app: "web" } }), object("shop/web-2", 6), object("store/db-1", 7)],
    10,
    { byNamespace: ({ metadata }) => [metadata!.namespace!] },
  );
  readonly requests: Request[] = [];
  readonly holder: ReadApi;
  readonly reader: ReadApi;
  answer: ReadApiForward["fetch"];

  constructor(options: Partial<ReadApiOptions> & { resource?: string } = {}) {
    const { resource = "v1/pods", ...rest } = options;
    const common = { clock: this.clock, logger: silentLogger, random: () => 0 };
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
        takesScreens: true,
        fetch: (request) => {
          this.requests.push(request);
          return this.answer(request);
        },
      }],
      ...(rest.authorize === undefined && { allowAnonymous: true }),
      ...rest,
    });
  }

  get last(): Request {
    return this.requests.at(-1)!;
  }
}

describe("readApi with a resource that another server answers", () => {
  it("answers as that does: gets, lists, pages, selectors, Tables, metadata, YAML, indices", async () => {
    const forwarding = new Forwarding();
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
        [`${PODS}?shardSelector=${encodeURIComponent(SHARD)}`],
        [`${PODS}?shardSelector=x`],
        [`${PODS}?limit=2`],
        [`${PODS}?limit=x`],
        [`${PODS}?resourceVersion=0`],
        [`${PODS}?fields=metadata.labels&filter=metadata.name~web`],
        [`${PODS}?sortBy=metadata.name:desc&limit=2`],
        [`${PODS}?groupBy=metadata.namespace`],
        [`${PODS}?fields=a&fields=b`],
        [`${PODS}?sortby=a`],
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
      const expected = await forwarding.holder.request(path, init);
      const actual = await forwarding.reader.request(path, init);
      const text = await actual.text();
      assert.equal(actual.status, expected.status, `${path}: ${text}`);
      assert.equal(text, await expected.text(), path);
      const headers = actual.status === 200 ? ["ETag", "Resource-Version", "Cache-Synced", "Vary"] : [];
      for (const header of ["Content-Type", ...headers]) {
        assert.equal(actual.headers.get(header), expected.headers.get(header), `${path}: ${header}`);
      }
    }
  });

  it("answers itself what is wrong with the parameters of screens, and sends none that may be ignored", async () => {
    const forwarding = new Forwarding();
    for (const query of ["fields=a..b", "fields=a&fields=b", "sortby=a", "filter=a%3D("]) {
      assert.equal((await forwarding.reader.request(`${PODS}?${query}`)).status, 400);
    }
    const plain = readApi({
      resources: [{ resource: "v1/pods", fetch: () => Promise.reject(new Error("it was called")) }],
      allowAnonymous: true,
    });
    for (const query of ["fields=a", "filter=a", "sortBy=a"]) {
      const answer = await plain.request(`${PODS}?${query}`);
      assert.equal(answer.status, 400);
      assert.match(
        (await answer.json() as Json).message,
        /pods is not cached here, and its server may ignore/,
      );
    }
    const scales = new Forwarding({ resource: "apps/v1/deployments" });
    const scale = "/apis/apps/v1/namespaces/shop/deployments/web/scale?fields=spec";
    assert.equal((await scales.reader.request(scale)).status, 400);
    assert.deepEqual([...forwarding.requests, ...scales.requests], []);
  });

  it("has of a shard what that has of it", async () => {
    const forwarding = new Forwarding();
    const response = await forwarding.reader.request(`${PODS}?shardSelector=${encodeURIComponent(SHARD)}`);
    const { metadata, items } = await response.json();
    assert.deepEqual(metadata.shardInfo, { selector: SHARD });
    assert.ok(items.length > 0 && items.length < 3);
  });

  it("answers itself what is wrong with a query", async () => {
    const forwarding = new Forwarding();
    for (const query of ["limit=x", "labelSelector=!!", "timeoutSeconds=x&watch=1"]) {
      assert.equal((await forwarding.reader.request(`${PODS}?${query}`)).status, 400, query);
    }
    assert.equal(forwarding.requests.length, 0);
  });

  it("decides itself, before the other server receives anything", async () => {
    const forwarding = new Forwarding({
      authenticate: USERS,
      authorize: ({ user, namespace, name }) =>
        user?.name === "jane" && (namespace === "shop" || name === "db-1"),
    });
    const status = async (path: string, headers?: Record<string, string>) =>
      (await forwarding.reader.request(path, headers === undefined ? {} : { headers })).status;
    assert.equal(await status(PODS), 401);
    assert.equal(await status(PODS, BOB), 403);
    assert.equal(await status(PODS, JANE), 403);
    assert.equal(await status("/indices/pods/byNamespace", JANE), 403);
    assert.equal(await status(`${PODS}?watch=true`, JANE), 403);
    assert.equal(await status(PODS, { ...JANE, "Impersonate-User": "root" }), 403);
    assert.deepEqual(forwarding.requests, []);
    assert.equal(await status("/api/v1/namespaces/shop/pods", JANE), 200);
    assert.equal(await status("/indices/pods/byNamespace/shop?namespace=shop", JANE), 200);
    assert.equal(new URL(forwarding.last.url).search, "?namespace=shop");
  });

  it("reads an index by the namespace that was permitted, and as a list, however its query is written", async () => {
    const asked: unknown[] = [];
    const forwarding = new Forwarding({
      authenticate: USERS,
      authorize: ({ verb, namespace }) => asked.push([verb, namespace]) > 0,
    });
    const read = async (query: string) => {
      const path = `/indices/pods/byNamespace?${query}&watch=true`;
      assert.equal((await forwarding.reader.request(path, { headers: JANE })).status, 200);
      return ["list", new URL(forwarding.last.url).searchParams.get("namespace")];
    };
    for (const query of ["%6Eamespace=shop&namespace=store", "namespace=shop%E0"]) {
      assert.deepEqual(await read(query), asked.pop(), query);
    }
  });

  it("sends the user's name on, no credential, and of repeated parameters the value that it has decided on", async () => {
    const forwarding = new Forwarding({ authenticate: USERS });
    const headers = {
      ...JANE,
      Cookie: "session=1",
      "User-Agent": "kubectl",
      "Prefer": "handling=strict",
      "Cache-Control": "no-cache",
      "X-Forwarded-For": "10.0.0.1",
      "X-Remote-User": "root",
      "If-None-Match": '"tag"',
      "Accept-Encoding": "gzip",
    };
    await forwarding.reader.request(`${PODS}?limit=1&limit=2&a;b=c&labelSelector=app%3Dweb`, { headers });
    assert.deepEqual(Object.fromEntries(forwarding.last.headers), {
      "accept-encoding": "identity",
      "cache-control": "no-cache",
      "if-none-match": '"tag"',
      "prefer": "handling=strict",
      "user-agent": "kubectl",
      "x-remote-user": "jane",
    });
    assert.equal(new URL(forwarding.last.url).search, "?limit=1&labelSelector=app%3Dweb");
  });

  it("sends a name on that no header can have, and follows no redirect", async () => {
    const authenticate = () => ({ name: "名 100%" });
    const forwarding = new Forwarding({ authenticate });
    assert.equal((await forwarding.reader.request(PODS)).status, 200);
    assert.equal(decodeURIComponent(forwarding.last.headers.get("X-Remote-User")!), "名 100%");
    assert.equal(forwarding.last.redirect, "manual");
  });

  it("serves Secrets only with allowSecrets", () => {
    const resources = [{ resource: "v1/secrets", fetch: () => new Response() }];
    assert.throws(() => readApi({ resources, allowAnonymous: true }), /allowSecrets/);
  });

  it("refuses a resource that has neither informer nor fetch", () => {
    const serve = (resource: Json) => () => readApi({ resources: [resource], allowAnonymous: true });
    assert.throws(serve({ resource: "v1/pods" }), /give readApi an informer for it, or the `fetch`/);
    assert.throws(serve({ resource: "v1/pods", fetch: "https://x" }), TypeError);
  });

  it("answers mounted below a path", async () => {
    const forwarding = new Forwarding();
    const { Hono } = await import("hono");
    const app = new Hono().route("/clusters/one", forwarding.reader);
    assert.equal((await app.request("/clusters/one/api/v1/namespaces/shop/pods/web-1")).status, 200);
    assert.equal(new URL(forwarding.last.url).pathname, "/api/v1/namespaces/shop/pods/web-1");
  });

  it("is 503 while that cannot be reached, and 504 where it does not begin to answer", async () => {
    const logger = new LogRecorder();
    const forwarding = new Forwarding({ logger });
    forwarding.answer = () => Promise.reject(new TypeError("connection refused"));
    for (const path of [PODS, `${PODS}?watch=true`]) {
      const response = await forwarding.reader.request(path);
      assert.equal(response.status, 503);
      const { message, reason, details } = await response.json();
      assert.equal(message, "the server that holds pods cannot be reached");
      assert.deepEqual([reason, details], ["ServiceUnavailable", { kind: "pods", retryAfterSeconds: 1 }]);
    }
    const warnings = logger.of("warn").length;
    assert.match(logger.of("warn")[0], /cannot read pods from the server that holds it: connection refused/);
    const leaving = new AbortController();
    const left = forwarding.reader.request(PODS, { signal: leaving.signal });
    leaving.abort();
    await Promise.resolve(left).catch(() => {});
    assert.equal(logger.of("warn").length, warnings, "its reader has left");
    let isCancelled = false;
    let answer = (_: Response) => {};
    forwarding.answer = () => new Promise((resolve) => (answer = resolve));
    const slow = forwarding.reader.request(PODS);
    await forwarding.clock.advance(10_000);
    const late = await slow;
    assert.equal(late.status, 504);
    const { message, reason, details } = await late.json();
    assert.equal(message, "Timeout: the server that holds pods did not answer in time");
    assert.deepEqual([reason, details], ["Timeout", { kind: "pods", retryAfterSeconds: 1 }]);
    answer(new Response(new ReadableStream({ cancel: () => void (isCancelled = true) })));
    await forwarding.clock.advance(0);
    assert.ok(isCancelled);
  });
});

describe("readApi, a read that another server answers,", () => {
  it("has the namespace of an index in its query, and of other reads in its path only", async () => {
    const forwarding = new Forwarding();
    for (
      const [path, sent] of [
        ["/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods"],
        ["/indices/pods/byNamespace", "/indices/pods/byNamespace"],
        ["/indices/pods/byNamespace?namespace=shop", "/indices/pods/byNamespace?namespace=shop"],
      ]
    ) {
      assert.equal((await forwarding.reader.request(path)).status, 200);
      assert.ok(forwarding.last.url.endsWith(sent), forwarding.last.url);
    }
  });

  it("ends there when its reader leaves before the answer, and has no query where it had none", async () => {
    const forwarding = new Forwarding();
    forwarding.answer = () => new Promise(() => {});
    const leaving = new AbortController();
    const answer = Promise.resolve(forwarding.reader.request(PODS, { signal: leaving.signal }));
    await forwarding.clock.advance(0);
    const { signal, url } = forwarding.last;
    assert.ok(url.endsWith(PODS), url);
    assert.equal(signal.aborted, false);
    leaving.abort();
    await answer.catch(() => {});
    assert.equal(signal.aborted, true);
    assert.equal(forwarding.clock.pendingTimers, 0);
  });
});

describe("readApi watches that another server answers", () => {
  it("have its events, and end there when their reader leaves", async () => {
    const forwarding = new Forwarding();
    const watch = await WatchReader.open(forwarding.reader, `${PODS}?watch=true&resourceVersion=10`);
    assert.equal(watch.response.headers.get("Resource-Version"), "10");
    assert.deepEqual(forwarding.holder.openWatches(), [1]);
    forwarding.informer.put(object("shop/web-3", 11));
    await forwarding.clock.advance(50);
    assert.deepEqual(await watch.lines(1), ["ADDED shop/web-3 11"]);
    await watch.cancel();
    assert.deepEqual(forwarding.holder.openWatches(), [0]);
  });

  it("last as long as this adapter's watches, and end with a bookmark", async () => {
    const seconds = async (options: Partial<ReadApiOptions>, query = "") => {
      const forwarding = new Forwarding(options);
      const path = `${PODS}?watch=true&allowWatchBookmarks=true&resourceVersion=10${query}`;
      const watch = await WatchReader.open(forwarding.reader, path);
      const given = new URL(forwarding.last.url).searchParams.get("timeoutSeconds");
      const end = watch.toEnd();
      for (let left = Number(given); left > 0; left -= 20) await forwarding.clock.advance(20_000);
      assert.equal((await end).at(-1), "BOOKMARK 10");
      return Number(given);
    };
    assert.equal(await seconds({}), 3_600);
    assert.equal(await seconds({}, "&timeoutSeconds=1"), 1);
    assert.equal(await seconds({}, "&timeoutSeconds=20"), 20);
    for (const more of [61, 500]) {
      assert.equal(await seconds({ watchLifetimeMs: 60_000 }, `&timeoutSeconds=${more}`), 60);
    }
    assert.equal(await seconds({ watchLifetimeMs: 500 }), 1);
  });

  it("last as long as their server allows where this adapter does not end them", async () => {
    const forwarding = new Forwarding({ watchLifetimeMs: Infinity });
    const watch = await WatchReader.open(forwarding.reader, `${PODS}?watch=true`);
    assert.equal(new URL(forwarding.last.url).searchParams.get("timeoutSeconds"), null);
    await watch.cancel();
  });

  it("take the places of watches, not those of other requests", async () => {
    const forwarding = new Forwarding({ maxWatches: 1 });
    const watch = await WatchReader.open(forwarding.reader, `${PODS}?watch=true`);
    assert.equal((await forwarding.reader.request(`${PODS}?watch=true`)).status, 429);
    assert.equal((await forwarding.reader.request(PODS)).status, 200);
    await watch.cancel();
  });

  it("have two seconds more where their server does not end them", async () => {
    const forwarding = new Forwarding({ watchLifetimeMs: 60_000 });
    forwarding.answer = () => new Response(new ReadableStream());
    const watch = await WatchReader.open(forwarding.reader, `${PODS}?watch=true`);
    let hasEnded = false;
    const end = watch.toEnd().then(() => hasEnded = true);
    await forwarding.clock.advance(61_999);
    assert.equal(hasEnded, false);
    await forwarding.clock.advance(1);
    await end;
  });

  it("are refused as their server refuses them, and have its headers beside their own", async () => {
    const forwarding = new Forwarding();
    const headers = { "Cache-Control": "max-age=60", "Resource-Version": "7" };
    forwarding.answer = () => Response.json({ kind: "Status", code: 410 }, { status: 410 });
    const refusal = await forwarding.reader.request(`${PODS}?watch=true`);
    assert.deepEqual([refusal.status, (await refusal.json()).code], [410, 410]);
    forwarding.answer = () => new Response(new ReadableStream(), { headers });
    const watch = await forwarding.reader.request(`${PODS}?watch=true`);
    assert.equal(watch.headers.get("Resource-Version"), "7");
    assert.doesNotMatch(watch.headers.get("Cache-Control") ?? "", /max-age/);
    await watch.body?.cancel();
  });

  it("end with their permission, when it is renewed or their credential ends, and by endWatches", async () => {
    let isPermitted = true;
    const options = { authorize: () => isPermitted, watchRecheckMs: 60_000 };
    const ended = async (options: Partial<ReadApiOptions>, end: (forwarding: Forwarding) => unknown) => {
      const forwarding = new Forwarding(options);
      const watch = await WatchReader.open(forwarding.reader, `${PODS}?watch=true&resourceVersion=10`);
      const reading = watch.toEnd();
      await forwarding.clock.advance(12_299);
      assert.deepEqual(forwarding.holder.openWatches(), [1]);
      await end(forwarding);
      await reading;
      await forwarding.clock.advance(0);
      assert.deepEqual(forwarding.holder.openWatches(), [0]);
      assert.equal(forwarding.reader.endWatches(), 0);
    };
    await ended(options, ({ clock }) => {
      isPermitted = false;
      return clock.advance(60_000);
    });
    const authenticate = () => ({ name: "jane", expiresAtMs: new FakeClock().now() + 12_300 });
    await ended({ authenticate, allowAnonymous: true }, ({ clock }) => clock.advance(1));
    await ended({}, ({ reader }) => assert.equal(reader.endWatches(), 1));
  });

  it("end for the users whose watches are ended, and for no others", async () => {
    const forwarding = new Forwarding({ authenticate: USERS, authorize: () => true });
    const open = (headers: Record<string, string>) =>
      forwarding.reader.request(`${PODS}?watch=true`, { headers });
    const watches = [await open(JANE), await open(BOB)];
    assert.equal(forwarding.reader.endWatches((user) => user?.name === "jane"), 1);
    await watches[0].text();
    assert.equal(forwarding.reader.endWatches(), 1);
    await watches[1].text();
  });

  it("come as server-sent events, resumed by Last-Event-ID", async () => {
    const forwarding = new Forwarding();
    forwarding.informer.put(object("shop/web-3", 11));
    const response = await forwarding.reader.request(`${PODS}?watch=true`, {
      headers: { Accept: "text/event-stream", "Last-Event-ID": "10" },
    });
    assert.match(response.headers.get("Content-Type")!, /^text\/event-stream/);
    const reader = response.body!.getReader();
    let text = "";
    while (!text.includes("web-3")) text += new TextDecoder().decode((await reader.read()).value);
    assert.match(text, /id: 11/);
    await reader.cancel();
  });
});
