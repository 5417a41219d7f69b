import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { silentLogger } from "@listwatch/cache";
import {
  type OpenUpgrade,
  type PassThroughOptions,
  readApi,
  type ReadApiOptions,
} from "@listwatch/cache/hono";
import { createTlsFetch, createTlsUpgrade, serveFetch } from "@listwatch/cache/node";
import { pem } from "./certificates.ts";

const EXEC = "/api/v1/namespaces/shop/pods/web-1/exec?command=cat&stdin=true";
const TOKEN = "Authorization: Bearer of-the-reader";
const WEBSOCKET = [
  TOKEN,
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io",
];
const SPDY = [
  TOKEN,
  "Connection: Upgrade",
  "Upgrade: SPDY/3.1",
  "X-Stream-Protocol-Version: v5.channel.k8s.io",
  "X-Stream-Protocol-Version: v4.channel.k8s.io",
];

/** An API server that upgrades connections, and sends back what it receives. */
class EchoServer implements AsyncDisposable {
  readonly requests: IncomingMessage[] = [];
  readonly sockets = new Set<Duplex>();
  readonly #server: Server;
  /** The number of bytes that were received. */
  received = 0;
  /** What it does with an upgraded connection. */
  use = (socket: Duplex): void => {
    socket.on("data", (chunk) => {
      this.received += chunk.length;
      if (!socket.write(chunk)) {
        socket.pause();
        socket.once("drain", () => socket.resume());
      }
    });
    socket.on("end", () => socket.end());
  };

  constructor() {
    this.#server = createServer({ cert: pem("server.crt"), key: pem("server.key") }, (request, response) => {
      this.requests.push(request);
      request.resume();
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end('{"kind":"Pong"}');
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Uint8Array) => {
      this.requests.push(request);
      this.sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => this.sockets.delete(socket));
      if (request.url!.includes("denied")) {
        const body = '{"kind":"Status","code":403,"message":"pods is forbidden"}';
        socket.end(
          `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
            `X-Secret: x\r\nConnection: close\r\n\r\n${body}`,
        );
        return;
      }
      const protocol = request.headers.upgrade === "websocket"
        ? "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v5.channel.k8s.io"
        : "X-Stream-Protocol-Version: v5.channel.k8s.io";
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n` +
          `${protocol}\r\nX-Secret: x\r\n\r\n`,
      );
      if (head.length > 0) socket.unshift(head);
      this.use(socket);
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    this.#server.closeAllConnections();
    await closed;
  }
}

/** A cache in front of such a server. */
async function serveBefore(
  server: EchoServer,
  { passThrough, isSecure = false, ...options }:
    & Partial<Omit<ReadApiOptions, "passThrough">>
    & { readonly passThrough?: Partial<PassThroughOptions>; readonly isSecure?: boolean } = {},
) {
  const tls = { ca: pem("ca.crt") };
  const api = readApi({
    resources: [],
    allowAnonymous: true,
    logger: silentLogger,
    passThrough: {
      server: server.url,
      fetch: createTlsFetch(tls),
      upgrade: createTlsUpgrade(tls),
      writes: true,
      ...passThrough,
    },
    ...options,
  });
  const stop = new AbortController();
  const served = await serveFetch((request, env) => api.fetch(request, env), {
    signal: stop.signal,
    upgrades: true,
    logger: silentLogger,
    ...(isSecure && { tls: { cert: pem("server.crt"), key: pem("server.key") } }),
  });
  return {
    api,
    port: served.port,
    isSecure,
    stop: async () => {
      stop.abort();
      await served.finished;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await served.finished;
    },
  };
}

/** A connection on which a request was sent. */
class Client {
  readonly socket: Duplex;
  readonly closed: Promise<void>;
  received = "";
  #wake = () => {};

  constructor(
    { port, isSecure }: { readonly port: number; readonly isSecure: boolean },
    text: string,
  ) {
    const at = { host: "127.0.0.1", port };
    const send = () => this.socket.write(text, "latin1");
    this.socket = isSecure ? connectTls({ ...at, ca: pem("ca.crt") }, send) : connect(at, send);
    this.socket.on("data", (chunk: { toString(encoding: string): string }) => {
      this.received += chunk.toString("latin1");
      this.#wake();
    });
    this.socket.on("error", () => {});
    this.socket.on("end", () => this.socket.end());
    this.closed = new Promise((resolve) =>
      this.socket.on("close", () => {
        this.#wake();
        resolve();
      })
    );
  }

