/**
 * Controllers: reconcilers over informers and work queues, whose reads are never older than their own writes.
 *
 * {@linkcode defineController} describes one, a {@linkcode Manager} runs several: with shared
 * informers, leader election, health and metrics.
 *
 * Mirrors [controller-runtime](https://github.com/kubernetes-sigs/controller-runtime).
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { defineController, Manager } from "@listwatch/cache/controller";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = defineController({
 *   name: "pod-labels",
 *   for: cluster.resource("v1/pods", { namespace: "shop" }),
 *   async reconcile(pod, { self }) {
 *     if (pod.metadata?.labels?.team === undefined) {
 *       await self.patch(pod.metadata!.name!, { metadata: { labels: { team: "shop" } } });
 *     }
 *   },
 * });
 * const manager = new Manager(cluster, { controllers: [pods] });
 * await manager.run(AbortSignal.timeout(10)); // until the program is stopped
 * ```
 *
 * @module
 */

export {
  type Caches,
  type ClientOf,
  type ContextOf,
  type ControllerDefinition,
  type ControllerOptions,
  defineController,
  type InClusters,
  type Indexed,
  indexed,
  type ReconcileContext,
  type ReconcileMetrics,
  type Reconciler,
  type Result,
  type Source,
  TerminalError,
  type Watched,
} from "./definition.ts";
export type { Applied, CachedClient, CachedReader, InNamespace } from "./cached_client.ts";
export type { ChangeFilter } from "./change_filter.ts";
export type { EventDetails, ObjectEvents } from "./event_recorder.ts";
export { type LeaderOptions, LeadershipLostError } from "./leader_election.ts";
export {
  type ClusterStatus,
  Manager,
  type ManagerMetrics,
  type ManagerOptions,
  type ManagerStatus,
} from "./manager.ts";
export { type Condition, ownedBy, retryOnConflict, withCondition } from "./objects.ts";
