/** Serves reflected resources to readers: the page, the read API, and who may read. */

import { Hono } from "hono";
import type { ServedMetrics } from "../../metrics/prometheus.ts";
import { readApiOf } from "../../hono/read_api.ts";
import { newReadApiState } from "../../hono/read_api_state.ts";
import { pageNotFound } from "../../hono/send/responses.ts";
import { groupVersionPath } from "../../hono/upstream/open_api.ts";
import type { PassThroughOptions } from "../../hono/upstream/pass_through.ts";
import { StatusError } from "../../meta/status.ts";
import { type ServedFetch, serveFetch, upgradeServed } from "../../node/serving/serve_fetch.ts";
import {
  followServerTls,
  readServerTls,
  type ServerTls,
  type ServerTlsFiles,
} from "../../node/serving/server_tls.ts";
import { type Access, newAccess, type ReaderToken, readerToken } from "../readers/access.ts";
import { newAccessLog } from "../readers/access_log.ts";
import type { Connection } from "../cluster/connect.ts";
import type { ReflectedResource, Selection } from "../cluster/select_resources.ts";
import { dashboardRoutes, resourceState, shownName } from "../dashboard/dashboard.ts";
import type { DashboardState } from "../dashboard/dashboard_message.ts";
import { explainListenError, UsageError } from "../errors.ts";
import type { ServeOptions, ServeSettings } from "./serve_options.ts";

export interface ServedContent {
  readonly resources: readonly ReflectedResource[];
  /** The resources in the order of the cluster's discovery. */
  readonly inDiscoveryOrder: readonly ReflectedResource[];
  readonly connection: Connection;
  /** The version of the cluster's API server, if known. */
  readonly version: Selection["version"];
  readonly metrics: ServedMetrics | undefined;
}

export interface ReadersSettings extends ServeSettings {
  readonly credentials: ReaderCredentials;
}

export interface ServedReaders {
  readonly url: string;
  readonly access: string;
  readonly finished: Promise<void>;
  /** Stops to listen, and ends watches; other answers may end within a time. */
  stop(graceMs: number): Promise<void>;
}

export interface ReaderCredentials {
  readonly token: ReaderToken | undefined;
  readonly certificate: { readonly files: ServerTlsFiles; readonly tls: ServerTls } | undefined;
}

export async function readCredentials(
  options: Omit<ServeSettings, "signal" | "onStep">,
): Promise<ReaderCredentials> {
  const token = await readerToken(options);
  const { tlsCert, tlsKey } = options;
  if (tlsCert === undefined || tlsKey === undefined) return { token, certificate: undefined };
  const files = { certFile: tlsCert, keyFile: tlsKey };
  return { token, certificate: { files, tls: await readServerTls(files) } };
}

export async function serveReaders(content: ServedContent, options: ReadersSettings): Promise<ServedReaders> {
  const { resources, inDiscoveryOrder, connection: { cluster, name, server }, version } = content;
  const { host = DEFAULT_HOST, credentials: { token }, namespace, clock } = options;
  const accessLog = options.accessLog && newAccessLog(clock, options.accessLog);
  const access = newAccess({
    ...options,
    host,
    token,
    noting: accessLog?.noting,
    served: resources,
    reviewedBy: options.clusterRbac ? cluster : undefined,
  });
  const state = newState(content, options, access);
  const api = readApiOf(state);
  const pageState = (): DashboardState => {
    const watches = api.openWatches();
    return {
      nowMs: clock.now(),
      cluster: {
        name: shownName(name),
        server: shownName(server),
        ...(version && { version: shownName(version.gitVersion) }),
        ...(namespace !== undefined && { namespaces: [namespace].flat() }),
        readers: access.description,
      },
      resources: resources.map((resource) =>
        resourceState(resource, watches[inDiscoveryOrder.indexOf(resource)] ?? 0)
      ),
    };
  };
  const app = new Hono();
  if (accessLog !== undefined) app.use("*", accessLog.middleware);
  app.use("*", access.hostGuard);
  const paths = pathsOf(resources);
  app.route("/", dashboardRoutes(state, pageState, access.pageAsked, paths));
  app.route("/", api);
  app.notFound(() => pageNotFound());
  const served = await listen(app.fetch, host, options);
  return {
    url: served.url,
    access: access.description,
    finished: served.finished,
    stop: (graceMs) => {
      api.drain();
      return served.stop(graceMs);
    },
  };
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8787;
// The lists of all Pods of a large cluster, for a program that has a machine.
const MAX_READER_BYTES = 256 * 1024 * 1024;

function newState(
  { inDiscoveryOrder, connection, version, metrics }: ServedContent,
  options: ReadersSettings,
  { readApi }: Access,
): ReturnType<typeof newReadApiState> {
  const { freshness = "stale-if-error", allowSecrets, corsOrigins, signal, clock, logger } = options;
  const { maxLagMs, maxWatches, maxWatchesPerClient } = options;
  return newReadApiState({
    resources: inDiscoveryOrder.map(({ informer, resource }) => ({ informer, resource })),
    ...readApi,
    freshness,
    allowSecrets,
    version,
    openApi: async (path, init) => {
      try {
        return await connection.cluster.open(path, init);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        return new Response(null, { status: error.status.code ?? 500 });
      }
    },
    passThrough: passThroughOf(connection, options),
    upgradeWebSocket: upgradeServed,
    cors: corsOrigins && { origins: corsOrigins.includes("*") ? "*" : corsOrigins },
    maxReaderBytes: MAX_READER_BYTES,
    metrics,
    maxLagMs,
    maxWatches,
    maxWatchesPerClient,
    signal,
    clock,
    logger,
  });
}

/** Where requests for what is not cached are sent: nowhere by default. */
function passThroughOf(
  { anonymous, server }: Connection,
  { passThrough, passThroughWrites = false, clusterRbac = false }: ServeOptions,
): PassThroughOptions | undefined {
  if (!passThrough) return undefined;
  if (anonymous === undefined) {
    throw new UsageError(
      `--pass-through needs a cluster over https, as readers' tokens are sent to it: ${server}`,
    );
  }
  return { ...anonymous, writes: passThroughWrites, clusterTokens: clusterRbac };
}

function pathsOf(resources: readonly ReflectedResource[]): string[] {
  const groupVersions = new Set(resources.map(({ resource }) => `/${groupVersionPath(resource)}`));
  return ["/api", "/apis", ...groupVersions, "/dashboard/state", "/healthz", "/livez", "/readyz", "/version"]
    .sort();
}

async function listen(
  fetch: Parameters<typeof serveFetch>[0],
  host: string,
  options: ReadersSettings,
): Promise<ServedFetch> {
  const { port = DEFAULT_PORT, keepAliveMs, credentials: { certificate }, signal, clock, logger } = options;
  let server: ServedFetch;
  try {
    server = await serveFetch(fetch, {
      host,
      port,
      signal,
      logger,
      webSockets: true,
      ...(keepAliveMs !== undefined && { keepAliveTimeoutMs: keepAliveMs }),
      ...(certificate && { tls: certificate.tls }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw explainListenError(error);
  }
  if (certificate !== undefined) {
    const onChange = (tls: ServerTls) => server.setTls(tls);
    followServerTls(certificate.files, { current: certificate.tls, onChange, signal, clock, logger });
  }
  return server;
}
