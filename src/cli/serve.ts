/**
 * Reflects a cluster and serves the copy.
 * @module
 */

import type { Cluster } from "../client/cluster.ts";
import type { FetchOpenApi } from "../hono/open_api.ts";
import { StatusError } from "../meta/status.ts";
import { formatResource } from "../meta/resource.ts";
import type { PassThroughOptions } from "../hono/pass_through_options.ts";
import { linkedAbort } from "../util/abort.ts";
import { realClock } from "../util/clock.ts";
import { silentLogger } from "../util/logger.ts";
import { PrometheusMetrics } from "../hono/prometheus.ts";
import { newAccess } from "./access.ts";
import { newAccessLog } from "./access_log.ts";
import { type App, newApp } from "./app.ts";
import { checkServeOptions } from "./check_options.ts";
import { connect, type Connection } from "./connect.ts";
import { readDefinitions } from "./definitions.ts";
import { Dashboard } from "./dashboard/dashboard.ts";
import { type ClusterInfo, shownName } from "./dashboard/dashboard_state.ts";
import type { ReflectedResource } from "./dashboard/reflected_resource.ts";
import { quote, UsageError } from "./errors.ts";
import { listen, readCertificate } from "./listen.ts";
import { readerToken } from "./reader_token.ts";
import { reflect } from "./reflect.ts";
import { type Selection, selectResources } from "./select_resources.ts";
import type { ServeOptions } from "./serve_options.ts";
import { reportSteps } from "./sync_steps.ts";

/**
 * A cluster that is reflected and served. With `await using` it is stopped at the end of the block.
 *
 * @example
 * ```ts
 * import { serve } from "@listwatch/cache/cli";
 * const served = await serve({ port: 0 });
 * await served.synced();
 * console.log(served.url, served.resources);
 * await served.stop();
 * ```
 *
 * @category Command line
 */
export interface Served extends AsyncDisposable {
  /** The URL, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** The names of the reflected resources, such as `pods` and `deployments.apps`. */
  readonly resources: readonly string[];
  /** Resolves when everything has stopped; rejects if the server or an informer failed. */
  readonly finished: Promise<void>;
  /**
   * Resolves when every resource has its first list.
   *
   * @throws {CacheSyncError} The signal was aborted first; the message has the last errors.
   * @throws {InformerStateError} It was stopped first.
   */
  synced(signal?: AbortSignal): Promise<void>;
  /** Stops the watches of readers, the informers and the socket. Resolves when everything has stopped. */
  stop(): Promise<void>;
}

/**
 * Reflects a cluster and serves the copy over HTTP: a page for people at `/`, and the Kubernetes read API.
 *
 * Resolves when the server listens. The first lists may still be incomplete then: see `/readyz` and
 * {@linkcode Served.synced}. From then on no failure of the cluster's API server stops it: it retries, and serves the
 * last known state.
 *
 * @throws {CommandError} It cannot start: the cluster cannot be reached or refuses, the port is in use, ...
 * @throws {UsageError} Options are wrong or contradict each other, or name a resource that the cluster does not have.
 * @throws The signal's reason, if it is aborted before the server listens.
 *
 * @example
 * ```ts
 * import { serve } from "@listwatch/cache/cli";
 * await using served = await serve({ port: 0 }); // the embedded cluster, any free port
 * await served.synced();
 * const pods = await (await fetch(`${served.url}/api/v1/pods`)).json();
 * console.log(pods.items.length > 0); // true
 * ```
 *
 * @category Command line
 */
