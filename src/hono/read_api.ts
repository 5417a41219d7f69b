/**
 * The cache over HTTP.
 * @module
 */

import { type Context, Hono } from "hono";
import { routePath } from "hono/route";
import { JSON_AND_YAML, matchesRoute, type MediaType } from "../protocol/accept.ts";
import { builtinResource } from "../protocol/builtin_resources.ts";
import { type ApiResource, isBuiltinGroup } from "../protocol/api_resource.ts";
import { isAction, subresourcesOf } from "../protocol/subresources.ts";
import { answerDiscovery } from "../protocol/discovery.ts";
import { parseResourcePath, pathSegments, type ResourcePath } from "../protocol/resource_path.ts";
import {
  isStatus,
  methodNotAllowed,
  noRouteProduces,
  objectNotFound,
  unknownPath,
} from "../protocol/statuses.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatGroupResource, parseResource } from "../meta/resource.ts";
import type { Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import { onAbort } from "../util/abort.ts";
import { consoleLogger } from "../util/logger.ts";
import { TurnQueue } from "../util/turn_queue.ts";
import { type Asked, askedOf, askedOfPath, type UserInfo } from "./authorization.ts";
import { EventLog } from "./event_log.ts";
import { withCacheHeaders } from "./cache_headers.ts";
import { newCors } from "./cors.ts";
import { EntityTags } from "./etag.ts";
import type { Freshness } from "./freshness.ts";
import { FreshReads } from "./fresh_reads.ts";
import { FanOut } from "./fan_out.ts";
import { type Authentication, type Gate, impersonates, newAuthentication, newGate } from "./gate.ts";
import { alive, ready, unreadiness } from "./health.ts";
import { answerIndices, isNamed, parseIndexPath } from "./index_queries.ts";
import { ListBodies } from "./list_bodies.ts";
import { OpenApi } from "./open_api.ts";
import { PassThrough } from "./pass_through.ts";
import type { ReadApiOptions, VersionInfo } from "./read_api_options.ts";
import { type ReadSettings, readSettings } from "./read_settings.ts";
import { ReadMetrics } from "./read_metrics.ts";
import { Pacer, type Reader, Readers } from "./readers.ts";
import { answerResource, type ServedResource } from "./resource_handler.ts";
import {
  documentResponse,
  formatOf,
  GUARD_HEADERS,
  malformedPath,
  notHeld,
  notServed,
  pageNotFound,
  readOnly,
  refusalResponse,
  tooManyRequests,
} from "./responses.ts";

/**
 * What {@linkcode readApi} makes: a hono app, and a hold on its watches.
 *
 * @example
 * ```ts
 * import { type ReadApi, readApi } from "@listwatch/cache/hono";
 * const api: ReadApi = readApi({ resources: [], allowAnonymous: true });
 * console.log(api.endWatches((user) => user?.name === "jane")); // 0
 * ```
 *
 * @category HTTP adapter
 */
export interface ReadApi extends Hono {
  /**
   * Ends open watches at once: those of the users for which `which` is true, all without it. Their readers'
   * next requests are decided again. For a user whose permission was taken away.
   *
   * @returns How many there were.
   */
  endWatches(which?: (user: UserInfo | undefined) => boolean): number;
  /** The number of open watches of each resource, in the order of {@linkcode ReadApiOptions.resources}. */
  openWatches(): number[];
  /** Measures the state now, as each request for `/metrics` does: for programs that send the metrics themselves. */
  measure(): void;
}

/**
 * An app that serves informers' stores in Kubernetes' own protocol, read-only: get, list (selectors, pages), watch
 * (replay, initial events, bookmarks), Tables and metadata only; discovery, `/version`, `/healthz`, `/livez`,
 * `/readyz`; OpenAPI documents, if `openApi` fetches them. `kubectl --server` and the informers of every language can use it like an API server. Mount it with
 * `app.route("/", api)` or under any path.
 *
 * - Nothing is served without `authorize`, or `allowAnonymous: true`; Secrets need `allowSecrets: true` besides.
 *   `/healthz`, `/livez`, `/readyz` and `/version` are open, as an API server's are; the informers that are not ready are named
 *   for users that may read `/readyz`.
 * - Hooks are fail-closed: one that returns anything but `true` (or a user), fails or does not answer in time refuses.
 * - A watch ends after an hour or less, when its reader's credential ends, and when the hooks, asked again, refuse.
 * - Selectors, readers, what waits for them and the time that they take to read have limits; see the options.
 * - A continue token continues its own list only: the same path, selectors and user.
 * - Reads come from the cache. One without a resourceVersion is as fresh as the API server's own, see `freshness`; one at
 *   `resourceVersion=0` is answered at once. A read at a resourceVersion waits until the cache has come to it, and is answered
 *   504 if it does not.
 * - Objects are encoded as they are in the store, one by one. A number that `JSON.parse` could not hold (beyond 2^53)
 *   comes out rounded.
 * - With `passThrough`, what is not served goes to the API server with the reader's own bearer token: other resources,
 *   subresources such as logs, discovery, access reviews, and on request writes. The cache's own credentials never do, and
 *   `authorize` does not decide on it: the API server does. `exec`, `attach` and `portforward` are refused.
 * - A relist of an informer is one step: connected watches get its changes (up to 4 MiB of them, else 410 Expired),
 *   watches from before it 410 Expired. One at an older resourceVersion, of a restored server, ends all watches with 410
 *   Expired.
 * - The body of a list is kept while it is requested and its resource does not change (`maxListBodyBytes`), for all users
 *   that see the same; who may read it is decided for each request. Lists and objects have a weak `ETag`, but not Tables;
 *   what has 128 KiB or more is compressed for readers that prefer gzip.
 * - An answer about a resource has `Cache-Synced`, `Age` (seconds since the last contact with the API server) and
 *   `Resource-Version` (what the cache has reached). Pages of other origins may read what `cors` allows.
 * - `/indices/pods/byNode` has the values of an index with their counts, `/indices/pods/byNode/node-1` the objects under one
 *   as a list (empty value: `/indices/pods/byNode/`), `?namespace=shop` those of a namespace; a reader needs the permission to list them.
 * - A watch with `Accept: text/event-stream` comes as server-sent events, for `EventSource`: each message is a watch event,
 *   and the browser resumes by itself (`Last-Event-ID`). Where it cannot, an `expired` event comes first, then all objects.
 * - With `metrics`, `/metrics` has them in the text format of Prometheus, for users that may read that path.
 * - What a store holds encoded stays so: objects are decoded one by one, while they are selected or written.
 * - No timer runs while no watch is open and no read waits.
 *
 * hono's `etag()`, `compress()`, `prettyJSON()`, `timeout()`, `logger()` and `cors()` may precede it in the same app. A watch's
 * body never ends: a clone of the response has no body, and `no-transform` keeps it from being compressed. A middleware that
 * reads the body itself, rather than a clone, would wait for ever.
 *
 * @throws {TypeError} There is neither `authorize` nor `allowAnonymous`, a hook is no function, an `allow...` no boolean, Secrets are served without `allowSecrets`, a
 * resource is not known by its name, or is served twice.
 * @throws {RangeError} A number among the options is negative, or 0 where that makes no sense.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { allowNamespaces, bearerTokens, readApi } from "@listwatch/cache/hono";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const server = new InMemoryApiServer();
 * server.create("v1/pods", pod("web-1", { namespace: "shop" }));
 * const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"));
 * const api = readApi({
 *   resources: [{ informer: pods, resource: "v1/pods" }],
 *   authenticate: bearerTokens([{ token: "shop-reader-s3cret", user: { name: "reader" } }]),
 *   authorize: allowNamespaces(["shop"]),
 * });
 * const running = pods.start();
 * await pods.synced();
 * const path = "/api/v1/namespaces/shop/pods/web-1";
 * console.log((await api.request(path)).status); // 401
 * const headers = { Authorization: "Bearer shop-reader-s3cret" };
 * console.log((await api.request(path, { headers })).status); // 200
 * await running.stop();
 * server.close();
 * ```
 *
 * @category HTTP adapter
 */
export function readApi(options: ReadApiOptions): ReadApi {
  checkAccess(options);
  const settings = readSettings(options);
  const { clock } = settings;
  const { logger = consoleLogger, signal, authenticate, authorize, allowAnonymous } = options;
  const resources = options.resources.map(({ resource }) => describe(resource));
  checkResources(resources, options);
  const fanOut = new FanOut(clock);
  const served = options.resources.map(({ informer }, i): ServedResource => {
    const log = new EventLog<KubernetesObject>(informer, {
      clock,
      capacity: settings.eventWindow,
      capacityBytes: settings.eventWindowBytes,
      fanOut,
      heartbeatMs: settings.bookmarkIntervalMs,
    });
    const source = informer.metadata?.();
    if (source === undefined) checkFreshness(resources[i], settings.freshness);
    const fresh = source && new FreshReads(log, { informer, source }, { ...settings, logger });
    return { resource: resources[i], informer, log, fresh };
  });
  if (signal !== undefined) {
    onAbort(signal, () =>
      served.forEach(({ log, fresh }) => {
        log.close();
        fresh?.close();
      }));
  }
  const { hookTimeoutMs } = settings;
  const turns = new TurnQueue();
  const asked = new WeakMap<Context, Asked>();
  const gate = newGate({ authenticate, authorize, allowAnonymous, hookTimeoutMs, clock, logger });
  const { metrics } = options;
  const state: ReadApiState = {
    served,
    resources,
    gate: metrics === undefined ? gate : (what, c) => {
      asked.set(c, what);
      return gate(what, c);
    },
    asked,
    metrics: metrics && new ReadMetrics(metrics, clock),
    authentication: newAuthentication({ authenticate, hookTimeoutMs, clock, logger }),
    passThrough: options.passThrough &&
      new PassThrough(options.passThrough, { hasAuthenticate: authenticate !== undefined, logger }),
    readers: new Readers(settings),
    readersPacer: new Pacer(turns),
    fanOut,
    turns,
    bodies: new ListBodies(settings),
    tags: new EntityTags(settings.random),
    openApi: new OpenApi({ fetch: options.openApi, resources, clock }),
    settings,
  };

  const app = new Hono();
  if (options.cors !== undefined) {
    const cors = newCors(options.cors);
    // Not "*": mounted at "/", that would be every path of the app.
    for (const path of PATHS) app.use(path, cors);
  }
  for (const path of ["/healthz", "/livez"]) {
    app.all(path, (c) => alive(c.req.query("verbose") !== undefined && path));
  }
  app.all("/readyz", (c) => answerReady(c, state));
  for (const path of ["/healthz", "/livez", "/readyz"]) {
    app.all(`${path}/ping`, () => alive());
    app.all(`${path}/*`, () => pageNotFound());
  }
  const version = versionInfo(options.version);
  for (const path of ["/version", "/version/"]) app.all(path, (c) => answerVersion(c, version));
  if (state.metrics !== undefined) app.get("/metrics", (c) => answerMetrics(c, state));
  app.all("/api/*", (c) => answer(c, state));
  app.all("/apis/*", (c) => answer(c, state));
  app.all("/indices/*", (c) => answer(c, state));
  app.all("/openapi/*", (c) => answer(c, state));
  return Object.assign(app, {
    endWatches(which: (user: UserInfo | undefined) => boolean = () => true): number {
      const ended = Array.from(state.readers.watches).filter(({ user }) => which(user));
      for (const watch of ended) watch.stop();
      return ended.length;
    },
    openWatches: () => served.map(({ log }) => log.readers),
    measure: () => state.metrics?.measure(state),
  });
}

const PATHS = [
  "/api/*",
  "/apis/*",
  "/openapi/*",
  "/indices/*",
  "/healthz",
  "/livez",
  "/readyz",
  "/version",
  "/metrics",
];

interface ReadApiState {
  readonly served: readonly ServedResource[];
  readonly resources: readonly ApiResource[];
  readonly gate: Gate;
  readonly authentication: Authentication;
  readonly passThrough: PassThrough | undefined;
  readonly openApi: OpenApi;
  /** What a request asks for, for the metrics. */
  readonly asked: WeakMap<Context, Asked>;
  readonly metrics: ReadMetrics | undefined;
  readonly readers: Readers;
  readonly readersPacer: Pacer;
  readonly fanOut: FanOut;
  readonly turns: TurnQueue;
  readonly bodies: ListBodies;
  readonly tags: EntityTags;
  readonly settings: ReadSettings;
}

async function answer(c: Context, state: ReadApiState): Promise<Response> {
  const end = state.metrics?.begin();
  let status = 500;
  try {
    const response = await answerReader(c, state);
    ({ status } = response);
    return response;
  } finally {
    end?.(state.asked.get(c), state.served, status);
  }
}

async function answerReader(c: Context, state: ReadApiState): Promise<Response> {
  state.bodies.dropUnused();
  const reader = state.readers.enter();
  if (reader === undefined) return await refusalResponse(c, tooManyRequests());
  try {
    const answer = await route(c, state, reader);
    return await toResponse(c, answer);
  } catch (error) {
    // No client reads this.
    if (c.req.raw.signal.aborted) return new Response(null, { status: 499 });
    throw error;
  } finally {
    reader.release();
  }
}

async function toResponse(c: Context, answer: Response | Status): Promise<Response> {
  return answer instanceof Response ? answer : await refusalResponse(c, answer);
}

// No path of a Kubernetes API comes near: names have 253 characters at most.
const MAX_PATH = 2_048;

async function route(c: Context, state: ReadApiState, reader: Reader): Promise<Response | Status> {
  const pathname = new URL(c.req.url).pathname.slice(0, MAX_PATH + 1);
  const own = pathname.length > MAX_PATH ? undefined : unmounted(c, pathname);
  if (own?.startsWith("/indices/")) return await routeIndices(c, state, { reader, own });
  const segments = own === undefined ? [] : pathSegments(own);
  if (segments === undefined) {
    return await refusalOf(c, state, reader, askedOfPath(pathname)) ?? malformedPath();
  }
  const path = parseResourcePath(segments);
  const target = path && state.served.find(({ resource }) => isAt(resource, path));
  const hasSubresource = target !== undefined &&
    (path!.subresource === "" || isSubresource(target.resource, path!));
  // Hono turns HEAD into GET, which would open a watch that no client reads.
  const { method } = c.req.raw;
  const isOwn = hasSubresource && method === "GET" &&
    !(state.passThrough?.hasCredentials(c) && impersonates(c));
  if (own !== undefined && !isOwn) {
    const passed = await passThrough(c, state, { reader, own, isResource: path !== undefined });
    if (passed !== undefined) return passed;
  }
  if (path === undefined) return await routeDocument(c, state, { reader, pathname, segments });
  if (isOwn) {
    const answer = await answerResource(c, { target, path, wait: waitOf(c, state), reader, ...state });
    return withCacheHeaders(await toResponse(c, answer), target);
  }
  // The names of what is served are only for users that may read them.
  const { name } = path;
  const asked = askedOf(path, { verb: name === "" ? "list" : "get", name });
  const refusal = await refusalOf(c, state, reader, asked);
  if (refusal !== undefined) return refusal;
  if (target === undefined) {
    const isKnown = builtinResource(path) !== undefined || REVIEW_GROUPS.has(path.group);
    if (isKnown && method !== "GET" && method !== "HEAD") return await refuse(c, notHeld(path));
    return await refuse(c, isBuiltinGroup(path.group) ? unknownPath() : pageNotFound());
  }
  if (isAction(path.subresource)) return await refuse(c, notServed(target.resource, path.subresource));
  if (!hasSubresource) {
    return await refuse(
      c,
      isBuiltinGroup(path.group) ? unknownPath() : objectNotFound(target.resource, path.name),
    );
  }
  return await refuse(c, isWrite(method, path, target) ? readOnly(target.resource) : methodNotAllowed());
}

// Their resources are only created: questions to the API server.
const REVIEW_GROUPS: ReadonlySet<string> = new Set(["authentication.k8s.io", "authorization.k8s.io"]);

/** Answers what is no path of a resource: discovery, OpenAPI, or nothing. */
async function routeDocument(
  c: Context,
  state: ReadApiState,
  at: { readonly reader: Reader; readonly pathname: string; readonly segments: readonly string[] },
): Promise<Response | Status> {
  const { reader, pathname, segments } = at;
  const path = segments.length === 0 ? pathname : `/${segments.join("/")}`;
  const refusal = await refusalOf(c, state, reader, askedOfPath(path));
  if (refusal !== undefined) return refusal;
  const mount = pathname.slice(0, -unmounted(c, pathname).length);
  const found = await state.openApi.answer(c, path, mount) ?? await discovery(c, state, path);
  // A group of custom resources that is not known has no handler that would answer with a Status.
  const isOther = segments[0] === "apis" && !isBuiltinGroup(segments[1] ?? "");
  return await refuse(c, found ?? (isOther ? pageNotFound() : unknownPath()));
}

/** The API server's answer to what is not served here; `undefined` if that is for the cache to answer. */
async function passThrough(
  c: Context,
  { passThrough, authentication, settings, readers }: ReadApiState,
  { reader, own, isResource }: {
    readonly reader: Reader;
    readonly own: string;
    readonly isResource: boolean;
  },
): Promise<Response | Status | undefined> {
  // Discovery and OpenAPI are also of use to readers that may read the cache only.
  if (passThrough === undefined || (!isResource && !passThrough.hasCredentials(c))) return undefined;
  const user = await authentication(c, own);
  if (user !== undefined && isStatus(user)) return await refuse(c, user);
  if (!reader.identify(settings.clientOf(c, user))) return await refuse(c, tooManyRequests());
  const answer = await passThrough.answer(c, { path: own, reader, readers, user, settings });
  return answer instanceof Response ? answer : await refuse(c, answer);
}

/** A query of an index; see {@linkcode answerIndices}. */
async function routeIndices(
  c: Context,
  state: ReadApiState,
  { reader, own }: { readonly reader: Reader; readonly own: string },
): Promise<Response> {
  const asked = parseIndexPath(own);
  const target = asked && state.served.find((served) => isNamed(served, asked.resource));
  if (target !== undefined && c.req.raw.method === "GET") {
    const answer = await answerIndices(c, asked!, { target, wait: waitOf(c, state), reader, ...state });
    return withCacheHeaders(await toResponse(c, answer), target);
  }
  const refusal = await refusalOf(c, state, reader, askedOfPath(own));
  return await refuse(c, refusal ?? (target === undefined ? unknownPath() : methodNotAllowed()));
}

/** What bounds the waits of a request. */
function waitOf(c: Context, { settings }: ReadApiState): VersionWaitOptions {
  return {
    timeoutMs: settings.freshnessTimeoutMs,
    // Not before it is needed: Deno prints a warning when the signal of a request is read.
    get signal() {
      return c.req.raw.signal;
    },
  };
}

/** Why a request is refused; `undefined` if it is not. */
async function refusalOf(
  c: Context,
  { gate, settings }: ReadApiState,
  reader: Reader,
  asked: Asked,
): Promise<Status | undefined> {
  const permission = await gate(asked, c);
  if (isStatus(permission)) return permission;
  return reader.identify(settings.clientOf(c, permission.user)) ? undefined : tooManyRequests();
}

async function answerReady(c: Context, { served, gate, settings, bodies }: ReadApiState): Promise<Response> {
  bodies.dropUnused();
  const { maxLagMs } = settings;
  const isVerbose = c.req.query("verbose") !== undefined;
  const isNamed = isVerbose || served.some(({ informer }) => unreadiness(informer, maxLagMs) !== undefined);
  const mayName = isNamed && !isStatus(await gate(askedOfPath("/readyz"), c));
  return ready(served, { verbose: isVerbose && mayName, mayName, maxLagMs });
}

/** Without the limits of readers: it shows when they are reached. */
async function answerMetrics(c: Context, state: ReadApiState): Promise<Response> {
  const permission = await state.gate(askedOfPath("/metrics"), c);
  return isStatus(permission) ? await refusalResponse(c, permission) : await state.metrics!.page(state);
}

const VERSION_MEDIA_TYPES: readonly MediaType[] = ["application/json"];

async function answerVersion(c: Context, version: Record<string, string>): Promise<Response> {
  if (c.req.raw.method !== "GET") return await refuse(c, methodNotAllowed());
  if (!matchesRoute(c.req.header("Accept"), VERSION_MEDIA_TYPES)) {
    return await refusalResponse(c, noRouteProduces(VERSION_MEDIA_TYPES));
  }
  return await documentResponse(version, { mediaType: "application/json", pretty: true });
}

async function discovery(
  c: Context,
  { resources }: ReadApiState,
  path: string,
): Promise<Response | Status | undefined> {
  const found = answerDiscovery(resources, {
    method: c.req.raw.method,
    path,
    accept: c.req.header("Accept"),
    ifNoneMatch: c.req.header("If-None-Match"),
    serverAddress: new URL(c.req.url).host,
    mediaTypes: JSON_AND_YAML,
  });
  if (found === undefined || isStatus(found)) return found;
  const { status, mediaType, parameters } = found;
  const headers = { ...found.headers, ...GUARD_HEADERS };
  if (found.document === null) return new Response(null, { status, headers });
  const typed = { ...headers, "Content-Type": mediaType + parameters };
  return await documentResponse(found.document, formatOf(c, found), { status, headers: typed });
}

// A request to etcd has at most 1.5 MiB (https://etcd.io/docs/v3.5/dev-guide/limit/); a longer body is not read.
const DRAINED_BYTES = 2 * 1024 * 1024;

/**
 * Answers once the request's body is read: on a kept-alive connection it would be taken for the next request. Of a
 * body that is too long the connection is closed instead.
 */
async function refuse(c: Context, answer: Response | Status): Promise<Response> {
  const isRead = await drain(c.req.raw.body);
  const response = await toResponse(c, answer);
  if (!isRead) response.headers.set("Connection", "close");
  return response;
}

/** Reads a body to its end; `false` if that is too far away. */
async function drain(body: ReadableStream<Uint8Array> | null): Promise<boolean> {
  if (body === null) return true;
  let left = DRAINED_BYTES;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      left -= value.byteLength;
      if (left < 0) {
        reader.cancel().catch(() => {});
        return false;
      }
    }
  } catch {
    return true; // The client disconnected: there is nothing left to read.
  }
}

