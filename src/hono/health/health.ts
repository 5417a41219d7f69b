/** `/healthz`, `/livez` and `/readyz`. */

import type { ApiResource } from "../../protocol/api_resource.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { TEXT_HEADERS as HEADERS } from "../send/responses.ts";
import { type ServedInformer, sourcesOf } from "../content/served_informer.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import type { MetricLabels } from "../../util/metrics.ts";
import type { Asked } from "../request/gate.ts";
import type { ListBodies } from "../send/kept_bodies.ts";
import type { ServedMetrics } from "../../metrics/prometheus.ts";
import type { Readers } from "../request/readers.ts";

/** The process answers. `verbose`: with the name of what was checked, for a path such as `/livez`. */
export function alive(verbose: string | false = false): Response {
  const text = verbose === false ? "ok" : `[+]ping ok\n${verbose.slice(1)} check passed\n`;
  return new Response(text, { headers: HEADERS });
}

export interface Check {
  readonly name: string;
  readonly problem: string | undefined;
}

export function checksOf(
  served: readonly { readonly resource: ApiResource; readonly informer: ServedInformer }[],
  readers: { readonly isDraining: boolean },
  maxLagMs: number | undefined,
): Check[] {
  const informers = served.flatMap(({ resource, informer }) =>
    sourcesOf(informer).map((source): Check => ({
      name: `informer/${formatGroupResource(resource)}${source.name && ` of ${source.name}`}`,
      problem: unreadiness(source.informer, maxLagMs),
    }))
  );
  const stopping = readers.isDraining ? [{ name: "shutdown", problem: "the server is about to stop" }] : [];
  return [...informers, ...stopping];
}

// Bookmarks come about once a minute:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks
const MAX_LAG_MS = 120_000;
// A watch without bookmarks ends after 5 to 10 minutes.
const MAX_LAG_WITHOUT_BOOKMARKS_MS = 660_000;

/**
 * Why an informer's copy must not be relied on, at this moment: it has not synced, it has stopped, or its
 * server has been silent for too long. `undefined` if it may be. Computed at each request, without a timer:
 * so it is true after a program was frozen.
 */
function unreadiness(informer: ServedInformer, maxLagMs: number | undefined): string | undefined {
  const { phase, hasNoBookmarks } = informer.status();
  if (!informer.hasSynced()) {
    const what = informer.isRestored?.() ? "a snapshot, not confirmed by the API server" : "not synced";
    return `${what}, ${phase}`;
  }
  if (phase === "stopped") return "stopped";
  // A server that sends none shows nothing of a quiet resource but an open watch.
  if (maxLagMs === undefined && hasNoBookmarks && phase === "watching") return undefined;
  const mostMs = maxLagMs ?? (hasNoBookmarks ? MAX_LAG_WITHOUT_BOOKMARKS_MS : MAX_LAG_MS);
  const lagMs = informer.lagMs?.();
  if (lagMs === undefined || lagMs <= mostMs) return undefined;
  const over = `${seconds(lagMs - mostMs)} more than the maximum of ${seconds(mostMs)}`;
  return `no news from the API server for ${seconds(lagMs)}, ${over}; ${phase}`;
}

function seconds(ms: number): string {
  return `${ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1_000)} s`;
}

/**
 * 200 `ok` while every informer has synced and has recent news of its server; otherwise 503, with those that
 * fail. With `?verbose` all are named. Names are only for users that may read them. Resources that are not
 * ready are served nevertheless.
 */
export function ready(
  checks: readonly Check[],
  { verbose, mayName }: { readonly verbose: boolean; readonly mayName: boolean },
): Response {
  const lines = ["[+]ping ok"];
  let isReady = true;
  for (const { name, problem } of checks) {
    lines.push(problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`);
    isReady &&= problem === undefined;
  }
  if (isReady && !verbose) return new Response("ok", { headers: HEADERS });
  const end = `readyz check ${isReady ? "passed" : "failed"}\n`;
  const text = mayName ? `${lines.join("\n")}\n${end}` : end;
  return new Response(text, { status: isReady ? 200 : 503, headers: HEADERS });
}

interface MeasuredState {
  readonly served: readonly {
    readonly resource: ApiResource;
    readonly informer: ServedInformer;
    readonly watchers: { readonly size: number };
  }[];
  readonly readers: Readers;
  readonly bodies: ListBodies;
}

export class ReadMetrics {
  readonly #metrics: ServedMetrics;
  readonly #clock: Clock;
  /** One object for each of the few sets of labels, so that its series is found again. */
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
      // The labels have only names of served resources: a client could send any number of others.
      const isServed = asked !== undefined &&
        resources.some(({ group, resource }) => resource === asked.resource && group === asked.group);
      const resource = isServed ? formatGroupResource(asked) : "";
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
    return getOrMake(this.#labels, JSON.stringify(labels), () => labels);
  }
}
