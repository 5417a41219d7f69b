import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bearerTokens, type PassThroughOptions, type ReadApiOptions } from "@listwatch/cache/hono";
import { silentLogger } from "@listwatch/cache";
import type { Context } from "hono";
import { type Reader, Readers } from "../../../src/hono/request/readers.ts";
import { PassThrough } from "../../../src/hono/upstream/pass_through.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { openWatches } from "../middlewares.ts";
import { readApi } from "../read_api.ts";
import { CountingSignal } from "../../counting_signal.ts";
import { LogRecorder } from "../../log_recorder.ts";

const SERVER = "https://api.example/prefix";
const READER = { Authorization: "Bearer reader-of-the-cluster" };
const CACHE_TOKEN = "cache-token-of-its-own";

/** An API server that records what reaches it. */
class Upstream {
  readonly requests: { readonly url: string; readonly init: RequestInit; readonly body: string }[] = [];
  answer: (url: string, init: RequestInit) => Response | Promise<Response> = () =>
    Response.json({ kind: "Pong" });

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const body = init.body ? await new Response(init.body).text() : "";
    this.requests.push({ url, init, body });
    return await this.answer(url, init);
  };

  get last(): { readonly url: string; readonly init: RequestInit; readonly body: string } {
    return this.requests.at(-1)!;
  }

  header(name: string): string | null {
    return new Headers(this.last.init.headers).get(name);
  }
}

function apiOf(passThrough: Partial<PassThroughOptions> = {}, options: Partial<ReadApiOptions> = {}) {
  const upstream = new Upstream();
  const clock = new FakeClock();
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    ...(options.authorize === undefined && { allowAnonymous: true }),
    clock,
    logger: silentLogger,
    passThrough: { server: SERVER, fetch: upstream.fetch, ...passThrough },
    ...options,
  });
  return { api, upstream, clock };
}

const LOG = "/api/v1/namespaces/shop/pods/web-1/log";

