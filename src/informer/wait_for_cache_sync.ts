/**
 * Waiting until caches are filled.
 * @module
 */

import { abortable } from "../util/abort.ts";

/** What can be waited for: an informer, a controller, or a handler's registration. */
export interface HasSynced {
  /** Whether it has synced. */
  hasSynced(): boolean;
  /** Resolves when it has. */
  readonly synced: Promise<void> | ((signal?: AbortSignal) => Promise<void>);
}

/**
 * Waits until everything given has synced.
 *
 * Mirrors client-go's `WaitForCacheSync`, without polling.
 *
 * @returns `true`, or `false` if the signal was aborted first; what has synced already wins over an aborted signal.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer, waitForCacheSync } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * console.log(await waitForCacheSync([informer], AbortSignal.abort())); // false
 * ```
 */
export async function waitForCacheSync(what: readonly HasSynced[], signal?: AbortSignal): Promise<boolean> {
  const isDone = () => what.every((one) => one.hasSynced());
  if (isDone()) return true;
  const all = Promise.all(what.map((one) => typeof one.synced === "function" ? one.synced() : one.synced));
  try {
    await abortable(all, signal);
    return true;
  } catch (error) {
    if (signal?.aborted) return isDone();
    throw error;
  }
}
