/** Promises that are settled from outside. */

import { abortable, onAbort } from "./abort.ts";

/** Waits among others until one of them is settled; an aborted signal takes the caller away in that turn. */
export async function waitIn<T>(
  waiting: Set<PromiseWithResolvers<T>>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const own = Promise.withResolvers<T>();
  waiting.add(own);
  const stop = signal && onAbort(signal, () => {
    waiting.delete(own);
    own.reject(signal.reason);
  });
  try {
    return await own.promise;
  } finally {
    stop?.();
  }
}

/** A latch that opens once and stays open: it can be read and awaited, as client-go's `DoneChecker`. */
export class Latch {
  #open = false;
  readonly #settled = Promise.withResolvers<void>();

  get isOpen(): boolean {
    return this.#open;
  }

  get opened(): Promise<void> {
    return this.#settled.promise;
  }

  /** Rejects what waits for it; it can still be opened. Has no effect if it is open. */
  giveUp(reason: unknown): void {
    this.opened.catch(() => {});
    this.#settled.reject(reason);
  }

  /** Opens it; has no effect if it is open. */
  open(): void {
    this.#open = true;
    this.#settled.resolve();
  }
}

/** Whether the items of a first list were handled: it is whole, and none of them left. Latched once true. */
export class InitialItems {
  /** Open once the first list was handled. */
  readonly latch: Latch = new Latch();
  /** Whether the first list is whole. */
  isPopulated = false;
  /** How many items of the first list are queued or in process. */
  remaining = 0;
  /** Whether the first list has several parts, and some are to come. */
  isHeld = false;

  /** The first list is whole; `count` items of it must be handled. */
  populate(count = 0): void {
    if (this.isPopulated || this.isHeld) return;
    this.isPopulated = true;
    this.remaining = count;
    this.popped(0);
  }

  popped(count: number): void {
    this.remaining -= count;
    if (this.isPopulated && this.remaining === 0) this.latch.open();
  }
}

/** Callers that wait for something to happen, which may happen again. */
export class Wakeup {
  #next: PromiseWithResolvers<void> | undefined;

  /** Resolves at the next {@linkcode Wakeup.wakeAll}; rejects with the signal's reason. */
  wait(signal: AbortSignal | undefined): Promise<void> {
    this.#next ??= Promise.withResolvers<void>();
    return abortable(this.#next.promise, signal);
  }

  /** Wakes every caller that waits now; each looks again whether there is something for it. */
  wakeAll(): void {
    if (this.#next === undefined) return; // the ordinary case on a busy queue
    const waiting = this.#next;
    this.#next = undefined;
    waiting.resolve();
  }
}

/**
 * A method that waits until something has synced: call it. Awaiting the method itself, `await
 * informer.synced`, would wait for nothing, and so the compiler refuses that.
 */
export interface SyncedMethod {
  /** Resolves when it has synced; rejects when the signal is aborted first. */
  (signal?: AbortSignal): Promise<void>;
  /** Always absent: a callable `then` that takes no callback makes `await` of the method an error. */
  readonly then?: (callTheMethod: never) => never;
}
