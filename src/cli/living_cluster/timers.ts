/**
 * Timers that end together.
 * @module
 */

import type { Clock, TimerHandle } from "../../util/clock.ts";
import type { Dice } from "./dice.ts";

/** Runs actions after random times, until it is stopped. */
export class Timers {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #timers = new Set<TimerHandle>();
  #onError: (error: unknown) => void = () => {};

  constructor(clock: Clock, dice: Dice) {
    this.#clock = clock;
    this.#dice = dice;
  }

  /** The wall-clock time: objects are dated with it. */
  now(): number {
    return this.#clock.now();
  }

  /** Runs an action once, after a random time from `minMs` to `maxMs`. */
  after(minMs: number, maxMs: number, action: () => void): void {
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      try {
        action();
      } catch (error) {
        this.#onError(error);
      }
    }, minMs + this.#dice.upTo(maxMs - minMs));
    this.#timers.add(timer);
  }

  /** Runs an action repeatedly, every `meanMs` on average; the first time within `meanMs`. */
  often(meanMs: number, action: () => void): void {
    const again = (): void => {
      this.after(meanMs * 0.4, meanMs * 1.6, again);
      action();
    };
    this.after(0, meanMs, again);
  }

  /** Sets the function that receives what an action throws. */
  onError(callback: (error: unknown) => void): void {
    this.#onError = callback;
  }

  /** Clears every timer. */
  stop(): void {
    for (const timer of this.#timers) this.#clock.clearTimeout(timer);
    this.#timers.clear();
  }
}
