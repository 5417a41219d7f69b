/** The cache over HTTP: the app, its routes, and the one place that every request passes. */

import { type Context, Hono, type MiddlewareHandler } from "hono";
import { matchesRoute, type MediaType } from "../protocol/representations.ts";
import { isExpired, type Status, statusErrorOf } from "../meta/status.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { pathSegments, refusedTimeout, timeoutOf } from "../protocol/request_url.ts";
import { isStatus, methodNotAllowed, noRouteProduces, requestTimedOut } from "../protocol/statuses.ts";
import { withTimeLimit } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import type { UpgradeWebSocket } from "../protocol/server_sockets.ts";
import { apiRoute, ownPath } from "./api_routes.ts";
import { sourcesOf } from "./content/served_informer.ts";
import { alive, checksOf, ready } from "./health/health.ts";
import { indexRoute } from "./index_routes.ts";
import { isSocketRequest, mayOpenSocket, newCors } from "./request/cors.ts";
import { type Answer, askedOfPath, type Route, type UserInfo } from "./request/gate.ts";
import { cutConnection, type Reader } from "./request/readers.ts";
import { failed, foreignPage, tooManyRequests } from "./request/refusals.ts";
import type { ReadApiOptions } from "./read_api_options.ts";
import { newReadApiState, type ReadApiState, type ServedResource } from "./read_api_state.ts";
import { documentResponse, pageNotFound, refusalResponse, warningHeader } from "./send/responses.ts";
import { socketResponse } from "./send/socket_watch.ts";

/** The result of {@linkcode readApi}: a hono app, and a hold on its watches. */
export interface ReadApi extends Hono {
  /**
   * Ends open watches at once: those of the users for which `which` is true, all without it. Their readers'
   * next requests are decided again. Use it for a user whose permission was taken away.
   *
   * @returns How many there were.
   */
  endWatches(which?: (user: UserInfo | undefined) => boolean): number;
  /**
   * For a server that is about to stop and answers the requests that it has: `/readyz` fails from now on,
   * open watches end after what there is for them, and new ones get 429.
   */
  drain(): void;
  /** The number of open watches of each resource, in the order of {@linkcode ReadApiOptions.resources}. */
  openWatches(): number[];
}

