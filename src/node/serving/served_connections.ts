import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { freeBytes } from "../../util/bytes.ts";
import { laterTurn, letNetworkThrough, realClock, type TimerHandle } from "../../util/clock.ts";
import { SharedTurns } from "../../util/shared_turns.ts";
import { arrived, UNITS_PER_MS } from "../../util/turns.ts";

export interface ServedConnectionsOptions {
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** How long the rest of a request may take once it is answered. */
  readonly requestTimeoutMs: number;
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
  /** How many bytes the socket had taken when a look last found more than before. */
  sentBytes: number;
  /** How many looks have found no more since; a clock would count a suspension of this process. */
  unreadLooks: number;
}

// Clients wait for each answer, or send a few requests ahead.
const MOST_WAITING = 8;

// The API server has no limit of the number, but of the bytes (1 MiB); here both are limited, as each header
// costs time. To go through the names of some headers, Deno takes the square of their number.
const MOST_HEADERS = 1_000;
const MOST_NAMES = 100;

// The cost of answering a request, until the answer waits for something, or for turns of its own.
const REQUEST_UNITS = UNITS_PER_MS / 4;

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
 * - Connections take turns, and so do their addresses: a turn of the event loop starts only some of the
 *   requests that have come. Those for the server's health have turns of their own.
 * - A body in tiny chunks closes the connection: each takes as
 *   long, and nearly as much memory, as a large one.
 * - No header is dropped: too many of them are 431. By default, servers leave out what comes after the first
 *   thousand or so, on which the meaning of the others may depend.
 * - A body that is still being sent after the answer is read, for a time.
 * - CONNECT is 405. By default, servers close the connection without an answer.
 * - A response, of whatever kind, that waits in a socket which takes nothing of it breaks off after
 *   `writeTimeoutMs`.
 */
