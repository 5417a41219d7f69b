/**
 * Stores and indexers.
 * @module
 */

export {
  IndexerConflictError,
  IndexFuncError,
  IndexNotFoundError,
  TransactionError,
  TransformError,
} from "./errors.ts";
export {
  ExpirationCache,
  type ExpirationCacheOptions,
  type ExpirationPolicy,
  newExpirationStore,
  newTTLStore,
  type TimestampedEntry,
  TTLPolicy,
} from "./expiration_cache.ts";
export { Heap, HeapClosedError, NotFoundError } from "./heap.ts";
export {
  type Indexers,
  type IndexFunc,
  indexFuncToKeyFunc,
  IndexKeyError,
  type IndexValues,
  metaNamespaceIndex,
  NAMESPACE_INDEX,
} from "./index_func.ts";
export { LABEL_INDEX, labelIndexFunc } from "./label_index.ts";
export { newIndexer, newStore, type StoreOptions } from "./cache.ts";
export type { Indexer } from "./indexer.ts";
export type { Keyed, OnRejected, Store, Transaction } from "./store.ts";
export type { OnTransformRejected, TransformFunc } from "./transform.ts";
export { ThreadSafeStore } from "./thread_safe_store.ts";
export type { KeyedTransaction } from "./transaction.ts";
export { type PushFunc, UndeltaStore } from "./undelta_store.ts";
