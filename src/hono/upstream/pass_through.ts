import type { Context } from "hono";
import { newStatus, type Status } from "../../meta/status.ts";
import { isStatus, methodNotAllowed } from "../../protocol/statuses.ts";
import { type LinkedAbort, linkedAbort } from "../../util/abort.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { limitedLogger, type Logger } from "../../util/logger.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { wholeBody } from "../../util/byte_reader.ts";
import { type Permission, unauthorized, type UserInfo } from "../request/gate.ts";
import { bearerTokenOf } from "../request/bearer_tokens.ts";
import { isSocketRequest } from "../request/cors.ts";
import { uniqueTag } from "../send/watch_answer.ts";
import type { Reader } from "../request/readers.ts";
import { noTunnel, tooManyRequests } from "../request/refusals.ts";
import { GUARD_HEADERS, malformedPath } from "../send/responses.ts";
import { answerInTime, passedBody } from "./passed_answer.ts";

/** The API server to which requests are sent on, and how. */
export interface PassThroughOptions {
  /** The API server's URL; https, as tokens are sent to it. */
  readonly server: string;
  /**
   * Sends the requests; the runtime's own by default. It must add no credentials, such as a client
   * certificate.
   */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /**
   * How long the API server may take to begin an answer, and be silent within it, in milliseconds; a minute
   * by default, as it limits itself. A watch, a log that is followed and the answer of a `proxy` subresource
   * may take as long as a watch may last.
   */
  readonly timeoutMs?: number;
  /**
   * Whether writes and `proxy` subresources are sent on; `false` by default: reads and access reviews only.
   */
  readonly writes?: boolean;
  /**
   * Whether the bearer tokens that readers present are the cluster's, as with `tokenReview`. Needed with an
   * `authenticate` hook: a token of the cache's own is not sent to anyone. `false` by default.
   */
  readonly clusterTokens?: boolean;
}

export interface PassThroughRequest {
  /** The path below the mount, encoded. */
  readonly path: string;
  readonly isStream: boolean;
  /** Whether the request is a watch, which needs no tunnel: a plain one is sent on. */
  readonly isWatch: boolean;
  readonly reader: Reader;
  readonly user: UserInfo | undefined;
  readonly settings: { readonly clock: Clock; watchLimitMs(): number };
}

// Headers that clients of Kubernetes send and API servers read. All others stay here: hop-by-hop headers,
// cookies, addresses.
const REQUEST_HEADERS: readonly string[] = [
  "accept",
  "content-type",
  "if-match",
  "if-none-match",
  "kubectl-command",
  "kubectl-session",
  "user-agent",
];
const RESPONSE_HEADERS: readonly string[] = [
  "audit-id",
  "cache-control",
  "content-type",
  "etag",
  "last-modified",
  "retry-after",
  "vary",
  "warning",
  "www-authenticate",
  "x-kubernetes-pf-flowschema-uid",
  "x-kubernetes-pf-prioritylevel-uid",
];

// https://github.com/kubernetes/apiserver/blob/master/pkg/server/config.go (MaxRequestBodyBytes)
const MAX_BODY_BYTES = 3 * 1024 * 1024;
const TUNNELS: ReadonlySet<string> = new Set(["exec", "attach", "portforward"]);
// https://fetch.spec.whatwg.org/#forbidden-method
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);
// Created without an effect on the cluster.
const REVIEWS: ReadonlySet<string> = new Set([
  "authentication.k8s.io/selfsubjectreviews",
  "authentication.k8s.io/tokenreviews",
  "authorization.k8s.io/localsubjectaccessreviews",
  "authorization.k8s.io/selfsubjectaccessreviews",
  "authorization.k8s.io/selfsubjectrulesreviews",
  "authorization.k8s.io/subjectaccessreviews",
]);
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/ (--request-timeout)
const TIMEOUT_MS = 60_000;

