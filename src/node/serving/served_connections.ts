/** The connections of a server: whose turn it is on each, and which of them no client reads. */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { letNetworkThrough, monotonicNow, realClock, type TimerHandle } from "../../util/clock.ts";
import { limitPieces } from "./body_pieces.ts";
import { parseInParts } from "./parsed_parts.ts";
import { arrived, TurnQueue, UNITS_PER_MS } from "../../util/turns.ts";

export interface ServedConnectionsOptions {
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** How long a response may wait in a socket that takes nothing of it. */
  readonly writeTimeoutMs: number;
  /** Receives the request of a response that is broken off, as its client reads nothing. */
  readonly onUnread: (incoming: IncomingMessage) => void;
}

type Exchange = readonly [incoming: IncomingMessage, outgoing: ServerResponse];

interface Connection {
  current: Exchange | undefined;
  /** Requests behind it, which the client sent without waiting for the answer. */
  readonly waiting: Exchange[];
  isPaused: boolean;
  /** How many bytes the socket had taken when that was last more than before, and when that was. */
  sentBytes: number;
  sentMs: number;
}

// Clients wait for each answer, or send a few requests ahead.
const MOST_WAITING = 8;

// The API server has no limit of the number, but of the bytes (1 MiB); here both are limited, as each header
// costs time.
const MOST_HEADERS = 1_000;

// What it takes to answer a request, until that waits for something, or for turns of its own.
const REQUEST_UNITS = UNITS_PER_MS / 4;
const TURN_UNITS = 3 * UNITS_PER_MS;

// Asked by who restarts what does not answer in time.
const HEALTH = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;

// The longest time between two looks at what waits.
const LOOK_MS = 5_000;

/**
 * The connections of HTTP servers.
 *
 * - The requests of a connection are answered one after the other. The servers of Node and Deno would start
 *   all that have arrived, which may be thousands. While some wait, nothing more is read; where too many
 *   wait, the connection is closed.
 * - Connections take turns: a turn of the event loop starts only some of the requests that have come. Those
 *   for the server's health have turns of their own.
 * - A body in tiny chunks closes the connection: each takes as
 *   long, and nearly as much memory, as a large one.
 * - No header is dropped: too many of them are 431. By default, servers leave out what comes after the first
 *   thousand or so, on which the meaning of the others may depend.
 * - A response, of whatever kind, that waits in a socket which takes nothing of it breaks off after
 *   `writeTimeoutMs`.
 */
export class ServedConnections {
  readonly #options: ServedConnectionsOptions;
  readonly #connections = new Map<Socket, Connection>();
  readonly #turns = new TurnQueue(TURN_UNITS);
  readonly #healthTurns = new TurnQueue(TURN_UNITS);
  /** Looks for responses that no client reads, while anything is being answered. */
  #timer: TimerHandle | undefined;
  #answering = 0;
  #isClosing = false;
  #onQuiet = () => {};

  constructor(options: ServedConnectionsOptions) {
    this.#options = options;
  }

  serve(server: Server): void {
    server.maxHeadersCount = 0;
    server.on("connection", arrived);
    server.on("connection", parseInParts);
    letNetworkThrough();
    server.on("request", (incoming, outgoing) => this.#accept(incoming, outgoing));
  }

  /** Closes each connection after the answer to its present request. */
  async finish(limitMs: number): Promise<void> {
    this.#isClosing = true;
    for (const { current } of this.#connections.values()) {
      if (current !== undefined && !current[1].headersSent) current[1].shouldKeepAlive = false;
    }
    if (this.#answering === 0 || limitMs === 0) return;
    await new Promise<void>((resolve) => {
      const timer = realClock.setTimeout(resolve, limitMs);
      this.#onQuiet = () => {
        realClock.clearTimeout(timer);
        resolve();
      };
    });
  }

  #accept(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    if (socket.destroyed) return;
    if (incoming.headers["transfer-encoding"] !== undefined) limitPieces(incoming, () => cutOff(socket));
    const connection = this.#connections.get(socket) ?? this.#open(socket);
    if (connection.current === undefined) return this.#answer(connection, [incoming, outgoing]);
    connection.waiting.push([incoming, outgoing]);
    if (connection.waiting.length > MOST_WAITING) return cutOff(socket);
    if (connection.isPaused || !canPause(socket)) return;
    connection.isPaused = true;
    // The parser resumes the socket when it has read a request.
    queueMicrotask(() => connection.isPaused && socket.pause());
  }