export class ServedConnections {
  readonly #options: ServedConnectionsOptions;
  /** Also those that have sent nothing yet. */
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Map<Socket, Connection>();
  readonly #turns = new SharedTurns();
  readonly #healthTurns = new SharedTurns();
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
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("connection", arrived);
    server.on("connection", parseInParts);
    letNetworkThrough();
    server.on("request", (incoming, outgoing) => this.#accept(incoming, outgoing));
    server.on("connect", (_, socket: Socket) => {
      // Behind another request, it would be taken for the answer to that.
      if (this.#connections.get(socket)?.current !== undefined) return void socket.destroy();
      refuseSocket(
        socket,
        "405 Method Not Allowed",
        "Cannot connect to another host: this server is no proxy",
      );
    });
  }

  /** Closes each connection after the answer to its present request. */
  async finish(limitMs: number): Promise<void> {
    this.#isClosing = true;
    for (const { current } of this.#connections.values()) {
      if (current !== undefined && !current[1].headersSent) current[1].shouldKeepAlive = false;
    }
    if (this.#answering === 0) return;
    await new Promise<void>((resolve) => {
      const timer = realClock.setTimeout(resolve, limitMs);
      const before = this.#onQuiet; // of a stop with more time
      this.#onQuiet = () => {
        realClock.clearTimeout(timer);
        resolve();
        before();
      };
    });
  }

  /** Closes what is still open: Deno's servers would wait for clients over TLS that have sent nothing. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
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
      unreadLooks: 0,
    };
    this.#connections.set(socket, connection);
    socket.once("close", () => {
      this.#connections.delete(socket);
      const outgoing = connection.current?.[1];
      this.#end(connection);
      // Servers close no response that waits behind another one: behind their own 400 or 417, for one.
      if (outgoing?.socket !== null) return;
      outgoing.destroy();
      outgoing.emit("close");
    });
    return connection;
  }

  #answer(connection: Connection, exchange: Exchange): void {
    const [incoming, outgoing] = exchange;
    connection.current = exchange;
    this.#answering++;
    connection.unreadLooks = -1; // the first one may come at once
    this.#look();
    outgoing.once("close", () => {
      if ("Deno" in globalThis && !incoming.complete && !incoming.socket.destroyed) this.#skipBody(incoming);
      this.#answered(connection, incoming.socket);
    });
    if (this.#isClosing) outgoing.shouldKeepAlive = false;
    const turns = HEALTH.test(incoming.url ?? "") ? this.#healthTurns : this.#turns;
    void turns.next(incoming.socket.remoteAddress).then(() => {
      // The client may have left.
      if (connection.current !== exchange) return;
      turns.spend(REQUEST_UNITS);
      this.#start(exchange);
    });
  }

  #start([incoming, outgoing]: Exchange): void {
    const { headers, rawHeaders } = incoming;
    const isTooMany = rawHeaders.length > 2 * MOST_HEADERS || Object.keys(headers).length > MOST_NAMES;
    let hosts = 0;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i].length === 4 && rawHeaders[i].toLowerCase() === "host") hosts++;
    }
    const refusal = isTooMany ? 431 : hosts > 1 ? 400 : undefined;
    if (refusal === undefined) return this.#options.handle(incoming, outgoing);
    outgoing.writeHead(refusal, { Connection: "close" });
    outgoing.end();
  }

  /**
   * Reads what is left of the body of an answered request, for a time, as Node's server does. Deno's would
   * read no more of a long one, and so no next request, and wait for a slow one without a limit.
   */
  #skipBody(incoming: IncomingMessage): void {
    const { socket } = incoming;
    const timer = realClock.setTimeout(() => socket.destroy(), this.#options.requestTimeoutMs);
    const settle = () => {
      realClock.clearTimeout(timer);
      incoming.off("end", settle);
      socket.off("close", settle);
    };
    incoming.once("end", settle);
    socket.once("close", settle);
    incoming.resume();
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
    if (this.#options.writeTimeoutMs === Infinity) return;
    this.#timer ??= realClock.setTimeout(() => {
      this.#timer = undefined;
      for (const [socket, connection] of this.#connections) this.#endUnread(socket, connection);
      if (this.#answering > 0) this.#look();
    }, this.#lookMs);
  }

  get #lookMs(): number {
    return Math.min(LOOK_MS, this.#options.writeTimeoutMs / 4);
  }

  #endUnread(socket: Socket, connection: Connection): void {
    const { current } = connection;
    if (current === undefined) return;
    const [incoming, outgoing] = current;
    const queuedBytes = outgoing.writableLength;
    // Bun does not count what waits on a connection that was upgraded.
    const isSent = queuedBytes === 0 && !("Bun" in globalThis && outgoing.writableNeedDrain);
    const sentBytes = socket.bytesWritten - queuedBytes;
    if (isSent || sentBytes > connection.sentBytes) {
      connection.sentBytes = sentBytes;
      connection.unreadLooks = 0;
    } else if (++connection.unreadLooks * this.#lookMs >= this.#options.writeTimeoutMs) {
      this.#options.onUnread(incoming);
      socket.destroy();
    }
  }
}

/** Answers on a socket that its server has given away, and closes it. */
export function refuseSocket(socket: Duplex, status: string, why: string): void {
  // The server has removed its own listeners.
  socket.on("error", () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${why.length + 1}\r\n\r\n${why}\n`,
    () => socket.destroy(),
  );
}

/**
 * Closes a connection, and parses nothing more of what has arrived: the parsers of Node and Deno would make a
 * request of each of the thousands that fit into one read, or a piece of each of ten thousand chunks.
 */
function cutOff(socket: Socket & { parser?: Parser | null }): void {
  const { parser } = socket;
  if (parser) {
    // As for an upgraded connection, whose further bytes are no requests:
    // https://github.com/nodejs/node/blob/main/lib/_http_common.js
    parser.onIncoming = () => 2;
    if (!("Deno" in globalThis)) takeNoBody(parser, socket);
  }
  socket.destroy();
}

/**
 * Lets Node's parser skip chunks, as it does without a function for them: since 26.12 only those of the next
 * read, for which it looks up its functions again. Deno's has them in parts.
 */
function takeNoBody(parser: Parser, socket: Socket): void {
  const functions = parser as Record<string, unknown>;
  for (const name of Object.keys(parser)) {
    const onBody = functions[name];
    if (typeof onBody !== "function" || onBody.name !== "parserOnBody") continue;
    functions[name] = undefined;
    // The next connection may have the same parser.
    socket.once("close", () => functions[name] = onBody);
  }
}

/** The TLS sockets of Deno 2.9 read on while they are paused, without a bound. */
function canPause(socket: Socket): boolean {
  return !("Deno" in globalThis && "encrypted" in socket);
}

// Bodies come in pieces of kilobytes.
const FEW_PIECES = 1_000;
const LEAST_PIECE = 64;
const MOST_GATHERED = 4 * 1024;

/**
 * Limits how many pieces a body in chunks may have that are tiny on average: each takes as long as a large
 * one.
 */
function limitPieces(incoming: IncomingMessage & { _dumped?: boolean }, onTooMany: () => void): void {
  let pieces = 0;
  let bytes = 0;
  let isUnwanted = false;
  let isCut = false;
  let gathered: Uint8Array | undefined;
  let length = 0;
  // Once the request is answered, the parser would hand over nothing more, and nothing would be counted.
  Object.defineProperty(incoming, "_dumped", { get: () => isCut, set: (is) => (isUnwanted = is) });
  const push = incoming.push.bind(incoming);
  const flush = () => {
    if (gathered === undefined) return;
    const whole = gathered.subarray(0, length);
    gathered = undefined;
    length = 0;
    if (!isUnwanted && !isCut) push(whole);
  };
  const gather = (piece: Uint8Array): boolean => {
    if (gathered === undefined) {
      gathered = new Uint8Array(MOST_GATHERED);
      // Node runs microtasks between the pieces of one read.
      void laterTurn().then(flush);
    }
    // Faster than `set` for so few.
    for (const byte of piece) gathered[length++] = byte;
    if (length > MOST_GATHERED - LEAST_PIECE) flush();
    return incoming.readableLength < incoming.readableHighWaterMark;
  };
  incoming.push = (piece: Uint8Array | null, encoding?: BufferEncoding) => {
    bytes += piece?.length ?? 0;
    if (++pieces > FEW_PIECES && bytes < pieces * LEAST_PIECE) {
      // As of a request whose body is not wanted: the parser hands over no more of it.
      isCut = true;
      gathered = undefined;
      onTooMany();
      return false;
    }
    if (isUnwanted && piece !== null) return true;
    if (piece !== null && piece.length < LEAST_PIECE) return gather(piece);
    flush();
    return push(piece, encoding);
  };
}

/**
 * The parser of Node's server, which Deno has too:
 * https://github.com/nodejs/node/blob/main/lib/_http_common.js
 */
interface Parser {
  onIncoming?: unknown;
  /** Whether what arrives goes to the parser by itself. */
  _consumed?: boolean;
  readonly incoming?: { readonly upgrade?: boolean } | null;
  unconsume?(): void;
  /** Returns how many bytes it has parsed, or what is wrong with them. */
  execute?(bytes: Uint8Array): number | Error;
}

// A part has some hundred chunks of a body at most.
const MOST_PARSED = 4 * 1024;

/**
 * Lets Deno's parser have what arrives in parts, so that nothing more is parsed once the socket is destroyed:
 * a read of 64 KiB may have ten thousand chunks of a body, each of which takes memory until the next garbage
 * collection. So does the read itself, which is given up then. Node's parser takes little of either.
 */
function parseInParts(socket: Socket & { parser?: Parser | null }): void {
  const { parser } = socket;
  if (!("Deno" in globalThis) || typeof parser?.execute !== "function") return;
  if (parser._consumed) {
    parser._consumed = false;
    parser.unconsume?.();
  }
  const { execute } = parser;
  parser.execute = function (bytes) {
    if (socket.parser !== this) return execute.call(this, bytes);
    const { length } = bytes;
    for (let at = 0; at < length; at += MOST_PARSED) {
      const part = bytes.subarray(at, at + MOST_PARSED);
      const parsed = execute.call(this, part);
      if (socket.destroyed) {
        freeBytes(bytes);
        break;
      }
      if (typeof parsed !== "number") return parsed;
      // The following bytes are of another protocol.
      if (parsed < part.length || this.incoming?.upgrade) return at + parsed;
    }
    return length;
  };
  // The next connection may have the same parser.
  socket.once("close", () => delete parser.execute);
}