/**
 * An app that serves informers' stores in Kubernetes' own protocol, read-only: get, list (selectors, shards,
 * pages), watch (replay, initial events, bookmarks), `status`, `scale` and `resize`, Tables and metadata
 * only, JSON and YAML; discovery, `/version`, `/healthz`, `/livez`, `/readyz`; OpenAPI documents, if
 * `openApi` fetches them; indices at `/indices`. `kubectl --server` and the informers of every language can
 * use it like an API server. Mount it with `app.route("/", api)` or under any path. docs/serving.md describes
 * what it answers.
 *
 * **Access**
 *
 * - Nothing is served without `authorize`, or `allowAnonymous: true`; Secrets need `allowSecrets: true`
 *   besides. `/healthz`, `/livez`, `/readyz` and `/version` are open, as an API server's are; the informers
 *   that are not ready are named for users that may read `/readyz`. Every other request is decided before
 *   anything of it is answered, 404 included.
 * - Hooks are fail-closed: one that returns anything but `true` (or a user), fails or does not answer in time
 *   refuses. A watch ends after an hour or less, when its reader's credential ends, and when the hooks, asked
 *   again, refuse.
 * - A continue token continues its own list only: the same path, selectors and user. An index needs the
 *   permission to list the resource.
 * - With `passThrough`, what is not served goes to the API server with the reader's own bearer token, never
 *   with the cache's credentials; `authorize` does not decide on it. What tunnels is refused (405).
 * - Pages of other origins may read, and open WebSockets, as `cors` allows.
 *
 * **Content**
 *
 * - A read without a resourceVersion is as fresh as the API server's own, see `freshness`; one at
 *   `resourceVersion=0` is answered at once. A read at a resourceVersion waits until the cache has come to
 *   it, and is answered 504 if it does not.
 * - An object that a store holds as text (`storage: texts()` or `shortTexts()`) is served as the API server
 *   sent it, digit for digit, less the fields that the informer drops. One that is held as an object is
 *   encoded again: a number that `JSON.parse` cannot hold (beyond 2^53) comes out rounded.
 * - A relist of an informer is one step: connected watches get its changes (up to 4 MiB of them, else 410
 *   Expired), watches from before it 410 Expired, and so do watches that require each event (`Prefer:
 *   handling=strict`, as those of a `Cluster`). One at an older resourceVersion, of a restored server, ends
 *   all watches with 410 Expired.
 * - An answer about a resource has `Cache-Synced`, `Age` (seconds since the last contact with the API server)
 *   and `Resource-Version` (what the cache has reached). Lists and objects have a weak `ETag`, but not
 *   Tables; that of a list stays while only its resourceVersion moves.
 * - While nothing was read of one of the sources of a {@linkcode MergedInformer}, reads are 503, and with
 *   `partial=true` they have what the others have, with a `Warning`.
 *
 * Many readers of one list cost one encoding of it, and texts are not parsed for gets, lists and watches. No
 * timer runs while no watch is open and no read waits. hono's `etag()`, `compress()`, `prettyJSON()`,
 * `timeout()`, `logger()` and `cors()` may precede it. A middleware that reads the body of a watch itself,
 * rather than a clone, which has none, would wait for ever.
 *
 * @throws {TypeError} There is neither `authorize` nor `allowAnonymous`, or both; a hook is no
 * function, an `allow...` no boolean; Secrets are served without `allowSecrets`; a resource is not
 * known by its name, or is served twice; `freshness` is given and an informer's source has no
 * `metadata`; or `passThrough` or `cors` is wrong.
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
 */
export function readApi(options: ReadApiOptions): ReadApi {
  return readApiOf(newReadApiState(options));
}

/** As {@linkcode readApi}, beside other routes that are answered as readers of the same state. */
export function readApiOf(state: ReadApiState): ReadApi {
  const app = new Hono();
  // Unknown paths are answered here only if no other app is above this one.
  app.notFound(() => pageNotFound());
  const { cors: origins } = state.settings;
  // Not `app.use("*")`: mounted at "/", that would be every path of the app.
  const cors: MiddlewareHandler = origins === undefined ? (_, next) => next() : newCors(origins);
  for (const [path, routeOf] of Object.entries(PLAIN_ROUTES)) {
    app.all(path, cors, (c, next) => {
      const route = routeOf(c, state);
      return route === undefined ? next() : answerPlain(c, state, route);
    });
  }
  for (const [path, routeOf] of Object.entries(READER_ROUTES)) {
    app.all(path, cors, (c) => answerReader(c, state, routeOf));
  }
  return Object.assign(app, {
    endWatches(which: (user: UserInfo | undefined) => boolean = () => true): number {
      const ended = Array.from(state.readers.watches).filter(({ user }) => which(user));
      for (const watch of ended) watch.stop();
      return ended.length;
    },
    drain(): void {
      for (const { watchers } of state.served) watchers.end();
      state.readers.drain();
    },
    openWatches(): number[] {
      const of = (resource: ApiResource) => state.served.find((each) => each.resource === resource);
      return state.resources.map((resource) => of(resource)?.watchers.size ?? 0);
    },
  });
}

