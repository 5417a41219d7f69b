/**
 * Decoding UTF-8 in chunks.
 * @module
 */

/**
 * Decodes chunks of UTF-8 to the texts that a `TextDecoder` with `stream: true` gives, put together. In that
 * mode Deno takes twice as long for a chunk of some kilobytes, so a character that continues in the next
 * chunk is held back here. A BOM stays: to a JSON parser it is no white space.
 */
export class Utf8Stream {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** The beginning of a character. */
  #rest: Uint8Array = NOTHING;

  /** The text of the chunk, as far as its characters are whole. */
  decode(chunk: Uint8Array): string {
    let bytes = chunk;
    if (this.#rest.length > 0) {
      bytes = new Uint8Array(this.#rest.length + chunk.length);
      bytes.set(this.#rest);
      bytes.set(chunk, this.#rest.length);
    }
    const end = wholeLength(bytes);
    this.#rest = end === bytes.length ? NOTHING : bytes.slice(end);
    return this.#decoder.decode(end === bytes.length ? bytes : bytes.subarray(0, end));
  }

  /** What stands for a character that never came whole. */
  end(): string {
    const rest = this.#rest;
    this.#rest = NOTHING;
    return this.#decoder.decode(rest);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** How many bytes there are before a character at the end that may continue. */
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
