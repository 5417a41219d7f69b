/**
 * Measurements as an argument.
 * @module
 */

/**
 * What a measurement belongs to: label names and values, as Prometheus has them.
 *
 * @example
 * ```ts
 * import type { MetricLabels } from "@listwatch/cache/reflector";
 * function series(name: string, labels: MetricLabels): string {
 *   return `${name}{${Object.entries(labels).map(([label, value]) => `${label}="${value}"`).join(",")}}`;
 * }
 * ```
 */
export type MetricLabels = Readonly<Record<string, string>>;

/**
 * Where measurements go: three calls that any metrics library can take. Durations are in seconds, sizes in bytes.
 * Calls are made in the turn of what is measured; they must be quick and must not throw.
 *
 * What is reported, by a reflector (label `name`):
 *
 * | name | kind | |
 * |---|---|---|
 * | `reflector_lists_total` | counter | lists begun, streamed ones too |
 * | `reflector_list_duration_seconds` | histogram | from the request to the store write |
 * | `reflector_items_per_list` | histogram | objects in a list |
 * | `reflector_list_bytes_total`, `reflector_watch_bytes_total` | counter | bytes of bodies, before they are decoded |
 * | `reflector_watches_total`, `reflector_short_watches_total` | counter | watches opened; those that ended at once |
 * | `reflector_watch_duration_seconds`, `reflector_items_per_watch` | histogram | of a watch that ended |
 * | `reflector_events_total` (`type`) | counter | events applied |
 * | `reflector_relists_total` (`reason`) | counter | cycles after the first, by what ended the one before |
 * | `reflector_reconnects_total` (`reason`) | counter | watches opened again without a list |
 * | `reflector_quarantined_total` | counter | objects set aside |
 * | `reflector_last_contact_timestamp_seconds` | gauge | when the server was last heard of; the lag is the time since |
 *
 * by an informer (label `name`):
 *
 * | name | kind | |
 * |---|---|---|
 * | `informer_sync_duration_seconds` | histogram | from the start to the whole first list in the store |
 * | `informer_repeated_events_total` | counter | events that were sent again, by `type`, and stepped over |
 * | `informer_objects` | gauge | objects in the store |
 * | `informer_store_resource_version` | gauge | where the store stands: the last 15 digits |
 * | `informer_processing_latency_seconds` | histogram | from a queued delta to its end |
 * | `informer_handler_backlog` (`handler`) | gauge | notifications that wait |
 * | `informer_handler_duration_seconds` (`handler`) | histogram | one call of a handler |
 *
 * @example
 * ```ts
 * import type { Metrics } from "@listwatch/cache";
 * const metrics: Metrics = {
 *   count: (name, value, labels) => console.log(name, labels, "+", value),
 *   gauge: (name, value, labels) => console.log(name, labels, "=", value),
 *   observe: (name, value, labels) => console.log(name, labels, value),
 * };
 * ```
 */
export interface Metrics {
  /** Adds to a counter. */
  count(name: string, value: number, labels: MetricLabels): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels: MetricLabels): void;
  /** Puts a value into a histogram. */
  observe(name: string, value: number, labels: MetricLabels): void;
}
