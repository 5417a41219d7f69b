/**
 * Watches over WebSockets, as kube-apiserver serves them: each event is a message of text.
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/watch.go (HandleWS)
 */

import type { Context } from "hono";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import {
  type ServerWebSocket,
  SOCKET_VERSION,
  type UpgradeWebSocket,
} from "../../protocol/server_sockets.ts";
import type { Reader } from "../request/readers.ts";
import { handshakeProblem, socketProtocolOf } from "../request/cors.ts";
import { TEXT_HEADERS } from "./responses.ts";
import { Utf8Stream } from "./utf8_stream.ts";

export interface SocketWatchOptions {
  readonly clock: Clock;
  readonly bufferBytes: number;
  /** How long the client may take to open the socket, and to read the waiting bytes. */
  readonly writeTimeoutMs: number;
  /** The reader for whom waiting bytes are counted. */
  readonly reader: Pick<Reader, "take" | "give">;
}

const NORMAL = 1_000;
const POLICY_VIOLATION = 1_008;
const TRY_AGAIN_LATER = 1_013;
// A watch's client has nothing to say but the number of messages that it has read.
const MAX_MESSAGE_LENGTH = 1_024;
const SPARE_MESSAGES = 100;
const OPEN = 1;
// No runtime has an event for it that a socket has room again.
const POLL_MS = 50;

/**
 * Answers with a WebSocket that has the events of a watch; with the watch itself where none can be, and with
 * 400 for a wrong handshake, as kube-apiserver.
 */
export async function socketResponse(
  c: Context,
  watch: Response,
  { upgradeWebSocket, ...options }: SocketWatchOptions & { readonly upgradeWebSocket: UpgradeWebSocket },
): Promise<Response> {
  const protocol = socketProtocolOf(c);
  const body = watch.body!;
  const problem = handshakeProblem(c);
  if (problem !== undefined) {
    body.cancel().catch(() => {});
    const headers = { ...TEXT_HEADERS, "Sec-WebSocket-Version": SOCKET_VERSION };
    return new Response(`${problem}\n`, { status: 400, headers });
  }
  try {
    const accepted = await upgradeWebSocket(c.req.raw, { ...(protocol && { protocol }), env: c.env });
    if (accepted === undefined) return watch;
    new SocketWatch(accepted.socket, body, options).run();
    return accepted.response;
  } catch (error) {
    body.cancel().catch(() => {});
    throw error;
  }
}

/** Sends the lines of a watch to a socket, until one of them ends. */
export class SocketWatch {
  readonly #socket: ServerWebSocket;
  readonly #lines: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: SocketWatchOptions;
  readonly #unread: Unread;
  #allowed = SPARE_MESSAGES;
  #isClosed = false;

