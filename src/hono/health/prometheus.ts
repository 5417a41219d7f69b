/** Metrics in the text format of Prometheus. */

import type { MetricLabels, Metrics } from "../../util/metrics.ts";
import { FAMILIES, type MetricFamily, REQUEST } from "./metric_families.ts";

/**
 * Metrics that can be served as a page: what `readApi` takes as `metrics`.
 *
 * @category HTTP adapter
 */
export interface ServedMetrics extends Metrics {
  /** The Content-Type of the text. */
  readonly contentType: string;
  /** All measurements, now. */
  text(): string | Promise<string>;
}

interface Histogram {
  /** How many values are in each bucket and not in the one before; the last one is +Inf. */
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
  /** The same, by the object that a caller uses for them again and again. */
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
 * import { PrometheusMetrics, readApi } from "@listwatch/cache/hono";
 * const metrics = new PrometheusMetrics();
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"), { metrics });
 * const api = readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true, metrics });
 * console.log((await api.request("/metrics")).status); // 200
 * ```
 *
 * @category HTTP adapter
 */
export class PrometheusMetrics implements ServedMetrics {
  readonly #families = new Map<string, Family>();
  readonly #byName = new Map<string, Family>();

  /** The Content-Type of {@linkcode PrometheusMetrics.text}. */
  readonly contentType: string = "text/plain; version=0.0.4; charset=utf-8";

  /** Adds to a counter. */
  count(name: string, value: number, labels: MetricLabels): void {
    const series = this.#series(name, "counter", labels);
    if (series !== undefined && value >= 0 && value < Infinity) series.value += value;
  }

  /** Sets a gauge. */
  gauge(name: string, value: number, labels: MetricLabels): void {
    const series = this.#series(name, "gauge", labels);
    if (series !== undefined && Number.isFinite(value)) series.value = value;
  }

  /** Puts a value into a histogram. */
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

  /** All measurements, each name with its help text and type. */
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
