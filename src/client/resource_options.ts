import type { NamespaceNames } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Schema } from "../schema/schema.ts";
import type { ValidatorOptions } from "../schema/checks.ts";
import type { Advice } from "../text/field_path.ts";
import type { Clock } from "../util/clock.ts";

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
   * not read all, or need a few of many. One that is refused is reported by its name and holds up no other.
   */
  readonly namespaces?: NamespaceNames;
  /** Only objects with these labels: `app=web,tier in (front)`. */
  readonly labelSelector?: string;
  /** Only objects with these fields: `spec.nodeName=node-1`. */
  readonly fieldSelector?: string;
  /** What objects must look like: any Standard Schema, such as zod's. Objects that differ are quarantined. */
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
  /** In whose name the fields are set: that of the program. */
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
  /** What goes behind the question mark. */
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
