/** Checks credentials before they are sent, and removes them from error texts. */

import { CacheError } from "../util/errors.ts";
import { fromBase64 } from "../util/bytes.ts";

/** The credentials of a request cannot be sent. The text never holds them. */
export class CredentialsError extends CacheError {
  constructor(message: string) {
    super("Credentials", message);
  }
}

/** What is wrong with a bearer token, for an error text; `undefined` if it can be sent. */
export function tokenFault(token: unknown): string | undefined {
  if (typeof token !== "string") return "it is no text";
  return /^[\x21-\x7e]*$/.test(token) ? undefined : "it is not one word of printable ASCII characters";
}

// Tab, and what is printable in Latin-1: https://fetch.spec.whatwg.org/#header-value
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * What is wrong with a header, for an error text; `undefined` if it can be sent. A runtime that is given a
 * bad one quotes it in its error, whatever it holds.
 */
export function headerFault([name, value]: readonly [string, unknown]): string | undefined {
  if (!HEADER_NAME.test(name)) return `${JSON.stringify(name.slice(0, 64))} is no name of a header`;
  if (typeof value === "string" && HEADER_VALUE.test(value)) return undefined;
  return `the value of the header ${name} is no text that a header can hold`;
}

// Shorter ones would take words out of error texts.
const SHORTEST_SECRET = 6;

/** Replaces, in what a server said, the credentials it was sent: some servers and proxies quote them. */
export function newScrubber(headers: readonly (readonly [string, string])[]): (text: string) => string {
  const secrets: string[] = [];
  for (const [name, value] of headers) {
    if (!/^(?:proxy-)?authorization$|cookie|token|api-?key/i.test(name)) continue;
    // "Bearer ABC" is quoted by its second word as a rule.
    const credential = /authorization$/i.test(name)
      ? value.slice(value.indexOf(" ") + 1).trim()
      : value.trim();
    if (credential.length >= SHORTEST_SECRET) secrets.push(credential);
    if (/^basic /i.test(value)) secrets.push(...passwordOf(credential));
  }
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text);
}

function passwordOf(basic: string): string[] {
  try {
    const text = fromBase64(basic);
    const password = text.slice(text.indexOf(":") + 1);
    return password.length >= SHORTEST_SECRET ? [text, password] : [];
  } catch {
    return [];
  }
}
