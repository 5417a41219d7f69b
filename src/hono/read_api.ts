/**
 * The cache over HTTP.
 * @module
 */

import { type Context, Hono } from "hono";
import { routePath } from "hono/route";
import { builtinResource } from "../meta/builtin_resources.ts";
import { answerDiscovery, type ApiResource } from "../meta/discovery.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { parseResource } from "../meta/resource.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { onAbort } from "../util/abort.ts";
import { type Authenticate, type Authorize, type Gate, newGate } from "./authorization.ts";
import { EventLog } from "./event_log.ts";
import { alive, ready } from "./health.ts";
import { parseResourcePath, type ResourcePath } from "./request_path.ts";
import { answerResource, type ServedResource } from "./resource_handler.ts";
import { methodNotAllowed, readOnly, statusResponse, unknownPath } from "./responses.ts";
import type { ServedInformer } from "./served_informer.ts";

/**
 * One informer, and what it holds.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import type { ReadApiResource } from "@listwatch/cache/hono";
 * const informer = new SharedIndexInformer(newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/pods"));
 * const pods: ReadApiResource = { informer, resource: "v1/pods" };
 * ```
 */
export interface ReadApiResource {
  /** The informer; it need not run yet. */
  readonly informer: ServedInformer;
  /** What it holds: `v1/pods` for what Kubernetes brings, a description for custom resources. */
  readonly resource: string | ApiResource;
}

/**
 * What `/version` says.
 *
 * @example
 * ```ts
 * import type { VersionInfo } from "@listwatch/cache/hono";
 * const version: VersionInfo = { major: "1", minor: "36", gitVersion: "v1.36.3", platform: "linux/amd64" };
 * ```
 */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly platform: string;
}

/**
 * Options of {@linkcode readApi}.
 *
 * @example
 * ```ts
 * import type { ReadApiOptions } from "@listwatch/cache/hono";
 * const options: ReadApiOptions = {
 *   resources: [],
 *   authorize: ({ namespace }) => namespace === "shop" || "only the namespace shop may be read",
 * };
 * ```
 */
export interface ReadApiOptions {
  /** What is served, in the order that discovery tells it. */
  readonly resources: readonly ReadApiResource[];
  /** Finds out who asks. Without it nobody has a name. */
  readonly authenticate?: Authenticate;
  /** Decides who may read what. Either this or {@linkcode ReadApiOptions.allowAnonymous} must be given. */
  readonly authorize?: Authorize;
  /** Whoever can reach the server may read everything it serves (or whoever `authenticate` knows, if that is given). */
  readonly allowAnonymous?: boolean;
  /** Secrets are served only if this says so; who may read them is still for `authorize` to say. */
  readonly allowSecrets?: boolean;
  /** What `/version` says; best the API server's own. */
  readonly version?: Partial<VersionInfo>;
  /** Ends every watch, and stops following the informers. */
  readonly signal?: AbortSignal;
  /** How many events per resource are kept for watches to be replayed from; 4096 by default. */
  readonly eventWindow?: number;
  /** The time between bookmarks, which show a watch that its server lives and the server a dead peer; 30 s by default. */
  readonly bookmarkIntervalMs?: number;
  /** How many bytes may wait in a watch's stream; 256 KiB by default. A watch that reads too slowly is cut off. */
  readonly watchBufferBytes?: number;
  /** How long a read waits for a resourceVersion that the cache has not come to yet; 3 s by default. */
  readonly freshnessTimeoutMs?: number;
  /** Where time comes from; the system's clock by default. */
  readonly clock?: Clock;
  /** Where failures of the hooks are told; the console by default. */
  readonly logger?: Logger;
}

