/**
 * `K8s(kind).Watch(callback, config)` of kubernetes-fluent-client, over informers of this package: callbacks
 * are awaited and called again when they fail, and watchers of the same objects share one watch. For Node,
 * Deno and Bun; `docs/from_fluent_client.md` has the differences.
 *
 * @module
 */

export {
  type Filters,
  type FluentOptions,
  type GenericClass,
  K8s,
  type K8sFilters,
  type K8sFunction,
  type K8sInit,
  newK8s,
  type RegisteredKind,
  RegisterKind,
} from "./k8s.ts";
export {
  type WatchAction,
  type WatchCfg,
  Watcher,
  WatcherEvent,
  type WatcherEvents,
  WatchPhase,
} from "./watcher.ts";