  #open(socket: Socket): Connection {
    const connection: Connection = {
      current: undefined,
      waiting: [],
      isPaused: false,
      sentBytes: 0,
      sentMs: monotonicNow(realClock),
    };
    this.#connections.set(socket, connection);
    socket.once("close", () => {
      this.#connections.delete(socket);
      this.#end(connection);
    });
    return connection;
  }

  #answer(connection: Connection, exchange: Exchange): void {
    const [incoming, outgoing] = exchange;
    connection.current = exchange;
    this.#answering++;
    connection.sentMs = monotonicNow(realClock);
    this.#look();
    outgoing.once("close", () => this.#answered(connection, incoming.socket));
    if (this.#isClosing) outgoing.shouldKeepAlive = false;
    const turns = HEALTH.test(incoming.url ?? "") ? this.#healthTurns : this.#turns;
    void turns.next().then(() => {
      // Its client may have left.
      if (connection.current !== exchange) return;
      turns.spend(REQUEST_UNITS);
      this.#start(exchange);
    });
  }

  #start([incoming, outgoing]: Exchange): void {
    if (incoming.rawHeaders.length <= 2 * MOST_HEADERS) return this.#options.handle(incoming, outgoing);
    outgoing.writeHead(431, { Connection: "close" });
    outgoing.end();
  }

  /** The response is sent, or its client has left. */
  #answered(connection: Connection, socket: Socket): void {
    this.#end(connection);
    if (socket.destroyed || !socket.writable) return;
    const next = connection.waiting.shift();
    if (next !== undefined) this.#answer(connection, next);
    else if (this.#isClosing) socket.end();
    if (connection.isPaused && connection.waiting.length === 0) {
      connection.isPaused = false;
      socket.resume();
    }
  }

  #end(connection: Connection): void {
    if (connection.current === undefined) return;
    connection.current = undefined;
    if (--this.#answering > 0) return;
    realClock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#onQuiet();
  }

  /** Looks again and again, until nothing is being answered. */
  #look(): void {
    const { writeTimeoutMs } = this.#options;
    if (writeTimeoutMs === Infinity) return;
    this.#timer ??= realClock.setTimeout(() => {
      this.#timer = undefined;
      for (const [socket, connection] of this.#connections) this.#endUnread(socket, connection);
      if (this.#answering > 0) this.#look();
    }, Math.min(LOOK_MS, writeTimeoutMs / 4));
  }

  #endUnread(socket: Socket, connection: Connection): void {
    const { current } = connection;
    if (current === undefined) return;
    const [incoming, outgoing] = current;
    const queuedBytes = outgoing.writableLength;
    const sentBytes = socket.bytesWritten - queuedBytes;
    const nowMs = monotonicNow(realClock);
    if (queuedBytes === 0 || sentBytes > connection.sentBytes) {
      connection.sentBytes = sentBytes;
      connection.sentMs = nowMs;
    } else if (nowMs - connection.sentMs >= this.#options.writeTimeoutMs) {
      this.#options.onUnread(incoming);
      socket.destroy();
    }
  }
}

/**
 * Closes a connection, and parses nothing more of what has arrived: the parsers of Node and Deno would make a
 * request of each of the thousands that fit into one read.
 */
function cutOff(socket: Socket & { parser?: { onIncoming?: unknown } | null }): void {
  // As for an upgraded connection, whose further bytes are no requests:
  // https://github.com/nodejs/node/blob/main/lib/_http_common.js
  if (socket.parser) socket.parser.onIncoming = () => 2;
  socket.destroy();
}

/** The TLS sockets of Deno 2.9 read on while they are paused, without a bound. */
function canPause(socket: Socket): boolean {
  return !("Deno" in globalThis && "encrypted" in socket);
}
