/**
 * Work for readers, in short turns.
 * @module
 */

import type { TurnQueue } from "../util/turn_queue.ts";

// A unit is about 20 nanoseconds: some milliseconds' worth in a turn.
const UNITS_PER_TURN = 150_000;

// To encode it, and to hand it to the socket.
const UNITS_PER_CHARACTER = 0.5;

/** What it takes to decode an object. */
export const OPEN_UNITS = 1_200;

/**
 * Counts work, so that others have a turn after some milliseconds of it. Counted and not timed: the same work gives way
 * at the same places whatever clock there is.
 */
export class Pacer {
  readonly #turns: TurnQueue;
  #units = 0;

  /** @param turns Where those who work wait for their turn, one after the other. */
  constructor(turns: TurnQueue) {
    this.#turns = turns;
  }

  /** Some work was done. `true`: it is time for {@linkcode Pacer.rest}. */
  spend(units: number): boolean {
    this.#units += units;
    return this.#units >= UNITS_PER_TURN;
  }

  /** Text was made for one of the readers, who share this. */
  spendText(length: number): void {
    this.#units += length * UNITS_PER_CHARACTER;
  }

  /** Whether it is time for {@linkcode Pacer.rest}: much was done in this turn, or others wait for theirs. */
  get isDue(): boolean {
    return this.#units >= UNITS_PER_TURN || this.#turns.isBusy;
  }

  /** Gives others a turn. */
  rest(): Promise<void> {
    this.#units = 0;
    return this.#turns.next();
  }
}