/** Sends requests on. Only the API server decides what a reader may do there. */
export class PassThrough {
  readonly #options: PassThroughOptions;
  readonly #server: URL;
  /** The base path, without a slash at its end. */
  readonly #basePath: string;
  readonly #hasOwnReaders: boolean;
  readonly #logger: Pick<Logger, "warn">;

  /**
   * @throws {TypeError} The server is no https URL, or has a user, password,
   * query or fragment; or another option is wrong.
   */
  constructor(options: PassThroughOptions, hasAuthenticate: boolean, logger: Logger, clock: Clock) {
    this.#options = options;
    this.#server = checkServer(options);
    const { timeoutMs } = options;
    requireNumbers("pass requests through", { timeoutMs }, { least: 1, mayBeInfinite: true });
    const { pathname } = this.#server;
    this.#basePath = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
    this.#hasOwnReaders = hasAuthenticate && options.clusterTokens !== true;
    this.#logger = limitedLogger(logger, () => monotonicNow(clock));
  }

  /** Whether a request carries something that can be sent on. */
  hasCredentials(c: Context): boolean {
    return !this.#hasOwnReaders && bearerTokenOf(c) !== undefined;
  }

  async answer(c: Context, request: PassThroughRequest): Promise<Response | Status> {
    if (this.#hasOwnReaders) {
      const why =
        "this request is for the API server itself, and readers of this cache present tokens of the cache, not of the cluster";
      return newStatus(403, "Forbidden", why, {});
    }
    const token = bearerTokenOf(c);
    if (token === undefined) return unauthorized();
    const segments = plainSegments(request.path);
    const url = segments && this.#url(c, request.path);
    if (url === undefined) return malformedPath();
    const refusal = this.#refusal(c, segments!, request.isWatch && isSocketRequest(c));
    if (refusal !== undefined) return refusal;
    const headers = headersOf(c, token);
    if (isStatus(headers)) return headers;
    const sent = c.req.raw.body;
    const take = (bytes: number) => request.reader.take(bytes) || !(isSpent = true);
    let isSpent = false;
    let body: Uint8Array<ArrayBuffer> | undefined;
    try {
      body = sent === null ? undefined : await wholeBody(sent, MAX_BODY_BYTES, take);
    } catch {
      // The client has left, which not every runtime reports by the signal at once.
      return newStatus(400, "BadRequest", "the body of the request did not arrive as a whole");
    }
    if (isSpent) return tooManyRequests();
    if (sent !== null && body === undefined) {
      return newStatus(413, "RequestEntityTooLarge", `Request entity too large: limit is ${MAX_BODY_BYTES}`);
    }
    const isProxy = partsOf(segments!).subresource === "proxy";
    return await this.#send(c, request, { url, headers, body, isProxy });
  }

  #url(c: Context, path: string): string | undefined {
    const base = this.#basePath;
    const url = new URL(this.#server.origin + base + path + new URL(c.req.url).search);
    // What begins with a slash, as each pathname does, is no part of the host.
    return url.pathname === base + path ? url.href : undefined;
  }

  #refusal(c: Context, segments: readonly string[], isSocketWatch: boolean): Status | undefined {
    const { method } = c.req.raw;
    const { group, resource, name, subresource } = partsOf(segments);
    if (TUNNELS.has(subresource) || wantsTunnel(c) && !isSocketWatch) return noTunnel(subresource);
    const isReview = method === "POST" && name === "" && REVIEWS.has(`${group}/${resource}`);
    const isRead = (method === "GET" || method === "HEAD") && subresource !== "proxy";
    if (FORBIDDEN_METHODS.has(method)) return methodNotAllowed();
    if (isRead || isReview || this.#options.writes) return undefined;
    const why =
      "this is a cache that passes reads through to the API server, and no writes; send writes to the API server itself";
    return newStatus(405, "MethodNotAllowed", why, {});
  }

