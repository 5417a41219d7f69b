/** Turns of the event loop: how much work is done in one, and who has the next. */

import { type Clock, monotonicNow, nextTurn, realClock } from "./clock.ts";
import { Deque } from "./collections.ts";

// As many connections are accepted between two turns of work; fewer where each has much to parse: a turn of
// work is 2 ms, and a flood of requests would leave lists nothing.
const MOST_ARRIVALS = 16;
const MOST_ARRIVING_MS = 8;

let arrivals = 0;

/** A client has connected, or has sent something that waits for others like it. */
export function arrived(): void {
  arrivals++;
}

/**
 * Resolves in a later turn of the event loop: while turns bring arrivals, after several of them. libuv
 * accepts one connection in a turn, so where each turn has work, a crowd that connects would wait for long.
 */
export async function giveWay(): Promise<void> {
  const startMs = monotonicNow(realClock);
  for (let turn = 0; turn < MOST_ARRIVALS; turn++) {
    const before = arrivals;
    await nextTurn();
    if (arrivals === before || monotonicNow(realClock) - startMs >= MOST_ARRIVING_MS) return;
  }
}

/** Hands out turns of the event loop. */
export interface Turns {
  /** Whether others wait for theirs, or the work of this one is done. */
  readonly isBusy: boolean;
  /** Resolves when the caller has a turn. */
  next(): Promise<void>;
  /** Records work done in this turn. */
  spend?(units: number): void;
}

/**
 * Gives each task a turn of the event loop, one after the other, so that together they delay timers and the
 * network by the work of one.
 */
export class TurnQueue implements Turns {
  readonly #waiting = new Deque<() => void>();
  #isTurning = false;

  get isBusy(): boolean {
    return this.#isTurning;
  }

  /** Resolves in a later turn of the event loop, after every earlier caller had one. */
  next(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (!this.#isTurning) this.#turn();
    return turn;
  }

  async #turn(): Promise<void> {
    this.#isTurning = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await giveWay();
      next();
    }
    this.#isTurning = false;
  }
}

const NEXT_TURN: Turns = { isBusy: false, next: giveWay };

/** About how many units a millisecond has, where work is counted in units of 20 nanoseconds. */
export const UNITS_PER_MS = 50_000;

/** The most work for readers in one turn, in such units. */
export const TURN_UNITS: number = 2 * UNITS_PER_MS;

/** The cost of decoding an object, in such units. */
export const OPEN_UNITS = 1_200;

// The cost of encoding it, and of handing it to the socket.
const UNITS_PER_CHARACTER = 0.5;

interface PacerOptions {
  /** The most work of a turn, in any unit. */
  readonly units: number;
  /**
   * The longest turn, in milliseconds of the clock. Without one, work is counted and not timed: the same work
   * gives way at the same places with every clock.
   */
  readonly ms?: number;
  readonly clock?: Clock;
  /** The turns for which the work waits; by default the next ones of the event loop. */
  readonly turns?: Turns;
  /** Whether the one for whom it is done has left. */
  readonly hasLeft?: () => boolean;
}

/**
 * Measures work, so that other work gets a turn: after each step of it call {@linkcode Pacer.spend}, and when
 * that says so, await {@linkcode Pacer.rest}. While steps are short, one of eight reads the clock.
 */
export class Pacer {
  readonly #options: PacerOptions;
  readonly #turns: Turns;
  #units = 0;
  #startMs = 0;
  #nowMs = 0;
  /** Steps until the clock is read again. */
  #unread = 1;

  constructor(options: PacerOptions) {
    this.#options = options;
    this.#turns = options.turns ?? NEXT_TURN;
    this.begin();
  }

  begin(): void {
    this.#units = 0;
    this.#readClock();
  }

  /** Records work. Returns whether it is time for {@linkcode Pacer.rest}. */
  spend(units = 1): boolean {
    this.#units += units;
    this.#turns.spend?.(units);
    const { clock, ms } = this.#options;
    if (this.#units >= this.#options.units) return true;
    if (clock === undefined || ms === undefined || --this.#unread > 0) return false;
    const nowMs = monotonicNow(clock);
    this.#unread = (nowMs - this.#nowMs) * STEPS_PER_READ < ms ? STEPS_PER_READ : 1;
    this.#nowMs = nowMs;
    return nowMs - this.#startMs >= ms;
  }

  /** Text was made for a reader, where work is counted in units of 20 nanoseconds. */
  spendText(length: number): void {
    this.spend(length * UNITS_PER_CHARACTER);
  }

  /** Whether it is time for {@linkcode Pacer.rest}: all units are spent, or others wait for their turn. */
  get isDue(): boolean {
    return this.#units >= this.#options.units || this.#turns.isBusy;
  }

  /** Whether the one for whom the work is done has left: it may end. */
  get hasLeft(): boolean {
    return this.#options.hasLeft?.() === true;
  }

  /** Gives other work a turn, and begins another one. */
  async rest(): Promise<void> {
    this.#units = 0; // others who share it work meanwhile
    await this.#turns.next();
    this.#readClock();
  }

  #readClock(): void {
    this.#unread = 1;
    if (this.#options.clock !== undefined) this.#startMs = this.#nowMs = monotonicNow(this.#options.clock);
  }
}

const STEPS_PER_READ = 8;

/** Work that pauses after each step. It is finished when the generator is. */
export type Steps = Generator<undefined, void, undefined>;

/** How many objects of a list are one step, if each costs a few microseconds at most. */
export const STEP_OBJECTS = 128;

/** How much work on objects is done per turn. */
export interface Pace {
  /**
   * At most this many objects; for runtimes whose clock is frozen while code runs, as in deployed Workers.
   */
  readonly turnObjects: number;
  readonly turnMs: number;
}

/** Makes a pacer that counts objects. */
export function newObjectPacer({ turnObjects, turnMs }: Pace, clock: Clock, turns?: Turns): Pacer {
  return new Pacer({ units: turnObjects, ms: turnMs, clock, ...(turns && { turns }) });
}

/** How many objects are one step, so that a turn has whole steps. */
export function stepObjectsOf({ turnObjects }: Pace): number {
  return Math.min(STEP_OBJECTS, turnObjects);
}

/** Does the remaining work in this turn. */
export function finish(steps: Steps): void {
  while (!steps.next().done);
}

/**
 * Does the work, and gives other tasks a turn after each `turnMs`, or after the steps of `turnObjects`
 * objects. Once the signal is aborted it does the rest in one turn, so that no work is left half done.
 */
export async function finishInTurns(
  steps: Steps,
  options: Pace & { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const pacer = newObjectPacer(options, options.clock);
  const stepObjects = stepObjectsOf(options);
  while (!steps.next().done) {
    if (pacer.spend(stepObjects) && !options.signal?.aborted) await pacer.rest();
  }
}