export async function serve(options: ServeOptions = {}): Promise<Served> {
  checkServeOptions(options);
  const { host = "127.0.0.1", port = 8787, clock = realClock, logger = silentLogger } = options;
  const { source = { kind: "embedded" }, onStep = () => {} } = options;
  const token = await readerToken(options, { clock, logger });
  const certificate = await readCertificate(options);
  options.signal?.throwIfAborted();
  const connection = await connect(source, { clock, logger });
  const link = linkedAbort(options.signal);
  const { signal } = link;
  const tasks: Promise<void>[] = [];
  try {
    const selection = await selectResources(connection, { ...options, clock, signal, onStep });
    onStep({ type: "connected", cluster: connection.name, server: connection.server });
    const metrics = options.metrics ? new PrometheusMetrics() : undefined;
    const resources = selection.resources.map((resource) =>
      reflect(resource, connection, { ...options, metrics, clock, logger })
    );
    const definitions = await readDefinitions(connection.cluster, resources.map(({ resource }) => resource), {
      clock,
      logger,
      signal,
    });
    const names = resources.map(({ name }) => name);
    checkReaderResources(options, names);

    const accessLog = options.accessLog && newAccessLog(clock, options.accessLog);
    const access = newAccess({
      ...options,
      host,
      token,
      noting: accessLog?.noting,
      served: resources,
      reviewedBy: options.clusterRbac ? connection.cluster : undefined,
    });
    const cluster = clusterInfo(connection, selection, { ...options, readers: access.description });
    const dashboard = new Dashboard(resources, {
      cluster,
      watches: (resource) => app.openWatches(resource),
      signal,
      clock,
      logger,
    });
    const { version } = selection;
    const position = ({ resource }: ReflectedResource) =>
      selection.inDiscoveryOrder.findIndex((other) => formatResource(other) === formatResource(resource));
    const inOrder = resources.slice().sort((a, b) => position(a) - position(b));
    const app: App = newApp(inOrder, {
      ...options,
      access,
      accessLog,
      dashboard,
      version,
      openApi: openApiOf(connection.cluster),
      metrics,
      upstream: upstreamOf(connection, options),
      signal,
      clock,
      logger,
    });
    const server = await listen(app.fetch, { host, port, certificate, signal, clock, logger });
    onStep({ type: "listening", url: server.url, resources: names, access: access.description });

    const stopSteps = reportSteps(resources, clock, onStep);
    tasks.push(server.finished);
    if (connection.run !== undefined) tasks.push(connection.run(signal));
    tasks.push(definitions.run(signal));
    for (const { informer } of resources) tasks.push(informer.run(signal));
    const finished = allSettled(tasks, (error) => link.abort(error)).finally(() => {
      stopSteps();
      dashboard.close();
      link.unlink();
    });
    // A caller may ignore `finished`: its rejection must not end the process.
    finished.catch(() => {});
    const stop = async (): Promise<void> => {
      link.abort();
      await finished;
    };
    return {
      url: server.url,
      resources: names,
      finished,
      synced: (until) => Promise.all(resources.map(({ informer }) => informer.synced(until))).then(() => {}),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    link.abort(error);
    connection.close?.();
    await Promise.allSettled(tasks);
    link.unlink();
    throw error;
  }
}

/** Fetches OpenAPI documents with the credentials of the cluster. */
function openApiOf(cluster: Pick<Cluster, "open">): FetchOpenApi {
  return async (path, init) => {
    try {
      return await cluster.open(path, init);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return new Response(null, { status: error.status.code ?? 500 });
    }
  };
}

function upstreamOf(
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

function checkReaderResources({ readerResources }: ServeOptions, names: readonly string[]): void {
  const unknown = readerResources?.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new UsageError(
    `--reader-resources has ${quote(unknown)}, which is not among the resources: ${names.join(", ")}`,
  );
}

/** The cluster as the page shows it. */
function clusterInfo(
  { name, server }: Connection,
  { version }: Selection,
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

/** Waits for all tasks. Calls `onFailure` at the first failure, so that it can stop the others, and rejects with it. */
async function allSettled(
  tasks: readonly Promise<void>[],
  onFailure: (error: unknown) => void,
): Promise<void> {
  for (const task of tasks) task.catch(onFailure);
  const results = await Promise.allSettled(tasks);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
