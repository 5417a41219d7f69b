import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, Server } from "node:net";
import { describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { newCluster, silentLogger } from "@listwatch/cache";
import { ListenError, serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { newListenError } from "../../src/node/serving/serve_fetch.ts";
import { realClock } from "../../src/util/clock.ts";
import { LogRecorder } from "../log_recorder.ts";
import { until } from "../until.ts";
import { watchedTimers } from "../watched_timers.ts";

const pem = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");

describe("serveFetch", () => {
  it("answers at its url, and stops with its signal", async () => {
    const stop = new AbortController();
    const server = await serveFetch(() => new Response("hello"), { signal: stop.signal });
    assert.equal(server.url, `http://127.0.0.1:${server.port}`);
    assert.equal(await (await fetch(server.url)).text(), "hello");
    stop.abort();
    await server.finished;
  });

  it("streams a watch, and ends it at once when it stops", async () => {
    const stop = new AbortController();
    const api = new InMemoryApiServer();
    const server = await serveFetch(api.fetch, { signal: stop.signal });
    const pods = newCluster({ server: server.url }).resource("v1/pods");
    const watch = await pods.watch({ resourceVersion: api.resourceVersion });
    const events = watch[Symbol.asyncIterator]();
    const next = events.next();
    api.create("v1/pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "a", namespace: "x" } });
    assert.equal((await next).value?.[0].type, "ADDED");
    const end = events.next().catch((error: unknown) => error);
    stop.abort();
    await server.finished;
    await end;
    api.close();
  });

  it("sends the head of a response before the first byte of the body", async () => {
    const stop = new AbortController();
    let isCancelled = false;
    const quiet = new ReadableStream<Uint8Array>({ cancel: () => void (isCancelled = true) });
    const server = await serveFetch(() => new Response(quiet), { signal: stop.signal });
    const response = await fetch(server.url);
    assert.equal(response.status, 200);
    const read = response.text().catch(() => {});
    stop.abort();
    await server.finished;
    await read;
    for (let i = 0; i < 100 && !isCancelled; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(isCancelled, "a stream without a reader is cancelled");
  });

  it("frees the chunks of a byte stream once they are sent, and keeps the chunks of other streams", async () => {
    const stop = new AbortController();
    const COUNT = 200;
    const kept = new Uint8Array(64 * 1024).fill(97);
    const streams = {
      "/kept": (left = COUNT) =>
        new ReadableStream<Uint8Array>({
          pull: (controller) => left-- > 0 ? controller.enqueue(kept) : controller.close(),
        }),
      "/bytes": (left = COUNT) =>
        new ReadableStream({
          type: "bytes",
          async pull(controller) {
            if (left % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
            if (left-- > 0) controller.enqueue(kept.slice());
            else controller.close();
          },
        }),
    };
    const server = await serveFetch(
      (request) => new Response(streams[new URL(request.url).pathname as keyof typeof streams]()),
      { signal: stop.signal },
    );
    const { transfer } = ArrayBuffer.prototype;
    let freed = 0;
    ArrayBuffer.prototype.transfer = function (length) {
      if (length === 0) freed++;
      return transfer.call(this, length);
    };
    for (const path of Object.keys(streams)) {
      freed = 0;
      const bytes = new Uint8Array(await (await fetch(server.url + path)).arrayBuffer());
      assert.equal(bytes.byteLength, COUNT * kept.byteLength, path);
      assert.ok(bytes.every((byte) => byte === 97), path);
      if (path === "/kept") assert.equal(freed, 0);
      // The adapter does not read again after the last chunks.
      else assert.ok(freed > COUNT * 0.9, `${freed} of ${COUNT}`);
    }
    ArrayBuffer.prototype.transfer = transfer;
    assert.equal(kept.byteLength, 64 * 1024);
    stop.abort();
    await server.finished;
  });

  it("breaks off an answer whose body fails, so that nothing takes it for whole, and says so", async () => {
    const stop = new AbortController();
    const log = new LogRecorder();
    const failing = () => {
      let pulls = 0;
      return new ReadableStream<Uint8Array>({
        async pull(controller) {
          await new Promise((resolve) => setTimeout(resolve, 1));
          if (pulls++ > 2) controller.error(new Error("the source has ended"));
          else controller.enqueue(new TextEncoder().encode("part"));
        },
      });
    };
    const server = await serveFetch(() => new Response(failing()), { signal: stop.signal, logger: log });
    await assert.rejects(fetch(`${server.url}/large?token=secret`).then((response) => response.text()));
    await until(() => log.lines.length > 0);
    assert.deepEqual(log.lines, ["warn: GET /large broke off: the source has ended"]);
    stop.abort();
    await server.finished;
  });

  it("names the path of a client that reads nothing, without the query, also after other answers", async () => {
    const stop = new AbortController();
    const log = new LogRecorder();
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)),
      });
    const options = { signal: stop.signal, logger: log, writeTimeoutMs: 100 };
    const server = await serveFetch(
      ({ url }) => new Response(url.endsWith("/short") ? "short" : endless()),
      options,
    );
    await (await fetch(`${server.url}/short`)).text();
    const client = connect({ port: server.port, host: "127.0.0.1" });
    client.on("error", () => {});
    client.pause();
    client.write("GET /large?token=secret HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(() => log.lines.length > 0);
    assert.deepEqual(log.lines, ["warn: GET /large broke off: the client has read nothing for 100 ms"]);
    client.destroy();
    stop.abort();
    await server.finished;
  });

  it("logs nothing of a client that leaves", async () => {
    const stop = new AbortController();
    const log = new LogRecorder();
    let ended = 0;
    const server = await serveFetch((request) => {
      if (new URL(request.url).pathname === "/throws") {
        return new Promise((_, reject) =>
          request.signal.addEventListener("abort", () => (ended++, reject(new Error("aborted"))))
        );
      }
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode("part"));
          request.signal.addEventListener("abort", () => (ended++, controller.error(new Error("aborted"))));
        },
      });
      return new Response(body);
    }, { signal: stop.signal, logger: log });
    for (const path of ["/throws", "/streams"]) {
      const leave = new AbortController();
      const answer = fetch(server.url + path, { signal: leave.signal }).then((response) => response.text());
      const rejected = assert.rejects(answer);
      await new Promise((resolve) => setTimeout(resolve, 50));
      leave.abort();
      await rejected;
    }
    await until(() => ended === 2);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(log.lines, []);
    stop.abort();
    await server.finished;
  });

  it("hands on each cookie, and the length that an answer says it has", async () => {
    const stop = new AbortController();
    const headers: [string, string][] = [["Set-Cookie", "a=1; Expires=Fri, 01 Jan 2027"], [
      "Set-Cookie",
      "b=2",
    ]];
    const server = await serveFetch(({ method }) =>
      new Response(method === "HEAD" ? null : "hello", {
        headers: method === "HEAD" ? [...headers, ["Content-Length", "5"]] : headers,
      }), { signal: stop.signal });
    for (const method of ["GET", "HEAD"]) {
      const response = await fetch(server.url, { method });
      await response.text();
      assert.deepEqual(response.headers.getSetCookie(), headers.map(([, cookie]) => cookie));
      assert.equal(response.headers.get("Content-Length"), "5");
    }
    stop.abort();
    await server.finished;
  });

  it("takes headers of tens of kilobytes", async () => {
    const stop = new AbortController();
    const server = await serveFetch(
      ({ headers }) => new Response(String(headers.get("X-Long")?.length)),
      { signal: stop.signal },
    );
    const response = await fetch(server.url, { headers: { "X-Long": "x".repeat(40 * 1024) } });
    assert.equal(await response.text(), String(40 * 1024));
    stop.abort();
    await server.finished;
  });

  it("answers 500 where its handler throws, and logs why, but not for each of many requests", async () => {
    const stop = new AbortController();
    const log = new LogRecorder();
    const server = await serveFetch(() => {
      throw new Error("no luck");
    }, { signal: stop.signal, logger: log });
    const response = await fetch(`${server.url}/a?b`);
    assert.deepEqual([response.status, await response.text()], [500, "Internal error\n"]);
    assert.deepEqual(log.lines, ["error: GET /a failed: no luck"]);
    for (let i = 0; i < 50; i++) await (await fetch(server.url)).text();
    assert.ok(log.lines.length <= 20, `${log.lines.length} lines`);
    stop.abort();
    await server.finished;
    await assert.rejects(serveFetch(() => new Response(), { signal: stop.signal }), { name: "AbortError" });
  });

  it("leaves no timer behind once it has stopped: it would listen again", async () => {
    using timers = watchedTimers();
    let answer: ((response: Response) => void) | undefined;
    const server = await serveFetch(() => new Promise((resolve) => answer = resolve));
    const answered = fetch(server.url).then((response) => response.text());
    await until(() => answer !== undefined);
    assert.ok(timers.pending.size > 0);
    const stopped = server.stop(60_000);
    answer!(new Response("hello"));
    assert.equal(await answered, "hello");
    await stopped;
    assert.equal(timers.pending.size, 0);
  });

  it("does not replace the global Request and Response", async () => {
    const before = [globalThis.Request, globalThis.Response];
    const stop = new AbortController();
    const server = await serveFetch(() => new Response(), { signal: stop.signal });
    assert.deepEqual([globalThis.Request, globalThis.Response], before);
    stop.abort();
    await server.finished;
  });

  it("rejects with a ListenError when the port is in use", async () => {
    const stop = new AbortController();
    const first = await serveFetch(() => new Response(), { signal: stop.signal });
    await assert.rejects(serveFetch(() => new Response(), { port: first.port }), (error: ListenError) => {
      assert.equal(error.code, "AddressInUse");
      assert.equal(error.message, `Cannot listen on 127.0.0.1:${first.port}: the port is in use`);
      return true;
    });
    stop.abort();
    await first.finished;
  });

  it("rejects with a ListenError when the address is not one of this machine", async () => {
    await assert.rejects(serveFetch(() => new Response(), { host: "203.0.113.1" }), ListenError);
  });
});

