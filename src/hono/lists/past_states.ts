/**
 * States of the past, kept for the next pages of lists.
 * @module
 */

import { type Clock, monotonicNow } from "../../util/clock.ts";
import type { Snapshot } from "./snapshot.ts";

/** A state, and when it is dropped. */
export interface PastState<T> {
  readonly snapshot: Snapshot<T>;
  readonly untilMs: number;
}

// Pages of a long list come within seconds of each other; a state takes two references for each object.
const PAST_STATES = 8;
const PAST_STATE_MS = 30_000;

/** States of one log, by the sequence number of the first entry that came after. Without a timer: they stay while nothing happens. */
export class PastStates<T> {
  readonly #clock: Clock;
  /** The least recently used first. */
  readonly states: Map<number, PastState<T>> = new Map();

  /** @param clock Measures how long they have not been read. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A state, which is kept for another moment. */
  get(first: number): Snapshot<T> | undefined {
    this.dropOld();
    const state = this.states.get(first);
    if (state !== undefined) this.keep(first, state.snapshot);
    return state?.snapshot;
  }

  /** Keeps a state for a moment. */
  keep(first: number, snapshot: Snapshot<T>): void {
    const untilMs = monotonicNow(this.#clock) + PAST_STATE_MS;
    this.states.delete(first);
    this.states.set(first, { snapshot, untilMs });
    for (const oldest of this.states.keys()) {
      if (this.states.size <= PAST_STATES) return;
      this.states.delete(oldest);
    }
  }

  /** Drops states that were not read for a moment. */
  dropOld(): void {
    const nowMs = monotonicNow(this.#clock);
    for (const [first, { untilMs }] of this.states) if (untilMs <= nowMs) this.states.delete(first);
  }

  /** Drops all. */
  clear(): void {
    this.states.clear();
  }
}
