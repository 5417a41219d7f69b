/** The shared part of all queues: waiting, closing, and the sync state. */

import type { KeyFunc } from "../meta/object.ts";
import type { OnTransformFailure, TransformFunc } from "../store/transform.ts";
import { abortable } from "../util/abort.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { Latch, type SyncedMethod, Wakeup } from "../util/deferred.ts";
import { Deque } from "../util/collections.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { FIFOClosedError } from "./errors.ts";
import type { PopOptions, PopProcessFunc, SyncProcessFunc } from "./queue.ts";

/** Whether the items of the first list were popped: populated, and none of them left. Latched once true. */
class InitialPopulation {
  /** Open once the first list was popped. */
  readonly latch: Latch = new Latch();
  /** Whether anything was added. */
  isPopulated = false;
  /** How many items of the first list are queued or in process. */
  remaining = 0;
  /** Whether the first list has several parts, and some are to come. */
  isHeld = false;

  /** Something was added; if it is the first list, so many items must be popped. */
  populate(count = 0): void {
    if (this.isPopulated || this.isHeld) return;
    this.isPopulated = true;
    this.remaining = count;
    this.popped(0);
  }

  popped(count: number): void {
    this.remaining -= count;
    if (this.isPopulated && this.remaining === 0) this.latch.open();
  }
}

/** How a consumer is reported that takes over 100 ms an item (1 s a batch) while more than 10 others wait. */
export interface SlowTraceOptions {
  /** The queue's name in log lines. */
  readonly name?: string;
  /** Where log lines go; warnings and errors to the console by default. */
  readonly logger?: Logger;
  /** What measures the consumer; the system's clock by default. */
  readonly clock?: Clock;
}

/** What a queue of deltas can be given. */
export interface QueueOptions<T> extends SlowTraceOptions {
  /**
   * Computes keys; `metaNamespaceKey` by default. Tombstones and deltas are unwrapped before it is called.
   */
  readonly keyFunc?: KeyFunc;
  /** Runs on every object as it is queued, but not on tombstones and resyncs. */
  readonly transform?: TransformFunc<T> | undefined;
  /** Called for each object of a `replace` that the transform throws for; without it the call is refused. */
  readonly onTransformFailure?: OnTransformFailure<T>;
}

const SLOW_DEPTH = 10;
const SLOW_MS = 100;
const SLOW_MAX_MS = 1_000;

export interface Failure {
  readonly error: unknown;
}

/** What {@linkcode PoppingQueue.take} returns if the objects of all places were deleted. */
export const NOTHING: unique symbol = Symbol("nothing");

/**
 * A queue's consuming side, which all queues share: `pop`, `tryPop`, `wait`, `close` and `hasSynced`, over
 * what the concrete queue says its next item is. Not meant to be extended outside of this package.
 */
export abstract class PoppingQueue<I, P = unknown> {
  /**
   * The places of the queue, in order: its items, or their keys.
   * @internal
   */
  protected readonly places: Deque<P> = new Deque<P>();
  /**
   * The callers that wait for something to pop.
   * @internal
   */
  protected readonly consumers: Wakeup = new Wakeup();
  /** @internal */
  protected readonly population: InitialPopulation = new InitialPopulation();
  readonly #options: SlowTraceOptions;
  #closed = false;

  constructor(options: SlowTraceOptions) {
    this.#options = options;
  }

  /**
   * Removes and returns the next item, or {@linkcode NOTHING}. Called only if there is a place.
   * @internal
   */
  protected abstract take(): I | typeof NOTHING;
  /**
   * A key for log lines.
   * @internal
   */
  protected abstract labelOf(item: I): string;
  /**
   * The item has been processed, with or without an error.
   * @internal
   */
  protected finished(_item: I): void {
    this.population.popped(1);
  }
  /**
   * How many things an item is, for judging how long its processing took.
   * @internal
   */
  protected countOf(_item: I): number {
    return 1;
  }
  /**
   * Says what an error of the process callback comes to: nothing (the item was put back), or an error to
   * report.
   * @internal
   */
  protected failed(_item: I, error: unknown): Failure | undefined {
    return { error };
  }

