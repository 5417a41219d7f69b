import { type Clock, monotonicNow } from "../util/clock.ts";
import { Deque } from "../util/collections.ts";
import type { QueueOrder } from "../workqueue/work_queue.ts";
import { NetworkError } from "../meta/request.ts";
import { isConflict, statusErrorOf } from "../meta/status.ts";
import { itemExponentialFailureRateLimiter, type RateLimiter } from "../workqueue/rate_limiters.ts";

/** Why a key was added: something has changed, or everything is looked at again. */
export type Urgency = "change" | "resync";

interface Entry {
  readonly key: string;
  readonly urgency: Urgency;
  readonly addedMs: number;
}

// How far a change is ahead of a resync that was added before it.
const AHEAD_MS = 10_000;

/**
 * First in, first out, but changes come before resyncs (and the adds of an initial list) that were added up
 * to ten seconds before them: a waiting key grows older, and is ahead of every newer change then.
 *
 * As controller-runtime's priority queue, without its starvation
 * (https://github.com/kubernetes-sigs/controller-runtime/issues/3496).
 */
export class WorkOrder implements QueueOrder<string> {
  readonly #clock: Clock;
  readonly #lanes = { change: new Deque<Entry>(), resync: new Deque<Entry>() };
  /** The waiting entries. An entry of a lane that is not in here was moved to the other lane. */
  readonly #entries = new Map<string, Entry>();
  /** The urgency of adds that have not come to `touch` or `push` yet, by key: a change, if one is. */
  readonly #expected = new Map<string, Urgency>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get length(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Says how urgent a key is that is added to the queue next. */
  expect(key: string, urgency: Urgency): void {
    if (urgency === "change" || !this.#expected.has(key)) this.#expected.set(key, urgency);
  }

  /** A key that waits was added again; a change takes it to the changes. */
  touch(key: string): void {
    const isChange = this.#takeExpected(key) === "change";
    if (isChange && this.#entries.get(key)?.urgency === "resync") this.#put(key, "change");
  }

  push(key: string): void {
    this.#put(key, this.#takeExpected(key));
  }

  pop(): string {
    const { change, resync } = this.#lanes;
    const changed = this.#first(change);
    const resynced = this.#first(resync);
    const isChange = resynced === undefined ||
      changed !== undefined && changed.addedMs - AHEAD_MS <= resynced.addedMs;
    const { key } = (isChange ? change : resync).shift()!;
    this.#entries.delete(key);
    return key;
  }

  /** Adds that are not marked as resyncs are as urgent as changes, such as another try. */
  #takeExpected(key: string): Urgency {
    const urgency = this.#expected.get(key) ?? "change";
    this.#expected.delete(key);
    return urgency;
  }

  #put(key: string, urgency: Urgency): void {
    const entry: Entry = { key, urgency, addedMs: monotonicNow(this.#clock) };
    this.#entries.set(key, entry);
    this.#lanes[urgency].push(entry);
  }

  #first(lane: Deque<Entry>): Entry | undefined {
    while (lane.length > 0) {
      const entry = lane.at(0)!;
      if (this.#entries.get(entry.key) === entry) return entry;
      lane.shift();
    }
    return undefined;
  }
}

/**
 * How long a key waits after failures, per kind of failure. A conflict is over with the next event; while
 * the server is away, nothing is gained by waiting for minutes after it is back; what else fails may fail
 * for ever. Keys do not wait for each other, as behind the bucket of client-go's default limiter, which lets
 * ten of 10,000 failed keys through per second.
 */
export class RetryDelays {
  readonly #conflicts = itemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000 });
  readonly #outages = itemExponentialFailureRateLimiter({ baseDelayMs: 50, maxDelayMs: 10_000 });
  readonly #failures = itemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 300_000 });
  readonly #all: readonly RateLimiter<string>[] = [this.#conflicts, this.#outages, this.#failures];

  /** Counts a failure of a key, and returns how many milliseconds it waits. */
  next(key: string, error: unknown): number {
    if (isConflict(error)) return this.#conflicts.when(key);
    const { httpStatus = 0, retryAfterMs = 0 } = statusErrorOf(error) ?? {};
    const isOutage = error instanceof NetworkError || httpStatus === 429 || httpStatus >= 500;
    return Math.max(isOutage ? this.#outages.when(key) : this.#failures.when(key), retryAfterMs);
  }

  of(key: string): number {
    return this.#all.reduce((sum, limiter) => sum + limiter.numRequeues(key), 0);
  }

  forget(key: string): void {
    for (const limiter of this.#all) limiter.forget(key);
  }
}
