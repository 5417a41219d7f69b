/**
 * Who may read what this program serves.
 * @module
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import type { Authenticate, Authorize } from "../hono/authorization.ts";
import { quote, UsageError } from "./errors.ts";

/** What decides about access. */
export interface AccessOptions {
  readonly host: string;
  readonly token?: string;
  readonly allowAnonymous?: boolean;
  /** The one namespace that is cached, if it is not all. */
  readonly namespace?: string;
}

/** How access is decided. */
export interface Access {
  /** Before every request: refuses what comes from a page of somebody else. */
  readonly hostGuard: MiddlewareHandler;
  /** Before the page and its files: refuses whoever does not present the token. */
  readonly pageGuard: MiddlewareHandler;
  /** For the read API. */
  readonly readApi: {
    readonly authenticate?: Authenticate;
    readonly authorize?: Authorize;
    readonly allowAnonymous?: boolean;
  };
  /** In words, for whoever started this. */
  readonly description: string;
}

/**
 * Decides who may read.
 *
 * @throws {UsageError} The host is not this machine only, and neither a token is asked for nor is everybody let in.
 */
export function newAccess(options: AccessOptions): Access {
  const { host, token, allowAnonymous = false, namespace } = options;
  if (token !== undefined && allowAnonymous) {
    throw new UsageError(
      "A token is asked for and --allow-anonymous lets everybody in without: leave one of them out",
    );
  }
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError("The token must be one word of printable ASCII characters");
  }
  const local = isLoopback(host);
  if (!local && token === undefined && !allowAnonymous) {
    throw new UsageError(
      `Refusing to listen on ${host}: everyone who reaches it could read the whole cache, which does not ask for its ` +
        "readers' permissions. Ask for a token with --token, or say --allow-anonymous",
    );
  }
  const knows = token === undefined ? undefined : tokenCheck(token);
  const authorize: Authorize | undefined = namespace === undefined
    ? undefined
    : (attributes) =>
      attributes.scope !== "namespace" || attributes.namespace === namespace ||
      `only namespace ${quote(namespace)} is cached here`;
  return {
    hostGuard: async (c, next) => {
      if (local && knows === undefined && !isLoopback(hostOf(c))) {
        return c.text(
          `This server answers requests to this machine's own names only, and this one is for ${
            quote(hostOf(c))
          }.\n`,
          403,
        );
      }
      return await next();
    },
    pageGuard: async (c, next) => {
      if (knows !== undefined && !knows(c)) {
        c.header("WWW-Authenticate", 'Basic realm="listwatch: any user name, the token as password"');
        return c.text("Present the token: as bearer token, or as password with any user name.\n", 401);
      }
      return await next();
    },
    readApi: {
      ...(knows && { authenticate: (c: Context) => knows(c) ? { name: "reader" } : undefined }),
      ...(authorize ? { authorize } : { allowAnonymous: true }),
    },
    description: knows !== undefined
      ? "whoever presents the token may read"
      : local
      ? "this machine only; whoever uses it may read"
      : "anyone who reaches it may read",
  };
}

/** Whether an address or name means this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name === "::1" || /^127(\.[0-9]{1,3}){3}$/.test(name);
}

/**
 * The name by which the client called this server. A page of somebody else can make a browser send requests here under
 * a name of its own that resolves to this machine (DNS rebinding), and would read the answers: the name gives it away.
 */
function hostOf(c: Context): string {
  const header = c.req.header("Host");
  try {
    return new URL(header === undefined ? c.req.url : `http://${header}`).hostname;
  } catch {
    return header ?? "";
  }
}

/** Checks a request for the token: as bearer token, or as the password of a browser that asked its user for one. */
function tokenCheck(token: string): (c: Context) => boolean {
  const expected = digest(token);
  return (c) => {
    const [scheme = "", value = ""] = (c.req.header("Authorization") ?? "").split(/ +/);
    if (scheme.toLowerCase() === "bearer") return timingSafeEqual(digest(value), expected);
    if (scheme.toLowerCase() !== "basic") return false;
    let userAndPassword: string;
    try {
      userAndPassword = atob(value);
    } catch {
      return false;
    }
    return timingSafeEqual(digest(userAndPassword.slice(userAndPassword.indexOf(":") + 1)), expected);
  };
}

// Of equal length, as timingSafeEqual asks for.
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
