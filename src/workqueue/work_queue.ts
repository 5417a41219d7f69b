/** A queue of work: each item once, and by one worker at a time. */

import { onAbort } from "../util/abort.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { waitIn } from "../util/deferred.ts";
import { Deque } from "../util/collections.ts";
import { type MetricsProvider, QueueMonitor } from "./metrics.ts";

/**
 * The order in which items come out. The queue never pushes an item that is in it, and pops only when
 * {@linkcode QueueOrder.length} is not 0. Mirrors client-go's `workqueue.Queue`.
 */
export interface QueueOrder<T> {
  /** How many items are in the order. */
  readonly length: number;
  /** An item that is in it was added again; it may get another place. */
  touch(item: T): void;
  /** Takes an item in. */
  push(item: T): void;
  /** Takes the next item out. */
  pop(): T;
}

/** The result of {@linkcode WorkQueue.get}: an item, or the news that there will be no more. */
export type GetResult<T> =
  | { readonly shutdown: false; readonly item: T }
  | { readonly shutdown: true; readonly item?: undefined };

/** Options of {@linkcode WorkQueue}. */
export interface WorkQueueOptions<T> {
  /** Makes an item's identity; the item itself by default, which is right for strings, not for objects. */
  readonly keyOf?: (item: T) => unknown;
  /** The order in which items come out; that of their adds by default. Must be empty, and not be shared. */
  readonly order?: QueueOrder<T>;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
  /** Shuts the queue down when it is aborted. */
  readonly signal?: AbortSignal;
  /** The queue's name in metrics; a queue without a name has none. */
  readonly name?: string;
  /** Makes the metrics of a queue that has a name. */
  readonly metricsProvider?: MetricsProvider;
}

/**
 * A queue for the work of a controller. An item that is added twice before anyone took it is handed out once;
 * one that is added while a worker has it is handed out again after that worker's {@linkcode WorkQueue.done},
 * so that no two workers ever have the same item.
 *
 * Every {@linkcode WorkQueue.get} needs a {@linkcode WorkQueue.done}. Only calls that wait are asynchronous.
 * Mirrors client-go's `workqueue.Typed`.
 *
 * @example
 * ```ts
 * import { WorkQueue } from "@listwatch/cache/workqueue";
 * const queue = new WorkQueue<string>();
 * queue.add("shop/web-1");
 * queue.add("shop/web-1");
 * queue.shutDown();
 * for (let next = await queue.get(); !next.shutdown; next = await queue.get()) {
 *   console.log(next.item); // shop/web-1, once
 *   queue.done(next.item);
 * }
 * ```
 */
export class WorkQueue<T = string> {
  /** @internal */
  protected readonly keyOf: (item: T) => unknown;
  readonly #order: QueueOrder<T>;
  readonly #monitor: QueueMonitor | undefined;
  // Added and not handed out since; in the order too, unless a worker has it.
  readonly #dirty = new Map<unknown, T>();
  readonly #processing = new Set<unknown>();
  readonly #getters = new Set<PromiseWithResolvers<GetResult<T>>>();
  readonly #drains = new Set<PromiseWithResolvers<void>>();
  readonly #unlink: (() => void) | undefined;
  #shuttingDown = false;
  #paused = false;

