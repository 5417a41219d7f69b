/**
 * Who may read what this program serves.
 * @module
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { type ReviewCluster, subjectAccessReview, tokenReview } from "../hono/access_review.ts";
import { allOf, allowNamespaces } from "../hono/allow_namespaces.ts";
import type { Authenticate, Authorize, UserInfo } from "../hono/authorization.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { quote, UsageError } from "./errors.ts";

/** What decides about access. */
export interface AccessOptions {
  readonly host: string;
  /** What readers must present: a text, or what gives it, as it may change. */
  readonly token?: string | (() => Promise<string>);
  readonly allowAnonymous?: boolean;
  /** The names by which readers may call this server where no token is asked for, besides this machine's own. */
  readonly allowedHosts?: readonly string[];
  /** The one namespace that is cached, if it is not all. */
  readonly namespace?: string;
  /** Readers are asked for tokens of this cluster, and see what it lets them see. Given once it is connected. */
  readonly reviewedBy?: () => ReviewCluster;
  /** The only namespaces that may be read. */
  readonly readerNamespaces?: readonly string[];
  /** The only resources that may be read, by the names that people know. */
  readonly readerResources?: readonly string[];
  /** Sees whom the hook finds; nobody by default. */
  readonly noting?: (authenticate: Authenticate) => Authenticate;
  /** What is served. Given once it is known. */
  readonly served?: () => readonly { readonly name: string; readonly resource: ApiResource }[];
}

/** How access is decided. */
export interface Access {
  /** Before every request: refuses what comes from a page of somebody else. */
  readonly hostGuard: MiddlewareHandler;
  /** Before the page and its files: refuses whoever may not read all that it shows. */
  readonly pageGuard: MiddlewareHandler;
  /** For the read API. */
  readonly readApi: {
    readonly authenticate?: Authenticate;
    readonly authorize?: Authorize;
    readonly allowAnonymous?: boolean;
  };
  /** In words, for whoever started this, and for whoever reads the page. */
  readonly description: string;
}

/**
 * Decides who may read.
 *
 * @throws {UsageError} The host is not this machine only, and neither a token is asked for nor is everybody let in; or
 * options contradict each other.
 */
export function newAccess(options: AccessOptions): Access {
  const { host, token, namespace, reviewedBy } = options;
  checkOptions(options);
  const local = isLoopback(host);
  const hook = tokenHook(options);
  const known = hook && options.noting ? options.noting(hook) : hook;
  const rules = rulesOf(options);
  const hosts = new Set((options.allowedHosts ?? []).map((name) => name.toLowerCase()));
  const mayCall = (name: string) =>
    isLoopback(name) || hosts.has(name.toLowerCase()) || (!local && isAddress(name)) ||
    (!local && name.toLowerCase() === host.toLowerCase());
  return {
    hostGuard: async (c, next) => {
      if (known === undefined && !mayCall(hostOf(c))) {
        return c.text(
          `This server answers requests to ${
            local ? "this machine's own names" : "addresses and known names"
          } only, ` +
            `and this one is for ${quote(hostOf(c))}${local ? "" : "; --allow-host makes it known"}.\n`,
          403,
        );
      }
      // Pages of others on this machine, too: another port is another site's.
      const site = c.req.header("Sec-Fetch-Site") ?? "none";
      if (local && site !== "none" && site !== "same-origin") {
        return c.text("This server answers no requests that a page of another site makes.\n", 403);
      }
      return await next();
    },
    pageGuard: async (c, next) => {
      const user = await known?.(c);
      if (known !== undefined && user === undefined) {
        c.header("WWW-Authenticate", 'Basic realm="listwatch: any user name, the token as password"');
        return c.text("Present the token: as bearer token, or as password with any user name.\n", 401);
      }
      const refused = await pageRefusal(options, { rules, user, c });
      return refused === undefined ? await next() : c.text(refused, 403);
    },
    readApi: {
      ...(known && { authenticate: known }),
      ...(rules.length > 0 ? { authorize: allOf(...rules) } : { allowAnonymous: true }),
    },
    description:
      describeAccess({ local, token: token !== undefined, reviewed: reviewedBy !== undefined }, options) +
      (namespace === undefined ? "" : `; only namespace ${quote(namespace)} is here`),
  };
}

function checkOptions(options: AccessOptions): void {
  const { host, token, allowAnonymous = false, reviewedBy, readerNamespaces, readerResources } = options;
  if (typeof allowAnonymous !== "boolean") throw new UsageError("allowAnonymous must be true or false");
  if (token !== undefined && allowAnonymous) {
    throw new UsageError(
      "A token is asked for and --allow-anonymous lets everybody in without: leave one of them out",
    );
  }
  if (reviewedBy !== undefined && (token !== undefined || allowAnonymous)) {
    throw new UsageError(
      "--cluster-rbac asks readers for tokens of the cluster: leave out --token and --allow-anonymous",
    );
  }
  if (typeof token === "string" && !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError("The token must be one word of printable ASCII characters");
  }
  if (!isLoopback(host) && token === undefined && reviewedBy === undefined && !allowAnonymous) {
    throw new UsageError(
      `Refusing to listen on ${host}: everyone who reaches it could read the whole cache, which does not ask for its ` +
        "readers' permissions. Ask for a token with --token or --cluster-rbac, or say --allow-anonymous",
    );
  }
  if (readerResources !== undefined && readerNamespaces === undefined) {
    throw new UsageError("--reader-resources narrows --reader-namespaces: name the namespaces, too");
  }
}

