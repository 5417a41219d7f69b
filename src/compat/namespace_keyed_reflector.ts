import { metaNamespaceKey } from "../meta/object.ts";
import { metaNamespaceIndex } from "../store/index_func.ts";
import { newIndexer } from "../store/cache.ts";
import type { Indexer } from "../store/store.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { Reflector } from "../reflector/reflector.ts";
import type { ReflectorOptions } from "../reflector/reflector_options.ts";

/**
 * Makes a store with the keys of {@linkcode metaNamespaceKey} and an index `namespace`, and a reflector that
 * will fill it: the smallest cache there is, without a queue and without handlers.
 *
 * Mirrors client-go's `NewNamespaceKeyedIndexerAndReflector`.
 *
 * @returns The store, for reading only, and the reflector, to be run.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { newNamespaceKeyedIndexerAndReflector } from "@listwatch/cache/compat";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const [indexer, reflector] = newNamespaceKeyedIndexerAndReflector(pods, { resyncPeriodMs: 0 });
 * await reflector.run(AbortSignal.abort()); // or a signal that leaves it time
 * console.log(indexer.byIndex("namespace", "shop").length); // 0
 * ```
 */
export function newNamespaceKeyedIndexerAndReflector<T>(
  source: ListerWatcher<T>,
  options: Omit<ReflectorOptions, "keyFunc"> = {},
): [indexer: Indexer<T, "namespace">, reflector: Reflector<T>] {
  const indexer = newIndexer<T, "namespace">(metaNamespaceKey, { namespace: metaNamespaceIndex });
  return [indexer, new Reflector<T>(source, indexer, options)];
}
