import { callGuarded } from "./errors.ts";
import { type Logger, once } from "./logger.ts";

/** The labels of a measurement: names and values, as in Prometheus. */
export type MetricLabels = Readonly<Record<string, string>>;

/**
 * Receives measurements: three methods that fit any metrics library. Durations are in seconds, sizes in
 * bytes. The methods are called in the turn of what is measured; they must be fast. Errors that they throw
 * are logged once, and end nothing.
 *
 * Measurements of a reflector (label `name`):
 *
 * - `reflector_lists_total`, a counter: lists started, including streamed ones;
 * - `reflector_list_duration_seconds`, a histogram: from the request to the store write;
 * - `reflector_items_per_list`, a histogram: objects in a list;
 * - `reflector_list_bytes_total`, `reflector_watch_bytes_total`, counters: bytes of bodies, not decoded yet;
 * - `reflector_watches_total`, `reflector_short_watches_total`, counters: watches opened; those that ended
 *   at once;
 * - `reflector_watch_duration_seconds`, `reflector_items_per_watch`, histograms: of a watch that ended;
 * - `reflector_events_total` (`type`), a counter: events applied;
 * - `reflector_relists_total` (`reason`), a counter: cycles after the first, by what ended the one before;
 * - `reflector_reconnects_total` (`reason`), a counter: watches opened again without a list;
 * - `reflector_quarantined_total`, a counter: quarantined objects;
 * - `reflector_last_contact_timestamp_seconds`, a gauge: time of the last sign of life from the server; the
 *   lag is the time since then.
 *
 * Measurements of an informer (label `name`):
 *
 * - `informer_sync_duration_seconds`, a histogram: from the start to the whole first list in the store;
 * - `informer_snapshot_loads_total`, `informer_snapshot_saves_total` (`outcome`), counters: loads are
 *   `restored`, `none` or `refused`, saves `saved` or `failed`;
 * - `informer_snapshot_save_duration_seconds`, a histogram: one save;
 * - `informer_repeated_events_total` (`type`), a counter: events that were sent again and skipped;
 * - `informer_objects`, a gauge: objects in the store;
 * - `informer_store_resource_version`, a gauge: the version of the store, its last 15 digits;
 * - `informer_processing_latency_seconds`, a histogram: from the queueing of a delta to its end;
 * - `informer_handler_backlog` (`handler`), a gauge: waiting notifications;
 * - `informer_handler_duration_seconds` (`handler`), a histogram: one call of a handler.
 *
 * @category Tools
 */
export interface Metrics {
  /** Adds to a counter. */
  count(name: string, value: number, labels: MetricLabels): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels: MetricLabels): void;
  /** Puts a value into a histogram. */
  observe(name: string, value: number, labels: MetricLabels): void;
}

/** Metrics that cannot end what is measured: the first failure of a user's object is logged. */
export function guardedMetrics<M extends Metrics | undefined>(metrics: M, logger: Logger): M | Metrics {
  if (metrics === undefined || metrics instanceof GuardedMetrics) return metrics;
  return new GuardedMetrics(metrics, logger);
}

class GuardedMetrics implements Metrics {
  readonly #metrics: Metrics;
  readonly #failed: (error: unknown) => void;

  constructor(metrics: Metrics, logger: Logger) {
    this.#metrics = metrics;
    this.#failed = once((error) => logger.error(`Cannot measure: the metrics object threw: ${error}`));
  }

  count(name: string, value: number, labels: MetricLabels): void {
    callGuarded(() => this.#metrics.count(name, value, labels), this.#failed);
  }

  gauge(name: string, value: number, labels: MetricLabels): void {
    callGuarded(() => this.#metrics.gauge(name, value, labels), this.#failed);
  }

  observe(name: string, value: number, labels: MetricLabels): void {
    callGuarded(() => this.#metrics.observe(name, value, labels), this.#failed);
  }
}
