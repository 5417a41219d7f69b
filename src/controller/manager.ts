/** Runs controllers: shared informers, one leader, health, an orderly end. */

import type { Cluster } from "../client/cluster.ts";
import type { ResourceClient } from "../client/resource_client.ts";
import { InformerStateError } from "../informer/errors.ts";
import type { Running } from "../informer/controller.ts";
import { waitForCacheSync } from "../informer/waits.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatResource } from "../meta/resource.ts";
import { abortable, linkedAbort, onAbort, sleep, sleepUnlessAborted } from "../util/abort.ts";
import type { Random } from "../util/backoff.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { MetricsProvider } from "../workqueue/metrics.ts";
import { CachedResource } from "./cached_resource.ts";
import type { ControllerDefinition, Indexed } from "./definition.ts";
import { EventRecorder } from "./event_recorder.ts";
import { LeaderElector, type LeaderOptions, type Leadership } from "./leader_election.ts";
import { ReconcileLoop } from "./reconcile_loop.ts";

/** Metrics that can be served; `PrometheusMetrics` is one. */
export interface ManagerMetrics extends Metrics, Partial<MetricsProvider> {
  readonly contentType?: string;
  /** All measurements, as a page. */
  text?(): string | Promise<string>;
}

/** Options of {@linkcode Manager}. */
export interface ManagerOptions {
  /** What it runs; each name once. */
  readonly controllers: readonly ControllerDefinition[];
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
   * default. Of a quiet resource a bookmark comes once a minute.
   */
  readonly maxLagMs?: number;
  /** Receives measurements under controller-runtime's names, and those of informers; none by default. */
  readonly metrics?: ManagerMetrics;
  /** Receives log lines; the console gets warnings and errors by default. */
  readonly logger?: Logger;
  /** Where time comes from; the system's clock by default. */
  readonly clock?: Clock;
  /** Where randomness comes from; `Math.random` by default. */
  readonly random?: Random;
}

/** How a manager is. */
export interface ManagerStatus {
  /** Whether every cache is complete. */
  readonly hasSynced: boolean;
  /** Whether this process reconciles: it leads, or nothing is elected. */
  readonly isLeading: boolean;
  /** Who leads, as it was seen last; `""` if nothing is elected or known. */
  readonly leader: string;
  /** What is wrong; empty if it is ready. */
  readonly problems: readonly string[];
}

