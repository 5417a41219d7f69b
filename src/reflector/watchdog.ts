/**
 * Noticing that nothing happens.
 * @module
 */

import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { STALL_MS } from "./stall.ts";

/**
 * Calls back once when it has not been fed for so long. Feeding costs a look at the clock, not a timer: the one timer
 * that is set looks, when it fires, how long the last feeding is ago.
 *
 * One that fires long after it was due tells of the program, which stood still, and not of what is watched: it begins
 * anew.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onExpired: () => void;
  readonly #alsoFedMs: (() => number) | undefined;
  #fedMs: number;
  #dueMs = 0;
  #timer: TimerHandle;

  /** Starts to watch. `alsoFedMs` tells of another feeding: when it was last, in the clock's milliseconds. */
  constructor(clock: Clock, limitMs: number, onExpired: () => void, alsoFedMs?: () => number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onExpired = onExpired;
    this.#alsoFedMs = alsoFedMs;
    this.#fedMs = monotonicNow(clock);
    this.#arm(limitMs);
  }

  /** Something happened. */
  feed(): void {
    this.#fedMs = monotonicNow(this.#clock);
  }

  /** Stops to watch. */
  stop(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  #look(): void {
    const nowMs = monotonicNow(this.#clock);
    if (nowMs - this.#dueMs >= STALL_MS) this.#fedMs = nowMs;
    const fedMs = Math.max(this.#fedMs, this.#alsoFedMs?.() ?? 0);
    const restMs = fedMs + this.#limitMs - nowMs;
    if (restMs <= 0) this.#onExpired();
    else this.#arm(restMs);
  }

  #arm(ms: number): void {
    this.#dueMs = monotonicNow(this.#clock) + ms;
    this.#timer = this.#clock.setTimeout(() => this.#look(), ms);
  }
}
