/** Measurements of the read API. */

import { formatGroupResource } from "../../meta/resource.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import type { MetricLabels } from "../../util/metrics.ts";
import type { Asked } from "../request/gate.ts";
import type { ListBodies } from "../send/kept_bodies.ts";
import type { ServedMetrics } from "../../metrics/prometheus.ts";
import type { Readers } from "../request/readers.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { ServedInformer } from "../content/served_informer.ts";

export interface MeasuredState {
  readonly served: readonly {
    readonly resource: ApiResource;
    readonly informer: ServedInformer;
    readonly watchers: { readonly size: number };
  }[];
  readonly readers: Readers;
  readonly bodies: ListBodies;
}

/** Measures requests, and the state of the adapter when the metrics are read. */
export class ReadMetrics {
  readonly #metrics: ServedMetrics;
  readonly #clock: Clock;
  /** One for each of the few sets of labels, so that they are found again. */
  readonly #labels = new Map<string, MetricLabels>();

  constructor(metrics: ServedMetrics, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** A request begins. Returns what to call when its answer begins. */
  begin(): (
    asked: Asked | readonly Asked[] | undefined,
    resources: readonly ApiResource[],
    status: number,
  ) => void {
    const startMs = monotonicNow(this.#clock);
    return (all, resources, status) => {
      const asked = Array.isArray(all) ? undefined : all as Asked | undefined;
      // Only names of what is served: a client could send any number of others.
      const isServed = asked?.scope !== "path" &&
        resources.some(({ group, resource }) => resource === asked?.resource && group === asked.group);
      const resource = isServed && asked !== undefined ? formatGroupResource(asked) : "";
      const verb = asked?.verb ?? "";
      const seconds = (monotonicNow(this.#clock) - startMs) / 1_000;
      const labels = this.#of({ verb, resource });
      this.#metrics.observe("read_api_request_duration_seconds", seconds, labels);
      this.#metrics.count("read_api_requests_total", 1, this.#of({ verb, resource, code: String(status) }));
    };
  }

  measure({ served, readers, bodies }: MeasuredState): void {
    const metrics = this.#metrics;
    metrics.gauge("read_api_readers", readers.count, this.#of({}));
    metrics.gauge("read_api_buffered_bytes", readers.heldBytes, this.#of({}));
    metrics.gauge("read_api_list_bodies", bodies.kept.size, this.#of({}));
    metrics.gauge("read_api_list_body_bytes", bodies.bytes, this.#of({}));
    for (const { resource, informer, watchers } of served) {
      const labels = this.#of({ resource: formatGroupResource(resource) });
      metrics.gauge("read_api_watches", watchers.size, labels);
      metrics.gauge("read_api_synced", informer.hasSynced() ? 1 : 0, labels);
      const lagMs = informer.lagMs?.();
      if (lagMs !== undefined) metrics.gauge("read_api_lag_seconds", lagMs / 1_000, labels);
    }
  }

  async page(state: MeasuredState): Promise<Response> {
    const metrics = this.#metrics;
    this.measure(state);
    const text = await metrics.text();
    return new Response(text, {
      headers: {
        "Content-Type": metrics.contentType,
        "Cache-Control": "no-cache, private",
        "X-Content-Type-Options": "nosniff",
      },
    });
  }

  #of(labels: Record<string, string>): MetricLabels {
    const key = JSON.stringify(labels);
    let known = this.#labels.get(key);
    if (known === undefined) this.#labels.set(key, known = labels);
    return known;
  }
}
