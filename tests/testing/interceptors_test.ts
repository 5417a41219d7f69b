import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  answerStatus,
  configMap,
  cutBody,
  delayRequest,
  FakeClock,
  hang,
  InMemoryApiServer,
  refuseConnection,
  splitBody,
  stallBody,
} from "@listwatch/cache/testing";
import { call, summary, watch, withServer } from "./helpers.ts";

const CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps";

describe("InMemoryApiServer.intercept", () => {
  it("passes a request to interceptors in the order of addition, and its answer in the opposite order", () =>
    withServer({}, async (server) => {
      const seen: string[] = [];
      for (const name of ["a", "b"]) {
        server.intercept(async (request, next) => {
          seen.push(`${name} in`);
          const response = await next(request);
          seen.push(`${name} out`);
          return response;
        });
      }
      await call(server, "GET", "/version");
      assert.deepEqual(seen, ["a in", "b in", "b out", "a out"]);
    }));

  it("passes only matching requests, `times` of them, until the interceptor is removed", () =>
    withServer({}, async (server) => {
      server.intercept(answerStatus(503), { times: 2, match: ({ path }) => path === "/version" });
      const remove = server.intercept(answerStatus(500), { match: ({ method }) => method === "POST" });
      const status = async (method: string, path: string) =>
        (await call(server, method, path, method === "POST" ? { body: {} } : {})).status;
      assert.equal(await status("GET", "/healthz"), 200);
      assert.deepEqual([await status("GET", "/version"), await status("GET", "/version")], [503, 503]);
      assert.equal(await status("GET", "/version"), 200);
      assert.equal(await status("POST", CONFIG_MAPS), 500);
      remove();
      assert.equal(await status("POST", CONFIG_MAPS), 422);
    }));

  it("lets an interceptor change the request", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      server.intercept((request, next) =>
        next(new Request(request.url.replace("/other/", "/shop/"), request))
      );
      assert.equal((await call(server, "GET", "/api/v1/namespaces/other/configmaps")).body.items.length, 1);
    }));

  it("turns a throw into a failed connection", () =>
    withServer({}, async (server) => {
      server.intercept(() => {
        throw new TypeError("no route");
      });
      await assert.rejects(call(server, "GET", "/version"), { message: "no route" });
    }));
});