/** The access check: no route is answered in another way. */
async function answerRoute(
  c: Context,
  { gate, settings }: ReadApiState,
  route: Route,
  { reader, refused }: { readonly reader?: Reader; readonly refused?: Status | undefined },
): Promise<Answer> {
  if (route.access === "open") return await refusing(c, route.answer());
  const isWatch = route.access === "API server" ? route.isStream : route.isWatch === true;
  const mayPass = (user: UserInfo | undefined) =>
    reader?.identify(settings.clientOf(c, user), { isWatch }) ?? true;
  if (route.access === "API server") {
    const user = await gate.userOf(c, route.path);
    if (user !== undefined && isStatus(user)) return user;
    return mayPass(user) ? await refusing(c, route.answer(user)) : tooManyRequests();
  }
  const permission = await gate.permit(route.asked, c);
  if (!("renew" in permission)) return permission;
  if (!mayPass(permission.user)) return tooManyRequests();
  return await refusing(c, refused ?? route.answer(permission));
}

/** Answers a request that is answered whatever readers there are. */
async function answerPlain(c: Context, state: ReadApiState, route: Route): Promise<Response> {
  state.readers.dropUnused();
  const answer = await answerRoute(c, state, route, {});
  return answer instanceof Response ? answer : await refusalResponse(c, answer);
}

/** Answers a request that counts as a reader, and is measured. */
export async function answerReader(c: Context, state: ReadApiState, routeOf: ReaderRoute): Promise<Response> {
  const { settings, readers, resources } = state;
  const end = state.metrics?.begin();
  let route: Route<ServedResource> | undefined;
  let status = 500;
  const reader = readers.enter(settings.clientOf(c, undefined));
  try {
    let answer: Answer;
    let upgradeWebSocket: UpgradeWebSocket | undefined;
    if (reader === undefined || !takeRequest(reader, c.req.raw)) answer = tooManyRequests();
    else {
      reader.onSpent = () => cutConnection(c.env);
      // Read late: Deno prints a warning when the signal of a request is read.
      reader.hasLeft = () => c.req.raw.signal.aborted;
      route = routeOf(c, state, reader);
      if (isWatchRoute(route) && isSocketRequest(c)) ({ upgradeWebSocket } = settings);
      const isForeign = upgradeWebSocket !== undefined && !mayOpenSocket(c, settings.cors);
      answer = isForeign ? foreignPage() : await inTime(c, state, route, reader);
    }
    let response = answer instanceof Response ? answer : await refusalResponse(c, answer);
    if (route?.access === "hooks" && route.target !== undefined) addCacheHeaders(response, route.target);
    const isJson = response.status === 200 && response.headers.get("Content-Type") === "application/json";
    if (upgradeWebSocket !== undefined && reader !== undefined && isJson) {
      const { clock, watchBufferBytes: bufferBytes, writeTimeoutMs } = settings;
      const options = { upgradeWebSocket, clock, bufferBytes, writeTimeoutMs, reader };
      response = await socketResponse(c, response, options);
    }
    if (c.req.raw.method === "HEAD") response = headOf(response);
    ({ status } = response);
    return status === 200 && mayBeEndless(route) ? endless(c, response) : response;
  } catch (error) {
    if (c.req.raw.signal.aborted) {
      status = 499; // No client reads this.
      return new Response(null, { status });
    }
    state.failures.error(`${c.req.method} ${c.req.path} failed: ${errorMessage(error)}`, { error });
    return await refusalResponse(c, isExpired(error) ? statusErrorOf(error)!.status : failed());
  } finally {
    reader?.answered(c.env);
    end?.(route?.access === "hooks" ? route.asked : undefined, resources, status);
  }
}

// A token has one or two thousand characters.
const USUAL_LENGTH = 4_096;

/** Counts what a long request takes until it is answered, a watch as long as it lasts. */
function takeRequest(reader: Reader, { url, headers }: Request): boolean {
  let length = url.length;
  for (const [name, value] of headers) length += name.length + value.length;
  // Node has it in two forms, Deno in four.
  return length <= USUAL_LENGTH || reader.take(4 * length);
}

/**
 * The answer of a route, or an API server's refusal where it takes longer than the `timeout` of the request:
 * the reader counts until the answer is there nevertheless. A watch has no `timeout`, and of what the API
 * server answers, that has to decide.
 */
