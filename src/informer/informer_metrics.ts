/**
 * What an informer measures.
 * @module
 */

import { type Clock, monotonicNow } from "../util/clock.ts";
import type { MetricLabels, Metrics } from "../util/metrics.ts";

// A gauge is a double: more digits would not survive.
const RESOURCE_VERSION_DIGITS = 15;

/** Reports an informer's measurements; does nothing where nobody wants them. */
export class InformerMetrics {
  readonly #metrics: Metrics | undefined;
  readonly #clock: Clock;
  readonly #labels: MetricLabels;

  constructor(metrics: Metrics | undefined, name: string, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#labels = { name };
  }

  /** Begins to time something; call what it returns at the end. */
  time(name: string, labels: MetricLabels = {}): () => void {
    const metrics = this.#metrics;
    if (metrics === undefined) return nothing;
    const startMs = monotonicNow(this.#clock);
    return () =>
      metrics.observe(name, (monotonicNow(this.#clock) - startMs) / 1_000, { ...this.#labels, ...labels });
  }

  /** The store was written. */
  stored(objects: number, resourceVersion: string): void {
    if (this.#metrics === undefined) return;
    this.#metrics.gauge("informer_objects", objects, this.#labels);
    const version = Number(resourceVersion.slice(-RESOURCE_VERSION_DIGITS));
    if (Number.isFinite(version)) {
      this.#metrics.gauge("informer_store_resource_version", version, this.#labels);
    }
  }

  /** An event came that was seen before. */
  repeated(type: string): void {
    this.#metrics?.count("informer_repeated_events_total", 1, { ...this.#labels, type });
  }

  /** Something was put into a handler's mailbox, or taken out. */
  backlog(handler: string, waiting: number): void {
    this.#metrics?.gauge("informer_handler_backlog", waiting, { ...this.#labels, handler });
  }
}

function nothing(): void {}