describe("InMemoryApiServer: faults", () => {
  it("answer with a Status", () =>
    withServer({}, async (server) => {
      server.intercept(answerStatus(429, { retryAfterSeconds: 7, message: "slow down" }));
      const { status, body, headers } = await call(server, "GET", "/version");
      assert.deepEqual([status, headers.get("Retry-After"), body], [429, "7", {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: "slow down",
        reason: "TooManyRequests",
        details: { retryAfterSeconds: 7 },
        code: 429,
      }]);
    }));

  it("hang until the client aborts or the server is closed", async () => {
    const server = new InMemoryApiServer();
    server.intercept(hang());
    const stop = new AbortController();
    const aborted = server.fetch("http://in-memory/version", { signal: stop.signal });
    stop.abort(new Error("enough"));
    await assert.rejects(aborted, { message: "enough" });
    const closed = server.fetch("http://in-memory/version");
    server.close();
    await assert.rejects(closed, TypeError);
    const request = new Request("http://in-memory/version");
    const context = { signal: AbortSignal.abort(new Error("enough")), clock: new FakeClock() };
    const next = () => Promise.reject(new Error("it does not ask further"));
    await assert.rejects(async () => await hang()(request, next, context), { message: "enough" });
  });

  it("refuse the connection", () =>
    withServer({}, async (server) => {
      server.intercept(refuseConnection(), { times: 1 });
      await assert.rejects(call(server, "GET", "/version"), (error: Error) =>
        error instanceof TypeError && (error.cause as { code?: string }).code === "ECONNREFUSED");
      assert.equal((await call(server, "GET", "/version")).status, 200);
    }));

  it("delay by the server's clock", async () => {
    const clock = new FakeClock();
    await withServer({ clock }, async (server) => {
      server.intercept(delayRequest(500));
      const answer = call(server, "GET", "/version");
      await clock.advance(499);
      assert.equal(clock.pendingTimers, 1);
      await clock.advance(1);
      assert.equal((await answer).status, 200);
    });
  });

  it("cut a watch in the middle of an event, with an end or with an error", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      server.intercept(cutBody(20), { times: 1 });
      const ended = await watch(server, `${CONFIG_MAPS}?watch=1`);
      assert.deepEqual([await ended.rest(), ended.tail], [[], '{"type":"ADDED","obj']);
      server.intercept(cutBody(20, { how: "reset" }), { times: 1 });
      const reset = await watch(server, `${CONFIG_MAPS}?watch=1`);
      await assert.rejects(reset.rest(), TypeError);
      await new Promise((resolve) => setTimeout(resolve, 0));
      assert.equal(server.openWatches, 0, "the server receives the cancellation");
    }));

  it("cut a body after so many bytes, however many chunks those are", async () => {
    const chunks = ["ab", "cde", "f"].map((text) => new TextEncoder().encode(text));
    for (let bytes = 1; bytes <= 7; bytes++) {
      await withServer({}, async (server) => {
        server.intercept(cutBody(bytes));
        server.intercept(() => Promise.resolve(new Response(ReadableStream.from(chunks))));
        const response = await server.fetch("http://in-memory/api");
        assert.equal(await response.text(), "abcdef".slice(0, bytes));
      });
    }
  });

  it("silence a watch, which the client can still leave", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      server.intercept(stallBody(5));
      const stop = new AbortController();
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1`, { signal: stop.signal });
      const events = reader.rest();
      server.create("v1/configmaps", configMap("b", { namespace: "shop" }));
      await new Promise((resolve) => setTimeout(resolve, 0));
      assert.equal(reader.tail, '{"typ');
      stop.abort(new Error("watchdog"));
      await assert.rejects(events, { message: "watchdog" });
      assert.equal(server.openWatches, 0);
    }));

  it("split a watch anywhere, in the middle of a character too", () =>
    withServer({}, async (server) => {
      server.intercept(splitBody([1, 2, 3]));
      const reader = await watch(server, `${CONFIG_MAPS}?watch=1&resourceVersion=1`);
      server.create("v1/configmaps", configMap("a", { namespace: "shop", data: { text: "Ἀθήνα 🧭\u2028" } }));
      server.create("v1/configmaps", configMap("b", { namespace: "shop" }));
      const events = await reader.take(2);
      assert.deepEqual(summary(events), ["ADDED shop/a 2", "ADDED shop/b 3"]);
      assert.equal(events[0].object.data.text, "Ἀθήνα 🧭\u2028");
      assert.deepEqual(reader.chunkSizes.slice(0, 6), [1, 2, 3, 1, 2, 3]);
      assert.throws(() => splitBody([0]), RangeError);
    }));
});

describe("InMemoryApiServer.requests", () => {
  it("has the received requests, oldest first", async () => {
    const clock = new FakeClock(1_000);
    await withServer({ clock }, async (server) => {
      await call(server, "GET", `${CONFIG_MAPS}?limit=5&labelSelector=a%3Db`, {
        headers: { Authorization: "x" },
      });
      await clock.advance(500);
      await watch(server, `${CONFIG_MAPS}?watch=true`);
      const [list, watched] = server.requests;
      assert.deepEqual(
        [list.method, list.path, list.query, list.isWatch, list.timeMs, list.headers.get("Authorization")],
        ["GET", CONFIG_MAPS, { limit: "5", labelSelector: "a=b" }, false, 1_000, "x"],
      );
      assert.deepEqual([watched.isWatch, watched.timeMs], [true, 1_500]);
      await call(server, "GET", "/api/v1/pods?watch=false");
      assert.equal(server.requests.at(-1)?.isWatch, false);
      server.clearRequests();
      assert.deepEqual(server.requests, []);
    });
  });

  it("keeps the newest", () =>
    withServer({ requestLogLimit: 2 }, async (server) => {
      for (const path of ["/version", "/healthz", "/readyz"]) {
        // deno-lint-ignore no-await-in-loop
        await call(server, "GET", path);
      }
      assert.deepEqual(server.requests.map(({ path }) => path), ["/healthz", "/readyz"]);
    }));
});

describe("InMemoryApiServer.fetch", () => {
  it("accepts a Request, an address with options, and the second argument of the runtimes' servers", () =>
    withServer({}, async (server) => {
      const request = new Request("http://in-memory/version");
      const answers = [
        await server.fetch(request),
        await server.fetch(request.url),
        await server.fetch(new URL(request.url), { method: "GET" }),
        await server.fetch(request, { remoteAddr: { hostname: "127.0.0.1" } }),
        await server.fetch(request, { incoming: {}, outgoing: {} }),
      ];
      assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200, 200]);
    }));

  it("rejects at once if the signal is already aborted", () =>
    withServer({}, async (server) => {
      const signal = AbortSignal.abort(new Error("too late"));
      await assert.rejects(server.fetch("http://in-memory/version", { signal }), { message: "too late" });
      assert.equal(server.requests.length, 0);
    }));
});