/** Finds out who asks, where that is asked for. */
function tokenHook({ token, reviewedBy }: AccessOptions): Authenticate | undefined {
  if (token !== undefined) {
    const expected = typeof token === "string" ? () => Promise.resolve(token) : token;
    return async (c) => {
      const presented = presentedToken(c);
      if (presented === undefined) return undefined;
      return timingSafeEqual(digest(presented), digest(await expected())) ? { name: "reader" } : undefined;
    };
  }
  if (reviewedBy === undefined) return undefined;
  let review: Authenticate | undefined;
  return (c) => {
    review ??= tokenReview(reviewedBy());
    return review(withBearer(c));
  };
}

function rulesOf(options: AccessOptions): Authorize[] {
  const { namespace, reviewedBy, readerNamespaces, readerResources, served } = options;
  const rules: Authorize[] = [];
  if (namespace !== undefined) {
    rules.push((attributes) =>
      attributes.scope !== "namespace" || attributes.namespace === namespace ||
      `only namespace ${quote(namespace)} is cached here`
    );
  }
  if (readerNamespaces !== undefined) {
    let rule: Authorize | undefined;
    rules.push((attributes, c) => {
      const named = served?.().filter(({ name }) => readerResources?.includes(name)) ?? [];
      const namesOf = (namespaced: boolean) =>
        named.filter(({ resource }) => resource.namespaced === namespaced).map(({ name }) => name);
      rule ??= allowNamespaces(readerNamespaces, {
        ...(readerResources !== undefined && { resources: namesOf(true) }),
        clusterResources: namesOf(false),
      });
      return rule(attributes, c);
    });
  }
  if (reviewedBy !== undefined) {
    let rule: Authorize | undefined;
    rules.push((attributes, c) => {
      rule ??= subjectAccessReview(reviewedBy());
      return rule(attributes, c);
    });
  }
  return rules;
}

/** The page shows all that is cached, so only who may list all of it may see it. Tells why somebody may not. */
async function pageRefusal(
  options: AccessOptions,
  request: { readonly rules: readonly Authorize[]; readonly user: UserInfo | undefined; readonly c: Context },
): Promise<string | undefined> {
  const { rules, user, c } = request;
  const { namespace, reviewedBy, readerNamespaces, served } = options;
  if (reviewedBy === undefined && readerNamespaces === undefined) return undefined;
  const rule = allOf(...rules);
  for (const { name, resource } of served?.() ?? []) {
    const { group, version, resource: plural, namespaced } = resource;
    const common = { group, version, resource: plural, name: "", path: c.req.path, user };
    for (const verb of ["list", "watch"] as const) {
      const allowed = await rule(
        namespaced && namespace !== undefined
          ? { ...common, verb, scope: "namespace", namespace }
          : { ...common, verb, scope: "cluster", namespace: undefined },
        c,
      );
      if (allowed !== true) {
        return `This page shows all that is cached, and you may not ${verb} all ${name}.\n`;
      }
    }
  }
  return undefined;
}

function describeAccess(
  is: { readonly local: boolean; readonly token: boolean; readonly reviewed: boolean },
  { readerNamespaces }: AccessOptions,
): string {
  const where = readerNamespaces === undefined ? "" : `, and only namespaces ${readerNamespaces.join(", ")}`;
  if (is.token) return `whoever presents the token may read${where}`;
  if (is.reviewed) {
    return `whoever presents a token of the cluster may read what the cluster lets them read${where}`;
  }
  return is.local
    ? `this machine only; whoever uses it may read${where}`
    : `anyone who reaches it may read${where}`;
}

/** Whether an address or name means this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name === "::1" || /^127(\.[0-9]{1,3}){3}$/.test(name);
}

// A page elsewhere can have a name resolve to any address, but cannot make a browser take an address for its own site.
function isAddress(host: string): boolean {
  return /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/.test(host) || /^\[[0-9a-f:.]+\]$/i.test(host);
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

/** The token of a request: as bearer token, or as the password of a browser that asked its user for one. */
function presentedToken(c: Context): string | undefined {
  const header = c.req.header("Authorization") ?? "";
  const space = header.indexOf(" ");
  const [scheme, value] = [header.slice(0, space).toLowerCase(), header.slice(space + 1).trim()];
  if (scheme === "bearer") return value === "" ? undefined : value;
  if (scheme !== "basic") return undefined;
  try {
    const userAndPassword = atob(value);
    return userAndPassword.slice(userAndPassword.indexOf(":") + 1);
  } catch {
    return undefined;
  }
}

/** The request with the token as bearer token, whichever way it was presented. */
function withBearer(c: Context): Context {
  const token = presentedToken(c);
  const header = (name: string) =>
    name.toLowerCase() === "authorization" ? token && `Bearer ${token}` : c.req.header(name);
  return { req: { header } } as unknown as Context;
}

// Of equal length, as timingSafeEqual asks for.
function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
