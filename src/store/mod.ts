/**
 * Stores, plain and with indices; those of client-go's that few programs need are in
 * `@listwatch/cache/compat`.
 *
 * @module
 */

export { newIndexer, newStore, type StoreOptions } from "./cache.ts";
export type { TextsOptions } from "./encoded_holding.ts";
export type { Keyed, KeyedTransaction, OnIndexFailure, Store, Transaction } from "./store.ts";
export { ThreadSafeStore } from "./thread_safe_store.ts";
export type { FieldIndexFunc } from "./index_func.ts";
export type { IndexedPath } from "../text/field_path.ts";
export type { OnTransformFailure } from "./transform.ts";
export type { IndexersOption, IndexValues, NoIndexNames } from "./index_func.ts";
export { indexFuncToKeyFunc } from "./store_index.ts";
export {
  IndexerConflictError,
  IndexFuncError,
  IndexKeyError,
  IndexNotFoundError,
  TransactionError,
  TransformError,
} from "./errors.ts";
export {
  deletionHandlingObjectToName,
  ExplicitKey,
  formatObjectName,
  KeyError,
  NoMetaError,
  objectToName,
  parseObjectName,
  UnexpectedKeyFormatError,
} from "../meta/object.ts";
export { isComparableResourceVersion } from "../meta/object.ts";