/** Makes the loop of a controller, for one time of leading. */
type NewLoop = (
  settings: { readonly recorder: EventRecorder; readonly checkLease: () => void },
) => ReconcileLoop;

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
  readonly #resources = new Map<string, CachedResource>();
  readonly #loops: readonly NewLoop[];
  readonly #elector: LeaderElector | undefined;
  readonly #identity: string;
  readonly #known: object[] = [];
  #running: ReconcileLoop[] = [];
  #recorder: EventRecorder | undefined;
  #isReconciling = false;
  #stop: AbortController | undefined;
  #done: Promise<void> = Promise.resolve();

  /**
   * Makes a manager that has not started.
   *
   * @param cluster Where the Lease is.
   * @throws {TypeError} Two controllers have one name, or there is none.
   * @throws {RangeError} A number among the options is negative or `NaN`.
   */
  constructor(cluster: Cluster, options: ManagerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? realClock;
    this.#logger = options.logger ?? consoleLogger;
    const { drainMs, readTimeoutMs, maxLagMs, leader, random = Math.random } = options;
    requireNumbers("make a manager", { drainMs, readTimeoutMs, maxLagMs }, { mayBeInfinite: true });
    const names = options.controllers.map(({ name }) => name);
    const double = names.find((name, at) => names.indexOf(name) !== at);
    if (double !== undefined) {
      throw new TypeError(`Cannot make a manager: two controllers are named ${double}`);
    }
    if (names.length === 0) throw new TypeError("Cannot make a manager: it has no controllers");
    this.#identity = leader?.identity ?? `${leader?.lease ?? names[0]}_${randomName(random)}`;
    this.#loops = options.controllers.map((controller) => this.#prepare(controller));
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
   * @throws {InformerStateError} It was run before.
   */
  run(signal?: AbortSignal): Promise<void> {
    if (this.#stop !== undefined) {
      throw new InformerStateError("Cannot run the manager again: make another one");
    }
    const stop = this.#stop = new AbortController();
    const unlink = signal === undefined ? () => {} : onAbort(signal, () => stop.abort(signal.reason));
    const run = this.#run(stop.signal).finally(unlink);
    this.#done = run.catch(() => {});
    return run;
  }

  /** Stops it as its signal does, and resolves when nothing is left running. */
  async stop(): Promise<void> {
    this.#stop?.abort(new Error("the manager was stopped"));
    await this.#done;
  }

  /** The same as {@linkcode Manager.stop}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** How it is now. */
  status(): ManagerStatus {
    const informers = [...this.#resources.values()];
    const { maxLagMs = 180_000 } = this.#options;
    const problems = informers.flatMap(({ informer, name }) => {
      // Of a set, a namespace that has come may not be there yet.
      if (!informer.hasSynced() || informer.lagMs() === undefined) {
        const failure = informer.failure();
        return [`the cache of ${name} is not complete${failure ? `: ${errorMessage(failure.error)}` : ""}`];
      }
      return informer.isFresh(maxLagMs)
        ? []
        : [`the cache of ${name} is ${informer.lagMs()} ms behind the server`];
    });
    return {
      hasSynced: informers.every(({ informer }) => informer.hasSynced()),
      isLeading: this.#isReconciling,
      leader: this.#elector?.holder ?? "",
      problems: this.#stop === undefined ? ["it was not started", ...problems] : problems,
    };
  }

  /**
   * How many notifications and keys wait, are in progress, or wait for another try after a failure, and how
   * many events are to be written; delays that a reconcile asked for do not count.
   */
  get pending(): number {
    return this.#running.reduce((sum, loop) => sum + loop.pending, this.#recorder?.pending ?? 0);
  }

  /**
   * The caches of its controllers.
   *
   * @internal
   */
  get caches(): readonly CachedResource[] {
    return [...this.#resources.values()];
  }

  /**
   * Answers `/healthz` (it runs), `/readyz` (its caches are complete and not far behind the server; a process
   * that waits for the lease is ready, too) and `/metrics`: for any server that speaks `fetch`.
   */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const { metrics } = this.#options;
    if (request.method !== "GET" && request.method !== "HEAD") {
      return page(405, "only GET and HEAD are answered\n");
    }
    if (pathname === "/healthz") {
      const isAlive = this.#stop === undefined || !this.#isReconciling || (this.#elector?.isLeading ?? true);
      return isAlive ? page(200, "ok\n") : page(500, "the lease was not renewed in time\n");
    }
    if (pathname === "/readyz") {
      const { problems } = this.status();
      return problems.length === 0 ? page(200, "ok\n") : page(500, `${problems.join("\n")}\n`);
    }
    if (pathname === "/metrics" && metrics?.text !== undefined) {
      return page(200, await metrics.text(), metrics.contentType);
    }
    return page(404, "there are /healthz, /readyz and /metrics\n");
  };

  /** Finds or makes the informers of a controller; returns what makes its loop. */
  #prepare({ parts }: ControllerDefinition): NewLoop {
    const self = this.#cached(parts.for, parts.for.resource);
    const resources = new Map<string, CachedResource>();
    // Managed fields show what a controller has applied before it was started.
    for (const [name, source] of Object.entries(parts.owns)) {
      resources.set(name, this.#cached(source, source.resource.managedFields()));
    }
    for (const [name, { resource }] of Object.entries(parts.watches)) {
      resources.set(name, this.#cached(resource, resource.resource));
    }
    const { metrics, readTimeoutMs = 5_000 } = this.#options;
    return (settings) =>
      new ReconcileLoop(parts, self, resources, {
        ...settings,
        metrics,
        readTimeoutMs,
        clock: this.#clock,
        logger: this.#logger,
      });
  }

  #cached(
    source: Indexed<KubernetesObject, string>,
    client: ResourceClient<KubernetesObject>,
  ): CachedResource {
    const key = JSON.stringify([
      formatResource(client.resource),
      client.identity,
      this.#numberOf(client.cluster),
      client.namespaces === undefined ? "" : this.#numberOf(client.namespaces),
    ]);
    let resource = this.#resources.get(key);
    if (resource === undefined) {
      resource = new CachedResource(client, {
        clock: this.#clock,
        logger: this.#logger,
        metrics: this.#options.metrics,
      });
      this.#resources.set(key, resource);
    }
    resource.addIndexers(source.indexers);
    return resource;
  }

  /** Distinguishes clusters, and sets of namespaces. */
  #numberOf(one: object): number {
    if (!this.#known.includes(one)) this.#known.push(one);
    return this.#known.indexOf(one);
  }

  async #run(stop: AbortSignal): Promise<void> {
    let sinceMs = monotonicNow(this.#clock);
    const informers = new AbortController();
    const running: Running[] = [...this.#resources.values()].map(({ informer }) =>
      informer.start(informers.signal)
    );
    let leadership: Leadership | undefined;
    try {
      // A standby has its caches before it leads.
      await this.#synced(stop);
      if (this.#elector !== undefined) {
        leadership = await this.#elector.acquire(stop);
        sinceMs = monotonicNow(this.#clock);
      }
      await this.#reconcile(stop, leadership, sinceMs);
    } catch (error) {
      if (!stop.aborted) throw error;
    } finally {
      await leadership?.release();
      informers.abort(new Error("the manager stops"));
      await Promise.all(running.map((one) => one.stop()));
    }
  }

  async #synced(signal: AbortSignal): Promise<void> {
    await waitForCacheSync([...this.#resources.values()].map(({ informer }) => informer), signal);
    signal.throwIfAborted();
  }

  /** @param sinceMs What was written before must be in the caches. */
  async #reconcile(
    stop: AbortSignal,
    leadership: Leadership | undefined,
    sinceMs: number,
  ): Promise<void> {
    const abandon = linkedAbort(leadership?.signal);
    const begin = linkedAbort(stop);
    const unlink = onAbort(abandon.signal, () => begin.abort(abandon.signal.reason));
    const recording = new AbortController();
    const { drainMs = 10_000, metrics } = this.#options;
    const lease = this.#options.leader?.lease;
    try {
      await this.#caughtUp(sinceMs, begin.signal);
      const recorder = this.#recorder = new EventRecorder({
        instance: this.#identity,
        clock: this.#clock,
        logger: this.#logger,
        signal: recording.signal,
      });
      const checkLease = () => leadership?.check();
      this.#running = this.#loops.map((newLoop) => newLoop({ recorder, checkLease }));
      this.#isReconciling = true;
      if (lease !== undefined) metrics?.gauge("leader_election_master_status", 1, { name: lease });
      const loops = Promise.all(
        this.#running.map((loop) => loop.run({ stop: begin.signal, abandon: abandon.signal })),
      );
      onAbort(stop, () => void this.#abandonAfter(drainMs, abandon, loops));
      await loops;
      await Promise.race([recorder.flushed(), sleep(1_000, { clock: this.#clock })]);
      if (!stop.aborted) leadership?.check();
    } finally {
      unlink();
      recording.abort();
      begin.unlink();
      abandon.unlink();
      this.#isReconciling = false;
      if (lease !== undefined) metrics?.gauge("leader_election_master_status", 0, { name: lease });
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

  /**
   * Waits until every cache has all that was written before this process began to lead, or to run if nothing
   * is elected: by the leader before it, or before a list that a server answered from an old state.
   */
  async #caughtUp(sinceMs: number, signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#resources.values()].map(async (resource) => {
      for (let tries = 0;; tries++) {
        try {
          return await abortable(resource.caughtUp(sinceMs, signal), signal);
        } catch (error) {
          signal.throwIfAborted();
          if (tries === 0) {
            this.#logger.warn(
              `Cannot confirm the cache of ${resource.name}, and tries again: ${errorMessage(error)}`,
              { error },
            );
          }
          await sleep(Math.min(1_000 * 2 ** tries, 15_000), { clock: this.#clock, signal });
        }
      }
    }));
  }
}

/** A reconcile was abandoned, as the program stops. */
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