  constructor(socket: ServerWebSocket, body: ReadableStream<Uint8Array>, options: SocketWatchOptions) {
    this.#socket = socket;
    this.#lines = body.getReader();
    this.#options = options;
    this.#unread = new Unread(socket, options.bufferBytes);
    for (const type of ["close", "error"] as const) socket.addEventListener(type, () => this.#onClose());
    socket.addEventListener("message", (event) => this.#onMessage((event as MessageEvent).data));
  }

  /** Sends until the end; never rejects. */
  async run(): Promise<void> {
    try {
      if (!await this.#opened()) return this.#close(TRY_AGAIN_LATER);
      const decoder = new Utf8Stream();
      let rest = "";
      while (!this.#isClosed) {
        const { done, value } = await this.#lines.read();
        if (done) return this.#close(NORMAL);
        const parts = (rest + decoder.decode(value)).split("\n");
        rest = parts.pop() ?? "";
        for (const line of parts) {
          if (this.#isClosed) return;
          // Each message ends as a line does, as those of kube-apiserver.
          const message = `${line}\n`;
          this.#unread.add(message);
          this.#allowed++;
          this.#socket.send(message);
          if (!this.#unread.isFull) continue;
          const { reader } = this.#options;
          const { amount } = this.#unread;
          const hasDrained = reader.take(amount) && await this.#hasDrained();
          reader.give(amount);
          if (!hasDrained) return this.#close(TRY_AGAIN_LATER);
        }
      }
    } catch {
      this.#close(NORMAL);
    }
  }

  /** Resolves when the socket is open; `false` if it does not open. */
  async #opened(): Promise<boolean> {
    const { clock, writeTimeoutMs } = this.#options;
    if (this.#socket.readyState === OPEN) return true;
    const isOpen = await new Promise<boolean>((resolve) => {
      const timer = clock.setTimeout(() => resolve(false), writeTimeoutMs);
      const settle = (isOpen: boolean) => {
        clock.clearTimeout(timer);
        resolve(isOpen);
      };
      this.#socket.addEventListener("open", () => settle(true));
      this.#socket.addEventListener("close", () => settle(false));
      this.#socket.addEventListener("error", () => settle(false));
    });
    return isOpen && !this.#isClosed;
  }

  /** Waits until there is room; `false` if the client reads nothing for too long. */
  async #hasDrained(): Promise<boolean> {
    const { clock, writeTimeoutMs } = this.#options;
    let least = this.#unread.amount;
    let sinceMs = monotonicNow(clock);
    while (this.#unread.isFull && !this.#isClosed) {
      if (!this.#unread.canDrain) return false;
      if (monotonicNow(clock) - sinceMs >= writeTimeoutMs) return false;
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, POLL_MS));
      if (this.#unread.amount < least) {
        least = this.#unread.amount;
        sinceMs = monotonicNow(clock);
      }
    }
    return true;
  }

  /** The runtime has read it already; a client that sends many, or much, is closed. */
  #onMessage(data: unknown): void {
    if (this.#isClosed) return;
    // The size of a text, of bytes, or of a Blob.
    const { length = 0, byteLength = length, size = byteLength } = Object(data);
    this.#allowed--;
    if (this.#allowed < 0 || size > MAX_MESSAGE_LENGTH) return this.#close(POLICY_VIOLATION);
    this.#unread.onMessage(data);
  }

  #close(code: number): void {
    if (this.#isClosed) return;
    this.#onClose();
    try {
      this.#socket.close(code);
    } catch {
      // The socket is closed already.
    }
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#lines.cancel().catch(() => {});
  }
}

// How many bytes may be unread by a client that never says what it has read.
const SILENT_BYTES = 16 * 1024 * 1024;
// How many bytes may be unread by a client that says it regularly.
const SPOKEN_BYTES = 1024 * 1024;

/**
 * Counts what a client has not read: by what waits in the socket, or in a runtime that does not say so, by
 * the number of messages that the client says it has read.
 */
export class Unread {
  readonly #socket: ServerWebSocket;
  readonly #bufferBytes: number;
  /** The lengths of the messages that the client has not confirmed. */
  readonly #lengths = new Deque<number>();
  #confirmed = 0;
  #characters = 0;
  #hasSpoken = false;

  /** @param bufferBytes How many bytes may wait in a socket that says how many do. */
  constructor(socket: ServerWebSocket, bufferBytes: number) {
    this.#socket = socket;
    this.#bufferBytes = bufferBytes;
  }

  add(message: string): void {
    if (this.#socket.bufferedAmount !== undefined) return;
    this.#lengths.push(message.length);
    this.#characters += message.length;
  }

  get amount(): number {
    return this.#socket.bufferedAmount ?? this.#characters;
  }

  get isFull(): boolean {
    const { bufferedAmount } = this.#socket;
    if (bufferedAmount !== undefined) return bufferedAmount >= this.#bufferBytes;
    return this.#characters >= (this.#hasSpoken ? Math.max(SPOKEN_BYTES, this.#bufferBytes) : SILENT_BYTES);
  }

  /** Whether waiting can help: the runtime or the client says when there is room. */
  get canDrain(): boolean {
    return this.#hasSpoken || this.#socket.bufferedAmount !== undefined;
  }

  /** The client has said something: perhaps how many messages it has read. */
  onMessage(data: unknown): void {
    if (this.#socket.bufferedAmount !== undefined) return;
    if (typeof data !== "string" || !/^[1-9][0-9]{0,14}$/.test(data)) return;
    const count = Number(data);
    if (count > this.#confirmed + this.#lengths.length) return;
    this.#hasSpoken = true;
    for (; this.#confirmed < count; this.#confirmed++) this.#characters -= this.#lengths.shift()!;
  }
}
