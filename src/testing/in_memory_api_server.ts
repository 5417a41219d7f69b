import { parseFieldSelector } from "../meta/fields.ts";
import { formatObjectName, type KubernetesObject, type ObjectName, parseObjectName } from "../meta/object.ts";
import { parseLabelSelector } from "../meta/labels.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { abortable, linkedAbort, onAbort } from "../util/abort.ts";
import { answerRequest, type ApiParts } from "./api_routes.ts";
import { ClusterState } from "./cluster_state.ts";
import {
  connectionRefused,
  connectionReset,
  type InterceptOptions,
  type Interceptor,
  InterceptorChain,
  type RecordedRequest,
  recordRequest,
} from "./faults.ts";
import { cloneJson, type JsonObject } from "./json.ts";
import { newSelection, ObjectReader, select } from "./object_reader.ts";
import { ObjectRegistry } from "./object_registry.ts";
import { applyPatch } from "./patches/patches.ts";
import { ResourceTable, type ServedResource } from "./served_resources.ts";
import { type InMemoryApiServerOptions, type ServerSettings, serverSettings } from "./server_settings.ts";
import { WatchHub } from "./watch_hub.ts";

/** Options of {@linkcode InMemoryApiServer.list}. */
export interface InMemoryListOptions {
  /** Only this namespace; all by default. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** A list of {@linkcode InMemoryApiServer.list}. */
export interface InMemoryList<T> {
  readonly resourceVersion: string;
  /** The objects, in the order of a real list: by namespace and name, byte by byte. */
  readonly items: readonly T[];
}

/** The type of `fetch`, and of the handlers of the runtimes' `serve` functions. */
export interface ServerFetch {
  (request: Request, info?: unknown): Promise<Response>;
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
}

/**
 * A Kubernetes API server in memory, for tests: a function shaped like `fetch`, and methods by which a test
 * writes.
 *
 * Over `fetch` it answers as kube-apiserver 1.36 does, with its texts: discovery, get, list (pages,
 * resourceVersion and its match, selectors, shards as of 1.38), watch (replay, bookmarks, streamed lists,
 * 410), create, update, patch (JSON, merge, strategic merge), server-side apply (of JSON), delete, `status`,
 * CustomResourceDefinitions, objects as `PartialObjectMetadata`, Events in both of their groups. It has no
 * controllers, admission, defaults, authentication, protobuf or Tables, and validates names only; without a
 * garbage collector, every `propagationPolicy` is `Background`. Objects have managed fields from their first
 * apply on; lists of custom resources are replaced as a whole.
 *
 * Its methods are synchronous; a write is in the streams of all watchers when it returns. A resource is named
 * `v1/pods` or `apps/v1/deployments`, an object by `namespace/name`, `name` or the object itself. The methods
 * write objects as given, including status. Returned objects are shared and must not be changed.
 *
 * It sets timers only while a watch is open or a request waits. {@linkcode InMemoryApiServer.close} ends
 * them.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const server = new InMemoryApiServer();
 * server.create("v1/pods", pod("web-1", { namespace: "shop" }));
 *
 * const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
 * const informer = new SharedIndexInformer(cluster.resource("v1/pods"), {});
 * const stop = new AbortController();
 * const running = informer.run(stop.signal);
 * await informer.synced();
 * console.log(informer.indexer.listKeys()); // [ "shop/web-1" ]
 *
 * stop.abort();
 * await running;
 * server.close();
 * ```
 *
 * @example On a socket
 * ```ts ignore
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const server = new InMemoryApiServer();
 * Deno.serve({ port: 8001 }, server.fetch); // kubectl --server http://127.0.0.1:8001 get pods
 * ```
 */
export class InMemoryApiServer {
  /** Answers a request. Rejects when the request is aborted, or the server is closed. */
  readonly fetch: ServerFetch = (input: string | URL | Request, init?: unknown) => this.#fetch(input, init);
  readonly #settings: ServerSettings;
  readonly #state: ClusterState;
  readonly #resources: ResourceTable;
  readonly #registry: ObjectRegistry;
  readonly #watches: WatchHub;
  readonly #parts: ApiParts;
  readonly #interceptors = new InterceptorChain();
  readonly #closing = new AbortController();
  #requests: RecordedRequest[] = [];

