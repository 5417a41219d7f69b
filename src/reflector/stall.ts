/**
 * Time that passes without the program: a frozen isolate, a suspended computer, a process that was stopped.
 *
 * Two clocks tell of it, and neither is enough. Where the monotonic clock goes on meanwhile (a stopped process, a frozen
 * isolate), timers fire long after they were due. Where it stands still (a suspended computer with Linux or macOS),
 * timers notice nothing, but the wall clock has leapt forward against it. A wall clock that somebody sets forward looks
 * the same; one that is set back looks like nothing, and is none of our business.
 *
 * What follows:
 *
 * - **Age** ({@linkcode Contact}): the larger of what both clocks say has passed since the server was heard. Worked out
 *   when somebody asks, by no timer: who asks a program that was frozen is told the truth in the first turn. A wall clock
 *   that is set back makes nothing young; one that is set forward makes a copy look old until the next contact, within
 *   a minute where bookmarks come.
 * - **Silence** ({@linkcode Watchdog}): a limit that is found to be over long after it was due says nothing about the
 *   other end. It begins anew.
 * - **An open watch** ({@linkcode StallDetector}): its connection has probably died, and nobody said so. It is opened
 *   again at once from where it was, which costs one request: no list, no delay, no failed try. What the old connection
 *   still held back is dropped unread: it is older than the stall, and would pass for news of the server.
 *
 * @module
 */

import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";

/** From so long on, what is found late was not merely held up by other work. */
export const STALL_MS = 30_000;
/** How often a watch that is open is looked at. */
const LOOK_MS = 15_000;

/** When the server was last heard of. */
export class Contact {
  readonly #clock: Clock;
  readonly #wallMs: number;
  readonly #monotonicMs: number;

  /** It was heard of now. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wallMs = clock.now();
    this.#monotonicMs = monotonicNow(clock);
  }

  /** When that was, in milliseconds since the epoch: for people. */
  get timeMs(): number {
    return this.#wallMs;
  }

  /** How many milliseconds ago that was, at the time of asking: at least what one of the two clocks says. */
  get ageMs(): number {
    const monotonicMs = monotonicNow(this.#clock) - this.#monotonicMs;
    return Math.ceil(Math.max(monotonicMs, this.#clock.now() - this.#wallMs));
  }
}

/** Looks now and then whether the program stood still since it last looked. */
export class StallDetector {
  readonly #clock: Clock;
  readonly #onStall: (ms: number) => void;
  #wallMs: number;
  #monotonicMs: number;
  #timer: TimerHandle;
  #isOver = false;

  /** Starts to look. Calls back once, with how long the program stood still. */
  constructor(clock: Clock, onStall: (ms: number) => void) {
    this.#clock = clock;
    this.#onStall = onStall;
    this.#wallMs = clock.now();
    this.#monotonicMs = monotonicNow(clock);
    this.#arm();
  }

  /** Looks now. Returns whether the program stood still; then it is over. */
  look(): boolean {
    if (this.#isOver) return false;
    const wallMs = this.#clock.now();
    const monotonicMs = monotonicNow(this.#clock);
    const passedMs = monotonicMs - this.#monotonicMs;
    const leapMs = wallMs - this.#wallMs - passedMs;
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    const stalledMs = Math.max(passedMs - LOOK_MS, leapMs);
    if (stalledMs < STALL_MS) return false;
    this.stop();
    this.#onStall(stalledMs);
    return true;
  }

  /** Stops to look. */
  stop(): void {
    this.#isOver = true;
    this.#clock.clearTimeout(this.#timer);
  }

  #arm(): void {
    this.#timer = this.#clock.setTimeout(() => {
      if (!this.look()) this.#arm();
    }, LOOK_MS);
  }
}
