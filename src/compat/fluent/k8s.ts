import type { Cluster } from "../../client/cluster.ts";
import { SharedInformerFactory, type UsedInformer } from "../../informer/shared_informer_factory.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { DNS_LABEL, type GroupVersionResource, resourcePath } from "../../meta/resource.ts";
import { loadCluster } from "../../node/kubeconfig/load_cluster.ts";
import type { Clock } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import type { Logger } from "../../util/logger.ts";
import { type WatchAction, type WatchCfg, Watcher, type WatcherContext } from "./watcher.ts";
import { builtinResources } from "../../protocol/builtin_resources.ts";

/** The filters of a watch, in place of the methods. */
export interface Filters {
  /** The kind, in place of that of the class. */
  readonly kindOverride?: RegisteredKind;
  /** Fields and their values. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Labels and their values; `""` for any. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The name of the only object. */
  readonly name?: string;
  /** The only namespace. */
  readonly namespace?: string;
}

/** Selects objects, and watches them. */
export interface K8sFilters<K extends object> {
  /** Only objects whose field has this value; the server decides which fields can be used. */
  WithField(key: string, value: string): K8sFilters<K>;
  /** Only objects with this label, of any value unless one is given. */
  WithLabel(key: string, value?: string): K8sFilters<K>;
  /** Makes a watcher; `start` starts it. */
  Watch(callback: WatchAction<K>, watchCfg?: WatchCfg): Watcher<K>;
}

/** The result of {@linkcode K8s}. */
export interface K8sInit<K extends object> extends K8sFilters<K> {
  /**
   * Only objects of this namespace.
   *
   * @throws {TypeError} There is a namespace already.
   */
  InNamespace(namespace: string): K8sFilters<K>;
}

/** The type of {@linkcode K8s}. */
export type K8sFunction = <T extends GenericClass, K extends object = InstanceType<T>>(
  model: T,
  filters?: Filters,
) => K8sInit<K>;

