/**
 * Delays per key.
 * @module
 */

import { jittered, type Random } from "./backoff.ts";
import { type Clock, monotonicNow } from "./clock.ts";
import { requireNumbers } from "./require_number.ts";

/**
 * Options of {@linkcode KeyedBackoff}.
 *
 * @category Tools
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
  /** The random numbers of jitter; required with `jitter`. */
  readonly random?: Random;
  /** Whether an entry is too old; by default if the event is more than twice `maxMs` after the last one. */
  readonly hasExpired?: (eventTimeMs: number, lastUpdateMs: number, maxMs: number) => boolean;
}

interface Entry {
  readonly delayMs: number;
  /** The time of the last failure, on the monotonic clock. */
  readonly lastUpdateMs: number;
}

/**
 * A growing delay per key: doubled by each failure, expired after twice the largest delay. Entries stay until
 * {@linkcode KeyedBackoff.gc} or {@linkcode KeyedBackoff.reset}: call `gc` regularly.
 *
 * The caller reads the times of events from the wall clock (`clock.now()`). The time since a failure is
 * measured by the monotonic clock, so that a change of the wall clock neither prolongs nor ends a delay.
 *
 * Mirrors client-go's `flowcontrol.Backoff`.
 *
 * @example
 * ```ts
 * import { KeyedBackoff, realClock } from "@listwatch/cache/reflector";
 * const backoff = new KeyedBackoff({ initialMs: 100, maxMs: 10_000, clock: realClock });
 * const nowMs = realClock.now();
 * backoff.next("web-1", nowMs);
 * backoff.next("web-1", nowMs);
 * console.log(backoff.get("web-1"), backoff.get("web-2")); // 200 0
 * ```
 *
 * @category Tools
 */
export class KeyedBackoff {
  readonly #options: KeyedBackoffOptions;
  readonly #hasExpired: (eventTimeMs: number, lastUpdateMs: number) => boolean;
  readonly #entries = new Map<string, Entry>();

  /**
   * Makes one without entries.
   *
   * @throws {TypeError} There is jitter but no `random`.
   * @throws {RangeError} A number is negative or `NaN`.
   */
  constructor(options: KeyedBackoffOptions) {
    const { maxMs, hasExpired } = options;
    if (options.jitter && options.random === undefined) {
      throw new TypeError("Cannot jitter: the option `random` is missing");
    }
    requireNumbers("back off", { initialMs: options.initialMs, maxMs, jitter: options.jitter });
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

  /** Records a failure at `eventTimeMs`: the first delay, or double the previous one. */
  next(id: string, eventTimeMs: number): void {
    const { initialMs, maxMs, jitter = 0, random = () => 0, clock } = this.#options;
    const previous = this.#entries.get(id);
    const delayMs = previous === undefined || this.#hasExpired(eventTimeMs, this.#onWallClock(previous))
      ? jittered(initialMs, jitter, random)
      : Math.min(previous.delayMs + jittered(previous.delayMs, jitter, random), maxMs);
    this.#entries.set(id, { delayMs, lastUpdateMs: monotonicNow(clock) });
  }

  /** Whether less time than the delay of `id` has passed between `eventTimeMs` and now. */
  isInBackOffSince(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    if (entry === undefined) return false;
    const { clock } = this.#options;
    const sinceMs = clock.now() - eventTimeMs;
    // An event in the future: the wall clock was set back meanwhile. The event is not younger than the last
    // failure.
    return (sinceMs < 0 ? monotonicNow(clock) - entry.lastUpdateMs : sinceMs) < entry.delayMs;
  }

  /** Whether less time than the delay of `id` has passed between its last failure and `eventTimeMs`. */
  isInBackOffSinceUpdate(id: string, eventTimeMs: number): boolean {
    const entry = this.#live(id, eventTimeMs);
    return entry !== undefined && eventTimeMs - this.#onWallClock(entry) < entry.delayMs;
  }

  /** Removes the entry of `id`. */
  reset(id: string): void {
    this.#entries.delete(id);
  }

  /** Removes every expired entry. */
  gc(): void {
    const nowMs = this.#options.clock.now();
    for (const [id, entry] of this.#entries) {
      if (this.#hasExpired(nowMs, this.#onWallClock(entry))) this.#entries.delete(id);
    }
  }

  #live(id: string, eventTimeMs: number): Entry | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined || this.#hasExpired(eventTimeMs, this.#onWallClock(entry)) ? undefined : entry;
  }

  /** The time of the last failure on the wall clock as it is set now. */
  #onWallClock({ lastUpdateMs }: Entry): number {
    const { clock } = this.#options;
    return lastUpdateMs + clock.now() - monotonicNow(clock);
  }
}