/**
 * An app that serves informers' stores in Kubernetes' own protocol, read-only: get, list (selectors, pages), watch
 * (replay, initial events, bookmarks), Tables and metadata only; discovery, `/version`, `/healthz`, `/livez`,
 * `/readyz`. `kubectl --server` and the informers of every language can use it like an API server. Mount it with
 * `app.route("/", api)` or under any path.
 *
 * - Nothing is served without `authorize`, or `allowAnonymous: true`; Secrets need `allowSecrets: true` besides.
 *   `/healthz`, `/livez`, `/readyz` and `/version` are open, as an API server's are.
 * - Reads come from the cache: a list without a resourceVersion is as fresh as the informer is. A read at a
 *   resourceVersion waits until the cache has come to it, and is answered 504 if it does not.
 * - Objects are encoded as they are in the store, one by one. A number that `JSON.parse` could not hold (beyond 2^53)
 *   comes out rounded.
 * - A relist of an informer is one step: connected watches get its changes, watches from before it 410 Expired. One at
 *   an older resourceVersion, of a restored server, ends all watches with 410 Expired.
 * - What a store holds encoded stays so: objects are decoded one by one, while they are selected or written.
 * - No timer runs while no watch is open and no read waits.
 *
 * Do not put `etag()`, `prettyJSON()` or `timeout()` that awaits bodies in front of it: a watch's body never ends.
 * `compress()` leaves watches alone, as they say `no-transform`.
 *
 * @throws {TypeError} There is neither `authorize` nor `allowAnonymous`, Secrets are served without `allowSecrets`, a
 * resource is not known by its name, or is served twice.
 * @throws {RangeError} A number among the options is negative, or 0 where that makes no sense.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { readApi } from "@listwatch/cache/hono";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const server = new InMemoryApiServer();
 * server.create("v1/pods", pod("web-1", { namespace: "shop" }));
 * const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"));
 * const api = readApi({
 *   resources: [{ informer: pods, resource: "v1/pods" }],
 *   authorize: ({ namespace }, c) => c.req.header("Authorization") === `Bearer ${namespace}`,
 * });
 * const running = pods.start();
 * await pods.synced();
 * const path = "/api/v1/namespaces/shop/pods/web-1";
 * console.log((await api.request(path)).status); // 403
 * console.log((await api.request(path, { headers: { Authorization: "Bearer shop" } })).status); // 200
 * await running.stop();
 * server.close();
 * ```
 */
export function readApi(options: ReadApiOptions): Hono {
  checkAccess(options);
  const limits = limitsOf(options);
  const { clock = realClock, logger = consoleLogger, signal } = options;
  const resources = options.resources.map(({ resource }) => describe(resource));
  checkResources(resources, options);
  const served = options.resources.map(({ informer }, i): ServedResource => ({
    resource: resources[i],
    informer,
    log: new EventLog<KubernetesObject>(informer, {
      clock,
      capacity: limits.eventWindow,
      heartbeatMs: limits.bookmarkIntervalMs,
    }),
  }));
  if (signal !== undefined) onAbort(signal, () => served.forEach(({ log }) => log.close()));
  const state: ReadApiState = {
    served,
    resources,
    gate: newGate({ authenticate: options.authenticate, authorize: options.authorize, logger }),
    handling: { clock, ...limits },
  };

  const app = new Hono();
  app.get("/healthz", () => alive());
  app.get("/livez", () => alive());
  app.get("/readyz", (c) => ready(served, { verbose: c.req.query("verbose") !== undefined }));
  app.get("/version", (c) => c.json(versionInfo(options.version)));
  app.all("/api/*", (c) => answer(c, state));
  app.all("/apis/*", (c) => answer(c, state));
  return app;
}

interface ReadApiState {
  readonly served: readonly ServedResource[];
  readonly resources: readonly ApiResource[];
  readonly gate: Gate;
  readonly handling: Limits & { readonly clock: Clock };
}

type Limits = Required<
  Pick<ReadApiOptions, "eventWindow" | "bookmarkIntervalMs" | "watchBufferBytes" | "freshnessTimeoutMs">
>;

async function answer(c: Context, state: ReadApiState): Promise<Response> {
  const segments = pathSegments(c);
  if (segments === undefined) return statusResponse(unknownPath());
  // As Hono turns HEAD into GET, which would open a watch that nobody reads.
  const { method } = c.req.raw;
  const isRead = method === "GET" || method === "HEAD";
  const path = parseResourcePath(segments);
  if (path === undefined) {
    return isRead ? await answerOther(c, state, segments) : await refuse(c, methodNotAllowed());
  }
  const target = state.served.find(({ resource }) => isAt(resource, path));
  if (target === undefined) {
    const refusal = await state.gate({ ...path, verb: path.name === "" ? "list" : "get" }, c);
    return await refuse(c, refusal ?? unknownPath());
  }
  if (method !== "GET") {
    return await refuse(c, isWrite(method, path, target) ? readOnly(target.resource) : methodNotAllowed());
  }
  const wait = { timeoutMs: state.handling.freshnessTimeoutMs, signal: c.req.raw.signal };
  return await answerResource(c, { target, path, gate: state.gate, wait, ...state.handling });
}

/** Discovery, and what is not there. */
async function answerOther(c: Context, state: ReadApiState, segments: readonly string[]): Promise<Response> {
  const path = `/${segments.join("/")}`;
  const refusal = await state.gate(
    { verb: "get", group: "", version: "", resource: "", namespace: "", name: "", path },
    c,
  );
  if (refusal !== undefined) return statusResponse(refusal);
  const found = answerDiscovery(state.resources, {
    path,
    accept: c.req.header("Accept"),
    ifNoneMatch: c.req.header("If-None-Match"),
    serverAddress: new URL(c.req.url).host,
  });
  if (found === undefined) return statusResponse(unknownPath());
  return new Response(found.body, { status: found.status, headers: found.headers });
}

