/**
 * Splits a stream of text into lines.
 * @module
 */

import { FrameTooLargeError } from "./event_cutter.ts";
import { SPACE } from "./json_text.ts";
import { Utf8Stream } from "../util/utf8_stream.ts";

/**
 * Cuts bytes into frames at newlines, wherever the chunks were split: {@linkcode FrameCutter.feed} a chunk, then ask for
 * {@linkcode FrameCutter.next} until there is none.
 *
 * Only a frame that continues in the next piece is put together, once, when its end is there: a frame of any size in any
 * number of pieces costs time in proportion to its length. Lines of nothing but white space (heartbeats, the `\r` of a
 * CRLF) are skipped.
 */
export class FrameCutter {
  readonly #maxFrameBytes: number;
  readonly #decoder = new Utf8Stream();
  #text = "";
  #position = 0;
  // The beginning of a frame that the pieces so far did not finish.
  #rest: string[] = [];
  #restLength = 0;

  /** @param maxFrameBytes The longest frame accepted, without its newline, in bytes of UTF-8. */
  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** Takes the next chunk; all frames of the one before it must have been taken out. */
  feed(chunk: Uint8Array): void {
    this.#text = this.#decoder.decode(chunk);
    this.#position = 0;
  }

  /**
   * The next whole frame, without its newline; `undefined` when there is no more.
   *
   * @throws {FrameTooLargeError} The next frame is over the limit, whole or not.
   */
  next(): string | undefined {
    for (;;) {
      const text = this.#text;
      const start = this.#position;
      const end = text.indexOf("\n", start);
      if (end < 0) {
        if (start < text.length) this.#keep(text.slice(start));
        this.#text = ""; // a quiet watch should hold no more than it needs
        this.#position = 0;
        return undefined;
      }
      this.#position = end + 1;
      let frame = text.slice(start, end);
      if (this.#restLength > 0) {
        this.#keep(frame);
        frame = this.#takeRest();
      }
      if (this.#isTooLarge(frame)) throw new FrameTooLargeError(this.#maxFrameBytes);
      if (!isBlank(frame)) return frame;
    }
  }

  /** What came after the last newline, if it is more than white space: the last frame of a stream that has ended. */
  last(): string | undefined {
    this.#keep(this.#decoder.end()); // of a character that never came whole
    const frame = this.#takeRest();
    return isBlank(frame) ? undefined : frame;
  }

  #takeRest(): string {
    const frame = this.#rest.join("");
    this.#rest = [];
    this.#restLength = 0;
    return frame;
  }

  #keep(part: string): void {
    this.#restLength += part.length;
    if (this.#restLength > this.#maxFrameBytes) throw new FrameTooLargeError(this.#maxFrameBytes);
    this.#rest.push(part);
  }

  // A character is one to three bytes (one of a surrogate pair: two); they are only counted where it matters.
  #isTooLarge(frame: string): boolean {
    if (frame.length * 3 <= this.#maxFrameBytes) return false;
    return frame.length > this.#maxFrameBytes || new TextEncoder().encode(frame).length > this.#maxFrameBytes;
  }
}

function isBlank(frame: string): boolean {
  for (let i = 0; i < frame.length; i++) {
    if (frame.charCodeAt(i) > SPACE) return false;
  }
  return true;
}
