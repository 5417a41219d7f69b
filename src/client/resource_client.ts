import type { ListOptions, ListPage, NamespaceNames, WatchStream } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import type {
  ApplyOptions,
  DeleteOptions,
  ObjectRequestOptions,
  TypedResourceOptions,
} from "./resource_options.ts";

/**
 * One resource of an API server. It has the shape of a `ListerWatcher`: give it to an informer.
 *
 * Objects of a list and events of a watch that are broken (no name, labels that are no text, or refused by
 * the schema) are quarantined and reported, the others are accepted; see {@linkcode ListPage.quarantined} and
 * {@linkcode WatchItem}. All other objects are as the server sent them, unknown fields included, less what
 * `keep` and `drop` leave out of lists and watches; list items are given the list's `apiVersion` and `kind`
 * where they lack them. With a {@linkcode ListWatchContext.holdText} objects are read as far as their
 * metadata and not parsed, unless there is a schema: that opens each once. The verbs that go to one object
 * leave out nothing: to replace an object, `get` it first.
 *
 * Every method throws a {@linkcode StatusError} when the server refuses, a {@linkcode NetworkError} when no
 * whole answer came, a {@linkcode DecodeError} when the answer is something else, and the signal's reason
 * once it is aborted.
 *
 * @category Cluster
 */
export interface ResourceClient<T extends KubernetesObject> {
  readonly resource: GroupVersionResource;
  /** The namespace it is narrowed to; `""` for all. */
  readonly namespace: string;
  /** The set of namespaces that it is for, if it is for several. */
  readonly namespaces?: NamespaceNames | undefined;
  /** A name for log lines: `pods`, `deployments.apps in shop`. */
  readonly description: string;
  /**
   * Server, namespace, selectors, and what is kept or dropped of the objects: as `ListerWatcher.identity`.
   */
  readonly identity: string;

  /** The uid of the namespace `kube-system`: as `ListerWatcher.clusterUid`. */
  clusterUid(signal?: AbortSignal): Promise<string>;

  /** The `Cluster` that it asks. */
  readonly cluster: ClientSource;

  /** The same client, narrowed to one namespace. */
  inNamespace(namespace: string): ResourceClient<T>;

  /** The same client of another `Cluster`. */
  on(cluster: ClientSource): ResourceClient<T>;

  /** A client for the same objects' names and versions, which no cache in between answers with stale ones. */
  metadata(): ResourceClient<KubernetesObject>;

  /** A client for the same objects, whose lists and watches keep `metadata.managedFields`. */
  managedFields(): ResourceClient<T>;

  /**
   * The kind and the scope of the resource, by discovery.
   *
   * @throws {StatusError} 404: the server does not serve it.
   */
  describe(options?: Pick<ObjectRequestOptions, "signal" | "timeoutMs">): Promise<ResourceDescription>;

  /**
   * One page of a list; of a set of namespaces, everything, at a version up to which nothing is missing.
   * Selectors given here take the place of the client's own.
   */
  list(options?: ListOptions, context?: Partial<ListWatchContext>): Promise<ListPage<T>>;

  /**
   * Opens a watch; resolves when the server starts to answer. A `readApi` ends it with 410 when it lists
   * again. The stream is as {@linkcode decodeWatch} says; aborting the signal ends it too. Selectors given
   * here take the place of the client's own.
   *
   * @throws {TypeError} The client is for a set of namespaces: each has a watch of its own.
   */
  watch(options?: ListOptions, context?: Partial<ListWatchContext>): Promise<WatchStream<T>>;

  /** One object. */
  get(name: string, options?: ObjectRequestOptions): Promise<T>;

  /** Creates an object, in its own namespace if it names one; returns it as the server keeps it. */
  create(object: T, options?: ObjectRequestOptions): Promise<T>;

  /**
   * Replaces an object as a whole; a conflict if it changed since its `resourceVersion`. Returns it as kept.
   */
  replace(object: T, options?: ObjectRequestOptions): Promise<T>;

  /**
   * Changes an object: by a JSON merge patch (fields given are set, `null` removes), or by a JSON patch if it
   * is an array of operations (`[{ op: "replace", path: "/spec/size", value: 2 }]`). Returns it as kept.
   */
  patch(name: string, patch: unknown, options?: ObjectRequestOptions): Promise<T>;

  /**
   * Applies a configuration on the server: the fields in it are set and belong to `fieldManager` from now
   * on, fields that it applied before and that are not in it any more are removed, and the object is
   * created if there is none. Returns it as kept.
   *
   * @throws {StatusError} 409 Conflict: another manager has one of the fields; `force` takes it over.
   * @throws {TypeError} The configuration has no `apiVersion`, `kind` or name.
   * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
   */
  apply(config: T, options: ApplyOptions): Promise<T>;

  /** Asks for an object to be deleted; it may go later, after a grace period or its finalizers. */
  delete(name: string, options?: DeleteOptions): Promise<void>;
}

/** What makes clients: a `Cluster`. */
export interface ClientSource {
  /** The server's URL. */
  readonly server: string;
  /** A client for the objects of one resource. */
  resource<T extends KubernetesObject>(
    resource: GroupVersionResource,
    options?: TypedResourceOptions<T>,
  ): ResourceClient<T>;
}

/** What a server says about a resource. */
export interface ResourceDescription {
  readonly apiVersion: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
}
