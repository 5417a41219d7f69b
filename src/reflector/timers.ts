/**
 * Timeouts, in programs that may be suspended: a frozen isolate, a suspended computer, a stopped process.
 *
 * Two clocks show it, and neither is enough. Where the monotonic clock continues meanwhile, timers fire long
 * after they were due. Where it stops (a suspended computer with Linux or macOS), timers notice nothing, but
 * the wall clock has leapt forward against it; one that is set forward looks the same.
 *
 * So an age (`ageMs`) is the larger of what both say; a silence ({@linkcode Watchdog}) that is found too long
 * after it was due starts again; and an open watch, whose connection has probably died, is opened again.
 * @module
 */

import { NetworkError } from "../meta/request.ts";
import { abortable, type LinkedAbort } from "../util/abort.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";

/** A delay from this on has another cause than other work of the program. */
export const STALL_MS = 30_000;

/**
 * Calls back once when it has not been fed for a time. Feeding costs a look at the clock, not a timer. One
 * that fires long after it was due shows that the program was suspended: it starts again.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onExpired: () => void;
  readonly #alsoFedMs: (() => number) | undefined;
  #fedMs: number;
  #dueMs = 0;
  #timer: TimerHandle;

  /** Starts watching. `alsoFedMs` returns the time of another feeding, in the clock's milliseconds. */
  constructor(clock: Clock, limitMs: number, onExpired: () => void, alsoFedMs?: () => number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onExpired = onExpired;
    this.#alsoFedMs = alsoFedMs;
    this.#fedMs = monotonicNow(clock);
    this.#arm(limitMs);
  }

  feed(): void {
    this.#fedMs = monotonicNow(this.#clock);
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  #look(): void {
    const nowMs = monotonicNow(this.#clock);
    if (nowMs - this.#dueMs >= STALL_MS) this.#fedMs = nowMs;
    const fedMs = Math.max(this.#fedMs, this.#alsoFedMs?.() ?? 0);
    const restMs = fedMs + this.#limitMs - nowMs;
    if (restMs <= 0) this.#onExpired();
    else this.#arm(restMs);
  }

  #arm(ms: number): void {
    this.#dueMs = monotonicNow(this.#clock) + ms;
    this.#timer = this.#clock.setTimeout(() => this.#look(), ms);
  }
}

/** What `ask` returns. */
export async function inTime<R>(
  ask: () => Promise<R>,
  { ms, late, clock, link }: {
    readonly ms: number;
    readonly late: () => string;
    readonly clock: Clock;
    readonly link: LinkedAbort;
  },
): Promise<R> {
  const watchdog = new Watchdog(clock, ms, () => link.abort(new NetworkError("Unreachable", late())));
  try {
    return await abortable(ask(), link.signal);
  } finally {
    watchdog.stop();
  }
}

/** Calls again and again until the function that it returns is called; never where `ms` is 0. */
export function every(ms: number, clock: Clock, call: () => void): () => void {
  let timer: TimerHandle;
  const arm = () => {
    if (ms > 0) timer = clock.setTimeout(() => (arm(), call()), ms);
  };
  arm();
  return () => clock.clearTimeout(timer);
}
