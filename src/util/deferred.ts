/** Promises that are settled from outside. */

import { abortable, onAbort } from "./abort.ts";

/** A promise and the functions that settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** Makes a {@linkcode Deferred}. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((ok, fail) => {
    resolve = ok;
    reject = fail;
  });
  return { promise, resolve, reject };
}

/** Waits among others until one of them is settled; an aborted signal takes the caller away in that turn. */
export async function waitIn<T>(waiting: Set<Deferred<T>>, signal: AbortSignal | undefined): Promise<T> {
  const own = deferred<T>();
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
  readonly #deferred: Deferred<void> = deferred<void>();

  get isOpen(): boolean {
    return this.#open;
  }

  get opened(): Promise<void> {
    return this.#deferred.promise;
  }

  /** Rejects what waits for it; it can still be opened. Has no effect if it is open. */
  giveUp(reason: unknown): void {
    this.opened.catch(() => {});
    this.#deferred.reject(reason);
  }

  /** Opens it; has no effect if it is open. */
  open(): void {
    if (this.#open) return;
    this.#open = true;
    this.#deferred.resolve();
  }
}

/** Callers that wait for something to happen, which may happen again. */
export class Wakeup {
  #next: Deferred<void> | undefined;

  /** Resolves at the next {@linkcode Wakeup.wakeAll}; rejects with the signal's reason. */
  wait(signal: AbortSignal | undefined): Promise<void> {
    this.#next ??= deferred();
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
  /** Never there: a callable `then` that takes no callback makes `await` of the method an error. */
  readonly then?: (callTheMethod: never) => never;
}
