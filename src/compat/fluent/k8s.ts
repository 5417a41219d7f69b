/** `K8s(model)` of kubernetes-fluent-client, as far as it watches. */

import { type GenericClass, type RegisteredKind, resourceOfModel } from "./kinds.ts";
import { type FluentOptions, type Selection, SharedWatches } from "./shared_watches.ts";
import { type WatchAction, type WatchCfg, Watcher, type WatcherContext } from "./watcher.ts";

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
  const { clock, logger } = options;
  const context: WatcherContext = { watches: new SharedWatches(options), clock, logger };
  return <T extends GenericClass, K extends object = InstanceType<T>>(model: T, filters: Filters = {}) =>
    new Selected<K>(context, model, filters);
}

/** The filters so far. As upstream, the methods change it, and return it. */
class Selected<K extends object> implements K8sInit<K> {
  readonly #context: WatcherContext;
  readonly #selection: Omit<Selection, "labelSelector" | "fieldSelector" | "namespace">;
  readonly #labels: Map<string, string>;
  readonly #fields: Map<string, string>;
  #namespace: string;

  constructor(context: WatcherContext, model: GenericClass, filters: Filters) {
    const { kindOverride, fields = {}, labels = {}, name, namespace = "" } = filters;
    this.#context = context;
    this.#selection = { resource: resourceOfModel(model, kindOverride) };
    this.#labels = new Map(Object.entries(labels));
    this.#fields = new Map(Object.entries(fields));
    if (name) this.#fields.set("metadata.name", name);
    this.#namespace = namespace;
  }

  InNamespace(namespace: string): K8sFilters<K> {
    if (this.#namespace !== "") {
      throw new TypeError(
        `Cannot select the namespace ${JSON.stringify(namespace)}: ${
          JSON.stringify(this.#namespace)
        } is selected`,
      );
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
    const selection: Selection = {
      ...this.#selection,
      namespace: this.#namespace,
      labelSelector: Array.from(this.#labels, ([key, value]) => value === "" ? key : `${key}=${value}`).sort()
        .join(),
      fieldSelector: Array.from(this.#fields, ([key, value]) => `${key}=${value}`).sort().join(),
    };
    return new Watcher<K>(this.#context, selection, callback, watchCfg);
  }
}
