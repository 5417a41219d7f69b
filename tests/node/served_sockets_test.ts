import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, it } from "node:test";
import { ServedSockets } from "../../src/node/serving/served_sockets.ts";
import { realClock } from "../../src/util/clock.ts";

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const HANDSHAKE = { upgrade: "WebSocket", "sec-websocket-key": KEY, "sec-websocket-version": "13" };

/** What a test knows of the package `ws`, which is not there. */
class FakeWebSockets {
  static options: Record<string, unknown> = {};
  static opened: EventEmitter | undefined;

  constructor(options: Record<string, unknown>) {
    FakeWebSockets.options = options;
  }

  handleUpgrade(_: unknown, __: unknown, ___: unknown, onOpen: (socket: never) => void): void {
    if (FakeWebSockets.opened !== undefined) onOpen(FakeWebSockets.opened as never);
  }
}

const newSockets = () => new ServedSockets(FakeWebSockets as never);
const incoming = (headers: Record<string, string>, method = "GET") =>
  ({ method, headers }) as unknown as IncomingMessage;

describe("ServedSockets.serverOptions", () => {
  it("have requests upgraded that have the whole handshake, and no others", () => {
    const { shouldUpgradeCallback } = newSockets().serverOptions;
    const wants = (headers: Record<string, string>, method?: string) =>
      shouldUpgradeCallback(incoming({ ...HANDSHAKE, ...headers }, method));
    assert.equal(wants({}), true);
    assert.equal(wants({ "content-length": "0" }), true);
    for (
      const headers of [
        { upgrade: "h2c" },
        { "sec-websocket-key": "short" },
        { "sec-websocket-version": "8" },
        { "content-length": "1" },
        { "transfer-encoding": "chunked" },
      ]
    ) {
      assert.equal(wants(headers as unknown as Record<string, string>), false, JSON.stringify(headers));
    }
    assert.equal(wants({}, "POST"), false);
    for (const name of Object.keys(HANDSHAKE)) {
      const headers: Record<string, string> = { ...HANDSHAKE };
      delete headers[name];
      assert.equal(shouldUpgradeCallback(incoming(headers)), false, name);
    }
  });
});

describe("ServedSockets, by the options of ws,", () => {
  it("limit what a client may send, keep no list of clients, and choose the protocol that was accepted", () => {
    newSockets();
    const { handleProtocols, ...options } = FakeWebSockets.options;
    assert.deepEqual(options, {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: 1_024,
      maxFragments: 16,
      closeTimeout: 5_000,
    });
    assert.equal((handleProtocols as (_: Set<string>, of: unknown) => unknown)(new Set(["a"]), {}), false);
  });
});

/** An upgrade that reaches the server, as far as a test sees it. */
function upgraded(headers: Record<string, string>) {
  const sockets = newSockets();
  const server = new EventEmitter();
  sockets.serve(server as never);
  const socket = Object.assign(new EventEmitter(), {
    bytesWritten: 10,
    writable: true,
    ended: [] as string[],
    isDestroyed: false,
    _httpMessage: null as unknown,
    onSent: () => {},
    end(this: { ended: string[]; onSent: () => void }, text?: unknown, onSent = () => {}) {
      this.ended.push(typeof text === "string" ? text.split("\r\n")[0] : "");
      this.onSent = onSent;
    },
    destroy(this: { isDestroyed: boolean }) {
      this.isDestroyed = true;
    },
    cork() {},
    uncork() {},
    write: () => true,
  });
  const requests: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }[] = [];
  server.on("request", (incoming, outgoing) => void requests.push({ incoming, outgoing }));
  server.emit(
    "upgrade",
    Object.assign(incoming(headers), { httpVersionMajor: 1, httpVersionMinor: 1 }),
    socket,
    [],
  );
  return { sockets, socket, requests };
}

