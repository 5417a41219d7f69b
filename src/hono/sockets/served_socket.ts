/**
 * WebSockets over the connections that a server hands over.
 * https://www.rfc-editor.org/rfc/rfc6455
 * @module
 */

import { type Clock, realClock } from "../../util/clock.ts";
import type { ServedUpgrade, UpgradeEnv } from "../../util/upgrade.ts";
import { concatenated } from "../../util/concatenated.ts";
import type { ServerWebSocket, UpgradeWebSocket } from "./web_socket.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Accepts WebSockets on Node, Bun and Deno, behind `serveFetch` of `@listwatch/cache/node` with `upgrades: true`, for the option
 * `upgradeWebSocket` of {@linkcode readApi}. What clients send is not read, as by an API server.
 *
 * @example
 * ```ts
 * import { readApi, upgradeServed } from "@listwatch/cache/hono";
 * import { serveFetch } from "@listwatch/cache/node";
 * const api = readApi({ resources: [], allowAnonymous: true, upgradeWebSocket: upgradeServed });
 * const served = await serveFetch(api.fetch, { upgrades: true, signal: AbortSignal.timeout(10) });
 * await served.finished;
 * ```
 *
 * @category HTTP adapter
 */
export const upgradeServed: UpgradeWebSocket = async (_, { protocol }, c) => {
  const { upgrade } = (c.env ?? {}) as UpgradeEnv;
  const key = c.req.header("Sec-WebSocket-Key") ?? "";
  if (upgrade === undefined || !isKey(key) || c.req.header("Sec-WebSocket-Version") !== "13") {
    return undefined;
  }
  const digest = await crypto.subtle.digest("SHA-1", encoder.encode(key + GUID));
  const headers: [string, string][] = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", btoa(String.fromCharCode(...new Uint8Array(digest)))],
  ];
  if (protocol !== undefined) headers.push(["Sec-WebSocket-Protocol", protocol]);
  // The server has answered already.
  return { response: new Response(null), socket: new ServedSocket(upgrade(headers)) };
};

const encoder = new TextEncoder();

/** 16 bytes in base64. */
function isKey(key: string): boolean {
  return /^[A-Za-z0-9+/]{22}==$/.test(key);
}

const [TEXT, CLOSE, PING, PONG] = [1, 8, 9, 10];
const [GOING_AWAY, PROTOCOL_ERROR, TOO_BIG] = [1_001, 1_002, 1_009];
// Clients have nothing to say: https://github.com/kubernetes/apimachinery/blob/master/pkg/util/httpstream/wsstream/conn.go (IgnoreReceives)
const MAX_RECEIVED_BYTES = 64 * 1024;
// How long the client may take to close its side.
const CLOSE_TIMEOUT_MS = 5_000;

/** The server's side of a WebSocket. */
export class ServedSocket extends EventTarget implements ServerWebSocket {
  readyState = 1;
  bufferedAmount = 0;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #clock: Clock;
  #received: Uint8Array = new Uint8Array(0);
  #receivedBytes = 0;
  #isPongWaiting = false;
  /** The last ping since the pong that waits to be sent. */
  #lastPing: Uint8Array | undefined;

  /** @param connection After the 101 response. */
  constructor(
    { readable, writable }: Pick<ServedUpgrade, "readable" | "writable">,
    clock: Clock = realClock,
  ) {
    super();
    this.#clock = clock;
    this.#reader = readable.getReader();
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => this.#end());
    this.#receive();
  }

  send(text: string): void {
    if (this.readyState !== 1) throw new Error("Cannot send: the WebSocket is not open");
    this.#write(TEXT, encoder.encode(text));
  }

  close(code: number = GOING_AWAY): void {
    if (this.readyState !== 1) return;
    this.readyState = 2;
    this.#received = new Uint8Array(0);
    this.#write(CLOSE, Uint8Array.of(code >> 8, code & 0xff));
    this.#writer.close().catch(() => {});
    this.#clock.setTimeout(() => this.#end(), CLOSE_TIMEOUT_MS);
  }

