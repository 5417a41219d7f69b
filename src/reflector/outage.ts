/**
 * Outages of a server, as a reflector reports them.
 *
 * An outage begins with the first request that fails, and is over when a watch is open again: a list alone
 * does not end it, as a server that lets its clients list and not watch would otherwise be lost and found
 * each minute. It is logged once at each end. In between, only a failure of another kind is logged: that a
 * server which was away is back, and refuses, is news.
 *
 * @module
 */

import { failureInWords, networkErrorOf } from "../meta/request.ts";
import { isExpired, isTooManyRequests, statusErrorOf } from "../meta/status.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";

/**
 * A time in which a server cannot be read.
 *
 * @category Reflector
 */
export interface ReflectorOutage {
  /** When the first request failed, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /** How many have failed since. */
  readonly failedTries: number;
}

/** The server is away, or it is there and refuses. */
type Kind = "away" | "refuses";

/**
 * A request that failed.
 *
 * @category Reflector
 */
export interface FailedTry {
  /** What it failed with: a `StatusError` or a `NetworkError`, or an error that has one among its causes. */
  readonly error: Error;
  /** How many have failed in this outage: this one and those before it. */
  readonly failedTries: number;
}

/** Follows the outages of one reflector's server, and writes the lines about them. */
export class OutageReporter {
  readonly #clock: Clock;
  readonly #warn: (text: string) => void;
  #outage: ReflectorOutage | undefined;
  #startMs = 0;
  #last: Error | undefined;
  readonly #reported = new Set<Kind>();

  constructor(clock: Clock, warn: (text: string) => void) {
    this.#clock = clock;
    this.#warn = warn;
  }

  /** The present outage. */
  get outage(): ReflectorOutage | undefined {
    return this.#outage;
  }

  /** How long it has lasted, in milliseconds; 0 where there is none. */
  get lastedMs(): number {
    return this.#outage === undefined ? 0 : monotonicNow(this.#clock) - this.#startMs;
  }

  /** What the last request failed with, during an outage. */
  get lastTry(): FailedTry | undefined {
    if (this.#outage === undefined || this.#last === undefined) return undefined;
    return { error: this.#last, failedTries: this.#outage.failedTries };
  }

  /**
   * A request failed. A resourceVersion that expired is no outage: the server is well, and waits for a list.
   */
  failed(error: Error): void {
    if (isExpired(error)) return;
    if (this.#outage === undefined) {
      this.#outage = { sinceTimeMs: this.#clock.now(), failedTries: 0 };
      this.#startMs = monotonicNow(this.#clock);
    }
    this.#outage = { ...this.#outage, failedTries: this.#outage.failedTries + 1 };
    this.#last = error;
  }

  /**
   * The next try comes after so many milliseconds, if it is known: time for the line about the failure before
   * it.
   */
  waits(delayMs: number | undefined): void {
    const error = this.#last;
    if (this.#outage === undefined || error === undefined) return;
    const kind = kindOf(error);
    if (this.#reported.has(kind)) return;
    this.#reported.add(kind);
    const what = kind === "away" ? "lost the server" : "the server refuses";
    const next = delayMs === undefined
      ? ""
      : `; next try in ${inSeconds(delayMs)}, and so on until it is back`;
    this.#warn(`${what}: ${failureInWords(error)}${next}`);
  }

  /** A watch is open. */
  over(): void {
    if (this.#outage === undefined) return;
    const { failedTries } = this.#outage;
    const { lastedMs } = this;
    this.#outage = undefined;
    this.#last = undefined;
    const wasReported = this.#reported.size > 0;
    this.#reported.clear();
    if (!wasReported) return;
    const tries = failedTries === 1 ? "1 failed try" : `${failedTries} failed tries`;
    this.#warn(`the server is back after ${inSeconds(lastedMs)} and ${tries}`);
  }
}

function kindOf(error: Error): Kind {
  if (networkErrorOf(error) !== undefined || isTooManyRequests(error)) return "away";
  return (statusErrorOf(error)?.httpStatus ?? 0) >= 500 ? "away" : "refuses";
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