  /** As {@linkcode Queue.pop}. */
  async pop(process: PopProcessFunc<I>, options: PopOptions = {}): Promise<I> {
    for (;;) {
      const isInInitialList = !this.hasSynced();
      const item = this.places.length === 0 ? NOTHING : this.take();
      if (item !== NOTHING) return await this.process(item, process, isInInitialList);
      await this.waitOrThrow(options.signal);
    }
  }

  /** As {@linkcode Queue.tryPop}. */
  tryPop(process: SyncProcessFunc<I>): boolean {
    if (this.places.length === 0) return false;
    const isInInitialList = !this.hasSynced();
    const item = this.take();
    if (item === NOTHING) return false;
    this.processNow(item, process, isInInitialList);
    return true;
  }

  /**
   * Waits for something to pop; throws if the queue is closed instead.
   * @internal
   */
  protected async waitOrThrow(signal: AbortSignal | undefined): Promise<void> {
    if (this.#closed) throw new FIFOClosedError();
    await this.consumers.wait(signal);
  }

  /**
   * Has an item that was taken processed, and returns it; throws what the processing comes to.
   * @internal
   */
  protected async process(item: I, process: PopProcessFunc<I>, isInInitialList: boolean): Promise<I> {
    const end = this.#begin(item);
    try {
      await process(item, isInInitialList);
    } catch (error) {
      end({ error });
      return item;
    }
    end();
    return item;
  }

  /**
   * As {@linkcode PoppingQueue.process}, within this turn.
   * @internal
   */
  protected processNow(item: I, process: SyncProcessFunc<I>, isInInitialList: boolean): void {
    const end = this.#begin(item);
    try {
      process(item, isInInitialList);
    } catch (error) {
      return end({ error });
    }
    end();
  }

  /** The processing of an item begins; call what it returns at its end, with what it threw. */
  #begin(item: I): (thrown?: Failure) => void {
    const depth = this.places.length;
    // As client-go does: https://github.com/kubernetes/client-go/blob/master/tools/cache/delta_fifo.go
    const startMs = depth > SLOW_DEPTH ? monotonicNow(this.#options.clock ?? realClock) : undefined;
    return (thrown) => {
      const failure = thrown && this.failed(item, thrown.error);
      this.finished(item);
      if (startMs !== undefined) this.#reportSlow(item, startMs, depth);
      if (failure !== undefined) throw failure.error;
    };
  }

  #reportSlow(item: I, startMs: number, depth: number): void {
    const { name = "", clock = realClock } = this.#options;
    const logger = guardedLogger(this.#options.logger);
    const tookMs = Math.round(monotonicNow(clock) - startMs);
    const count = this.countOf(item);
    if (tookMs <= Math.min(SLOW_MS * count, SLOW_MAX_MS)) return;
    let key: string;
    try {
      key = this.labelOf(item);
    } catch {
      key = "(no key)";
    }
    const queue = name === "" ? "" : ` "${name}"`;
    logger.warn(
      `slow event handlers block the queue${queue}: processing took ${tookMs} ms`,
      { queue: name, key, depth, count, tookMs, reason: "slow event handlers blocking the queue" },
    );
  }

  /** Resolves once there is something to pop, or the queue is closed; rejects with the signal's reason. */
  wait(signal?: AbortSignal): Promise<void> {
    return this.places.length > 0 || this.#closed ? Promise.resolve() : this.consumers.wait(signal);
  }

  /**
   * Whether everything of the first `replace` was popped, or
   * something else was queued before any. Stays true.
   */
  hasSynced(): boolean {
    return this.population.latch.isOpen;
  }

  /** As {@linkcode Queue.synced}. A closed queue can still sync by what is popped of its first list. */
  readonly synced: SyncedMethod = async (signal) => {
    if (!this.hasSynced()) await abortable(this.population.latch.opened, signal);
  };

  /** Closes the queue: what is queued can still be popped, then `pop` throws instead of waiting. */
  close(): void {
    this.#closed = true;
    if (!this.population.isPopulated) this.population.latch.giveUp(new FIFOClosedError());
    this.consumers.wakeAll();
  }

  /** Whether {@linkcode PoppingQueue.close} was called. */
  get isClosed(): boolean {
    return this.#closed;
  }
}
