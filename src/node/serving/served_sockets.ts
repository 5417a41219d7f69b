/** WebSockets of the server of `serveFetch`, by the package `ws`. */

import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { monotonicNow, realClock } from "../../util/clock.ts";
import {
  type AcceptedConnection,
  type AcceptedWebSocket,
  type ServerWebSocket,
  SOCKET_KEY,
  SOCKET_VERSION,
  type WebSocketEnv,
} from "../../protocol/server_sockets.ts";
import { refuseSocket } from "./served_connections.ts";

/** The part of `ws` that is used here: https://github.com/websockets/ws/blob/master/doc/ws.md */
interface WebSockets {
  handleUpgrade(
    incoming: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    onOpen: (socket: WebSocketOfServer) => void,
  ): void;
}

interface WebSocketOfServer extends ServerWebSocket {
  on(event: "ping" | "pong", listener: () => void): void;
  terminate(): void;
}

interface Waiting {
  readonly socket: Duplex;
  readonly head: Uint8Array;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

// A watch's client may say how many messages it has read, and that it is there.
const MAX_MESSAGE_BYTES = 1_024;
const MAX_MESSAGE_PARTS = 16;
const MAX_CONTROL_FRAMES = 100;
const CONTROL_WINDOW_MS = 10_000;
// How long a client may take to close its side.
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Answers requests that want to upgrade their connection as any other request, and lets the `fetch` function
 * accept a WebSocket instead.
 */
export class ServedSockets {
  readonly #webSockets: WebSockets;
  readonly #waiting = new WeakMap<IncomingMessage, Waiting>();
  readonly #protocols = new WeakMap<IncomingMessage, string>();

  /**
   * The option of a server that says which requests come to its `upgrade` listener; Node has it from 24.9 on.
   */
  readonly serverOptions: { readonly shouldUpgradeCallback: (incoming: IncomingMessage) => boolean } = {
    shouldUpgradeCallback: wantsWebSocket,
  };

  constructor(newWebSockets: new (options: object) => WebSockets) {
    this.#webSockets = new newWebSockets({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
      maxFragments: MAX_MESSAGE_PARTS,
      closeTimeout: CLOSE_TIMEOUT_MS,
      handleProtocols: (_: Set<string>, incoming: IncomingMessage) => this.#protocols.get(incoming) ?? false,
    });
  }

  static async load(): Promise<ServedSockets> {
    const { WebSocketServer } = await import("ws");
    return new ServedSockets(WebSocketServer);
  }

  serve(server: Server): void {
    server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Uint8Array) => {
      if (hasBody(incoming)) {
        const why = "Cannot read the body of a request that wants to upgrade its connection";
        return refuseSocket(socket, "400 Bad Request", why);
      }
      // The server has removed its own listeners.
      socket.on("error", () => socket.destroy());
      const outgoing = new ServerResponse(incoming);
      outgoing.shouldKeepAlive = false;
      try {
        outgoing.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]);
      } catch {
        // An earlier request of this connection is still being answered: no client upgrades without waiting
        // for that.
        return void socket.destroy();
      }
      socket.on("drain", () => outgoing.emit("drain"));
      outgoing.on("finish", () => socket.end(() => socket.destroy()));
      this.#waiting.set(incoming, { socket, head });
      server.emit("request", incoming, outgoing);
    });
  }

  /** The environment that the `fetch` function receives with a request. */
  envOf<E extends Exchange>(env: E): E & WebSocketEnv {
    const waiting = this.#waiting.get(env.incoming);
    if (waiting === undefined || !wantsWebSocket(env.incoming)) return env;
    const withSocket: E & { accepted?: AcceptedConnection } & WebSocketEnv = { ...env };
    withSocket.acceptWebSocket = (protocol) => {
      env.outgoing.detachSocket(waiting.socket as Parameters<ServerResponse["detachSocket"]>[0]);
      // As the server does for a response with a socket; on Bun nothing else does it.
      waiting.socket.once("close", () => env.outgoing.emit("close"));
      withSocket.accepted = connectionOf(waiting.socket);
      return this.#accept(env.incoming, waiting, protocol);
    };
    return withSocket;
  }

  /** A request was answered by a response: that ends when its client leaves, as of any other request. */
  answered({ incoming, outgoing }: Exchange): void {
    const waiting = this.#waiting.get(incoming);
    if (waiting === undefined) return;
    const { socket } = waiting;
    // The client may have left meanwhile.
    if (socket.readableEnded || socket.destroyed) return void outgoing.destroy();
    for (const event of ["end", "close"]) socket.once(event, () => outgoing.destroy());
    // Without this, the end is not noticed.
    socket.resume();
  }

  /** The WebSocket; `undefined` for a client that has left. */
  #accept(
    incoming: IncomingMessage,
    { socket, head }: Waiting,
    protocol: string | undefined,
  ): AcceptedWebSocket | undefined {
    if (protocol !== undefined) this.#protocols.set(incoming, protocol);
    let opened: WebSocketOfServer | undefined;
    this.#webSockets.handleUpgrade(incoming, socket, head, (webSocket) => opened = webSocket);
    if (opened === undefined) return undefined;
    limitControlFrames(opened);
    // The server has answered already.
    return { response: new Response(null), socket: opened };
  }
}

/** Disconnects a client that pings without end: each ping is answered. */
function limitControlFrames(webSocket: WebSocketOfServer): void {
  let count = 0;
  let sinceMs = monotonicNow(realClock);
  const onFrame = () => {
    if (++count <= MAX_CONTROL_FRAMES) return;
    const nowMs = monotonicNow(realClock);
    if (nowMs - sinceMs < CONTROL_WINDOW_MS) return webSocket.terminate();
    count = 0;
    sinceMs = nowMs;
  };
  webSocket.on("ping", onFrame);
  webSocket.on("pong", onFrame);
}

function connectionOf(socket: Duplex & { readonly bytesWritten?: number }): AcceptedConnection {
  const { bytesWritten: before = 0 } = socket;
  return {
    closed: new Promise((resolve) => socket.once("close", () => resolve())),
    get sentBytes() {
      return (socket.bytesWritten ?? 0) - before;
    },
  };
}

/** Whether a request wants a WebSocket, in a way that `ws` accepts. */
function wantsWebSocket(incoming: IncomingMessage): boolean {
  const { method, headers } = incoming;
  const { upgrade, "sec-websocket-key": key = "", "sec-websocket-version": version } = headers;
  const isHandshake = upgrade?.toLowerCase() === "websocket" && SOCKET_KEY.test(key) &&
    version === SOCKET_VERSION;
  return isHandshake && method === "GET" && !hasBody(incoming);
}

function hasBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length = "0", "transfer-encoding": encoding } = headers;
  return length !== "0" || encoding !== undefined;
}
