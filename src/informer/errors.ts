/**
 * What informers throw.
 * @module
 */

import { CacheError, errorMessage } from "../util/errors.ts";

/**
 * An informer was asked for something that its state does not allow: to run twice, to take a handler after it stopped,
 * to change its transform after it started.
 *
 * @example
 * ```ts
 * import { InformerStateError, type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * await informer.run(AbortSignal.abort());
 * await informer.run(AbortSignal.abort()).catch((error) => console.log(error instanceof InformerStateError)); // true
 * ```
 */
export class InformerStateError extends CacheError {
  /** Makes the error. */
  constructor(message: string) {
    super("InformerState", message);
  }
}

/**
 * A `MutationCache` was asked by index, and was made without an indexer.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, MutationCache, newStore, NoIndexerError } from "@listwatch/cache";
 * const cache = new MutationCache<KubernetesObject, "byNode">(newStore<KubernetesObject>(metaNamespaceKey));
 * try {
 *   cache.byIndex("byNode", "node-1");
 * } catch (error) {
 *   if (error instanceof NoIndexerError) console.log(error.code); // NoIndexer
 * }
 * ```
 */
export class NoIndexerError extends CacheError {
  /** Makes the error; `indexName` is what was asked for. */
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
 * Not every cache has synced in the time it was given.
 *
 * Mirrors what client-go's `SyncResult.AsError` returns.
 *
 * @example
 * ```ts
 * import { CacheSyncError, newCluster, SharedInformerFactory } from "@listwatch/cache";
 * await using factory = new SharedInformerFactory(newCluster({ server: "http://127.0.0.1:1" }));
 * factory.forResource("v1/pods");
 * factory.start();
 * const tooLate = AbortSignal.abort(new Error("too late"));
 * await factory.synced(tooLate).catch((error) => {
 *   if (error instanceof CacheSyncError) console.log(error.unsynced); // [ "v1/pods" ]
 * });
 * ```
 */
export class CacheSyncError extends CacheError {
  /** The names of those that have not, ascending. */
  readonly unsynced: readonly string[];

  /** Makes the error; `cause` is why the wait ended. */
  constructor(unsynced: readonly string[], cause: unknown) {
    super("CacheSync", `failed to sync all caches: ${unsynced.join(", ")}: ${errorMessage(cause)}`, {
      cause,
    });
    this.unsynced = unsynced;
  }
}
