/**
 * The abort signals that a program receives.
 * @module
 */

import { CountingSignal } from "../counting_signal.ts";

/** Makes the signals of a program, and reports those that still have listeners. */
export class CountedSignals {
  readonly #all: { readonly name: string; readonly counting: CountingSignal }[] = [];

  /** A signal that is counted. */
  make(name: string): CountingSignal {
    const counting = new CountingSignal();
    this.#all.push({ name, counting });
    return counting;
  }

  /** The names of the signals that still have listeners. */
  leftovers(): string[] {
    const left: string[] = [];
    for (const { name, counting: { listeners } } of this.#all) {
      if (listeners > 0) left.push(`${listeners} on the signal of ${name}`);
    }
    return left;
  }
}
