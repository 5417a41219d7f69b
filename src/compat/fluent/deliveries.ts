/**
 * The calls of one watcher's callback: one at a time, each awaited, and made again after a failure.
 *
 * How it works. What a key's callback has yet to see is a short list of changes, merged: an object
 * that appeared and has changed since appeared as it is now. The first try of a change is awaited by
 * its informer's handler, so that changes come in their order. A failed one waits for its time, which
 * grows with each failure of its key; changes of other keys pass it meanwhile, and a newer change of
 * the same key is merged with it and tried at once.
 */

import type { Clock, TimerHandle } from "../../util/clock.ts";
import type { RateLimiter } from "../../workqueue/rate_limiters.ts";

/** What happened to an object. */
export const WatchPhase = {
  /** It appeared, or was there at the start. */
  Added: "ADDED",
  /** It changed. */
  Modified: "MODIFIED",
  /** It was deleted. */
  Deleted: "DELETED",
  /** Never handed over: bookmarks are no changes. */
  Bookmark: "BOOKMARK",
  /** Never handed over: after an error, the watch is opened again. */
  Error: "ERROR",
} as const;

/** What happened to an object. */
export type WatchPhase = (typeof WatchPhase)[keyof typeof WatchPhase];

export interface Change<K> {
  readonly object: K;
  readonly phase: WatchPhase;
}

export interface DeliveryOptions<K> {
  readonly call: (object: K, phase: WatchPhase) => Promise<void> | void;
  readonly onError: (error: unknown) => void;
  readonly limiter: RateLimiter<string>;
  readonly maxRetries?: number;
  readonly clock: Clock;
}

/** The calls of one callback. */
export class Deliveries<K> {
  readonly #options: DeliveryOptions<K>;
  /** By key: what the callback has yet to see. */
  readonly #waiting = new Map<string, Change<K>[]>();
  readonly #timers = new Map<string, TimerHandle>();
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: DeliveryOptions<K>) {
    this.#options = options;
  }

  /** Hands over a change; resolves when the callback has been called for it once, whatever came of that. */
  deliver(key: string, change: Change<K>): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#waiting.set(key, merged(this.#waiting.get(key) ?? [], change));
    return this.#tryNow(key);
  }

  /** Drops what waits. A running call is not interrupted. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) this.#options.clock.clearTimeout(timer);
    this.#timers.clear();
    this.#waiting.clear();
  }

  #tryNow(key: string): Promise<void> {
    this.#options.clock.clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    return this.#last = this.#last.then(() => this.#drain(key));
  }

  /** Calls the callback for what waits of a key, until it fails. */
  async #drain(key: string): Promise<void> {
    const { call, onError, limiter, maxRetries = Infinity } = this.#options;
    for (;;) {
      const [change, ...rest] = this.#waiting.get(key) ?? [];
      if (change === undefined || this.#timers.has(key)) return;
      // Out of the list while it runs: what comes meanwhile is merged with what was not handed over yet.
      this.#set(key, rest);
      try {
        await call(change.object, change.phase);
        limiter.forget(key);
        continue;
      } catch (error) {
        onError(error);
      }
      if (this.#isClosed) return;
      if (limiter.numRequeues(key) >= maxRetries) {
        limiter.forget(key);
        continue;
      }
      this.#set(key, (this.#waiting.get(key) ?? []).reduce(merged, [change]));
      this.#retryLater(key, limiter.when(key));
      return;
    }
  }

  #set(key: string, waiting: Change<K>[]): void {
    if (waiting.length === 0) this.#waiting.delete(key);
    else this.#waiting.set(key, waiting);
  }

  #retryLater(key: string, delayMs: number): void {
    this.#timers.set(key, this.#options.clock.setTimeout(() => void this.#tryNow(key), delayMs));
  }
}

/**
 * What is to be handed over after a further change: at most one change of
 * each object that had this name, and a delete.
 */
function merged<K>(waiting: Change<K>[], next: Change<K>): Change<K>[] {
  const last = waiting.at(-1);
  if (last === undefined || (last.phase === "DELETED" && next.phase !== "DELETED")) return [...waiting, next];
  // A delete replaces an add that failed: part of it may have been done.
  const phase = next.phase === "DELETED" ? "DELETED" : last.phase;
  return [...waiting.slice(0, -1), { object: next.object, phase }];
}
