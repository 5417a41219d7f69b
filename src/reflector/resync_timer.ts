/**
 * The timer that asks a store to hand everything out again.
 * @module
 */

import type { Clock, TimerHandle } from "../util/clock.ts";
import type { ReflectorOptions } from "./reflector_options.ts";

/** Options of {@linkcode ResyncTimer}. */
export interface ResyncTimerOptions extends Pick<ReflectorOptions, "resyncPeriodMs" | "shouldResync"> {
  readonly clock: Clock;
}

/** Resyncs again and again, from when it is made until it is stopped: while a cycle watches. */
export class ResyncTimer {
  readonly #store: { resync(): void };
  readonly #options: ResyncTimerOptions;
  #timer: TimerHandle;
  /** Told when a resync threw: the watch ends with that error. Without anyone to tell, the next period has to do. */
  onError: ((error: unknown) => void) | undefined;

  constructor(store: { resync(): void }, options: ResyncTimerOptions) {
    this.#store = store;
    this.#options = options;
    this.#arm();
  }

  /** Stops it. */
  stop(): void {
    this.#options.clock.clearTimeout(this.#timer);
  }

  #arm(): void {
    const { clock, resyncPeriodMs = 0 } = this.#options;
    if (resyncPeriodMs > 0) this.#timer = clock.setTimeout(() => this.#fire(), resyncPeriodMs);
  }

  #fire(): void {
    try {
      const { shouldResync } = this.#options;
      if (shouldResync === undefined || shouldResync()) this.#store.resync();
      this.#arm();
    } catch (error) {
      if (this.onError === undefined) this.#arm();
      else this.onError(error);
    }
  }
}
