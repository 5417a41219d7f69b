/**
 * Cutting a stream of bytes into lines.
 * @module
 */

const NEWLINE = 10;
const SPACE = 32;
const FIRST_REST_BYTES = 16 * 1024;

/** A frame is longer than the limit. */
export class FrameTooLargeError extends RangeError {
  /** Makes the error. */
  constructor(maxFrameBytes: number) {
    super(`a frame is larger than ${maxFrameBytes} bytes`);
    this.name = "FrameTooLargeError";
  }
}

/**
 * Cuts chunks of bytes into frames at newlines, wherever the chunks were split: {@linkcode FrameCutter.feed} a chunk,
 * then ask for {@linkcode FrameCutter.next} until there is none.
 *
 * Frames inside one chunk are views of it, not copies. Only a frame that goes on in the next chunk is copied, into a
 * buffer that grows by doubling, so that a frame of any size in any number of chunks costs time in proportion to its
 * length. Lines of nothing but white space (heartbeats, the `\r` of a CRLF) are skipped.
 */
export class FrameCutter {
  readonly #maxFrameBytes: number;
  #chunk: Uint8Array = new Uint8Array(0);
  #position = 0;
  // The beginning of a frame that the chunks so far did not finish.
  #rest: Uint8Array = new Uint8Array(0);
  #restLength = 0;

  /** @param maxFrameBytes The longest frame accepted, without its newline. */
  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** Takes the next chunk; all frames of the one before it must have been taken out. */
  feed(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#position = 0;
  }

  /**
   * The next whole frame, without its newline; `undefined` when the chunk holds no more. The bytes are valid until the
   * next call of any method.
   *
   * @throws {FrameTooLargeError} The next frame is over the limit, whole or not.
   */
  next(): Uint8Array | undefined {
    for (;;) {
      const chunk = this.#chunk;
      const start = this.#position;
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) {
        this.#keep(start, chunk.length);
        this.#position = chunk.length;
        return undefined;
      }
      this.#position = end + 1;
      let frame: Uint8Array;
      if (this.#restLength > 0) {
        this.#keep(start, end);
        frame = this.#takeRest();
      } else {
        if (end - start > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
        frame = chunk.subarray(start, end);
      }
      if (!isBlank(frame)) return frame;
    }
  }

  /** What came after the last newline, if it is more than white space: the last frame of a stream that has ended. */
  last(): Uint8Array | undefined {
    const frame = this.#takeRest();
    return isBlank(frame) ? undefined : frame;
  }

  #takeRest(): Uint8Array {
    const frame = this.#rest.subarray(0, this.#restLength);
    this.#restLength = 0;
    // One huge object should not hold its buffer for as long as the watch lives.
    if (this.#rest.length > 64 * FIRST_REST_BYTES) this.#rest = new Uint8Array(0);
    return frame;
  }

  #keep(start: number, end: number): void {
    const length = this.#restLength + end - start;
    if (length > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
    if (length > this.#rest.length) {
      const grown = new Uint8Array(Math.max(length, this.#rest.length * 2, FIRST_REST_BYTES));
      grown.set(this.#rest.subarray(0, this.#restLength));
      this.#rest = grown;
    }
    this.#rest.set(this.#chunk.subarray(start, end), this.#restLength);
    this.#restLength = length;
  }
}

function isBlank(frame: Uint8Array): boolean {
  for (let i = 0; i < frame.length; i++) {
    if (frame[i] > SPACE) return false;
  }
  return true;
}
