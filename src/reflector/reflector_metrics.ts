/** The metrics of a reflector. */

import { type Clock, monotonicNow } from "../util/clock.ts";
import type { MetricLabels, Metrics } from "../util/metrics.ts";
import { codeOf } from "./status.ts";

/** Reports a reflector's measurements. */
export class ReflectorMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #labels: MetricLabels;
  /** Counts the bytes of lists. */
  readonly onListBytes: (bytes: number) => void;
  /** Counts the bytes of watches. */
  readonly onWatchBytes: (bytes: number) => void;
  #cycles = 0;

  constructor(metrics: Metrics, name: string, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#labels = { name };
    const counter = (counted: string) => (bytes: number) => this.#count(counted, bytes);
    this.onListBytes = counter("reflector_list_bytes_total");
    this.onWatchBytes = counter("reflector_watch_bytes_total");
  }

  /** A cycle begins; `error` is what ended the one before, if something did. */
  cycleBegins(error: unknown): void {
    if (this.#cycles++ > 0) this.#count("reflector_relists_total", 1, { reason: reasonOf(error) });
  }

  /** A list begins; call what it returns with the number of its items when they are stored. */
  listBegins(): (items: number) => void {
    this.#count("reflector_lists_total", 1);
    const startMs = monotonicNow(this.#clock);
    return (items) => {
      this.#observe("reflector_list_duration_seconds", (monotonicNow(this.#clock) - startMs) / 1_000);
      this.#observe("reflector_items_per_list", items);
    };
  }

  /** A watch is open. */
  watchBegins(): void {
    this.#count("reflector_watches_total", 1);
  }

  /** An open watch has ended. */
  watchEnds(lastedMs: number, items: number, isVeryShort: boolean): void {
    this.#observe("reflector_watch_duration_seconds", lastedMs / 1_000);
    this.#observe("reflector_items_per_watch", items);
    if (isVeryShort) this.#count("reflector_short_watches_total", 1);
  }

  /** A watch is requested again, without a list; `error` is what ended the one before. */
  reconnects(error: unknown): void {
    this.#count("reflector_reconnects_total", 1, { reason: reasonOf(error) });
  }

  /** An event was applied. */
  eventApplied(type: string): void {
    this.#count("reflector_events_total", 1, { type });
  }

  /** Something came from the server: the lag is the time since then. */
  contact(wallMs: number): void {
    this.#metrics.gauge("reflector_last_contact_timestamp_seconds", wallMs / 1_000, this.#labels);
  }

  #count(name: string, value: number, labels?: MetricLabels): void {
    this.#metrics.count(name, value, labels === undefined ? this.#labels : { ...this.#labels, ...labels });
  }

  #observe(name: string, value: number): void {
    this.#metrics.observe(name, value, this.#labels);
  }
}

function reasonOf(error: unknown): string {
  return error === undefined ? "closed" : codeOf(error);
}
