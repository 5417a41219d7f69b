/**
 * A cache of access decisions with a time to live.
 * @module
 */

import { newStatus, StatusError } from "../../meta/status.ts";
import { abortable, withTimeLimit } from "../../util/abort.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque } from "../../util/deque.ts";

/** Options of {@linkcode AnswerCache}. */
export interface AnswerCacheOptions {
  readonly clock: Clock;
  /** How many answers are kept; those that were not used for the longest time go first. */
  readonly maxEntries: number;
  /** How many questions are in flight at a time. */
  readonly maxInFlight: number;
  /** How many wait for that; further ones are refused with a `StatusError` of 429. */
  readonly maxWaiting: number;
  /** How long a question may take. */
  readonly timeoutMs: number;
}

/** An answer, and how long it is cached. */
export interface Answer<T> {
  readonly value: T;
  readonly ttlMs: number;
}

/** Asks each question once at a time, few at a time, and keeps the answers. Failures are not kept. */
export class AnswerCache<T> {
  readonly #options: AnswerCacheOptions;
  /** The least recently used first. */
  readonly #answers = new Map<string, { readonly value: T; readonly untilMs: number }>();
  readonly #pending = new Map<string, Promise<T>>();
  readonly #waiting = new Deque<() => void>();
  #inFlight = 0;

  /** Makes an empty cache. */
  constructor(options: AnswerCacheOptions) {
    this.#options = options;
  }

  /** The answer to a question: the known one, the one in flight, or a new one. */
  get(key: string, ask: (signal: AbortSignal) => Promise<Answer<T>>): Promise<T> {
    const known = this.#answers.get(key);
    if (known !== undefined) {
      this.#answers.delete(key);
      if (known.untilMs > monotonicNow(this.#options.clock)) {
        this.#answers.set(key, known);
        return Promise.resolve(known.value);
      }
    }
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const asking = this.#ask(key, ask).finally(() => this.#pending.delete(key));
    this.#pending.set(key, asking);
    return asking;
  }

  async #ask(key: string, ask: (signal: AbortSignal) => Promise<Answer<T>>): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    await this.#enter();
    try {
      const startMs = monotonicNow(clock);
      const { value, ttlMs } = await withTimeLimit((signal) => abortable(ask(signal), signal), {
        ms: timeoutMs,
        newError: () => new Error(`the API server has not answered within ${timeoutMs} ms`),
        clock,
      });
      this.#keep(key, { value, untilMs: startMs + ttlMs });
      return value;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inFlight--;
      else next(); // in the place of this one
    }
  }

  async #enter(): Promise<void> {
    const { maxInFlight, maxWaiting } = this.#options;
    if (this.#inFlight >= maxInFlight) {
      if (this.#waiting.length >= maxWaiting) {
        const text = "too many questions about permissions wait for the API server; try again in a moment";
        throw new StatusError(newStatus(429, "TooManyRequests", text, { retryAfterSeconds: 1 }));
      }
      return await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#inFlight++;
  }

  #keep(key: string, answer: { readonly value: T; readonly untilMs: number }): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= this.#options.maxEntries) return;
      this.#answers.delete(oldest);
    }
  }
}
