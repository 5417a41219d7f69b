/** The connection settings of an API server; credentials are checked here, and kept out of error texts. */

import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import { CacheError } from "../util/errors.ts";
import { fromBase64 } from "../util/bytes.ts";

/**
 * A `fetch` as the client needs it: the runtime's own, a service binding's, one of `@listwatch/cache/node`
 * with its own TLS settings, or an in-memory API server's.
 */
export type FetchFunction = (url: string, init?: RequestInit) => Promise<Response> | Response;

/**
 * A bearer token: fixed, or read again before each request, so that a token that rotates
 * is never stale, and after a 401 response: the request is sent once more if the token
 * is another one then. An empty one is not sent.
 */
export type TokenSource = string | (() => string | Promise<string>);

/** Whom requests are made in the name of. */
export interface Impersonation {
  readonly user: string;
  /**
   * The user's groups. Each is sent as a header of its own
   * (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation), which
   * Deno and the `createTlsFetch` of `@listwatch/cache/node` on Node can send; the `fetch` of Node and
   * Bun joins them to one, which the server refuses.
   */
  readonly groups?: readonly string[];
  readonly uid?: string;
  /** Further attributes of the user, as the authenticator of the cluster knows them. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * How to reach an API server, and as whom.
 *
 * Certificates are not settings here but the business of `fetch`: give one that trusts the cluster's CA, such
 * as `createTlsFetch` of `@listwatch/cache/node` makes.
 *
 * Mirrors client-go's `rest.Config`, without its client-side rate limit.
 *
 * @category Cluster
 */
export interface RestConfig {
  /** The server's URL; a path in it comes before every request's path. Query and fragment are dropped. */
  readonly server: string;
  /** Makes the requests; the runtime's own by default. */
  readonly fetch?: FetchFunction;
  /**
   * The namespace that the program is in, or its user works in: that of a kubeconfig's context, or of a
   * service account. No request uses it by itself; it is for the program to read.
   */
  readonly namespace?: string;
  /** Sent as `Authorization: Bearer ...`. */
  readonly token?: TokenSource;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `listwatch-cache` by default. */
  readonly userAgent?: string;
  /** Makes requests as another user; the server must allow it. */
  readonly impersonate?: Impersonation;
  /**
   * How long any request but a watch may take, answer included, in milliseconds; by default 30 s, and without
   * limit for lists, which may take any time while they make progress. `Infinity` for no limit.
   */
  readonly requestTimeoutMs?: number;
  /** Receives the server's warnings, each text once; the console by default. */
  readonly logger?: Logger;
  /** Counts requests as client-go does: `rest_client_requests_total` (`code`, `method`, `host`). */
  readonly metrics?: Metrics;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
}

/** The headers that go with every request but the token, as pairs: a header may be there more than once. */
export function fixedHeaders(config: RestConfig): [string, string][] {
  const headers: [string, string][] = [["User-Agent", config.userAgent ?? "listwatch-cache"]];
  headers.push(...Object.entries(config.headers ?? {}));
  const { impersonate } = config;
  if (impersonate === undefined) return headers;
  headers.push(["Impersonate-User", impersonate.user]);
  if (impersonate.uid) headers.push(["Impersonate-Uid", impersonate.uid]);
  for (const group of impersonate.groups ?? []) headers.push(["Impersonate-Group", group]);
  for (const [key, values] of Object.entries(impersonate.extra ?? {})) {
    for (const value of values) headers.push([`Impersonate-Extra-${encodeURIComponent(key)}`, value]);
  }
  return headers;
}

export function serverUrl(server: string): string {
  let url: URL | undefined;
  try {
    url = new URL(server);
  } catch {
    // reported below
  }
  // Without a scheme it may be a URL nevertheless: "joe:secret@10.0.0.1" has the scheme "joe".
  if (url?.protocol !== "https:" && url?.protocol !== "http:") url = undefined;
  const hasCredentials = url === undefined
    ? String(server).includes("@") // it may be a variable of the environment that is not set
    : url.username !== "" || url.password !== "";
  if (hasCredentials) {
    throw new TypeError(
      "Cannot use the server: its URL holds a user or password; give them as a header or token",
    );
  }
  if (url === undefined) {
    throw new TypeError(
      `Cannot use ${JSON.stringify(server)} as the server: write a URL, such as "https://10.0.0.1:6443"`,
    );
  }
  let end = url.pathname.length;
  while (url.pathname[end - 1] === "/") end--;
  return url.origin + url.pathname.slice(0, end);
}

/** The credentials of a request cannot be sent. The text never holds them. */
export class CredentialsError extends CacheError {
  constructor(message: string) {
    super("Credentials", message);
  }
}

/** The fault of a bearer token, for an error text; `undefined` if it can be sent. */
export function tokenFault(token: unknown): string | undefined {
  if (typeof token !== "string") return "it is no text";
  return /^[\x21-\x7e]*$/.test(token) ? undefined : "it is not one word of printable ASCII";
}

// Tab, and what is printable in Latin-1: https://fetch.spec.whatwg.org/#header-value
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * The fault of a header, for an error text; `undefined` if it can be sent. A runtime that is given a bad one
 * quotes it in its error, whatever it holds.
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
