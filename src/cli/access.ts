/**
 * Access rules of `serve`: authentication and authorization of readers.
 * @module
 */

import type { Context, MiddlewareHandler } from "hono";
import { type ReviewCluster, subjectAccessReview, tokenReview } from "../hono/access/access_review.ts";
import { allOf, allowNamespaces } from "../hono/access/allow_namespaces.ts";
import type { Authenticate, Authorize, UserInfo } from "../hono/access/authorization.ts";
import { impersonates } from "../hono/access/gate.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { quote } from "./errors.ts";
import { isLoopback, newHostGuard } from "./host_guard.ts";
import { authenticateByToken, presentedToken, type ReaderToken } from "./reader_token.ts";

/** Options of {@linkcode newAccess}; checked by `checkServeOptions`. */
export interface AccessOptions {
  readonly host: string;
  /** The token that readers must present. */
  readonly token?: ReaderToken;
  /** Host names of requests that need no token, besides loopback, addresses and `host`. */
  readonly allowedHosts?: readonly string[];
  /** Origins whose pages may read; `*` for all. */
  readonly corsOrigins?: readonly string[];
  /** The only namespace that is cached; all by default. */
  readonly namespace?: string;
  /** The cluster whose tokens readers present, and whose RBAC decides what they may read. */
  readonly reviewedBy?: ReviewCluster;
  /** The only namespaces that may be read; all by default. */
  readonly readerNamespaces?: readonly string[];
  /** The only resources that may be read, by their display names; all by default. */
  readonly readerResources?: readonly string[];
  /** Wraps the hook that authenticates readers, such as for a log. */
  readonly noting?: (authenticate: Authenticate) => Authenticate;
  /** The resources that are served. */
  readonly served?: readonly { readonly name: string; readonly resource: ApiResource }[];
}

/** How requests are authenticated and authorized. */
export interface Access {
  /** Runs before every request: refuses requests that a page of another site makes. */
  readonly hostGuard: MiddlewareHandler;
  /** Runs before the page and its files: refuses readers who may not read everything that the page shows. */
  readonly pageGuard: MiddlewareHandler;
  /** Options of the read API. */
  readonly readApi: {
    readonly authenticate?: Authenticate;
    readonly authorize?: Authorize;
    readonly allowAnonymous?: boolean;
  };
  /** Who may read, as text for people. */
  readonly description: string;
}

/** Makes the hooks that decide who may read. */
export function newAccess(options: AccessOptions): Access {
  const { host, allowedHosts, corsOrigins } = options;
  const hook = authenticateHook(options);
  const authenticate = hook && options.noting ? options.noting(hook) : hook;
  const rules = rulesOf(options);
  return {
    hostGuard: newHostGuard({ host, allowedHosts, corsOrigins, needsToken: authenticate !== undefined }),
    pageGuard: async (c, next) => {
      if (impersonates(c)) return c.text("This server does not impersonate users.\n", 403);
      const user = await authenticate?.(c);
      if (authenticate !== undefined && user === undefined) {
        c.header("WWW-Authenticate", 'Basic realm="listwatch: any user name, the token as password"');
        return c.text("Send the token as bearer token, or as password with any user name.\n", 401);
      }
      const refused = await pageRefusal(options, { rules, user, c });
      return refused === undefined ? await next() : c.text(refused, 403);
    },
    readApi: {
      ...(authenticate && { authenticate }),
      ...(rules.length > 0 ? { authorize: allOf(...rules) } : { allowAnonymous: true }),
    },
    description: describeAccess(options),
  };
}

function authenticateHook({ token, reviewedBy }: AccessOptions): Authenticate | undefined {
  if (token !== undefined) return authenticateByToken(token);
  if (reviewedBy === undefined) return undefined;
  const review = tokenReview(reviewedBy);
  return (c) => review(withBearer(c));
}

/** The request with the presented token as bearer token. */
function withBearer(c: Context): Context {
  const token = presentedToken(c);
  const header = (name: string) =>
    name.toLowerCase() === "authorization" ? token && `Bearer ${token}` : c.req.header(name);
  return { req: { header } } as unknown as Context;
}

function rulesOf(options: AccessOptions): Authorize[] {
  const { namespace, reviewedBy, readerNamespaces, readerResources, served = [] } = options;
  const rules: Authorize[] = [];
  if (namespace !== undefined) {
    rules.push((attributes) =>
      attributes.scope !== "namespace" || attributes.namespace === namespace ||
      `only namespace ${quote(namespace)} is cached here`
    );
  }
  if (readerNamespaces !== undefined) {
    const named = served.filter(({ name }) => readerResources?.includes(name));
    const namesOf = (namespaced: boolean) =>
      named.filter(({ resource }) => resource.namespaced === namespaced).map(({ name }) => name);
    rules.push(allowNamespaces(readerNamespaces, {
      ...(readerResources !== undefined && { resources: namesOf(true) }),
      clusterResources: namesOf(false),
    }));
  }
  if (reviewedBy !== undefined) rules.push(subjectAccessReview(reviewedBy));
  return rules;
}

/** The reason why a reader may not see the page, which shows everything: they must be allowed to list all of it. */
async function pageRefusal(
  options: AccessOptions,
  request: { readonly rules: readonly Authorize[]; readonly user: UserInfo | undefined; readonly c: Context },
): Promise<string | undefined> {
  const { rules, user, c } = request;
  const { namespace, reviewedBy, readerNamespaces, served = [] } = options;
  if (reviewedBy === undefined && readerNamespaces === undefined) return undefined;
  const rule = allOf(...rules);
  for (const { name, resource } of served) {
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
        return `This page shows everything in the cache, and you may not ${verb} all ${name}.\n`;
      }
    }
  }
  return undefined;
}

function describeAccess(options: AccessOptions): string {
  const { host, token, reviewedBy, namespace, readerNamespaces } = options;
  const who = token !== undefined
    ? "everyone with the token"
    : reviewedBy !== undefined
    ? "everyone with a token of the cluster, as far as its RBAC allows"
    : isLoopback(host)
    ? "everyone on this machine (loopback only)"
    : "everyone who can reach this address";
  return [
    who,
    ...(readerNamespaces === undefined ? [] : [`only namespaces ${readerNamespaces.join(", ")}`]),
    ...(namespace === undefined ? [] : [`only namespace ${quote(namespace)} is cached`]),
  ].join("; ");
}