describe("serveFetch, a server that it makes", () => {
  /** The server that a call of `serveFetch` makes, on 127.0.0.1. */
  async function made<S>(serve: () => Promise<S>): Promise<readonly [served: S, server: Server]> {
    const { listen } = Server.prototype;
    let server: Server | undefined;
    Server.prototype.listen = function (this: Server, at: object, ...values: unknown[]) {
      server = this;
      return Reflect.apply(listen, this, [{ ...at, host: "127.0.0.1" }, ...values]);
    } as typeof listen;
    try {
      return [await serve(), server!];
    } finally {
      Server.prototype.listen = listen;
    }
  }

  it("may fail while it listens, which is logged", async () => {
    const logger = new LogRecorder();
    const [served, server] = await made(() => serveFetch(() => new Response("here"), { logger }));
    for (const why of ["EMFILE", "ENFILE"]) server.emit("error", new Error(why));
    assert.equal(await (await fetch(served.url)).text(), "here");
    const lines = ["error: the server failed: EMFILE", "error: the server failed: ENFILE"];
    assert.deepEqual(logger.lines, lines);
    await served.stop();
  });

  it("has closed before stop resolves", async () => {
    const [served, server] = await made(() => serveFetch(() => new Response()));
    let isClosed = false;
    server.once("close", () => isClosed = true);
    await served.stop();
    assert.equal(isClosed, true);
  });

  it("has the address of IPv6 in brackets in its url, where one is given", async () => {
    const [served] = await made(() => serveFetch(() => new Response(), { host: "::1" }));
    assert.equal(served.url, `http://[::1]:${served.port}`);
    await served.stop();
  });
});

