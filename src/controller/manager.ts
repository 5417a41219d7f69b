import type { Cluster } from "../client/cluster.ts";
import type { ClientSource } from "../client/resource_client.ts";
import { InformerStateError } from "../informer/errors.ts";
import type { Running } from "../informer/queue_drain.ts";
import { linkedAbort, onAbort, sleepUnlessAborted, withTimeLimit } from "../util/abort.ts";
import type { Random } from "../util/backoff.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { CacheError } from "../util/errors.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { guardedMetrics, type Metrics } from "../util/metrics.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { MetricsProvider } from "../workqueue/metrics.ts";
import type { CachedResource } from "./cached_resource.ts";
import type { ControllerDefinition } from "./definition.ts";
import { EventRecorder } from "./event_recorder.ts";
import { LeaderElector, type LeaderOptions, type Leadership } from "./leader_election.ts";
import { ManagedCluster } from "./managed_cluster.ts";

/** Metrics that can be served; `PrometheusMetrics` is one. */
export interface ManagerMetrics extends Metrics, Partial<MetricsProvider> {
  readonly contentType?: string;
  /** All measurements, as a page. */
  text?(): string | Promise<string>;
}

/** Options of {@linkcode Manager}. */
export interface ManagerOptions {
  /** The controllers to run; each name once. */
  readonly controllers: readonly ControllerDefinition[];
  /**
   * Several clusters, by name: every controller runs in each, and the source of its resources says only which
   * resources they are. A reconcile gets the clients of the object's own cluster, and `clusters` has those of
   * all. A cluster that is away holds up no other.
   */
  readonly clusters?: Readonly<Record<string, ClientSource>>;
  /** Elects one of several copies of the program, which alone reconciles; without it every copy does. */
  readonly leader?: LeaderOptions;
  /** How long running reconciles may take at a stop, in milliseconds; 10,000 by default. */
  readonly drainMs?: number;
  /**
   * How long a reconcile waits for the caches to have what it wrote before it reads from
   * the server, in milliseconds; 5,000 by default.
   */
  readonly readTimeoutMs?: number;
  /**
   * How far behind the server a cache may be for the manager to be ready, in milliseconds; 180,000 by
   * default. A quiet resource has one bookmark a minute.
   */
  readonly maxLagMs?: number;
  /**
   * For development: freezes the objects of the caches, so that a reconcile which changes one throws where it
   * does so. `false` by default, `true` in tests with `testController` and `simulateController`.
   */
  readonly freezeObjects?: boolean;
  /** Receives measurements under controller-runtime's names, and those of informers; none by default. */
  readonly metrics?: ManagerMetrics;
  /** Receives log lines; the console gets warnings and errors by default. */
  readonly logger?: Logger;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
  /** The source of randomness, also for the informers; `Math.random` by default. */
  readonly random?: Random;
}

/** The status of a manager in one of several clusters. */
export interface ClusterStatus {
  /** Whether every cache is complete. */
  readonly hasSynced: boolean;
  /** Whether this process reconciles the cluster's objects: once its caches have everything. */
  readonly isReconciling: boolean;
  /** The problems of the cluster; empty if all is well. */
  readonly problems: readonly string[];
}

/** The status of a manager. */
export interface ManagerStatus {
  /** Whether every cache is complete. */
  readonly hasSynced: boolean;
  /** Whether this process reconciles: it leads, or nothing is elected. */
  readonly isLeading: boolean;
  /** The leader as it was seen last; `""` if nothing is elected or known. */
  readonly leader: string;
  /** The problems of the manager; empty if all is well. */
  readonly problems: readonly string[];
  /** The status of each of several clusters, by name: a manager is ready when one of them is. */
  readonly clusters?: Readonly<Record<string, ClusterStatus>>;
}

/**
 * Runs controllers until its signal is aborted: starts their informers (one for each resource,
 * shared), waits until the caches are complete, is elected, makes sure that the caches have all
 * that the leader before it wrote, and reconciles.
 *
 * At a stop it takes no new keys, gives those in progress `drainMs`, releases the lease and
 * stops the informers. When the lease is lost it stops at once and {@linkcode Manager.run}
 * rejects: the process should end and be started again.
 *
 * Mirrors controller-runtime's `manager.Manager`.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { defineController, Manager } from "@listwatch/cache/controller";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const nodes = defineController({
 *   name: "nodes",
 *   for: cluster.resource("v1/nodes"),
 *   reconcile: (node, { log }) => log.info(`there is ${node.metadata?.name}`),
 * });
 * const manager = new Manager(cluster, { controllers: [nodes], leader: { lease: "nodes" } });
 * console.log((await manager.fetch(new Request("http://localhost/readyz"))).status); // 500
 * ```
 */
export class Manager implements AsyncDisposable {
  readonly #options: ManagerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #metrics: Metrics | undefined;
  readonly #clusters: readonly ManagedCluster[];
  readonly #elector: LeaderElector | undefined;
  readonly #identity: string;
  #isReconciling = false;
  #stop: AbortController | undefined;
  #hasEnded = false;
  #done: Promise<void> = Promise.resolve();

