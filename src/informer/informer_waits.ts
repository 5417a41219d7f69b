/**
 * What callers of an informer wait for: content to read, the first list, a version.
 * @module
 */

import { isComparableResourceVersion } from "../meta/object.ts";
import { VersionWaiters } from "../meta/version_waiters.ts";
import type { FailedTry } from "../reflector/outage.ts";
import type { ReflectorStatus } from "../reflector/status.ts";
import { abortable } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { Latch } from "../util/deferred.ts";
import { CacheSyncError, InformerStateError, NotFreshError } from "./errors.ts";

/** The informer that callers wait for. */
export interface AwaitedInformer {
  readonly name: string;
  readonly indexer: { lastStoreSyncResourceVersion(): string };
  failure(): FailedTry | undefined;
  status(): ReflectorStatus;
}

/** The states of an informer that callers wait for. Its stop ends every wait. */
export class InformerWaits {
  /** The store has content to read: that of a snapshot, or the first list. */
  readonly restored: Latch = new Latch();
  readonly synced: Latch = new Latch();
  readonly stopped: Latch = new Latch();
  readonly versions: VersionWaiters;
  readonly #informer: AwaitedInformer;

  constructor(informer: AwaitedInformer, clock: Clock) {
    this.#informer = informer;
    this.versions = new VersionWaiters(() => informer.indexer.lastStoreSyncResourceVersion(), { clock });
  }

  /** The informer has stopped: what is not reached yet never is. */
  stop(): void {
    this.stopped.open();
    this.versions.stop();
  }

  /**
   * Resolves when `restored` or `synced` is open.
   *
   * @throws {CacheSyncError} The signal was aborted first; with the reason why the requests fail.
   * @throws {InformerStateError} The informer stopped before.
   */
  async opened(latch: Latch, signal: AbortSignal | undefined): Promise<void> {
    if (latch.isOpen) return;
    const { name } = this.#informer;
    try {
      await abortable(Promise.race([latch.opened, this.stopped.opened]), signal);
    } catch (reason) {
      throw new CacheSyncError([name], reason, { failures: new Map([[name, this.#informer.failure()]]) });
    }
    if (latch.isOpen) return;
    const { lastError } = this.#informer.status();
    throw new InformerStateError(
      `Cannot wait for the informer of ${name}: it stopped before it had synced` +
        (lastError === undefined ? "" : `: ${lastError.message}`),
    );
  }

  /**
   * Resolves when the store has reached a version.
   *
   * @throws {NotFreshError} The signal was aborted, or the informer stopped, before.
   * @throws {TypeError} It is no resourceVersion that can be compared.
   */
  async reached(resourceVersion: string, signal: AbortSignal | undefined): Promise<void> {
    if (!isComparableResourceVersion(resourceVersion)) {
      throw new TypeError(
        `Cannot wait for the resource version ${JSON.stringify(resourceVersion)}: it is no decimal number`,
      );
    }
    const end = await this.versions.wait(resourceVersion, { signal });
    if (end === "reached") return;
    const cause = end === "aborted" ? signal?.reason : new Error("the informer has stopped");
    const { name, indexer } = this.#informer;
    throw new NotFreshError(name, resourceVersion, indexer.lastStoreSyncResourceVersion(), cause);
  }
}
