/**
 * Tokens with which a list goes on.
 * @module
 */

/** What a token says. */
export interface ContinueToken {
  /** The list's, or {@linkcode LATEST}. */
  readonly resourceVersion: string;
  /** The first key that has not been listed. */
  readonly start: string;
}

/** Stands for the resourceVersion in a token that goes on with whatever is there. */
export const LATEST = "-1";

// A key has 253 characters for the namespace and the name each; more than twice what that takes.
const MAX_TOKEN_LENGTH = 2_048;

/**
 * What a token is good for, in few characters: a list of this resource, namespace and selectors, by this reader.
 *
 * This tells mistakes, it does not keep anything safe: whoever makes up a token gets what their own request is allowed,
 * from the place that they made up. Namespace and permission are those of the request, never the token's.
 */
export function listIdentity(parts: readonly string[]): string {
  // FNV-1a, in two lanes of 32 bits.
  const text = JSON.stringify(parts);
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
  }
  const hex = (lane: number) => (lane >>> 0).toString(16).padStart(8, "0");
  return hex(a) + hex(b);
}

/** Writes a token for a list. */
export function encodeContinue(token: ContinueToken, identity: string): string {
  const { resourceVersion: rv, start } = token;
  const bytes = new TextEncoder().encode(JSON.stringify({ v: "meta.k8s.io/v1", rv, start, list: identity }));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/={1,2}$/, "");
}

/** Reads a token: `"invalid"` if it is none, `"foreign"` if it is one of another list. */
export function decodeContinue(token: string, identity: string): ContinueToken | "invalid" | "foreign" {
  if (token.length > MAX_TOKEN_LENGTH) return "invalid";
  try {
    const binary = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null) return "invalid";
    const { v, rv, start, list } = value as Record<string, unknown>;
    if (v !== "meta.k8s.io/v1" || typeof rv !== "string" || typeof start !== "string" || start === "") {
      return "invalid";
    }
    if (!/^([1-9][0-9]{0,63}|-1)$/.test(rv)) return "invalid";
    return list === identity ? { resourceVersion: rv, start } : "foreign";
  } catch {
    return "invalid"; // not base64, or not JSON
  }
}
