import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import {
  type OpenUpgrade,
  type PassThroughOptions,
  readApi,
  type ReadApiOptions,
} from "@listwatch/cache/hono";
import type { UpgradeEnv } from "../../src/util/upgrade.ts";
import { FakeClock } from "../../src/util/clock.ts";

const EXEC = "/api/v1/namespaces/shop/pods/web-1/exec?command=sh";
const HEADERS = { Authorization: "Bearer of-the-reader", Connection: "Upgrade", Upgrade: "websocket" };

/** Two ends of a connection in memory. */
function pipe() {
  const [up, down] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const far = { reader: up.readable.getReader(), writer: down.writable.getWriter() };
  return { near: { readable: down.readable, writable: up.writable }, far };
}

function apiOf(passThrough: Partial<PassThroughOptions> = {}, options: Partial<ReadApiOptions> = {}) {
  const asked: Parameters<OpenUpgrade>[] = [];
  const server = pipe();
  const client = pipe();
  const clock = new FakeClock();
  let head: readonly (readonly [string, string])[] | undefined;
  const upgrade: OpenUpgrade = (...args) => {
    asked.push(args);
    const headers = new Headers({ Upgrade: "websocket", "Sec-WebSocket-Accept": "abc", "X-Secret": "x" });
    return Promise.resolve({ headers, ...server.near });
  };
  const api = readApi({
    resources: [],
    allowAnonymous: true,
    clock,
    logger: silentLogger,
    passThrough: {
      server: "https://api.example/prefix",
      fetch: () => Response.json({ kind: "Pong" }),
      upgrade,
      writes: true,
      ...passThrough,
    },
    ...options,
  });
  const env: UpgradeEnv = {
    upgrade: (lines) => {
      head = lines;
      return { ...client.near, sentBytes: 0, closed: new Promise(() => {}) };
    },
  };
  const request = (headers: Record<string, string> = {}, { path = EXEC, method = "GET" } = {}) =>
    api.fetch(
      new Request(`http://cache.example${path}`, { method, headers: { ...HEADERS, ...headers } }),
      env,
    );
  return { api, clock, asked, env, request, client: client.far, server: server.far, head: () => head };
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = ({ value }: ReadableStreamReadResult<Uint8Array>) => new TextDecoder().decode(value);

describe("readApi with passThrough.upgrade", () => {
  it("sends the handshake on with the reader's token and nothing else of the reader, and relays", async () => {
    const { request, asked, client, server, head } = apiOf();
    await request({
      "Sec-WebSocket-Protocol":
        "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io",
      "Sec-WebSocket-Key": "key",
      Cookie: "a=b",
      "X-Forwarded-For": "10.0.0.1",
    });
    const [[url, { method, headers }]] = asked;
    assert.equal(url, `https://api.example/prefix${EXEC}`);
    assert.equal(method, "GET");
    assert.deepEqual(headers, [
      ["authorization", "Bearer of-the-reader"],
      ["accept-encoding", "identity"],
      ["connection", "Upgrade"],
      ["upgrade", "websocket"],
      ["sec-websocket-key", "key"],
      ["sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io"],
    ]);
    assert.deepEqual(head(), [["Connection", "Upgrade"], ["Upgrade", "websocket"], [
      "sec-websocket-accept",
      "abc",
    ]]);
    void client.writer.write(bytes("ls"));
    assert.equal(text(await server.reader.read()), "ls");
    void server.writer.write(bytes("bin"));
    assert.equal(text(await client.reader.read()), "bin");
  });

  it("delivers all that a server sent before it closed the connection", async () => {
    const { request, client, server } = apiOf();
    await request();
    void server.writer.write(bytes("out"));
    void server.writer.write(bytes("exit code 3"));
    void server.writer.close();
    await server.reader.cancel();
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(text(await client.reader.read()), "out");
    assert.equal(text(await client.reader.read()), "exit code 3");
    assert.equal((await client.reader.read()).done, true);
  });

  it("refuses pages of other origins, but those that cors trusts with credentials", async () => {
    const cors = { origins: ["https://tools.example"] };
    const named = { cors };
    const trusted = { cors: { ...cors, credentials: true } };
    const cases: [headers: Record<string, string>, options: Partial<ReadApiOptions>, isOpened: boolean][] = [
      [{}, {}, true],
      [{ Origin: "http://cache.example" }, {}, true],
      [{ Origin: "https://cache.example" }, {}, true],
      [{ Origin: "http://cache.example:81" }, {}, false],
      [{ Origin: "https://evil.example" }, {}, false],
      [{ Origin: "null" }, {}, false],
      // The browser may have added the header itself.
      [{ Origin: "https://tools.example" }, named, false],
      [{ Origin: "https://tools.example" }, trusted, true],
      [{ Origin: "https://evil.example" }, trusted, false],
      [{ Origin: "https://tools.example" }, { cors: { origins: "*" } }, false],
    ];
    for (const [headers, options, isOpened] of cases) {
      const { request, asked, head } = apiOf({}, options);
      const response = await request(headers);
      assert.equal(asked.length, isOpened ? 1 : 0, JSON.stringify(headers));
      assert.equal(head() !== undefined, isOpened);
      if (!isOpened) assert.equal(response.status, 403);
    }
  });

  it("takes the token of a page from its subprotocols, and sends it as a header only", async () => {
    const { api, asked, env } = apiOf();
    const token = btoa("of-the-page").replaceAll("=", "");
    const headers = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      Origin: "http://cache.example",
      "Sec-WebSocket-Protocol": `base64url.bearer.authorization.k8s.io.${token}, v5.channel.k8s.io`,
    };
    await api.fetch(new Request(`http://cache.example${EXEC}`, { headers }), env);
    const sent = asked[0][1].headers;
    assert.deepEqual(sent.filter(([name]) => name === "authorization"), [[
      "authorization",
      "Bearer of-the-page",
    ]]);
    assert.deepEqual(sent.at(-1), ["sec-websocket-protocol", "v5.channel.k8s.io"]);
  });

  it("counts as a write, and is refused where the server cannot upgrade", async () => {
    for (const subresource of ["exec", "attach", "portforward"]) {
      for (const method of ["GET", "POST"]) {
        const path = EXEC.replace("exec", subresource);
        const reads = apiOf({ writes: false });
        const response = await reads.request({}, { path, method });
        assert.equal(response.status, 405);
        assert.match(
          (await response.json()).message,
          new RegExp(`no writes, and ${subresource} counts as one`),
        );
        assert.deepEqual(reads.asked, []);
        const { api } = apiOf();
        const refused = await api.request(path, { method, headers: HEADERS });
        assert.equal(refused.status, 400);
        assert.match((await refused.json()).message, new RegExp(`^${subresource} upgrades its connection`));
      }
    }
    // A watch can be a WebSocket, too.
    const watch = apiOf({ writes: false });
    assert.equal((await watch.request({}, { path: "/api/v1/events?watch=1" })).status, 405);
  });

  it("answers with the API server's response where that does not upgrade, and with 503 where it switches to another protocol", async () => {
    const upgrade: OpenUpgrade = () => Promise.resolve(Response.json({ code: 403 }, { status: 403 }));
    const refused = await apiOf({ upgrade }).request();
    assert.equal(refused.status, 403);
    assert.deepEqual(await refused.json(), { code: 403 });
    let isClosed = false;
    const other: OpenUpgrade = () =>
      Promise.resolve({
        headers: new Headers({ Upgrade: "h2c" }),
        readable: new ReadableStream({ cancel: () => void (isClosed = true) }),
        writable: new WritableStream(),
      });
    const switched = apiOf({ upgrade: other });
    assert.equal((await switched.request()).status, 503);
    assert.equal(switched.head(), undefined);
    assert.ok(isClosed);
  });

  const stop = new AbortController();
  for (
    const [what, options, end] of [
      [
        "after the lifetime of a watch",
        { watchLifetimeMs: 60_000, random: () => 0 },
        ({ clock }) => clock.advance(60_000),
      ],
      [
        "with the credential of its reader",
        { authenticate: () => ({ name: "jane", expiresAtMs: 90_000 }) },
        ({ clock }) => clock.advance(90_000),
      ],
      ["with the signal of the read API", { signal: stop.signal }, () => stop.abort()],
      ["by endWatches", {}, ({ api }) => void api.endWatches()],
      ["with the API server's side", {}, ({ server }) => server.writer.close()],
      ["with a break of the API server's side", {}, ({ server }) => server.writer.abort()],
      ["with the reader's side", {}, ({ client }) => client.writer.close()],
      ["with a break of the reader's side", {}, ({ client }) => client.reader.cancel()],
    ] as [string, Partial<ReadApiOptions>, (rig: ReturnType<typeof apiOf>) => unknown][]
  ) {
    it(`ends ${what}, and frees its reader`, async () => {
      const rig = apiOf({ clusterTokens: true }, { maxRequests: 1, ...options });
      const { api, request, client, server, clock } = rig;
      await request();
      const { Authorization } = HEADERS;
      const read = async () => {
        const response = await api.request("/api/v1/events", { headers: { Authorization } });
        await response.body?.cancel();
        return response.status;
      };
      assert.equal(await read(), 429);
      if (what.includes("reader's side") && what.includes("break")) {
        void server.writer.write(bytes("x")).catch(() => {});
      }
      void end(rig);
      await clock.advance(0);
      if (/lifetime|signal|endWatches/.test(what)) assert.equal(clock.pendingTimers, 0);
      // A side that ended in good order has some time.
      await clock.advance(30_000);
      for (const { reader, writer } of [client, server]) {
        await Promise.allSettled([reader.closed, writer.closed]);
      }
      await clock.advance(0);
      assert.equal(await read(), what.includes("credential") ? 401 : 200);
      assert.equal(clock.pendingTimers, 0);
    });
  }

  it("refuses what is no function", () => {
    assert.throws(() => apiOf({ upgrade: true as unknown as OpenUpgrade }), /`upgrade` must be a function/);
  });
});