/** The path below the one that the app is mounted at. */
function unmounted(c: Context, pathname: string): string {
  // The route is the mount's path and "/api/*".
  const mounted = routePath(c).split("/").length - 3;
  return `/${pathname.split("/").slice(1 + mounted).join("/")}`;
}

function isAt(resource: ApiResource, path: ResourcePath): boolean {
  if (resource.resource !== path.resource) return false;
  if (resource.group !== path.group || resource.version !== path.version) return false;
  // One object of a namespaced resource needs its namespace, a cluster-scoped one has none.
  return resource.namespaced ? path.namespace !== "" || path.name === "" : path.namespace === "";
}

/** Whether an API server would take this for a write. */
function isWrite(method: string, path: ResourcePath, { resource }: ServedResource): boolean {
  if (path.isWatch) return false;
  const isOne = path.name !== "";
  if (method === "PUT" || method === "PATCH") return isOne;
  if (path.subresource !== "") return false;
  if (method === "DELETE") return isOne || path.namespace !== "" || !resource.namespaced;
  return method === "POST" && !isOne && (path.namespace !== "" || !resource.namespaced);
}

function isSubresource(resource: ApiResource, { subresource }: ResourcePath): boolean {
  return subresourcesOf(resource).some((known) => known === subresource);
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
  const { authenticate, authorize, allowAnonymous, allowSecrets } = options;
  for (const [name, hook] of Object.entries({ authenticate, authorize, clientOf: options.clientOf })) {
    if (hook === undefined || typeof hook === "function") continue;
    throw new TypeError(`Cannot use ${typeOf(hook)} as \`${name}\`: it must be a function, or left out`);
  }
  for (const [name, value] of Object.entries({ allowAnonymous, allowSecrets })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw new TypeError(
      `Cannot use the option \`${name}\`: it is ${typeOf(value)}, and must be true or false`,
    );
  }
  if (authorize === undefined && allowAnonymous !== true) {
    throw new TypeError(
      "Cannot serve a cache without an access decision: give readApi an `authorize` hook that decides who may read " +
        "what, or say `allowAnonymous: true` if every client that can reach the server may read everything",
    );
  }
  if (authorize !== undefined && allowAnonymous === true) {
    throw new TypeError(
      "Cannot combine the options: readApi has both `authorize` and `allowAnonymous: true`; leave one out",
    );
  }
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}

