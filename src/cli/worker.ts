/**
 * One of the processes of `serve --workers`.
 * @module
 */

import process from "node:process";
import { type Cluster, newCluster } from "../client/cluster.ts";
import { PrometheusMetrics, type ServedMetrics } from "../hono/health/prometheus.ts";
import { receiveMessages, sendToParent } from "../node/child_program.ts";
import { newNodeFetch } from "../node/node_fetch.ts";
import { abortable, onAbort, sleepUnlessAborted } from "../util/abort.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { Latch } from "../util/deferred.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import { connectAnonymously } from "./connect.ts";
import { oneLine } from "./errors.ts";
import { reflect } from "./reflect.ts";
import type { UpstreamStatus } from "./relayed_informer.ts";
import type { ServeOptions } from "./serve_options.ts";
import { openApiOf, readCredentials, serveReaders, upstreamOf } from "./serve_readers.ts";
import type { FromWorker, StartMessage, ToWorker } from "./worker_messages.ts";
import { SourceEpoch } from "./source_epoch.ts";
import { CONSISTENT_PATH, METRICS_PATH, UPSTREAM_PATH } from "./worker_source.ts";

// The parent kills a worker that takes longer.
const STOP_LIMIT_MS = 600;
const WATCHES_MS = 1_000;

/** Serves readers as the parent says, until the parent closes stdin or ends. Returns the exit code. */
export async function runWorker(): Promise<number> {
  const stop = new AbortController();
  const { signal } = stop;
  const end = (): void => stop.abort();
  onAbort(signal, () => realClock.setTimeout(() => process.exit(0), STOP_LIMIT_MS));
  // Ctrl-C is sent to all processes: the parent ends this one.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", end);
  const parent = new ParentState(realClock);
  const started = new Promise<StartMessage | undefined>((resolve) => {
    receiveMessages((message) => {
      const to = message as ToWorker;
      if (to.type === "start") resolve(to);
      else parent.receive(to);
    }, () => {
      resolve(undefined);
      end();
    });
  });
  const start = await started;
  if (start === undefined) {
    process.stderr.write("listwatch: a worker is started by listwatch serve --workers NUMBER\n");
    return 2;
  }
  try {
    await serveAsWorker(start, { parent, signal, end });
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    await send({ type: "failed", message: oneLine(errorMessage(error)) });
    return 1;
  }
}

async function serveAsWorker(
  start: StartMessage,
  { parent, signal, end }: {
    readonly parent: ParentState;
    readonly signal: AbortSignal;
    readonly end: () => void;
  },
): Promise<void> {
  const clock = realClock;
  const logger = parentLogger();
  const options: ServeOptions = {
    ...start.options,
    ...(start.maxLagMs !== undefined && { maxLagMs: start.maxLagMs ?? Infinity }),
    ...(start.accessLog && { accessLog: (entry) => void send({ type: "access", entry }) }),
  };
  const { url: server, token } = start.source;
  // Not the runtime's own `fetch`, which may send requests for this address to a proxy.
  const config = { token, fetch: newNodeFetch({}), clock, logger };
  const cluster = newCluster({ ...config, server });
  const consistent = newCluster({ ...config, server: server + CONSISTENT_PATH });
  const own = options.metrics ? new PrometheusMetrics() : undefined;
  const resources = start.resources.map((resource, i) => {
    const epoch = new SourceEpoch();
    const source = { cluster: newCluster({ ...config, server, fetch: epoch.noting(config.fetch) }) };
    return reflect({ ...resource, ...NAMES, ...resource } as Parameters<typeof reflect>[0], source, {
      namespace: options.namespace,
      storage: options.storage,
      metrics: own,
      relay: { status: () => parent.status(i), epoch: () => epoch.value, consistent },
      clock,
      logger,
    });
  });
  const credentials = await readCredentials({ ...options, clock, logger });
  const running = resources.map(async ({ informer }, i) => {
    // Before, the parent would refuse the list, and this worker back off.
    await parent.synced(i, signal);
    await informer.run(signal);
  });
  const failed = Promise.all(running).then(() => new Promise<never>(() => {}));
  failed.catch(() => {});
  const synced = Promise.all(resources.map(({ informer }) => informer.synced(signal)));
  synced.then(() => send({ type: "synced" }), () => {});
  if (start.syncLimitMs > 0) {
    await Promise.race([synced, sleepUnlessAborted(start.syncLimitMs, { clock, signal }), failed]);
  }
  const readers = await serveReaders({
    resources,
    inDiscoveryOrder: start.inDiscoveryOrder.map((i) => resources[i]),
    cluster: start.cluster,
    version: start.version,
    openApi: openApiOf(cluster, UPSTREAM_PATH),
    reviewedBy: cluster,
    upstream: await passThroughOf(options, { clock, logger }),
    metrics: own && sharedMetrics(own, cluster),
  }, {
    ...options,
    credentials,
    reusePort: true,
    watches: (resource) => parent.watches(resources.indexOf(resource)),
    signal,
    clock,
    logger,
  });
  parent.follow({
    describe: (descriptions) => {
      for (const [i, { resource }] of resources.entries()) Object.assign(resource, descriptions[i]);
    },
    measure: (id) => {
      readers.app.measure();
      send({ type: "metrics", id, text: own?.text() ?? "" });
    },
  });
  const reportWatches = async (): Promise<void> => {
    let last = "";
    while (await sleepUnlessAborted(WATCHES_MS, { clock, signal })) {
      const watches = resources.map((resource) => readers.app.openWatches(resource));
      if (String(watches) === last) continue;
      last = String(watches);
      send({ type: "watches", watches });
    }
  };
  reportWatches();
  send({ type: "listening", url: readers.url, access: readers.access });
  try {
    await Promise.race([failed, readers.finished]);
  } finally {
    end();
    await Promise.allSettled(running);
    readers.close();
  }
}