describe("serveFetch over TLS", () => {
  it("stops although a client has sent nothing since its handshake", async () => {
    const served = await serveFetch(() => new Response("here"), {
      tls: { cert: pem("server.crt"), key: pem("server.key") },
    });
    const socket = connectTls({ host: "127.0.0.1", port: served.port, rejectUnauthorized: false });
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      socket.destroy();
    }, 5_000);
    await served.stop();
    clearTimeout(timer);
    assert.equal(isLate, false);
    socket.destroy();
  });
});

describe("serveFetch where its server has stopped to accept", () => {
  it("listens again over TLS, with the certificate that was set last", async () => {
    const [first, second] = ["server", "client"].map((name) => ({
      cert: pem(`${name}.crt`),
      key: pem(`${name}.key`),
    }));
    const { setTimeout: realTimeout } = realClock;
    const { listen } = Server.prototype;
    const looks: (() => void)[] = [];
    const servers: Server[] = [];
    Object.assign(realClock, {
      setTimeout: (call: () => void, ms: number) => ms === 3_000 ? looks.push(call) : realTimeout(call, ms),
    });
    Server.prototype.listen = function (this: Server, ...values: unknown[]) {
      servers.push(this);
      return Reflect.apply(listen, this, values);
    };
    const served = await serveFetch(() => new Response("here"), { tls: first, logger: silentLogger });
    try {
      for (const name of ["kubernetes", "admin"]) {
        if (name === "admin") await served.setTls(second);
        await new Promise((resolve) => servers.at(-1)!.close(resolve));
        const { length } = servers;
        while (servers.length === length || !servers.at(-1)!.listening) {
          await until(() => looks.length > 0);
          looks.shift()!();
        }
        const socket = connectTls({ host: "127.0.0.1", port: served.port, rejectUnauthorized: false });
        await new Promise((resolve, reject) => socket.on("secureConnect", resolve).on("error", reject));
        assert.equal(socket.getPeerCertificate().subject.CN, name);
        await new Promise((resolve) => socket.once("close", resolve).end());
      }
    } finally {
      Object.assign(realClock, { setTimeout: realTimeout });
      Server.prototype.listen = listen;
      await served.stop();
    }
  });
});

