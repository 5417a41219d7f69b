/** Bytes: joined, freed, and as text. */

/** The bytes of all parts, `length` in all, in a buffer of their own. */
export function concatenated(
  parts: readonly Uint8Array[],
  length: number = parts.reduce((sum, part) => sum + part.byteLength, 0),
): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}

/**
 * Frees the memory of bytes that are not read any more, and have their buffer for themselves. Left to the
 * garbage collector, 64 MB of buffers begin a collection of the whole heap in V8, however large that is.
 */
export function freeBytes(bytes: Uint8Array | undefined): void {
  (bytes?.buffer as { transfer?(length: number): unknown } | undefined)?.transfer?.(0);
}

const encoder = /* @__PURE__ */ new TextEncoder();

export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of whole characters. A BOM stays: to a JSON parser it is no white space. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

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

/** Encodes text as UTF-8 in base64. */
export function toBase64(text: string): string {
  let binary = "";
  for (const byte of encoder.encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Decodes UTF-8 text from base64, also in its alphabet for URLs. */
export function fromBase64(base64: string): string {
  const binary = atob(base64.replaceAll("-", "+").replaceAll("_", "/"));
  return strictDecoder.decode(Uint8Array.from(binary, (unit) => unit.charCodeAt(0)));
}

const strictDecoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true });
