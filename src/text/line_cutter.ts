/** Cutting bytes into lines, however small the pieces that they come in: the events of a watch. */

import { decodeUtf8 } from "../util/bytes.ts";
import { SPACE } from "./json_walk.ts";

/** Puts pieces together, in time in proportion to their length however small they are. */
export class PiecedBytes {
  #bytes: Uint8Array = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes so far, valid until the next call. */
  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  add(piece: Uint8Array): void {
    const before = this.#length;
    this.#length += piece.length;
    if (this.#length > this.#bytes.length) {
      const longer = new Uint8Array(before === 0 ? piece.length : this.#length * 2);
      longer.set(this.all.subarray(0, before));
      this.#bytes = longer;
    }
    this.#bytes.set(piece, before);
  }

  /** Takes all bytes out, valid until the next call; large ones are not kept. */
  take(): Uint8Array {
    const { all } = this;
    if (this.#bytes.length > MAX_KEPT) this.#bytes = NOTHING;
    this.#length = 0;
    return all;
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);
/** The largest kept buffer: more than most objects have, and little for a watch that is quiet. */
const MAX_KEPT = 16 * 1024;

/** A frame is longer than the limit. */
export class FrameTooLargeError extends RangeError {
  constructor(maxFrameBytes: number) {
    super(`a frame is larger than ${maxFrameBytes} bytes`);
    this.name = "FrameTooLargeError";
  }
}

/** Reads what lines say out of bytes: one for several cutters, which take turns. */
export interface LineReader<E> {
  /** The newline of the line that was read last. */
  readonly lineEnd: number;
  /** A buffer of at least so many bytes. Its content is valid until the next call. */
  buffer(length: number): Uint8Array;
  /**
   * Reads the line that begins at `start`; `undefined` if there is none that it understands. Absent: it
   * understands none, and takes texts.
   */
  readLineAt?(bytes: Uint8Array, start: number): E | undefined;
}

/**
 * Cuts bytes into frames at newlines, wherever the chunks were split: {@linkcode LineCutter.feed} returns the
 * first one of a chunk, {@linkcode LineCutter.next} the others, until there is none, in the same turn.
 *
 * How it works. Reading a line finds its end, so that mostly no newline is searched. A frame that continues
 * in the next chunk is read when its newline is there: a frame of any size in any number of chunks costs time
 * in proportion to its length. Lines of nothing but white space (heartbeats, the `\r` of a CRLF) are skipped.
 */
export class LineCutter<E> {
  readonly #maxFrameBytes: number;
  readonly #reader: LineReader<E>;
  /** The whole lines of the chunk, from `#start` to `#end`, where a 0 is. */
  #bytes: Uint8Array = NOTHING;
  #start = 0;
  #end = 0;
  /** The beginning of a frame that the chunks so far did not finish, and what this chunk has of it. */
  readonly #rest = new PiecedBytes();
  #newRest: Uint8Array = NOTHING;

  /** @param maxFrameBytes The longest frame accepted, without its newline. */
  constructor(maxFrameBytes: number, reader: LineReader<E>) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#reader = reader;
  }

  /** Takes the next chunk, and its first line; all lines of the chunk before must have been taken out. */
  feed(chunk: Uint8Array): E | string | undefined {
    const before = this.#rest.length;
    const length = chunk.lastIndexOf(NEWLINE) + 1;
    if (length === 0) {
      this.#keep(chunk);
      return undefined;
    }
    this.#start = 0;
    this.#end = before + length;
    const bytes = this.#reader.buffer(this.#end + 1);
    if (before > 0) bytes.set(this.#rest.take());
    bytes.set(chunk.subarray(0, length), before);
    bytes[this.#end] = 0;
    this.#newRest = chunk.subarray(length);
    this.#bytes = bytes;
    return this.next();
  }

  /** The next line's event; its text if the reader does not understand it; `undefined` at the end. */
  next(): E | string | undefined {
    const bytes = this.#bytes;
    while (this.#start < this.#end) {
      const start = this.#start;
      const event = this.#reader.readLineAt?.(bytes, start);
      const end = event === undefined
        ? start + bytes.subarray(start, this.#end).indexOf(NEWLINE)
        : this.#reader.lineEnd;
      this.#start = end + 1;
      if (end - start > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
      if (event !== undefined) return event;
      const line = decodeUtf8(bytes.subarray(start, end));
      if (!isBlank(line)) return line;
    }
    const rest = this.#newRest;
    this.#bytes = this.#newRest = NOTHING;
    if (rest.length > 0) this.#keep(rest);
    return undefined;
  }

  /** The text after the last newline, if it is not blank: the last frame of a stream that has ended. */
  last(): string | undefined {
    const frame = decodeUtf8(this.#rest.take());
    return isBlank(frame) ? undefined : frame;
  }

  #keep(part: Uint8Array): void {
    this.#rest.add(part);
    if (this.#rest.length > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
  }
}

const NEWLINE = 0x0a;

function isBlank(line: string): boolean {
  for (let i = 0; i < line.length; i++) if (line.charCodeAt(i) > SPACE) return false;
  return true;
}
