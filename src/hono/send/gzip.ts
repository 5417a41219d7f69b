/** Compression of large bodies for readers that accept it. */

import { concatenated } from "../../util/bytes.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** The least size of a body that is worth it. */
// As kube-apiserver's defaultGzipThresholdBytes:
// https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/responsewriters/writers.go
export const GZIP_LEAST_BYTES: number = 128 * 1024;

/** The memory of a compressor: zlib's window, hashes and buffers (https://zlib.net/zlib_tech.html). */
export const GZIP_STATE_BYTES: number = 320 * 1024;

/** A response whose body is compressed already. */
export function gzipResponse(body: BodyInit, headers: Readonly<Record<string, string>>): Response {
  // Without it, workerd compresses the body again:
  // https://developers.cloudflare.com/workers/runtime-apis/response/#parameters
  const init: ResponseInit & { readonly encodeBody: "manual" } = {
    headers: { ...headers, "Content-Encoding": "gzip" },
    encodeBody: "manual",
  };
  return new Response(body, init);
}

export async function* gzipChunks(next: () => Promise<Bytes | undefined>): AsyncGenerator<Bytes> {
  const source = new ReadableStream<Bytes>({
    async pull(controller) {
      const chunk = await next();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  }, { highWaterMark: 0 });
  const reader = source.pipeThrough(new CompressionStream("gzip")).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export async function gzipBytes(bytes: Bytes): Promise<Bytes> {
  const compressed = new Response(bytes).body!.pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(compressed).arrayBuffer());
}

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
const MOST_STORED = 0xffff;

/** The first bytes that `CompressionStream` writes: deflate, without a name. */
const METHOD = [0x1f, 0x8b, 8, 0];
/** The whole header: no time, no level, system unknown. */
const HEADER: readonly number[] = [...METHOD, 0, 0, 0, 0, 0, 0xff];

/**
 * A gzip file of one member that can be given a prefix, without compressing its bytes again.
 *
 * Not as two members of one gzip file: browsers and some clients read the first member only. A stored block
 * before the blocks of the known bytes makes one member, whose checksum is computed from those of both parts.
 * https://www.rfc-editor.org/rfc/rfc1951#section-3.2.4, https://www.rfc-editor.org/rfc/rfc1952
 */
export class PrefixableGzip {
  readonly #chunks: readonly Bytes[];
  readonly #checksum: number;
  readonly #length: number;
  /** The chunks that were made last, for the readers of one prefix. */
  #made: { readonly prefix: Uint8Array; readonly chunks: readonly Bytes[] } | undefined;

  private constructor(chunks: readonly Bytes[], checksum: number, length: number) {
    this.#chunks = chunks;
    this.#checksum = checksum;
    this.#length = length;
  }

  static async compress(next: () => Promise<Bytes | undefined>): Promise<PrefixableGzip | undefined> {
    const chunks: Bytes[] = [];
    let length = 0;
    const counted = async () => {
      const chunk = await next();
      length += chunk?.byteLength ?? 0;
      return chunk;
    };
    for await (const chunk of gzipChunks(counted)) chunks.push(chunk);
    return PrefixableGzip.of(chunks, length);
  }

  /** Reads a gzip file of one member. */
  static of(chunks: readonly Bytes[], length: number): PrefixableGzip | undefined {
    const size = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    const header = concatenated(range(chunks, 0, HEADER_BYTES), HEADER_BYTES);
    if (size < HEADER_BYTES + TRAILER_BYTES || METHOD.some((byte, i) => header[i] !== byte)) return undefined;
    const trailer = concatenated(range(chunks, size - TRAILER_BYTES, size), TRAILER_BYTES);
    const checksum = new DataView(trailer.buffer).getUint32(0, true);
    return new PrefixableGzip(range(chunks, HEADER_BYTES, size - TRAILER_BYTES), checksum, length);
  }

  /** The memory that it takes, with a prefix: the first and the last chunk are there a second time then. */
  get bytes(): number {
    const ends = (this.#chunks[0]?.byteLength ?? 0) + (this.#chunks.at(-1)?.byteLength ?? 0);
    return this.#chunks.reduce((sum, { byteLength }) => sum + byteLength, ends);
  }

  /** A gzip file of a prefix and the bytes. The chunks are shared: read-only. */
  with(prefix: Uint8Array): readonly Bytes[] {
    if (this.#made?.prefix === prefix) return this.#made.chunks;
    const blocks: Uint8Array[] = [new Uint8Array(HEADER)];
    for (let i = 0; i < prefix.byteLength; i += MOST_STORED) {
      const part = prefix.subarray(i, i + MOST_STORED);
      const head = new DataView(new ArrayBuffer(5));
      head.setUint16(1, part.byteLength, true);
      head.setUint16(3, ~part.byteLength & 0xffff, true);
      blocks.push(new Uint8Array(head.buffer), part);
    }
    const trailer = new DataView(new ArrayBuffer(TRAILER_BYTES));
    trailer.setUint32(0, joinedChecksum(checksumOf(prefix), this.#checksum, this.#length), true);
    trailer.setUint32(4, (prefix.byteLength + this.#length) >>> 0, true);
    const end = new Uint8Array(trailer.buffer);
    const first = [...blocks, ...this.#chunks.slice(0, 1)];
    const chunks = [concatenated(first), ...this.#chunks.slice(1)];
    chunks.push(concatenated([chunks.pop()!, end]));
    this.#made = { prefix, chunks };
    return chunks;
  }
}

function range(chunks: readonly Bytes[], from: number, to: number): Bytes[] {
  const parts: Bytes[] = [];
  let offset = 0;
  for (const chunk of chunks) {
    const part = chunk.subarray(Math.max(from - offset, 0), Math.max(to - offset, 0));
    if (part.byteLength > 0) parts.push(part);
    offset += chunk.byteLength;
  }
  return parts;
}

/** The polynomial of CRC-32, without x^32; the highest bit is x^0. */
const POLYNOMIAL = 0xedb88320;
const ONE = 0x80000000;
/** x^8: a shift by one byte. */
const BYTE = 0x00800000;

function checksumOf(bytes: Uint8Array): number {
  let checksum = 0xffffffff;
  for (const byte of bytes) {
    checksum ^= byte;
    for (let bit = 0; bit < 8; bit++) checksum = (checksum >>> 1) ^ (checksum & 1 ? POLYNOMIAL : 0);
  }
  return ~checksum >>> 0;
}

/** The checksum of two joined texts: `crc32_combine` of https://github.com/madler/zlib/blob/master/crc32.c */
function joinedChecksum(first: number, second: number, secondLength: number): number {
  let shift = ONE;
  let power = BYTE;
  for (let length = secondLength; length > 0; length = Math.floor(length / 2)) {
    if (length % 2 === 1) shift = product(power, shift);
    power = product(power, power);
  }
  return (product(shift, first) ^ second) >>> 0;
}

/** The product of two polynomials, modulo that of CRC-32. */
function product(a: number, b: number): number {
  let result = 0;
  let factor = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if (a & bit) result ^= factor;
    factor = (factor >>> 1) ^ (factor & 1 ? POLYNOMIAL : 0);
  }
  return result >>> 0;
}
