/**
 * What informers throw.
 * @module
 */

import { CacheError } from "../util/errors.ts";

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
