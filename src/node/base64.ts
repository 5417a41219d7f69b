/**
 * Base64 of UTF-8 text.
 * @module
 */

/** Encodes text as UTF-8 in base64. */
export function toBase64(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * Decodes UTF-8 text from base64.
 *
 * @throws {DOMException} It is not base64.
 */
export function fromBase64(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}
