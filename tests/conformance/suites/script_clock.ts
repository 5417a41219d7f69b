/**
 * The clock of a scripted informer.
 * @module
 */

import type { Clock } from "@listwatch/cache";
import { realClock } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";

type TimerHandle = ReturnType<Clock["setTimeout"]>;

/** How far time moves at once, in milliseconds: no reflector takes that for a suspension of the program. */
const STRIDE_MS = 1_000;

/**
 * A clock that the steps `advance` move.
 *
 * A resync that is due fires after the jump, and sees the new time. For the rest of a reflector time passes
 * evenly: upstream's has no timers while it watches. The delay before a retry is none, and takes a real turn
 * instead of a step.
 */
export class ScriptClock implements Clock {
  readonly #clock = new FakeClock();
  readonly #resyncPeriods: ReadonlySet<number>;
  /** The resyncs that became due during the jump under way. */
  #due: Map<TimerHandle, () => void> | undefined;

  /** @param resyncPeriods Every time, in milliseconds, between two resyncs of the case. */
  constructor(resyncPeriods: Iterable<number>) {
    this.#resyncPeriods = new Set(resyncPeriods);
  }

  now(): number {
    return this.#clock.now();
  }

  monotonicNow(): number {
    return this.#clock.monotonicNow();
  }

  setTimeout(callback: () => void, ms: number): TimerHandle {
    if (ms === 0) return realClock.setTimeout(callback, 0);
    if (!this.#resyncPeriods.has(ms)) return this.#clock.setTimeout(callback, ms);
    const handle: TimerHandle = this.#clock.setTimeout(() => {
      if (this.#due === undefined) callback();
      else this.#due.set(handle, callback);
    }, ms);
    return handle;
  }

  clearTimeout(handle: TimerHandle): void {
    this.#due?.delete(handle);
    this.#clock.clearTimeout(handle);
  }

  /** Moves time forward. */
  async jump(ms: number): Promise<void> {
    const due = this.#due = new Map<TimerHandle, () => void>();
    for (let restMs = ms; restMs > 0; restMs -= STRIDE_MS) {
      // deno-lint-ignore no-await-in-loop -- one stride after the other
      await this.#clock.jump(Math.min(restMs, STRIDE_MS));
    }
    this.#due = undefined;
    for (const callback of due.values()) callback();
    await this.settle();
  }

  /** Lets pending tasks run. */
  async settle(): Promise<void> {
    await this.#clock.advance(0);
  }
}
