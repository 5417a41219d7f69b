/** Requests for WebSockets: the token, the subprotocol, and the page that sends them. */

import type { Context } from "hono";
import { fromBase64 } from "../../util/bytes.ts";
import type { CorsOptions } from "./cors.ts";

/**
 * The subprotocol that is a token:
 * https://github.com/kubernetes/apiserver/blob/master/pkg/authentication/request/websocket/protocol.go
 */
const TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io.";

export function isSocketRequest(c: Context): boolean {
  return c.req.header("Upgrade")?.toLowerCase() === "websocket";
}

/**
 * The bearer token among the subprotocols, as a page sends it that cannot set a header; `undefined` if there
 * is none, more than one, or no other subprotocol, which a browser needs the server to choose.
 */
export function socketTokenOf(c: Context): string | undefined {
  if (!isSocketRequest(c)) return undefined;
  const protocols = protocolsOf(c);
  const tokens = protocols.filter((protocol) => protocol.startsWith(TOKEN_PREFIX));
  if (tokens.length !== 1 || protocols.length === 1) return undefined;
  const encoded = tokens[0].slice(TOKEN_PREFIX.length);
  if (!/^[A-Za-z0-9_-]+$/.test(encoded)) return undefined;
  try {
    return fromBase64(encoded);
  } catch {
    return undefined;
  }
}

/** The subprotocol to answer with: the first that is no token. */
export function socketProtocolOf(c: Context): string | undefined {
  return protocolsOf(c).find((protocol) => !protocol.startsWith(TOKEN_PREFIX));
}

function protocolsOf(c: Context): string[] {
  const header = c.req.header("Sec-WebSocket-Protocol") ?? "";
  return header.split(",").map((protocol) => protocol.trim()).filter((protocol) => protocol !== "");
}

/**
 * Whether the page that wants a WebSocket may have one: it is of this origin, or `cors` allows it. Browsers
 * do not ask before they open one, and send what they know of this host along: a page of another origin may
 * have one with cookies or a password only with `credentials`. A client that says no origin is no page.
 */
export function mayOpenSocket(c: Context, cors: CorsOptions | undefined): boolean {
  const origin = c.req.header("Origin");
  if (origin === undefined || isOwn(c, origin)) return true;
  if (cors === undefined || !(cors.origins === "*" || cors.origins.includes(origin))) return false;
  const hasCredentials = c.req.header("Cookie") !== undefined || c.req.header("Authorization") !== undefined;
  return !hasCredentials || cors.credentials === true;
}

/** By the host alone: a proxy may have ended TLS. */
function isOwn(c: Context, origin: string): boolean {
  const host = c.req.header("Host") ?? new URL(c.req.url).host;
  return URL.canParse(origin) && /^https?:/.test(origin) && new URL(origin).host === host.toLowerCase();
}
