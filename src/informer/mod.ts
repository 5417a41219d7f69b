/**
 * The parts of informers: the controller, the plain informer, snapshots.
 * `SharedIndexInformer`, the factory and the listers are in `@listwatch/cache`.
 *
 * @module
 */

export { Controller, type ControllerConfig, type InformerOptions, newInformer } from "./controller.ts";
export { type CacheSyncErrorOptions } from "./errors.ts";
export { freezeObject } from "../util/json.ts";
export { listAll, listAllByNamespace } from "./lister.ts";
export type { MailboxOptions } from "./mailbox.ts";
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
