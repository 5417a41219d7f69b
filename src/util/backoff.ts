/** Delays that grow. */

import { type Clock, monotonicNow } from "./clock.ts";
import { requireNumbers } from "./require_number.ts";

/** How delays grow. Mirrors apimachinery's `wait.Backoff`. */
export interface BackoffParameters {
  /** The first delay, in milliseconds, before jitter. */
  readonly durationMs: number;
  /** The factor of each step; 0, the default, keeps the delay as it is. */
  readonly factor?: number;
  /** Each delay grows by a random part of up to `jitter` times itself; 0 by default. It does not add up. */
  readonly jitter?: number;
  /** How many steps may change the delay; after them it is constant. Unlimited by default. */
  readonly steps?: number;
  /** The largest delay in milliseconds, before jitter; 0, the default: none. At it the steps are used up. */
  readonly capMs?: number;
}

/** A source of random numbers from 0 (included) to 1 (excluded), such as `Math.random`. */
export type Random = () => number;

// Keeps an uncapped backoff from becoming infinite, and a jittered one from NaN.
const LONGEST_MS = Number.MAX_SAFE_INTEGER;

/** A sequence of growing delays. Mirrors apimachinery's `wait.Backoff.Step`. */
export class Backoff {
  readonly #parameters: Required<BackoffParameters>;
  readonly #random: Random;
  #durationMs = 0;
  #steps = 0;

  /**
   * @param options.random The random numbers of jitter; required with `jitter`.
   * @throws {RangeError} A parameter is negative or not a number.
   * @throws {TypeError} There is jitter but no `random`.
   */
  constructor(parameters: BackoffParameters, options: { readonly random?: Random } = {}) {
    const { durationMs, factor = 0, jitter = 0, steps = Infinity, capMs = 0 } = parameters;
    this.#parameters = { durationMs, factor, jitter, steps, capMs };
    requireNumbers("back off", { ...this.#parameters }, { mayBeInfinite: true });
    if (jitter > 0 && options.random === undefined) {
      throw new TypeError("Cannot jitter: the option `random` is missing");
    }
    this.#random = options.random ?? (() => 0);
    this.reset();
  }

  /** As {@linkcode Backoff.step}: a reflector's option `backoff` may be one. */
  nextDelayMs(): number {
    return this.step();
  }

  /** The next delay, in milliseconds. */
  step(): number {
    const { factor, capMs, jitter } = this.#parameters;
    const durationMs = this.#durationMs;
    if (this.#steps >= 1) {
      this.#steps--;
      const grownMs = factor === 0 ? durationMs : Math.min(durationMs * factor, LONGEST_MS);
      const capped = factor !== 0 && capMs > 0 && grownMs > capMs;
      this.#durationMs = capped ? capMs : grownMs;
      if (capped) this.#steps = 0;
    }
    return jittered(durationMs, jitter, this.#random);
  }

  /** Starts again at the first delay. */
  reset(): void {
    this.#durationMs = this.#parameters.durationMs;
    this.#steps = this.#parameters.steps;
  }
}

/** Options of {@linkcode BackoffManager}. */
export interface BackoffManagerOptions {
  /** Measures the time until the reset. */
  readonly clock: Clock;
  readonly random: Random;
  /** After how many milliseconds the delays start again at the first; 0 = the first delay every time. */
  readonly resetMs: number;
  /**
   * The start of the measured time. `interval`, the default: the start or the last reset, even while failures
   * continue, as in `wait.Backoff.DelayWithReset`. `quiet`: the last delay, as in
   * `wait.NewExponentialBackoffManager`.
   */
  readonly resetAfter?: "interval" | "quiet";
}

/**
 * Growing delays that start again after some time. Mirrors apimachinery's `wait.Backoff.DelayWithReset`, or
 * its older `wait.NewExponentialBackoffManager`.
 *
 * @example
 * ```ts
 * import * as delays from "@listwatch/cache/reflector";
 * import { FakeClock } from "@listwatch/cache/testing";
 * const growing = new delays.Backoff({ durationMs: 100, factor: 2, capMs: 300 });
 * console.log(growing.step(), growing.step(), growing.step(), growing.step()); // 100 200 300 300
 * const clock = new FakeClock();
 * const manager = new delays.BackoffManager({ durationMs: 100, factor: 2 }, { clock, random: () => 0, resetMs: 60_000 });
 * console.log(manager.nextDelayMs(), manager.nextDelayMs()); // 100 200
 * await clock.advance(60_001);
 * console.log(manager.nextDelayMs()); // 100
 * console.log(delays.newReflectorBackoff({ clock, random: () => 0.5 }).nextDelayMs()); // 1200
 * ```
 */
export class BackoffManager {
  readonly #backoff: Backoff;
  readonly #options: BackoffManagerOptions;
  #startMs: number;

  /** @throws {RangeError} A parameter is negative or not a number. */
  constructor(parameters: BackoffParameters, options: BackoffManagerOptions) {
    requireNumbers("back off", { resetMs: options.resetMs }, { least: -Infinity, mayBeInfinite: true });
    this.#backoff = new Backoff(options.resetMs <= 0 ? { ...parameters, factor: 0 } : parameters, options);
    this.#options = options;
    this.#startMs = monotonicNow(options.clock);
  }

  /** The delay before the next attempt, in milliseconds. */
  nextDelayMs(): number {
    const { clock, resetMs, resetAfter } = this.#options;
    const nowMs = monotonicNow(clock);
    const resets = nowMs - this.#startMs > resetMs;
    if (resets) this.#backoff.reset();
    if (resets || resetAfter === "quiet") this.#startMs = nowMs;
    return this.#backoff.step();
  }

  /** Starts again at the first delay, after a success. */
  reset(): void {
    this.#backoff.reset();
    this.#startMs = monotonicNow(this.#options.clock);
  }
}

/** Options of {@linkcode newReflectorBackoff}. */
export interface ReflectorBackoffOptions {
  /** Measures the time until the reset. */
  readonly clock: Clock;
  readonly random: Random;
  /** The delays, if other than the default; the reset stays. */
  readonly backoff?: BackoffParameters;
  /** After how many milliseconds without a failure the delays start again; 120,000 by default. */
  readonly resetMs?: number;
}

/** The longest delay of a reflector, before it is stretched. */
export const LONGEST_DELAY_MS = 15_000;
/** The delays of a reflector; with its jitter the longest is just under 30 seconds. */
export const REFLECTOR_BACKOFF: BackoffParameters = {
  durationMs: 800,
  factor: 2,
  capMs: LONGEST_DELAY_MS,
  jitter: 1,
};
const REFLECTOR_RESET_MS = 120_000;

/**
 * The delays of a reflector: 0.8, 1.6, 3.2, ... 12.8, 15 seconds, each stretched at random to less than its
 * double, so that none is longer than 30 seconds. They start again after two minutes without a failure.
 *
 * Mirrors the backoff of client-go's `NewReflector`, where delays grow to 30 seconds before they are
 * stretched, and since v0.36 start again every two minutes even while failures continue.
 * @throws {RangeError} A parameter of `backoff` is negative or not a number.
 */
export function newReflectorBackoff(options: ReflectorBackoffOptions): BackoffManager {
  const { clock, random, backoff = REFLECTOR_BACKOFF, resetMs = REFLECTOR_RESET_MS } = options;
  return new BackoffManager(backoff, { clock, random, resetMs, resetAfter: "quiet" });
}

/** A duration stretched by a random part of up to `jitter` times itself. */
export function jittered(durationMs: number, jitter: number, random: Random): number {
  return jitter > 0 ? durationMs + random() * jitter * durationMs : durationMs;
}
