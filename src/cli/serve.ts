/**
 * The main job: a cluster, reflected and served.
 * @module
 */

import { Hono } from "hono";
import { readApi } from "../hono/read_api.ts";
import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Cluster } from "../client/cluster.ts";
import { MIN_TOKEN_LENGTH } from "../hono/bearer_tokens.ts";
import { FileToken } from "../node/file_token.ts";
import { serveFetch } from "../node/serve_fetch.ts";
import { followServerTls, readServerTls } from "../node/server_tls.ts";
import { metaNamespaceIndex } from "../store/index_func.ts";
import { fieldTree } from "../watch/field_tree.ts";
import { linkedAbort } from "../util/abort.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { type Logger, silentLogger } from "../util/logger.ts";
import { newAccess } from "./access.ts";
import { newAccessLog } from "./access_log.ts";
import { clientOptions, connect, type Connection, selectResources, servedResource } from "./connect.ts";
import { ChangeFeed } from "./dashboard/change_feed.ts";
import { DashboardCounter, shownName } from "./dashboard/dashboard_state.ts";
import { isCore, type ReflectedIndex, type ReflectedResource } from "./dashboard/reflected_resource.ts";
import { dashboard } from "./dashboard/routes.ts";
import { StateStream } from "./dashboard/state_stream.ts";
import type { DiscoveredResource } from "./discovery.ts";
import { explainListenError, quote, UsageError } from "./errors.ts";
import { formatGroupResource } from "../meta/resource.ts";
import type { ServeOptions } from "./serve_options.ts";
import { tellSteps } from "./sync_steps.ts";

/**
 * What {@linkcode serve} started. With `await using` it is stopped at the end of the block.
 *
 * @example
 * ```ts
 * import { serve } from "@listwatch/cache/cli";
 * const served = await serve({ port: 0 });
 * await served.synced();
 * console.log(served.url, served.resources);
 * await served.stop();
 * ```
 */
export interface Served extends AsyncDisposable {
  /** Where it is served, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** What is reflected, by the names that people know. */
  readonly resources: readonly string[];
  /** Resolves when everything has stopped; rejects when something that must not fail did. */
  readonly finished: Promise<void>;
  /**
   * Resolves when every resource holds its first list.
   *
   * @throws {CacheSyncError} The signal was aborted first; it says what the tries fail with.
   * @throws {InformerStateError} It was stopped before.
   */
  synced(signal?: AbortSignal): Promise<void>;
  /** Ends everything: watches of readers, informers, the listening socket. Resolves when nothing is left. */
  stop(): Promise<void>;
}

/**
 * Reflects a cluster and serves the copy over HTTP: a page for people at `/`, beside it the Kubernetes read API.
 *
 * Resolves when readers are answered. The first lists may still be under way then: `/readyz` and
 * {@linkcode Served.synced} tell. From then on nothing that the cluster's API server does ends it: what cannot be read
 * is tried again, and what is known is served.
 *
 * @throws {CommandError} It cannot start: the cluster is out of reach or refuses, the port is taken, ...
 * @throws {UsageError} The options contradict each other, or name a resource that the cluster does not have.
 * @throws The signal's reason, if it is aborted before readers are answered.
 *
 * @example
 * ```ts
 * import { serve } from "@listwatch/cache/cli";
 * await using served = await serve({ port: 0 }); // the embedded cluster, any free port
 * await served.synced();
 * const pods = await (await fetch(`${served.url}/api/v1/pods`)).json();
 * console.log(pods.items.length > 0); // true
 * ```
 */
export async function serve(options: ServeOptions = {}): Promise<Served> {
  const { host = "127.0.0.1", port = 8787, namespace, clock = realClock, logger = silentLogger } = options;
  const { source = { kind: "embedded" }, onStep = () => {} } = options;
  checkOptions(options);
  const tlsFiles = options.tlsCert !== undefined && options.tlsKey !== undefined
    ? { certFile: options.tlsCert, keyFile: options.tlsKey }
    : undefined;
  const token = await tokenOf(options, { clock, logger });
  const served: { resources: ReflectedResource[]; cluster?: Cluster } = { resources: [] };
  const log = options.accessLog && newAccessLog(clock, options.accessLog);
  const access = newAccess({
    ...options,
    host,
    ...(token !== undefined && { token }),
    ...(log && { noting: log.noting }),
    served: () => served.resources,
    ...(options.clusterRbac && { reviewedBy: () => served.cluster as Cluster }),
  });
  const tls = tlsFiles && await readServerTls(tlsFiles);
  options.signal?.throwIfAborted();
  const link = linkedAbort(options.signal);
  const { signal } = link;
  const connection = await connect(source, { clock, logger });
  const background: Promise<void>[] = [];
  try {
    const selection = await selectResources(connection, {
      ...options,
      names: options.resources,
      clock,
      signal,
      onStep,
    });
    onStep({ type: "connected", cluster: connection.name, server: connection.server });
    const resources = selection.resources.map((resource) =>
      reflect(resource, connection, { namespace, drop: options.drop, clock, logger })
    );
    Object.assign(served, { resources, cluster: connection.cluster });
    checkReaderResources(options, resources);

    const startedMs = clock.now();
    const failed = newViewReports(logger);
    const counter = new DashboardCounter(resources, { onError: failed });
    const feed = new ChangeFeed(resources, {
      clock,
      onChange: (resource) => {
        counter.changed(resource);
        stream.changed();
      },
      onError: (error) => failed("changes", error),
    });
    const cluster = {
      name: shownName(connection.name),
      server: shownName(connection.server),
      ...(selection.version && { version: shownName(selection.version.gitVersion) }),
      ...(namespace !== undefined && { namespace }),
      readers: access.description,
    };
    const stream = new StateStream({
      state: () => ({
        nowMs: clock.now(),
        startedMs,
        cluster,
        changesPerSecond: feed.changesPerSecond(),
        ...counter.count(),
      }),
      feed,
      clock,
      signal,
      onError: (error) => failed("state", error),
    });
    for (const { informer } of resources) informer.onStatus(() => stream.changed());

    const app = new Hono();
    if (log !== undefined) app.use("*", log.middleware);
    app.use("*", access.hostGuard);
    app.route("/", dashboard({ stream, guard: access.pageGuard, paths: pathsOf(resources) }));
    app.route(
      "/",
      readApi({
        resources: resources.map(({ informer, resource }) => ({ informer, resource })),
        ...access.readApi,
        ...(options.allowSecrets === true && { allowSecrets: true }),
        ...(selection.version && { version: selection.version }),
        signal,
        clock,
        logger,
      }),
    );
    app.onError((error, c) => {
      logger.error(`${c.req.method} ${c.req.path} failed: ${error.message}`, { error });
      return c.text("Internal error\n", 500);
    });
    const server = await serveFetch(app.fetch, { host, port, signal, logger, ...(tls && { tls }) }).catch(
      (error) => {
        signal.throwIfAborted();
        throw explainListenError(error, host, port);
      },
    );
    if (tls !== undefined && tlsFiles !== undefined) {
      followServerTls(tlsFiles, {
        current: tls,
        onChange: (next) => server.setTls(next),
        signal,
        clock,
        logger,
      });
    }
    background.push(server.finished);
    const names = resources.map(({ name }) => name);
    onStep({ type: "listening", url: server.url, resources: names, access: access.description });

    const stopTelling = tellSteps(resources, clock, onStep);
    if (connection.run !== undefined) background.push(connection.run(signal));
    for (const { informer } of resources) background.push(informer.run(signal));
    const finished = settled(background, (error) => link.abort(error)).finally(() => {
      stopTelling();
      feed.close();
      link.unlink();
    });
    // Whoever does not look at `finished` is not punished with an unhandled rejection.
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
    await Promise.allSettled(background);
    link.unlink();
    throw error;
  }
}

