/**
 * The abort signals that a program is given.
 * @module
 */

import { CountingSignal } from "../counting_signal.ts";

/** Makes the signals of a program, and tells which of them somebody still listens to. */
export class CountedSignals {
  readonly #all: { readonly name: string; readonly counting: CountingSignal }[] = [];

  /** A signal that is counted. */
  make(name: string): CountingSignal {
    const counting = new CountingSignal();
    this.#all.push({ name, counting });
    return counting;
  }

  /** Names the signals that somebody still listens to. */
  leftovers(): string[] {
    const left: string[] = [];
    for (const { name, counting: { listeners } } of this.#all) {
      if (listeners > 0) left.push(`${listeners} on the signal of ${name}`);
    }
    return left;
  }
}
