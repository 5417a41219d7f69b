/** Reads the bytes of a body in chunks, as each runtime does it best. */

import { concatenated, freeBytes } from "./bytes.ts";

export interface ByteReader {
  /** The next bytes, `undefined` at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** Gives the body up: drops what is not read, ends a pending read, releases the lock. Never throws. */
  cancel(reason?: unknown): void;
}

/**
 * Starts reading a body.
 *
 * A byte stream is read into a buffer of ours that is used again and again. On workerd this is what lets one
 * turn carry many events (its default reader hands out one write of the server at a time), on Deno it saves
 * an allocation of 64 KiB per read. Any other stream, and on Node all, are read in the chunks they come in;
 * on Node each is freed when it was read, as V8 collects its whole heap for memory outside of it.
 */
export function openByteReader(body: ReadableStream<Uint8Array>): ByteReader {
  if (body.locked) throw new TypeError("Cannot read the body: it has another reader");
  let ownsChunks = false;
  try {
    const bytes = body.getReader({ mode: "byob" });
    if (!isNode()) return reading(bytes, bufferReads(bytes));
    bytes.releaseLock();
    ownsChunks = true;
  } catch {
    // it is no byte stream
  }
  const chunks = body.getReader();
  return reading(chunks, chunkReads(chunks, ownsChunks));
}

const BLOCK_BYTES = 16 * 1024;

/**
 * All bytes of a body; `undefined` if there are more than `maxBytes`, or `take` does not take what has come:
 * the rest is cancelled. However small the pieces are, and however many bodies do not come to their end, they
 * take no more memory than their bytes: the blocks are joined at the end.
 */
export async function wholeBody(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  take: (bytes: number) => boolean = () => true,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const bytes = openByteReader(body);
  const blocks: Uint8Array[] = [];
  let length = 0;
  try {
    for (let chunk = await bytes.read(); chunk !== undefined; chunk = await bytes.read()) {
      if (length + chunk.byteLength > maxBytes || !take(chunk.byteLength)) return undefined;
      for (let from = 0; from < chunk.byteLength;) {
        const at = length % BLOCK_BYTES;
        if (at === 0) blocks.push(new Uint8Array(BLOCK_BYTES));
        const part = chunk.subarray(from, from + BLOCK_BYTES - at);
        blocks[blocks.length - 1].set(part, at);
        from += part.byteLength;
        length += part.byteLength;
      }
    }
    return concatenated(blocks.map((block, i) => block.subarray(0, length - i * BLOCK_BYTES)), length);
  } finally {
    bytes.cancel();
  }
}

function isNode(): boolean {
  const { navigator } = globalThis as { navigator?: { userAgent?: string } };
  return navigator?.userAgent?.startsWith("Node.js/") ?? false;
}

function reading(
  reader: ReadableStreamBYOBReader | ReadableStreamDefaultReader<Uint8Array>,
  read: ByteReader["read"],
): ByteReader {
  const cancel = (reason?: unknown) => {
    // Not awaited: a source whose cancel hangs must not hang the reader that leaves the loop.
    reader.cancel(reason).catch(() => {});
    try {
      reader.releaseLock();
    } catch {
      // Runtimes that still follow the old rule refuse while a read is pending; the stream is cancelled
      // nevertheless.
    }
  };
  return { read, cancel };
}

const FIRST_BUFFER_BYTES = 64 * 1024;
const LARGEST_BUFFER_BYTES = 256 * 1024;

/** Reads into one buffer, which grows where reads fill it. */
function bufferReads(reader: ReadableStreamBYOBReader): ByteReader["read"] {
  // Absent while a read has it.
  let buffer: ArrayBuffer | undefined = new ArrayBuffer(FIRST_BUFFER_BYTES);
  return async () => {
    const view = new Uint8Array(buffer ?? new ArrayBuffer(FIRST_BUFFER_BYTES));
    buffer = undefined;
    const { done, value } = await reader.read(view);
    if (value === undefined) return undefined;
    const filled = value.byteLength === value.buffer.byteLength;
    // A read that fills the buffer had more to give; most watches are quiet and stay at the first size.
    buffer = filled && value.buffer.byteLength < LARGEST_BUFFER_BYTES
      ? new ArrayBuffer(value.buffer.byteLength * 2)
      : value.buffer as ArrayBuffer;
    return done ? undefined : value;
  };
}

/** @param ownsChunks Whether a chunk's memory has no other owner: a byte stream takes it from the writer. */
function chunkReads(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  ownsChunks: boolean,
): ByteReader["read"] {
  let last: Uint8Array | undefined;
  return async () => {
    freeBytes(last);
    last = undefined;
    const { done, value } = await reader.read();
    if (done) return undefined;
    if (!ArrayBuffer.isView(value)) {
      throw new TypeError(`Cannot read the body: a chunk is ${typeof value}, not bytes`);
    }
    if (ownsChunks) last = value;
    return value;
  };
}
