/**
 * Informers.
 * @module
 */

export { Controller, type ControllerConfig } from "./controller.ts";
export { InformerStateError, NoIndexerError } from "./errors.ts";
export { FilteringResourceEventHandler, type ResourceEventHandler } from "./event_handler.ts";
export { type InformerOptions, newInformer } from "./informer.ts";
export { MutationCache, type MutationCacheOptions } from "./mutation_cache.ts";
export {
  type HandlerOptions,
  type HandlerRegistration,
  type QueueContext,
  type Running,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
} from "./shared_informer.ts";
export type { StoreChange, StoreEvent } from "./store_event.ts";
export { type HasSynced, waitForCacheSync } from "./wait_for_cache_sync.ts";
