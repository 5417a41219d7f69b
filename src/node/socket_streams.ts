/**
 * Sockets as web streams.
 * @module
 */

import type { Duplex } from "node:stream";

const BUFFERED_BYTES = 64 * 1024;
// Of a socket that cannot be paused.
const MOST_BUFFERED_BYTES = 16 * 1024 * 1024;

/** Both directions of a socket. */
export interface SocketStreams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** How many bytes were written. */
  readonly sentBytes: number;
  /** Resolves when the socket is closed. */
  readonly closed: Promise<void>;
}

/**
 * Makes the streams. Cancelling or aborting one destroys the socket; closing the writable one sends what was written first.
 *
 * About 64 KiB wait here at most. The TLS sockets of Deno 2.9 read on while they are paused, and then never end: such a
 * socket is destroyed when 16 MiB wait.
 *
 * @param first What was received before.
 */
export function socketStreams(socket: Duplex, first: Uint8Array): SocketStreams {
  const canPause = !("Deno" in globalThis && "encrypted" in socket);
  let sentBytes = 0;
  let isOver = false;
  let fail = (_error: Error) => {};
  const closed = new Promise<void>((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve());
  });
  const readable = new ReadableStream<Uint8Array>({
    start(controller) {
      const finish = (error?: Error) => {
        if (isOver) return;
        isOver = true;
        if (error === undefined) controller.close();
        else controller.error(error);
      };
      if (first.length > 0) controller.enqueue(first);
      socket.on("data", (chunk: Uint8Array) => {
        if (isOver) return;
        controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        const room = controller.desiredSize ?? 0;
        if (canPause && room <= 0) socket.pause();
        if (room < -MOST_BUFFERED_BYTES) {
          socket.destroy(new Error(`the other side has not taken ${MOST_BUFFERED_BYTES} bytes`));
        }
      });
      socket.on("end", () => finish());
      socket.on("error", (error: Error) => finish(error));
      closed.then(() => finish(new Error("the connection was closed")));
      if (canPause) socket.pause();
    },
    pull() {
      socket.resume();
    },
    cancel() {
      isOver = true;
      socket.destroy();
    },
  }, { highWaterMark: BUFFERED_BYTES, size: (chunk) => chunk?.byteLength ?? 0 });
  const writable = new WritableStream<Uint8Array>({
    start(controller) {
      fail = (error) => controller.error(error);
      // Before a write under way ends, which may be never.
      controller.signal.addEventListener("abort", () => socket.destroy());
    },
    write: (chunk) =>
      new Promise<void>((resolve, reject) => {
        sentBytes += chunk.byteLength;
        socket.write(chunk, (error) => error ? reject(error) : resolve());
      }),
    close: () =>
      new Promise<void>((resolve) => {
        closed.then(resolve);
        socket.end(() => resolve());
      }),
  });
  // A write that waits for a socket which is closed may never be answered.
  closed.then(() => fail(new Error("the connection is closed")));
  return {
    readable,
    writable,
    closed,
    get sentBytes() {
      return sentBytes;
    },
  };
}
