/**
 * Waiting until a store has caught up: reading your own writes.
 * @module
 */

import { compareResourceVersions, isComparableResourceVersion } from "../meta/resource_version.ts";
import { onAbort } from "../util/abort.ts";
import { CacheError } from "../util/errors.ts";

/**
 * A store did not reach a resourceVersion in time.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, NotFreshError, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * await informer.waitFor("42", { signal: AbortSignal.abort() }).catch((error) => {
 *   if (error instanceof NotFreshError) console.log(error.wanted, error.reached); // 42 (empty)
 * });
 * ```
 */
export class NotFreshError extends CacheError {
  /** The resourceVersion that was waited for. */
  readonly wanted: string;
  /** The one that the store stood at. */
  readonly reached: string;

  /** Makes the error; `cause` is the reason of the signal that ended the wait. */
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

interface Waiter {
  readonly resourceVersion: string;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Those who wait for a store to reach a resourceVersion. */
export class FreshnessWaiters {
  readonly #name: string;
  readonly #reached: () => string;
  readonly #waiters = new Set<Waiter>();

  /** `reached` tells where the store stands. */
  constructor(name: string, reached: () => string) {
    this.#name = name;
    this.#reached = reached;
  }

  /**
   * Resolves when the store has reached the version.
   *
   * @throws {NotFreshError} The signal was aborted first.
   * @throws {TypeError} It is no resourceVersion that can be compared.
   */
  wait(resourceVersion: string, signal: AbortSignal | undefined): Promise<void> {
    if (!isComparableResourceVersion(resourceVersion)) {
      throw new TypeError(
        `Cannot wait for the resource version ${JSON.stringify(resourceVersion)}: it is no decimal number`,
      );
    }
    if (this.#isReached(resourceVersion)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      let unlisten = () => {};
      const waiter: Waiter = {
        resourceVersion,
        resolve: () => {
          unlisten();
          resolve();
        },
        reject: (reason) => {
          unlisten();
          reject(new NotFreshError(this.#name, resourceVersion, this.#reached(), reason));
        },
      };
      this.#waiters.add(waiter);
      if (signal === undefined) return;
      unlisten = onAbort(signal, () => {
        this.#waiters.delete(waiter);
        waiter.reject(signal.reason);
      });
    });
  }

  /** The store has moved: lets those go on whose version it has reached. */
  moved(): void {
    if (this.#waiters.size === 0) return; // the ordinary case, on every event
    for (const waiter of this.#waiters) {
      if (!this.#isReached(waiter.resourceVersion)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** The store will not move any more: nobody waits for ever. */
  stopped(): void {
    for (const waiter of this.#waiters) waiter.reject(new Error("the informer has stopped"));
    this.#waiters.clear();
  }

  #isReached(resourceVersion: string): boolean {
    const reached = this.#reached();
    return reached !== "" && compareResourceVersions(reached, resourceVersion) >= 0;
  }
}
