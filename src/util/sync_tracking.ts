/** Tracks whether a handler of an informer has received its first list. */

import { abortable } from "./abort.ts";
import { Latch, type SyncedMethod } from "./deferred.ts";

/**
 * As `AsyncTracker`, for a consumer that handles one item after the other: items need no keys, they
 * are counted.
 *
 * Mirrors client-go's `synctrack.SingleFileTracker`.
 *
 * @example
 * ```ts
 * import { SingleFileTracker } from "@listwatch/cache/compat";
 * const tracker = new SingleFileTracker();
 * tracker.start();
 * tracker.upstreamHasSynced();
 * tracker.finished();
 * console.log(tracker.hasSynced()); // true
 * ```
 */
export class SingleFileTracker {
  /** For log lines. */
  readonly name: string;
  readonly #synced = new SyncedLatch(() => this.#count);
  #count = 0;

  /** Makes a tracker without items. */
  constructor(name = "") {
    this.name = name;
  }

  /** An item is on its way, or so many. */
  start(count = 1): void {
    this.#count += count;
  }

  /**
   * An item was handled.
   *
   * @throws {RangeError} More items were finished than started: what `hasSynced` said cannot be relied on.
   */
  finished(): void {
    if (this.#count === 0) {
      const which = this.name === "" ? "" : ` in ${JSON.stringify(this.name)}`;
      throw new RangeError(`Cannot finish an item${which}: every item that was started is finished already`);
    }
    this.#count--;
    this.#synced.check();
  }

  /** The informer has synced, and every item of its initial list was started. */
  upstreamHasSynced(): void {
    this.#synced.upstreamHasSynced();
  }

  /** Whether the informer has synced and nothing was outstanding since, at least once. */
  hasSynced(): boolean {
    return this.#synced.isOpen;
  }

  /** Resolves when {@linkcode SingleFileTracker.hasSynced} becomes true; rejects with the signal's reason. */
  readonly synced: SyncedMethod = (signal) => abortable(this.#synced.opened, signal);
}

/** Opens once the informer has synced and nothing is outstanding, and stays open. */
export class SyncedLatch {
  readonly #latch = new Latch();
  readonly #outstanding: () => number;
  #upstreamSynced = false;

  constructor(outstanding: () => number) {
    this.#outstanding = outstanding;
  }

  get isOpen(): boolean {
    return this.#latch.isOpen;
  }

  get opened(): Promise<void> {
    return this.#latch.opened;
  }

  upstreamHasSynced(): void {
    this.#upstreamSynced = true;
    this.check();
  }

  check(): void {
    if (this.#upstreamSynced && this.#outstanding() === 0) this.#latch.open();
  }
}
