import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import {
  isConflict,
  isExpired,
  isForbidden,
  isNotFound,
  isTooManyRequests,
  isUnauthorized,
  NetworkError,
  newCluster,
  type RestConfig,
  StatusError,
} from "@listwatch/cache";
import {
  DecodeError,
  isInternalError,
  isServiceUnavailable,
  isTimeout,
  newStatus,
} from "@listwatch/cache/client";
import { FakeClock } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { recorder } from "./recorder.ts";

const SERVER = "https://api.example:6443";

async function failure(
  response: Response | (() => Response),
  config: Partial<RestConfig> = {},
): Promise<StatusError> {
  const error = await newCluster({ server: SERVER, fetch: recorder(response).fetch, ...config })
    .request("/api/v1/pods").then(() => assert.fail("it answered"), (error) => error);
  assert.ok(error instanceof StatusError, String(error));
  return error;
}

describe("newCluster: the user agent", () => {
  it("is the one that the config has", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    await newCluster({ server: SERVER, fetch, userAgent: "my-controller/1.0" }).request("/api");
    assert.equal(asked[0].headers.get("User-Agent"), "my-controller/1.0");
  });
});

describe("newCluster: the address", () => {
  it("may have a path, which comes before every request's; query, fragment and the last slash are dropped", async () => {
    const { fetch, urls } = recorder(Response.json({}));
    const cluster = newCluster({ server: "https://rancher.example/k8s/clusters/c-1//?x=1#y", fetch });
    await cluster.request("/api/v1/pods");
    assert.equal(cluster.server, "https://rancher.example/k8s/clusters/c-1");
    assert.deepEqual(urls, ["https://rancher.example/k8s/clusters/c-1/api/v1/pods"]);
  });

  it("that is no http or https URL, or holds a password, is refused", () => {
    const unset = undefined as unknown as string; // a variable of the environment
    for (const server of ["", "10.0.0.1:6443", "localhost:6443", "ftp://x", "/api", unset]) {
      assert.throws(() => newCluster({ server }), (error) => {
        assert.ok(error instanceof TypeError);
        assert.match(error.message, /as the server: write a URL, such as "https:\/\/10.0.0.1:6443"/);
        return true;
      });
    }
    for (const credentials of ["me:secret", ":secret", "secret"]) {
      assert.throws(
        () => newCluster({ server: `https://${credentials}@api.example` }),
        (error) => error instanceof TypeError && !error.message.includes("secret"),
      );
    }
  });

  it("accepts paths only", async () => {
    const cluster = newCluster({ server: SERVER, fetch: recorder(Response.json({})).fetch });
    await assert.rejects(cluster.request("version"), /Cannot ask for "version": a path begins with a slash/);
  });
});

