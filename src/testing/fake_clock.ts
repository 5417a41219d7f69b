import { type Clock, settle, type TimerHandle } from "../util/clock.ts";

interface FakeTimer {
  readonly id: number;
  readonly dueMs: number;
  readonly callback: () => void;
}

/**
 * A clock that only a test moves.
 *
 * Timers fire in the order of their due times (ties: in the order they were set), and see `now()` equal to
 * their due time; tasks they start run before the next timer fires. Its two clocks move together, until
 * {@linkcode FakeClock.setWallClock} sets one of them. Mirrors `k8s.io/utils/clock/testing.FakeClock`.
 *
 * @example
 * ```ts
 * import { FakeClock } from "@listwatch/cache/testing";
 * const clock = new FakeClock();
 * let rang = false;
 * clock.setTimeout(() => (rang = true), 1_000);
 * await clock.advance(999);
 * console.log(rang, clock.pendingTimers); // false 1
 * await clock.advance(1);
 * console.log(rang, clock.pendingTimers); // true 0
 * clock.setTimeout(() => (rang = false), 500);
 * console.log(await clock.until(() => !rang)); // 500
 * ```
 */
export class FakeClock implements Clock {
  /** The monotonic time, by which timers fire. */
  #nowMs: number;
  /** How far the wall clock is ahead of it. */
  #wallAheadMs = 0;
  #nextId = 1;
  readonly #timers = new Map<number, FakeTimer>();

  /** @param startMs The first time of both clocks; 0 by default. */
  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs + this.#wallAheadMs;
  }

  monotonicNow(): number {
    return this.#nowMs;
  }

  /**
   * Sets the wall clock, forward or back, as NTP, an administrator or a resume from suspension does. The
   * monotonic clock and the timers are not affected.
   */
  setWallClock(nowMs: number): void {
    this.#wallAheadMs = nowMs - this.#nowMs;
  }

  /** Sets a timer; it fires during {@linkcode FakeClock.advance} or {@linkcode FakeClock.jump} only. */
  setTimeout(callback: () => void, ms: number): TimerHandle {
    const id = this.#nextId++;
    let dueMs = this.#nowMs + Math.max(ms, 0);
    // If the sum is rounded down, a callback that waits for the rest would do so at one instant for ever.
    if (dueMs - this.#nowMs < ms) dueMs *= 1 + Number.EPSILON;
    this.#timers.set(id, { id, dueMs, callback });
    return id;
  }

  clearTimeout(handle: TimerHandle): void {
    this.#timers.delete(handle as number);
  }

  /** How many timers are pending: 0 after a clean stop. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, on the monotonic clock; `undefined` if there is none. */
  get nextTimerMs(): number | undefined {
    return this.#earliest()?.dueMs;
  }

  /**
   * Moves time forward by `ms`, firing every timer on the way at its own due time, and lets pending tasks run
   * before, between and after them.
   */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#nowMs + ms;
    await settle();
    for (let timer = this.#earliest(); timer && timer.dueMs <= targetMs; timer = this.#earliest()) {
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      this.#timers.delete(timer.id);
      timer.callback();
      await settle();
    }
    this.#nowMs = targetMs;
    await settle();
  }

  /**
   * Moves time forward, from timer to timer, until the condition holds; at once if it does.
   * @returns How many milliseconds that took.
   * @throws {Error} The condition, which is in the message, does not hold within `withinMs` (a minute).
   */
  async until(condition: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<number> {
    const startMs = this.#nowMs;
    for (;;) {
      await settle();
      if (await condition()) return this.#nowMs - startMs;
      const dueMs = this.#earliest()?.dueMs ?? Infinity;
      if (dueMs - startMs > withinMs) throw new Error(`Not within ${withinMs} ms of the clock: ${condition}`);
      await this.advance(Math.max(dueMs - this.#nowMs, 0));
    }
  }

  /** Moves time forward by `ms` in one step: timers that are due fire after it and see the new time. */
  async jump(ms: number): Promise<void> {
    this.#nowMs += ms;
    await this.advance(0);
  }

  #earliest(): FakeTimer | undefined {
    let found: FakeTimer | undefined;
    for (const timer of this.#timers.values()) {
      if (found === undefined || timer.dueMs < found.dueMs) found = timer;
    }
    return found;
  }
}
