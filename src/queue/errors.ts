/** The errors of queues. */

import { CacheError, errorMessage } from "../util/errors.ts";

/**
 * Something was popped from a queue that is closed and empty, or a caller waits for the first list of a queue
 * that was closed before. A closed queue that still holds items hands them out.
 * Mirrors client-go's `ErrFIFOClosed`.
 */
export class FIFOClosedError extends CacheError {
  constructor() {
    super("FIFOClosed", "DeltaFIFO: manipulating with closed queue");
  }
}

/**
 * Thrown by a process callback of `FIFO` or `DeltaFIFO` to put the item back, unless something newer is
 * queued for its key. `pop` then succeeds, or rejects with {@linkcode ErrRequeue.cause} if there is one.
 * Mirrors client-go's `ErrRequeue` of the 1.24 generation.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { FIFO } from "@listwatch/cache/queue";
 * import { ErrRequeue } from "@listwatch/cache/compat";
 * const queue = new FIFO(metaNamespaceKey);
 * queue.add({ metadata: { name: "a" } });
 * await queue.pop(() => {
 *   throw new ErrRequeue();
 * });
 * console.log(queue.listKeys()); // ["a"]
 * ```
 */
export class ErrRequeue extends CacheError {
  /** Makes the error; with a `cause`, `pop` reports that one. */
  constructor(options: { readonly cause?: unknown } = {}) {
    const why = options.cause === undefined ? "" : `: ${errorMessage(options.cause)}`;
    super("Requeue", `the popped item should be requeued${why}`, options);
  }
}

/**
 * Empty deltas have no key.
 * Mirrors client-go's `ErrZeroLengthDeltasObject`, wrapped in a `KeyError` as there.
 */
export class ZeroLengthDeltasError extends CacheError {
  constructor() {
    super("ZeroLengthDeltas", "0 length Deltas object; can't get key");
  }
}

/** `DeltaFIFO.addIfNotPresent` was given something else than deltas. */
export class NotDeltasError extends CacheError {
  constructor(value: unknown) {
    super("NotDeltas", `object must be of type deltas, but got a value of type ${typeof value}`);
  }
}
