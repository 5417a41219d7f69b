/** What is known of each measurement: its type, its help text, its buckets. */

export interface MetricFamily {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** The upper bounds of a histogram's buckets, ascending, without +Inf. */
  readonly buckets?: readonly number[];
}

/** Buckets for durations of work in memory, in seconds: 10 us to 10 s. */
const WORK: readonly number[] = [1e-5, 1e-4, 5e-4, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 10];
export const REQUEST: readonly number[] = [
  ...[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
];
/** Buckets for the lives of watches, in seconds: watches end after 5 to 10 minutes. */
const LIFE: readonly number[] = [1, 5, 15, 30, 60, 120, 300, 450, 600, 900, 1_800, 3_600];
const ITEMS: readonly number[] = [0, 1, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000];
// As client-go's: https://github.com/kubernetes/component-base/blob/master/metrics/prometheus/workqueue/metrics.go
const QUEUE: readonly number[] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10];

const counter = (help: string): MetricFamily => ({ type: "counter", help });
const gauge = (help: string): MetricFamily => ({ type: "gauge", help });
const histogram = (help: string, buckets: readonly number[]): MetricFamily => ({
  type: "histogram",
  help,
  buckets,
});

/** The measurements of reflectors, informers, work queues and the read API. */
export const FAMILIES: Readonly<Record<string, MetricFamily>> = {
  reflector_lists_total: counter("Lists that were started, including streamed ones."),
  reflector_list_duration_seconds: histogram("Time from the request of a list to the store write.", REQUEST),
  reflector_items_per_list: histogram("Objects in a list.", ITEMS),
  reflector_list_bytes_total: counter("Bytes of the bodies of lists, before they were decoded."),
  reflector_watch_bytes_total: counter("Bytes of the bodies of watches, before they were decoded."),
  reflector_watches_total: counter("Watches that were opened."),
  reflector_short_watches_total: counter("Watches that ended at once."),
  reflector_watch_duration_seconds: histogram("Life of a watch that ended.", LIFE),
  reflector_items_per_watch: histogram("Events of a watch that ended.", ITEMS),
  reflector_events_total: counter("Events that were applied, by type."),
  reflector_relists_total: counter("Lists after the first one, by what ended the watch before."),
  reflector_reconnects_total: counter("Watches that were opened again without a list, by reason."),
  reflector_quarantined_total: counter("Objects that could not be accepted and were skipped."),
  reflector_last_contact_timestamp_seconds: gauge("Time of the last contact with the API server."),
  informer_sync_duration_seconds: histogram("Time from the start to the first list in the store.", REQUEST),
  informer_snapshot_loads_total: counter("Loads of snapshots at the start, by outcome."),
  informer_snapshot_saves_total: counter("Saves of snapshots, by outcome."),
  informer_snapshot_save_duration_seconds: histogram("Time that a save of a snapshot takes.", REQUEST),
  informer_repeated_events_total: counter("Events that were sent again and skipped, by type."),
  informer_objects: gauge("Objects in the store."),
  informer_store_resource_version: gauge("The last 15 digits of the store's resourceVersion."),
  informer_processing_latency_seconds: histogram("Time from the queueing of a delta to its end.", WORK),
  informer_handler_backlog: gauge("Notifications that wait for a handler."),
  informer_handler_duration_seconds: histogram("Duration of one call of a handler.", WORK),
  workqueue_depth: gauge("Items that were added and not handed out since."),
  workqueue_adds_total: counter("Adds of items that did not wait already."),
  workqueue_queue_duration_seconds: histogram("Time from an item's first add until it is handed out.", QUEUE),
  workqueue_work_duration_seconds: histogram("Time from handing an item out until it is done.", QUEUE),
  workqueue_unfinished_work_seconds: gauge("Time that items in work have been with their workers, in total."),
  workqueue_longest_running_processor_seconds: gauge("The longest time that an item in work has been there."),
  workqueue_retries_total: counter("Calls of addAfter and addRateLimited."),
  read_api_requests_total: counter("Answered requests, by verb, resource and status code."),
  read_api_request_duration_seconds: histogram(
    "Time until the answer begins, by verb and resource.",
    REQUEST,
  ),
  read_api_readers: gauge("Requests and watches that are being answered."),
  read_api_watches: gauge("Open watches, by resource."),
  read_api_buffered_bytes: gauge("Bytes that wait in the streams of watches."),
  read_api_list_bodies: gauge("Bodies of lists that are kept."),
  read_api_list_body_bytes: gauge("Bytes of the kept bodies of lists, and of those that are still read."),
  read_api_synced: gauge(
    "1 if the first list of the resource is there, or a snapshot that the API server has confirmed; otherwise 0.",
  ),
  read_api_lag_seconds: gauge("Time since the last contact with the API server, by resource."),
};
