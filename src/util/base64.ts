/**
 * Base64 of text.
 * @module
 */

/** Encodes text as UTF-8 in base64. */
export function toBase64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/**
 * Decodes UTF-8 text from base64, also in its alphabet for URLs.
 *
 * @throws {DOMException | TypeError} It is not base64, or not of UTF-8.
 */
export function fromBase64(base64: string): string {
  const binary = atob(base64.replaceAll("-", "+").replaceAll("_", "/"));
  return decoder.decode(Uint8Array.from(binary, (unit) => unit.charCodeAt(0)));
}

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true });
