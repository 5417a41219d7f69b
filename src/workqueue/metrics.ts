/** The metrics of a queue. */

import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { callGuarded } from "../util/errors.ts";

/**
 * The metrics of one queue; any Prometheus-like client has these. Errors that they throw are dropped: it
 * holds up no item.
 *
 * Mirrors the metrics of client-go's `workqueue.MetricsProvider`.
 */
export interface QueueMetrics {
  /** Items that were added and not handed out since. */
  readonly depth: { inc(): void; dec(): void };
  /** Counts adds; an add of an item that already waits does not count. */
  readonly adds: { inc(): void };
  /** Seconds from an item's first add until it is handed out. */
  readonly latency: { observe(seconds: number): void };
  /** Seconds from handing an item out until it is done. */
  readonly workDuration: { observe(seconds: number): void };
  /** How long the items that workers have now were with them, in total; set twice a second. */
  readonly unfinishedWorkSeconds: { set(seconds: number): void };
  /** The longest of those; set twice a second. */
  readonly longestRunningProcessorSeconds: { set(seconds: number): void };
  /** Calls of `addAfter` and `addRateLimited`. */
  readonly retries: { inc(): void };
}

/** Makes the metrics of a queue; called once, when the queue is made. */
export interface MetricsProvider {
  /** The metrics of the queue with this name. */
  queueMetrics(name: string): QueueMetrics;
}

const UPDATE_PERIOD_MS = 500;

/** Turns what happens to a queue's items, known by their keys, into its metrics. */
export class QueueMonitor {
  readonly #metrics: QueueMetrics;
  readonly #clock: Clock;
  readonly #addedMs = new Map<unknown, number>();
  readonly #takenMs = new Map<unknown, number>();
  #timer: TimerHandle;

  constructor(metrics: QueueMetrics, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#startTimer();
  }

  added(key: unknown): void {
    this.#measure("adds", "inc");
    this.#measure("depth", "inc");
    this.#addedMs.set(key, monotonicNow(this.#clock));
  }

  taken(key: unknown): void {
    this.#measure("depth", "dec");
    this.#takenMs.set(key, monotonicNow(this.#clock));
    this.#observe("latency", this.#addedMs, key);
  }

  finished(key: unknown): void {
    this.#observe("workDuration", this.#takenMs, key);
  }

  retried(): void {
    this.#measure("retries", "inc");
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  #observe(histogram: "latency" | "workDuration", startsMs: Map<unknown, number>, key: unknown): void {
    const startMs = startsMs.get(key);
    if (startMs === undefined) return;
    startsMs.delete(key);
    this.#measure(histogram, "observe", this.#secondsSince(startMs));
  }

  #measure<N extends keyof QueueMetrics>(
    name: N,
    method: keyof QueueMetrics[N] & string,
    value?: number,
  ): void {
    const metric = this.#metrics[name] as Record<string, (value?: number) => unknown>;
    callGuarded(() => metric[method](value), () => {}); // a queue has no log
  }

  #secondsSince(startMs: number): number {
    return (monotonicNow(this.#clock) - startMs) / 1000;
  }

  #startTimer(): void {
    this.#timer = this.#clock.setTimeout(() => {
      let total = 0;
      let longest = 0;
      for (const takenMs of this.#takenMs.values()) {
        const seconds = this.#secondsSince(takenMs);
        total += seconds;
        longest = Math.max(longest, seconds);
      }
      this.#measure("unfinishedWorkSeconds", "set", total);
      this.#measure("longestRunningProcessorSeconds", "set", longest);
      this.#startTimer();
    }, UPDATE_PERIOD_MS);
  }
}