describe("newListenError", () => {
  it("says why in words, by the codes, names and texts of each runtime, and keeps the cause", () => {
    const cases: readonly (readonly [error: unknown, code: string, why: string])[] = [
      [Object.assign(new Error("x"), { code: "EADDRINUSE" }), "AddressInUse", "the port is in use"],
      [Object.assign(new Error("x"), { name: "AddrInUse" }), "AddressInUse", "the port is in use"],
      [new Error("Is port 80 in use?"), "AddressInUse", "the port is in use"],
      [
        Object.assign(new Error("x"), { code: "EADDRNOTAVAIL" }),
        "AddressNotAvailable",
        "it is not an address of this machine",
      ],
      [
        Object.assign(new Error("x"), { name: "AddrNotAvailable" }),
        "AddressNotAvailable",
        "it is not an address of this machine",
      ],
      [
        Object.assign(new Error("getaddrinfo ENOTFOUND nowhere.invalid"), { code: "ENOTFOUND" }),
        "AddressNotAvailable",
        "it is not an address of this machine",
      ],
      [
        Object.assign(new Error("x"), { code: "EACCES" }),
        "PermissionDenied",
        "ports below 1024 need administrator rights",
      ],
      [new Error("Permission denied"), "PermissionDenied", "ports below 1024 need administrator rights"],
      [new Error("no luck"), "Listen", "no luck"],
      [null, "Listen", "null"],
    ];
    for (const [error, code, why] of cases) {
      const made = newListenError(error, "10.0.0.7", 80);
      assert.ok(made instanceof ListenError);
      assert.deepEqual([made.code, made.message, made.cause], [
        code,
        `Cannot listen on 10.0.0.7:80: ${why}`,
        error,
      ]);
    }
  });
});
