import { PrometheusMetrics } from "../../metrics/prometheus.ts";
import { formatResource } from "../../meta/resource.ts";
import type { ReflectorStatus } from "../../reflector/state.ts";
import { linkedAbort } from "../../util/abort.ts";
import { type Clock, monotonicNow, realClock } from "../../util/clock.ts";
import { silentLogger } from "../../util/logger.ts";
import { ClusterGate, connect, type Connection } from "../cluster/connect.ts";
import { readDefinitions } from "../cluster/definitions.ts";
import { reflect, type ReflectedResource, selectResources } from "../cluster/select_resources.ts";
import { prepareFolder, removeOtherSnapshots, SavedCluster, snapshotPath } from "../cluster/saved_cluster.ts";
import { briefReason, quote, UsageError } from "../errors.ts";
import {
  checkServeOptions,
  type ServeOptions,
  type ServeSettings,
  type ServeStep,
  type SyncProgress,
} from "./serve_options.ts";
import { readCredentials, type ServedContent, serveReaders } from "./serve_readers.ts";

/** A cluster that is reflected and served. With `await using` it is stopped at the end of the block. */
export interface Served extends AsyncDisposable {
  /** The URL, such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** The names of the reflected resources, such as `pods` and `deployments.apps`. */
  readonly resources: readonly string[];
  /** Resolves when everything has stopped; rejects if the server or an informer failed. */
  readonly finished: Promise<void>;
  /**
   * Resolves when every resource has its first list.
   * @throws {CacheSyncError} The signal was aborted first; the message has the last errors.
   * @throws {InformerStateError} The server was stopped before.
   */
  synced(signal?: AbortSignal): Promise<void>;
  /**
   * Stops: no connection is accepted any more, watches end in good order, other answers that are under way
   * end within {@linkcode ServeOptions.shutdownGraceMs}, then the informers. Resolves when everything has
   * stopped.
   */
  stop(): Promise<void>;
}

/**
 * Reflects a cluster and serves the copy over HTTP: a dashboard at `/`, and the Kubernetes read API.
 *
 * Resolves when the server listens. The first lists may still be incomplete then: see `/readyz` and
 * {@linkcode Served.synced}. From then on no failure of the cluster's API server stops it: it retries, and
 * serves the last known state.
 * @throws {CommandError} The server cannot start: the cluster is away or refuses, the port is in use, ...
 * @throws {UsageError} Options are wrong or contradict each other, or name a resource that the cluster
 * does not have.
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
 */
