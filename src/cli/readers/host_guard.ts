/** Refuses requests that a web page of another site makes. */

import type { Context, MiddlewareHandler } from "hono";
import { quote } from "../errors.ts";

export interface HostGuardOptions {
  readonly host: string;
  readonly allowedHosts?: readonly string[];
  /** Origins whose pages may read; `*` for all. */
  readonly corsOrigins?: readonly string[];
  /** Whether readers must present a token. Then any host name is allowed: no other page has the token. */
  readonly needsToken: boolean;
}

/**
 * Makes the middleware. It refuses unknown host names: a page of another site can make a browser send
 * requests to this server under its own name (DNS rebinding), and would read the responses. On a loopback
 * address it also refuses requests that the browser marks as made by another site.
 */
export function newHostGuard(options: HostGuardOptions): MiddlewareHandler {
  const { host, allowedHosts = [], corsOrigins = [], needsToken } = options;
  const isLocal = isLoopback(host);
  const names = new Set(allowedHosts.map((name) => name.toLowerCase()));
  const isKnown = (name: string) =>
    isLoopback(name) || names.has(name.toLowerCase()) || (!isLocal && isAddress(name)) ||
    (!isLocal && name.toLowerCase() === host.toLowerCase());
  return async (c, next) => {
    const name = hostOf(c);
    if (!needsToken && !isKnown(name)) {
      const known = isLocal ? "localhost" : "IP addresses and known host names";
      const hint = isLocal ? "" : "; --allow-host adds a name";
      return c.text(
        `This server only answers requests for ${known}; this request is for ${quote(name)}${hint}.\n`,
        403,
      );
    }
    // Another port of this machine is another site, too.
    const site = c.req.header("Sec-Fetch-Site") ?? "none";
    const origin = c.req.header("Origin") ?? "";
    const mayRead = corsOrigins.includes(origin) || (corsOrigins.includes("*") && origin !== "");
    if (isLocal && site !== "none" && site !== "same-origin" && !mayRead) {
      return c.text("This server does not answer requests from pages of other sites.\n", 403);
    }
    return await next();
  };
}

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name === "::1" || /^127(\.[0-9]{1,3}){3}$/.test(name);
}

// A page can give its own name any address (DNS rebinding), but not an address as its name.
function isAddress(host: string): boolean {
  return /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/.test(host) || /^\[[0-9a-f:.]+\]$/i.test(host);
}

/** The host name in the request, without the port. */
function hostOf(c: Context): string {
  const header = c.req.header("Host");
  try {
    return new URL(header === undefined ? c.req.url : `http://${header}`).hostname;
  } catch {
    return header ?? "";
  }
}