  constructor(options: InMemoryApiServerOptions = {}) {
    this.#settings = serverSettings(options);
    this.#resources = new ResourceTable(this.#settings.customResources);
    this.#state = new ClusterState(this.#settings);
    this.#registry = new ObjectRegistry(this.#state, this.#resources, this.#settings);
    const reader = new ObjectReader(this.#state, this.#settings);
    this.#watches = new WatchHub(this.#state, reader, this.#settings);
    this.#resources.onRemoval = (resource) => this.#watches.endOf(resource);
    this.#parts = {
      resources: this.#resources,
      reader,
      registry: this.#registry,
      watches: this.#watches,
    };
  }

  /** The resourceVersion of the last write to any resource. */
  get resourceVersion(): string {
    return String(this.#state.revision);
  }

  /** How many watches are open. */
  get openWatches(): number {
    return this.#watches.size;
  }

  /** The received requests, oldest first. */
  get requests(): readonly RecordedRequest[] {
    return this.#requests;
  }

  /** The served resources, including custom ones. */
  get resources(): readonly ApiResource[] {
    return this.#resources.all;
  }

  /** Clears {@linkcode InMemoryApiServer.requests}. */
  clearRequests(): void {
    this.#requests = [];
  }

  /**
   * Creates an object. Kind and apiVersion may be left out, `generateName` may replace the name, and a
   * missing namespace is `default`; a uid and a creationTimestamp are kept.
   * @throws {StatusError} As the API server would refuse it: 409 AlreadyExists, 422 Invalid, ...
   * @throws {TypeError} There is no such resource.
   */
  create<T extends KubernetesObject>(resource: string, object: T): T {
    const served = this.#resources.named(resource);
    const copy = cloneJson(object) as KubernetesObject as JsonObject;
    const namespace = served.namespaced ? object.metadata?.namespace || "default" : "";
    return this.#registry.create(served, copy, namespace, { asGiven: true }) as KubernetesObject as T;
  }

  /**
   * Replaces an object, including status. If it has a resourceVersion, that must be the present one. An
   * unchanged object is not written, as in the API server, and causes no event.
   * @throws {StatusError} 404 NotFound, 409 Conflict, ...
   */
  update<T extends KubernetesObject>(resource: string, object: T): T {
    const served = this.#resources.named(resource);
    const copy = cloneJson(object) as KubernetesObject as JsonObject;
    const updated = this.#registry.update(served, copy, address(served, object), { asGiven: true });
    return updated as KubernetesObject as T;
  }

  /**
   * Changes an object by a merge patch: `null` removes a field, objects are merged, lists are replaced.
   * @throws {StatusError} 404 NotFound, ...
   */
  patch<T extends KubernetesObject>(
    resource: string,
    object: string | KubernetesObject,
    patch: Readonly<Record<string, unknown>>,
  ): T {
    const served = this.#resources.named(resource);
    const change = applyPatch(served, "application/merge-patch+json", JSON.stringify(patch));
    const patched = this.#registry.patch(served, address(served, object), change, { asGiven: true });
    return patched as KubernetesObject as T;
  }

  /**
   * Deletes an object and returns its last state. An object with finalizers stays, with a deletionTimestamp,
   * until an update removes them.
   * @throws {StatusError} 404 NotFound.
   */
  delete<T extends KubernetesObject>(resource: string, object: string | KubernetesObject): T {
    const served = this.#resources.named(resource);
    const { object: last } = this.#registry.delete(served, address(served, object), { asGiven: true });
    return last as KubernetesObject as T;
  }

  /** An object, or `undefined` if there is none. */
  get<T extends KubernetesObject>(resource: string, object: string | KubernetesObject): T | undefined {
    const served = this.#resources.named(resource);
    const found = this.#state.get(served, formatObjectName(address(served, object)));
    return found as KubernetesObject as T | undefined;
  }

  /** The objects of a resource. */
  list<T extends KubernetesObject>(resource: string, options: InMemoryListOptions = {}): InMemoryList<T> {
    const { namespace, labelSelector = "", fieldSelector = "" } = options;
    const served = this.#resources.named(resource);
    const selection = newSelection(served, {
      namespace,
      labels: parseLabelSelector(labelSelector),
      fields: parseFieldSelector(fieldSelector),
    });
    const items = select(selection, this.#state.snapshot(served)!);
    return { resourceVersion: this.resourceVersion, items: items as readonly KubernetesObject[] as T[] };
  }

  /**
   * Drops the history up to a resourceVersion, by default all of it: watches from an older version and pages
   * of older lists are answered with 410. Open watches continue.
   */
  compact(resourceVersion: string = this.resourceVersion): void {
    this.#state.compact(BigInt(resourceVersion));
  }

  /**
   * Ends every open watch, as a server that shuts down: the sent events can still be read. With `reset`, the
   * connections break instead.
   */
  closeWatches(options: { readonly reset?: boolean } = {}): void {
    this.#watches.closeAll(options.reset ? connectionReset() : undefined);
  }

  /**
   * Adds a function between the clients and this server; see {@linkcode Interceptor}. The first one added is
   * the first to see a request.
   * @returns A function that removes it.
   */
  intercept(interceptor: Interceptor, options: InterceptOptions = {}): () => void {
    return this.#interceptors.add(interceptor, options);
  }

  /**
   * Ends every watch and every waiting request; later requests fail as if nothing listened. No timer remains.
   */
  close(): void {
    this.#closing.abort(connectionReset());
    this.#state.waiters.stop();
    this.#watches.closeAll();
  }

  /** Closes the server at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close();
  }

  async #fetch(input: string | URL | Request, init: unknown): Promise<Response> {
    const isGiven = input instanceof Request && !isRequestInit(init);
    const request = isGiven ? input : new Request(input, init as RequestInit | undefined);
    if (this.#closing.signal.aborted) throw connectionRefused(request.url);
    const clientSignal = signalOf(request, init);
    clientSignal?.throwIfAborted();
    const { clock, requestLogLimit } = this.#settings;
    const record = recordRequest(request, clock.now());
    this.#requests.push(record);
    if (this.#requests.length > requestLogLimit) this.#requests.shift();
    const call = linkedAbort(clientSignal);
    const closing = this.#closing.signal;
    const letGoOfServer = onAbort(closing, () => call.abort(closing.reason));
    const isRemote = isGiven && init !== undefined;
    const answer = this.#interceptors.run(request, record, {
      signal: call.signal,
      clock,
      serve: (served) => answerRequest(this.#parts, served, { signal: clientSignal, isRemote }),
    });
    try {
      return await abortable(answer, call.signal);
    } catch (error) {
      if (isRemote && clientSignal?.aborted) return new Response(null, { status: 408 }); // not read any more
      throw error;
    } finally {
      letGoOfServer();
      call.unlink();
    }
  }
}

// The signal of a Request stops following the one it was made with once the Request is garbage-collected;
// this keeps it.
const owners = new WeakMap<AbortSignal, Request>();

function signalOf(request: Request, init: unknown): AbortSignal | undefined {
  if (isRequestInit(init) && init.signal) return init.signal;
  // Deno.serve warns about listeners on its signals; the reader of the body that leaves is enough.
  if (typeof init === "object" && init !== null && "completed" in init) return undefined;
  const signal: AbortSignal | undefined = request.signal;
  if (signal !== undefined) owners.set(signal, request);
  return signal;
}

// The runtimes' servers pass another second argument: an address, a server, an environment.
function isRequestInit(value: unknown): value is RequestInit {
  return typeof value === "object" && value !== null &&
    ["signal", "method", "headers", "body"].some((field) => field in value);
}

function address(resource: ServedResource, object: string | KubernetesObject): ObjectName {
  const { namespace = "", name } = typeof object === "string"
    ? parseObjectName(object)
    : { namespace: object.metadata?.namespace, name: object.metadata?.name ?? "" };
  if (name === "") {
    throw new TypeError(`Cannot find an object of ${resource.resource}: the object has no name`);
  }
  if (!resource.namespaced) {
    if (namespace === "") return { namespace: "", name };
    const text = JSON.stringify(formatObjectName({ namespace, name }));
    throw new TypeError(
      `Cannot find ${text}: ${resource.resource} have no namespaces; name the object without one`,
    );
  }
  return { namespace: namespace || "default", name };
}
