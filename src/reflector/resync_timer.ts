/**
 * The timer that asks a store to hand everything out again.
 * @module
 */

import type { Clock, TimerHandle } from "../util/clock.ts";

/** Options of {@linkcode ResyncTimer}. */
export interface ResyncTimerOptions {
  readonly clock: Clock;
  /** How often, in milliseconds; 0 for never. */
  readonly periodMs: number;
  /** Asked each time; `false` skips it. */
  readonly shouldResync: () => boolean;
  readonly resync: () => void;
}

/** Resyncs again and again, from when it is made until it is stopped: while a cycle watches. */
export class ResyncTimer {
  readonly #options: ResyncTimerOptions;
  #timer: TimerHandle;
  /** Told when a resync threw: the watch ends with that error. Without anyone to tell, the next period has to do. */
  onError: ((error: unknown) => void) | undefined;

  constructor(options: ResyncTimerOptions) {
    this.#options = options;
    this.#arm();
  }

  /** Stops it. */
  stop(): void {
    this.#options.clock.clearTimeout(this.#timer);
  }

  #arm(): void {
    const { clock, periodMs } = this.#options;
    if (periodMs > 0) this.#timer = clock.setTimeout(() => this.#fire(), periodMs);
  }

  #fire(): void {
    try {
      if (this.#options.shouldResync()) this.#options.resync();
      this.#arm();
    } catch (error) {
      if (this.onError === undefined) this.#arm();
      else this.onError(error);
    }
  }
}
