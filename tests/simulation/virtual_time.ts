/**
 * Time that moves only when everything due at this instant has run.
 * @module
 */

import type { Clock } from "@listwatch/cache";
import type { TimerHandle } from "@listwatch/cache/reflector";

interface Timer {
  dueMs: number;
  readonly order: number;
  readonly callback: () => void;
  readonly ofProgram: boolean;
  state: "set" | "fired" | "cleared";
}

const globals = globalThis as unknown as { setImmediate(callback: () => void): unknown };
const immediate = globals.setImmediate;
let isInstalled = false;
/**
 * How many turns of the event loop the library waits for: counted, so that settling waits for those as well.
 */
let turns = 0;
/** The time of the world that runs: one does at a time. */
let present: VirtualTime | undefined;
/** More timers than this at one instant do not come to an end. */
const MOST_AT_ONCE = 100_000;

/** Once for all worlds: the engine discards compiled code when a global function changes. */
function countTurns(): void {
  if (isInstalled) return;
  isInstalled = true;
  globals.setImmediate = (callback) => {
    if (present !== undefined && present.turnMs > 0) return present.schedule(callback, present.turnMs);
    turns++;
    return immediate.call(globalThis, () => {
      turns--;
      callback();
    });
  };
}

/**
 * The clock of a simulated world. The program under test takes it as its `Clock`; the
 * world itself uses {@linkcode VirtualTime.schedule}, so that timers left behind by the
 * program can be distinguished from the world's own.
 */
export class VirtualTime implements Clock {
  #nowMs: number;
  #wallAheadMs = 0;
  readonly #startMs: number;
  #order = 0;
  #programTimers = 0;
  /** For how long the monotonic clock was suspended so far. */
  #suspendedMs = 0;
  #wokeMs = 0;
  // A binary heap by due time, then by the order in which they were set.
  readonly #heap: Timer[] = [];

  /** How long a turn takes that the library gives to others. */
  readonly turnMs: number;

  constructor(startMs: number, { turnMs = 0 }: { readonly turnMs?: number } = {}) {
    this.turnMs = turnMs;
    this.#nowMs = this.#startMs = startMs;
    countTurns();
    present = this;
  }

  /** The wall clock. */
  now(): number {
    return this.#nowMs + this.#wallAheadMs;
  }

  /** The monotonic clock. It starts at another value than the wall clock, so that mixing them up shows. */
  monotonicNow(): number {
    return this.#nowMs - this.#startMs - this.#suspendedMs;
  }

  /** Sets the program's wall clock forward, or back. */
  shiftWallClock(byMs: number): void {
    this.#wallAheadMs += byMs;
  }

  /**
   * Suspends the program: nothing fires meanwhile, and everything due fires right after. The monotonic clock
   * continues, as in a frozen isolate, or stops too (`stops`), as while a computer sleeps: then the program's
   * timers are unaffected, and the wall clock has jumped forward.
   */
  suspend(ms: number, { stops }: { readonly stops: boolean }): void {
    this.#nowMs += ms;
    this.#wokeMs = this.#nowMs;
    if (!stops) return;
    this.#suspendedMs += ms;
    const timers = this.#heap.splice(0);
    for (const timer of timers) {
      if (timer.ofProgram) timer.dueMs += ms;
      this.#push(timer);
    }
  }

  /** When the program last resumed, in the world's time; 0 if it was never suspended. */
  get wokeMs(): number {
    return this.#wokeMs;
  }

  /** For how long the monotonic clock was suspended so far. */
  get suspendedMs(): number {
    return this.#suspendedMs;
  }

  /** The world's own time, which no fault changes. */
  worldNow(): number {
    return this.#nowMs;
  }

  setTimeout(callback: () => void, ms: number): TimerHandle {
    this.#programTimers++;
    return this.#set(callback, ms, true);
  }

  clearTimeout(handle: TimerHandle): void {
    const timer = handle as Timer | undefined;
    if (timer?.state !== "set") return;
    timer.state = "cleared";
    if (timer.ofProgram) this.#programTimers--;
  }

  /** A timer of the world. */
  schedule(callback: () => void, ms: number): TimerHandle {
    return this.#set(callback, ms, false);
  }

  /** How many timers the program has set that have not fired. */
  get programTimers(): number {
    return this.#programTimers;
  }

  /** Runs everything that can run without time passing. */
  async settle(): Promise<void> {
    do {
      // A macrotask: every microtask that is queued, and every one those queue, runs before it.
      await new Promise<void>((resolve) => immediate.call(globalThis, resolve));
    } while (turns > 0);
  }

  /**
   * Moves time forward timer by timer up to `untilMs`, or until `done` says so.
   *
   * @param after Called after each instant has settled.
   * @returns Whether `done` was reached.
   */
  async run(untilMs: number, after: () => void, done: () => boolean = () => false): Promise<boolean> {
    await this.settle();
    after();
    if (done()) return true;
    let atOnce = 0;
    for (let timer = this.#next(untilMs); timer !== undefined; timer = this.#next(untilMs)) {
      atOnce = timer.dueMs > this.#nowMs ? 0 : atOnce + 1;
      if (atOnce > MOST_AT_ONCE) throw new Error("no time passes: timers set timers of this instant");
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      timer.state = "fired";
      if (timer.ofProgram) this.#programTimers--;
      timer.callback();
      await this.settle();
      after();
      if (done()) return true;
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return false;
  }

  #set(callback: () => void, ms: number, ofProgram: boolean): Timer {
    let dueMs = this.#nowMs + Math.max(ms, 0);
    // What fires too early, as the sum is rounded, would wait for the rest at the same instant for ever.
    if (dueMs - this.#nowMs < ms) dueMs *= 1 + Number.EPSILON;
    const timer: Timer = { dueMs, order: this.#order++, callback, ofProgram, state: "set" };
    this.#push(timer);
    return timer;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(timer, heap[parent])) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = timer;
  }

  /** Takes out the next timer that is due by `untilMs`. */
  #next(untilMs: number): Timer | undefined {
    const heap = this.#heap;
    while (heap.length > 0) {
      const first = heap[0];
      if (first.state === "set" && first.dueMs > untilMs) return undefined;
      const last = heap.pop()!;
      if (heap.length > 0) sink(heap, last);
      if (first.state === "set") return first;
    }
    return undefined;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}

/** Puts a timer in the place of the first one, and restores the order. */
function sink(heap: Timer[], timer: Timer): void {
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++;
    if (!isBefore(heap[child], timer)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = timer;
}
