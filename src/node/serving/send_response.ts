import type { ServerResponse } from "node:http";
import { freeBytes } from "../../util/bytes.ts";
import { laterTurn } from "../../util/clock.ts";
import { type ByteSink, type PushedBody, pushedBodyOf } from "../../protocol/server_sockets.ts";

// The most bytes that are handed to a socket at a time: a slow client must take them within the time limit.
const MOST_PIECE = 256 * 1024;
// Shorter pieces are left to the garbage collector.
const LEAST_OWNED = 16 * 1024;

/** Sends a response, until its client leaves. */
export async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  const { body, status } = response;
  const pushed = pushedBodyOf(response);
  if (pushed !== undefined) return push(response, pushed, outgoing);
  if (body === null) {
    outgoing.writeHead(status, headersOf(response));
    return void outgoing.end();
  }
  let reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  let isOver = outgoing.destroyed;
  const onClose = () => {
    isOver = true;
    reader.cancel().catch(() => {});
  };
  if (isOver) return onClose();
  outgoing.once("close", onClose);
  const owned: Uint8Array[] = [];
  let isOwner = false;
  const freeSent = () => {
    if (outgoing.writableLength === 0) owned.splice(0).forEach(freeBytes);
  };
  const write = async (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.byteLength && !outgoing.destroyed; at += MOST_PIECE) {
      if (!outgoing.write(bytes.subarray(at, at + MOST_PIECE))) await drained(outgoing);
    }
    if (isOwner) owned.push(bytes);
    freeSent();
  };
  try {
    const later = laterTurn();
    let reading = reader.read();
    let next = await Promise.race([reading, later]);
    const first = next?.value;
    if (first !== undefined) {
      if (first.byteLength >= LEAST_OWNED) {
        reader.releaseLock();
        isOwner = isByteStream(body);
        reader = body.getReader();
      }
      reading = reader.read();
      next = await Promise.race([reading, later]);
    }
    if (isOver) return;
    const headers = headersOf(response);
    if (next?.done) headers["content-length"] ??= String(first?.byteLength ?? 0);
    outgoing.writeHead(status, headers);
    if (first !== undefined) await write(first);
    else if (next === undefined) outgoing.flushHeaders();
    for (next ??= await reading; !next.done; next = await reader.read()) await write(next.value);
    if (isOver) return;
    outgoing.off("close", onClose);
    outgoing.end(freeSent);
  } catch (error) {
    if (isOver) return;
    outgoing.destroy();
    throw error;
  }
}

function headersOf({ headers }: Response): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = Object.fromEntries(headers);
  if ("set-cookie" in all) all["set-cookie"] = headers.getSetCookie();
  return all;
}

/** Resolves when there is room again, or no client. */
function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      outgoing.off("drain", settle);
      outgoing.off("close", settle);
      resolve();
    };
    outgoing.on("drain", settle);
    outgoing.on("close", settle);
  });
}

function push(response: Response, body: PushedBody, outgoing: ServerResponse): void {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  const sink: ByteSink = {
    get queuedBytes() {
      return outgoing.writableLength;
    },
    write: (piece) => outgoing.destroyed || outgoing.write(piece),
    end: () => void outgoing.end(),
    destroy: () => void outgoing.destroy(),
  };
  const user = body.pushTo(sink);
  // The client may have left while the request was answered.
  if (outgoing.destroyed) return user.onGone();
  outgoing.on("drain", () => user.onDrained());
  outgoing.on("close", () => user.onGone());
}

/** Whether the reader owns the chunks: a byte stream takes the buffer of each chunk from its source. */
function isByteStream(stream: ReadableStream<Uint8Array>): boolean {
  try {
    stream.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}
