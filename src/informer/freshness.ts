/**
 * Waiting until a store has caught up: reading your own writes.
 * @module
 */

import { isComparableResourceVersion } from "../meta/resource_version.ts";
import type { VersionWaiters } from "../meta/version_waiters.ts";
import { CacheError } from "../util/errors.ts";

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
 */
export class NotFreshError extends CacheError {
  /** The resourceVersion that was waited for. */
  readonly wanted: string;
  /** The one that the store stood at. */
  readonly reached: string;

  /** Makes the error; `cause` is the reason of the signal that ended the wait, or that the informer has stopped. */
  constructor(name: string, wanted: string, reached: string, cause: unknown) {
    super(
      "NotFresh",
      `Cannot read ${name} at resource version ${wanted}: the store stands at ${reached || "none yet"}`,
      { cause },
    );
    this.wanted = wanted;
    this.reached = reached;
  }
}

/**
 * Resolves when a store has reached a resourceVersion.
 *
 * @throws {NotFreshError} The signal was aborted, or the informer stopped, before or meanwhile.
 * @throws {TypeError} It is no resourceVersion that can be compared.
 */
export async function reachVersion(
  waiters: VersionWaiters,
  resourceVersion: string,
  of: { readonly name: string; readonly reached: () => string; readonly signal: AbortSignal | undefined },
): Promise<void> {
  if (!isComparableResourceVersion(resourceVersion)) {
    throw new TypeError(
      `Cannot wait for the resource version ${JSON.stringify(resourceVersion)}: it is no decimal number`,
    );
  }
  const { name, signal } = of;
  const end = await waiters.wait(resourceVersion, { signal });
  if (end === "reached") return;
  const cause = end === "aborted" ? signal?.reason : new Error("the informer has stopped");
  throw new NotFreshError(name, resourceVersion, of.reached(), cause);
}
