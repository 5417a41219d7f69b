import type { ListOptions, ListPage, WatchStream } from "../meta/list_watch.ts";
import type { Projection } from "../text/field_tree.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import type { NamespaceSet } from "../meta/namespace_set.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";

/**
 * A source that can be listed and watched: an API server's resource, or anything that behaves like one.
 * Mirrors client-go's `ListerWatcherWithContext`, with an `AbortSignal` for the context.
 */
export interface ListerWatcher<T> {
  /**
   * One page of a list.
   * @throws {StatusError} The server refused.
   * @throws {NetworkError} No answer came.
   * @throws The signal's reason, once it is aborted.
   */
  list(options: ListOptions, context: ListWatchContext): Promise<ListPage<T>>;
  /** Opens a watch; resolves when the server has accepted it. Throws as {@linkcode ListerWatcher.list}. */
  watch(options: ListOptions, context: ListWatchContext): Promise<WatchStream<T>>;
  /** A name for log lines and errors, such as `pods`. */
  readonly description?: string;
  /** What it lists, where that is known. */
  readonly resource?: GroupVersionResource;
  /** What it leaves out of the objects, where that is known. */
  readonly projection?: Projection | undefined;
  /**
   * What decides which objects it brings, and what is in them, besides the resource: server, namespace,
   * selectors, the fields that are kept or dropped; a text to compare. A snapshot of a source with another
   * identity is not used.
   */
  readonly identity?: string;
  /**
   * What identifies the cluster whatever its address: the uid of the namespace `kube-system`, which every
   * cluster has, and no two have the same. A snapshot of another cluster is not used. Throws as {@linkcode
   * ListerWatcher.list}.
   */
  clusterUid?(signal: AbortSignal): Promise<string>;
  /**
   * A source of the same objects' names and versions: a copy that is served proves with it that it is fresh.
   */
  metadata?(): ListerWatcher<KubernetesObject>;
  /**
   * The namespaces whose objects it brings, where it is one for several: an informer lists and watches each
   * by itself, by {@linkcode ListerWatcher.inNamespace}, and `watch` refuses.
   */
  readonly namespaces?: NamespaceSet | undefined;
  /** The same source for one namespace. */
  inNamespace?(namespace: string): ListerWatcher<T>;
}

/**
 * Makes a {@linkcode ListerWatcher} of two functions, with options that are merged into every request.
 * Mirrors client-go's `ListWatch` and its `optionsModifier`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { newListWatch } from "@listwatch/cache/reflector";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const web = newListWatch(pods, (options) => ({ ...options, labelSelector: "app=web" }));
 * ```
 */
export function newListWatch<T>(
  source: ListerWatcher<T>,
  modifyOptions: (options: ListOptions) => ListOptions,
): ListerWatcher<T> {
  return {
    description: source.description,
    // The other questions depend on the options.
    ...(source.metadata && { metadata: () => newListWatch(source.metadata!(), modifyOptions) }),
    ...(source.resource && { resource: source.resource }),
    ...(source.projection && { projection: source.projection }),
    ...(source.namespaces && { namespaces: source.namespaces }),
    ...(source.inNamespace && {
      inNamespace: (namespace) => newListWatch(source.inNamespace!(namespace), modifyOptions),
    }),
    ...(source.clusterUid && { clusterUid: (signal) => source.clusterUid!(signal) }),
    get identity() {
      return source.identity && `${source.identity} ${JSON.stringify(modifyOptions({}))}`;
    },
    list: (options, context) => source.list(modifyOptions(options), context),
    watch: (options, context) => source.watch(modifyOptions(options), context),
  };
}

/** @throws {TypeError} The source has a set of namespaces, which one reflector cannot follow. */
export function refuseNamespaces(
  { namespaces, description = "objects" }: Pick<ListerWatcher<unknown>, "namespaces" | "description">,
): void {
  if (namespaces === undefined) return;
  throw new TypeError(
    `Cannot reflect ${description} by one list and watch: give the source to a SharedIndexInformer`,
  );
}