  static send(
    at: { readonly port: number; readonly isSecure: boolean },
    lines: readonly string[],
    { method = "GET", path = EXEC, body = "" } = {},
  ): Client {
    return new Client(at, [`${method} ${path} HTTP/1.1`, "Host: localhost", ...lines, "", body].join("\r\n"));
  }

  /** Waits until the text was received. */
  async until(text: string): Promise<string> {
    while (!this.received.includes(text)) {
      assert.ok(!this.socket.destroyed, `closed after ${JSON.stringify(this.received)}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.received;
  }

  get head(): string {
    return this.received.slice(0, this.received.indexOf("\r\n\r\n"));
  }
}

describe("readApi with passThrough.upgrade, served by serveFetch", () => {
  for (const isSecure of [false, true]) {
    for (const [name, method, lines] of [["WebSocket", "GET", WEBSOCKET], ["SPDY", "POST", SPDY]] as const) {
      it(`relays a ${name} connection${isSecure ? " over TLS" : ""}, both ways and byte for byte`, async () => {
        await using server = await new EchoServer().start();
        await using cache = await serveBefore(server, { isSecure });
        const client = Client.send(cache, lines, { method });
        await client.until("\r\n\r\n");
        assert.match(client.head, /^HTTP\/1.1 101 /);
        assert.match(client.head, /\r\nconnection: upgrade(\r\n|$)/i);
        if (name === "SPDY") assert.match(client.head, /\r\nx-stream-protocol-version: v5.channel.k8s.io/i);
        else assert.match(client.head, /\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
        assert.doesNotMatch(client.head, /x-secret/i);
        const bytes = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join("");
        client.socket.write(bytes, "latin1");
        await client.until(bytes);
        // Node ends both directions of a TLS connection together.
        client.socket.write("last", "latin1");
        if (!isSecure) client.socket.end();
        await client.until("last");
        client.socket.end();
        await client.closed;

        const [request] = server.requests;
        assert.equal(request.method, method);
        assert.equal(request.url, EXEC);
        assert.equal(request.headers.authorization, "Bearer of-the-reader");
        assert.equal(request.headers.upgrade, name === "SPDY" ? "SPDY/3.1" : "websocket");
        if (name === "SPDY") {
          const versions = request.rawHeaders.filter((_, i, all) =>
            i % 2 === 1 && /^x-stream-protocol-version$/i.test(all[i - 1])
          );
          assert.deepEqual(versions, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
          assert.equal(request.headers["transfer-encoding"], undefined);
        } else {
          assert.equal(request.headers["sec-websocket-key"], "dGhlIHNhbXBsZSBub25jZQ==");
          assert.equal(request.headers["sec-websocket-protocol"], "v5.channel.k8s.io, v4.channel.k8s.io");
        }
      });
    }
  }

  it("delivers what the server sends last, and then closes both sides", { timeout: 15_000 }, async () => {
    await using server = await new EchoServer().start();
    const last = "z".repeat(3_000_000);
    server.use = (socket) => {
      socket.resume();
      socket.end(last);
    };
    await using cache = await serveBefore(server);
    const client = Client.send(cache, WEBSOCKET);
    await client.closed;
    assert.equal(client.received.length - client.head.length - 4, last.length);
    while (server.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it("sends what came with the request on", { timeout: 15_000 }, async () => {
    await using server = await new EchoServer().start();
    await using cache = await serveBefore(server);
    const client = Client.send(cache, SPDY, { method: "POST", body: "early" });
    await client.until("early");
    client.socket.destroy();
    await client.closed;
    while (server.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it("answers with the API server's refusal, and closes the connection", { timeout: 15_000 }, async () => {
    await using server = await new EchoServer().start();
    await using cache = await serveBefore(server);
    const client = Client.send(cache, WEBSOCKET, { path: "/api/v1/namespaces/denied/pods/web-1/exec" });
    await client.closed;
    assert.match(client.head, /^HTTP\/1.1 403 /);
    assert.doesNotMatch(client.head, /x-secret/i);
    assert.match(client.received, /pods is forbidden/);
  });

  it(
    "is refused without a token, from a page of another origin, and without writes, before the API server receives anything",
    { timeout: 15_000 },
    async () => {
      await using server = await new EchoServer().start();
      await using cache = await serveBefore(server);
      await using reads = await serveBefore(server, { passThrough: { writes: false } });
      const withoutToken = WEBSOCKET.filter((line) => line !== TOKEN);
      const refused: [typeof cache, readonly string[], RegExp][] = [
        [cache, withoutToken, /^HTTP\/1.1 401 /],
        [cache, [...WEBSOCKET, "Origin: https://evil.example"], /^HTTP\/1.1 403 /],
        [reads, WEBSOCKET, /^HTTP\/1.1 405 /],
      ];
      for (const [at, lines, head] of refused) {
        const client = Client.send(at, lines);
        await client.closed;
        assert.match(client.head, head);
        assert.match(client.received, /"kind":"Status"/);
      }
      assert.deepEqual(server.requests, []);
    },
  );

  it(
    "answers other requests with an Upgrade header as if it were not there",
    { timeout: 15_000 },
    async () => {
      await using server = await new EchoServer().start();
      await using cache = await serveBefore(server);
      const h2c = [TOKEN, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"];
      const client = Client.send(cache, h2c, { path: "/api/v1/events" });
      await client.until("Pong");
      assert.match(client.head, /^HTTP\/1.1 200 /);
      client.socket.end();
      await client.closed;
      assert.equal(server.requests[0].headers.upgrade, undefined);
      // A WebSocket of what is not upgraded.
      const health = Client.send(cache, WEBSOCKET, { path: "/livez" });
      await health.closed;
      assert.match(health.head, /^HTTP\/1.1 200 /);
    },
  );

  it("holds little of what a client does not read", { timeout: 15_000 }, async () => {
    await using server = await new EchoServer().start();
    let sent = 0;
    server.use = (socket) => {
      socket.resume();
      const piece = new Uint8Array(64 * 1024);
      const write = () => {
        while (!socket.destroyed && sent < 512 * 1024 * 1024) {
          sent += piece.length;
          if (!socket.write(piece)) return void socket.once("drain", write);
        }
      };
      write();
    };
    await using cache = await serveBefore(server);
    const client = Client.send(cache, WEBSOCKET);
    await client.until("\r\n\r\n");
    client.socket.pause();
    // Until nothing more is taken.
    for (let before = -1; before !== sent;) {
      before = sent;
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve, 4));
    }
    assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes`);
    client.socket.destroy();
    await client.closed;
  });

