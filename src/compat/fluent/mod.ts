/**
 * `K8s(kind).Watch(callback, config)` of kubernetes-fluent-client, over informers of this package: callbacks
 * are awaited and called again when they fail, and watchers of the same objects share one watch. For Node,
 * Deno and Bun; `docs/from_fluent_client.md` has the differences.
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
 *
 * @module
 */

export { WatchPhase } from "./deliveries.ts";
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
export { type WatchAction, type WatchCfg, Watcher, WatcherEvent, type WatcherEvents } from "./watcher.ts";
