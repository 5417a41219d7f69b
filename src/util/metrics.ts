import { callGuarded } from "./errors.ts";
import { type Logger, once } from "./logger.ts";

/** The labels of a measurement: names and values, as in Prometheus. */
export type MetricLabels = Readonly<Record<string, string>>;

/**
 * Receives measurements: three methods that fit any metrics library. Durations are in seconds, sizes in
 * bytes. The methods are called in the turn of what is measured; they must be fast. What they throw is logged
 * once, and ends nothing.
 *
 * `PrometheusMetrics` has a help text for each measurement, and says what type it is. Those of a reflector and
 * of an informer have its name as the label `name`.
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
