/**
 * A watch that is open, and can change hands.
 * @module
 */

import type { WatchItem, WatchStream } from "../meta/list_watch.ts";
import { abortable, type LinkedAbort } from "../util/abort.ts";

/** How much of a watch has arrived, and when the last of it did; zeros where the source does not say. */
export interface Received {
  readonly bytes: number;
  /** In the clock's milliseconds. */
  readonly lastMs: number;
}

/**
 * An open watch, read batch by batch. The streamed list reads it up to the end bookmark, puts the rest of that batch
 * back, and hands it on to the watch loop: one connection serves both.
 */
export class OpenWatch<T> {
  readonly #iterator: AsyncIterator<readonly WatchItem<T>[]>;
  readonly #link: LinkedAbort;
  /** When the server must have ended it, in the clock's milliseconds: later, the other end is dead. */
  readonly deadlineMs: number;
  readonly received: Received;
  #unread: readonly WatchItem<T>[] | undefined;
  #next: Promise<IteratorResult<readonly WatchItem<T>[]>> | undefined;
  #closed = false;

  constructor(
    stream: WatchStream<T>,
    link: LinkedAbort,
    { deadlineMs, received }: { readonly deadlineMs: number; readonly received: Received },
  ) {
    this.deadlineMs = deadlineMs;
    this.received = received;
    this.#iterator = stream[Symbol.asyncIterator]();
    this.#link = link;
  }

  /**
   * The next batch; `undefined` at the end.
   *
   * @throws What the stream throws; the reason of `signal` when it is aborted first: the batch is not lost, the next
   * call waits for it again.
   */
  async next(signal?: AbortSignal): Promise<readonly WatchItem<T>[] | undefined> {
    if (this.#unread !== undefined) {
      const batch = this.#unread;
      this.#unread = undefined;
      return batch;
    }
    this.#next ??= this.#iterator.next();
    const result = await abortable(this.#next, signal);
    this.#next = undefined;
    return result.done ? undefined : result.value;
  }

  /** Puts items back: the next call of {@linkcode OpenWatch.next} returns them. */
  unread(items: readonly WatchItem<T>[]): void {
    if (items.length > 0) this.#unread = items;
  }

  /** Ends the connection, whatever state it is in. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#link.abort(new DOMException("the watch is no longer needed", "AbortError"));
    this.#link.unlink();
    this.#next?.catch(() => {});
    // return() may wait for a read that never ends; nobody waits for it.
    try {
      this.#iterator.return?.()?.catch(() => {});
    } catch {
      // a source whose return() throws has nothing left to close
    }
  }
}
