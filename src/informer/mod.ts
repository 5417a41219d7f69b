/**
 * Informers.
 * @module
 */

export { Controller, type ControllerConfig } from "./controller.ts";
export { CacheSyncError, type CacheSyncErrorOptions, InformerStateError, NoIndexerError } from "./errors.ts";
export { FilteringResourceEventHandler, type ResourceEventHandler } from "./event_handler.ts";
export { freezeObject } from "./freeze_object.ts";
export { type InformerOptions, newInformer } from "./informer.ts";
export { listAll, listAllByNamespace, type Lister, type NamespaceLister, newLister } from "./lister.ts";
export { MutationCache, type MutationCacheOptions } from "./mutation_cache.ts";
export type { HandlerOptions, HandlerRegistration } from "./handler_registration.ts";
export type { Running } from "./running.ts";
export { SharedIndexInformer } from "./shared_informer.ts";
export type { QueueContext, SharedIndexInformerOptions } from "./shared_informer_options.ts";
export {
  type FactoryInformerOptions,
  type ResourceInformer,
  type ResourceSource,
  SharedInformerFactory,
  type SharedInformerFactoryOptions,
} from "./shared_informer_factory.ts";
export type { StoreChange, StoreEvent } from "./store_event.ts";
export { AsyncTracker, Lazy, SingleFileTracker } from "./sync_tracking.ts";
export { type HasSynced, waitFor, waitForCacheSync, type WaitForOptions } from "./wait_for_cache_sync.ts";
export { NotFreshError } from "./freshness.ts";
export type { MailboxOptions } from "./mailbox.ts";
