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
