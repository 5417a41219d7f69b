/** Definitions of controllers: their resources, and the functions that bring them to the desired state. */

import type { ResourceClient } from "../client/resource_client.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Indexers } from "../store/index_func.ts";
import type { Indexer } from "../store/store.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { CachedClient, CachedReader } from "./cached_client.ts";
import type { ObjectEvents } from "./event_recorder.ts";
import { type ChangeFilter, changeFilter } from "./change_filter.ts";
import { CacheError, findCause } from "../util/errors.ts";
import { isRecord } from "../util/json.ts";

/** A resource with indices of its objects; made by {@linkcode indexed}. */
export interface Indexed<T extends KubernetesObject, I extends string> {
  readonly resource: ResourceClient<T>;
  readonly indexers: Indexers<T, I>;
}

/** A resource, with or without indices. */
export type Source<T extends KubernetesObject, I extends string> = ResourceClient<T> | Indexed<T, I>;

// deno-lint-ignore no-explicit-any -- the type of the objects is inferred from each source
type AnySource = Source<any, any>;

/**
 * Gives the cache of a resource indices, by which the reconciler finds objects:
 * {@linkcode CachedReader.byIndex}.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { defineController, indexed } from "@listwatch/cache/controller";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string } };
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * defineController({
 *   name: "nodes",
 *   for: cluster.resource("v1/nodes"),
 *   watches: {
 *     pods: {
 *       resource: indexed(cluster.resource<Pod>("v1/pods"), { byNode: (pod) => [pod.spec?.nodeName ?? ""] }),
 *       keys: (pod) => pod.spec?.nodeName ? [pod.spec.nodeName] : [],
 *     },
 *   },
 *   async reconcile(node, { pods, log }) {
 *     log.info("pods", { count: (await pods.byIndex("byNode", node.metadata?.name ?? "")).length });
 *   },
 * });
 * ```
 */
export function indexed<T extends KubernetesObject, const I extends string>(
  resource: ResourceClient<T>,
  indexers: Indexers<T, I>,
): Indexed<T, I> {
  return { resource, indexers };
}

/** The result of a reconcile; nothing is the same as an empty one. */
export interface Result<S = unknown> {
  /**
   * The status of the object, or the part of it that this controller keeps: written to the `status`
   * subresource if the object's differs, by a merge patch that the server refuses if the object has changed
   * since it was read; the object is then reconciled again. `null` removes a field.
   */
  readonly status?: S;
  /**
   * After how many milliseconds the object is reconciled again although nothing has changed. From `finalize`
   * it says that the work is not done: the finalizer stays.
   */
  readonly requeueAfterMs?: number;
}

/** The context of a reconcile, besides the object. */
export interface ReconcileContext<T extends KubernetesObject, I extends string = string> {
  /** The object's key: `namespace/name` or `name`; with several clusters, `cluster:namespace/name`. */
  readonly key: string;
  /** The name of the object's cluster, where the manager has several; otherwise `""`. */
  readonly cluster: string;
  /** The resource of the object itself: reads of its cache, and writes. */
  readonly self: CachedClient<T, I>;
  /** Aborted at the deadline, when the lease is lost, and when a stop has waited long enough. */
  readonly signal: AbortSignal;
  /** How many reconciles of the object have failed since the last success. */
  readonly failures: number;
  /** The manager's clock, which tests move: what depends on the time asks this one. */
  readonly clock: Clock;
  /** Writes lines with the controller and the key. */
  readonly log: Logger;
  /** Events about the object, which `kubectl describe` shows. */
  readonly events: ObjectEvents;
  /** Measurements of this program; the label `controller` is added. */
  readonly metrics: ReconcileMetrics;
}