/** The source of the objects of all watchers. All may be left out. */
export interface FluentOptions {
  /**
   * The cluster; that of `loadCluster` of `@listwatch/cache/node` by default, loaded when a watcher starts.
   */
  readonly cluster?: Cluster | (() => Cluster | Promise<Cluster>);
  /** Options of the informers. */
  readonly informer?: Pick<
    SharedIndexInformerOptions<KubernetesObject>,
    "storage" | "metrics" | "reflector" | "turnObjects"
  >;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

let onDefaultCluster: K8sFunction | undefined;

/**
 * Selects objects of a class, to watch them, with the signature of kubernetes-fluent-client's `K8s`. It
 * connects as kubectl does: by `KUBECONFIG`, `~/.kube/config`, or the service account of its pod. Code that
 * changes or reads objects (`Apply`, `Get`, ...) stays with kubernetes-fluent-client.
 *
 * @throws {TypeError} No kind is known for the class: {@linkcode RegisterKind} says it.
 *
 * @example
 * ```ts
 * import { V1Pod } from "@kubernetes/client-node"; // or kind.Pod of kubernetes-fluent-client
 * import { K8s } from "@listwatch/cache/compat/fluent";
 * async function followWeb() {
 *   const watcher = K8s(V1Pod).InNamespace("shop").WithLabel("app", "web").Watch((pod, phase) => {
 *     console.log(phase, pod.metadata?.name);
 *   });
 *   await watcher.start();
 *   return watcher;
 * }
 * ```
 */
export function K8s<T extends GenericClass, K extends object = InstanceType<T>>(
  model: T,
  filters: Filters = {},
): K8sInit<K> {
  onDefaultCluster ??= newK8s();
  return onDefaultCluster<T, K>(model, filters);
}

/**
 * Makes a {@linkcode K8s} for a cluster of your choice, with informers of its own.
 *
 * @example
 * ```ts
 * import { V1Pod } from "@kubernetes/client-node";
 * import { newCluster } from "@listwatch/cache";
 * import { newK8s } from "@listwatch/cache/compat/fluent";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const server = new InMemoryApiServer();
 * const K8s = newK8s({ cluster: newCluster({ server: "http://in-memory", fetch: server.fetch }) });
 * const watcher = K8s(V1Pod).Watch((pod, phase) => console.log(phase, pod.metadata?.name));
 * await watcher.start();
 * watcher.close();
 * ```
 */
export function newK8s(options: FluentOptions = {}): K8sFunction {
  const { clock, logger, informer } = options;
  const settings = { ...(clock && { clock }), ...(logger && { logger }) };
  const { cluster: given = () => loadCluster(settings) } = options;
  let loading: Promise<Cluster> | undefined;
  const factories = new Map<string, SharedInformerFactory>();
  const use = async ({ resource, ...selected }: Selection): Promise<UsedInformer<KubernetesObject>> => {
    loading ??= (async () => await (typeof given === "function" ? given() : given))();
    loading.catch(() => loading = undefined); // tried again by the next watcher
    const cluster = await loading;
    const factory = getOrMake(factories, JSON.stringify(selected), () => {
      const source: ConstructorParameters<typeof SharedInformerFactory>[0] = {
        resource: (resource) => cluster.resource(resource, { ...selected, keep: "everything" }),
      };
      return new SharedInformerFactory(source, {
        informer: { ...informer, ...settings, notifyUnchanged: false },
      });
    });
    return factory.use(resource);
  };
  const contextOf = (selection: Selection): WatcherContext => {
    const { resource, namespace } = selection;
    return { path: resourcePath(resource, { namespace }), use: () => use(selection), ...settings };
  };
  return <T extends GenericClass, K extends object = InstanceType<T>>(model: T, filters: Filters = {}) =>
    new Selected<K>(contextOf, model, filters);
}

interface Selection {
  readonly resource: GroupVersionResource;
  readonly namespace: string;
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

/** The filters so far. As upstream, the methods change it, and return it. */
class Selected<K extends object> implements K8sInit<K> {
  readonly #contextOf: (selection: Selection) => WatcherContext;
  readonly #resource: GroupVersionResource;
  readonly #labels: Map<string, string>;
  readonly #fields: Map<string, string>;
  #namespace: string;

  constructor(
    contextOf: (selection: Selection) => WatcherContext,
    model: GenericClass,
    filters: Filters,
  ) {
    const { kindOverride, fields = {}, labels = {}, name, namespace = "" } = filters;
    this.#contextOf = contextOf;
    this.#resource = resourceOfModel(model, kindOverride);
    this.#labels = new Map(Object.entries(labels));
    this.#fields = new Map(Object.entries(fields));
    if (name) this.#fields.set("metadata.name", name);
    this.#namespace = namespace;
  }

  InNamespace(namespace: string): K8sFilters<K> {
    if (this.#namespace !== "") {
      const selected = `${JSON.stringify(this.#namespace)} is selected`;
      throw new TypeError(`Cannot select the namespace ${JSON.stringify(namespace)}: ${selected}`);
    }
    this.#namespace = namespace;
    return this;
  }

  WithField(key: string, value: string): K8sFilters<K> {
    this.#fields.set(key, value);
    return this;
  }

  WithLabel(key: string, value = ""): K8sFilters<K> {
    this.#labels.set(key, value);
    return this;
  }

