/**
 * Finds out whether the content of a snapshot is what the server has at its version, and when the store has
 * caught up.
 * @module
 */

import { DecodeError } from "../meta/request_failure.ts";
import { compareResourceVersions } from "../meta/resource_version.ts";
import { isTooManyRequests, statusErrorOf } from "../meta/status.ts";
import type { Probe } from "../reflector/reflector_wiring.ts";
import type { Held } from "../store/holding.ts";
import { abortable, sleep, withTimeLimit } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import { changesSince, currentVersion } from "./progress.ts";
import type { SnapshotContext } from "./snapshot_run.ts";
import type { StoreEvent } from "./store_event.ts";

/** How long the server may take to answer a question. */
const ANSWER_MS = 30_000;
/** The changes since the snapshot may be on their way. */
const GRACE_MS = 200;
/** So many watches for a bookmark are opened, at growing intervals. */
const MOST_PROOFS = 4;
const TOO_SLOW = new Error(`no answer within ${ANSWER_MS} ms`);

/**
 * The server confirms a snapshot by a list or a bookmark, or by an event that brings the store to the version
 * that the server had when the informer started. Where its source has no `metadata` to read that version
 * with, any event does.
 *
 * Bookmarks come once a minute. So while a watch is open and nothing has confirmed the snapshot, a short
 * second watch asks for one (progress.ts).
 */
export class SnapshotConfirmation<T> {
  readonly #context: SnapshotContext<T>;
  readonly #onConfirmed: (confirmation: { readonly isComplete: boolean }) => void;
  readonly #stop = new AbortController();
  #serverVersion: string | undefined;
  #isProving = false;
  /** Whether a watch is open. */
  isWatching = false;
  /** What identifies the cluster, or why that cannot be read. */
  cluster: { readonly uid?: string; readonly unknown?: string } = {};

  /** @param onConfirmed Called when the server has confirmed the content, maybe more than once. */
  constructor(
    context: SnapshotContext<T>,
    onConfirmed: (confirmation: { readonly isComplete: boolean }) => void,
  ) {
    this.#context = context;
    this.#onConfirmed = onConfirmed;
  }

  /** Ends its questions. */
  stop(): void {
    this.#stop.abort();
  }

  /** As `ReflectedSnapshot.probe`, for a snapshot of this cluster. */
  async probe(expectedUid: string | undefined, signal: AbortSignal): Promise<Probe> {
    await this.readClusterUid(signal);
    const { uid } = this.cluster;
    const isOtherCluster = uid !== undefined && expectedUid !== undefined && uid !== expectedUid;
    return { isOtherCluster, serverVersion: isOtherCluster ? undefined : await this.#readVersion(signal) };
  }

  /**
   * Reads what identifies the cluster, if the source and the server permit that.
   *
   * @throws What the request fails with, if it may succeed later.
   */
  async readClusterUid(signal: AbortSignal): Promise<void> {
    const { clusterUid } = this.#context;
    if (clusterUid === undefined || this.cluster.uid !== undefined) return;
    try {
      this.cluster = { uid: await this.#inTime(clusterUid, signal) };
    } catch (error) {
      const { httpStatus = 0 } = statusErrorOf(error) ?? {};
      const isForGood = error === TOO_SLOW || error instanceof DecodeError ||
        (httpStatus >= 400 && httpStatus < 500 && !isTooManyRequests(error));
      if (!isForGood) throw error;
      this.cluster = { unknown: errorMessage(error) };
    }
  }

  async #readVersion(signal: AbortSignal): Promise<string | undefined> {
    const { metadata } = this.#context;
    if (metadata === undefined) return undefined;
    try {
      return this.#serverVersion = await this.#inTime((limited) => currentVersion(metadata, limited), signal);
    } catch (error) {
      // It may be slow with lists only.
      if (error === TOO_SLOW) return undefined;
      throw error;
    }
  }

  /** An event of the store after the content of the snapshot. */
  by({ type }: StoreEvent<Held<T>>): void {
    if (type === "bookmark") this.#confirm(true);
    else if (this.#serverVersion === undefined) this.#confirm(false);
    else if (this.#hasReached(this.#serverVersion)) this.#confirm(true);
  }

  /**
   * The store has the content, and a watch from the version of the snapshot, or from a later one, is open.
   */
  watching(): void {
    if (this.#serverVersion === undefined) return;
    if (this.#hasReached(this.#serverVersion)) this.#confirm(true);
    else void this.#prove(this.#stop.signal);
  }

  #confirm(isComplete: boolean): void {
    this.#onConfirmed({ isComplete });
  }

  /** Asks for a proof until there is one. If none comes, an event or a bookmark has to do. */
  async #prove(signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    if (this.#isProving || signal.aborted) return;
    this.#isProving = true;
    try {
      for (let tries = 0; tries < MOST_PROOFS; tries++) {
        await sleep(GRACE_MS * 4 ** tries, { clock, signal });
        if (!this.isWatching) return;
        if (await this.#isProven(signal)) return this.#confirm(true);
      }
    } catch {
      // it was stopped
    } finally {
      this.#isProving = false;
    }
  }

  async #isProven(signal: AbortSignal): Promise<boolean> {
    const { metadata, store, waiters, proven } = this.#context;
    if (metadata === undefined) return false;
    try {
      const from = store.held.lastStoreSyncResourceVersion();
      const changes = await this.#inTime(
        (limited) => changesSince(metadata, { resourceVersion: from, signal: limited }),
        signal,
      );
      if (changes === undefined) return false;
      const after = changes.lastChange || from;
      // The reflector may have received what is still on its way to the store.
      if (await waiters.wait(after, { signal, timeoutMs: ANSWER_MS }) !== "reached") return false;
      return proven({ after, through: changes.through });
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #hasReached(resourceVersion: string): boolean {
    const reached = this.#context.store.held.lastStoreSyncResourceVersion();
    return compareResourceVersions(reached, resourceVersion) >= 0;
  }

  #inTime<R>(ask: (signal: AbortSignal) => Promise<R>, signal: AbortSignal): Promise<R> {
    return withTimeLimit((limited) => abortable(ask(limited), limited), {
      ms: ANSWER_MS,
      newError: () => TOO_SLOW,
      clock: this.#context.clock,
      signal,
    });
  }
}
