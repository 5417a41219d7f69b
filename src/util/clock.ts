/** Clocks: the only file of the library that uses timers and the system clock. */

/**
 * What {@linkcode Clock.setTimeout} returns; opaque, an argument of {@linkcode Clock.clearTimeout}.
 *
 * @category Tools
 */
export type TimerHandle = unknown;

/**
 * A source of time. Every part that waits or measures accepts one, so that a test can control time.
 *
 * It has two clocks, as operating systems have. The wall clock is for timestamps; it may be set back or
 * forward at any time. The monotonic clock measures durations: timeouts, delays, ages.
 *
 * Mirrors `k8s.io/utils/clock`, where each `time.Time` carries both readings.
 *
 * @category Tools
 */
export interface Clock {
  /** The wall clock: milliseconds since the Unix epoch. For timestamps. */
  now(): number;
  /**
   * The monotonic clock: milliseconds since a fixed moment, never decreasing. Only differences have a
   * meaning. A clock without it measures durations by {@linkcode Clock.now}.
   */
  monotonicNow?(): number;
  /** Calls `callback` once, after at least `ms` milliseconds; never in the same turn. */
  setTimeout(callback: () => void, ms: number): TimerHandle;
  /** Cancels a timer; a timer that has fired, or an unknown handle, is ignored. */
  clearTimeout(handle: TimerHandle): void;
}

// Longer delays overflow the 32-bit timers of every runtime and would fire at once.
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The system's clock and timers.
 *
 * @category Tools
 */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(Math.max(ms, 0), MAX_TIMER_MS)),
  clearTimeout: (handle) => clearTimeout(handle as number),
};

/**
 * The monotonic time of a clock, in milliseconds, for durations; its wall time if it has no monotonic clock.
 */
export function monotonicNow(clock: Clock): number {
  return clock.monotonicNow === undefined ? clock.now() : clock.monotonicNow();
}

/** A time, by both clocks. */
export interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** The time now, by both clocks. */
export function momentOf(clock: Clock): Moment {
  return { wallMs: clock.now(), monotonicMs: monotonicNow(clock) };
}

/** How many milliseconds ago a moment was: at least what one of the two clocks says. */
export function ageMs(moment: Moment, clock: Clock): number {
  const monotonicMs = monotonicNow(clock) - moment.monotonicMs;
  return Math.ceil(Math.max(monotonicMs, clock.now() - moment.wallMs));
}

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
 * {@linkcode FakeClock.setWallClock} sets one of them.
 *
 * Mirrors `k8s.io/utils/clock/testing.FakeClock`.
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

  /** The wall clock, in milliseconds. */
  now(): number {
    return this.#nowMs + this.#wallAheadMs;
  }

  /** The monotonic clock, in milliseconds. */
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
    // Where the sum is rounded down, a callback that waits for the rest would do so at one instant for ever.
    if (dueMs - this.#nowMs < ms) dueMs *= 1 + Number.EPSILON;
    this.#timers.set(id, { id, dueMs, callback });
    return id;
  }

  /** Cancels a timer. */
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

/**
 * Gives other tasks a turn: resolves in a later turn of the event loop, independent of any clock. For long
 * synchronous work that must not delay timers and the network.
 */
export async function nextTurn(): Promise<void> {
  turnsAhead++;
  await (sleepsForNetwork ? turnWithNetwork() : laterTurn());
  turnsAhead--;
}

/** How many tasks wait in {@linkcode nextTurn}. */
let turnsAhead = 0;

let sleepsForNetwork = false;

/**
 * From now on turns that follow each other let the network through: for processes with a server. Deno looks at
 * its sockets when it has nothing else to do, and else in each 61st turn: with some milliseconds of work in each
 * that is half a second (`event_interval` in https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html).
 */
export function letNetworkThrough(): void {
  sleepsForNetwork = "Deno" in globalThis;
}

// A sleep lasts a millisecond.
const SLEEP_EVERY_MS = 4;

/** The sleep that all tasks share: it is none while one of them is awake. */
let sleep: Promise<void> | undefined;
let sleptMs = 0;

function turnWithNetwork(): Promise<void> {
  if (sleep !== undefined) return sleep;
  if (performance.now() - sleptMs < SLEEP_EVERY_MS) return laterTurn();
  return sleep = new Promise<void>((resolve) => {
    setTimeout(() => {
      sleep = undefined;
      sleptMs = performance.now();
      resolve();
    }, 0);
  });
}

/** Resolves in the next turn of the event loop, whatever waits in the network. */
export function laterTurn(): Promise<void> {
  return new Promise<void>((resolve) => {
    // A timer costs a millisecond even when it is due at once; Workers have no alternative.
    const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };
    if (setImmediate === undefined) setTimeout(resolve, 0);
    else setImmediate(resolve);
  });
}

/**
 * Runs every task that is ready. It waits for macrotasks, so that streams and fetch in the same process
 * advance, and for enough of them that long work in steps is finished.
 */
export async function settle(): Promise<void> {
  for (let i = 0; i < SETTLING_TURNS || (turnsAhead > 0 && i < MOST_TURNS); i++) await laterTurn();
}

/** A request over a socket of this process takes several turns on its way through the runtime. */
const SETTLING_TURNS = 8;

/** Other work in the process may be endless. */
const MOST_TURNS = 10_000;
