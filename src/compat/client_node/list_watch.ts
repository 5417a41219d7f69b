import type { StoreEvent } from "../../informer/events.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import type { InformerStatus } from "../../informer/snapshot/storage.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import type { Running } from "../../informer/queue_drain.ts";
import { type ListerWatcher, newListWatch } from "../../reflector/lister_watcher.ts";
import { metaNamespaceIndex, NAMESPACE_INDEX } from "../../store/index_func.ts";
import type { Indexer } from "../../store/store.ts";
import { callGuarded, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { clusterOfKubeConfig, type KubeConfigClusterOptions, type KubeConfigLike } from "./kube_config.ts";
import {
  ADD,
  CHANGE,
  type ClientNodeInformer,
  type ClientNodeObject,
  CONNECT,
  DELETE,
  ERROR,
  type ErrorCallback,
  type ListPromise,
  ListWatchError,
  type ObjectCache,
  type ObjectCallback,
  UPDATE,
} from "./verbs.ts";
import { formatResource, type GroupVersionResource } from "../../meta/resource.ts";
import { parseResourcePath, pathSegments } from "../../protocol/request_url.ts";

/** The part of client-node's `Watch` that a {@linkcode ListWatch} needs: its config. */
export interface WatchLike {
  /** The config that the `Watch` was made with. */
  readonly config: KubeConfigLike;
}

/** Options that client-node does not have. All may be left out. */
export interface ListWatchOptions<T> extends
  Pick<
    SharedIndexInformerOptions<T>,
    "name" | "transform" | "storage" | "metrics" | "reflector" | "turnObjects" | "clock" | "logger"
  >,
  Pick<KubeConfigClusterOptions, "fetch"> {
  /** Fields that are left out of the objects, such as `metadata.managedFields`: they cost no memory then. */
  readonly drop?: readonly string[];
}

type Callbacks<T extends ClientNodeObject> =
  & {
    readonly [V in ADD | UPDATE | DELETE]: ObjectCallback<T>[];
  }
  & { readonly [V in ERROR | CONNECT]: ErrorCallback[] };

interface Run<T> {
  readonly informer: SharedIndexInformer<T, typeof NAMESPACE_INDEX>;
  readonly running: Running;
  /** The first list is held, or the first try has failed, or it was stopped. */
  readonly started: Promise<void>;
}

/**
 * client-node's informer, over this package's: it lists in pages, watches, and after a failure continues by
 * itself. `docs/from_client_node.md` has the differences.
 *
 * Callbacks are called in the turn in which the change was stored, one change after the other, so that `get`
 * and `list` show the state that is reported. Objects are shared: read-only.
 *
 * @example
 * ```ts
 * import { KubeConfig, type V1Pod, Watch } from "@kubernetes/client-node";
 * import { ListWatch } from "@listwatch/cache/compat/client-node";
 * async function namesOfPods(kubeConfig: KubeConfig) {
 *   const pods = new ListWatch<V1Pod>("/api/v1/pods", new Watch(kubeConfig), undefined, false);
 *   await pods.start();
 *   return pods.list("shop").map((pod) => pod.metadata?.name);
 * }
 * ```
 */
export class ListWatch<T extends ClientNodeObject>
  implements ObjectCache<T>, ClientNodeInformer<T>, AsyncDisposable {
  readonly #path: CollectionPath;
  readonly #kubeConfig: KubeConfigLike;
  readonly #selectors: { readonly labelSelector: string; readonly fieldSelector: string };
  readonly #options: ListWatchOptions<T>;
  readonly #logger: Logger;
  readonly #name: string;
  readonly #callbacks: Callbacks<T> = { add: [], update: [], delete: [], error: [], connect: [] };
  #run: Run<T> | undefined;
  /** The content of the last run, until the next one has listed. */
  #before: Indexer<T, typeof NAMESPACE_INDEX> | undefined;
  /** The states that callbacks saw of objects whose change in a list was cut off by a stop in a callback. */
  #unseen = new Map<string, T | undefined>();

  /**
   * Makes one of client-node's `Watch`, whose config is used; its `watch` is not called.
   *
   * @param path The path of the collection: `/api/v1/namespaces/shop/pods`.
   * @param _listFn Gives the type of the objects. It is not called: `path` is listed, with the selectors.
   * @param autoStart Whether it starts at once, as in client-node; `true` by default.
   *
   * @throws {TypeError} The path is not that of a collection.
   */
  constructor(
    path: string,
    watch: WatchLike,
    _listFn?: ListPromise<T>,
    autoStart?: boolean,
    labelSelector?: string,
    fieldSelector?: string,
    options: ListWatchOptions<T> = {},
  ) {
    this.#path = parseCollectionPath(path);
    this.#kubeConfig = watch.config;
    this.#selectors = {
      labelSelector: joined(this.#path.labelSelector, labelSelector),
      fieldSelector: joined(this.#path.fieldSelector, fieldSelector),
    };
    this.#options = options;
    this.#logger = guardedLogger(options.logger);
    this.#name = options.name ?? describeCollection(this.#path);
    if (autoStart !== false) {
      this.start().catch((error) => this.#logger.error(`${this.#name}: ${errorMessage(error)}`, { error }));
    }
  }

  /**
   * Starts it, also again after a stop: callbacks then receive what has changed since. It runs until `stop`,
   * and needs no other start after an error; while it runs, a start does nothing.
   *
   * @returns Resolves when the first list is held; or when the first try has failed, which the
   * callbacks for `error` receive, as in client-node.
   *
   * @throws {KubeconfigError} The config has no current cluster.
   */
  async start(): Promise<void> {
    this.#run ??= this.#newRun();
    await this.#run.started;
  }

  /** Stops it: no callback is called any more, objects stay readable. Resolves when all has stopped. */
  async stop(): Promise<void> {
    const run = this.#run;
    this.#before = this.#content;
    this.#run = undefined;
    await run?.running.stop();
  }

  /** Stops the informer. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Adds a callback, for changes from now on.
   *
   * @throws {TypeError} There is no such verb.
   */
  on(verb: ADD | UPDATE | DELETE | CHANGE, callback: ObjectCallback<T>): void;
  on(verb: ERROR | CONNECT, callback: ErrorCallback): void;
  on(verb: keyof Callbacks<T> | CHANGE, callback: ObjectCallback<T> | ErrorCallback): void {
    for (const list of this.#listsOf(verb)) list.push(callback as ErrorCallback);
  }

  /**
   * Removes a callback that was added, once; one that was not is fine.
   *
   * @throws {TypeError} There is no such verb.
   */
  off(verb: ADD | UPDATE | DELETE | CHANGE, callback: ObjectCallback<T>): void;
  off(verb: ERROR | CONNECT, callback: ErrorCallback): void;
  off(verb: keyof Callbacks<T> | CHANGE, callback: ObjectCallback<T> | ErrorCallback): void {
    for (const list of this.#listsOf(verb)) {
      const at = list.indexOf(callback as ErrorCallback);
      if (at !== -1) list.splice(at, 1);
    }
  }

  get(name: string, namespace?: string): T | undefined {
    return this.#content?.getByKey(namespace ? `${namespace}/${name}` : name);
  }

  list(namespace?: string): ReadonlyArray<T> {
    return (namespace ? this.#content?.byIndex(NAMESPACE_INDEX, namespace) : this.#content?.list()) ?? [];
  }

  /** The resourceVersion that the content has reached; `""` before the first list. */
  latestResourceVersion(): string {
    return this.#content?.lastStoreSyncResourceVersion() ?? "";
  }

  /** The informer's status: phase, lag, outage, the last error; `undefined` while it does not run. */
  status(): InformerStatus | undefined {
    return this.#run?.informer.status();
  }

  get #content(): Indexer<T, typeof NAMESPACE_INDEX> | undefined {
    return this.#before ?? this.#run?.informer.indexer;
  }

  #listsOf(verb: string): (ObjectCallback<T> | ErrorCallback)[][] {
    const { add, update, delete: deleted } = this.#callbacks;
    if (verb === CHANGE) return [add, update, deleted];
    if (Object.hasOwn(this.#callbacks, verb)) return [this.#callbacks[verb as keyof Callbacks<T>]];
    throw new TypeError(
      `Cannot listen to ${JSON.stringify(verb)}: the verbs are add, update, change, delete, connect, error`,
    );
  }

  #newRun(): Run<T> {
    const { drop, fetch, name: _, reflector, ...options } = this.#options;
    const { logger, clock } = options;
    const cluster = clusterOfKubeConfig(this.#kubeConfig, { fetch, logger, clock });
    const { resource, namespace } = this.#path;
    // client-node's objects are whole: programs write them back.
    const collection = cluster.resource<KubernetesObject>(resource, {
      ...this.#selectors,
      namespace,
      keep: "everything",
      ...(drop && { drop }),
    }) as unknown as ListerWatcher<T>;
    const started = Promise.withResolvers<void>();
    const isCurrent = () => this.#run?.informer === informer;
    const source = announcing(collection, () => {
      if (isCurrent()) this.#call(CONNECT, undefined);
    });
    const informer = new SharedIndexInformer<T, typeof NAMESPACE_INDEX>(source, {
      ...options,
      name: this.#name,
      indexers: { [NAMESPACE_INDEX]: metaNamespaceIndex },
      reflector: {
        ...reflector,
        watchErrorHandler: (error) => {
          reflector?.watchErrorHandler?.(error);
          if (isCurrent()) this.#call(ERROR, new ListWatchError(error));
          started.resolve();
        },
      },
    });
    informer.observe((event) => this.#apply(event, informer.indexer, isCurrent));
    informer.synced().catch(() => {}).finally(() => started.resolve());
    return { informer, running: informer.start(), started: started.promise };
  }

  /** Calls the callbacks for an event; `isCurrent` is false once one of them has stopped this. */
  #apply(event: StoreEvent<T>, indexer: Indexer<T>, isCurrent: () => boolean): void {
    if (event.type === "bookmark") return;
    if (!isCurrent()) {
      // A list that was on its way into what is held: the next start reports it.
      if (event.type !== "replaced" || this.#before !== indexer) return;
      for (const change of event.changes) {
        const known = "oldObject" in change ? change.oldObject : undefined;
        if (!this.#unseen.has(change.key)) this.#unseen.set(change.key, known);
      }
      return;
    }
    if (event.type !== "replaced") {
      this.#change(event.type, event.object, "oldObject" in event ? event.oldObject : undefined);
      return;
    }
    const [before, unseen] = [this.#before, this.#unseen];
    [this.#before, this.#unseen] = [undefined, new Map()];
    const knownOf = (key: string) => unseen.has(key) ? unseen.get(key) : before?.getByKey(key);
    const report = (type: "added" | "updated" | "deleted", key: string, object: T, known: T | undefined) => {
      if (isCurrent()) this.#change(type, object, known);
      else this.#unseen.set(key, known);
    };
    for (const key of new Set([...before?.listKeys() ?? [], ...unseen.keys()])) {
      const known = indexer.has(key) ? undefined : knownOf(key);
      if (known !== undefined) report("deleted", key, known, known);
    }
    for (const change of event.changes) {
      const { type, key, object } = change;
      const known = knownOf(key) ?? ("oldObject" in change ? change.oldObject : undefined);
      report(type === "added" && known !== undefined ? "updated" : type, key, object, known);
    }
  }

  #change(type: "added" | "updated" | "deleted", object: T, known: T | undefined): void {
    if (type === "added") this.#call(ADD, object);
    else if (known === undefined) return; // a delete of what was not held
    else if (type === "deleted") this.#call(DELETE, object);
    else if (!isSameVersion(known, object)) this.#call(UPDATE, object);
  }

  #call(verb: keyof Callbacks<T>, argument: T | ListWatchError | undefined): void {
    const report = (error: unknown) => {
      const text = `${this.#name}: a callback for "${verb}" threw: ${errorMessage(error)}`;
      this.#logger.error(text, { error });
    };
    const callbacks = [...this.#callbacks[verb]] as ((argument: unknown) => unknown)[];
    for (const callback of callbacks) callGuarded(() => callback(argument), report);
  }
}

/**
 * A source that calls `onConnect` when the server answers: the first page of a list, and
 * each watch but the one that continues a list.
 */
function announcing<T>(source: ListerWatcher<T>, onConnect: () => void): ListerWatcher<T> {
  let hasListed = false;
  return {
    ...newListWatch(source, (options) => options),
    list: async (options, context) => {
      const page = await source.list(options, context);
      if (!options.continue) onConnect();
      hasListed = true;
      return page;
    },
    watch: async (options, context) => {
      const stream = await source.watch(options, context);
      if (!hasListed) onConnect();
      hasListed = false;
      return stream;
    },
  };
}

function isSameVersion(a: ClientNodeObject, b: ClientNodeObject): boolean {
  const version = a.metadata?.resourceVersion;
  return version !== undefined && version === b.metadata?.resourceVersion &&
    a.metadata?.uid === b.metadata?.uid;
}

function joined(one: string, other = ""): string {
  return [one, other].filter(Boolean).join(",");
}

interface CollectionPath {
  readonly resource: GroupVersionResource;
  /** `""` for all namespaces, and for what is in none. */
  readonly namespace: string;
  /** The selector in the path's query, if it has one. */
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

/**
 * Reads the path of a collection.
 *
 * @throws {TypeError} The path is none of a list.
 */
function parseCollectionPath(path: string): CollectionPath {
  const [before, query = ""] = path.split("?", 2);
  const found = parseResourcePath(pathSegments(before) ?? []);
  if (found === undefined || found.name !== "" || found.isWatch) {
    throw new TypeError(
      `Cannot make an informer of ${JSON.stringify(path)}: it must be the path of a collection, such as ` +
        `"/api/v1/namespaces/shop/pods" or "/apis/apps/v1/deployments"` +
        (found?.name ? `; for one object, give the field selector "metadata.name=${found.name}"` : ""),
    );
  }
  const { group, version, resource, namespace } = found;
  const parameters = new URLSearchParams(query);
  return {
    resource: { group, version, resource },
    namespace,
    labelSelector: parameters.get("labelSelector") ?? "",
    fieldSelector: parameters.get("fieldSelector") ?? "",
  };
}

function describeCollection({ resource, namespace }: CollectionPath): string {
  return namespace === "" ? formatResource(resource) : `${formatResource(resource)} in ${namespace}`;
}

/**
 * Makes an informer with the signature of client-node's `makeInformer`,
 * on the same `KubeConfig`; it has not started.
 *
 * @param path The path of the collection: `/api/v1/namespaces/shop/pods`.
 * @param listFn Gives the type of the objects. It is not called:
 * `path` is listed, with the selectors, in pages.
 * @param fieldSelector client-node's `makeInformer` has none.
 * @param options Options that client-node does not have.
 *
 * @throws {TypeError} The path is not that of a collection.
 *
 * @example
 * ```ts
 * import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
 * import { makeInformer } from "@listwatch/cache/compat/client-node";
 * async function followPods() {
 *   const kubeConfig = new KubeConfig();
 *   kubeConfig.loadFromDefault();
 *   const api = kubeConfig.makeApiClient(CoreV1Api);
 *   const informer = makeInformer(kubeConfig, "/api/v1/pods", () => api.listPodForAllNamespaces());
 *   informer.on("add", (pod) => console.log("added", pod.metadata?.name));
 *   informer.on("error", (error) => console.log(error.message)); // it tries again by itself
 *   await informer.start();
 *   return informer;
 * }
 * ```
 */
export function makeInformer<T extends ClientNodeObject>(
  kubeConfig: KubeConfigLike,
  path: string,
  listFn?: ListPromise<T>,
  labelSelector?: string,
  fieldSelector?: string,
  options?: ListWatchOptions<T>,
): ListWatch<T> {
  return new ListWatch<T>(path, { config: kubeConfig }, listFn, false, labelSelector, fieldSelector, options);
}