  it("holds little of what a client sends and the server does not read", { timeout: 15_000 }, async () => {
    for (const isSecure of [false, true]) {
      await using server = await new EchoServer().start();
      const upgrade: OpenUpgrade = () =>
        Promise.resolve({
          headers: new Headers({ Upgrade: "websocket" }),
          readable: new ReadableStream(),
          writable: new WritableStream({ write: () => new Promise(() => {}) }),
        });
      await using cache = await serveBefore(server, { isSecure, passThrough: { upgrade } });
      const client = Client.send(cache, WEBSOCKET);
      await client.until("\r\n\r\n");
      let sent = 0;
      const piece = new Uint8Array(64 * 1024);
      const write = () => {
        while (!client.socket.destroyed && sent < 512 * 1024 * 1024) {
          sent += piece.length;
          if (!client.socket.write(piece)) return void client.socket.once("drain", write);
        }
      };
      write();
      for (let before = -1; before !== sent;) {
        before = sent;
        for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve, 4));
      }
      assert.ok(sent < 128 * 1024 * 1024, `${sent} bytes${isSecure ? " over TLS" : ""}`);
      client.socket.destroy();
      await client.closed;
    }
  });

  it(
    "counts as a reader until it ends, and ends with endWatches and with the server",
    { timeout: 15_000 },
    async () => {
      await using server = await new EchoServer().start();
      await using cache = await serveBefore(server, { maxRequests: 1 });
      const first = Client.send(cache, WEBSOCKET);
      await first.until("\r\n\r\n");
      const second = Client.send(cache, WEBSOCKET);
      await second.closed;
      assert.match(second.head, /^HTTP\/1.1 429 /);
      assert.equal(cache.api.endWatches(), 1);
      await first.closed;
      while (server.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
      const third = Client.send(cache, WEBSOCKET);
      await third.until("HTTP/1.1 101");
      await cache.stop();
      await third.closed;
      while (server.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
    },
  );

  it("is 503 where the API server cannot be reached", { timeout: 15_000 }, async () => {
    const server = await new EchoServer().start();
    await using cache = await serveBefore(server);
    await server[Symbol.asyncDispose]();
    const client = Client.send(cache, WEBSOCKET);
    await client.closed;
    assert.match(client.head, /^HTTP\/1.1 503 /);
  });
});