interface ReflectOptions extends Required<Pick<ServeOptions, "clock" | "logger">> {
  readonly namespace: string | undefined;
  readonly drop: readonly string[] | undefined;
}

function checkOptions(options: ServeOptions): void {
  for (const name of ["allowAnonymous", "allowSecrets", "clusterRbac"] as const) {
    const value: unknown = options[name];
    if (value !== undefined && typeof value !== "boolean") {
      throw new UsageError(`${name} must be true or false`);
    }
  }
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
    throw new UsageError("A certificate and its key go together: --tls-cert FILE --tls-key FILE");
  }
  if (options.token !== undefined && options.tokenFile !== undefined) {
    throw new UsageError("There are --token and --token-file: leave one of them out");
  }
  try {
    fieldTree(undefined, options.drop ?? []);
  } catch (error) {
    throw new UsageError(errorMessage(error));
  }
  if (options.clusterRbac && (options.source?.kind ?? "embedded") === "embedded") {
    throw new UsageError("--cluster-rbac asks a real cluster: name it with --kubeconfig or --context");
  }
}

/** What readers must present. A file is read now, so that one that cannot be read is told at once. */
async function tokenOf(
  { token, tokenFile }: ServeOptions,
  options: { readonly clock: Clock; readonly logger: Logger },
): Promise<string | (() => Promise<string>) | undefined> {
  if (tokenFile === undefined) return token;
  const file = new FileToken(tokenFile, options);
  const read = async (): Promise<string> => {
    const found = await file.read();
    if (found.length < MIN_TOKEN_LENGTH) {
      throw new UsageError(`The token in ${tokenFile} is shorter than ${MIN_TOKEN_LENGTH} characters`);
    }
    return found;
  };
  await read();
  return read;
}

function checkReaderResources(options: ServeOptions, resources: readonly ReflectedResource[]): void {
  const names = resources.map(({ name }) => name);
  const unknown = options.readerResources?.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`--reader-resources names ${quote(unknown)}, and there are ${names.join(", ")}`);
  }
}

function reflect(
  resource: DiscoveredResource,
  connection: Connection,
  options: ReflectOptions,
): ReflectedResource {
  const { namespace, drop, clock, logger } = options;
  const name = formatGroupResource(resource);
  const served = servedResource(resource);
  const client = connection.cluster.resource<KubernetesObject>(
    resource,
    clientOptions(resource, { namespace, drop }),
  );
  const isPods = isCore({ resource }, "pods");
  const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(client, {
    name,
    indexers: { namespace: metaNamespaceIndex, byNode: isPods ? nodeOf : () => [] },
    clock,
    logger,
  });
  return { name, resource: served, informer };
}

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: unknown } | null;
}

/** The node that a pod runs on, or "" for one that waits for a node. */
function nodeOf(object: KubernetesObject): string[] {
  const nodeName = (object as Pod).spec?.nodeName;
  return [typeof nodeName === "string" ? nodeName : ""];
}

/** Tells the log of each part of the page that cannot be shown, once. */
function newViewReports(logger: Logger): (view: string, error: unknown) => void {
  const told = new Set<string>();
  return (view, error) => {
    if (told.has(view)) return;
    told.add(view);
    logger.error(`The page's ${view} cannot be shown whole: ${errorMessage(error)}`, { error });
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

/** Waits for all; the first failure is told at once, so that the others end, and thrown in the end. */
async function settled(tasks: readonly Promise<void>[], onFailure: (error: unknown) => void): Promise<void> {
  for (const task of tasks) task.catch(onFailure);
  const results = await Promise.allSettled(tasks);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
