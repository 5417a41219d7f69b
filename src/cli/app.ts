/**
 * The app that `serve` serves: the page and the read API.
 * @module
 */

import { Hono } from "hono";
import type { FetchOpenApi } from "../hono/answers/open_api.ts";
import type { ServedMetrics } from "../hono/health/prometheus.ts";
import type { PassThroughOptions } from "../hono/upstream/pass_through_options.ts";
import { readApiOf } from "../hono/read_api.ts";
import { newReadApiState } from "../hono/read_api_state.ts";
import type { Freshness } from "../hono/upstream/freshness.ts";
import { upgradeServed } from "../node/served_sockets.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { Access } from "./access.ts";
import type { AccessLog } from "./access_log.ts";
import type { Dashboard } from "./dashboard/dashboard.ts";
import type { ReflectedResource } from "./dashboard/reflected_resource.ts";
import { dashboardRoutes } from "./dashboard/routes.ts";
import type { Selection } from "./cluster/select_resources.ts";

/** Options of {@linkcode newApp}. */
export interface AppOptions {
  readonly access: Access;
  /** Logs every request; none by default. */
  readonly accessLog?: AccessLog;
  readonly dashboard: Dashboard;
  /** The version of the reflected cluster's API server, if known. */
  readonly version: Selection["version"];
  /** Fetches the OpenAPI documents of the cluster's API server. */
  readonly openApi: FetchOpenApi;
  /** Allows Secrets among the resources; `false` by default. */
  readonly allowSecrets?: boolean;
  /** Where what is not cached is sent; nowhere by default. */
  readonly upstream?: PassThroughOptions;
  /** Origins whose pages may read; `*` for all. */
  readonly corsOrigins?: readonly string[];
  /** How old the last contact with the API server may be for `/readyz` to be ok; see `readApi`. */
  readonly maxLagMs?: number;
  /** How many watches are open at a time, and of one client; see `readApi`. */
  readonly maxWatches?: number;
  readonly maxWatchesPerClient?: number;
  /** How fresh reads without a resourceVersion are. */
  readonly freshness?: Freshness;
  /** Measurements that are served at `/metrics`. */
  readonly metrics?: ServedMetrics | undefined;
  /** Ends open watches. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

// The lists of all Pods of a large cluster, for a program that has a machine.
const MAX_LIST_BODY_BYTES = 256 * 1024 * 1024;

/** The app, and what the page shows of its readers. */
export interface App {
  readonly fetch: Hono["fetch"];
  /** The number of open watches of a resource. */
  openWatches(resource: ReflectedResource): number;
  /** Ends watches, and fails `/readyz`: the server is about to stop. */
  drain(): void;
}

/** Makes the app. */
export function newApp(resources: readonly ReflectedResource[], options: AppOptions): App {
  const {
    access,
    accessLog,
    dashboard,
    version,
    openApi,
    allowSecrets = false,
    maxLagMs,
    corsOrigins,
    metrics,
    signal,
    clock,
    logger,
  } = options;
  const { freshness = "stale-if-error", upstream, maxWatches, maxWatchesPerClient } = options;
  const app = new Hono();
  if (accessLog !== undefined) app.use("*", accessLog.middleware);
  app.use("*", access.hostGuard);
  const state = newReadApiState({
    resources: resources.map(({ informer, resource }) => ({ informer, resource })),
    ...access.readApi,
    freshness,
    ...(allowSecrets && { allowSecrets }),
    ...(version && { version }),
    openApi,
    ...(upstream && { passThrough: upstream }),
    upgradeWebSocket: upgradeServed,
    ...(corsOrigins && { cors: { origins: corsOrigins.includes("*") ? "*" as const : corsOrigins } }),
    maxListBodyBytes: MAX_LIST_BODY_BYTES,
    ...(metrics && { metrics }),
    ...(maxLagMs !== undefined && { maxLagMs }),
    ...(maxWatches !== undefined && { maxWatches }),
    ...(maxWatchesPerClient !== undefined && { maxWatchesPerClient }),
    signal,
    clock,
    logger,
  });
  const api = readApiOf(state);
  app.route("/", dashboardRoutes(state, { dashboard, asked: access.pageAsked, paths: pathsOf(resources) }));
  app.route("/", api);
  app.onError((error, c) => {
    logger.error(`${c.req.method} ${c.req.path} failed: ${error.message}`, { error });
    return c.text("Internal error\n", 500);
  });
  return {
    fetch: app.fetch,
    drain: () => api.drain(),
    openWatches: (resource) => api.openWatches()[resources.indexOf(resource)] ?? 0,
  };
}

function pathsOf(resources: readonly ReflectedResource[]): string[] {
  const groupVersions = new Set(
    resources.map(({ resource: { group, version } }) =>
      group === "" ? `/api/${version}` : `/apis/${group}/${version}`
    ),
  );
  return ["/api", "/apis", ...groupVersions, "/dashboard/events", "/healthz", "/livez", "/readyz", "/version"]
    .sort();
}
