/** Metrics. */

/**
 * The labels of a measurement: names and values, as in Prometheus.
 *
 * @category Tools
 */
export type MetricLabels = Readonly<Record<string, string>>;

/**
 * Receives measurements: three methods that fit any metrics library. Durations are in seconds, sizes in
 * bytes. The methods are called in the turn of what is measured; they must be fast and must not throw.
 *
 * Measurements of a reflector (label `name`):
 *
 * | name | kind | | |---|---|---| | `reflector_lists_total` | counter | lists started, including streamed
 * ones | | `reflector_list_duration_seconds` | histogram | from the request to the store write | |
 * `reflector_items_per_list` | histogram | objects in a list | | `reflector_list_bytes_total`,
 * `reflector_watch_bytes_total` | counter | bytes of bodies, before they are decoded | |
 * `reflector_watches_total`, `reflector_short_watches_total` | counter | watches opened; those that ended at
 * once | | `reflector_watch_duration_seconds`, `reflector_items_per_watch` | histogram | of a watch that
 * ended | | `reflector_events_total` (`type`) | counter | events applied | | `reflector_relists_total`
 * (`reason`) | counter | cycles after the first, by what ended the one before | |
 * `reflector_reconnects_total` (`reason`) | counter | watches opened again without a list | |
 * `reflector_quarantined_total` | counter | quarantined objects | |
 * `reflector_last_contact_timestamp_seconds` | gauge | time of the last sign of life from the server; the lag
 * is the time since then |
 *
 * Measurements of an informer (label `name`):
 *
 * | name | kind | | |---|---|---| | `informer_sync_duration_seconds` | histogram | from the start to the
 * whole first list in the store | | `informer_snapshot_loads_total`, `informer_snapshot_saves_total`
 * (`outcome`) | counter | loads: `restored`, `none`, `refused`; saves: `saved`, `failed` | |
 * `informer_snapshot_save_duration_seconds` | histogram | one save | | `informer_repeated_events_total` |
 * counter | events that were sent again and skipped, by `type` | | `informer_objects` | gauge | objects in
 * the store | | `informer_store_resource_version` | gauge | the version of the store: its last 15 digits | |
 * `informer_processing_latency_seconds` | histogram | from the queueing of a delta to its end | |
 * `informer_handler_backlog` (`handler`) | gauge | waiting notifications | |
 * `informer_handler_duration_seconds` (`handler`) | histogram | one call of a handler |
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
