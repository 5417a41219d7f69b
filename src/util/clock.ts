/** Clocks: the only file of the library that uses timers and the system clock. */

/** The result of {@linkcode Clock.setTimeout}; opaque, an argument of {@linkcode Clock.clearTimeout}. */
export type TimerHandle = unknown;

/**
 * A source of time. Every part that waits or measures accepts one, so that a test can control time.
 *
 * The wall clock is for timestamps; it may be set back or forward at any time. The monotonic clock measures
 * durations: timeouts, delays, ages. Mirrors `k8s.io/utils/clock`.
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

/** The system's clock and timers. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(Math.max(ms, 0), MAX_TIMER_MS)),
  clearTimeout: (handle) => clearTimeout(handle as number),
};

/** The monotonic time of a clock, in milliseconds; its wall time if it has no monotonic clock. */
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

/** The time before a moment, by both clocks. */
export function before({ wallMs, monotonicMs }: Moment, ms: number): Moment {
  return { wallMs: wallMs - ms, monotonicMs: monotonicMs - ms };
}

/** Gives other tasks a turn: resolves in a later turn of the event loop, independent of any clock. */
export async function nextTurn(): Promise<void> {
  turnsAhead++;
  await turn();
  turnsAhead--;
}

/** How many tasks wait in {@linkcode nextTurn}. */
let turnsAhead = 0;

let turn: () => Promise<void> = laterTurn;

/**
 * Lets the network through between turns, from now on: for processes with a server. Deno looks at its sockets
 * when it has nothing else to do, and otherwise in each 61st turn: with milliseconds of work in each turn,
 * every half second (`event_interval` in https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html).
 */
export function letNetworkThrough(): void {
  if ("Deno" in globalThis) turn = turnWithNetwork;
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
    // A timer costs a millisecond even when it is due at once, four in a page; Workers have nothing else.
    const { setImmediate, scheduler } = globalThis as {
      readonly setImmediate?: (callback: () => void) => unknown;
      readonly scheduler?: { readonly postTask?: (callback: () => void) => unknown };
    };
    if (setImmediate !== undefined) setImmediate(resolve);
    else if (scheduler?.postTask !== undefined) scheduler.postTask(resolve);
    else setTimeout(resolve, 0);
  });
}

/** Runs every task that is ready. */
export async function settle(): Promise<void> {
  for (let i = 0; i < SETTLING_TURNS || (turnsAhead > 0 && i < MOST_TURNS); i++) {
    await laterTurn();
    if (loading.size === 0) continue;
    await Promise.allSettled(loading);
    i = 0;
  }
}

/** The imports for which {@linkcode settle} waits. */
const loading = new Set<Promise<unknown>>();

/** Waits for what no clock moves, as the loading of a module; {@linkcode settle} waits for it, too. */
export async function inRealTime<T>(work: Promise<T>): Promise<T> {
  loading.add(work);
  try {
    return await work;
  } finally {
    loading.delete(work);
  }
}

/** A request over a socket of this process takes several turns on its way through the runtime. */
const SETTLING_TURNS = 8;

/** The most turns to wait: other work in the process may be endless. */
const MOST_TURNS = 10_000;
