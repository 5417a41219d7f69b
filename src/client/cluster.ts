import { DecodeError, NetworkError } from "../meta/request.ts";
import type { KubernetesObject } from "../meta/object.ts";
import {
  type GroupVersionResource,
  parseResource,
  type ResourceName,
  type ResourceOf,
} from "../meta/resource.ts";
import type { Schema } from "../schema/schema.ts";
import type { Advice, FieldPaths, Projected } from "../text/field_path.ts";
import { abortable, withTimeLimit } from "../util/abort.ts";
import { requireNumbers } from "../util/require_number.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { jsonFault } from "../util/json.ts";
import { guardedLogger, type Logger, News } from "../util/logger.ts";
import { guardedMetrics, type Metrics } from "../util/metrics.ts";
import { readText } from "../watch/list_decoder.ts";
import { newNetworkError } from "../watch/network_failure.ts";
import {
  CredentialsError,
  fixedHeaders,
  headerFault,
  newScrubber,
  type RestConfig,
  serverUrl,
  tokenFault,
} from "./rest_config.ts";
import type { PartialObjectMetadata } from "./metadata_only.ts";
import type {
  Query,
  RequestOptions,
  Requests,
  ResourceClient,
  ResourceOptions,
  TypedResourceOptions,
} from "./resource_client.ts";
import { RestResource } from "./rest_resource.ts";
import { newResponseError } from "./response_error.ts";

/**
 * An API server, and the requests to it.
 *
 * @category Cluster
 */
export interface Cluster {
  /** The server's URL, without a slash at its end. */
  readonly server: string;

  /** The namespace that the program is in, or its user works in; `default` if its config has none. */
  readonly namespace: string;

  /**
   * Asks, and reads the answer: JSON as a value, anything else as text, an empty answer as `undefined`.
   *
   * @param path The path behind the server's URL, beginning with a slash.
   *
   * @throws {StatusError} The server refused.
   * @throws {CredentialsError} The token cannot be sent.
   * @throws {NetworkError} No answer came in time, or it was cut off.
   * @throws {DecodeError} The answer says it is JSON, and is not.
   * @throws The signal's reason, once it is aborted.
   */
  request(path: string, options?: RequestOptions): Promise<unknown>;

  /**
   * Asks, and gives the answer with its body unread: for logs, and other streams. The caller reads or cancels
   * the body. Redirects are not followed, so that credentials go nowhere else. No time limit applies but the
   * signal.
   *
   * @throws {StatusError} The server refused.
   * @throws {NetworkError} No answer came.
   * @throws The signal's reason, once it is aborted.
   */
  open(path: string, options?: RequestOptions): Promise<Response>;

  /**
   * A client for the objects of one resource, as the reflector needs it, with a schema for them.
   *
   * @param resource `"v1/pods"`, `"apps/v1/deployments"`, its parts, or what {@linkcode resourceOf} made.
   *
   * @throws {TypeError} The resource is no such text.
   */
  resource<
    S extends object,
    const Drop extends readonly string[] = [],
    const Keep extends readonly string[] | "everything" | undefined = undefined,
  >(
    resource: ResourceName | GroupVersionResource,
    options: ResourceOptions<S> & Paths<S & KubernetesObject, Keep, Drop> & { readonly schema: Schema<S> },
  ): ResourceClient<Projected<S & KubernetesObject, Keep, Drop>>;
  /** A client whose type lacks the fields that are left out. */
  resource<
    T extends KubernetesObject,
    const Drop extends readonly string[] = [],
    const Keep extends readonly string[] | "everything" | undefined = undefined,
  >(
    resource: ResourceOf<T>,
    options?: ResourceOptions<Projected<T, Keep, Drop>> & Paths<T, Keep, Drop>,
  ): ResourceClient<Projected<T, Keep, Drop>>;
  /** A client for the metadata of the objects. */
  resource(
    resource: ResourceName | Untyped,
    options: ResourceOptions<PartialObjectMetadata> & { readonly metadataOnly: true },
  ): ResourceClient<PartialObjectMetadata>;
  /** A client without a schema. */
  resource<T extends KubernetesObject = KubernetesObject>(
    resource: ResourceName | Untyped,
    options?: TypedResourceOptions<T>,
  ): ResourceClient<T>;
}

/** `keep` and `drop`, with every path checked against the type of the objects. */
interface Paths<
  T,
  Keep extends readonly string[] | "everything" | undefined,
  Drop extends readonly string[],
