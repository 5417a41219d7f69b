/**
 * The parts of informers: the controller, the plain informer, the mutation cache, trackers of what has
 * synced. `SharedIndexInformer`, the factory and the listers are in `@listwatch/cache`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { newInformer } from "@listwatch/cache/informer";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const [store] = newInformer({
 *   listerWatcher: pods,
 *   handler: { onAdd: (pod) => console.log(pod.metadata?.name) },
 * });
 * console.log(store.list().length); // 0
 * ```
 *
 * @module
 */

export { Controller, type ControllerConfig, type InformerOptions, newInformer } from "./controller.ts";
export { type CacheSyncErrorOptions, NoIndexerError } from "./errors.ts";
export { freezeObject } from "./intake.ts";
export { listAll, listAllByNamespace } from "./lister.ts";
export type { MailboxOptions } from "./mailbox.ts";
export { MutationCache, type MutationCacheOptions } from "./mutation_cache.ts";
export type { ResourceSource } from "./shared_informer_factory.ts";
export type { QueueContext } from "./shared_informer_options.ts";
export {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "./snapshot/informer_snapshot.ts";
export type {
  LoadedSnapshot,
  SavedVersion,
  SnapshotChange,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotPut,
  SnapshotRefusal,
  SnapshotStorage,
} from "./snapshot/storage.ts";
export { SnapshotRefusedError } from "./snapshot/storage.ts";
export type { InformerStatus, SnapshotStatus } from "./snapshot/storage.ts";
export type { StoreChange, StoreEvent } from "./events.ts";
export { type HasSynced, waitFor, type WaitForOptions } from "./waits.ts";
export type { SyncedMethod } from "../util/deferred.ts";
