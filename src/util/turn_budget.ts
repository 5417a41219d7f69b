/**
 * How long work may continue before others get a turn.
 * @module
 */

import { type Clock, monotonicNow } from "./clock.ts";

/**
 * What one turn may do: so many steps, for so long. While steps are short, not every one of them reads the clock; so a turn
 * whose steps become long all at once lasts up to eight of them longer.
 */
export class TurnBudget {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #untilMs: number;
  #steps: number;
  #nowMs: number;
  /** Steps until the clock is read again. */
  #unread = 1;

  /** Begins the turn. */
  constructor(clock: Clock, ms: number, steps: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#steps = steps;
    this.#nowMs = monotonicNow(clock);
    this.#untilMs = this.#nowMs + ms;
  }

  /** Call it after each step: whether the turn is over. */
  isSpent(): boolean {
    if (--this.#steps <= 0) return true;
    if (--this.#unread > 0) return false;
    const nowMs = monotonicNow(this.#clock);
    this.#unread = (nowMs - this.#nowMs) * STEPS_PER_READ < this.#ms ? STEPS_PER_READ : 1;
    this.#nowMs = nowMs;
    return nowMs >= this.#untilMs;
  }
}

const STEPS_PER_READ = 8;
