/** The token that readers present. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import type { Authenticate } from "../../hono/request/gate.ts";
import { bearerTokenOf, MIN_TOKEN_LENGTH } from "../../hono/request/bearer_tokens.ts";
import { FileToken } from "../../node/rest_config.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { UsageError } from "../errors.ts";
import { fromBase64 } from "../../util/bytes.ts";

/** A token, or a function that returns the present one. */
export type ReaderToken = string | (() => Promise<string>);

/**
 * Checks that a token can be sent and cannot be guessed.
 *
 * @param name What the message calls it.
 * @throws {UsageError} It has spaces or other unprintable characters, or is too short. The message
 * does not contain it.
 */
export function checkToken(token: string, name: string = "The token"): void {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${name} must consist of printable ASCII characters without spaces`);
  }
  if (token.length < MIN_TOKEN_LENGTH) {
    throw new UsageError(
      `${name} is shorter than ${MIN_TOKEN_LENGTH} characters and could be guessed: ` +
        "`openssl rand -hex 16` prints a good one",
    );
  }
}

/**
 * The token of the options, `undefined` if they have none. A token file is read now, so that an unreadable
 * one is reported at once, and again about every minute.
 *
 * @throws {UsageError} The token cannot be used.
 * @throws {KubeconfigError} The file cannot be read.
 */
export async function readerToken(
  given: { readonly token?: string; readonly tokenFile?: string },
  options: { readonly clock: Clock; readonly logger: Logger },
): Promise<ReaderToken | undefined> {
  const { token, tokenFile } = given;
  if (tokenFile === undefined) return token;
  const file = new FileToken(tokenFile, options);
  const read = async (): Promise<string> => {
    const found = await file.read();
    checkToken(found, `The token in ${tokenFile}`);
    return found;
  };
  await read();
  return read;
}

/** Makes a hook that authenticates every reader who presents the token. */
export function authenticateByToken(token: ReaderToken): Authenticate {
  const expected = typeof token === "string" ? () => Promise.resolve(token) : token;
  return async (c) => {
    const presented = presentedToken(c);
    if (presented === undefined) return undefined;
    return timingSafeEqual(digest(presented), digest(await expected())) ? { name: "reader" } : undefined;
  };
}

/**
 * The token of a request: a bearer token, also as a WebSocket's subprotocol, or the password of basic auth,
 * for which a browser asks its user.
 */
export function presentedToken(c: Context): string | undefined {
  const header = c.req.header("Authorization") ?? "";
  if (header.slice(0, 6).toLowerCase() !== "basic ") return bearerTokenOf(c);
  try {
    const userAndPassword = fromBase64(header.slice(6).trim());
    return userAndPassword.slice(userAndPassword.indexOf(":") + 1);
  } catch {
    return undefined;
  }
}

// timingSafeEqual needs equal lengths.
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