/** Answers with a Status once the request's body is read: on a kept-alive connection it would be taken for the next request. */
async function refuse(c: Context, status: Parameters<typeof statusResponse>[0]): Promise<Response> {
  try {
    await c.req.raw.body?.pipeTo(new WritableStream());
  } catch {
    // The client is gone, or broke off: there is nothing left to read.
  }
  return statusResponse(status);
}

/** The decoded path segments after what the app is mounted under; `undefined` if they do not decode. */
function pathSegments(c: Context): string[] | undefined {
  // The route is the mount's path and "/api/*".
  const mounted = routePath(c).split("/").length - 3;
  const segments = new URL(c.req.url).pathname.split("/").slice(1 + mounted);
  if (segments.at(-1) === "") segments.pop();
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function isAt(resource: ApiResource, path: ResourcePath): boolean {
  if (resource.resource !== path.resource) return false;
  if (resource.group !== path.group || resource.version !== path.version) return false;
  // One object of a namespaced resource needs its namespace, a cluster-scoped one has none.
  return resource.namespaced ? path.namespace !== "" || path.name === "" : path.namespace === "";
}

/** Whether an API server would take this for a write. */
function isWrite(method: string, path: ResourcePath, { resource }: ServedResource): boolean {
  const isOne = path.name !== "";
  if (method === "PUT" || method === "PATCH") return isOne;
  if (method === "DELETE") return isOne || path.namespace !== "" || !resource.namespaced;
  return method === "POST" && !isOne && (path.namespace !== "" || !resource.namespaced);
}

/** The numbers among the options, with their defaults. */
function limitsOf(options: ReadApiOptions): Limits {
  const {
    eventWindow = 4096,
    bookmarkIntervalMs = 30_000,
    watchBufferBytes = 256 * 1024,
    freshnessTimeoutMs = 3_000,
  } = options;
  const atLeast = (least: number, values: Record<string, number>) => {
    for (const [name, value] of Object.entries(values)) {
      if (!(value >= least)) {
        throw new RangeError(`Cannot serve with a ${name} of ${value}: it must be ${least} or more`);
      }
    }
  };
  atLeast(0, { eventWindow, freshnessTimeoutMs });
  atLeast(1, { bookmarkIntervalMs, watchBufferBytes });
  return { eventWindow, bookmarkIntervalMs, watchBufferBytes, freshnessTimeoutMs };
}

function describe(resource: string | ApiResource): ApiResource {
  if (typeof resource !== "string") return resource;
  const found = builtinResource(parseResource(resource));
  if (found !== undefined) return found;
  throw new TypeError(
    `Cannot serve ${
      JSON.stringify(resource)
    }: it is none of Kubernetes' own resources that are known here; ` +
      'describe it: { group, version, resource, kind: "...", namespaced: true }',
  );
}

function checkAccess(options: ReadApiOptions): void {
  const { authorize, allowAnonymous = false } = options;
  if (authorize === undefined && !allowAnonymous) {
    throw new TypeError(
      "Cannot serve a cache to everybody by accident: give readApi an `authorize` hook that decides who may read " +
        "what, or say `allowAnonymous: true` if whoever can reach the server may read everything",
    );
  }
  if (authorize !== undefined && allowAnonymous) {
    throw new TypeError(
      "Cannot tell what is meant: readApi has both `authorize` and `allowAnonymous: true`; leave one out",
    );
  }
}

function checkResources(resources: readonly ApiResource[], options: ReadApiOptions): void {
  const names = new Set<string>();
  for (const resource of resources) {
    const name = `${resource.group}/${resource.version}/${resource.resource}`;
    if (names.has(name)) throw new TypeError(`Cannot serve ${name} twice: give readApi one informer for it`);
    names.add(name);
    if (resource.group === "" && resource.resource === "secrets" && options.allowSecrets !== true) {
      throw new TypeError(
        "Cannot serve Secrets by accident: say `allowSecrets: true` beside `authorize`, or leave secrets out of readApi's resources",
      );
    }
  }
}

function versionInfo(version: Partial<VersionInfo> = {}): Record<string, string> {
  const { major = "1", minor = "36", gitVersion = `v${major}.${minor}.0`, platform = "" } = version;
  return {
    major,
    minor,
    gitVersion,
    gitCommit: "",
    gitTreeState: "",
    buildDate: "",
    goVersion: "",
    compiler: "",
    platform,
  };
}
