/**
 * Measurements as a page for Prometheus.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { PrometheusMetrics } from "@listwatch/cache/metrics";
 * const metrics = new PrometheusMetrics();
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"), { metrics });
 * console.log(pods.name, metrics.text()); // what its requests and events were, once it runs
 * ```
 *
 * @module
 */

export { PrometheusMetrics, type ServedMetrics } from "./prometheus.ts";
