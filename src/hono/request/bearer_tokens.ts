/** Authentication of readers by bearer tokens. */

import type { Context } from "hono";
import { socketTokenOf } from "./cors.ts";
import type { Authenticate, UserInfo } from "./gate.ts";

/** A token, and who presents it. */
export interface BearerToken {
  /** At least 16 printable ASCII characters. */
  readonly token: string;
  readonly user: UserInfo;
}

/** The shortest token that {@linkcode bearerTokens} takes: whatever is shorter can be guessed. */
export const MIN_TOKEN_LENGTH = 16;

/** `process` of Node, Deno and Bun, and of workerd with `nodejs_compat`. */
interface MayHaveCrypto {
  getBuiltinModule?(name: "node:crypto"):
    | { createHash(algorithm: "sha256"): { update(text: string): { digest(): Uint8Array } } }
    | undefined;
}

// Longer ones belong to no user; JSON web tokens have one or two thousand characters.
const MAX_TOKEN_LENGTH = 16_384;

/**
 * Makes an `authenticate` hook that knows readers by the token in their `Authorization: Bearer` header, or
 * for a WebSocket in the subprotocol that Kubernetes has for it.
 *
 * Tokens are compared by their SHA-256 digests, each with all, in a time that does not depend on them; the
 * hook keeps digests only. Say in `authorize` what each of them may read.
 *
 * @throws {TypeError} There is no token, one is shorter than 16 characters, has characters other than
 * printable ASCII, or is there twice, or a user has no name. No message holds a token.
 *
 * @example
 * ```ts
 * import { bearerTokens } from "@listwatch/cache/hono";
 * const authenticate = bearerTokens([{ token: "a-long-and-random-secret", user: { name: "ci" } }]);
 * ```
 */
export function bearerTokens(tokens: Iterable<BearerToken>): Authenticate {
  const known = Array.from(tokens);
  if (known.length === 0) throw new TypeError("Cannot know anybody: bearerTokens was given no token");
  const texts = new Set<string>();
  for (const [i, { token, user }] of known.entries()) {
    const problem = problemOf(token) ?? (texts.has(token) ? "is there twice" : undefined);
    if (problem !== undefined) throw new TypeError(`Cannot use the token at index ${i}: it ${problem}`);
    if (typeof user?.name !== "string" || user.name === "") {
      throw new TypeError(`Cannot use the token at index ${i}: its user has no name`);
    }
    texts.add(token);
  }
  const users = known.map(({ user }) => user);
  let digests: Promise<readonly Uint8Array[]> | undefined;
  const makeDigests = () => Promise.all(Array.from(texts, digestOf));
  return async (c) => {
    const token = bearerTokenOf(c);
    if (token === undefined) return undefined;
    // The digests are made late: Workers have no cryptography while modules are loaded.
    const [expected, actual] = await Promise.all([digests ??= makeDigests(), digestOf(token)]);
    texts.clear();
    let found = -1;
    for (let i = 0; i < expected.length; i++) if (isSame(expected[i], actual)) found = i;
    return users[found];
  };
}

/**
 * The token that a request presents, for a WebSocket also as a subprotocol; `undefined` if there is none, or
 * it is none that could be one.
 */
export function bearerTokenOf(c: Context): string | undefined {
  const header = c.req.header("Authorization");
  if (header === undefined) {
    const token = socketTokenOf(c);
    return token !== undefined && token.length <= MAX_TOKEN_LENGTH && isPrintable(token) ? token : undefined;
  }
  if (header.length > MAX_TOKEN_LENGTH + 16) return undefined;
  if (header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  // As in an API server, it ends at a space: with a second one before it, there is none.
  const [token] = header.slice(7).split(" ", 1);
  return isPrintable(token) ? token : undefined;
}

/**
 * The SHA-256 digest of a token. Web Crypto makes each in another thread, which costs ten times the digest:
 * it is taken where `node:crypto` is missing.
 */
export function digestOf(token: string): Uint8Array | Promise<Uint8Array> {
  const { process } = globalThis as { readonly process?: MayHaveCrypto };
  const crypto = process?.getBuiltinModule?.("node:crypto");
  return crypto?.createHash("sha256").update(token).digest() ?? webDigestOf(token);
}

async function webDigestOf(token: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
}

/** Whether two tokens are the same, in a time that does not depend on where they differ. */
export async function isSameToken(a: string, b: string): Promise<boolean> {
  const [ofA, ofB] = await Promise.all([digestOf(a), digestOf(b)]);
  return isSame(ofA, ofB);
}

function problemOf(token: unknown): string | undefined {
  if (token === undefined) return "is undefined: set the secret or variable that it comes from";
  if (typeof token !== "string") return "is no text";
  if (token.length < MIN_TOKEN_LENGTH) return `is shorter than ${MIN_TOKEN_LENGTH} characters`;
  if (token.length > MAX_TOKEN_LENGTH) return `is longer than ${MAX_TOKEN_LENGTH} characters`;
  return isPrintable(token) ? undefined : "must be one word of printable ASCII characters";
}

function isPrintable(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}

/** Whether two digests are the same, in a time that does not depend on where they differ. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= a[i] ^ b[i];
  return difference === 0;
}