describe("ServedSockets.serve", () => {
  it("reads no body behind which a connection would be upgraded", () => {
    const { socket, requests } = upgraded({ ...HANDSHAKE, "content-length": "5" });
    assert.deepEqual([requests.length, socket.ended], [0, ["HTTP/1.1 400 Bad Request"]]);
    assert.equal(socket.isDestroyed, false);
    socket.onSent();
    assert.equal(socket.isDestroyed, true);
  });

  it("closes a connection that is refused and breaks off, which ends no process", () => {
    const { socket } = upgraded({ ...HANDSHAKE, "content-length": "5" });
    socket.emit("error", new Error("reset"));
    assert.equal(socket.isDestroyed, true);
  });
});

describe("ServedSockets.serve, a connection", () => {
  it("closes with what its client breaks off, which ends no process", () => {
    const { socket } = upgraded(HANDSHAKE);
    socket.emit("error", new Error("reset"));
    assert.equal(socket.isDestroyed, true);
  });

  it("says in an answer that it closes, and is no part of one once a WebSocket is accepted", () => {
    const { sockets, socket, requests: [request] } = upgraded(HANDSHAKE);
    assert.equal(request.outgoing.shouldKeepAlive, false);
    assert.equal(socket._httpMessage, request.outgoing);
    sockets.envOf(request).acceptWebSocket!(undefined);
    assert.deepEqual([socket._httpMessage, request.outgoing.socket], [null, null]);
  });
});

describe("ServedSockets.envOf", () => {
  it("has no WebSocket for a request that the server has not upgraded", () => {
    const { sockets, requests: [{ outgoing }] } = upgraded(HANDSHAKE);
    assert.equal("acceptWebSocket" in sockets.envOf({ incoming: incoming(HANDSHAKE), outgoing }), false);
  });

  it("keeps a client that pings for hours, a hundred times in ten seconds at most", () => {
    const { monotonicNow } = realClock;
    let nowMs = 1_000;
    Object.assign(realClock, { monotonicNow: () => nowMs });
    try {
      const { sockets, requests: [request] } = upgraded(HANDSHAKE);
      let isTerminated = false;
      FakeWebSockets.opened = Object.assign(new EventEmitter(), { terminate: () => isTerminated = true });
      sockets.envOf(request).acceptWebSocket!(undefined);
      for (let i = 0; i < 2_000; i++) {
        nowMs += 5_000;
        FakeWebSockets.opened.emit("ping");
      }
      assert.equal(isTerminated, false);
      for (let i = 0; i < 200; i++) FakeWebSockets.opened.emit("ping");
      assert.equal(isTerminated, true);
    } finally {
      FakeWebSockets.opened = undefined;
      Object.assign(realClock, { monotonicNow });
    }
  });

  it("has a WebSocket only for a request that wants one, counts its bytes, and ends a client that pings on and on", async () => {
    const other = upgraded({ ...HANDSHAKE, upgrade: "h2c" });
    assert.equal("acceptWebSocket" in other.sockets.envOf(other.requests[0]), false);
    const { sockets, socket, requests: [request] } = upgraded(HANDSHAKE);
    const env = sockets.envOf(request);
    assert.equal(typeof env.acceptWebSocket, "function");
    let isTerminated = false;
    FakeWebSockets.opened = Object.assign(new EventEmitter(), { terminate: () => isTerminated = true });
    const accepted = env.acceptWebSocket!("watch");
    assert.equal(accepted?.socket as unknown, FakeWebSockets.opened);
    const chosen = FakeWebSockets.options.handleProtocols as (_: Set<string>, of: unknown) => unknown;
    assert.equal(chosen(new Set(), request.incoming), "watch");
    const { accepted: connection } = env as unknown as {
      accepted: { readonly sentBytes: number; readonly closed: Promise<void> };
    };
    socket.bytesWritten = 17;
    assert.equal(connection.sentBytes, 7);
    for (let i = 0; i < 100; i++) FakeWebSockets.opened.emit(i % 2 === 0 ? "ping" : "pong");
    assert.equal(isTerminated, false);
    FakeWebSockets.opened.emit("ping");
    assert.equal(isTerminated, true);
    socket.emit("close");
    await connection.closed;
    FakeWebSockets.opened = undefined;
    const left = upgraded(HANDSHAKE);
    assert.equal(left.sockets.envOf(left.requests[0]).acceptWebSocket!(undefined), undefined);
  });
});