  constructor(options: WorkQueueOptions<T> = {}) {
    const { order = new FirstInFirstOut(), clock = realClock, name, metricsProvider, signal } = options;
    this.keyOf = options.keyOf ?? identity;
    this.#order = order;
    this.#shuttingDown = signal?.aborted ?? false;
    if (this.#shuttingDown) return;
    if (name && metricsProvider) this.#monitor = new QueueMonitor(metricsProvider.queueMetrics(name), clock);
    if (signal) this.#unlink = onAbort(signal, () => this.shutDown());
  }

  /** How many items wait to be handed out; those that workers have do not count. */
  get length(): number {
    return this.#order.length;
  }

  /** Whether the queue was shut down. */
  get shuttingDown(): boolean {
    return this.#shuttingDown;
  }

  /** Asks for an item to be worked on. Ignored once the queue is shut down. */
  add(item: T): void {
    if (this.#shuttingDown) return;
    const key = this.keyOf(item);
    if (this.#dirty.has(key)) {
      if (!this.#processing.has(key)) this.#order.touch(item);
      return;
    }
    this.#monitor?.added(key);
    this.#dirty.set(key, item);
    if (!this.#processing.has(key)) this.#push(item);
  }

  /**
   * Waits for an item and takes it; the longest waiting worker is first. After a shutdown it still returns
   * what is in the queue, and then says `shutdown`: the worker should end.
   * @param signal Ends the wait; no item was taken then.
   * @throws The signal's reason.
   */
  async get(signal?: AbortSignal): Promise<GetResult<T>> {
    signal?.throwIfAborted();
    if (this.#order.length > 0 && !this.#paused) return this.#take();
    if (this.#shuttingDown) return { shutdown: true };
    return await waitIn(this.#getters, signal);
  }

  /**
   * Says that the work on an item is over; it is handed out again if it was added meanwhile. Ignored for an
   * item that no worker has (upstream, a `done` too many queues a waiting item twice).
   */
  done(item: T): void {
    const key = this.keyOf(item);
    if (!this.#processing.delete(key)) return;
    this.#monitor?.finished(key);
    if (this.#dirty.has(key)) this.#push(this.#dirty.get(key) as T);
    if (this.#processing.size === 0) this.#endDrains();
  }

  /**
   * Hands out no item until {@linkcode WorkQueue.resume}; `add` and `done` work meanwhile. A shutdown of a
   * paused queue ends its workers at once and leaves in it what is queued. Mirrors client-go's
   * `workqueue.Pausable`.
   */
  pause(): void {
    this.#paused = true;
  }

  /** Hands out items again. */
  resume(): void {
    this.#paused = false;
    this.#handOut();
  }

  /** Refuses new items from now on. Queued items are still handed out; a running drain ends. */
  shutDown(): void {
    this.#stop();
    this.#endDrains();
  }

  /**
   * As {@linkcode WorkQueue.shutDown}, and waits until no worker has an item any more. Items that no worker
   * took do not hold it up. It never settles if a worker forgets {@linkcode WorkQueue.done}: give it a
   * signal, or call `shutDown`.
   * @param signal Ends the wait; the queue stays shut down.
   * @throws The signal's reason.
   */
  async shutDownWithDrain(signal?: AbortSignal): Promise<void> {
    this.#stop();
    if (this.#processing.size === 0) return;
    await waitIn(this.#drains, signal);
  }

  /** Called once, when the queue is shut down in either way; not if it was made so. */
  protected onShutDown(): void {}

  /** Counts an item that is added once more, in the metrics. */
  protected countRetry(): void {
    this.#monitor?.retried();
  }

  #push(item: T): void {
    this.#order.push(item);
    this.#handOut();
  }

  #handOut(): void {
    for (const getter of this.#getters) {
      if (this.#paused || this.#order.length === 0) return;
      this.#getters.delete(getter);
      getter.resolve(this.#take());
    }
  }

  #take(): GetResult<T> {
    const item = this.#order.pop();
    const key = this.keyOf(item);
    this.#monitor?.taken(key);
    this.#processing.add(key);
    this.#dirty.delete(key);
    return { item, shutdown: false };
  }

  #stop(): void {
    if (this.#shuttingDown) return;
    this.#shuttingDown = true;
    this.#unlink?.();
    this.#monitor?.stop();
    this.onShutDown();
    // Waiting workers found the queue empty or paused. An item may still come back from a worker.
    for (const getter of this.#getters) getter.resolve({ shutdown: true });
    this.#getters.clear();
  }

  #endDrains(): void {
    for (const drain of this.#drains) drain.resolve();
    this.#drains.clear();
  }
}

/** The identity of an item: by default the item itself. */
export function identity<T>(item: T): unknown {
  return item;
}

class FirstInFirstOut<T> extends Deque<T> implements QueueOrder<T> {
  touch(_item: T): void {}

  pop(): T {
    return this.shift() as T;
  }
}
