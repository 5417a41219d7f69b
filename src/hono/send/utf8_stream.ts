import { concatenated, decodeUtf8 } from "../../util/bytes.ts";

/**
 * Decodes chunks of UTF-8 as a `TextDecoder` with `stream: true`, which takes Deno twice as long: a character
 * that continues in the next chunk is held back here.
 */
export class Utf8Stream {
  /** The beginning of a character. */
  #rest: Uint8Array = NOTHING;

  /** The text of the chunk, as far as its characters are whole. */
  decode(chunk: Uint8Array): string {
    let bytes = chunk;
    if (this.#rest.length > 0) bytes = concatenated([this.#rest, chunk]);
    const end = wholeLength(bytes);
    this.#rest = end === bytes.length ? NOTHING : bytes.slice(end);
    return decodeUtf8(end === bytes.length ? bytes : bytes.subarray(0, end));
  }

  /** The replacement for a last character that did not come whole. */
  end(): string {
    const rest = this.#rest;
    this.#rest = NOTHING;
    return decodeUtf8(rest);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** How many bytes come before a character at the end that may continue. */
function wholeLength(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let back = 1; back <= 3 && back <= length; back++) {
    const code = bytes[length - back];
    if (code < 0x80) return length;
    if (code < 0xc0) continue; // inside of a character
    const characterLength = code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
    return characterLength > back ? length - back : length;
  }
  return length;
}
