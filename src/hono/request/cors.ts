/** The rights of pages of other origins: to read answers (CORS), and to open WebSockets. */

import type { Context, MiddlewareHandler } from "hono";
import { SOCKET_KEY, SOCKET_VERSION } from "../../protocol/server_sockets.ts";
import { fromBase64 } from "../../util/bytes.ts";

/** Options for the pages of other origins that may read. */
export interface CorsOptions {
  /**
   * Origins such as `https://dashboard.example`, as browsers send them; `"*"` for the pages of every origin.
   */
  readonly origins: readonly string[] | "*";
  /**
   * Whether pages may send cookies and passwords that the browser knows; `false` by default. A page that sets
   * the `Authorization` header itself does not need it. Not with `"*"`. Without it, a page of another origin
   * opens WebSockets only where the browser sends neither.
   */
  readonly credentials?: boolean;
}

const METHODS = "GET, HEAD, OPTIONS";
const REQUEST_HEADERS = "Accept, Authorization, Cache-Control, If-None-Match, Last-Event-ID, Prefer";
/** The headers of an answer that pages may read, besides those that browsers show anyway. */
const EXPOSED_HEADERS = "Age, Cache-Synced, ETag, Resource-Version, Retry-After, Warning";

/**
 * Makes the middleware that lets browsers show answers to pages of the allowed origins, and answers their
 * preflight requests.
 */
export function newCors(options: CorsOptions): MiddlewareHandler {
  checkCors(options);
  const { origins, credentials = false } = options;
  const isAny = origins === "*";
  const known = new Set(origins);
  return async (c, next) => {
    const origin = c.req.header("Origin");
    const isAllowed = origin !== undefined && (isAny || known.has(origin));
    const add = ({ headers }: Response) => {
      // The answer depends on it, also where there is none.
      if (!isAny) headers.append("Vary", "Origin");
      if (!isAllowed) return;
      headers.set("Access-Control-Allow-Origin", isAny ? "*" : origin);
      if (credentials) headers.set("Access-Control-Allow-Credentials", "true");
    };
    const isPreflight = c.req.raw.method === "OPTIONS" &&
      c.req.header("Access-Control-Request-Method") !== undefined;
    if (isPreflight && isAllowed) {
      const response = new Response(null, {
        status: 204,
        headers: {
          "Access-Control-Allow-Methods": METHODS,
          "Access-Control-Allow-Headers": REQUEST_HEADERS,
          "Access-Control-Max-Age": "600",
        },
      });
      add(response);
      return response;
    }
    await next();
    // A WebSocket: its headers belong to the runtime, and browsers read none of these.
    if (c.res.status === 101) return undefined;
    add(c.res);
    if (isAllowed) c.res.headers.set("Access-Control-Expose-Headers", EXPOSED_HEADERS);
    return undefined;
  };
}

/** Checks the options; see {@linkcode newCors}. */
export function checkCors({ origins, credentials }: CorsOptions): void {
  if (origins === "*") {
    if (credentials) {
      throw new TypeError(
        'Cannot allow every origin with credentials: name the origins in place of "*", or leave `credentials` out',
      );
    }
    return;
  }
  if (!Array.isArray(origins)) {
    throw new TypeError('Cannot use the option `cors`: its `origins` must be an array, or "*"');
  }
  for (const origin of origins) {
    if (isOrigin(origin)) continue;
    throw new TypeError(
      `Cannot allow the origin ${JSON.stringify(origin)}: it must be a scheme, a host and perhaps a port, ` +
        "such as https://dashboard.example:8443, without a path",
    );
  }
}

function isOrigin(origin: unknown): boolean {
  try {
    return typeof origin === "string" && new URL(origin).origin === origin && /^https?:/.test(origin);
  } catch {
    return false;
  }
}

/**
 * The subprotocol that is a token:
 * https://github.com/kubernetes/apiserver/blob/master/pkg/authentication/request/websocket/protocol.go
 */
const TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io.";

export function isSocketRequest(c: Context): boolean {
  return c.req.header("Upgrade")?.toLowerCase() === "websocket";
}

/** The fault of a WebSocket handshake. Between Workers the `Upgrade` header alone is the handshake. */
export function handshakeProblem(c: Context): string | undefined {
  const connection = (c.req.header("Connection") ?? "").toLowerCase().split(",");
  const isHandshake = connection.some((option) => option.trim() === "upgrade");
  const version = c.req.header("Sec-WebSocket-Version") ?? (isHandshake ? "" : SOCKET_VERSION);
  if (version !== SOCKET_VERSION) return "missing or bad WebSocket Version";
  const key = c.req.header("Sec-WebSocket-Key");
  return key === undefined && !isHandshake || SOCKET_KEY.test(key ?? "")
    ? undefined
    : "missing or bad WebSocket Key";
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

/** Whether an origin has the request's host; its scheme may differ, as a proxy may have ended TLS. */
function isOwn(c: Context, origin: string): boolean {
  const host = c.req.header("Host") ?? new URL(c.req.url).host;
  return URL.canParse(origin) && /^https?:/.test(origin) && new URL(origin).host === host.toLowerCase();
}
