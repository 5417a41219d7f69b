/**
 * Parts of client-go's `tools/cache` for ported Go code, which programs in TypeScript do not need: stores
 * whose objects expire, a cache of own writes, a heap with keys, delays for each key, trackers of files that
 * were read, and queues that take an object again.
 *
 * @module
 */

export { Heap, HeapClosedError, HeapItemNotFoundError } from "./heap.ts";
export {
  ExpirationCache,
  type ExpirationCacheOptions,
  type ExpirationPolicy,
  newExpirationStore,
  newTTLStore,
  type TimestampedEntry,
  TTLPolicy,
} from "./expiration_cache.ts";
export { MutationCache, type MutationCacheOptions, NoIndexerError } from "./mutation_cache.ts";
export { newNamespaceKeyedIndexerAndReflector } from "./namespace_keyed_reflector.ts";
export { type PushFunc, UndeltaStore } from "./undelta_store.ts";
export {
  KeyedBackoff,
  type KeyedBackoffOptions,
  RetryWithDeadline,
  type RetryWithDeadlineOptions,
} from "./retries.ts";
export { AsyncTracker, Lazy, SingleFileTracker } from "./trackers.ts";
export { ErrRequeue } from "../queue/errors.ts";