describe("newCluster: requests", () => {
  it("send what was asked: method, query, body, and headers that win over the cluster's", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const cluster = newCluster({ server: SERVER, fetch, headers: { "X-Mine": "1", accept: "text/plain" } });
    await cluster.request("/a?x=1", {
      method: "POST",
      query: {
        dryRun: "All",
        force: true,
        gracePeriodSeconds: 0,
        off: false,
        empty: "",
        unset: undefined,
        sp: "a b,c",
      },
      body: { a: 1 },
      headers: { "x-mine": "2" },
    });
    assert.equal(asked[0].method, "POST");
    assert.equal(asked[0].target, "/a?x=1&dryRun=All&force=true&gracePeriodSeconds=0&sp=a+b%2Cc");
    assert.equal(asked[0].body, '{"a":1}');
    assert.equal(asked[0].headers.get("Content-Type"), "application/json");
    assert.equal(asked[0].headers.get("X-Mine"), "2");
    assert.equal(asked[0].headers.get("Accept"), "text/plain");
    assert.equal(asked[0].headers.get("User-Agent"), "listwatch-cache");
    await cluster.request("/a");
    assert.equal(asked[1].headers.get("Content-Type"), null);
  });

  it("send text and bytes as they are", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const cluster = newCluster({ server: SERVER, fetch });
    await cluster.request("/a", {
      method: "PUT",
      body: "- a: 1",
      headers: { "Content-Type": "application/yaml" },
    });
    await cluster.request("/a", { method: "PUT", body: new TextEncoder().encode("é") });
    assert.deepEqual(asked.map((request) => request.body), ["- a: 1", "é"]);
    assert.equal(asked[0].headers.get("Content-Type"), "application/yaml");
  });

  it("are not repeated after a 401 where the token is the same", async () => {
    const { fetch, asked } = recorder(Response.json({}, { status: 401 }));
    const cluster = newCluster({ server: SERVER, fetch, token: () => "the-same" });
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.equal(asked.length, 1);
  });

  it("say of a redirect no more than its place", async () => {
    const headers = { Location: "https://login.example/oauth?code=secret#secret" };
    const { message } = await failure(new Response(null, { status: 302, headers }));
    assert.match(message, /redirects to https:\/\/login\.example\/oauth, which/);
  });

  it("follow no redirect, so that a token goes nowhere else", async () => {
    const { fetch, asked } = recorder(
      new Response(null, { status: 302, headers: { Location: "https://evil.example/" } }),
    );
    await assert.rejects(
      newCluster({ server: SERVER, token: "t", fetch }).request("/version"),
      /^StatusError: Cannot GET \/version: the server answered 302: it redirects to https:\/\/evil.example\/, which is/,
    );
    assert.equal(asked.length, 1);
    assert.equal(asked[0].redirect, "manual");
  });

  it("show the token, read again each time, without the newline of its file", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const tokens = ["one\n", "two", ""];
    const cluster = newCluster({ server: SERVER, fetch, token: () => Promise.resolve(tokens.shift()!) });
    for (let i = 0; i < 3; i++) await cluster.request("/a");
    await newCluster({ server: SERVER, fetch, token: "fixed" }).request("/a");
    assert.deepEqual(
      asked.map(({ headers }) => headers.get("Authorization")),
      ["Bearer one", "Bearer two", null, "Bearer fixed"],
    );
  });

  it("leave no body of a refusal open, after which they are sent again with a new token", async () => {
    let isOpen = true;
    const refusal = new ReadableStream({ cancel: () => void (isOpen = false) });
    const answers = [new Response(refusal, { status: 401 }), Response.json({ gitVersion: "v1" })];
    const tokens = ["old", "new"];
    const cluster = newCluster({
      server: SERVER,
      fetch: () => Promise.resolve(answers.shift()!),
      token: () => Promise.resolve(tokens.shift()!),
    });
    assert.deepEqual(await cluster.request("/version"), { gitVersion: "v1" });
    assert.equal(isOpen, false);
  });

  it("are checked once their token is there, each time that they are sent, and fail as the check does", async () => {
    const { fetch, asked } = recorder(Response.json({}, { status: 401 }));
    const said: string[] = [];
    const tokens = ["first", "second"];
    const token = () => {
      said.push("token");
      return Promise.resolve(tokens.shift()!);
    };
    const refusal = new Error("not any more");
    const check = () => {
      said.push(`check after ${asked.length}`);
      if (asked.length > 0) throw refusal;
    };
    const pods = newCluster({ server: SERVER, fetch, token }).resource("v1/pods");
    const isRefusal = (error: unknown) => error === refusal;
    await assert.rejects(pods.delete("a", { namespace: "shop", check }), isRefusal);
    assert.deepEqual(said, ["token", "check after 0", "token", "check after 1"]);
    assert.equal(asked.length, 1);
  });

  it("are not made with a token of two words", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const cluster = newCluster({ server: SERVER, fetch, token: () => "two words" });
    await assert.rejects(cluster.request("/a"), /it is not one word of printable ASCII/);
    const none = newCluster({ server: SERVER, fetch, token: (() => 5) as never });
    await assert.rejects(none.request("/a"), /Cannot GET \/a: the token cannot be sent: it is no text/);
    assert.equal(asked.length, 0);
  });

  it("are not made with a token or header that a runtime would quote, which no error does", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const isSilent = (error: unknown) => error instanceof TypeError && !String(error).includes("canary");
    for (const config of [{ token: "canary words" }, { headers: { "X-Key": "canary\nX: y" } }]) {
      assert.throws(() => newCluster({ server: SERVER, fetch, ...config }), isSilent);
    }
    newCluster({ server: SERVER, fetch, token: "of-a-file\n" });
    const headers = { "X-Key": "canary\nX: y" };
    await assert.rejects(newCluster({ server: SERVER, fetch }).request("/a", { headers }), isSilent);
    assert.equal(asked.length, 0);
  });

  it("are refused as they were where no other token can be had then", async () => {
    const { fetch, asked } = recorder(Response.json({}, { status: 401 }));
    const tokens = ["first"];
    const cluster = newCluster({
      server: SERVER,
      fetch,
      token: () => tokens.pop() ?? assert.fail("no more"),
    });
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.equal(asked.length, 1);
  });

  it("are not made when the token cannot be had", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const lost = new Error("the secret is missing");
    await assert.rejects(
      newCluster({ server: SERVER, fetch, token: () => Promise.reject(lost) }).request("/a"),
      lost,
    );
    assert.equal(asked.length, 0);
  });

  it("are made in another user's name, with a header for each group", async () => {
    const { fetch, asked } = recorder(Response.json({}));
    const impersonate = { user: "ann", uid: "7", groups: ["a", "b"], extra: { "acme.com/Team": ["x", "y"] } };
    await newCluster({ server: SERVER, fetch, impersonate }).request("/a");
    assert.deepEqual(asked[0].headerPairs.filter(([name]) => name.startsWith("Impersonate")), [
      ["Impersonate-User", "ann"],
      ["Impersonate-Uid", "7"],
      ["Impersonate-Group", "a"],
      ["Impersonate-Group", "b"],
      ["Impersonate-Extra-acme.com%2FTeam", "x"],
      ["Impersonate-Extra-acme.com%2FTeam", "y"],
    ]);
  });

  it("answer JSON as a value, anything else as text, nothing as undefined", async () => {
    const ask = (response: Response) =>
      newCluster({ server: SERVER, fetch: recorder(response).fetch }).request("/a");
    assert.deepEqual(await ask(Response.json({ a: "é" })), { a: "é" });
    assert.equal(await ask(new Response("ok", { headers: { "Content-Type": "text/plain" } })), "ok");
    assert.equal(await ask(new Response("")), undefined);
    assert.equal(await ask(new Response(null, { status: 204 })), undefined);
    await assert.rejects(
      ask(new Response("{", { headers: { "Content-Type": "application/json" } })),
      (error) =>
        error instanceof DecodeError && error.message.startsWith("Cannot GET /a: the answer is not JSON: "),
    );
  });

  it("log each of the server's warnings once", async () => {
    const logger = new LogRecorder();
    const warning = '299 - "v1 ComponentStatus is \\"deprecated\\"", 299 - "another"';
    const { fetch } = recorder(Response.json({}, { headers: { Warning: warning } }));
    const cluster = newCluster({ server: SERVER, fetch, logger });
    await cluster.request("/a");
    await cluster.request("/a");
    assert.deepEqual(logger.lines, [
      'warn: the API server warns: v1 ComponentStatus is "deprecated"',
      "warn: the API server warns: another",
    ]);
  });

  it("log no warning that is longer than anyone would read", async () => {
    const logger = new LogRecorder();
    const long = "a".repeat(8 * 1024 - 10);
    for (const text of [long, `${long}bbb`]) {
      const { fetch } = recorder(Response.json({}, { headers: { Warning: `299 - "${text}"` } }));
      await newCluster({ server: SERVER, fetch, logger }).request("/a");
    }
    assert.deepEqual(logger.lines, [`warn: the API server warns: ${long}`]);
  });
});

