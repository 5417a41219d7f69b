/**
 * Turns of the event loop, one task at a time.
 * @module
 */

import { nextTurn } from "./clock.ts";
import { Deque } from "./deque.ts";

/**
 * Gives each task its own turn of the event loop, one after the other. Tasks that wait for the next turn without it all
 * continue in the same turn, and delay timers and the network by the sum of their work.
 */
export class TurnQueue {
  readonly #waiting = new Deque<() => void>();
  #isTurning = false;

  /** Whether tasks wait for a turn. */
  get isBusy(): boolean {
    return this.#isTurning;
  }

  /** Resolves in a later turn of the event loop, after every earlier caller had one. */
  next(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.#isTurning) this.#turn();
    return turn;
  }

  async #turn(): Promise<void> {
    this.#isTurning = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await nextTurn();
      next();
    }
    this.#isTurning = false;
  }
}
