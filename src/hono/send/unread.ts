/** What a client of a WebSocket has not read yet. */

import { Deque } from "../../util/collections.ts";
import type { ServerWebSocket } from "../../util/serving.ts";

// What a client may leave unread that never says what it has read.
const SILENT_BYTES = 16 * 1024 * 1024;
// For one that says it regularly.
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
    if (count <= this.#confirmed || count > this.#confirmed + this.#lengths.length) return;
    this.#hasSpoken = true;
    for (; this.#confirmed < count; this.#confirmed++) this.#characters -= this.#lengths.shift()!;
  }
}
