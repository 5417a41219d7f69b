/**
 * Delays per key.
 * @module
 */

import { jittered, type Random } from "./backoff.ts";
import type { Clock } from "./clock.ts";

/**
 * Options of {@linkcode KeyedBackoff}.
 *
 * @example
 * ```ts
 * import { type KeyedBackoffOptions, realClock } from "@listwatch/cache";
 * const options: KeyedBackoffOptions = { initialMs: 100, maxMs: 10_000, clock: realClock };
 * ```
 */
export interface KeyedBackoffOptions {
  /** The delay after the first failure, in milliseconds. */
  readonly initialMs: number;
  /** The largest delay, in milliseconds. */
  readonly maxMs: number;
  /** Where time comes from. */
  readonly clock: Clock;
  /** Each delay grows by a random part of up to this many times the one before; 0 by default. */
  readonly jitter?: number;
  /** The randomness of jitter; needed when there is any. */
  readonly random?: Random;
  /** Whether an entry is too old to count; when the event is more than twice `maxMs` after the last by default. */
  readonly hasExpired?: (eventTimeMs: number, lastUpdateMs: number, maxMs: number) => boolean;
}

interface Entry {
  delayMs: number;
  lastUpdateMs: number;
}

/**
 * A growing delay for each of many things: doubled by each failure, forgotten after twice the largest delay.
 * Entries stay until {@linkcode KeyedBackoff.gc} or {@linkcode KeyedBackoff.reset}: call `gc` now and then.
 *
 * Mirrors client-go's `flowcontrol.Backoff`.
 *
 * @example
 * ```ts
 * import { KeyedBackoff, realClock } from "@listwatch/cache";
 * const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 10_000, clock: realClock });
 * const nowMs = realClock.now();
 * backoff.next("web-1", nowMs);
 * backoff.next("web-1", nowMs);
 * console.log(backoff.get("web-1"), backoff.get("web-2")); // 200 0
 * ```
 */
export class KeyedBackoff {
  readonly #options: KeyedBackoffOptions;
  readonly #hasExpired: (eventTimeMs: number, lastUpdateMs: number) => boolean;
  readonly #entries = new Map<string, Entry>();

  /**
   * Makes one without entries.
   *
   * @throws {TypeError} There is jitter but no `random`.
   */
  constructor(options: KeyedBackoffOptions) {
    const { maxMs, hasExpired } = options;
    if (options.jitter && options.random === undefined) {
      throw new TypeError("Cannot jitter: the option `random` is missing");
    }
    this.#options = options;
    this.#hasExpired = (eventTimeMs, lastUpdateMs) =>
      hasExpired?.(eventTimeMs, lastUpdateMs, maxMs) ?? eventTimeMs - lastUpdateMs > maxMs * 2;
  }

  /** How many entries there are. */
  get size(): number {
    return this.#entries.size;
  }

  /** The current delay of `id`, in milliseconds; 0 if it has not failed. */
  get(id: string): number {
    return this.#entries.get(id)?.delayMs ?? 0;
  }

  /** Takes note of a failure at `eventTimeMs`: the first delay, or double the one before. */
  next(id: string, eventTimeMs: number): void {
    const { initialMs, maxMs, jitter = 0, random = () => 0, clock } = this.#options;
    const previous = this.#entries.get(id);
    const delayMs = previous === undefined || this.#hasExpired(eventTimeMs, previous.lastUpdateMs)
      ? jittered(initialMs, jitter, random)
      : Math.min(previous.delayMs + jittered(previous.delayMs, jitter, random), maxMs);
    this.#entries.set(id, { delayMs, lastUpdateMs: clock.now() });
  }

  /** Whether less time than the delay of `id` has passed between `eventTimeMs` and now. */
  isInBackOffSince(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    return entry !== undefined && this.#options.clock.now() - eventTimeMs < entry.delayMs;
  }

  /** Whether less time than the delay of `id` has passed between its last failure and `eventTimeMs`. */
  isInBackOffSinceUpdate(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    return entry !== undefined && eventTimeMs - entry.lastUpdateMs < entry.delayMs;
  }

  /** Forgets `id`. */
  reset(id: string): void {
    this.#entries.delete(id);
  }

  /** Forgets every entry that has expired by now. */
  gc(): void {
    const nowMs = this.#options.clock.now();
    for (const [id, entry] of this.#entries) {
      if (this.#hasExpired(nowMs, entry.lastUpdateMs)) this.#entries.delete(id);
    }
  }

  #live(id: string, eventTimeMs: number): Entry | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined || this.#hasExpired(eventTimeMs, entry.lastUpdateMs) ? undefined : entry;
  }
}
