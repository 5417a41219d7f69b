/**
 * What ended readers and stopped programs leave behind: nothing.
 * @module
 */

import type { Clock } from "@listwatch/cache";
import type { ReadApi, ReadApiOptions } from "@listwatch/cache/hono";
import type { TimerHandle } from "@listwatch/cache/reflector";
import { readApiOf } from "../src/hono/read_api.ts";
import { newReadApiState, type ReadApiState } from "../src/hono/read_api_state.ts";
import { monotonicNow, realClock, settle } from "../src/util/clock.ts";
import { CountingSignal } from "./counting_signal.ts";

/** Longer than anything waits for a reader, a hook or a server. */
const LONGEST_WAIT_MS = 4 * 3_600_000;
/** How long after its readers have left a read API keeps nothing: an order stays a quarter of an hour. */
export const LEFT_AFTER_MS: number = 16 * 60_000;

/** An informer, as its observers see it. */
interface Observed {
  readonly sources?: readonly { readonly informer: Observed }[];
  observe(observer: never): () => void;
  observeHeld?(observer: never): () => void;
  onStatus?(listener: never): () => void;
}

/** Counts who observes some informers. */
class CountedObservers {
  #count = 0;

  /** How many do. */
  get count(): number {
    return this.#count;
  }

  /** Counts those that come to an informer from now on. */
  add(informer: Observed): void {
    for (const method of ["observe", "observeHeld", "onStatus"] as const) {
      const own = informer[method];
      if (own === undefined) continue;
      informer[method] = (observer) => {
        const end = own.call(informer, observer);
        let isThere = true;
        this.#count++;
        return () => {
          if (isThere) this.#count--;
          isThere = false;
          end();
        };
      };
    }
    for (const source of informer.sources ?? []) this.add(source.informer);
  }
}

/** A clock that knows the timers that were set by it, and can let time pass for them. */
class CountedClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Map<TimerHandle, { readonly dueMs: number; readonly callback: () => void }>();
  #aheadMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#clock.now() + this.#aheadMs;
  }

  monotonicNow(): number {
    return monotonicNow(this.#clock) + this.#aheadMs;
  }

  setTimeout(callback: () => void, ms: number): TimerHandle {
    const run = () => {
      this.#timers.delete(timer);
      callback();
    };
    const timer = this.#clock.setTimeout(run, ms);
    this.#timers.set(timer, { dueMs: this.monotonicNow() + Math.max(ms, 0), callback });
    return timer;
  }

  clearTimeout(timer: TimerHandle): void {
    this.#timers.delete(timer);
    this.#clock.clearTimeout(timer);
  }

  /** Lets so much time pass for the timers that are set. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.monotonicNow() + ms;
    await settle();
    for (let next = this.#next(); next !== undefined && next.dueMs <= untilMs; next = this.#next()) {
      this.#aheadMs += Math.max(0, next.dueMs - this.monotonicNow());
      this.clearTimeout(next.timer);
      next.callback();
      await settle();
    }
    this.#aheadMs += Math.max(0, untilMs - this.monotonicNow());
  }

  #next() {
    const timers = Array.from(this.#timers, ([timer, rest]) => ({ timer, ...rest }));
    return timers.sort((a, b) => a.dueMs - b.dueMs).at(0);
  }
}

/** A read API of which one can say what stays of it once its readers have left. */
export class CountedReadApi {
  readonly #state: ReadApiState;
  readonly #observers = new CountedObservers();
  readonly #signal = new CountingSignal();
  readonly #clock: CountedClock;
  readonly #listeners: number;
  #listenersAtEnd = 0;
  /** What the tests read. */
  readonly api: ReadApi;

  constructor(options: ReadApiOptions) {
    const informers = options.resources.flatMap(({ informer }) => informer ?? []);
    for (const informer of informers) this.#observers.add(informer);
    this.#clock = new CountedClock(options.clock ?? realClock);
    const { signal } = this.#signal;
    options.signal?.addEventListener("abort", () => this.#stop(options.signal?.reason));
    this.#state = newReadApiState({ ...options, clock: this.#clock, signal });
    this.api = readApiOf(this.#state);
    this.#listeners = this.#signal.listeners;
    if (options.signal?.aborted) this.#signal.abort(options.signal.reason);
  }

  /** Ends it, and lets the time pass that it waits for readers that do not read. */
  async end(): Promise<void> {
    this.api.endWatches();
    this.#stop();
    await this.#clock.pass(LONGEST_WAIT_MS);
  }

  #stop(reason?: unknown): void {
    if (this.#signal.signal.aborted) return;
    this.#listenersAtEnd = this.#signal.listeners;
    this.#signal.abort(reason);
  }

  /** What is left once it, and all others of its informers, have ended. */
  left(): string[] {
    const { served, readers, bodies, followers, views, settings } = this.#state;
    readers.dropUnused();
    // What is kept without a time, such as documents, gives way.
    const most = settings.maxReaderBytes;
    const isAllFree = readers.keep(most) && !readers.keepSpare(1);
    if (isAllFree) readers.unkeep(most);
    return counted({
      "listeners of its signal": Math.max(0, this.#listenersAtEnd - this.#listeners),
      "timers": this.#clock.timers,
      "readers": readers.count,
      "watches that can be ended": readers.watches.size,
      "bytes that are held for readers": readers.heldBytes,
      "count of bytes that are kept, and of nothing": isAllFree ? 0 : 1,
      "lists that are kept": bodies.kept.size,
      "bytes of lists": bodies.bytes,
      "orders that are kept": followers.kept.size,
      "views of fields that are kept": views.kept.size,
      "watches of logs": sum(served.map(({ watchers }) => watchers.size)),
      "selections that are watched": sum(served.map(({ watchers }) => watchers.groups.size)),
      "observers of informers": this.#observers.count,
    });
  }
}

/** The figures that are not zero. */
function counted(figures: Readonly<Record<string, number>>): string[] {
  return Object.entries(figures).flatMap(([name, figure]) => figure === 0 ? [] : `${figure} ${name}`);
}

function sum(figures: readonly number[]): number {
  return figures.reduce((all, figure) => all + figure, 0);
}
