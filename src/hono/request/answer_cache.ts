/** A cache of access decisions with a time to live. */

import { newStatus, StatusError } from "../../meta/status.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";

export interface AnswerCacheOptions {
  readonly clock: Clock;
  readonly allowedTtlMs: number;
  readonly deniedTtlMs: number;
  /** How many of each are kept; those that were not used for the longest time go first. */
  readonly maxEntries: number;
  readonly maxInFlight: number;
  /** How many wait for that; further ones are refused with a `StatusError` of 429. */
  readonly maxWaiting: number;
  /** How many of them may be of one client. */
  readonly maxWaitingPerClient: number;
  readonly timeoutMs: number;
}

export interface Question<T> {
  readonly key: string;
  readonly client: string;
  ask(signal: AbortSignal): Promise<Answer<T>>;
}

export interface Answer<T> {
  readonly value: T;
  readonly isYes: boolean;
}

interface Kept<T> {
  readonly value: T;
  readonly untilMs: number;
}

// The part of what is in flight that only questions which had a yes before may take.
const RESERVED = 1 / 4;

/**
 * Asks each question once at a time, few at a time, and keeps the answers. Failures are not kept.
 *
 * A question whose last answer was yes goes first, and is never refused: a client that sends new questions
 * without end delays no reader that is known. The others wait for their turn by client, and the number of
 * those is limited.
 */
export class AnswerCache<T> {
  readonly #options: AnswerCacheOptions;
  /** Also those that are too old: what had a yes before is known. */
  readonly #yes = new Map<string, Kept<T>>();
  readonly #no = new Map<string, Kept<T>>();
  readonly #pending = new Map<string, Promise<T>>();
  readonly #known = new Deque<() => void>();
  /** The others by client; the one whose turn is next comes first. */
  readonly #others = new Map<string, Deque<() => void>>();
  #otherCount = 0;
  #inFlight = 0;

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
  }

  /** The answer to a question: the known one, the one in flight, or a new one. */
  get(question: Question<T>): Promise<T> {
    const { key } = question;
    const nowMs = monotonicNow(this.#options.clock);
    for (const answers of [this.#yes, this.#no]) {
      const known = answers.get(key);
      if (known === undefined) continue;
      keep(answers, key, known, this.#options.maxEntries);
      if (known.untilMs > nowMs) return Promise.resolve(known.value);
    }
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const asking = this.#ask(question).finally(() => this.#pending.delete(key));
    this.#pending.set(key, asking);
    return asking;
  }

  async #ask({ key, client, ask }: Question<T>): Promise<T> {
    const { clock, timeoutMs, allowedTtlMs, deniedTtlMs, maxEntries } = this.#options;
    await (this.#yes.has(key) ? this.#wait(this.#known) : this.#enter(client));
    try {
      const startMs = monotonicNow(clock);
      const { value, isYes } = await withTimeLimit(ask, {
        ms: timeoutMs,
        newError: () => new Error(`the API server has not answered within ${timeoutMs} ms`),
        clock,
      });
      const [answers, others] = isYes ? [this.#yes, this.#no] : [this.#no, this.#yes];
      others.delete(key);
      keep(answers, key, { value, untilMs: startMs + (isYes ? allowedTtlMs : deniedTtlMs) }, maxEntries);
      return value;
    } finally {
      this.#inFlight--;
      this.#admit();
    }
  }

  #enter(client: string): Promise<void> {
    const { maxWaiting, maxWaitingPerClient } = this.#options;
    const own = this.#others.get(client) ?? new Deque();
    const isFull = this.#otherCount >= maxWaiting || own.length >= maxWaitingPerClient;
    if (isFull && !this.#hasRoom) {
      const text = "too many questions about permissions wait for the API server; try again in a moment";
      throw new StatusError(newStatus(429, "TooManyRequests", text, { retryAfterSeconds: 1 }));
    }
    this.#others.set(client, own);
    this.#otherCount++;
    return this.#wait(own);
  }

  #wait(queue: Deque<() => void>): Promise<void> {
    const turn = new Promise<void>((resolve) => queue.push(resolve));
    this.#admit();
    return turn;
  }

  /** Whether a question that is not known may be in flight. */
  get #hasRoom(): boolean {
    const { maxInFlight } = this.#options;
    return this.#inFlight < maxInFlight - Math.floor(maxInFlight * RESERVED);
  }

  #admit(): void {
    while (this.#inFlight < this.#options.maxInFlight) {
      const next = this.#known.shift() ?? (this.#hasRoom ? this.#nextOther() : undefined);
      if (next === undefined) return;
      this.#inFlight++;
      next();
    }
  }

  #nextOther(): (() => void) | undefined {
    for (const [client, queue] of this.#others) {
      this.#others.delete(client);
      // Its next turn is after those of all others.
      if (queue.length > 1) this.#others.set(client, queue);
      this.#otherCount--;
      return queue.shift();
    }
    return undefined;
  }
}

/** Keeps an answer as the one that was used last. */
function keep<T>(answers: Map<string, Kept<T>>, key: string, answer: Kept<T>, maxEntries: number): void {
  answers.delete(key);
  answers.set(key, answer);
  for (const oldest of answers.keys()) {
    if (answers.size <= maxEntries) return;
    answers.delete(oldest);
  }
}
