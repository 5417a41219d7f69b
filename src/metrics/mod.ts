/**
 * Measurements as a page for Prometheus.
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
 *
 * @module
 */

export { PrometheusMetrics, type ServedMetrics } from "./prometheus.ts";
