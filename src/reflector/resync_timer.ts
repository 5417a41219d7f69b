/** The timer of resyncs. */

import type { Clock, TimerHandle } from "../util/clock.ts";

/** What a {@linkcode ResyncTimer} needs. */
export interface ResyncTimerOptions {
  readonly clock: Clock;
  /** 0 for never. */
  readonly periodMs: number;
  readonly shouldResync: (() => boolean) | undefined;
  readonly resync: () => void;
  /** Receives what a resync throws. */
  readonly onError: (error: unknown) => void;
}

/** Resyncs again and again, from when it is made until it is stopped: while a cycle watches. */
export class ResyncTimer {
  readonly #options: ResyncTimerOptions;
  #timer: TimerHandle;

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
    const { shouldResync, resync, onError } = this.#options;
    this.#arm();
    try {
      if (shouldResync === undefined || shouldResync()) resync();
    } catch (error) {
      onError(error);
    }
  }
}
