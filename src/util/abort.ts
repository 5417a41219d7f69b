/** Waits that an `AbortSignal` ends. */

import { type Clock, realClock } from "./clock.ts";

interface SleepOptions {
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

/** Resolves after `ms` milliseconds. */
export function sleep(ms: number, options: SleepOptions = {}): Promise<void> {
  const { clock = realClock, signal } = options;
  return new Promise<void>((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      unlisten?.();
      resolve();
    }, ms);
    const unlisten = signal && onAbort(signal, () => {
      clock.clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Sleeps; returns `false` if the signal ended the sleep. */
export async function sleepUnlessAborted(ms: number, options: SleepOptions): Promise<boolean> {
  try {
    await sleep(ms, options);
    return true;
  } catch (error) {
    if (options.signal?.aborted) return false;
    throw error;
  }
}

/** Settles as `promise` does, or rejects with the signal's reason when it is aborted first. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const unlisten = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(unlisten);
  });
}

/** Calls `callback` once when the signal is aborted; at once if it already is. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}

/** A signal that follows a parent signal until it is unlinked; `abort` aborts it alone. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Call it when the work is over: unlike `AbortSignal.any` it leaves no listener at a long-lived parent. */
  unlink(): void;
}

export function linkedAbort(parent: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController();
  const unlink = parent === undefined ? () => {} : onAbort(parent, () => controller.abort(parent.reason));
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), unlink };
}

/**
 * Runs something with a signal that is aborted with `signal`, and with what `newError` returns after `ms`
 * milliseconds; rejects with the signal's reason then, whether it ends or not.
 */
export async function withTimeLimit<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { ms, newError, clock, signal }: {
    readonly ms: number;
    readonly newError: () => unknown;
    readonly clock: Clock;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<T> {
  const link = linkedAbort(signal);
  const timer = clock.setTimeout(() => link.abort(newError()), ms);
  try {
    return await abortable(run(link.signal), link.signal);
  } finally {
    clock.clearTimeout(timer);
    link.unlink();
  }
}
