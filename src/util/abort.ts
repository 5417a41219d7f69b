/** Waits that an `AbortSignal` ends. */

import type { Clock } from "./clock.ts";
import { realClock } from "./clock.ts";

/** Options of {@linkcode sleep}. */
export interface SleepOptions {
  /** Where time comes from; the system's clock by default. */
  readonly clock?: Clock;
  /** Ends the sleep early. */
  readonly signal?: AbortSignal;
}

/**
 * Resolves after `ms` milliseconds.
 *
 * @throws The signal's reason, as soon as it is aborted; no timer is left behind.
 */
export function sleep(ms: number, options: SleepOptions = {}): Promise<void> {
  const { clock = realClock, signal } = options;
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clock.clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = clock.setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
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

/**
 * Settles as `promise` does, or rejects with the signal's reason when it is aborted first.
 * The promise itself continues; its later rejection is swallowed.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    if (signal.aborted) {
      promise.catch(() => {});
      return reject(signal.reason);
    }
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * Calls `callback` once when the signal is aborted; at once if it already is.
 *
 * @returns A function that removes the callback.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}

/** A controller that follows a parent signal until it is unlinked. */
export interface LinkedAbort {
  /** Aborted with the parent, or by {@linkcode LinkedAbort.abort}. */
  readonly signal: AbortSignal;
  /** Aborts this signal alone. */
  abort(reason?: unknown): void;
  /**
   * Stops following the parent: call it when the work is over, so that a long-lived parent keeps no listener.
   */
  unlink(): void;
}

/**
 * A new abort signal that follows `parent`. Unlike `AbortSignal.any` it can be unlinked, so that thousands of
 * watches under one signal leave no listeners behind.
 */
export function linkedAbort(parent: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController();
  const unlink = parent === undefined ? () => {} : onAbort(parent, () => controller.abort(parent.reason));
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), unlink };
}

/** Options of {@linkcode withTimeLimit}. */
export interface TimeLimit {
  readonly ms: number;
  /** The reason of the abort. */
  readonly newError: () => unknown;
  readonly clock: Clock;
  /** Aborts the work as well. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs something with a signal that is aborted after `ms` milliseconds. What ignores the signal takes longer.
 */
export async function withTimeLimit<T>(
  run: (signal: AbortSignal) => Promise<T>,
  { ms, newError, clock, signal }: TimeLimit,
): Promise<T> {
  const link = linkedAbort(signal);
  const timer = clock.setTimeout(() => link.abort(newError()), ms);
  try {
    return await run(link.signal);
  } finally {
    clock.clearTimeout(timer);
    link.unlink();
  }
}