  Watch(callback: WatchAction<K>, watchCfg: WatchCfg = {}): Watcher<K> {
    const selection = {
      resource: this.#resource,
      namespace: this.#namespace,
      labelSelector: Array.from(this.#labels, ([key, value]) => value === "" ? key : `${key}=${value}`).sort()
        .join(),
      fieldSelector: Array.from(this.#fields, ([key, value]) => `${key}=${value}`).sort().join(),
    };
    return new Watcher<K>(this.#contextOf(selection), callback, watchCfg);
  }
}

/**
 * A class whose name says a kind: `kind.Pod` of
 * kubernetes-fluent-client, `V1Pod` of client-node, or your own.
 */
// deno-lint-ignore no-explicit-any -- as kubernetes-fluent-client declares it
export type GenericClass = abstract new () => any;

/** The group, version and kind of a class, as kubernetes-fluent-client writes them. */
export interface RegisteredKind {
  /** The kind, such as `Widget`. */
  readonly kind: string;
  /** The group; `""` for the core group. */
  readonly group: string;
  /** The version, such as `v1`. */
  readonly version?: string;
  /** The name of the resource; the kind in small letters with an `s` by default. */
  readonly plural?: string;
}

const registered = new Map<string, RegisteredKind>();

/**
 * Says which kind the classes of a name are, for your own resources. Kinds registered with
 * kubernetes-fluent-client are not known here: register yours with both.
 *
 * @throws {TypeError} The name is registered already, or known as that of another kind.
 *
 * @example
 * ```ts
 * import { K8s, RegisterKind } from "@listwatch/cache/compat/fluent";
 * class Widget {
 *   metadata?: { name?: string };
 *   spec?: { size?: number };
 * }
 * RegisterKind(Widget, { group: "example.com", version: "v1", kind: "Widget" });
 * const widgets = K8s(Widget).InNamespace("shop").Watch((widget, phase) => console.log(phase, widget.spec?.size));
 * console.log(widgets.isClosed); // false: it has not started
 * ```
 */
export function RegisterKind(model: GenericClass, groupVersionKind: RegisteredKind): void {
  const { name } = model;
  const builtin = builtinKind(name);
  // Some kinds are known here, and not upstream, where programs must register them.
  const isKnown = builtin && resourcePath(builtin) !== resourcePath(resourceOfKind(groupVersionKind));
  if (registered.has(name) || isKnown) {
    throw new TypeError(`Cannot register the kind of ${name}: it is known already`);
  }
  registered.set(name, groupVersionKind);
}

/**
 * The resource of a class.
 *
 * @throws {TypeError} No kind is known for it, or the kind has no version.
 */
function resourceOfModel(model: GenericClass, override?: RegisteredKind): GroupVersionResource {
  const kind = override ?? registered.get(model.name);
  if (kind !== undefined) return resourceOfKind(kind);
  const builtin = builtinKind(model.name);
  if (builtin !== undefined) return builtin;
  throw new TypeError(
    `Cannot find the resource of the class ${JSON.stringify(model.name)}: no kind is known by this name; ` +
      "call RegisterKind, or give a kindOverride",
  );
}

function resourceOfKind({ group, version, kind, plural }: RegisteredKind): GroupVersionResource {
  const known = builtinResources().find((one) => one.group === group && one.kind === kind);
  const named = plural ?? known?.resource ?? `${kind.toLowerCase()}s`;
  const ofVersion = version ?? (group === "" ? "v1" : known?.version);
  if (!ofVersion || !DNS_LABEL.test(named)) {
    throw new TypeError(
      `Cannot find the resource of the kind ${kind}: it needs a version, and a plural in small letters`,
    );
  }
  return { group, version: ofVersion, resource: named };
}

/** `V1Pod`, `CoreV1Event`, `EventsV1Event`: a prefix of a group, a version, and the kind. */
const CLASS_NAME = /^(Core|Events)?V\d+([A-Z]\w*)$/;

function builtinKind(className: string): GroupVersionResource | undefined {
  const [, prefix, kind] = CLASS_NAME.exec(className) ?? [];
  if (prefix === "Events" && kind === "Event") {
    return { group: "events.k8s.io", version: "v1", resource: "events" };
  }
  const found = builtinResources().find((one) => one.kind === kind);
  return found && { group: found.group, version: found.version, resource: found.resource };
}
