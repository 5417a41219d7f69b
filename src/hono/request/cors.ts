/** Cross-origin requests of web pages. */

import type { MiddlewareHandler } from "hono";

/**
 * Which pages of other origins may read.
 *
 * @category HTTP adapter
 */
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
  /** How long a browser may keep the answer to a preflight request; 10 minutes by default. */
  readonly maxAgeSeconds?: number;
}

const METHODS = "GET, HEAD, OPTIONS";
const REQUEST_HEADERS = "Accept, Authorization, Cache-Control, If-None-Match, Last-Event-ID, Prefer";
/** What pages may read of an answer, besides what browsers show anyway. */
const EXPOSED_HEADERS = "Age, Cache-Synced, ETag, Resource-Version, Retry-After, Warning";

/**
 * Makes the middleware that lets browsers show answers to pages of the allowed origins, and answers their
 * preflight requests. It authorizes nobody: the requests themselves are authorized as any other one.
 *
 * @throws {TypeError} An origin is not one, or `"*"` is combined with `credentials`.
 */
export function newCors(options: CorsOptions): MiddlewareHandler {
  checkCors(options);
  const { origins, credentials = false, maxAgeSeconds = 600 } = options;
  const isAny = origins === "*";
  const known = new Set(isAny ? [] : origins);
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
          "Access-Control-Max-Age": String(maxAgeSeconds),
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
