/** Access rules of `serve`: authentication and authorization of readers. */

import type { Context, MiddlewareHandler } from "hono";
import { type ReviewCluster, subjectAccessReview, tokenReview } from "../../hono/request/access_review.ts";
import { allOf, allowNamespaces } from "../../hono/request/allow_namespaces.ts";
import { bearerTokenOf, isSameToken } from "../../hono/request/bearer_tokens.ts";
import { type Asked, askedOfPath, type Authenticate, type Authorize } from "../../hono/request/gate.ts";
import { FileToken } from "../../node/kubeconfig/rest_config.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { fromBase64 } from "../../util/bytes.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { quote } from "../errors.ts";
import { checkToken, isLoopback, type ServeOptions } from "../serve/serve_options.ts";

export interface AccessOptions extends
  Pick<
    ServeOptions,
    "allowedHosts" | "corsOrigins" | "namespace" | "readerNamespaces" | "readerResources" | "clock"
  > {
  readonly host: string;
  readonly token?: ReaderToken;
  /** The cluster whose tokens readers present, and whose RBAC decides what they may read. */
  readonly reviewedBy?: ReviewCluster;
  /** Wraps the hook that authenticates readers, such as for a log. */
  readonly noting?: (authenticate: Authenticate) => Authenticate;
  readonly served?: readonly { readonly name: string; readonly resource: ApiResource }[];
}

export interface Access {
  /** Runs before every request: refuses requests that a page of another site makes. */
  readonly hostGuard: MiddlewareHandler;
  /** The permissions for the page and its files: its readers may read everything that it shows. */
  readonly pageAsked: readonly Asked[];
  readonly readApi: {
    readonly authenticate?: Authenticate;
    readonly authorize?: Authorize;
    readonly allowAnonymous?: boolean;
  };
  readonly description: string;
}

export function newAccess(options: AccessOptions): Access {
  const hook = authenticateHook(options);
  const authenticate = hook && options.noting ? options.noting(hook) : hook;
  const rules = rulesOf(options);
  return {
    hostGuard: newHostGuard(options, { needsToken: authenticate !== undefined }),
    pageAsked: askedOfPage(options),
    readApi: {
      ...(authenticate && { authenticate }),
      ...(rules.length > 0 ? { authorize: allOf(...rules) } : { allowAnonymous: true }),
    },
    description: describeAccess(options),
  };
}

function authenticateHook({ token, reviewedBy, clock }: AccessOptions): Authenticate | undefined {
  if (token !== undefined) return authenticateByToken(token);
  if (reviewedBy === undefined) return undefined;
  const review = tokenReview(reviewedBy, { clock });
  return (c) => review(withBearer(c));
}

function withBearer(c: Context): Context {
  const token = presentedToken(c);
  const header = () => token && `Bearer ${token}`;
  return { req: { header, raw: c.req.raw }, env: c.env } as unknown as Context;
}

function rulesOf(options: AccessOptions): Authorize[] {
  const { namespace, reviewedBy, readerNamespaces, readerResources, served = [], clock } = options;
  const rules: Authorize[] = [];
  if (namespace !== undefined) {
    const cached = [namespace].flat();
    rules.push((attributes) =>
      attributes.scope !== "namespace" || cached.includes(attributes.namespace ?? "") ||
      `${onlyCached(cached)} cached here`
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
  if (reviewedBy !== undefined) rules.push(subjectAccessReview(reviewedBy, { clock }));
  return rules;
}

/** The permissions that a reader of the page needs: to list and watch all that is served, as it is shown. */
function askedOfPage({ namespace, served = [] }: AccessOptions): readonly Asked[] {
  if (served.length === 0) return [askedOfPath("/")];
  return served.flatMap(({ resource: { group, version, resource, namespaced } }) =>
    (["list", "watch"] as const).flatMap((verb): readonly Asked[] => {
      const common = { verb, group, version, resource, name: "", path: "/" };
      return namespaced && namespace !== undefined
        ? [namespace].flat().map((namespace) => ({ ...common, scope: "namespace", namespace }))
        : [{ ...common, scope: "cluster", namespace: undefined }];
    })
  );
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
    ...(namespace === undefined ? [] : [`${onlyCached([namespace].flat())} cached`]),
  ].join("; ");
}

function onlyCached(names: readonly string[]): string {
  const isOne = names.length === 1;
  return `only namespace${isOne ? "" : "s"} ${names.map(quote).join(", ")} ${isOne ? "is" : "are"}`;
}

/**
 * Makes the middleware. It refuses unknown host names, if readers present no token: a page of another site
 * can make a browser send requests to this server under its own name (DNS rebinding), and would read the
 * responses. On a loopback address it also refuses requests that the browser marks as made by another site.
 */
function newHostGuard(
  { host, allowedHosts = [], corsOrigins = [] }: AccessOptions,
  { needsToken }: { readonly needsToken: boolean },
): MiddlewareHandler {
  const isLocal = isLoopback(host);
  const names = new Set([host, ...allowedHosts].map((name) => name.toLowerCase()));
  const isKnown = (name: string) => isLoopback(name) || names.has(name) || (!isLocal && isAddress(name));
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

// A page can give its own name any address (DNS rebinding), but not an address as its name.
function isAddress(host: string): boolean {
  return /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/.test(host) || /^\[[0-9a-f:.]+\]$/i.test(host);
}

function hostOf(c: Context): string {
  const header = c.req.header("Host");
  return URL.parse(header === undefined ? c.req.url : `http://${header}`)?.hostname ?? header ?? "";
}

export type ReaderToken = string | (() => Promise<string>);

export async function readerToken(
  options: Pick<ServeOptions, "token" | "tokenFile"> & { readonly clock: Clock; readonly logger: Logger },
): Promise<ReaderToken | undefined> {
  const { token, tokenFile } = options;
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

function authenticateByToken(token: ReaderToken): Authenticate {
  const expected = typeof token === "string" ? () => Promise.resolve(token) : token;
  return async (c) => {
    const presented = presentedToken(c);
    if (presented === undefined) return undefined;
    return await isSameToken(presented, await expected()) ? { name: "reader" } : undefined;
  };
}

/**
 * The token of a request: a bearer token, also as a WebSocket's subprotocol, or the password of basic auth,
 * for which a browser asks its user.
 */
function presentedToken(c: Context): string | undefined {
  const header = c.req.header("Authorization") ?? "";
  if (header.slice(0, 6).toLowerCase() !== "basic ") return bearerTokenOf(c);
  try {
    const userAndPassword = fromBase64(header.slice(6));
    return userAndPassword.slice(userAndPassword.indexOf(":") + 1);
  } catch {
    return undefined;
  }
}