> {
  readonly drop?: Drop & FieldPaths<T, Drop>;
  readonly keep?: Keep & (Keep extends readonly string[] ? FieldPaths<T, Keep> : unknown);
}

/** A result of {@linkcode resourceOf} comes here only with options that do not fit. */
type Untyped = GroupVersionResource & {
  readonly objectType?: Advice<
    "the options do not fit the type: keep and drop may name only fields that it has"
  >;
};

/**
 * Makes a client for an API server. Nothing is sent before the first request.
 *
 * @throws {TypeError} The server is no http or https URL, or a
 * header or the token is nothing that can be sent.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * const cluster = newCluster({ server: "https://10.0.0.1:6443", token: "secret" });
 * const pods = cluster.resource("v1/pods", { namespace: "shop", labelSelector: "app=web" });
 * console.log(cluster.server, pods.resource.resource); // https://10.0.0.1:6443 pods
 * ```
 *
 * @category Cluster
 */
export function newCluster(config: RestConfig): Cluster {
  return new RestCluster(config);
}

// For whatever is no watch and no list.
const REQUEST_TIMEOUT_MS = 30_000;

// A header that is longer says nothing that a person would read.
const LONGEST_WARNING = 8 * 1024;

class RestCluster implements Cluster, Requests {
  readonly server: string;
  readonly namespace: string;
  readonly clock: Clock;
  readonly #config: RestConfig;
  readonly #logger: Logger;
  readonly #metrics: Metrics | undefined;
  readonly #headers: readonly [string, string][];
  // Some servers send the same warning with every answer.
  readonly #warnings = new News();

  constructor(config: RestConfig) {
    this.server = serverUrl(config.server);
    this.namespace = config.namespace || "default";
    requireNumbers("use the cluster", { requestTimeoutMs: config.requestTimeoutMs }, { mayBeInfinite: true });
    this.#config = config;
    this.#logger = guardedLogger(config.logger);
    this.#metrics = guardedMetrics(config.metrics, this.#logger);
    this.clock = config.clock ?? realClock;
    this.#headers = fixedHeaders(config);
    const fault = this.#headers.map(headerFault).find((fault) => fault !== undefined) ??
      (typeof config.token === "string" ? tokenFault(config.token.trim()) : undefined);
    if (fault !== undefined) throw new TypeError(`Cannot use the headers or the token given: ${fault}`);
  }

  async request(path: string, options: RequestOptions = {}): Promise<unknown> {
    const action = actionOf(path, options);
    const { timeoutMs = this.#config.requestTimeoutMs ?? REQUEST_TIMEOUT_MS, signal } = options;
    return await this.withTimeout(action, { timeoutMs, signal }, async (signal) => {
      const response = await this.open(path, { ...options, signal });
      if (response.body === null) return undefined;
      const text = await readText(response.body, action, signal && { signal });
      if (text === "") return undefined;
      if (!(response.headers.get("Content-Type") ?? "").includes("json")) return text;
      try {
        return JSON.parse(text);
      } catch (error) {
        throw new DecodeError(`Cannot ${action}: the answer is not JSON: ${jsonFault(error)}`);
      }
    });
  }

  async open(path: string, options: RequestOptions = {}): Promise<Response> {
    const { signal } = options;
    const text = `Cannot ${actionOf(path, options)}`;
    const url = this.#url(path, options.query);
    let headers = await abortable(this.#allHeaders(options, text), signal);
    let response = await this.#send(url, initOf(options, headers), text);
    if (response.status === 401) {
      // The token may have been exchanged while the request was on its way, or as it was refused.
      const renewed = await abortable(this.#allHeaders(options, text), signal).catch(() => headers);
      if (JSON.stringify(renewed) !== JSON.stringify(headers)) {
        response.body?.cancel().catch(() => {});
        headers = renewed;
        response = await this.#send(url, initOf(options, headers), text);
      }
    }
    const scrub = newScrubber(headers);
    this.#logWarnings(response, scrub);
    if (response.ok) return response;
    const error = await newResponseError(text, response, { clock: this.clock, scrub });
    signal?.throwIfAborted();
    throw error;
  }

  async #send(url: string, init: RequestInit, text: string): Promise<Response> {
    const { fetch = globalThis.fetch } = this.#config;
    const signal = init.signal ?? undefined;
    const pending = Promise.resolve().then(() => fetch(url, init));
    const count = (code: string) => {
      const labels = { code, method: init.method!, host: new URL(url).host };
      this.#metrics?.count("rest_client_requests_total", 1, labels);
    };
    try {
      const response = await abortable(pending, signal);
      count(String(response.status));
      return response;
    } catch (error) {
      count("<error>");
      if (!signal?.aborted) throw newNetworkError(`${text}: no answer from ${this.server}`, error);
      // A fetch that does not heed the signal may still answer.
      pending.then((late) => late.body?.cancel()).catch(() => {});
      throw signal.reason;
    }
  }

  resource<T extends KubernetesObject>(
    resource: string | GroupVersionResource,
    options: ResourceOptions<T> = {},
  ): ResourceClient<T> {
    return new RestResource<T>(
      this,
      typeof resource === "string" ? parseResource(resource) : resource,
      options,
    );
  }

  async withTimeout<R>(
    action: string,
    { timeoutMs = this.#config.requestTimeoutMs, signal }: Parameters<Requests["withTimeout"]>[1],
    run: (signal: AbortSignal | undefined) => Promise<R>,
  ): Promise<R> {
    requireNumbers(action, { timeoutMs }, { mayBeInfinite: true });
    if (!timeoutMs || timeoutMs === Infinity) return await run(signal);
    const newError = () => {
      const text = `Cannot ${action}: no whole answer from ${this.server} within ${timeoutMs} ms`;
      return new NetworkError("Unreachable", text);
    };
    return await withTimeLimit(run, { ms: timeoutMs, newError, clock: this.clock, signal });
  }

  #url(path: string, query: Query = {}): string {
    if (!path.startsWith("/")) {
      throw new TypeError(`Cannot ask for ${JSON.stringify(path)}: a path begins with a slash`);
    }
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== "" && value !== false) parameters.append(name, String(value));
    }
    const text = parameters.toString();
    return text === "" ? this.server + path : `${this.server}${path}${path.includes("?") ? "&" : "?"}${text}`;
  }

