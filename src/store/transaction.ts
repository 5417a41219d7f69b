/**
 * Several writes as one step.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { toError } from "../util/errors.ts";
import { TransactionError } from "./errors.ts";
import type { Transaction } from "./store.ts";

/**
 * One write of a {@linkcode ThreadSafeStore} transaction.
 *
 * The object of a delete is the state that the delete came with, as in {@linkcode ThreadSafeStore.deleteWithObject}.
 *
 * @example
 * ```ts
 * import { type KeyedTransaction, ThreadSafeStore } from "@listwatch/cache/store";
 * const writes: KeyedTransaction<string>[] = [
 *   { type: "Add", key: "a", object: "one" },
 *   { type: "Delete", key: "b", object: undefined },
 * ];
 * new ThreadSafeStore<string>().transaction(writes);
 * ```
 */
export type KeyedTransaction<T> =
  | { readonly type: "Add" | "Update"; readonly key: string; readonly object: T }
  | { readonly type: "Delete"; readonly key: string; readonly object: unknown };

/** The writes of a transaction that have a key, with it; and the error to throw, once they are applied, about the others. */
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