describe("readApi with passThrough", () => {
  it("answers what it serves itself, and sends the rest on with the reader's token and query", async () => {
    const { api, upstream } = apiOf();
    assert.equal((await api.request("/api/v1/pods", { headers: READER })).status, 200);
    assert.equal((await api.request("/api/v1/namespaces/shop/pods/none", { headers: READER })).status, 404);
    assert.deepEqual(upstream.requests, []);
    for (
      const path of [
        `${LOG}?container=a&follow=true`,
        "/api/v1/events?fieldSelector=involvedObject.name%3Dweb-1",
        "/apis/apps/v1/deployments",
        "/apis",
        "/api",
        "/openapi/v3",
      ]
    ) {
      const response = await api.request(path, { headers: { ...READER, Accept: "application/json" } });
      assert.deepEqual(await response.json(), { kind: "Pong" }, path);
      assert.equal(upstream.last.url, SERVER + path);
      assert.equal(upstream.header("Authorization"), READER.Authorization);
      assert.equal(upstream.header("Accept"), "application/json");
      assert.equal(upstream.last.init.redirect, "manual");
    }
  });

  it("sends no path on that is longer than any of Kubernetes", async () => {
    const { api, upstream } = apiOf();
    const path = (length: number) => `/api/v1/namespaces/shop/configmaps/${"x".repeat(length - 35)}`;
    assert.equal((await api.request(path(2_048), { headers: READER })).status, 200);
    assert.equal(upstream.requests.length, 1);
    assert.equal((await api.request(path(2_049), { headers: READER })).status, 404);
    assert.equal(upstream.requests.length, 1);
  });

  it("sends access reviews on, and other writes only if it may", async () => {
    const post = (body: string) => ({
      method: "POST",
      headers: { ...READER, "Content-Type": "application/json" },
      body,
    });
    const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const reads = apiOf();
    assert.equal((await reads.api.request(review, post('{"spec":{}}'))).status, 200);
    assert.equal(reads.upstream.last.body, '{"spec":{}}');
    assert.equal(reads.upstream.header("Content-Type"), "application/json");
    for (
      const other of [
        "authentication.k8s.io/v1/selfsubjectreviews",
        "authentication.k8s.io/v1/tokenreviews",
        "authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews",
        "authorization.k8s.io/v1/selfsubjectrulesreviews",
        "authorization.k8s.io/v1/subjectaccessreviews",
      ]
    ) {
      assert.equal((await reads.api.request(`/apis/${other}`, post("{}"))).status, 200, other);
    }
    for (
      const [method, path] of [
        ["POST", "/api/v1/namespaces/shop/pods"],
        ["POST", "/api/v1/namespaces/shop/serviceaccounts/a/token"],
        ["POST", `${review}/x`],
        ["DELETE", review],
        ["PUT", review],
        ["DELETE", "/api/v1/namespaces/shop/pods/web-1"],
        ["PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale"],
        ["GET", "/api/v1/namespaces/shop/services/web/proxy/admin"],
        ["GET", "/api/v1/nodes/node-1/proxy/run"],
      ]
    ) {
      const { api, upstream } = reads;
      const before = upstream.requests.length;
      const refused = await api.request(path, { method, headers: READER });
      assert.equal(refused.status, 405, path);
      assert.match((await refused.json()).message, /passes reads through to the API server, and no writes/);
      assert.equal(upstream.requests.length, before);
      const writes = apiOf({ writes: true });
      assert.equal((await writes.api.request(path, { method, headers: READER })).status, 200);
      assert.equal(writes.upstream.last.init.method, method);
    }
  });

  it("sends no request on without a bearer token; discovery and what is served need none", async () => {
    const { api, upstream } = apiOf({ writes: true });
    for (
      const headers of [{}, { Authorization: "Basic YTpi" }, { Authorization: "Bearer  a" }, {
        Cookie: "token=x",
      }]
    ) {
      for (
        const [method, path] of [["GET", LOG], ["GET", "/api/v1/secrets"], [
          "POST",
          "/api/v1/namespaces/shop/pods",
        ]]
      ) {
        const response = await api.request(path, { method, headers: headers as Record<string, string> });
        assert.equal(response.status, 401, path);
        assert.equal((await response.json()).reason, "Unauthorized");
      }
      assert.equal((await api.request("/apis", { headers: headers as Record<string, string> })).status, 200);
    }
    assert.deepEqual(upstream.requests, []);
    // A token ends at a space: no more than it is sent on.
    await api.request(LOG, { headers: { Authorization: "Bearer a b" } });
    assert.equal(new Headers(upstream.last.init.headers).get("Authorization"), "Bearer a");
  });

  it("does not send a token of the cache's own to anyone", async () => {
    const authenticate = bearerTokens([{ token: CACHE_TOKEN, user: { name: "jane" } }]);
    const headers = { Authorization: `Bearer ${CACHE_TOKEN}` };
    const own = apiOf({ writes: true }, { authenticate });
    for (const path of [LOG, "/api/v1/secrets"]) {
      const response = await own.api.request(path, { headers });
      assert.equal(response.status, 403);
      assert.match(
        (await response.json()).message,
        /readers of this cache present tokens of the cache, not of the cluster/,
      );
    }
    assert.equal((await own.api.request("/apis", { headers })).status, 200);
    assert.equal((await own.api.request(LOG, { headers: READER })).status, 401);
    assert.deepEqual(own.upstream.requests, []);
    const cluster = apiOf({ clusterTokens: true }, { authenticate });
    assert.equal((await cluster.api.request(LOG, { headers })).status, 200);
    assert.equal(
      (await cluster.api.request(LOG, { headers: READER })).status,
      401,
      "the hook does not know it",
    );
    assert.equal(cluster.upstream.requests.length, 1);
  });

  it("sends only the headers on that API servers read, and answers with those that clients read", async () => {
    const { api, upstream } = apiOf();
    upstream.answer = () =>
      new Response("{}", {
        headers: {
          "Content-Type": "application/json",
          "Set-Cookie": "session=1",
          "Audit-Id": "a",
          "Warning": '299 - "old"',
          "Retry-After": "3",
          "Server": "secret/1",
          "Access-Control-Allow-Origin": "*",
        },
      });
    const response = await api.request(LOG, {
      headers: {
        ...READER,
        "Cookie": "session=2",
        "Connection": "X-Hop",
        "X-Hop": "1",
        "X-Remote-User": "system:admin",
        "X-Remote-Group": "system:masters",
        "X-Forwarded-For": "10.0.0.1",
        "Forwarded": "for=10.0.0.1",
        "Host": "evil.example",
        "Transfer-Encoding": "chunked",
        "Content-Length": "5",
        "Impersonate-User": "jane",
        "Impersonate-Extra-Scopes": "view",
        "Impersonate-Extra-": "refused there",
        "Impersonate-Everything": "yes",
        "X-Impersonate-User": "admin",
        "If-Match": '"7"',
        "User-Agent": "kubectl/v1",
      },
    });
    assert.deepEqual(Object.keys(upstream.last.init.headers!).sort(), [
      "accept-encoding",
      "authorization",
      "if-match",
      "impersonate-extra-",
      "impersonate-extra-scopes",
      "impersonate-user",
      "user-agent",
    ]);
    assert.equal(new URL(upstream.last.url).host, "api.example");
    assert.equal(response.headers.get("Audit-Id"), "a");
    assert.equal(response.headers.get("Warning"), '299 - "old"');
    assert.equal(response.headers.get("Retry-After"), "3");
    for (const name of ["Set-Cookie", "Server", "Access-Control-Allow-Origin"]) {
      assert.equal(response.headers.get(name), null, name);
    }
    assert.equal(response.headers.get("X-Accel-Buffering"), "no");
    assert.match(response.headers.get("ETag") ?? "", /^W?\/?".+"$/);
    upstream.answer = () => new Response(null, { status: 304, headers: { ETag: '"7"' } });
    const same = await api.request(LOG, { headers: { ...READER, "If-None-Match": '"7"' } });
    assert.deepEqual([same.status, same.headers.get("ETag")], [304, '"7"']);
    assert.equal(upstream.header("If-None-Match"), '"7"');
    const groups = await api.request(LOG, { headers: { ...READER, "Impersonate-Group": "a, b" } });
    assert.equal(groups.status, 400);
  });

  it("lets the API server answer what is served, where a reader impersonates a user", async () => {
    const jane = { ...READER, "Impersonate-User": "jane" };
    const { api, upstream } = apiOf();
    for (const path of ["/api/v1/pods", "/api/v1/namespaces/shop/pods/web-1", "/api/v1/watch/pods"]) {
      const response = await api.request(path, { headers: jane });
      assert.deepEqual(await response.json(), { kind: "Pong" }, path);
      assert.equal(upstream.header("Impersonate-User"), "jane");
    }
    const own = apiOf({}, {
      authenticate: bearerTokens([{ token: CACHE_TOKEN, user: { name: "proxy" } }]),
      authorize: () => true,
    });
    const headers = { ...jane, Authorization: `Bearer ${CACHE_TOKEN}` };
    assert.equal((await own.api.request("/api/v1/pods", { headers })).status, 403);
    assert.deepEqual(own.upstream.requests, []);
  });

  it("sends on what is below a proxy as it came, as clients of Python and Java encode its slashes", async () => {
    const { api, upstream } = apiOf({ writes: true });
    const encoded = "/api/v1/namespaces/shop/services/web%3A80/proxy/a%2Fb//c%5Cd?e=f%2Fg";
    assert.equal((await api.request(encoded, { headers: READER })).status, 200);
    assert.equal(upstream.last.url, SERVER + encoded);
    const others = [
      "/api/v1/namespaces/shop%2Fpods/services/web/proxy/a",
      "/api/v1/namespaces/proxy/pods/web-1%2Fexec",
      "/api/v1/namespaces/shop/services/web%2Fproxy/a",
      "/api/v1/namespaces/shop/services/web//proxy/a",
    ];
    for (const path of others) {
      assert.equal((await api.request(path, { headers: READER })).status, 400, path);
    }
    assert.equal(upstream.requests.length, 1);
    const reads = apiOf();
    assert.equal((await reads.api.request(encoded, { headers: READER })).status, 405);
    assert.deepEqual(reads.upstream.requests, []);
  });

  it("sends no path on that another server could read as another path", async () => {
    const { api, upstream } = apiOf({ writes: true });
    for (
      const path of [
        "/api/v1/namespaces/shop/pods/..%2f..%2f..%2fsecrets/log",
        "/api/v1/namespaces/shop/pods/web-1%2Fexec/log",
        "/api/v1/namespaces/shop/widgets/%5C..%5Csecrets",
        "/api/v1/namespaces/shop/widgets/a%00b",
        "/api/v1/namespaces/shop/widgets/a%0d%0aHost:%20x",
        "/api/v1//secrets/x/log",
        "/api/v1/namespaces/shop/widgets/%zz",
        `/api/v1/widgets/${"a".repeat(3_000)}`,
      ]
    ) {
      const response = await api.request(path, { headers: READER });
      assert.ok(response.status >= 400, path);
      assert.deepEqual(upstream.requests, [], path);
    }
    // The URL's own steps are taken before anything is decided.
    for (
      const path of ["/api/v1/pods/../secrets", "/api/v1/pods/%2e%2e/secrets", "/api/v1/pods/.%2E/secrets"]
    ) {
      await api.request(path, { headers: READER });
      assert.equal(upstream.last.url, `${SERVER}/api/v1/secrets`, path);
    }
    await api.request("/apis/widgets.example/v1/widgets?url=https://evil.example/../..", { headers: READER });
    assert.equal(new URL(upstream.last.url).origin, "https://api.example");
    for (
      const path of ["/metrics", "/logs/x", "/debug/pprof", "/.well-known/openid-configuration", "/healthz"]
    ) {
      const before = upstream.requests.length;
      await api.request(path, { headers: READER });
      assert.equal(upstream.requests.length, before, path);
    }
  });

  it("follows no redirect, and says what it cannot do", async () => {
    const logger = new LogRecorder();
    const { api, upstream } = apiOf({ writes: true }, { logger });
    upstream.answer = () =>
      new Response(null, { status: 302, headers: { Location: "https://evil.example/" } });
    const redirect = await api.request(LOG, { headers: READER });
    assert.equal(redirect.status, 502);
    assert.equal(redirect.headers.get("Location"), null);
    upstream.answer = () => Promise.reject(new TypeError("connect ECONNREFUSED 10.0.0.1:6443"));
    const down = await api.request(LOG, { headers: READER });
    assert.equal(down.status, 503);
    assert.ok(!(await down.text()).includes("10.0.0.1"), "the address is for the log only");
    assert.match(logger.of("warn").join(), /10\.0\.0\.1:6443/);
    for (let i = 0; i < 100; i++) await api.request(LOG, { headers: READER });
    assert.ok(logger.of("warn").length <= 10, "not one for each request");
    const before = upstream.requests.length;
    for (const [length, status] of [[3 * 1024 * 1024 + 1, 413], [3 * 1024 * 1024, 503]] as const) {
      assert.equal(upstream.requests.length, before);
      const long = await api.request("/api/v1/namespaces/shop/configmaps", {
        method: "POST",
        headers: READER,
        body: "x".repeat(length),
      });
      assert.equal(long.status, status);
    }
    logger.lines.length = 0;
    const left = await api.request("/api/v1/namespaces/shop/configmaps", {
      method: "POST",
      headers: READER,
      body: new ReadableStream({ pull: (controller) => controller.error(new Error("aborted")) }),
    });
    assert.deepEqual([left.status, logger.lines], [400, []], "its client has left, which is no failure");
    assert.equal(upstream.requests.length, before + 1);
  });

  it("logs nothing of a reader who leaves before the API server answers", async () => {
    const logger = new LogRecorder();
    const { api, upstream } = apiOf({}, { logger });
    upstream.answer = (_, { signal }) =>
      new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
    const leaving = new AbortController();
    const answer = api.request(LOG, { headers: READER, signal: leaving.signal });
    await settle();
    leaving.abort();
    await Promise.resolve(answer).catch(() => {});
    assert.deepEqual([upstream.requests.length, logger.of("warn")], [1, []]);
  });

  it("sends no body on for which there are no bytes", async () => {
    const { api, upstream } = apiOf({ writes: true }, { maxReaderBytes: 100_000 });
    const create = (size: number) =>
      api.request("/api/v1/namespaces/shop/configmaps", {
        method: "POST",
        headers: READER,
        body: "x".repeat(size),
      });
    assert.equal((await create(200_000)).status, 429);
    assert.equal(upstream.requests.length, 0);
    assert.equal((await create(50_000)).status, 200);
  });

  it("says the other query of the same path, as of an OpenAPI document that has changed, and no other place", async () => {
    const { api, upstream } = apiOf();
    const path = "/openapi/v3/apis/apps/v1";
    const ask = async (location: string, status = 301) => {
      const body = `<a href="${location}">Moved Permanently</a>.`;
      upstream.answer = () => new Response(body, { status, headers: { Location: location } });
      const answer = await api.request(`${path}?hash=old`, { headers: READER });
      return [answer.status, answer.headers.get("Location"), (await answer.text()).includes("Moved")];
    };
    // Relative, so that it is right below a mount, too.
    assert.deepEqual(await ask(`${path}?hash=new`), [301, "?hash=new", false]);
    assert.deepEqual(await ask(`${SERVER}${path}?hash=new`), [301, "?hash=new", false]);
    for (
      const elsewhere of [
        "",
        path,
        `${path}?hash=old`,
        `${path}/x?hash=new`,
        `//evil.example${path}?hash=new`,
        `https://evil.example${path}?hash=new`,
        "http://[?hash=new",
      ]
    ) assert.deepEqual(await ask(elsewhere), [502, null, false], elsewhere);
    assert.deepEqual(await ask(`${path}?hash=new`, 307), [502, null, false]);
  });

  it("passes no answer on in a coding that nothing asked for, and none as a page of its own origin", async () => {
    const { api, upstream } = apiOf();
    for (const coding of ["gzip", "zzz"]) {
      upstream.answer = () => new Response("abcde", { headers: { "Content-Encoding": coding } });
      const coded = await api.request(LOG, { headers: READER });
      assert.equal(coded.status, 502);
      assert.match((await coded.json()).message, /answered in a content coding/);
      assert.equal(upstream.last.init.signal!.aborted, true);
    }
    const headers = { "Content-Type": "text/html", "Content-Encoding": "identity" };
    upstream.answer = () => new Response("<script>alert(1)</script>", { headers });
    const page = await api.request(LOG, { headers: READER });
    assert.equal(page.status, 200);
    assert.equal(page.headers.get("Content-Security-Policy"), "sandbox");
  });

  it("sends no method on that fetch refuses, and no read of the old path of proxies", async () => {
    for (const writes of [true, false]) {
      const { api, upstream } = apiOf({ writes });
      // Made by a server: a Request of the runtime cannot have them.
      for (const method of ["TRACE", "CONNECT", "TRACK"]) {
        const request = new Proxy(new Request(`http://cache${LOG}`, { headers: READER }), {
          get: (target, name) => name === "method" ? method : Reflect.get(target, name, target),
        });
        assert.equal((await api.fetch(request)).status, 405, method);
      }
      assert.deepEqual(upstream.requests, []);
    }
    const { api, upstream } = apiOf();
    const old = "/api/v1/proxy/namespaces/shop/services/web/admin";
    assert.equal((await api.request(old, { headers: READER })).status, 405);
    assert.deepEqual(upstream.requests, []);
  });

  it("gives up the answers of which it passes no body on", async () => {
    const { api, upstream } = apiOf();
    const signals: AbortSignal[] = [];
    for (const [method, status] of [["GET", 302], ["GET", 204], ["HEAD", 200]] as const) {
      upstream.answer = (_, { signal }) => {
        signals.push(signal!);
        return new Response(status === 204 ? null : "x".repeat(1_000), { status });
      };
      await (await api.request(LOG, { method, headers: READER })).text();
    }
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true, true]);
  });

  it("refuses what tunnels, whatever the protocol, and says where to go", async () => {
    const cases: readonly (readonly [path: string, method: string, upgrade: string, what: RegExp])[] = [
      ["pods/web-1/exec?command=sh", "GET", "websocket", /^"exec" \(kubectl exec\) /],
      ["pods/web-1/exec?command=sh", "POST", "SPDY/3.1", /^"exec" /],
      ["pods/web-1/exec?command=sh", "POST", "", /^"exec" /],
      ["pods/web-1/attach", "GET", "WebSocket", /^"attach" \(kubectl attach\) /],
      ["pods/web-1/attach", "GET", "", /^"attach" /],
      ["pods/web-1/portforward", "POST", "SPDY/3.1", /^"portforward" \(kubectl port-forward\) /],
      ["pods/web-1/portforward", "GET", "", /^"portforward" /],
      ["pods/web-1/proxy/socket", "GET", "websocket", /^"proxy" \(kubectl proxy\) /],
      ["pods/web-1/log?follow=true", "GET", "websocket", /^"log" \(kubectl logs\) /],
      ["pods/web-1/log?follow=true&watch=true", "GET", "websocket", /^"log" /],
      ["pods/web-1/exec?command=sh&watch=true", "GET", "websocket", /^"exec" /],
      ["secrets?watch=true", "GET", "SPDY/3.1", /^this request /],
      ["secrets?watch=true", "POST", "websocket", /^this request /],
      ["secrets/a?watch=true", "GET", "websocket", /^this request /],
      ["secrets", "GET", "websocket", /^this request /],
    ];
    for (const writes of [true, false]) {
      const { api, upstream } = apiOf({ writes });
      for (const [path, method, upgrade, what] of cases) {
        const response = await api.request(`/api/v1/namespaces/shop/${path}`, {
          method,
          headers: { ...READER, ...(upgrade !== "" && { Connection: "Upgrade", Upgrade: upgrade }) },
        });
        assert.equal(response.status, 405, path);
        const { message, reason } = await response.json();
        assert.equal(reason, "MethodNotAllowed");
        assert.match(message, what);
        assert.match(message, /; send it to the API server itself$/);
      }
      assert.equal(upstream.requests.length, 0);
      // Clients of Java offer it with each request.
      const offer = { ...READER, Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c" };
      assert.equal((await api.request(LOG, { headers: offer })).status, 200);
    }
  });

  it("answers 504 when the API server does not, and leaves streams their time", async () => {
    const { api, upstream, clock } = apiOf({ writes: true });
    const signals: AbortSignal[] = [];
    upstream.answer = (_, { signal }) => {
      signals.push(signal!);
      return new Promise(() => {});
    };
    const request = (path: string, method = "GET") => {
      const seen: { status?: number; message?: string } = {};
      Promise.resolve(api.request(path, { method, headers: READER })).then(async (response) => {
        seen.status = response.status;
        seen.message = (await response.json()).message;
      });
      return seen;
    };
    const events = "/api/v1/namespaces/shop/events";
    const plain = [request(LOG), request(events), request(`${events}/a`, "DELETE"), request("/apis")];
    const streams = [
      request(`${LOG}?follow=true`),
      request(`${events}?watch=true`),
      request("/api/v1/watch/namespaces/shop/events"),
    ];
    await clock.advance(59_999);
    assert.ok(plain.every(({ status }) => status === undefined));
    await clock.advance(1);
    for (const { status, message } of plain) {
      assert.equal(status, 504);
      assert.equal(message, "Timeout: the API server has not answered within 60000 ms");
    }
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true, true, true, false, false, false]);
    assert.ok(streams.every(({ status }) => status === undefined));
    await clock.advance(3_600_000);
    assert.ok(streams.every(({ status }) => status === 504));
    assert.equal(clock.pendingTimers, 0);
    assert.throws(() => apiOf({ timeoutMs: 0 }), RangeError);
  });

  it("streams logs as they come, and ends both sides when either leaves", async () => {
    const { api, upstream, clock } = apiOf({}, { maxRequests: 1, maxWatches: 1 });
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    let isCancelled = false;
    upstream.answer = (_url, { signal }) => {
      const body = new ReadableStream<Uint8Array>({
        start: (own) => void (controller = own),
        cancel: () => void (isCancelled = true),
      });
      signal!.addEventListener("abort", () => (isCancelled = true));
      return new Response(body, { headers: { "Content-Type": "text/plain" } });
    };
    const follow = async () => {
      isCancelled = false;
      const response = await api.request(`${LOG}?follow=true`, { headers: READER });
      assert.equal(response.headers.get("Content-Type"), "text/plain");
      assert.match(response.headers.get("Cache-Control") ?? "", /no-transform/);
      return response.body!.getReader();
    };
    const first = await follow();
    controller.enqueue(new TextEncoder().encode("one\n"));
    assert.equal(new TextDecoder().decode((await first.read()).value), "one\n");
    const other = await api.request(`${LOG}?follow=true`, { headers: READER });
    assert.equal(other.status, 429, "a log that is followed counts as a watch");
    await first.cancel();
    assert.equal(isCancelled, true);

    const second = await follow();
    controller.close();
    assert.equal((await second.read()).done, true);

    const third = await follow();
    controller.error(new Error("reset"));
    await assert.rejects(third.read());

    const fourth = await follow();
    assert.equal(api.endWatches(), 1);
    assert.equal((await fourth.read()).done, true);
    assert.equal(isCancelled, true);

    const fifth = await follow();
    await clock.advance(3_600_000);
    assert.equal((await fifth.read()).done, true);
    assert.equal(openWatches(api), 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends every answer with the signal of the read API", async () => {
    const stopping = new AbortController();
    const { api, upstream } = apiOf({}, { signal: stopping.signal });
    upstream.answer = () => new Response(new ReadableStream<Uint8Array>());
    const followed = (await api.request(`${LOG}?follow=true`, { headers: READER })).text();
    const whole = (await api.request(LOG, { headers: READER })).text();
    stopping.abort();
    assert.equal(await followed, "");
    await assert.rejects(whole, /the server stops/);
    assert.equal(openWatches(api), 0);
  });

  it("passes whole answers on to their end when the server drains, and cuts none off as if it were whole", async () => {
    const user = { name: "jane", expiresAtMs: 0 };
    const { api, upstream, clock } = apiOf({ clusterTokens: true, writes: true }, {
      authenticate: () => user,
    });
    user.expiresAtMs = clock.now() + 30_000;
    const bodies: ReadableStreamDefaultController<Uint8Array>[] = [];
    upstream.answer = () => new Response(new ReadableStream({ start: (own) => void bodies.push(own) }));
    const proxied = "/api/v1/namespaces/shop/services/web/proxy/file";
    const texts: Promise<string>[] = [];
    for (const path of [LOG, "/api/v1/namespaces/shop/events", proxied, proxied, `${LOG}?follow=true`]) {
      texts.push((await api.request(path, { headers: READER })).text().catch(() => "broken off"));
    }
    const send = async (text: string) => {
      for (const body of bodies) body.enqueue(new TextEncoder().encode(text));
      await clock.advance(0);
    };
    await send("one ");
    api.drain();
    assert.equal(await texts.pop(), "one ");
    bodies.pop();
    await send("two");
    for (const body of bodies.splice(0, 3)) body.close();
    await clock.advance(30_000);
    assert.deepEqual(await Promise.all(texts), ["one two", "one two", "one two", "broken off"]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("breaks an answer off that is silent for as long as one may take to begin, and no stream", async () => {
    const logger = new LogRecorder();
    const { api, upstream, clock } = apiOf({ writes: true }, { logger });
    const open = async (path: string) => {
      let controller!: ReadableStreamDefaultController<Uint8Array>;
      let isAborted = false;
      upstream.answer = (_url, { signal }) => {
        signal!.addEventListener("abort", () => (isAborted = true));
        return new Response(new ReadableStream<Uint8Array>({ start: (own) => void (controller = own) }));
      };
      const body = (await api.request(path, { headers: READER })).body!.getReader();
      const seen: string[] = [];
      const read = () =>
        body.read().then(
          ({ done, value }) => void seen.push(done ? "end" : new TextDecoder().decode(value)),
          (error) => void seen.push(error.message),
        );
      const send = (text: string) => controller.enqueue(new TextEncoder().encode(text));
      return { body, seen, read, send, isAborted: () => isAborted };
    };
    const plain = await open("/api/v1/namespaces/shop/events");
    const unread = await open(LOG);
    const streams = [
      await open(`${LOG}?follow=true`),
      await open("/api/v1/namespaces/shop/events?watch=true"),
      await open("/api/v1/namespaces/shop/services/web/proxy/slow"),
    ];
    for (const stream of streams) stream.read();
    for (const text of ["one", "two"]) {
      plain.read();
      await clock.advance(59_999);
      plain.send(text);
      await clock.advance(0);
    }
    await clock.advance(120_000); // no read, so nothing is waited for
    plain.read();
    await clock.advance(59_999);
    assert.deepEqual([plain.seen, plain.isAborted()], [["one", "two"], false]);
    await clock.advance(1);
    const late = "the API server has sent nothing for 60000 ms";
    assert.deepEqual([plain.seen, plain.isAborted()], [["one", "two", late], true]);
    assert.deepEqual(logger.of("warn"), [`warn: cannot pass a request through: ${late}`]);
    for (const { seen, isAborted } of streams) assert.deepEqual([seen, isAborted()], [[], false]);
    unread.send("one");
    await unread.read();
    assert.deepEqual(unread.seen, ["one"]);
    await Promise.all([unread, ...streams].map(({ body }) => body.cancel()));
    assert.equal(openWatches(api), 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("leaves no listener on the signal of a request, however it is answered", async () => {
    const { api, upstream } = apiOf();
    const answers: Upstream["answer"][] = [
      () => Response.json({ kind: "Pong" }),
      () => new Response(null, { status: 204 }),
      () => new Response(null, { status: 302, headers: { Location: "https://other.example" } }),
      () => Promise.reject(new TypeError("connection refused")),
      () => new Response(new ReadableStream()),
    ];
    for (const [i, answer] of answers.entries()) {
      upstream.answer = answer;
      const counting = new CountingSignal();
      const request = new Request(`http://localhost${LOG}`, { headers: READER });
      Object.defineProperty(request, "signal", { value: counting.signal });
      const response = await api.fetch(request);
      if (answer === answers.at(-1)) await response.body!.cancel();
      else await response.text();
      assert.equal(counting.listeners, 0, `answer ${i}: ${response.status}`);
    }
  });

  it("sends a path on with the slash at its end, below the path of the server", async () => {
    for (const server of ["https://api.example", "https://api.example/", SERVER, `${SERVER}/`]) {
      const { api, upstream } = apiOf({ server });
      for (const path of ["/api/v1/secrets/", "/apis/example.com/v1/namespaces/shop/widgets/a/"]) {
        assert.equal((await api.request(path, { headers: READER })).status, 200, path);
        assert.equal(upstream.last.url, server.replace(/\/$/, "") + path);
      }
    }
  });

  it("refuses a server to which tokens would not go safely", () => {
    for (
      const server of [
        "http://api.example",
        "https://a:b@api.example",
        "api.example",
        "https://a@api.example",
        "https://:b@api.example",
        "https://api.example?x",
        "https://api.example#x",
        "",
      ]
    ) {
      assert.throws(
        () => apiOf({ server }),
        /`server` must be an https URL without user.* fragment, as readers' tokens/,
        server,
      );
    }
    for (const fetch of [null, "fetch", {}]) {
      assert.throws(() => apiOf({ fetch: fetch as never }), /^TypeError: .* `fetch` must be a function$/);
    }
    apiOf({ fetch: undefined as never }); // the runtime's own
    for (const clusterTokens of ["yes", 1, null]) {
      const wrong = { clusterTokens: clusterTokens as never };
      assert.throws(() => apiOf(wrong), /`clusterTokens` must be true or false/);
    }
    for (const timeoutMs of [0, NaN, -1]) assert.throws(() => apiOf({ timeoutMs }), RangeError);
    for (const timeoutMs of [1, Infinity]) apiOf({ timeoutMs });
    assert.throws(() => apiOf({ writes: "yes" as unknown as boolean }), /`writes` must be true or false/);
  });
});

describe("PassThrough.answer", () => {
  function newReader(clock: FakeClock): Reader {
    const most = { maxRequests: 9, maxWatches: 9, maxWatchesPerClient: 9, maxReaderBytes: 1e6 };
    return new Readers({ ...most, clock }).enter("a")!;
  }

  interface Asked {
    readonly server?: string;
    readonly isWatch?: boolean;
    readonly headers?: Readonly<Record<string, string>>;
    readonly options?: Partial<PassThroughOptions>;
    readonly init?: RequestInit;
    readonly answer?: Upstream["answer"];
  }

  /** Asks for a path, whatever has looked at that before. */
  function asked(
    path: string,
    { server = SERVER, isWatch = false, headers, options, init, answer }: Asked = {},
  ) {
    const upstream = new Upstream();
    upstream.answer = answer ?? (() => new Response(null, { status: 204 }));
    const clock = new FakeClock();
    const all = { server, fetch: upstream.fetch as typeof fetch, ...options };
    const passThrough = new PassThrough(all, false, silentLogger, clock);
    const raw = new Request("http://cache/here?a=b", { ...init, headers: { ...READER, ...headers } });
    const header = (name: string) => raw.headers.get(name) ?? undefined;
    const c = { env: {}, req: { raw, url: raw.url, header } } as unknown as Context;
    const response = passThrough.answer(c, {
      path,
      isStream: isWatch,
      isWatch,
      reader: newReader(clock),
      user: undefined,
      settings: { clock, watchLimitMs: () => 60_000 },
    });
    return { response, upstream, clock };
  }

  /** The status of the answer, and what the server was sent. */
  async function ask(path: string, more: Asked = {}) {
    const { response, upstream } = asked(path, { options: { writes: true }, ...more });
    const answer = await response;
    const status = answer instanceof Response ? answer.status : answer.code;
    return [status, ...upstream.requests.map(({ url }) => url)];
  }

  it("sends a token to no other server, and to no other path than the one that was looked at", async () => {
    assert.deepEqual(await ask("/api/v1/secrets"), [204, `${SERVER}/api/v1/secrets?a=b`]);
    const server = "https://api.example";
    for (
      const path of ["@evil.example/api/v1/secrets", ".evil.example/api/v1/secrets", ":444/api/v1/secrets"]
    ) {
      assert.deepEqual(await ask(path, { server }), [400], path);
    }
    // What is below a proxy is looked at by nothing else.
    const proxy = "/api/v1/nodes/node-1/proxy";
    assert.deepEqual(await ask(`${proxy}/a/b`), [204, `${SERVER}${proxy}/a/b?a=b`]);
    for (const path of ["/../../../secrets", "/%2e%2e/x", "/./x", "/a\\b", "/a?b", "/a#b", "/a\tb"]) {
      assert.deepEqual(await ask(proxy + path), [400], path);
    }
    for (
      const path of [
        "/api/v1/%zz",
        "/api/v1/a%2Fb",
        "/api//secrets",
        "//api/v1/secrets",
        "/%5Capi/v1/secrets",
      ]
    ) {
      assert.deepEqual(await ask(path), [400], path);
    }
  });

  it("sends a watch on that a WebSocket wants, as a plain one, and no other request that wants one", async () => {
    const headers = { Upgrade: "websocket" };
    assert.equal((await ask("/api/v1/secrets", { isWatch: true, headers }))[0], 204);
    for (const more of [{ isWatch: false, headers }, { isWatch: true, headers: { Upgrade: "SPDY/3.1" } }]) {
      assert.deepEqual(await ask("/api/v1/secrets", more), [405]);
    }
    assert.deepEqual(await ask("/api/v1/namespaces/a/pods/b/exec", { isWatch: true, headers }), [405]);
    assert.equal((await ask("/api/v1/secrets", { headers: { Upgrade: "h2c" } }))[0], 204);
  });

  it("passes on every status but redirects and those of protocols, which are 502", async () => {
    for (const [status, passed] of [[200, 200], [299, 299], [304, 304], [400, 400], [404, 404], [500, 500]]) {
      const answer = () =>
        new Response(status === 304 ? null : "text", { status, headers: { Location: "/x?y" } });
      const { response } = asked("/api/v1/secrets", { answer });
      const got = await response;
      assert.ok(got instanceof Response, String(status));
      assert.deepEqual([got.status, got.headers.get("Location")], [passed, null]);
      await got.body?.cancel();
    }
    for (const status of [0, 101, 199, 300, 301, 399]) {
      const answer = () => Object.defineProperty(new Response("text"), "status", { value: status });
      const got = await asked("/api/v1/secrets", { answer }).response;
      assert.ok(!(got instanceof Response), String(status));
      assert.equal(got.code, 502);
      assert.match(
        got.message!,
        new RegExp(`^the API server answered ${status}, which is not passed through$`),
      );
    }
  });

  it("passes on what caches and clients read, and adds what is not there", async () => {
    const headersOf = async (headers: Record<string, string>, init: RequestInit = {}) => {
      const got = await asked("/api/v1/secrets", { answer: () => new Response("text", { headers }), init })
        .response;
      assert.ok(got instanceof Response);
      const hasBody = got.body !== null;
      await got.body?.cancel();
      return [got.headers.get("ETag"), got.headers.get("Cache-Control"), hasBody];
    };
    const own = { ETag: '"abc"', "Cache-Control": "public" };
    assert.deepEqual(await headersOf(own), ['"abc"', "public, no-transform", true]);
    assert.deepEqual(await headersOf(own, { method: "HEAD" }), ['"abc"', "public, no-transform", false]);
    const [tag, control] = await headersOf({});
    assert.match(String(tag), /^W\/"/);
    assert.equal(control, "no-cache, private, no-transform");
  });

  it("sends a body only where there is one, wants no coding, and creates reviews of namespaces, too", async () => {
    const { response, upstream } = asked("/api/v1/secrets");
    await response;
    assert.equal("body" in upstream.last.init, false);
    assert.equal(upstream.header("Accept-Encoding"), "identity");
    const init = { method: "POST", body: "{}" };
    const of = (path: string) => ask(`/apis/authorization.k8s.io/v1/${path}`, { init, options: {} });
    assert.equal((await of("namespaces/shop/localsubjectaccessreviews"))[0], 204);
    assert.deepEqual(await of("namespaces/localsubjectaccessreviews"), [405]);
    assert.deepEqual(await of("namespaces/shop/localsubjectaccessreviews/x"), [405]);
  });

  it("waits for as long as it may, and no longer than its client", async () => {
    const never = () => new Promise<Response>(() => {});
    for (const [timeoutMs, options] of [[5_000, { timeoutMs: 5_000 }], [60_000, {}]] as const) {
      const { response, clock } = asked("/api/v1/secrets", { answer: never, options });
      await clock.advance(timeoutMs - 1);
      let got: unknown;
      response.then((answer) => got = answer);
      await clock.advance(0);
      assert.equal(got, undefined);
      await clock.advance(1);
      const { code, reason, message, details } = await response as Exclude<
        Awaited<typeof response>,
        Response
      >;
      assert.deepEqual([code, reason, details], [504, "Timeout", { retryAfterSeconds: 1 }]);
      assert.equal(message, `Timeout: the API server has not answered within ${timeoutMs} ms`);
    }
    const refused = asked("/api/v1/secrets", { answer: () => Promise.reject(new TypeError("refused")) });
    const { code, reason, details } = await refused.response as {
      code: number;
      reason: string;
      details: unknown;
    };
    assert.deepEqual([code, reason, details], [503, "ServiceUnavailable", { retryAfterSeconds: 1 }]);
    const leaving = new AbortController();
    const { response, upstream, clock } = asked("/api/v1/secrets", {
      answer: never,
      init: { signal: leaving.signal },
    });
    await clock.advance(0);
    const { signal } = upstream.last.init;
    assert.equal(signal!.aborted, false);
    leaving.abort();
    await assert.rejects(response);
    assert.equal(signal!.aborted, true);
  });
});