  /**
   * Makes a manager that has not started.
   *
   * @param cluster Where the Lease is.
   * @throws {TypeError} Two controllers have one name, or there is none; a cluster's name is no label, or
   * there are no clusters.
   * @throws {RangeError} A number among the options is negative or `NaN`.
   */
  constructor(cluster: Cluster, options: ManagerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? realClock;
    this.#logger = guardedLogger(options.logger);
    this.#metrics = guardedMetrics(options.metrics, this.#logger);
    const { drainMs, readTimeoutMs, maxLagMs, leader, random = Math.random } = options;
    requireNumbers("make a manager", { drainMs, readTimeoutMs, maxLagMs }, { mayBeInfinite: true });
    const names = options.controllers.map(({ name }) => name);
    const double = names.find((name, at) => names.indexOf(name) !== at);
    if (double !== undefined) {
      throw new TypeError(`Cannot make a manager: two controllers are named ${double}`);
    }
    if (names.length === 0) throw new TypeError("Cannot make a manager: it has no controllers");
    this.#identity = leader?.identity ?? `${leader?.lease ?? names[0]}_${randomName(random)}`;
    const periods = options.controllers.map(({ parts }) => parts.resyncPeriodMs).filter((ms) => ms > 0);
    this.#clusters = clustersOf(options, {
      resyncPeriodMs: periods.length === 0 ? 0 : Math.min(...periods),
      freezeObjects: options.freezeObjects,
      clock: this.#clock,
      random,
      logger: this.#logger,
      metrics: this.#metrics,
    });
    const controllers = options.controllers.map(({ parts }) => parts);
    for (const managed of this.#clusters) managed.prepare(controllers);
    if (leader !== undefined) {
      const namespace = leader.namespace ?? cluster.namespace;
      this.#elector = new LeaderElector(cluster.resource("coordination.k8s.io/v1/leases", { namespace }), {
        ...leader,
        identity: this.#identity,
        clock: this.#clock,
        random,
        logger: this.#logger,
      });
    }
  }

  /**
   * Runs until the signal is aborted, and resolves when nothing is left running.
   *
   * @throws {LeadershipLostError} The lease was lost.
   * @throws {InformerStateError} The manager was run before.
   */
  run(signal?: AbortSignal): Promise<void> {
    if (this.#stop !== undefined) {
      throw new InformerStateError("Cannot run the manager again: make another one");
    }
    const stop = this.#stop = new AbortController();
    const unlink = signal === undefined ? () => {} : onAbort(signal, () => stop.abort(signal.reason));
    const run = this.#run(stop.signal).finally(() => {
      unlink();
      this.#hasEnded = true;
    });
    this.#done = run.catch(() => {});
    return run;
  }

  /** Stops it as its signal does, and resolves when nothing is left running. */
  async stop(): Promise<void> {
    this.#stop?.abort(new Error("the manager was stopped"));
    await this.#done;
  }

  /** As {@linkcode Manager.stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** The manager's present status. */
  status(): ManagerStatus {
    const { maxLagMs = 180_000, clusters } = this.#options;
    const each = this.#clusters.map((managed) => {
      const { name, hasSynced, isReconciling } = managed;
      return [name, { hasSynced, isReconciling, problems: managed.problems(maxLagMs) }] as const;
    });
    const problems = each.flatMap(([, { problems }]) => problems);
    return {
      hasSynced: each.every(([, { hasSynced }]) => hasSynced),
      isLeading: this.#isReconciling,
      leader: this.#elector?.holder ?? "",
      problems: this.#hasEnded
        ? ["it has ended"]
        : this.#stop === undefined
        ? ["it was not started", ...problems]
        : problems,
      ...(clusters && { clusters: Object.fromEntries(each) }),
    };
  }

  /**
   * How many notifications and keys wait, are in progress, or wait for another try after a failure, and how
   * many events are to be written; delays that a reconcile asked for do not count.
   */
  get pending(): number {
    return this.#clusters.reduce((sum, cluster) => sum + cluster.pending, 0);
  }

  /**
   * The caches of its controllers.
   *
   * @internal
   */
  get caches(): readonly CachedResource[] {
    return this.#clusters.flatMap(({ caches }) => caches);
  }

  /**
   * Answers `/healthz` (it runs), `/readyz` (its caches are complete and not far behind the server; a process
   * that waits for the lease is ready, too, and of several clusters one that is well is enough; the text says
   * which are not) and `/metrics`: for any server that speaks `fetch`.
   */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const { metrics } = this.#options;
    if (request.method !== "GET" && request.method !== "HEAD") {
      return page(405, "only GET and HEAD are answered\n");
    }
    if (pathname === "/healthz") {
      const isAlive = !this.#isReconciling || (this.#elector?.isLeading ?? true);
      return isAlive ? page(200, "ok\n") : page(500, "the lease was not renewed in time\n");
    }
    if (pathname === "/readyz") {
      const { problems, clusters = {} } = this.status();
      const isReady = problems.length === 0 || !this.#hasEnded &&
          Object.values(clusters).some(({ problems }) => problems.length === 0);
      return page(isReady ? 200 : 500, `${[...(isReady ? ["ok"] : []), ...problems].join("\n")}\n`);
    }
    if (pathname === "/metrics" && metrics?.text !== undefined) {
      return page(200, await metrics.text(), metrics.contentType);
    }
    return page(404, "there are /healthz, /readyz and /metrics\n");
  };

  async #run(stop: AbortSignal): Promise<void> {
    let sinceMs = monotonicNow(this.#clock);
    const running: Running[] = this.caches.map(({ informer }) => informer.start());
    let leadership: Leadership | undefined;
    try {
      // A standby has its caches before it leads, at least those of one cluster.
      await Promise.any(this.#clusters.map((cluster) => cluster.synced(stop)));
      if (this.#elector !== undefined) {
        leadership = await this.#elector.acquire(stop);
        sinceMs = monotonicNow(this.#clock);
      }
      await this.#reconcile(stop, leadership, sinceMs);
    } catch (error) {
      if (!stop.aborted) throw error;
    } finally {
      await leadership?.release();
      await Promise.all(running.map((one) => one.stop()));
    }
  }

  /** @param sinceMs The time up to which earlier writes must be in the caches. */
  async #reconcile(
    stop: AbortSignal,
    leadership: Leadership | undefined,
    sinceMs: number,
  ): Promise<void> {
    const abandon = linkedAbort(leadership?.signal);
    const begin = linkedAbort(stop);
    onAbort(abandon.signal, () => begin.abort(abandon.signal.reason));
    const recording = new AbortController();
    const { drainMs = 10_000 } = this.#options;
    const lease = this.#options.leader?.lease;
    const checkLease = () => leadership?.check();
    const { signal } = recording;
    const own = { instance: this.#identity, clock: this.#clock, logger: this.#logger, signal };
    try {
      const loops = Promise.all(this.#clusters.map((cluster) =>
        cluster.reconcile({
          clock: this.#clock,
          logger: this.#logger,
          metrics: this.#metrics,
          queueMetrics: this.#options.metrics,
          readTimeoutMs: this.#options.readTimeoutMs ?? 5_000,
          checkLease,
          newRecorder: () => new EventRecorder(own),
          all: this.#clusters,
          sinceMs,
          stop: begin.signal,
          abandon: abandon.signal,
          onBegin: () => {
            this.#isReconciling = true;
            if (lease !== undefined) {
              this.#metrics?.gauge("leader_election_master_status", 1, { name: lease });
            }
          },
        }).catch((error) => {
          if (!begin.signal.aborted) throw error;
        })
      ));
      onAbort(stop, () => void this.#abandonAfter(drainMs, abandon, loops));
      await loops;
      const flushed = Promise.all(this.#clusters.map(({ recorder }) => recorder?.flushed()));
      const limit = { ms: 1_000, newError: () => undefined, clock: this.#clock };
      await withTimeLimit(() => flushed, limit).catch(() => {});
      leadership?.check();
    } finally {
      recording.abort();
      this.#isReconciling = false;
      for (const cluster of this.#clusters) cluster.ended();
      if (lease !== undefined) this.#metrics?.gauge("leader_election_master_status", 0, { name: lease });
    }
  }

  async #abandonAfter(
    drainMs: number,
    abandon: { abort(reason?: unknown): void },
    loops: Promise<unknown>,
  ): Promise<void> {
    const ended = new AbortController();
    loops.finally(() => ended.abort()).catch(() => {});
    if (!await sleepUnlessAborted(drainMs, { clock: this.#clock, signal: ended.signal })) return;
    this.#logger.warn(`reconciles still run after ${drainMs} ms: their signals are aborted`);
    abandon.abort(new ManagerStoppedError(drainMs));
  }
}

class ManagerStoppedError extends CacheError {
  constructor(drainMs: number) {
    super("ManagerStopped", `the manager stops, and the reconcile has not ended within ${drainMs} ms`);
  }
}

function page(status: number, text: string, contentType = "text/plain; charset=utf-8"): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": contentType, "Cache-Control": "no-store" },
  });
}

function randomName(random: Random): string {
  return Array.from({ length: 12 }, () => Math.floor(random() * 36).toString(36)).join("");
}

/** The clusters that are named, or the one that each resource is of. */
function clustersOf(
  { clusters }: ManagerOptions,
  settings: ConstructorParameters<typeof ManagedCluster>[2],
): readonly ManagedCluster[] {
  if (clusters === undefined) return [new ManagedCluster("", undefined, settings)];
  const named = Object.entries(clusters);
  if (named.length === 0) throw new TypeError("Cannot make a manager: it has no clusters");
  const wrong = named.find(([name]) => !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))?.[0];
  if (wrong !== undefined) {
    const how = "use up to 63 lower-case letters, digits and hyphens";
    throw new TypeError(`Cannot make a manager of a cluster of the name ${JSON.stringify(wrong)}: ${how}`);
  }
  return named.map(([name, cluster]) => new ManagedCluster(name, cluster, settings));
}
