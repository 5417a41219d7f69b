/**
 * Serves reflected resources to readers: the page, the read API, and who may read.
 * @module
 */

import type { Cluster } from "../client/cluster.ts";
import type { ReviewCluster } from "../hono/access/access_review.ts";
import type { FetchOpenApi } from "../hono/answers/open_api.ts";
import type { PassThroughOptions } from "../hono/upstream/pass_through_options.ts";
import type { ServedMetrics } from "../hono/health/prometheus.ts";
import { StatusError } from "../meta/status.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { newAccess } from "./access.ts";
import { newAccessLog } from "./access_log.ts";
import { type App, newApp } from "./app.ts";
import type { Connection } from "./cluster/connect.ts";
import { Dashboard } from "./dashboard/dashboard.ts";
import type { ClusterInfo } from "./dashboard/dashboard_message.ts";
import { shownName } from "./dashboard/dashboard_state.ts";
import type { ReflectedResource } from "./dashboard/reflected_resource.ts";
import { UsageError } from "./errors.ts";
import { listen, readCertificate } from "./listen.ts";
import { type ReaderToken, readerToken } from "./reader_token.ts";
import type { Selection } from "./cluster/select_resources.ts";
import type { ServeOptions } from "./serve_options.ts";

/** What is served, and the cluster that it comes from. */
export interface ServedContent {
  readonly resources: readonly ReflectedResource[];
  /** The same in the order of the cluster's discovery. */
  readonly inDiscoveryOrder: readonly ReflectedResource[];
  /** The cluster, as people call it. */
  readonly cluster: { readonly name: string; readonly server: string };
  /** The version of its API server, if known. */
  readonly version: Selection["version"];
  readonly openApi: FetchOpenApi;
  /** Where readers' tokens and permissions are reviewed, with `clusterRbac`. */
  readonly reviewedBy: ReviewCluster;
  /** Where what is not cached is sent; nowhere by default. */
  readonly upstream?: PassThroughOptions | undefined;
  readonly metrics?: ServedMetrics | undefined;
}

/** Options of {@linkcode serveReaders}. */
export interface ReadersOptions extends ServeOptions {
  /** What {@linkcode readCredentials} returned. */
  readonly credentials: ReaderCredentials;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Readers that are served. */
export interface ServedReaders {
  readonly url: string;
  /** Who may read, as text for people. */
  readonly access: string;
  /** Resolves when the socket is closed. */
  readonly finished: Promise<void>;
  /** Stops to listen, and ends watches and pages; other answers may end within a time. Resolves when the socket is closed. */
  stop(graceMs: number): Promise<void>;
  /** Stops observing the informers. */
  close(): void;
}

/** The token of readers, and the certificate of the server. */
export interface ReaderCredentials {
  readonly token: ReaderToken | undefined;
  readonly certificate: Awaited<ReturnType<typeof readCertificate>>;
}

/**
 * Reads the files that the options name.
 *
 * @throws {UsageError} The token cannot be used.
 * @throws {KubeconfigError} The token's file cannot be read.
 * @throws {TlsError} The certificate cannot be used.
 */
export async function readCredentials(
  options: ServeOptions & { readonly clock: Clock; readonly logger: Logger },
): Promise<ReaderCredentials> {
  return { token: await readerToken(options, options), certificate: await readCertificate(options) };
}

/**
 * Listens, until the signal is aborted.
 *
 * @throws {CommandError} It cannot listen.
 */
export async function serveReaders(content: ServedContent, options: ReadersOptions): Promise<ServedReaders> {
  const { resources, inDiscoveryOrder, version, openApi, upstream, metrics } = content;
  const { host = DEFAULT_HOST, port = DEFAULT_PORT, credentials, signal, clock, logger } = options;
  const accessLog = options.accessLog && newAccessLog(clock, options.accessLog);
  const access = newAccess({
    ...options,
    host,
    token: credentials.token,
    noting: accessLog?.noting,
    served: resources,
    reviewedBy: options.clusterRbac ? content.reviewedBy : undefined,
  });
  let app: App | undefined = undefined;
  const dashboard = new Dashboard(resources, {
    cluster: clusterInfo(content, { ...options, readers: access.description }),
    watches: (resource) => app?.openWatches(resource) ?? 0,
    clock,
    logger,
  });
  try {
    app = newApp(inDiscoveryOrder, {
      ...options,
      access,
      accessLog,
      dashboard,
      version,
      openApi,
      metrics,
      upstream,
      signal,
      clock,
      logger,
    });
    const { certificate } = credentials;
    const server = await listen(app.fetch, {
      host,
      port,
      certificate,
      webSockets: true,
      keepAliveMs: options.keepAliveMs,
      signal,
      clock,
      logger,
    });
    const { url, finished } = server;
    return {
      url,
      access: access.description,
      finished,
      stop: (graceMs) => {
        app?.drain();
        return server.stop(graceMs);
      },
      close: () => dashboard.close(),
    };
  } catch (error) {
    dashboard.close();
    throw error;
  }
}

/** The address to listen on by default. */
export const DEFAULT_HOST = "127.0.0.1";
/** The port to listen on by default. */
export const DEFAULT_PORT = 8787;

/** Fetches OpenAPI documents with the credentials of the cluster. */
export function openApiOf(cluster: Pick<Cluster, "open">): FetchOpenApi {
  return async (path, init) => {
    try {
      return await cluster.open(path, init);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return new Response(null, { status: error.status.code ?? 500 });
    }
  };
}

/**
 * Where what is not cached is sent, by the options.
 *
 * @throws {UsageError} They need it, and there is no API server over https.
 */
export function upstreamOf(
  { anonymous, server }: {
    readonly anonymous?: Connection["anonymous"];
    readonly server: string;
  },
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

/** The cluster as the page shows it. */
function clusterInfo(
  { cluster: { name, server }, version }: ServedContent,
  { namespace, readers }: { readonly namespace?: string; readonly readers: string },
): ClusterInfo {
  return {
    name: shownName(name),
    server: shownName(server),
    ...(version && { version: shownName(version.gitVersion) }),
    ...(namespace !== undefined && { namespace }),
    readers,
  };
}
