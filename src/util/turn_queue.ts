/**
 * Many who each work for a while, taking turns.
 * @module
 */

import { nextTurn } from "./clock.ts";
import { Deque } from "./deque.ts";

/**
 * Gives one after the other a turn of the event loop of its own. Those who just wait for the next turn would all get the
 * same one, and keep timers and the network waiting for the sum of what they do.
 */
export class TurnQueue {
  readonly #waiting = new Deque<() => void>();
  #isTurning = false;

  /** Whether others wait for a turn. */
  get isBusy(): boolean {
    return this.#isTurning;
  }

  /** Resolves in a later turn of the event loop, when all who asked before have had one. */
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
