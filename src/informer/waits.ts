/**
 * Waiting for informers: for content to read, the first list, a version; for one or several of them.
 * @module
 */

import { isComparableResourceVersion } from "../meta/object.ts";
import { VersionWaiters } from "../meta/version_waiters.ts";
import type { FailedTry } from "../reflector/failures.ts";
import type { ReflectorStatus } from "../reflector/state.ts";
import { abortable, linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { Latch, type SyncedMethod } from "../util/deferred.ts";
import { CacheSyncError, InformerStateError, NotFreshError } from "./errors.ts";
import { errorMessage } from "../util/errors.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";

export interface AwaitedInformer {
  readonly name: string;
  readonly indexer: { lastStoreSyncResourceVersion(): string };
  failure(): FailedTry | undefined;
  isStarted(): boolean;
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

  /** @param covers Whether the store has everything up to a version, where that takes more than a look. */
  constructor(informer: AwaitedInformer, clock: Clock, covers?: (resourceVersion: string) => boolean) {
    this.#informer = informer;
    this.versions = new VersionWaiters(() => informer.indexer.lastStoreSyncResourceVersion(), {
      clock,
      ...(covers && { covers }),
    });
  }

  /** The informer has stopped: what is not reached yet never is. */
  stop(): void {
    this.stopped.open();
    this.versions.stop();
  }

  /** Resolves when `restored` or `synced` is open. */
  async opened(latch: Latch, signal: AbortSignal | undefined): Promise<void> {
    if (latch.isOpen) return;
    const { name } = this.#informer;
    try {
      await abortable(Promise.race([latch.opened, this.stopped.opened]), signal);
    } catch (reason) {
      const hint = this.#informer.isStarted() ? "" : "; call start() first";
      const failures = new Map([[name, this.#informer.failure()]]);
      throw new CacheSyncError([name], reason, { failures, hint });
    }
    if (latch.isOpen) return;
    const { lastError } = this.#informer.status();
    throw new InformerStateError(
      `Cannot wait for the informer of ${name}: it stopped before it had synced` +
        (lastError === undefined ? "" : `: ${lastError.message}`),
    );
  }

  /** Resolves when the store has reached a version. */
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

/**
 * Something that syncs: an informer, a controller, a handler's registration, a tracker.
 * Mirrors client-go's `DoneChecker`, with a promise for its channel.
 */
export interface HasSynced {
  /** The name in log lines and errors. */
  readonly name?: string;
  /** Whether what is awaited has synced. */
  hasSynced(): boolean;
  /** Resolves when it has; rejects when the signal is aborted first, and may when it never will. */
  readonly synced: SyncedMethod;
  /** The failure at present, and the number of failed tries, if there are any. */
  failure?(): FailedTry | undefined;
}

/** Options of {@linkcode waitFor}. */
export interface WaitForOptions {
  /** The subject of the wait, such as `caches of the endpoints controller`. Without it, nothing is logged. */
  readonly what?: string;
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  /** Receives each one that has synced (info), in that order, and at the end those that have not (warn). */
  readonly logger?: Logger;
}

/**
 * Waits until everything given has synced.
 *
 * Mirrors client-go's `WaitForCacheSync`, without polling. It differs where the server cannot be read:
 * client-go answers `false`, whatever the reason; this throws the reason.
 * @returns `true`, or `false` if the signal was aborted first and nothing had failed, or one of them stopped
 * and never will; what has synced already wins over an aborted signal.
 * @throws {CacheSyncError} The signal was aborted while the server could not be read. Its message and its
 * cause say why: the connection was refused, the server answered 403, ...
 *
 * @example
 * ```ts
 * import {
 *   type KubernetesObject,
 *   newCluster,
 *   SharedIndexInformer,
 *   waitForCacheSync,
 * } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * console.log(await waitForCacheSync([informer], AbortSignal.abort())); // false
 * ```
 *
 * @category Informers
 */
export async function waitForCacheSync(what: readonly HasSynced[], signal?: AbortSignal): Promise<boolean> {
  const { unsynced, cause } = await waitForAll(what, signal);
  const error = syncError(unsynced, cause);
  if (signal?.aborted && error !== undefined) throw error;
  return unsynced.length === 0;
}

/**
 * As {@linkcode waitForCacheSync}, but logs which have synced and, at the end, which have not and why,
 * instead of throwing. Mirrors client-go's `WaitFor`.
 * @returns `true`, or `false` if the signal was aborted first, or one of them stopped and never will; what
 * has synced already wins over an aborted signal.
 *
 * @example
 * ```ts
 * import { waitFor } from "@listwatch/cache/informer";
 * import { SingleFileTracker } from "@listwatch/cache/compat";
 * const trackers = [new SingleFileTracker("pods"), new SingleFileTracker("nodes")];
 * await waitFor(trackers, { what: "the caches", signal: AbortSignal.abort(new Error("shutting down")) });
 * // warns: stopped waiting for the caches: nodes, pods have not synced: shutting down
 * ```
 */
export async function waitFor(what: readonly HasSynced[], options: WaitForOptions = {}): Promise<boolean> {
  const { signal } = options;
  const logger = guardedLogger(options.logger);
  const text = options.what ?? "";
  if (text === "") return (await waitForAll(what, signal)).unsynced.length === 0;
  logger.info(`waiting for ${text}`);
  const { unsynced, cause } = await waitForAll(what, signal, (one) => {
    logger.info(`done waiting for ${text}: ${nameOf(one)}`);
  });
  if (unsynced.length === 0) return true;
  const names = unsynced.map(nameOf).sort().join(", ");
  const have = unsynced.length === 1 ? "has" : "have";
  const why = errorMessage(syncError(unsynced, cause) ?? cause);
  logger.warn(`stopped waiting for ${text}: ${names} ${have} not synced: ${why}`);
  return false;
}

/** Waits for all; stops waiting once one of them will never sync. */
async function waitForAll(
  what: readonly HasSynced[],
  signal: AbortSignal | undefined,
  onDone: (one: HasSynced) => void = () => {},
): Promise<{ readonly unsynced: HasSynced[]; readonly cause: unknown }> {
  const link = linkedAbort(signal);
  const wait = async (one: HasSynced): Promise<void> => {
    if (!one.hasSynced()) await abortable(one.synced(link.signal), link.signal);
    onDone(one);
  };
  let cause: unknown;
  try {
    await Promise.all(what.map(wait));
  } catch (error) {
    cause = error;
  } finally {
    link.unlink();
    link.abort(); // the others need not wait any more
  }
  return { unsynced: what.filter((one) => !one.hasSynced()), cause };
}

/** The error for those that have not synced, with their failures, if there are any. */
function syncError(unsynced: readonly HasSynced[], endedBy: unknown): CacheSyncError | undefined {
  const failures = new Map(unsynced.map((one) => [nameOf(one), one.failure?.()]));
  if ([...failures.values()].every((failure) => failure === undefined)) return undefined;
  return new CacheSyncError([...failures.keys()].sort(), endedBy, { failures });
}

function nameOf(one: HasSynced): string {
  return one.name || "(unnamed)";
}