/** Measurements that a reconcile makes. */
export interface ReconcileMetrics {
  /** Adds to a counter. */
  count(name: string, value?: number, labels?: Readonly<Record<string, string>>): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
  /** Puts a value into a histogram. */
  observe(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
}

/** The caches of a controller, by name; that of its own resource is `self`. */
export type Caches = Readonly<Record<string, Indexer<KubernetesObject>>>;

/** Another resource whose changes cause a reconcile. */
export interface Watched<T extends KubernetesObject, I extends string = string> {
  readonly resource: Source<T, I>;
  /**
   * The keys (`namespace/name`, or `name`) of the objects to reconcile when this one was added, changed or
   * deleted; it is called for both states of a change, in its turn, and must not wait. A key is of the same
   * cluster, unless it names another one: `eu-1:shop/web`.
   */
  readonly keys: (object: T, caches: Caches) => readonly string[];
  /** The changes that count, as of the controller's own objects; all by default. */
  readonly when?: ChangeFilter<T>;
}

/** The client that a reconcile gets for a source. */
export type ClientOf<S> = S extends Indexed<infer T, infer I> ? CachedClient<T, I>
  : S extends ResourceClient<infer T> ? CachedClient<T, never>
  : never;

/** The clients of one reconcile in each cluster, where the manager has several. */
export interface InClusters<C> {
  /** The resources by the name of the cluster; `self` is the resource of the object. */
  readonly clusters: Readonly<Record<string, C>>;
}

type OwnedBy<O> = { readonly [K in keyof O]: ClientOf<O[K]> };
type WatchedBy<W> = { readonly [K in keyof W]: W[K] extends KubernetesObject ? CachedReader<W[K]> : never };

/** Everything that a reconcile gets besides the object. */
export type ContextOf<T extends KubernetesObject, I extends string, O, W> =
  & ReconcileContext<T, I>
  & InClusters<{ readonly self: CachedClient<T, I> } & OwnedBy<O> & WatchedBy<W>>
  & OwnedBy<O>
  & WatchedBy<W>;

/** A reconciler: brings the world to what the object says. */
export type Reconciler<T extends KubernetesObject, I extends string, O, W> = (
  object: T,
  context: ContextOf<T, I, O, W>,
) => Promise<Result<unknown> | void> | Result<unknown> | void;

/** Options of {@linkcode defineController}. */
export interface ControllerOptions<
  T extends KubernetesObject,
  I extends string,
  O extends Readonly<Record<string, AnySource>>,
  W extends Readonly<Record<string, KubernetesObject>>,
> {
  /** The controller's name in log lines, metrics and events, and as the field manager of what it applies. */
  readonly name: string;
  /** The resource whose objects are reconciled. */
  readonly for: Source<T, I>;
  /** The resources that it makes objects of: a change of one reconciles its controlling owner. */
  readonly owns?: O;
  /** Other resources whose changes cause a reconcile. */
  readonly watches?: { readonly [K in keyof W]: Watched<W[K]> };
  /**
   * The changes of an object that cause a reconcile: `generation` (its spec), `labels`, `metadata` (labels,
   * annotations, finalizers, owners), `generationOrMetadata`, or a function of both states; all by default.
   * Adds, resyncs and the beginning of a deletion always do.
   */
  readonly when?: ChangeFilter<T>;
  /**
   * Brings the world to what the object says. It is called for an object that was added or has changed,
   * that owns or maps to one that has, for all at the start, and again after a failure. It must not rely on
   * what the change was: several are one call. One object is never reconciled twice at the same time; an
   * object that is being deleted is not reconciled.
   */
  readonly reconcile: Reconciler<T, I, O, W>;
  /**
   * The finalizer that is added to each object before its first reconcile; a name such as
   * `example.com/widget`. Use `ownedBy` as well: kube-apiserver may delete an object in the moment in which
   * its first finalizer comes, and then nothing is called.
   */
  readonly finalizer?: string;
  /**
   * Cleans up after an object that is being deleted; called until it succeeds, and may be called again after
   * it has. The finalizer is then removed. Needs `finalizer`.
   */
  readonly finalize?: Reconciler<T, I, O, W>;
  /** How many objects are reconciled at the same time; 1 by default. */
  readonly workers?: number;
  /** How long one reconcile may take, in milliseconds; 60,000 by default. `signal` is aborted then. */
  readonly timeoutMs?: number;
  /**
   * How often all objects are reconciled although nothing has
   * changed, in milliseconds; 0, the default: never.
   */
  readonly resyncPeriodMs?: number;
}

export type AnyContext = ReconcileContext<KubernetesObject> & InClusters<unknown>;

/** Any controller, as a `Manager` runs it. */
export interface AnyController {
  readonly name: string;
  readonly for: Indexed<KubernetesObject, string>;
  readonly owns: Readonly<Record<string, Indexed<KubernetesObject, string>>>;
  readonly watches: Readonly<
    Record<
      string,
      Omit<Watched<KubernetesObject>, "when"> & {
        readonly resource: Indexed<KubernetesObject, string>;
        readonly isChange: AnyController["isChange"];
      }
    >
  >;
  readonly isChange: (before: KubernetesObject, after: KubernetesObject) => boolean;
  readonly reconcile: (object: KubernetesObject, context: AnyContext) => unknown;
  readonly finalizer: string | undefined;
  readonly finalize:
    | ((object: KubernetesObject, context: AnyContext) => unknown)
    | undefined;
  readonly workers: number;
  readonly timeoutMs: number;
  readonly resyncPeriodMs: number;
}

/** A controller that a `Manager` can run; made by {@linkcode defineController}. */
export interface ControllerDefinition {
  /** The controller's name. */
  readonly name: string;
  /**
   * The controller's parts.
   *
   * @internal
   */
  readonly parts: AnyController;
}

const RESERVED = [
  "key",
  "cluster",
  "clusters",
  "self",
  "signal",
  "failures",
  "clock",
  "log",
  "events",
  "metrics",
];
// As the API server takes it for the reporter of events.
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const FINALIZER = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/**
 * Describes a controller: which resources it is about, and how one object is
 * brought to the desired state. A `Manager` runs it.
 *
 * Mirrors controller-runtime's `builder` and `reconcile.Reconciler`. The main differences: an
 * object that is not there (any more) is not reconciled; the status is returned, not written by hand; and
 * reads are never older than what the reconciler itself wrote. docs/controllers.md has the others.
 *
 * @throws {TypeError} A name, the finalizer or the combination of options is nothing that can run.
 * @throws {RangeError} A number is negative, or `NaN`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { defineController, ownedBy } from "@listwatch/cache/controller";
 * interface Widget extends KubernetesObject { spec?: { color?: string } }
 * interface ConfigMap extends KubernetesObject { data?: Record<string, string> }
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const widgets = defineController({
 *   name: "widgets",
 *   for: cluster.resource<Widget>("example.com/v1/widgets"),
 *   owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
 *   workers: 4,
 *   when: "generationOrMetadata",
 *   async reconcile(widget, { configMaps }) {
 *     const metadata = { name: `widget-${widget.metadata?.name}`, ...ownedBy(widget) };
 *     await configMaps.apply({ metadata, data: { color: widget.spec?.color ?? "none" } });
 *     return { status: { ready: true } };
 *   },
 * });
 * console.log(widgets.name); // widgets
 * ```
 */
export function defineController<
  T extends KubernetesObject,
  const I extends string = never,
  // deno-lint-ignore ban-types -- no resources: the context has no further members
  O extends Readonly<Record<string, AnySource>> = {},
  // deno-lint-ignore ban-types
  W extends Readonly<Record<string, KubernetesObject>> = {},
>(options: ControllerOptions<T, I, O, W>): ControllerDefinition {
  const { name, owns = {}, watches = {}, reconcile, finalizer, finalize } = options;
  const { workers = 1, timeoutMs = 60_000, resyncPeriodMs = 0 } = options;
  const text = `Cannot define the controller ${JSON.stringify(name)}`;
  if (!NAME.test(name)) {
    throw new TypeError(
      `${text}: a name has up to 63 letters, digits, "-", "_" and ".", and ends with a letter or digit`,
    );
  }
  requireNumbers(text.replace("Cannot ", ""), { timeoutMs }, { mayBeInfinite: true });
  requireNumbers(text.replace("Cannot ", ""), { resyncPeriodMs });
  requireNumbers(text.replace("Cannot ", ""), { workers }, { least: 1 });
  if ((finalizer === undefined) !== (finalize === undefined)) {
    throw new TypeError(`${text}: \`finalizer\` and \`finalize\` go together; give both or neither`);
  }
  if (finalizer !== undefined && !FINALIZER.test(finalizer)) {
    throw new TypeError(
      `${text}: ${
        JSON.stringify(finalizer)
      } is no name of a finalizer; write one such as "example.com/widget"`,
    );
  }
  const taken = [...Object.keys(owns), ...Object.keys(watches)];
  const double = taken.find((key, at) => RESERVED.includes(key) || taken.indexOf(key) !== at);
  if (double !== undefined) {
    throw new TypeError(
      `${text}: a reconcile has ${JSON.stringify(double)} already; give the resource another name`,
    );
  }
  const parts: AnyController = {
    name,
    for: withIndexers(options.for),
    owns: Object.fromEntries(
      Object.entries<AnySource>(owns).map(([key, source]) => [key, withIndexers(source)]),
    ),
    watches: Object.fromEntries(
      Object.entries(watches as Record<string, Watched<KubernetesObject>>).map((
        [key, { when, keys, resource }],
      ) => [key, { keys, resource: withIndexers(resource), isChange: changeFilter(when) }]),
    ),
    isChange: changeFilter(options.when) as AnyController["isChange"],
    reconcile: reconcile as unknown as AnyController["reconcile"],
    finalizer,
    finalize: finalize as unknown as AnyController["finalize"],
    workers: Math.floor(workers),
    timeoutMs,
    resyncPeriodMs,
  };
  return { name, parts };
}

function withIndexers(source: AnySource): Indexed<KubernetesObject, string> {
  return "indexers" in source ? source : { resource: source, indexers: {} };
}

/**
 * An error that another try would meet again: the object is not reconciled before it changes. It may be the
 * cause of what a reconcile throws.
 *
 * Mirrors controller-runtime's `reconcile.TerminalError`.
 *
 * @example
 * ```ts
 * import { TerminalError } from "@listwatch/cache/controller";
 * const error = new TerminalError("spec.color is not a color");
 * console.log(error.code, error.message); // Terminal spec.color is not a color
 * ```
 */
export class TerminalError extends CacheError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Terminal", message, options);
  }
}

export function isTerminal(error: unknown): boolean {
  return findCause(error, TerminalError) !== undefined;
}

/** @throws {TypeError | RangeError} The value is no result. */
export function asResult(value: unknown): Result {
  if (value === undefined || value === null) return {};
  const fail = (what: string, instead = "{ status, requeueAfterMs } or nothing") =>
    new TypeError(`it returned ${what}; return ${instead}`);
  if (!isRecord(value)) throw fail(typeName(value));
  const unknown = Object.keys(value).find((name) => name !== "status" && name !== "requeueAfterMs");
  if (unknown !== undefined) throw fail(JSON.stringify(unknown));
  const { status, requeueAfterMs } = value as Result;
  if (status !== undefined && !isRecord(status)) {
    throw fail(`a status that is ${typeName(status)}`, "an object");
  }
  requireNumbers("reconcile again", { requeueAfterMs }, { mayBeInfinite: true });
  return { status, ...(requeueAfterMs !== undefined && { requeueAfterMs }) };
}

/** @throws {TypeError} The value is no key. */
export function checkedKey(key: unknown): string {
  if (typeof key === "string") return key;
  throw new TypeError(`${String(key)} is no key`);
}

function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
