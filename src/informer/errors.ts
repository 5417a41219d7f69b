/** Errors that informers throw. */

import { failureInWords } from "../meta/request.ts";
import type { FailedTry } from "../reflector/failures.ts";
import { CacheError, errorMessage } from "../util/errors.ts";

/**
 * An informer's state does not allow a call: to run twice, to add a handler after the stop, to change the
 * transform after the start.
 *
 * @category Objects and errors
 */
export class InformerStateError extends CacheError {
  constructor(message: string) {
    super("InformerState", message);
  }
}

/** Options of {@linkcode CacheSyncError}. */
export interface CacheSyncErrorOptions {
  /** The failed tries of the informers that have not synced, by name, where they have failed. */
  readonly failures?: ReadonlyMap<string, FailedTry | undefined>;
  /** What the program may have forgotten. */
  readonly hint?: string;
}

/**
 * Not every cache has synced in the given time.
 *
 * The message and the cause say why, if that is known: the refused connection, or the answer of the server.
 * `isForbidden`, `isNotFound`, `isConnectionRefused` and the like look at the cause. Mirrors client-go's
 * `SyncResult.AsError`, which knows only why the wait ended.
 *
 * @category Objects and errors
 */
export class CacheSyncError extends CacheError {
  /** The names of those that have not, ascending. */
  readonly unsynced: readonly string[];
  /** Why the wait ended: the reason of its signal. */
  readonly endedBy: unknown;

  /** Makes the error; `endedBy` is why the wait ended: its cause, where no try has failed. */
  constructor(
    unsynced: readonly string[],
    endedBy: unknown,
    { failures, hint = "" }: CacheSyncErrorOptions = {},
  ) {
    const isOne = unsynced.length === 1;
    let first: Error | undefined;
    const why = unsynced.flatMap((name) => {
      const failure = failures?.get(name);
      if (failure === undefined) return [];
      first ??= failure.error;
      const text = `${failureInWords(failure.error)}, attempt ${failure.failedTries}`;
      return isOne ? text : `${name}: ${text}`;
    });
    const what = isOne ? `Cannot sync ${unsynced[0]}` : `failed to sync all caches: ${unsynced.join(", ")}`;
    super("CacheSync", `${what}: ${why.join("; ") || errorMessage(endedBy)}${hint}`, {
      cause: first ?? endedBy,
    });
    this.unsynced = unsynced;
    this.endedBy = endedBy;
  }
}

/**
 * A store did not reach a resourceVersion in time.
 *
 * @category Objects and errors
 */
export class NotFreshError extends CacheError {
  /** The resourceVersion that was waited for. */
  readonly wanted: string;
  /** The resourceVersion that the store had reached. */
  readonly reached: string;

  /**
   * Makes the error; `cause` is the reason of the signal that ended the wait, or that the informer has
   * stopped.
   */
  constructor(name: string, wanted: string, reached: string, cause: unknown) {
    super(
      "NotFresh",
      `Cannot read ${name} at resource version ${wanted}: the store has reached ${reached || "none yet"}`,
      { cause },
    );
    this.wanted = wanted;
    this.reached = reached;
  }
}