async function inTime(c: Context, state: ReadApiState, route: Route, reader: Reader): Promise<Answer> {
  const { clock } = state.settings;
  const { url } = c.req;
  // Few requests have one.
  const ms = mayBeEndless(route) || !/timeout=|%/.test(url) ? 0 : timeoutOf(url);
  const answer = answerRoute(c, state, route, { reader, ...(ms !== 0 && { refused: refusedTimeout(ms) }) });
  if (typeof ms === "string" || ms < 1) return await answer;
  const late = requestTimedOut();
  return await withTimeLimit(() => answer, { ms, newError: () => late, clock }).catch((error) => {
    if (error !== late) throw error;
    const ended = answer.then((answer) => answer instanceof Response && headOf(answer)).catch(() => {});
    const counted = ended.then(reader.hold());
    try {
      c.executionCtx.waitUntil(counted);
    } catch {
      // Only a Worker ends work that nothing waits for.
    }
    return late;
  });
}

function headOf({ body, status, headers }: Response): Response {
  body?.cancel().catch(() => {});
  return new Response(null, { status, headers });
}

// Refused by the permission check, or before it: says nothing about the cache.
const REFUSED = new Set([401, 403, 429]);

const RESTORED = "this is a saved state, which the API server has not confirmed yet";

/**
 * Adds to an answer: `Cache-Synced` (whether the first list is there, or the API server has confirmed a
 * snapshot), `Age` (seconds since the last contact with the API server) and `Resource-Version` (what the
 * cache has reached), and the `Warning`s of a snapshot that is not confirmed and of a deprecated resource.
 * Not to an answer that refuses the reader.
 */
function addCacheHeaders(
  { status, headers }: Response,
  { resource, informer, content }: ServedResource,
): void {
  if (REFUSED.has(status)) return;
  const { resourceVersion, layout } = content.log.window;
  const isSynced = informer.hasSynced();
  // Before the first list and without a snapshot the log is nowhere.
  const isReady = isSynced || resourceVersion !== "";
  const lagMs = informer.lagMs?.();
  headers.set("Cache-Synced", String(isSynced));
  if (isReady && lagMs !== undefined && Number.isFinite(lagMs)) {
    headers.set("Age", String(Math.floor(lagMs / 1_000)));
  }
  if (resourceVersion !== "") headers.set("Resource-Version", resourceVersion);
  if (layout !== "") headers.set("Snapshot", "per-shard");
  if (isReady && !isSynced) {
    const restored = sourcesOf(informer).filter(({ informer }) =>
      !informer.hasSynced() && informer.isRestored?.()
    );
    const names = restored.map(({ name }) => name).join(", ");
    if (restored.length > 0) headers.append("Warning", warningHeader(RESTORED + (names && `: ${names}`)));
  }
  const { deprecationWarning } = resource;
  if (deprecationWarning !== undefined) headers.append("Warning", warningHeader(deprecationWarning));
}

/** Whether an answer may never end: a watch, or whatever the API server sends. */
function mayBeEndless(route: Route | undefined): boolean {
  return route?.access === "API server" || isWatchRoute(route);
}

/**
 * Keeps middlewares of the same app from reading a body that may never end: `prettyJSON()` and `etag()` read
 * a clone of each response to its end before it is sent, and a body that was cloned does not learn that its
 * client has left. A clone of this response has no body, which makes them leave it alone. Hono is given it
 * here, as it makes a new response of it where a middleware has set headers before.
 */
function endless(c: Context, response: Response): Response {
  c.res = response;
  const { res } = c;
  res.clone = () =>
    new Response(null, { status: res.status, statusText: res.statusText, headers: res.headers });
  return res;
}

function isWatchRoute(route: Route | undefined): boolean {
  return route !== undefined && route.access !== "open" && route.isWatch === true;
}

/**
 * Sends a refusal once the request's body is read: on a kept-alive connection the rest would be taken for the
 * next request. After a body that is too long, the connection is closed instead.
 */
