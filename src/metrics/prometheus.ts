/** Metrics in the text format of Prometheus. */

import type { MetricLabels, Metrics } from "../util/metrics.ts";

/** Metrics that can be served as a page: what `readApi` takes as `metrics`. */
export interface ServedMetrics extends Metrics {
  /** The Content-Type of the text. */
  readonly contentType: string;
  /** All measurements, now. */
  text(): string | Promise<string>;
}

interface Histogram {
  /** The number of values in each bucket and not in the one before; the last bucket is +Inf. */
  readonly counts: number[];
  sum: number;
}

interface Series {
  /** The labels as text, without braces. */
  readonly labels: string;
  value: number;
  readonly histogram: Histogram | undefined;
}

interface Family extends MetricFamily {
  readonly name: string;
  readonly series: Map<string, Series>;
  /** The same series, by the label objects that callers use again and again. */
  readonly known: WeakMap<MetricLabels, Series>;
}

// Beyond that, a label has values without a bound, such as names of objects.
const MOST_SERIES = 2_000;

/**
 * Collects measurements in memory and writes them in the text format of Prometheus: pass it as `metrics` to
 * informers, as `metricsProvider` to work queues and as `metrics` to `readApi`, which serves it at
 * `/metrics`.
 *
 * The measurements of this library have help texts and buckets that fit; others become what their method says
 * (`count`: counter, `gauge`: gauge, `observe`: histogram of seconds). A name is of one type: measurements of
 * another type, values that are not finite and decreases of counters are skipped. Characters that a name may
 * not have become `_`. Each name has at most 2,000 sets of labels; further ones are skipped.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { readApi } from "@listwatch/cache/hono";
 * import { PrometheusMetrics } from "@listwatch/cache/metrics";
 * const metrics = new PrometheusMetrics();
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"), { metrics });
 * const api = readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true, metrics });
 * console.log((await api.request("/metrics")).status); // 200
 * ```
 */
export class PrometheusMetrics implements ServedMetrics {
  readonly #families = new Map<string, Family>();
  readonly #byName = new Map<string, Family>();

  readonly contentType: string = "text/plain; version=0.0.4; charset=utf-8";

  count(name: string, value: number, labels: MetricLabels): void {
    const series = this.#series(name, "counter", labels);
    if (series !== undefined && value >= 0 && value < Infinity) series.value += value;
  }

  gauge(name: string, value: number, labels: MetricLabels): void {
    const series = this.#series(name, "gauge", labels);
    if (series !== undefined && Number.isFinite(value)) series.value = value;
  }

  observe(name: string, value: number, labels: MetricLabels): void {
    const histogram = this.#series(name, "histogram", labels)?.histogram;
    if (histogram === undefined || !Number.isFinite(value)) return;
    const buckets = this.#families.get(name)?.buckets ?? [];
    let i = 0;
    while (i < buckets.length && value > buckets[i]) i++;
    histogram.counts[i]++;
    histogram.sum += value;
  }

  /** Measures a work queue under its name, with client-go's names. */
  queueMetrics(name: string): {
    readonly depth: { inc(): void; dec(): void };
    readonly adds: { inc(): void };
    readonly latency: { observe(seconds: number): void };
    readonly workDuration: { observe(seconds: number): void };
    readonly unfinishedWorkSeconds: { set(seconds: number): void };
    readonly longestRunningProcessorSeconds: { set(seconds: number): void };
    readonly retries: { inc(): void };
  } {
    const labels = { name };
    let depth = 0;
    const setDepth = (next: number) => this.gauge("workqueue_depth", depth = next, labels);
    const counter = (metric: string) => ({ inc: () => this.count(metric, 1, labels) });
    const gauge = (metric: string) => ({ set: (value: number) => this.gauge(metric, value, labels) });
    const histogram = (metric: string) => ({
      observe: (value: number) => this.observe(metric, value, labels),
    });
    return {
      depth: { inc: () => setDepth(depth + 1), dec: () => setDepth(depth - 1) },
      adds: counter("workqueue_adds_total"),
      latency: histogram("workqueue_queue_duration_seconds"),
      workDuration: histogram("workqueue_work_duration_seconds"),
      unfinishedWorkSeconds: gauge("workqueue_unfinished_work_seconds"),
      longestRunningProcessorSeconds: gauge("workqueue_longest_running_processor_seconds"),
      retries: counter("workqueue_retries_total"),
    };
  }

  text(): string {
    let text = "";
    for (const { name, type, help, series, buckets } of this.#byName.values()) {
      if (series.size === 0) continue;
      text += `# HELP ${name} ${escaped(help, false)}\n# TYPE ${name} ${type}\n`;
      for (const each of series.values()) text += seriesText(name, each, buckets ?? []);
    }
    return text;
  }

