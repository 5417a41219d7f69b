import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { Hono } from "hono";
import {
  type AccessLogEntry,
  accessLogJson,
  accessLogLine,
  newAccessLog,
} from "../../../src/cli/readers/access_log.ts";

describe("newAccessLog", () => {
  it("has the address of a client that leaves in the middle of a stream, which its socket forgets", async () => {
    const entries: AccessLogEntry[] = [];
    const app = new Hono();
    app.use("*", newAccessLog(new FakeClock(), (entry) => void entries.push(entry)).middleware);
    app.get("/stream", () => new Response(new ReadableStream()));
    const socket: { remoteAddress?: string } = { remoteAddress: "10.0.0.7" };
    const response = await app.request("/stream", {}, { incoming: { socket } });
    socket.remoteAddress = undefined;
    await response.body!.cancel();
    assert.deepEqual(entries.map(({ client, path, status }) => [client, path, status]), [
      ["10.0.0.7", "/stream", 200],
    ]);
  });

  it("has who received what, how much of it and for how long, once for each request", async () => {
    const entries: AccessLogEntry[] = [];
    const clock = new FakeClock();
    const log = newAccessLog(clock, (entry) => void entries.push(entry));
    const app = new Hono();
    app.use("*", log.middleware);
    const authenticate = log.noting((c) => c.req.query("anonymous") ? undefined : { name: "jane" });
    const pieces = (end: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
      new ReadableStream<Uint8Array>({
        start: (controller) => {
          for (const size of [3, 4]) controller.enqueue(new Uint8Array(size));
        },
        pull: end,
      });
    app.get("/whole", async (c) => {
      await authenticate(c);
      await clock.advance(12);
      return new Response(pieces((controller) => controller.close()), { status: 206 });
    });
    app.get("/broken", () => new Response(pieces((controller) => controller.error(new Error("broken off")))));
    app.delete("/nothing", () => new Response(null, { status: 204 }));
    assert.equal((await (await app.request("/whole?a=1")).arrayBuffer()).byteLength, 7);
    await (await app.request("/whole?anonymous=1")).arrayBuffer();
    await (await app.request(`/whole?${"x".repeat(3_000)}`)).arrayBuffer();
    const broken = (await app.request("/broken")).body!.getReader();
    for (let i = 0; i < 2; i++) await broken.read();
    await assert.rejects(broken.read(), /broken off/);
    await app.request("/nothing", { method: "DELETE" });
    const of = { user: "jane", method: "GET", path: "/whole?a=1", status: 206, bytes: 7, durationMs: 12 };
    const { user: _, ...anonymous } = of;
    const [first, second, third, ...others] = entries;
    assert.deepEqual(first, { timeMs: new FakeClock().now(), ...of });
    assert.deepEqual(second, { timeMs: first.timeMs + 12, ...anonymous, path: "/whole?anonymous=1" });
    assert.deepEqual([third.path.length, third.path.slice(0, 8)], [2_048, "/whole?x"]);
    const shown = others.map(({ method, path, status, bytes }) => [method, path, status, bytes]);
    assert.deepEqual(shown, [["GET", "/broken", 200, 7], ["DELETE", "/nothing", 204, 0]]);
  });

  it("gives up a body that its reader gives up", async () => {
    let reason: unknown;
    const app = new Hono();
    app.use("*", newAccessLog(new FakeClock(), () => {}).middleware);
    app.get("/", () => new Response(new ReadableStream({ cancel: (given) => void (reason = given) })));
    await (await app.request("/")).body!.cancel("enough");
    assert.equal(reason, "enough");
  });
});

const ODD = {
  ...{ timeMs: 0, client: "10.0.0.7", user: "a b\n\u202e\u{e0001}", method: "GET" },
  ...{ path: "/x\u2028y\x7f", status: 200, bytes: 5, durationMs: 12 },
};

describe("accessLogLine", () => {
  it("is one line of eight words, whatever a name or path has in it", () => {
    const line = accessLogLine(ODD);
    assert.match(line, /^[\x21-\x7e]+( [\x21-\x7e]+){7}$/);
    assert.match(line, /^1970-01-01T00:00:00.000Z 10\.0\.0\.7 a\\x20b\S+ GET \/x\S+ 200 5 12ms$/);
    const { client: _, user: __, ...anonymous } = { ...ODD, path: "/x" };
    assert.equal(accessLogLine(anonymous), "1970-01-01T00:00:00.000Z - - GET /x 200 5 12ms");
  });
});

describe("accessLogJson", () => {
  it("shows each character that cannot be seen by its number, and is the entry again as it is parsed", () => {
    const line = accessLogJson(ODD);
    assert.match(line, /^[\x20-\x7e]+$/);
    assert.match(line, /\\u202e\\udb40\\udc01/);
    const { timeMs: _, ...rest } = ODD;
    assert.deepEqual(JSON.parse(line), { time: "1970-01-01T00:00:00.000Z", ...rest });
  });
});