export async function serve(options: ServeOptions = {}): Promise<Served> {
  checkServeOptions(options);
  const { clock = realClock, logger = silentLogger, onStep = () => {} } = options;
  const { source = { kind: "embedded" } } = options;
  const credentials = await readCredentials({ ...options, clock, logger });
  options.signal?.throwIfAborted();
  const gate = new ClusterGate(clock);
  const connection = await connect(source, { clock, logger }, gate);
  const link = linkedAbort(options.signal);
  const { signal } = link;
  const tasks: Promise<void>[] = [];
  try {
    const settings = { ...options, credentials, signal, clock, logger, onStep };
    const { content, definitions, awayUid, saved } = await reflectCluster(connection, settings);
    const { resources } = content;
    const names = resources.map(({ name }) => name);
    checkReaderResources(options, names);
    const readers = await serveReaders(content, settings);
    onStep({ type: "listening", url: readers.url, resources: names, access: readers.access });

    const synced = async (until?: AbortSignal): Promise<void> => {
      await Promise.all(resources.map(({ informer }) => informer.synced(until)));
    };
    const stopSteps = reportSteps(resources, { clock, report: onStep, synced });
    if (awayUid !== undefined) {
      tasks.push(gate.expect({ uid: awayUid, folder: options.snapshot ?? "", signal }));
    }
    tasks.push(readers.finished);
    if (connection.run !== undefined) tasks.push(connection.run(signal));
    tasks.push(definitions.run(signal));
    for (const { informer } of resources) tasks.push(informer.run(signal));
    const finished = allSettled(tasks, (error) => link.abort(error)).finally(() => {
      stopSteps();
      link.unlink();
      return saved();
    });
    // A caller may ignore `finished`: its rejection must not end the process.
    finished.catch(() => {});
    const { shutdownGraceMs = SHUTDOWN_GRACE_MS } = options;
    const stop = async (): Promise<void> => {
      // Readers stop after the last answer, as reads may wait for changes.
      await readers.stop(shutdownGraceMs);
      link.abort();
      await finished;
    };
    return { url: readers.url, resources: names, finished, synced, stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    link.abort(error);
    connection.close?.();
    await Promise.allSettled(tasks);
    link.unlink();
    throw error;
  }
}

/** How long answers may take at the end, by default. */
export const SHUTDOWN_GRACE_MS = 10_000;

/**
 * The served resources, and the definitions to run. `awayUid` is the uid of the cluster of the snapshots, if
 * the cluster does not respond; `saved` resolves when what is known of the cluster has been saved.
 */
async function reflectCluster(connection: Connection, settings: ServeSettings) {
  const { clock, logger, signal, onStep, snapshot: folder } = settings;
  if (folder !== undefined) await prepareFolder(folder, logger);
  const kept = folder === undefined ? undefined : new SavedCluster(folder, connection, settings);
  const saved = await kept?.load();
  const selection = await selectResources(connection, settings, saved);
  const { away, clusterUid } = selection;
  if (folder !== undefined) await removeOtherSnapshots(folder, { resources: selection.resources, logger });
  const called = { cluster: connection.name, server: connection.server };
  if (away === undefined) onStep({ type: "connected", ...called });
  else onStep({ type: "away", ...called, message: away.message });
  const metrics = settings.metrics ? new PrometheusMetrics() : undefined;
  const resources = selection.resources.map((resource) =>
    reflect(resource, connection, settings, {
      snapshotPath: folder === undefined ? undefined : snapshotPath(folder, resource),
      clusterUid,
      metrics,
    })
  );
  if (away !== undefined) {
    for (const { resource } of resources) {
      const name = formatResource(resource);
      Object.assign(resource, saved?.served.find((before) => formatResource(before) === name));
    }
  }
  const served = resources.map(({ resource }) => resource);
  const save = () => void kept?.save({ ...selection, served });
  const reading = { clock, logger, signal, isAway: away !== undefined, onChange: save };
  const definitions = await readDefinitions(connection.cluster, served, reading);
  if (away === undefined) save();
  const position = ({ resource }: ReflectedResource) =>
    selection.discoveryOrder.indexOf(formatResource(resource));
  const content: ServedContent = {
    resources,
    inDiscoveryOrder: resources.slice().sort((a, b) => position(a) - position(b)),
    connection,
    version: selection.version,
    metrics,
  };
  return { content, definitions, awayUid: away && clusterUid, saved: async () => await kept?.saved() };
}

function checkReaderResources({ readerResources }: ServeOptions, names: readonly string[]): void {
  const unknown = readerResources?.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  throw new UsageError(
    `--reader-resources has ${quote(unknown)}, which is not among the resources: ${names.join(", ")}`,
  );
}

async function allSettled(
  tasks: readonly Promise<void>[],
  onFailure: (error: unknown) => void,
): Promise<void> {
  for (const task of tasks) task.catch(onFailure);
  const results = await Promise.allSettled(tasks);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

// A single failed attempt, such as while an API server restarts, is not reported.
const TRIES_BEFORE_TROUBLE = 2;

/** Reports the steps `syncing`, `synced`, `trouble` and `recovered` of informers that will run. */
export function reportSteps(
  resources: readonly ReflectedResource[],
  options: {
    readonly clock: Clock;
    readonly report: (step: ServeStep) => void;
    /** Resolves when readers receive every resource's first list. */
    readonly synced: () => Promise<void>;
  },
): () => void {
  const { clock, report } = options;
  const startMs = monotonicNow(clock);
  const inTrouble = new Set<ReflectedResource>();
  const reported = new Set<string>();
  let isOver = false;
  let isSynced = false;

  const progress = (): SyncProgress[] =>
    resources.map(({ name, informer }) => {
      const { progress } = informer.status();
      return {
        resource: name,
        synced: informer.hasSynced(),
        items: informer.hasSynced() ? informer.indexer.size : progress?.items ?? 0,
        ...(progress?.remaining !== undefined && { remaining: progress.remaining }),
      };
    });
  const onStatus = (resource: ReflectedResource, status: ReflectorStatus): void => {
    if (!isSynced) report({ type: "syncing", progress: progress() });
    const { outage, lastError } = status;
    if (outage !== undefined && outage.failedTries >= TRIES_BEFORE_TROUBLE && lastError !== undefined) {
      inTrouble.add(resource);
      if (reported.has(lastError.code)) return;
      reported.add(lastError.code);
      report({ type: "trouble", resource: resource.name, message: briefReason(lastError) });
    } else if (outage === undefined && inTrouble.delete(resource) && inTrouble.size === 0) {
      reported.clear();
      report({ type: "recovered", resource: resource.name });
    }
  };
  const unlisten = resources.map((resource) =>
    resource.informer.onStatus((status) => onStatus(resource, status))
  );
  const onSynced = (): void => {
    if (isOver) return;
    isSynced = true;
    const objects = resources.reduce((sum, { informer }) => sum + informer.indexer.size, 0);
    report({ type: "synced", objects, durationMs: Math.round(monotonicNow(clock) - startMs) });
  };
  // Rejects when an informer is stopped first: there is nothing to report then.
  options.synced().then(onSynced, () => {});
  return () => {
    isOver = true;
    for (const stop of unlisten) stop();
  };
}
