/**
 * The store interface: objects by their keys.
 * @module
 */

import { type ExplicitKey, type KeyFunc, keyOf } from "../meta/keys.ts";
import type { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import { toError } from "../util/errors.ts";
import { finish, type Steps } from "../util/turns.ts";
import { type IndexFuncError, TransactionError } from "./errors.ts";
import type { Indexers } from "./index_func.ts";

/**
 * Decides what is stored in place of an object of a `replace` that cannot be indexed.
 *
 * @category Stores
 */
export type OnIndexFailure<T> = (error: IndexFuncError, object: T) => T | undefined;

/**
 * What may stand for an object where only its key matters.
 *
 * @category Stores
 */
export type Keyed<T> = T | DeletedFinalStateUnknown<T> | ExplicitKey;

/**
 * One write of a transaction.
 *
 * @category Stores
 */
export type Transaction<T> =
  | { readonly type: "Add" | "Update"; readonly object: T }
  | { readonly type: "Delete"; readonly object: Keyed<T> };

/**
 * One write of a {@linkcode ThreadSafeStore} transaction.
 *
 * The object of a delete is the state that the delete came with, as in {@linkcode
 * ThreadSafeStore.deleteWithObject}.
 *
 * @category Stores
 */
export type KeyedTransaction<T> =
  | { readonly type: "Add" | "Update"; readonly key: string; readonly object: T }
  | { readonly type: "Delete"; readonly key: string; readonly object: unknown };

/**
 * Objects under the keys that a key function gives them.
 *
 * Calls are synchronous; a write that throws has changed nothing. Objects are handed out as they were put in:
 * shared by all readers, and read-only.
 *
 * Mirrors client-go's `Store`, with errors thrown instead of returned, and the old object returned by a
 * write.
 *
 * @category Stores
 */
export interface Store<T> {
  /** How many objects are stored. */
  readonly size: number;
  /**
   * Puts an object in, whether or not its key is there, and returns the one it replaces.
   *
   * @throws {KeyError} The key function threw.
   * @throws {TransformError} The transform threw.
   * @throws {IndexFuncError} An index function threw.
   */
  add(object: T): T | undefined;
  /** The same as {@linkcode Store.add}. */
  update(object: T): T | undefined;
  /**
   * Removes an object and returns the stored one; an absent one is fine.
   *
   * @throws {KeyError} The key function threw.
   */
  delete(object: Keyed<T>): T | undefined;
  /** All objects: a new array, in no order that may be relied on. */
  list(): T[];
  /** All keys: a new array, in no order that may be relied on. */
  listKeys(): string[];
  /** All objects without a copy; do not write to the store while iterating. */
  values(): IterableIterator<T>;
  /**
   * The stored object that has the key of the given one.
   *
   * @throws {KeyError} The key function threw.
   */
  get(object: Keyed<T>): T | undefined;
  /** The object of a key. */
  getByKey(key: string): T | undefined;
  /** Whether a key is there. */
  has(key: string): boolean;
  /**
   * Replaces the whole content, which has then reached `resourceVersion`; of several objects with one key the
   * last counts.
   *
   * @param onIndexFailure Receives each object for which an index function throws, instead of throwing. What it returns, an
   * object that was stored before, is kept in its place; the key is left out if that is `undefined`.
   * @throws {KeyError} The key function threw; nothing was changed.
   * @throws {TransformError} The transform threw; nothing was changed.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  replace(objects: readonly T[], resourceVersion: string, onIndexFailure?: OnIndexFailure<T>): void;
  /**
   * Applies several writes in order, as one step. Objects are not transformed.
   *
   * @throws {TransactionError} Some had no key; the others were applied.
   * @throws {IndexFuncError} An index function threw; nothing was changed.
   */
  transaction(writes: readonly Transaction<T>[]): void;
  /** Does nothing in a store; queues resend what is known. */
  resync(): void;
  /** Records that the content has reached a later resourceVersion. */
  bookmark(resourceVersion: string): void;
  /** The resourceVersion that the content has reached; `""` before the first write. */
  lastStoreSyncResourceVersion(): string;
}

/** How a store is replaced in steps. */
export interface ReplaceOptions<T> {
  /** As of {@linkcode Store.replace}; asked at most once about an object. */
  readonly onIndexFailure?: OnIndexFailure<T>;
  /** How many objects there are to a step. */
  readonly stepObjects?: number;
}

/** A replace in progress: prepared in steps, then done in one. Until then nothing is changed. */
export interface Replacement {
  /**
   * Works out what is to be done, in steps; again where `commit` returned `false`.
   *
   * @throws What `replace` throws.
   */
  prepare(): Steps;
  /** Replaces the content; `false`, and nothing, where what was prepared does not hold any more. */
  commit(): boolean;
}

/** A store that can be replaced in steps. */
export interface ReplacedInSteps<T> {
  newReplacement(objects: readonly T[], resourceVersion: string, options?: ReplaceOptions<T>): Replacement;
}

/** Prepares and commits, in this turn. */
export function replaceNow(replacement: Replacement): void {
  do finish(replacement.prepare()); while (!replacement.commit());
}

/** An indexer that can be given more indices in steps. */
export interface IndexedInSteps<T> {
  addIndexersSteps(indexers: Indexers<T>, options?: { readonly stepObjects?: number }): Steps;
}

/**
 * The writes of a transaction that have a key, with it; and the error to throw, once they are applied, about
 * the others.
 */
export function keyedWrites<T>(
  keyFunc: KeyFunc,
  writes: readonly Transaction<T>[],
): { readonly writes: KeyedTransaction<T>[]; readonly error: TransactionError | undefined } {
  const keyed: KeyedTransaction<T>[] = [];
  const successfulIndices: number[] = [];
  const errors: Error[] = [];
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i];
    try {
      keyed.push({ ...write, key: keyOf(keyFunc, write.object, write.type.toLowerCase()) });
      successfulIndices.push(i);
    } catch (error) {
      errors.push(toError(error));
    }
  }
  const error = errors.length === 0
    ? undefined
    : new TransactionError(writes.length, successfulIndices, errors);
  return { writes: keyed, error };
}
