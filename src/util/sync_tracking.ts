import { abortable } from "./abort.ts";
import { Latch, type SyncedMethod } from "./deferred.ts";

/** A tracker has synced once the informer has, and nothing is outstanding. */
export abstract class SyncTracker {
  /** The name in log lines. */
  readonly name: string;
  readonly #latch = new Latch();
  #upstreamSynced = false;

  constructor(name = "") {
    this.name = name;
  }

  /**
   * How many items were started and not finished.
   * @internal
   */
  protected abstract get outstanding(): number;

  /**
   * An item was finished.
   * @internal
   */
  protected check(): void {
    if (this.#upstreamSynced && this.outstanding === 0) this.#latch.open();
  }

  /** The informer has synced, and every item of its initial list was started. */
  upstreamHasSynced(): void {
    this.#upstreamSynced = true;
    this.check();
  }

  /** Whether the informer has synced and nothing was outstanding since, at least once. */
  hasSynced(): boolean {
    return this.#latch.isOpen;
  }

  /** Resolves when {@linkcode SyncTracker.hasSynced} becomes true; rejects with the signal's reason. */
  readonly synced: SyncedMethod = (signal) => abortable(this.#latch.opened, signal);
}

/**
 * As `AsyncTracker`, for a consumer that handles one item after the other: items need no keys, they are
 * counted. Mirrors client-go's `synctrack.SingleFileTracker`.
 */
export class SingleFileTracker extends SyncTracker {
  #count = 0;

  /** @internal */
  protected override get outstanding(): number {
    return this.#count;
  }

  /** An item is on its way, or so many. */
  start(count = 1): void {
    this.#count += count;
  }

  /**
   * An item was handled.
   * @throws {RangeError} More items were finished than started: what `hasSynced` said cannot be relied on.
   */
  finished(): void {
    if (this.#count === 0) {
      const which = this.name === "" ? "" : ` in ${JSON.stringify(this.name)}`;
      throw new RangeError(`Cannot finish an item${which}: every item that started is finished already`);
    }
    this.#count--;
    this.check();
  }
}
