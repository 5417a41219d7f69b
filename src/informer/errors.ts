/** Errors that informers throw. */

import { failureInWords } from "../meta/request.ts";
import type { FailedTry } from "../reflector/status.ts";
import { CacheError, errorMessage } from "../util/errors.ts";

/**
 * An informer's state does not allow a call: to run twice, to add a handler after the stop, to change the
 * transform after the start.
 *
 * @example
 * ```ts
 * import {
 *   InformerStateError,
 *   type KubernetesObject,
 *   newCluster,
 *   SharedIndexInformer,
 * } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * await informer.run(AbortSignal.abort());
 * await informer.run(AbortSignal.abort()).catch((error) => console.log(error instanceof InformerStateError)); // true
 * ```
 *
 * @category Objects and errors
 */
export class InformerStateError extends CacheError {
  /** Makes the error. */
  constructor(message: string) {
    super("InformerState", message);
  }
}

/**
 * A `MutationCache` without an indexer was queried by index.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
 * import { MutationCache, NoIndexerError } from "@listwatch/cache/informer";
 * import { newStore } from "@listwatch/cache/store";
 * const cache = new MutationCache<KubernetesObject, "byNode">(newStore<KubernetesObject>(metaNamespaceKey));
 * try {
 *   cache.byIndex("byNode", "node-1");
 * } catch (error) {
 *   if (error instanceof NoIndexerError) console.log(error.code); // NoIndexer
 * }
 * ```
 *
 * @category Objects and errors
 */
export class NoIndexerError extends CacheError {
  /** Makes the error; `indexName` is the index that was queried. */
  constructor(indexName: string) {
    super(
      "NoIndexer",
      `Cannot look up the index ${
        JSON.stringify(indexName)
      }: no indexer has been provided to the mutation cache`,
    );
  }
}

/**
 * Options of {@linkcode CacheSyncError}.
 *
 * @category Objects and errors
 */
export interface CacheSyncErrorOptions {
  /** What the tries of those that have not synced fail with, by name, where they do. */
  readonly failures?: ReadonlyMap<string, FailedTry | undefined>;
}

/**
 * Not every cache has synced in the given time.
 *
 * The message and the cause say why, where that is known: that the server refused the connection, or what it
 * answered. `isForbidden`, `isNotFound`, `isConnectionRefused` and the like look at the cause.
 *
 * Mirrors what client-go's `SyncResult.AsError` returns, which knows only why the wait ended.
 *
 * @example
 * ```ts
 * import { CacheSyncError, isConnectionRefused, newCluster, SharedInformerFactory } from "@listwatch/cache";
 * await using factory = new SharedInformerFactory(newCluster({ server: "http://127.0.0.1:1" }));
 * factory.forResource("v1/pods");
 * factory.start();
 * await factory.synced(AbortSignal.timeout(100)).catch((error) => {
 *   if (error instanceof CacheSyncError) console.log(error.unsynced); // [ "v1/pods" ]
 *   console.log(isConnectionRefused(error)); // true
 * });
 * ```
 *
 * @category Objects and errors
 */
export class CacheSyncError extends CacheError {
  /** The names of those that have not, ascending. */
  readonly unsynced: readonly string[];
  /** Why the wait ended: the reason of its signal. */
  readonly endedBy: unknown;

  /** Makes the error; `endedBy` is why the wait ended: its cause, where no try has failed. */
  constructor(unsynced: readonly string[], endedBy: unknown, { failures }: CacheSyncErrorOptions = {}) {
    const found = unsynced.flatMap((name) => {
      const failure = failures?.get(name);
      return failure === undefined ? [] : [{ name, ...failure }];
    });
    const why = found.map(({ name, error, failedTries }) => {
      const text = `${failureInWords(error)}, attempt ${failedTries}`;
      return unsynced.length === 1 ? text : `${name}: ${text}`;
    });
    const what = unsynced.length === 1
      ? `Cannot sync ${unsynced[0]}`
      : `failed to sync all caches: ${unsynced.join(", ")}`;
    super("CacheSync", `${what}: ${why.join("; ") || errorMessage(endedBy)}`, {
      cause: found.length === 0 ? endedBy : found[0].error,
    });
    this.unsynced = unsynced;
    this.endedBy = endedBy;
  }
}

/**
 * A store did not reach a resourceVersion in time.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, NotFreshError, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * await informer.waitForVersion("42", { signal: AbortSignal.abort() }).catch((error) => {
 *   if (error instanceof NotFreshError) console.log(error.wanted, error.reached); // 42 (empty)
 * });
 * ```
 *
 * @category Objects and errors
 */
export class NotFreshError extends CacheError {
  /** The resourceVersion that was waited for. */
  readonly wanted: string;
  /** The one that the store had reached. */
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
