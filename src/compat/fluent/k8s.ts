/** `K8s(model)` of kubernetes-fluent-client, as far as it watches. */

import type { Cluster } from "../../client/cluster.ts";
import { SharedInformerFactory, type UsedInformer } from "../../informer/shared_informer_factory.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { type GroupVersionResource, resourcePath } from "../../meta/resource.ts";
import { loadCluster } from "../../node/kubeconfig/load_cluster.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { type GenericClass, type RegisteredKind, resourceOfModel } from "./kinds.ts";
import { type WatchAction, type WatchCfg, Watcher } from "./watcher.ts";

/** Which objects are watched, in place of the methods. */
export interface Filters {
  /** The kind, in place of that of the class. */
  readonly kindOverride?: RegisteredKind;
  /** Fields and their values. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Labels and their values; `""` for any. */
  readonly labels?: Readonly<Record<string, string>>;
  /** One object. */
  readonly name?: string;
  /** Only this namespace. */
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

/** What {@linkcode K8s} returns. */
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

/** Where the objects of all watchers come from. All may be left out. */
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
 * connects as kubectl does: by `KUBECONFIG`, `~/.kube/config`, or the service account of its pod. What
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
    const key = JSON.stringify(selected);
    let factory = factories.get(key);
    if (factory === undefined) {
      const source: ConstructorParameters<typeof SharedInformerFactory>[0] = {
        resource: (resource) => cluster.resource(resource, { ...selected, keep: "everything" }),
      };
      const own = { ...informer, ...settings, notifyUnchanged: false };
      factories.set(key, factory = new SharedInformerFactory(source, { informer: own }));
    }
    return factory.use(resource);
  };
  const contextOf = (selection: Selection) => {
    const { resource, namespace } = selection;
    return { path: resourcePath(resource, { namespace }), use: () => use(selection), ...settings };
  };
  return <T extends GenericClass, K extends object = InstanceType<T>>(model: T, filters: Filters = {}) => {
    const newWatcher: NewWatcher<K> = (selection, ...how) => new Watcher<K>(contextOf(selection), ...how);
    return new Selected<K>(newWatcher, model, filters);
  };
}

/** Which objects a watcher is for. */
interface Selection {
  readonly resource: GroupVersionResource;
  readonly namespace: string;
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

type NewWatcher<K extends object> = (
  selection: Selection,
  callback: WatchAction<K>,
  cfg: WatchCfg,
) => Watcher<K>;

/** The filters so far. As upstream, the methods change it, and return it. */
class Selected<K extends object> implements K8sInit<K> {
  readonly #newWatcher: NewWatcher<K>;
  readonly #resource: GroupVersionResource;
  readonly #labels: Map<string, string>;
  readonly #fields: Map<string, string>;
  #namespace: string;

  constructor(newWatcher: NewWatcher<K>, model: GenericClass, filters: Filters) {
    const { kindOverride, fields = {}, labels = {}, name, namespace = "" } = filters;
    this.#newWatcher = newWatcher;
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
    return this.#newWatcher(selection, callback, watchCfg);
  }
}