async function refusing(c: Context, answered: Answer | Promise<Answer>): Promise<Answer> {
  const answer = await answered;
  const { method } = c.req.raw;
  const isRefusal = !(answer instanceof Response) || answer.status >= 400;
  if (method === "GET" || method === "HEAD" || !isRefusal || await drain(c.req.raw.body)) return answer;
  const response = answer instanceof Response ? answer : await refusalResponse(c, answer);
  response.headers.set("Connection", "close");
  return response;
}

// A request to etcd has at most 1.5 MiB
// (https://etcd.io/docs/v3.5/dev-guide/limit/); a longer body is not read.
const DRAINED_BYTES = 2 * 1024 * 1024;

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

type ReaderRoute = (c: Context, state: ReadApiState, reader: Reader) => Route<ServedResource>;

/** Finds a route; `undefined` if the request is not for this app. */
type PlainRoute = (c: Context, state: ReadApiState) => Route | undefined;

/** The paths that are answered whatever readers there are: health, and what shows that there are too many. */
export const PLAIN_ROUTES: Readonly<Record<string, PlainRoute>> = {
  "/healthz": aliveRoute("/healthz"),
  "/livez": aliveRoute("/livez"),
  "/readyz": readyRoute,
  "/healthz/ping": pingRoute,
  "/livez/ping": pingRoute,
  "/readyz/ping": pingRoute,
  "/healthz/*": noRoute,
  "/livez/*": noRoute,
  "/readyz/*": noRoute,
  "/version": versionRoute,
  "/version/*": (c, state) =>
    pathSegments(ownPath(c).own ?? "")?.length === 1 ? versionRoute(c, state) : undefined,
  "/metrics": metricsRoute,
};

/** The paths at which a request counts as a reader. */
export const READER_ROUTES: Readonly<Record<string, ReaderRoute>> = {
  "/api/*": apiRoute,
  "/apis/*": apiRoute,
  "/openapi/*": apiRoute,
  "/indices/*": indexRoute,
};

function aliveRoute(path: string): PlainRoute {
  return (c) => ({ access: "open", answer: () => alive(c.req.query("verbose") !== undefined && path) });
}

function pingRoute(): Route {
  return { access: "open", answer: () => alive() };
}

function noRoute(): Route {
  return { access: "open", answer: pageNotFound };
}

function metricsRoute(c: Context, state: ReadApiState): Route | undefined {
  const { metrics } = state;
  const { method } = c.req.raw;
  if (metrics === undefined || (method !== "GET" && method !== "HEAD")) return undefined;
  return { access: "hooks", asked: askedOfPath("/metrics"), answer: () => metrics.page(state) };
}

/** `/readyz`: open, but only users that may read this path receive names. */
function readyRoute(c: Context, { gate, served, readers, settings }: ReadApiState): Route {
  return {
    access: "open",
    answer: async () => {
      const checks = checksOf(served, readers, settings.maxLagMs);
      const verbose = c.req.query("verbose") !== undefined;
      const hasNames = verbose || checks.some(({ problem }) => problem !== undefined);
      const mayName = hasNames && !isStatus(await gate.permit(askedOfPath("/readyz"), c));
      return ready(checks, { verbose: verbose && mayName, mayName });
    },
  };
}

const VERSION_TYPES: readonly MediaType[] = ["application/json"];

function versionRoute(c: Context, { settings }: ReadApiState): Route {
  return {
    access: "open",
    answer: () => {
      const refused = refusedTimeout(timeoutOf(c.req.url));
      if (refused !== undefined) return refused;
      if (c.req.raw.method !== "GET") return methodNotAllowed();
      if (!matchesRoute(c.req.header("Accept"), VERSION_TYPES)) return noRouteProduces(VERSION_TYPES);
      return documentResponse(settings.version, { mediaType: "application/json", pretty: true });
    },
  };
}