  async #write(opcode: number, payload: Uint8Array): Promise<void> {
    const frame = frameOf(opcode, payload);
    this.bufferedAmount += frame.byteLength;
    try {
      await this.#writer.write(frame);
      this.bufferedAmount -= frame.byteLength;
    } catch {
      this.#end();
    }
  }

  /**
   * Answers a ping. At most one pong waits for a client that does not read; then it receives that of its last ping:
   * https://www.rfc-editor.org/rfc/rfc6455#section-5.5.3
   */
  async #pong(payload: Uint8Array): Promise<void> {
    this.#lastPing = payload;
    if (this.#isPongWaiting) return;
    this.#isPongWaiting = true;
    while (this.#lastPing !== undefined && this.readyState === 1) {
      const last = this.#lastPing;
      this.#lastPing = undefined;
      await this.#write(PONG, last);
    }
    this.#isPongWaiting = false;
  }

  async #receive(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        // After the close frame nothing counts but the end.
        if (this.readyState !== 1) continue;
        const whole = this.#received.byteLength + value.byteLength;
        this.#received = this.#received.byteLength === 0
          ? value
          : concatenated([this.#received, value], whole);
        this.#readFrames();
      }
    } catch {
      // The client has disconnected.
    }
    this.#end();
  }

  #readFrames(): void {
    for (let frame = readFrame(this.#received); frame !== undefined; frame = readFrame(this.#received)) {
      if (frame === "wrong") return this.close(PROTOCOL_ERROR);
      this.#received = this.#received.subarray(frame.end);
      if (frame.opcode === CLOSE) return this.close(frame.code);
      if (frame.opcode === PING) this.#pong(frame.payload);
      this.#receivedBytes += frame.opcode === PING || frame.opcode === PONG ? 0 : frame.payload.byteLength;
      if (this.#receivedBytes > MAX_RECEIVED_BYTES) return this.close(TOO_BIG);
    }
    if (this.#received.byteLength > MAX_RECEIVED_BYTES) this.close(TOO_BIG);
  }

  /** Both directions have ended, or are ended. */
  #end(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.#reader.cancel().catch(() => {});
    this.#writer.abort().catch(() => {});
    this.dispatchEvent(new Event("close"));
  }
}

function frameOf(opcode: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const { byteLength } = payload;
  const lengthBytes = byteLength < 126 ? 0 : byteLength < 0x10000 ? 2 : 8;
  const frame = new Uint8Array(2 + lengthBytes + byteLength);
  const view = new DataView(frame.buffer);
  frame[0] = 0x80 | opcode;
  frame[1] = lengthBytes === 0 ? byteLength : lengthBytes === 2 ? 126 : 127;
  if (lengthBytes === 2) view.setUint16(2, byteLength);
  if (lengthBytes === 8) view.setBigUint64(2, BigInt(byteLength));
  frame.set(payload, 2 + lengthBytes);
  return frame;
}

interface Frame {
  readonly opcode: number;
  readonly payload: Uint8Array;
  /** Of a close frame. */
  readonly code: number;
  /** Where the next one begins. */
  readonly end: number;
}

/** The frame at the beginning; `undefined` if it is not complete. */
function readFrame(bytes: Uint8Array): Frame | "wrong" | undefined {
  if (bytes.byteLength < 2) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const opcode = bytes[0] & 0x0f;
  const short = bytes[1] & 0x7f;
  // No extension was agreed on, and what a client sends is masked.
  const isControl = opcode >= CLOSE;
  if ((bytes[0] & 0x70) !== 0 || (bytes[1] & 0x80) === 0) return "wrong";
  if (isControl && (short > 125 || (bytes[0] & 0x80) === 0)) return "wrong";
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + lengthBytes + 4;
  if (bytes.byteLength < start) return undefined;
  const length = lengthBytes === 0
    ? short
    : lengthBytes === 2
    ? view.getUint16(2)
    : Number(view.getBigUint64(2));
  const end = start + length;
  if (bytes.byteLength < end) return undefined;
  const payload = bytes.slice(start, end);
  for (let i = 0; i < payload.byteLength; i++) payload[i] ^= bytes[start - 4 + (i % 4)];
  const code = opcode === CLOSE && payload.byteLength >= 2 ? (payload[0] << 8) | payload[1] : 1_000;
  return { opcode, payload, code, end };
}