  async #send(
    c: Context,
    request: PassThroughRequest,
    to: {
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array<ArrayBuffer> | undefined;
      /** Whether the request is for a pod, service or node, which may take any time. */
      readonly isProxy: boolean;
    },
  ): Promise<Response | Status> {
    const { fetch = globalThis.fetch } = this.#options;
    const { settings, isStream } = request;
    const isLasting = isStream || to.isProxy;
    const timeoutMs = isLasting ? settings.watchLimitMs() : this.#options.timeoutMs ?? TIMEOUT_MS;
    const late = new Error(`the API server has not answered within ${timeoutMs} ms`);
    const link = linkedAbort(c.req.raw.signal);
    try {
      const send = () =>
        fetch(to.url, {
          method: c.req.raw.method,
          headers: to.headers,
          ...(to.body && { body: to.body }),
          // Another server must not receive the reader's token.
          redirect: "manual",
          signal: link.signal,
        });
      const limit = { timeoutMs, late, clock: settings.clock, signal: link.signal };
      const response = await answerInTime(send, limit);
      const silenceMs = isLasting ? Infinity : timeoutMs;
      const search = movedTo(response, to.url, request.path);
      return this.#passed(c, request, response, { link, silenceMs, search });
    } catch (error) {
      link.abort();
      link.unlink();
      if (c.req.raw.signal.aborted) throw error;
      this.#logger.warn(`cannot pass a request through: ${errorMessage(error)}`, { error });
      return error === late
        ? newStatus(504, "Timeout", `Timeout: ${late.message}`, { retryAfterSeconds: 1 })
        : newStatus(503, "ServiceUnavailable", "the API server cannot be reached", { retryAfterSeconds: 1 });
    }
  }

  #passed(
    c: Context,
    request: PassThroughRequest,
    response: Response,
    { link, silenceMs, search }: {
      readonly link: LinkedAbort;
      readonly silenceMs: number;
      readonly search: string | undefined;
    },
  ): Response | Status {
    const { status } = response;
    const isRedirect = status >= 300 && status < 400 && status !== 304;
    // Some runtimes decode what was not asked for, others do not, and none says so.
    const isCoded = !/^(identity)?$/i.test(response.headers.get("Content-Encoding") ?? "");
    const problem = isRedirect && search === undefined || status < 200
      ? `the API server answered ${status}, which is not passed through`
      : isCoded && "the API server answered in a content coding, though none was accepted";
    const headers = responseHeaders(response.headers);
    if (search !== undefined) headers.set("Location", search);
    const isEmpty = response.body === null || isRedirect || c.req.raw.method === "HEAD";
    if (problem || isEmpty) {
      link.abort();
      link.unlink();
      return problem ? newStatus(502, "InternalError", problem) : new Response(null, { status, headers });
    }
    const { user, reader, settings, isStream } = request;
    // The API server decides, and again for the next request.
    const permission: Permission = { user, renew: () => Promise.resolve(permission) };
    const newError = () => {
      const error = new Error(`the API server has sent nothing for ${silenceMs} ms`);
      this.#logger.warn(`cannot pass a request through: ${error.message}`, { error });
      return error;
    };
    const stream = passedBody(response.body!, {
      clock: settings.clock,
      permission,
      limitMs: settings.watchLimitMs(),
      recheckMs: Infinity,
      reader,
      isStream,
      ...(silenceMs < Infinity && { silence: { ms: silenceMs, newError } }),
      onEnd: (isBrokenOff) => {
        if (isBrokenOff) link.abort();
        link.unlink();
      },
    });
    if (!headers.has("ETag")) headers.set("ETag", uniqueTag());
    return new Response(stream, { status, headers });
  }
}

