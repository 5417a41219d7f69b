import type { ListOptions, ListPage, NamespaceNames, WatchStream } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import type { Schema } from "../schema/schema.ts";
import type { ValidatorOptions } from "../schema/checks.ts";
import type { Advice } from "../text/field_path.ts";
import type { Clock } from "../util/clock.ts";

/**
 * A client of one resource of an API server. It has the shape of a `ListerWatcher`: give it to an informer.
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
  /** For texts: its selectors of labels and of fields, and `metadata only`, of those that it has. */
  readonly selection?: string;

  /** The uid of the namespace `kube-system`: as `ListerWatcher.clusterUid`. */
  clusterUid(signal?: AbortSignal): Promise<string>;

  /** The `Cluster` that it asks. */
  readonly cluster: ClientSource;

  /** This client, narrowed to one namespace. */
  inNamespace(namespace: string): ResourceClient<T>;

  /** This client for another `Cluster`. */
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
   * Reads one page of a list; with a set of namespaces, everything, at a version up to which nothing is
   * missing. Selectors given here take the place of the client's own.
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

  /** Returns one object. */
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

/** Makes clients, as a `Cluster` does. */
export interface ClientSource {
  /** The server's URL. */
  readonly server: string;
  /** A client for the objects of one resource. */
  resource<T extends KubernetesObject>(
    resource: GroupVersionResource,
    options?: TypedResourceOptions<T>,
  ): ResourceClient<T>;
}

/** A server's description of a resource. */
export interface ResourceDescription {
  readonly apiVersion: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
}

/**
 * Options of {@linkcode Cluster.resource}.
 *
 * @category Cluster
 */
export interface ResourceOptions<T> {
  /** Only objects of this namespace; all of them, or a cluster-scoped resource, by default. */
  readonly namespace?: string;
  /**
   * Only objects of these namespaces, a `NamespaceSet`, which may change at any time; in place of
   * `namespace`. An informer lists and watches each of them by itself, into one store: for programs that may
   * not read all, or need a few of many. A refused namespace is reported by its name and holds up no other.
   */
  readonly namespaces?: NamespaceNames;
  /** Only objects with these labels: `app=web,tier in (front)`. */
  readonly labelSelector?: string;
  /** Only objects with these fields: `spec.nodeName=node-1`. */
  readonly fieldSelector?: string;
  /** The schema of the objects: any Standard Schema, such as zod's. Objects that differ are quarantined. */
  readonly schema?: Schema<T>;
  /** Receives each quarantined object, with the value itself; must not throw. */
  readonly onInvalid?: ValidatorOptions<T>["onInvalid"];
  /**
   * Whether only the objects' metadata is requested, which is a fraction of the bytes; `false` by default.
   * Such a client cannot create or replace. From a server that cannot leave out the rest it is left out here.
   *
   * Mirrors client-go's `metadata` client.
   */
  readonly metadataOnly?: boolean;
  /**
   * The only fields that lists and watches keep, besides `apiVersion`, `kind` and `metadata`; all of them by
   * default. See {@linkcode ProjectionOptions} for how paths are written. `"everything"`: the fields that are
   * left out by default, too.
   */
  readonly keep?: readonly string[] | "everything";
  /**
   * The fields that lists and watches leave out: they are skipped, not parsed. Besides any others,
   * `metadata.managedFields` and kubectl's annotation of the last applied configuration: a third to a half of
   * most objects' bytes. With `keep: "everything"` nothing but these fields is left out, and that annotation,
   * which has them in it. A schema does not see them, and an object that is replaced without them loses them.
   * Requests say that the server need not send managedFields; kube-apiserver can leave them out since 1.38.
   */
  readonly drop?: readonly string[];
  /** The longest event a watch accepts, in bytes; 16 MiB by default. */
  readonly maxFrameBytes?: number;
  /** The longest object a list accepts, in bytes; 16 MiB by default. */
  readonly maxItemBytes?: number;
  /**
   * The longest list, or page of one, that is accepted, in bytes once it is decompressed; 2 GiB by default.
   */
  readonly maxListBytes?: number;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Options of {@linkcode Cluster.resource} where the type of the objects is given by itself
 * (`resource<Pod>("v1/pods")`). That type cannot follow `keep` and `drop`, so they name no fields but of
 * metadata; {@linkcode resourceOf} has no such limit.
 */
export type TypedResourceOptions<T> =
  & ResourceOptions<T>
  & ([keyof T] extends [keyof KubernetesObject] ? unknown : {
    readonly keep?:
      | "everything"
      | Advice<"write resource(resourceOf<T>(name), { keep }): its type follows keep and drop">;
    readonly drop?: readonly `metadata.${string}`[];
  });

/** Options of the verbs that go to one object. */
export interface ObjectRequestOptions {
  /** The object's namespace; the client's by default. */
  readonly namespace?: string;
  /** A part of the object with a path of its own: `status`, `scale`. */
  readonly subresource?: string;
  /** Parameters such as `dryRun: "All"` or `fieldManager: "me"`. */
  readonly query?: Query;
  readonly signal?: AbortSignal;
  /**
   * How long the request may take, answer included, in milliseconds; `requestTimeoutMs` of the cluster, or 30
   * s, by default. `Infinity` for no limit. A write that takes longer may still have been made.
   */
  readonly timeoutMs?: number;
  /**
   * As {@linkcode RequestOptions.check}.
   *
   * @internal
   */
  readonly check?: () => void;
}

/** Options of {@linkcode ResourceClient.delete}. */
export interface DeleteOptions extends ObjectRequestOptions {
  /** How long the object may take to go. */
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground";
  /** Delete only this very object, in this very version. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** Options of {@linkcode ResourceClient.apply}. */
export interface ApplyOptions extends ObjectRequestOptions {
  /** The name of the program, in which the fields are set. */
  readonly fieldManager: string;
  /** Whether fields of other managers are taken over; `false` by default: a conflict. */
  readonly force?: boolean;
}

/**
 * The parameters of a query. Those that are `undefined`, `""` or `false` are not sent; `true` is sent as
 * `true`.
 */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Options of {@linkcode Cluster.request} and {@linkcode Cluster.open}. */
export interface RequestOptions {
  /** `GET` by default. */
  readonly method?: string;
  /** The query, without its question mark. */
  readonly query?: Query;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  /** Sent beside the headers of the cluster; they win over those. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal;
  /**
   * How long {@linkcode Cluster.request} may take, answer included, in milliseconds; `requestTimeoutMs` of
   * the cluster, or 30 s, by default. `Infinity` for no limit.
   */
  readonly timeoutMs?: number;
  /**
   * Called as late as can be before the request is sent; what it throws is the error of the request.
   *
   * @internal
   */
  readonly check?: () => void;
  /** The action, for error texts, as it follows "Cannot": `list "pods"`. Method and path by default. */
  readonly action?: string;
}

/** The part of a `Cluster` that its resource clients use. */
export interface Requests {
  readonly server: string;
  readonly clock: Clock;
  request(path: string, options?: RequestOptions): Promise<unknown>;
  open(path: string, options?: RequestOptions): Promise<Response>;
  /** Runs something that must be over within a time, the configured one by default. */
  withTimeout<R>(
    action: string,
    limits: { readonly timeoutMs?: number | undefined; readonly signal?: AbortSignal | undefined },
    run: (signal: AbortSignal | undefined) => Promise<R>,
  ): Promise<R>;
}