describe("StatusError of a response", () => {
  it("carries the server's Status as it is, and says what could not be done", async () => {
    const status = newStatus(404, "NotFound", 'pods "web-1" not found', { name: "web-1", kind: "pods" });
    const error = await failure(Response.json(status, { status: 404 }));
    assert.deepEqual(error.status, status);
    assert.ok(isNotFound(error));
    assert.equal(error.message, 'Cannot GET /api/v1/pods: the server answered 404: pods "web-1" not found');
  });

  it("without a Status is classified by its HTTP code, and its plain text is the message", async () => {
    const cases: [code: number, is: (error: unknown) => boolean][] = [
      [401, isUnauthorized],
      [403, isForbidden],
      [404, isNotFound],
      [409, isConflict],
      [410, isExpired],
      [429, isTooManyRequests],
      [500, isInternalError],
      [
        502,
        (error) =>
          (error as StatusError).httpStatus === 502 && (error as StatusError).reason === "InternalError",
      ],
      [503, isServiceUnavailable],
      [504, isTimeout],
    ];
    for (const [status, is] of cases) {
      const error = await failure(new Response("slow down\n", { status }));
      assert.ok(is(error), `${status} ${error.reason}`);
      assert.equal(error.message, `Cannot GET /api/v1/pods: the server answered ${status}: slow down`);
      assert.notEqual((await failure(new Response(null, { status }))).status.message, "");
    }
  });

  it("does not repeat a page of HTML, and takes JSON that is no Status for text", async () => {
    const html = await failure(
      new Response("<html>502</html>", { status: 502, headers: { "Content-Type": "text/html" } }),
    );
    assert.match(html.message, /answered 502: InternalError$/);
    const json = await failure(Response.json({ error: "no" }, { status: 418 }));
    assert.match(json.message, /the server answered 418: {"error":"no"}$/);
    assert.match((await failure(new Response("{broken", { status: 500 }))).message, /{broken$/);
  });

  it("takes the HTTP code where the Status names none", async () => {
    const { code: _, ...status } = newStatus(0, "Forbidden", "no");
    assert.equal((await failure(Response.json(status, { status: 403 }))).httpStatus, 403);
  });

  it("reports when to come again, in seconds or by a date", async () => {
    const clock = new FakeClock(Date.parse("2026-11-21T00:00:00Z"));
    const after = async (value: string) =>
      (await failure(new Response("", { status: 429, headers: { "Retry-After": value } }), { clock }))
        .retryAfterMs;
    assert.equal(await after("3"), 3000);
    assert.equal(await after("Sat, 21 Nov 2026 00:00:05 GMT"), 5000);
    assert.equal(await after("Fri, 20 Nov 2026 00:00:05 GMT"), 0);
    assert.equal(await after("soon"), undefined);
    // Counted by the clock of the server, where the answer has its time.
    const skewed = { "Retry-After": "Sat, 21 Nov 2026 09:00:07 GMT", Date: "Sat, 21 Nov 2026 09:00:00 GMT" };
    const error = await failure(new Response("", { status: 429, headers: skewed }), { clock });
    assert.equal(error.retryAfterMs, 7000);
    const inBody = newStatus(429, "TooManyRequests", "later", { retryAfterSeconds: 2 });
    assert.equal((await failure(Response.json(inBody, { status: 429 }))).retryAfterMs, 2000);
  });

  it("has its body read or given up, however long it is", async () => {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode("x".repeat(64 * 1024))),
      cancel: () => {
        cancelled = true;
      },
    });
    const error = await failure(() => new Response(endless, { status: 500 }));
    assert.ok(cancelled);
    assert.ok(error.message.length < 2000);
  });

  it("has the beginning of a body that is too long, also if that comes at once", async () => {
    const error = await failure(new Response(`slow down ${"x".repeat(2 * 1024 * 1024)}`, { status: 429 }));
    assert.match(error.message, /slow down x/);
  });

  it("is reported even when its body breaks off", async () => {
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.error(new TypeError("terminated")),
    });
    assert.ok(isServiceUnavailable(await failure(() => new Response(broken, { status: 503 }))));
  });

  it("is reported a second after its head where its body stops, with what there is of it", async () => {
    let cancelled = false;
    const stuck = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode("slow down")),
      cancel: () => {
        cancelled = true;
      },
    });
    const clock = new FakeClock();
    const answer = () => new Response(stuck, { status: 429, headers: { "Retry-After": "3" } });
    const failed = failure(answer, { clock });
    await clock.advance(999);
    assert.ok(!cancelled);
    await clock.advance(1);
    const error = await failed;
    assert.equal(error.message, "Cannot GET /api/v1/pods: the server answered 429: slow down");
    assert.equal(error.retryAfterMs, 3_000);
    assert.ok(cancelled);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("NetworkError of a request", () => {
  it("is a NetworkError with what failed, of this runtime's own fetch too", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(newCluster({ server: url }).request("/version"), (error) => {
      assert.ok(error instanceof NetworkError);
      assert.equal(error.reason, "ConnectionRefused");
      assert.ok(error.message.startsWith(`Cannot GET /version: no answer from ${url}: `), error.message);
      assert.ok(error.cause instanceof Error);
      return true;
    });
  });

  it("in the middle of an answer is a NetworkError", async () => {
    const server = createServer((_, response) => {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.write('{"kind":', () => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      await assert.rejects(
        newCluster({ server: `http://127.0.0.1:${port}` }).request("/version"),
        (error) => {
          assert.ok(error instanceof NetworkError);
          assert.match(error.message, /^Cannot read the answer for GET \/version: it was cut off: /);
          return true;
        },
      );
    } finally {
      server.close();
    }
  });
});

describe("newCluster: what a refusal quotes", () => {
  it("has the token left out that a request was sent with again", async () => {
    const tokens = ["first-token", "second-token"];
    const cluster = newCluster({
      server: SERVER,
      fetch: (_, init) => {
        const sent = new Headers(init?.headers).get("Authorization") ?? "";
        const status = sent.includes("first") ? 401 : 403;
        return Promise.resolve(new Response(`not with ${sent}`, { status }));
      },
      token: () => Promise.resolve(tokens.shift()!),
    });
    await assert.rejects(
      cluster.request("/version"),
      /the server answered 403: not with Bearer \[redacted\]$/,
    );
  });

  it("has the credentials that were sent left out, and all else that was sent as it is", async () => {
    const headers = { "X-Api-Key": "key-of-jane", "X-Team": "team-of-jane" };
    const said = "no application/json for team-of-jane with token-of-jane, key-of-jane";
    const { message } = await failure(new Response(said, { status: 406 }), {
      token: "token-of-jane",
      headers,
    });
    assert.match(message, /no application\/json for team-of-jane with \[redacted\], \[redacted\]$/);
    const basic = btoa("jane:word-of-jane");
    const refused = await failure(new Response(`neither ${basic} nor word-of-jane`, { status: 403 }), {
      headers: { Authorization: `Basic ${basic}` },
    });
    assert.match(refused.message, /neither \[redacted\] nor \[redacted\]$/);
    const short = await failure(new Response("not with sixsix", { status: 403 }), { token: "sixsix" });
    assert.match(short.message, /not with \[redacted\]$/);
  });
});

describe("newCluster: ending a request", () => {
  it("rejects with the signal's reason, before, while waiting and while reading", async () => {
    const reason = new Error("enough");
    const body = new ReadableStream<Uint8Array>({});
    const hanging = () => new Promise<Response>(() => {});
    for (const answer of [hanging, () => new Response(body)]) {
      const controller = new AbortController();
      const cluster = newCluster({ server: SERVER, fetch: recorder(answer).fetch });
      const answered = cluster.request("/a", { signal: controller.signal });
      await new Promise((resolve) => setTimeout(resolve, 0));
      controller.abort(reason);
      await assert.rejects(answered, reason);
      await assert.rejects(cluster.request("/a", { signal: controller.signal }), reason);
    }
    assert.equal(body.locked, false);
  });

  it("rejects with the signal's reason also while a refusal is read", async () => {
    const reason = new Error("enough");
    const answer = () => new Response(new ReadableStream<Uint8Array>({}), { status: 500 });
    const controller = new AbortController();
    const clock = new FakeClock();
    const cluster = newCluster({ server: SERVER, clock, fetch: recorder(answer).fetch });
    const answered = Promise.all(["request", "open"].map((method) =>
      assert.rejects(
        cluster[method as "request" | "open"]("/a", { signal: controller.signal }),
        (error) => error === reason,
      )
    ));
    await new Promise((resolve) => setTimeout(resolve, 0));
    controller.abort(reason);
    await clock.advance(1_000);
    await answered;
    assert.equal(clock.pendingTimers, 0);
  });

  it("gives up an answer that comes too late, from a fetch that does not heed the signal", async () => {
    let cancelled = false;
    let answer!: (response: Response) => void;
    const fetch = () => new Promise<Response>((resolve) => (answer = resolve));
    const controller = new AbortController();
    const answered = newCluster({ server: SERVER, fetch }).request("/a", { signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 0));
    controller.abort(new Error("enough"));
    await assert.rejects(answered, /enough/);
    answer(new Response(new ReadableStream({ cancel: () => void (cancelled = true) })));
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.ok(cancelled);
  });

  it("happens by itself after requestTimeoutMs, answer included, and leaves no timer", async () => {
    const clock = new FakeClock();
    const config = { server: SERVER, clock, requestTimeoutMs: 1000 };
    for (
      const answer of [() => new Promise<Response>(() => {}), () => new Response(new ReadableStream({}))]
    ) {
      const answered = newCluster({ ...config, fetch: recorder(answer).fetch }).request("/a");
      const failed = assert.rejects(answered, (error) => {
        assert.ok(error instanceof NetworkError);
        assert.equal(error.message, `Cannot GET /a: no whole answer from ${SERVER} within 1000 ms`);
        return true;
      });
      await clock.advance(1000);
      await failed;
    }
    await newCluster({ ...config, fetch: recorder(Response.json({})).fetch }).request("/a");
    assert.equal(clock.pendingTimers, 0);
  });

  it("happens after 30 s without an option, of whatever is no watch and no list", async () => {
    const clock = new FakeClock();
    for (
      const answer of [() => new Promise<Response>(() => {}), () => new Response(new ReadableStream({}))]
    ) {
      const cluster = newCluster({ server: SERVER, clock, fetch: recorder(answer).fetch });
      const pods = cluster.resource("v1/pods", { namespace: "shop" });
      const pod = { metadata: { name: "web-1" } };
      const requests: Record<string, () => Promise<unknown>> = {
        "GET /version": () => cluster.request("/version"),
        'get "web-1" of "pods" in "shop"': () => pods.get("web-1"),
        'create "pods" in "shop"': () => pods.create(pod),
        'replace "web-1" of "pods" in "shop"': () => pods.replace(pod),
        'patch "web-1" of "pods" in "shop"': () => pods.patch("web-1", {}),
        'delete "web-1" of "pods" in "shop"': () => pods.delete("web-1"),
      };
      for (const [action, send] of Object.entries(requests)) {
        const failures: unknown[] = [];
        const failed = send().catch((error) => failures.push(error));
        await clock.advance(29_999);
        assert.equal(failures.length, 0, action);
        await clock.advance(1);
        await failed;
        const [failure] = failures;
        assert.ok(failure instanceof NetworkError, action);
        assert.equal(failure.message, `Cannot ${action}: no whole answer from ${SERVER} within 30000 ms`);
      }
      const list = new AbortController();
      const listed = assert.rejects(pods.list({}, { signal: list.signal }), /enough/);
      await clock.advance(3_600_000);
      list.abort(new Error("enough"));
      await listed;
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("happens after the time of the request itself, which wins over the cluster's", async () => {
    const clock = new FakeClock();
    for (const requestTimeoutMs of [undefined, 1_000]) {
      const config = { server: SERVER, clock, ...(requestTimeoutMs && { requestTimeoutMs }) };
      const cluster = newCluster({ ...config, fetch: () => new Promise<Response>(() => {}) });
      const pods = cluster.resource("v1/pods", { namespace: "shop" });
      const failed = [
        assert.rejects(cluster.request("/version", { timeoutMs: 90_000 }), /within 90000 ms/),
        assert.rejects(pods.get("web-1", { timeoutMs: 90_000 }), /within 90000 ms/),
        assert.rejects(pods.delete("web-1", { timeoutMs: 90_000 }), /within 90000 ms/),
      ];
      await clock.advance(89_999);
      assert.equal(clock.pendingTimers, 3);
      await clock.advance(1);
      await Promise.all(failed);
      void pods.get("web-1", { timeoutMs: Infinity });
      await clock.advance(3_600_000);
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("refuses a time that is none", async () => {
    for (const wrong of [-1, NaN]) {
      assert.throws(() => newCluster({ server: SERVER, requestTimeoutMs: wrong }), RangeError);
      await assert.rejects(newCluster({ server: SERVER }).request("/a", { timeoutMs: wrong }), RangeError);
    }
  });

  it("is left to the caller for a watch", async () => {
    const clock = new FakeClock();
    const fetch = recorder(() => new Response(new ReadableStream({}))).fetch;
    const pods = newCluster({ server: SERVER, clock, requestTimeoutMs: 1000, fetch }).resource("v1/pods");
    const iterator = (await pods.watch())[Symbol.asyncIterator]();
    assert.equal(clock.pendingTimers, 0);
    await iterator.return?.();
  });
});

describe("open", () => {
  it("gives the answer with its body unread", async () => {
    const cluster = newCluster({ server: SERVER, fetch: recorder(new Response("line 1\n")).fetch });
    const response = await cluster.open("/api/v1/namespaces/a/pods/b/log", { query: { follow: true } });
    assert.equal(response.bodyUsed, false);
    assert.equal(await response.text(), "line 1\n");
  });
});