function checkResources(resources: readonly ApiResource[], options: ReadApiOptions): void {
  const names = new Set<string>();
  for (const [i, resource] of resources.entries()) {
    const name = `${resource.group}/${resource.version}/${resource.resource}`;
    if (names.has(name)) throw new TypeError(`Cannot serve ${name} twice: give readApi one informer for it`);
    names.add(name);
    const holdsSecrets = isSecrets(resource) || isSecrets(options.resources[i].informer.resource);
    if (holdsSecrets && options.allowSecrets !== true) {
      throw new TypeError(
        "Cannot serve Secrets by accident: say `allowSecrets: true` beside `authorize`, or leave secrets out of readApi's resources",
      );
    }
  }
}

function checkFreshness(resource: ApiResource, freshness: Freshness = "as-is"): void {
  if (freshness === "as-is") return;
  throw new TypeError(
    `Cannot serve ${
      formatGroupResource(resource)
    } with \`freshness: "${freshness}"\`: its informer cannot ask the API ` +
      "server how far it is; give the informer's source the method `metadata`, or leave `freshness` out",
  );
}

/** Whether it is Kubernetes' own Secrets: by what is said of it, and by what its informer lists, whatever is said. */
function isSecrets(resource: Partial<ApiResource> | undefined): boolean {
  const { group, resource: name = "", kind } = resource ?? {};
  return group === "" && (name.toLowerCase() === "secrets" || kind === "Secret");
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
