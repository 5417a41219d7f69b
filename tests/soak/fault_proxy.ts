/**
 * A TCP proxy that breaks connections in the ways that networks do.
 *
 * It carries plain bytes and looks into none of them, so TLS passes through. "The client" is the side that
 * connected to it.
 *
 * @module
 */

import type { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Where the proxy leads to. */
export interface FaultProxyOptions {
  readonly host?: string;
  readonly port: number;
}

/** Listens on a free port of 127.0.0.1, and carries each connection to a server. */
export class FaultProxy implements AsyncDisposable {
  /** How many connections there were. */
  accepted = 0;
  /** How many of them were turned away. */
  turnedAway = 0;
  #isTurningAway = false;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #connections = new Set<ProxiedConnection>();
  #port = 0;
  #server: Server | undefined;

  private constructor({ host = "127.0.0.1", port }: FaultProxyOptions) {
    this.#target = { host, port };
  }

  /** Starts one; it listens when the promise resolves. */
  static async start(target: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await proxy.accept();
    return proxy;
  }

  /** The port it listens on; stays the same. */
  get port(): number {
    return this.#port;
  }

  /** The connections that are open, oldest first. */
  get connections(): ProxiedConnection[] {
    return [...this.#connections];
  }

  /** Whether new connections are refused. */
  get isRefusing(): boolean {
    return this.#server === undefined;
  }

  /** Stops listening: new connections are refused, those that are open stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Accepts new connections from now on and resets them at once, or no longer does that. */
  turnAway(isTurningAway: boolean): void {
    this.#isTurningAway = isTurningAway;
  }

  /** Listens again. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#carry(client));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Ends what any connection suffers: black holes and delays. What is cut stays cut. */
  heal(): void {
    for (const connection of this.#connections) connection.heal();
  }

  /** Cuts all connections and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.refuse();
    const ended = [...this.#connections].map(({ closed }) => closed);
    for (const connection of this.#connections) connection.cut();
    await Promise.all(ended);
  }

  #carry(client: Socket): void {
    this.accepted++;
    if (this.#isTurningAway) {
      this.turnedAway++;
      client.on("error", () => {});
      return reset(client);
    }
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const connection = new ProxiedConnection(this.accepted, client, server);
    this.#connections.add(connection);
    connection.closed.then(() => this.#connections.delete(connection));
  }
}

/** One connection through the proxy, and what can be done to it. */
export class ProxiedConnection {
  /** Counts from 1. */
  readonly id: number;
  /** Resolves when both sides are closed. */
  readonly closed: Promise<void>;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #toClient: Pipe;
  readonly #toServer: Pipe;
  #isHeld = false;
  #hasLostServer = false;

  constructor(id: number, client: Socket, server: Socket) {
    this.id = id;
    this.#client = client;
    this.#server = server;
    this.#toClient = new Pipe(server, client, () => this.cut());
    this.#toServer = new Pipe(client, server, () => this.cut());
    for (const socket of [client, server]) socket.on("error", () => {}); // "close" follows, and says so
    const clientClosed = new Promise<void>((resolve) => client.once("close", () => resolve()));
    const serverClosed = new Promise<boolean>((resolve) => server.once("close", resolve));
    this.closed = Promise.all([clientClosed, serverClosed]).then(() => {
      this.#toClient.clear();
      this.#toServer.clear();
    });
    clientClosed.then(() => reset(server));
    serverClosed.then((hadError) => {
      if (!hadError) return; // its end went through the pipe, in its place
      this.#hasLostServer = true;
      if (!this.#isHeld) reset(client);
    });
  }

  /** Bytes the client was sent. */
  get bytesToClient(): number {
    return this.#toClient.written;
  }

  /** Bytes the server was sent. */
  get bytesToServer(): number {
    return this.#toServer.written;
  }

  /** Resets both sides, now. */
  cut(): void {
    reset(this.#client);
    reset(this.#server);
  }

  /** Resets both sides when the client was sent so many more bytes. */
  cutAfter(bytes: number): void {
    this.#toClient.cutAfter(bytes);
  }

  /** Sends the client no more than so many bytes of the next chunk, never all of it, and then cuts. */
  truncate(bytes: number): void {
    this.#toClient.truncateNext(bytes);
  }

  /** Ends the stream to the client, and drops what the server sends; the client may continue to send. */
  halfClose(): void {
    this.#toClient.drop();
    this.#client.end();
  }

  /** Delays each chunk from now on, in both directions; 0 for no delay. */
  delay(ms: number): void {
    this.#toClient.delay(ms);
    this.#toServer.delay(ms);
  }

  /**
   * Forwards nothing, not even the server's end, while both sides stay open; `heal` delivers what was held.
   */
  blackHole(): void {
    this.#isHeld = true;
    this.#toClient.hold(true);
    this.#toServer.hold(true);
  }

  /**
   * Ends a black hole and a delay. As TCP would, it delivers everything
   * late, in order; or breaks if the server has ended.
   */
  heal(): void {
    this.#isHeld = false;
    this.delay(0);
    this.#toServer.hold(false);
    this.#toClient.hold(false);
    if (this.#hasLostServer) reset(this.#client);
  }
}

/** A chunk on its way; without bytes it is the end. */
interface Held {
  readonly chunk: Buffer | undefined;
  readonly dueMs: number;
}

// A peer that is not read stops being read from.
const MAX_HELD_BYTES = 16 * 2 ** 20;

/** One direction of a connection. */
class Pipe {
  written = 0;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #cut: () => void;
  readonly #held: Held[] = [];
  #heldBytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delayMs = 0;
  #isHolding = false;
  #isDropping = false;
  #bytesLeft = Infinity;
  #nextBytes = Infinity;

  constructor(from: Socket, to: Socket, cut: () => void) {
    this.#from = from;
    this.#to = to;
    this.#cut = cut;
    from.on("data", (chunk: Buffer) => this.#receive(chunk));
    from.on("end", () => this.#receive(undefined));
    to.on("drain", () => this.#resume());
  }

  cutAfter(bytes: number): void {
    this.#bytesLeft = bytes;
    if (bytes <= 0) this.#cut();
  }

  truncateNext(bytes: number): void {
    this.#nextBytes = bytes;
  }

  drop(): void {
    this.#isDropping = true;
    this.clear();
  }

  delay(ms: number): void {
    this.#delayMs = ms;
    if (ms > 0) return;
    for (let i = 0; i < this.#held.length; i++) this.#held[i] = { ...this.#held[i], dueMs: 0 };
    this.#flush();
  }

  hold(isHolding: boolean): void {
    this.#isHolding = isHolding;
    if (!isHolding) this.#flush();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#held.length = 0;
    this.#heldBytes = 0;
  }

  #receive(chunk: Buffer | undefined): void {
    if (this.#isDropping || this.#to.destroyed) return;
    this.#held.push({ chunk, dueMs: this.#delayMs === 0 ? 0 : performance.now() + this.#delayMs });
    this.#heldBytes += chunk?.length ?? 0;
    this.#flush();
    if (this.#heldBytes > MAX_HELD_BYTES) this.#from.pause();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    while (!this.#isHolding && this.#held.length > 0) {
      const waitMs = this.#held[0].dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#flush(), waitMs);
        return;
      }
      const { chunk } = this.#held.shift()!;
      this.#heldBytes -= chunk?.length ?? 0;
      if (!this.#write(chunk)) return this.clear();
    }
    this.#resume();
  }

  /** False if that was the last. */
  #write(chunk: Buffer | undefined): boolean {
    const to = this.#to;
    if (to.destroyed || to.writableEnded) return false;
    if (chunk === undefined) {
      to.end();
      return false;
    }
    const allowed = Math.min(
      this.#bytesLeft,
      this.#nextBytes < Infinity ? chunk.length - 1 : Infinity,
      this.#nextBytes,
    );
    const isLast = this.#nextBytes < Infinity || chunk.length >= this.#bytesLeft;
    const part = isLast ? chunk.subarray(0, allowed) : chunk;
    this.written += part.length;
    if (isLast) {
      this.#isDropping = true;
      to.write(part, () => this.#cut());
      return false;
    }
    this.#bytesLeft -= part.length;
    if (!to.write(part)) this.#from.pause();
    return true;
  }

  #resume(): void {
    if (this.#heldBytes <= MAX_HELD_BYTES && !this.#to.writableNeedDrain) this.#from.resume();
  }
}

function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