  async #allHeaders(options: RequestOptions, text: string): Promise<[string, string][]> {
    const own: [string, string][] = [["Accept", "application/json"]];
    if (options.body !== undefined) own.push(["Content-Type", "application/json"]);
    const { token: source } = this.#config;
    const token = (typeof source === "function" ? await source() : source) ?? "";
    const fault = tokenFault(typeof token === "string" ? token.trim() : token);
    if (fault !== undefined) throw new CredentialsError(`${text}: the token cannot be sent: ${fault}`);
    if (token) own.push(["Authorization", `Bearer ${token.trim()}`]);
    const given = Object.entries(options.headers ?? {});
    for (const header of given) {
      const fault = headerFault(header);
      if (fault !== undefined) throw new TypeError(`${text}: ${fault}`);
    }
    return overlay(overlay(own, this.#headers), given);
  }

  #logWarnings(response: Response, scrub: (text: string) => string): void {
    const header = response.headers.get("Warning");
    if (header === null) return;
    const read = scrub(header.slice(0, LONGEST_WARNING));
    for (const [, text] of read.matchAll(/\b299 \S{1,256} "((?:[^"\\]|\\.)*)"/g)) {
      if (!this.#warnings.isNew(text)) continue;
      this.#logger.warn(`the API server warns: ${text.replace(/\\(.)/g, "$1")}`, {
        server: this.server,
      });
    }
  }
}

/** Called for each sending, in its turn. */
function initOf(options: RequestOptions, headers: [string, string][]): RequestInit {
  const { method = "GET", body, signal } = options;
  options.check?.();
  return {
    method,
    headers,
    // "manual", as workerd has no "error"
    // (https://github.com/cloudflare/workerd/blob/main/src/workerd/api/http.c%2B%2B):
    // a redirect becomes a response that is refused.
    redirect: "manual",
    ...(body !== undefined && { body: encode(body) }),
    ...(signal && { signal }),
  };
}

// The lower headers, less those that are set above, and then the upper ones.
function overlay(lower: readonly [string, string][], upper: readonly [string, string][]): [string, string][] {
  const set = new Set(upper.map(([name]) => name.toLowerCase()));
  return [...lower.filter(([name]) => !set.has(name.toLowerCase())), ...upper];
}

function encode(body: unknown): BodyInit {
  return typeof body === "string" || body instanceof Uint8Array
    ? body as string | Uint8Array<ArrayBuffer>
    : JSON.stringify(body);
}

function actionOf(path: string, { method = "GET", action }: RequestOptions): string {
  return action ?? `${method} ${path}`;
}