function checkServer({ server, fetch, writes, clusterTokens }: PassThroughOptions): URL {
  for (const [name, value] of Object.entries({ writes, clusterTokens })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw new TypeError(`Cannot pass requests through: \`${name}\` must be true or false`);
  }
  if (fetch !== undefined && typeof fetch !== "function") {
    throw new TypeError("Cannot pass requests through: `fetch` must be a function");
  }
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== "https:" || url.username || url.password || url.search || url.hash) {
    throw new TypeError(
      "Cannot pass requests through: `server` must be an https URL without user, password, query and fragment, as " +
        "readers' tokens are sent to it",
    );
  }
  return url;
}

/**
 * Whether a request wants to turn its connection into a WebSocket or SPDY, as `kubectl exec` and its like do.
 * Clients offer h2c, which a server may ignore.
 */
function wantsTunnel(c: Context): boolean {
  return /^(websocket|spdy\/)/i.test(c.req.header("Upgrade") ?? "");
}

/**
 * The decoded segments of a path that means the same to every server; `undefined` for another one. The path
 * below `proxy` is for the server behind it.
 */
function plainSegments(path: string): string[] | undefined {
  const segments = path.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  try {
    const decoded = segments.map(decodeURIComponent);
    // deno-lint-ignore no-control-regex
    const first = decoded.findIndex((segment) => /^\.{0,2}$|[/\\\x00-\x1f\x7f]/.test(segment));
    const isPlain = first < 0 || partsOf(decoded.slice(0, first)).subresource === "proxy";
    return isPlain ? decoded : undefined;
  } catch {
    return undefined;
  }
}

function partsOf([root, ...below]: readonly string[]) {
  const [group = "", , ...rest] = root === "api" ? ["", ...below] : below;
  // The form of a proxy before there was a subresource for it.
  if (rest[0] === "proxy") return { group, resource: "", name: "", subresource: "proxy" };
  const [resource = "", name = "", subresource = ""] = rest[0] === "namespaces" ? rest.slice(2) : rest;
  return { group, resource, name, subresource };
}

/** The headers to send on; a Status if one cannot be sent as it came. */
function headersOf(c: Context, token: string): Record<string, string> | Status {
  const headers: Record<string, string> = { authorization: `Bearer ${token}`, "accept-encoding": "identity" };
  for (const name of REQUEST_HEADERS) {
    const value = c.req.header(name);
    if (value !== undefined) headers[name] = value;
  }
  for (const [name, value] of c.req.raw.headers) {
    if (!/^impersonate-(user|group|uid|extra-.*)$/.test(name)) continue;
    // A runtime joins headers of one name: nothing says whether that was one group or two.
    if (value.includes(",")) {
      return newStatus(400, "BadRequest", `${name} cannot be passed through with a comma, or more than once`);
    }
    headers[name] = value;
  }
  return headers;
}

/**
 * The query that a redirect changes, if nothing else: an API server answers so where the `hash` of an OpenAPI
 * document is not that of the present one. A proxy in front may hide the server's base path.
 */
function movedTo({ status, headers }: Response, url: string, path: string): string | undefined {
  const location = headers.get("Location") ?? "";
  if (status !== 301 || !URL.canParse(location, url)) return undefined;
  const [from, to] = [new URL(url), new URL(location, url)];
  const isSamePath = to.origin === from.origin && (to.pathname === from.pathname || to.pathname === path);
  return isSamePath && to.search !== "" && to.search !== from.search ? to.search : undefined;
}

function responseHeaders(from: Headers): Headers {
  const headers = new Headers(GUARD_HEADERS);
  // A page of a pod behind the API server must not count as one of this origin.
  headers.set("Content-Security-Policy", "sandbox");
  for (const name of RESPONSE_HEADERS) {
    const value = from.get(name);
    if (value !== null) headers.set(name, value);
  }
  // A log or a watch: nothing may hold it back.
  headers.set("X-Accel-Buffering", "no");
  const control = headers.get("Cache-Control") ?? "no-cache, private";
  headers.set("Cache-Control", `${control}, no-transform`);
  return headers;
}
