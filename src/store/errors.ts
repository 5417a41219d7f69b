/** The errors of stores and indices. */

import { describeValue } from "../meta/object.ts";
import { CacheError, errorMessage } from "../util/errors.ts";

/** A lookup named an index that the store does not have. */
export class IndexNotFoundError extends CacheError {
  /** The name that was looked up. */
  readonly indexName: string;

  /** Makes the error; `known` are the names that would have done. */
  constructor(indexName: string, known: readonly string[]) {
    const have = known.length === 0 ? "the store has no index" : `the store has: ${known.join(", ")}`;
    super("IndexNotFound", `Index with name ${indexName} does not exist (${have})`);
    this.indexName = indexName;
  }
}

/** Indices were added under names that are taken; none of them was added. */
export class IndexerConflictError extends CacheError {
  /** The names that are taken. */
  readonly indexNames: readonly string[];

  constructor(indexNames: readonly string[]) {
    super(
      "IndexerConflict",
      `indexer conflict: the store already has ${indexNames.join(", ")}; nothing was added`,
    );
    this.indexNames = indexNames;
  }
}

/**
 * An index function threw, or did not return an array of strings. The write that called it changed nothing.
 *
 * client-go panics here; this is an error that names the object instead.
 */
export class IndexFuncError extends CacheError {
  /** The index whose function failed. */
  readonly indexName: string;
  /** The key of the object it was called with. */
  readonly key: string;
  /** The operation that was refused, such as `add`. */
  readonly operation: string;

  constructor(indexName: string, key: string, operation: string, cause: unknown) {
    super(
      "IndexFunc",
      `Cannot ${operation} ${JSON.stringify(key)}: unable to calculate an index entry for it on index ` +
        `${JSON.stringify(indexName)}: ${errorMessage(cause)}`,
      { cause },
    );
    this.indexName = indexName;
    this.key = key;
    this.operation = operation;
  }
}

/** A transform function threw. The object was not stored. */
export class TransformError extends CacheError {
  /** The object that the transform was given. */
  readonly object: unknown;

  constructor(object: unknown, cause: unknown) {
    super("TransformError", `transforming: ${describeValue(object)}: ${errorMessage(cause)}`, { cause });
    this.object = object;
  }
}

/**
 * Some entries of a transaction had no key. The others were applied. Mirrors client-go's `TransactionError`.
 */
export class TransactionError extends CacheError {
  /** The entries that were applied: indices into the transaction, ascending. */
  readonly successfulIndices: readonly number[];
  /** How many entries the transaction had. */
  readonly totalTransactions: number;
  /** Why the others were not, in their order. */
  readonly errors: readonly Error[];

  constructor(totalTransactions: number, successfulIndices: readonly number[], errors: readonly Error[]) {
    const failed = totalTransactions - successfulIndices.length;
    super(
      "TransactionError",
      `failed to execute (${failed}/${totalTransactions}) transactions failed due to: ` +
        errors.map((error) => error.message).join("; "),
      { cause: errors[0] },
    );
    this.totalTransactions = totalTransactions;
    this.successfulIndices = successfulIndices;
    this.errors = errors;
  }
}

/** An index function that must give exactly one value gave none, or several. */
export class IndexKeyError extends CacheError {
  /** Makes the error for the values that the index function returned. */
  constructor(values: readonly string[]) {
    const isEmpty = values.length === 0;
    super(
      isEmpty ? "EmptyIndexKeys" : "TooManyKeys",
      isEmpty ? "unexpected empty indexKeys" : `too many keys: ${values.join(", ")}`,
    );
  }
}
