/**
 * Bytes, joined.
 * @module
 */

/** The bytes of all parts, `length` in all, in a buffer of their own. */
export function concatenated(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}