// Descriptions of custom resources may lack them.
const NAMES = { singularName: "", shortNames: [], categories: [], verbs: [] };

async function passThroughOf(
  options: ServeOptions,
  use: { readonly clock: Clock; readonly logger: Logger },
): Promise<ReturnType<typeof upstreamOf>> {
  const { passThrough, source } = options;
  if (!passThrough || source?.kind !== "kubeconfig") return undefined;
  const anonymous = await connectAnonymously(source, use);
  return upstreamOf({ ...(anonymous && { anonymous }), server: anonymous?.server ?? "the cluster" }, options);
}

/** Measures this process, and has the measurements of all. */
function sharedMetrics(own: PrometheusMetrics, cluster: Pick<Cluster, "request">): ServedMetrics {
  return {
    contentType: own.contentType,
    count: (name, value, labels) => own.count(name, value, labels),
    gauge: (name, value, labels) => own.gauge(name, value, labels),
    observe: (name, value, labels) => own.observe(name, value, labels),
    text: async () => String(await cluster.request(METRICS_PATH)),
  };
}

/** What acts on messages of the parent. */
interface ParentFollower {
  describe(resources: StartMessage["resources"]): void;
  measure(id: number): void;
}

/** What the parent last sent. */
class ParentState {
  readonly #clock: Clock;
  #resources: readonly (UpstreamStatus & { readonly synced: boolean })[] = [];
  #watches: readonly number[] = [];
  #receivedMs = 0;
  readonly #synced: Latch[] = [];
  #follower: ParentFollower | undefined;
  #description: StartMessage["resources"] | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  receive(message: Exclude<ToWorker, StartMessage>): void {
    switch (message.type) {
      case "state":
        this.#resources = message.resources;
        this.#watches = message.watches;
        this.#receivedMs = monotonicNow(this.#clock);
        send({ type: "alive" });
        message.resources.forEach(({ synced }, i) => synced && this.#latch(i).open());
        return;
      case "describe":
        this.#description = message.resources;
        return this.#follower?.describe(message.resources);
      case "measure":
        return this.#follower?.measure(message.id);
    }
  }

  follow(follower: ParentFollower): void {
    this.#follower = follower;
    if (this.#description !== undefined) follower.describe(this.#description);
  }

  /** The status of a resource's API server, now. */
  status(i: number): UpstreamStatus | undefined {
    const status = this.#resources[i];
    if (status?.lagMs === undefined) return status;
    return { ...status, lagMs: status.lagMs + monotonicNow(this.#clock) - this.#receivedMs };
  }

  watches(i: number): number {
    return this.#watches[i] ?? 0;
  }

  /** Resolves when the parent has the first list of a resource. */
  async synced(i: number, signal: AbortSignal): Promise<void> {
    await abortable(this.#latch(i).opened, signal);
  }

  #latch(i: number): Latch {
    return this.#synced[i] ??= new Latch();
  }
}

function parentLogger(): Logger {
  const to = (level: "info" | "warn" | "error") => (message: string): void => {
    send({ type: "log", level, message: oneLine(message) });
  };
  return { debug: () => {}, info: to("info"), warn: to("warn"), error: to("error") };
}

function send(message: FromWorker): Promise<void> {
  return sendToParent(message);
}