  #series(given: string, type: MetricFamily["type"], labels: MetricLabels): Series | undefined {
    const family = this.#families.get(given) ?? this.#newFamily(given, type);
    if (family.type !== type) return undefined;
    const known = family.known.get(labels);
    if (known !== undefined) return known;
    const text = labelsText(labels, type);
    let series = family.series.get(text);
    if (series === undefined) {
      if (family.series.size >= MOST_SERIES) return undefined;
      const counts = new Array<number>((family.buckets?.length ?? 0) + 1).fill(0);
      const histogram = type === "histogram" ? { counts, sum: 0 } : undefined;
      family.series.set(text, series = { labels: text, value: 0, histogram });
    }
    family.known.set(labels, series);
    return series;
  }

  #newFamily(given: string, type: MetricFamily["type"]): Family {
    const name = validName(given, /[^a-zA-Z0-9_:]/g);
    const known = Object.hasOwn(FAMILIES, name) ? FAMILIES[name] : undefined;
    const described = known ?? { type, help: `${name} (no description)`, buckets: REQUEST };
    const family: Family = this.#byName.get(name) ??
      { ...described, name, series: new Map(), known: new WeakMap<MetricLabels, Series>() };
    this.#families.set(given, family);
    this.#byName.set(name, family);
    return family;
  }
}

function seriesText(name: string, { labels, value, histogram }: Series, buckets: readonly number[]): string {
  if (histogram === undefined) return `${name}${braced(labels)} ${numberText(value)}\n`;
  const before = labels === "" ? "" : `${labels},`;
  let text = "";
  let count = 0;
  for (let i = 0; i <= buckets.length; i++) {
    count += histogram.counts[i];
    const bound = i < buckets.length ? numberText(buckets[i]) : "+Inf";
    text += `${name}_bucket{${before}le="${bound}"} ${count}\n`;
  }
  return `${text}${name}_sum${braced(labels)} ${numberText(histogram.sum)}\n${name}_count${
    braced(labels)
  } ${count}\n`;
}

function braced(labels: string): string {
  return labels === "" ? "" : `{${labels}}`;
}

function labelsText(labels: MetricLabels, type: MetricFamily["type"]): string {
  const names = new Map<string, string>();
  for (const [given, value] of Object.entries(labels)) {
    const name = validName(given, /[^a-zA-Z0-9_]/g);
    // `le` is the label of buckets; names that begin with __ are Prometheus' own.
    const isTaken = (type === "histogram" && name === "le") || name.startsWith("__");
    names.set(isTaken ? `label_${name}` : name, String(value));
  }
  return Array.from(names).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => `${name}="${escaped(value, true)}"`).join(",");
}

function validName(name: string, wrong: RegExp): string {
  const valid = name.replace(wrong, "_");
  return /^[0-9]/.test(valid) || valid === "" ? `_${valid}` : valid;
}

function escaped(text: string, isLabel: boolean): string {
  const common = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return isLabel ? common.replaceAll('"', '\\"') : common;
}

/** As Go's ParseFloat reads it. */
function numberText(value: number): string {
  return value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value);
}

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
// As client-go's:
// https://github.com/kubernetes/component-base/blob/master/metrics/prometheus/workqueue/metrics.go
const QUEUE: readonly number[] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10];
// As controller-runtime's:
// https://github.com/kubernetes-sigs/controller-runtime/blob/main/pkg/internal/controller/metrics/metrics.go
const RECONCILE: readonly number[] = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9],
  ...[1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60],
];

const counter = (help: string): MetricFamily => ({ type: "counter", help });
const gauge = (help: string): MetricFamily => ({ type: "gauge", help });
const histogram = (help: string, buckets: readonly number[]): MetricFamily => ({
  type: "histogram",
  help,
  buckets,
});

/** The measurements of reflectors, informers, work queues, controllers and the read API. */
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
  controller_runtime_reconcile_total: counter("Reconciles, by controller and result."),
  controller_runtime_reconcile_errors_total: counter("Reconciles that threw."),
  controller_runtime_terminal_reconcile_errors_total: counter("Reconciles that threw a TerminalError."),
  controller_runtime_reconcile_timeouts_total: counter("Reconciles that took longer than their timeout."),
  controller_runtime_reconcile_time_seconds: histogram("Duration of one reconcile.", RECONCILE),
  controller_runtime_max_concurrent_reconciles: gauge("Workers of the controller."),
  controller_runtime_active_workers: gauge("Workers that are reconciling."),
  leader_election_master_status: gauge("1 while this process leads by the lease; otherwise 0."),
  rest_client_requests_total: counter("Requests to API servers, by status code, method and host."),
  read_api_requests_total: counter("Answered requests, by verb, resource and status code."),
  read_api_request_duration_seconds: histogram(
    "Time until the answer begins, by verb and resource.",
    REQUEST,
  ),
  read_api_readers: gauge("Requests and watches that are being answered."),
  read_api_watches: gauge("Open watches, by resource."),
  read_api_buffered_bytes: gauge("Bytes that are held for readers until their answers are read."),
  read_api_list_bodies: gauge("Bodies of lists that are kept."),
  read_api_list_body_bytes: gauge("Bytes of the kept bodies of lists, and of those that are still read."),
  read_api_synced: gauge(
    "1 if the first list of the resource is there, or a snapshot that the API server has confirmed; otherwise 0.",
  ),
  read_api_lag_seconds: gauge("Time since the last contact with the API server, by resource."),
};
