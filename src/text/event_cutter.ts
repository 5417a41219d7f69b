/**
 * Cutting the bytes of a watch into events that are read, not parsed.
 * @module
 */

import { SPACE } from "./json_text.ts";

/** A frame is longer than the limit. */
export class FrameTooLargeError extends RangeError {
  /** Makes the error. */
  constructor(maxFrameBytes: number) {
    super(`a frame is larger than ${maxFrameBytes} bytes`);
    this.name = "FrameTooLargeError";
  }
}

/** Reads events out of bytes: one for several cutters, which take turns. */
export interface EventReader<E> {
  /** Where the event ended that was read last. */
  readonly eventEnd: number;
  /** A buffer of at least so many bytes. Its content is valid until the next call. */
  buffer(length: number): Uint8Array;
  /** Reads the event that begins at `start` and ends with a newline; `undefined` if there is none that it understands. */
  readEventAt(bytes: Uint8Array, start: number): E | undefined;
}

/**
 * Cuts bytes into frames at newlines, wherever the chunks were split: {@linkcode EventCutter.feed} a chunk, then ask for
 * {@linkcode EventCutter.next} until there is none, in the same turn.
 *
 * How it works. Reading an event finds its end, so that mostly no newline is searched. A frame that continues in the next
 * chunk is read when its newline is there: a frame of any size in any number of chunks costs time in proportion to its
 * length. Lines of nothing but white space (heartbeats) are skipped.
 */
export class EventCutter<E> {
  readonly #maxFrameBytes: number;
  readonly #reader: EventReader<E>;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The chunk, from `#start` to `#end`, where a 0 is. */
  #bytes: Uint8Array = NOTHING;
  #start = 0;
  #end = 0;
  /** The beginning of a frame that the chunks so far did not finish. */
  #rest: Uint8Array = NOTHING;
  #restLength = 0;

  /** @param maxFrameBytes The longest frame accepted, without its newline. */
  constructor(maxFrameBytes: number, reader: EventReader<E>) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#reader = reader;
  }

  /**
   * Takes the next chunk; all frames of the one before it must have been taken out.
   *
   * @throws {FrameTooLargeError} The next frame is over the limit, and not whole.
   */
  feed(chunk: Uint8Array): void {
    const before = this.#restLength;
    if (before > 0 && chunk.indexOf(NEWLINE) < 0) return this.#keep(chunk);
    this.#start = 0;
    this.#end = before + chunk.length;
    const bytes = this.#bytes = this.#reader.buffer(this.#end + 1);
    if (before > 0) bytes.set(this.#takeRest());
    bytes.set(chunk, before);
    bytes[this.#end] = 0;
  }

  /**
   * The next event; the text of the next frame where that is not understood; `undefined` when there is no more.
   *
   * @throws {FrameTooLargeError} The next frame is over the limit, whole or not.
   */
  next(): E | string | undefined {
    const bytes = this.#bytes;
    while (this.#start < this.#end) {
      const start = this.#start;
      const event = this.#reader.readEventAt(bytes, start);
      let end = this.#reader.eventEnd;
      if (event === undefined) {
        const newline = bytes.subarray(start, this.#end).indexOf(NEWLINE);
        if (newline < 0) {
          this.#start = this.#end;
          this.#keep(bytes.subarray(start, this.#end));
          break;
        }
        end = start + newline;
      }
      this.#start = end + 1;
      if (end - start > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
      if (event !== undefined) return event;
      const frame = bytes.subarray(start, end);
      if (!isBlank(frame)) return this.#decoder.decode(frame);
    }
    this.#bytes = NOTHING;
    return undefined;
  }

  /** What came after the last newline, if it is more than white space: the last frame of a stream that has ended. */
  last(): string | undefined {
    const frame = this.#takeRest();
    return isBlank(frame) ? undefined : this.#decoder.decode(frame);
  }

  #takeRest(): Uint8Array {
    const rest = this.#rest.subarray(0, this.#restLength);
    this.#rest = NOTHING; // a quiet watch should hold no more than it needs
    this.#restLength = 0;
    return rest;
  }

  #keep(part: Uint8Array): void {
    const before = this.#restLength;
    this.#restLength += part.length;
    if (this.#restLength > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
    if (this.#restLength > this.#rest.length) {
      const longer = new Uint8Array(before === 0 ? part.length : this.#restLength * 2);
      longer.set(this.#rest.subarray(0, before));
      this.#rest = longer;
    }
    this.#rest.set(part, before);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);
const NEWLINE = 0x0a;

function isBlank(frame: Uint8Array): boolean {
  return frame.every((code) => code <= SPACE);
}
