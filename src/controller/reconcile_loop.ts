/**
 * Runs one controller: changes become keys, keys become reconciles, at most one of a key at a time.
 *
 * A key that is taken first waits until the caches have what its last reconcile wrote; meanwhile its
 * worker takes others. A reconcile that does not end at its deadline loses its signal and its worker, and
 * keeps its key: what hangs holds up nothing else.
 */

import type { HandlerRegistration } from "../informer/shared_informer_options.ts";
import { type KubernetesObject, splitMetaNamespaceKey } from "../meta/object.ts";
import { isConflict, isNotFound } from "../meta/status.ts";
import { abortable, onAbort, withTimeLimit } from "../util/abort.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { getOrMake } from "../util/collections.ts";
import { callGuarded, errorMessage } from "../util/errors.ts";
import type { LogFields, Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import type { MetricsProvider, QueueMetrics } from "../workqueue/metrics.ts";
import { DelayingQueue } from "../workqueue/delaying_queue.ts";
import { type ReconcileAccess, ReconcileClient, StartedWrites } from "./cached_client.ts";
import { type CachedResource, OwnWrites } from "./cached_resource.ts";
import {
  type AnyContext,
  type AnyController,
  asResult,
  isTerminal,
  type ReconcileMetrics,
  type Result,
} from "./definition.ts";
import type { EventRecorder } from "./event_recorder.ts";
import { addTriggers, type LoopCaches } from "./triggers.ts";
import { RetryDelays, type Urgency, WorkOrder } from "./work_order.ts";

export interface LoopSettings {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  /** Makes the metrics of queues, if it can. */
  readonly queueMetrics: Partial<MetricsProvider> | undefined;
  /** How long a reconcile waits for the caches before it reads through, in milliseconds. */
  readonly readTimeoutMs: number;
  readonly recorder: EventRecorder;
  /** Throws if this process may not write any more. */
  readonly checkLease: () => void;
  readonly cluster: string;
  /** The caches in every cluster, by name. */
  readonly clusters: ReadonlyMap<string, LoopCaches>;
  /** The loop of the controller in another cluster, once it runs. */
  readonly loopOf: (cluster: string) => ReconcileLoop | undefined;
}

// How long a reconcile may take after its deadline to end by itself.
const GRACE_MS = 1_000;

export class ReconcileLoop {
  readonly name: string;
  readonly #controller: AnyController;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #caches: LoopCaches;
  readonly #self: CachedResource;
  readonly #settings: LoopSettings;
  readonly #order: WorkOrder;
  readonly #queue: DelayingQueue<string>;
  readonly #retries = new RetryDelays();
  readonly #writes = new Map<string, OwnWrites>();
  #registrations: readonly HandlerRegistration[] = [];
  /** Reconciles that run, and waits for the caches. */
  readonly #running = new Set<Promise<void>>();
  /** Keys whose next try is due by themselves: for the tests' `idle`. */
  readonly #retrying = new Set<string>();
  readonly #aborts = new Set<(reason: unknown) => void>();
  readonly #userMetrics: ReconcileMetrics;
  #isStopping = false;
  #isNamespaced: boolean | undefined;
  #hasOtherScope = false;
  #activeWorkers = 0;

  constructor(controller: AnyController, caches: LoopCaches, settings: LoopSettings) {
    this.name = controller.name;
    this.#controller = controller;
    this.#caches = caches;
    this.#self = caches.self;
    this.#settings = settings;
    const { clock, queueMetrics, cluster } = settings;
    this.#labels = { controller: controller.name, ...(cluster && { cluster }) };
    const own = (labels: Readonly<Record<string, string>> = {}) => ({ ...this.#labels, ...labels });
    this.#userMetrics = {
      count: (name, value, labels) => settings.metrics?.count(name, value ?? 1, own(labels)),
      gauge: (name, value, labels) => settings.metrics?.gauge(name, value, own(labels)),
      observe: (name, value, labels) => settings.metrics?.observe(name, value, own(labels)),
    };
    this.#order = new WorkOrder(clock);
    const name = cluster === "" ? controller.name : `${controller.name}@${cluster}`;
    let measured: QueueMetrics | undefined;
    callGuarded(() => void (measured = queueMetrics?.queueMetrics?.(name)), (error) => {
      settings.logger.error(`Cannot measure the queue of ${name}: ${errorMessage(error)}`, { error });
    });
    const metricsProvider = measured && { queueMetrics: () => measured! };
    this.#queue = new DelayingQueue<string>({ clock, order: this.#order, name, metricsProvider });
  }

  /** How many notifications and keys wait, are in progress, or wait for another try after a failure. */
  get pending(): number {
    const backlog = this.#registrations.reduce((sum, { backlog }) => sum + backlog, 0);
    let waiting = 0; // for another try that is not due yet
    for (const key of this.#retrying) if (!this.#order.has(key)) waiting++;
    return backlog + this.#queue.length + this.#running.size + waiting;
  }

  /**
   * Reconciles until `stop` is aborted, then lets what runs finish until
   * `abandon` is aborted. The informers must have synced, and stop after it.
   */
  async run({ stop, abandon }: { readonly stop: AbortSignal; readonly abandon: AbortSignal }): Promise<void> {
    const { workers } = this.#controller;
    this.#gauge("controller_runtime_max_concurrent_reconciles", workers);
    this.#gauge("controller_runtime_active_workers", 0);
    this.#registrations = addTriggers(this.#controller, this.#caches, {
      enqueue: (key, urgency) => this.#enqueue(key, urgency),
      enqueueAnywhere: (key, urgency) => this.#enqueueAnywhere(key, urgency),
      logger: this.#settings.logger,
    });
    onAbort(stop, () => {
      this.#isStopping = true;
      this.#queue.shutDown();
    });
    onAbort(abandon, () => this.#aborts.forEach((abort) => abort(abandon.reason)));
    await Promise.all(Array.from({ length: workers }, () => this.#work(abandon)));
    await this.#ended(abandon);
  }

  /** Resolves when no reconcile runs, or those that do heed no signal. */
  async #ended(abandon: AbortSignal): Promise<void> {
    const ended = Promise.all(this.#running);
    await abortable(ended, abandon).catch(() => {});
    const grace = { ms: GRACE_MS, newError: () => abandon.reason, clock: this.#settings.clock };
    await withTimeLimit(() => ended, grace).catch(() => {});
  }

  /** A key that names a cluster is of that; a loop that does not run yet begins with all of its keys. */
  #enqueueAnywhere(key: string, urgency: Urgency): void {
    const colon = key.indexOf(":");
    const cluster = colon < 0 ? "" : key.slice(0, colon);
    if (!this.#settings.clusters.has(cluster)) return this.#enqueue(key, urgency);
    const loop = this.#settings.loopOf(cluster);
    if (loop !== undefined) loop.#enqueue(key.slice(colon + 1), urgency);
  }

  #enqueue(key: string, urgency: Urgency): void {
    this.#order.expect(key, urgency);
    this.#queue.add(key);
  }

  async #work(abandon: AbortSignal): Promise<void> {
    for (let next = await this.#queue.get(); !next.shutdown; next = await this.#queue.get()) {
      const key = next.item;
      if (this.#isStopping) return;
      this.#retrying.delete(key);
      const writes = this.#writes.get(key);
      if (writes !== undefined && !writes.isInCaches()) {
        this.#track(this.#waitForCaches(key, writes, abandon));
      } else await this.#reconcileInTime(key);
    }
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  /**
   * Waits with a key until the caches have what it wrote, or are given up, and puts it back into the queue.
   */
  async #waitForCaches(key: string, writes: OwnWrites, signal: AbortSignal): Promise<void> {
    try {
      await writes.settle({ timeoutMs: this.#settings.readTimeoutMs, signal });
      this.#queue.add(key);
    } catch (error) {
      if (!signal.aborted) this.#retry(key, error);
    } finally {
      this.#queue.done(key);
    }
  }

  /** Reconciles, and returns when that has ended or hangs. */
  async #reconcileInTime(key: string): Promise<void> {
    const { clock } = this.#settings;
    const controller = new AbortController();
    let late: TimerHandle;
    const { promise: hangs, resolve: leave } = Promise.withResolvers<void>();
    const abort = (reason: unknown) => {
      unlimit();
      controller.abort(reason);
      late = clock.setTimeout(() => {
        this.#log(key).error(
          `the reconcile of ${this.#shown(key)} ignores its signal: its worker takes other keys`,
        );
        leave();
      }, GRACE_MS);
    };
    // One listener of `abandon` for all running reconciles: one for each costs as much as an empty reconcile.
    this.#aborts.add(abort);
    const deadline = clock.setTimeout(() => abort(this.#overdue(key)), this.#controller.timeoutMs);
    const unlimit = () => {
      clock.clearTimeout(deadline);
      this.#aborts.delete(abort);
    };
    this.#active(1);
    const attempt = this.#track(
      this.#attempt(key, controller.signal).finally(() => {
        unlimit();
        this.#active(-1);
      }),
    );
    await Promise.race([attempt, hangs]);
    clock.clearTimeout(late);
  }

  #overdue(key: string): Error {
    this.#count("controller_runtime_reconcile_timeouts_total");
    return new Error(`Cannot reconcile ${this.#shown(key)} within ${this.#controller.timeoutMs} ms`);
  }

  async #attempt(key: string, signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#settings;
    const startMs = monotonicNow(clock);
    const started = new StartedWrites();
    let outcome = "success";
    try {
      outcome = await this.#reconcile(key, signal, started);
    } catch (error) {
      outcome = this.#failed(key, signal.aborted ? signal.reason : error);
    } finally {
      await started.ended();
      const writes = this.#writes.get(key);
      writes?.ended();
      if (writes?.isEmpty) this.#writes.delete(key);
      this.#queue.done(key);
      const name = "controller_runtime_reconcile_time_seconds";
      metrics?.observe(name, (monotonicNow(clock) - startMs) / 1_000, this.#labels);
      this.#count("controller_runtime_reconcile_total", { result: outcome });
    }
  }

  async #reconcile(key: string, signal: AbortSignal, started: StartedWrites): Promise<string> {
    const object = await this.#present(key, signal);
    if (object === undefined) {
      this.#checkScope(key);
      this.#retries.forget(key);
      this.#writes.delete(key);
      return "success";
    }
    const { finalizer, finalize, reconcile } = this.#controller;
    const finalizers = object.metadata?.finalizers ?? [];
    const isFinalized = finalizer !== undefined && finalizers.includes(finalizer);
    const access = this.#access(key, object, { signal, started });
    const self = new ReconcileClient<KubernetesObject>(this.#self, access);
    let result: Result = {};
    if (object.metadata?.deletionTimestamp) {
      if (!isFinalized) return "success";
      result = asResult(await finalize!(object, this.#context(key, access, self)));
      await this.#finalized(key, object, { self, signal, result });
    } else {
      const marked = finalizer === undefined || isFinalized
        ? object
        : await this.#ifPresent(key, signal, () => self.setFinalizers(object, [...finalizers, finalizer]));
      if (marked === undefined) return "success";
      result = asResult(await reconcile(marked, this.#context(key, { ...access, object: marked }, self)));
      signal.throwIfAborted();
      const { status } = result;
      if (status !== undefined) await this.#writeStatus(key, marked, { self, status, signal });
    }
    this.#retries.forget(key);
    if (result.requeueAfterMs === undefined) return "success";
    // Always by a timer: a reconcile that waits for nothing would leave no turn to others.
    this.#queue.addAfter(key, Math.max(1, result.requeueAfterMs));
    return "requeue_after";
  }

  /** Writes what `finalize` has returned, and removes the finalizer if its work is done. */
  async #finalized(
    key: string,
    object: KubernetesObject,
    { self, signal, result: { status, requeueAfterMs } }: {
      readonly self: ReconcileClient<KubernetesObject>;
      readonly signal: AbortSignal;
      readonly result: Result;
    },
  ): Promise<void> {
    if (status !== undefined) await this.#writeStatus(key, object, { self, status, signal });
    if (requeueAfterMs !== undefined) return;
    const last = self.lastWritten(object);
    const { finalizers = [] } = last.metadata ?? {};
    const left = finalizers.filter((name) => name !== this.#controller.finalizer);
    if (left.length < finalizers.length) {
      await this.#ifPresent(key, signal, () => self.setFinalizers(last, left));
    }
  }

  /** Writes what was returned as the object's status, if that is still there. */
  async #writeStatus(
    key: string,
    object: KubernetesObject,
    { self, status, signal }: {
      readonly self: ReconcileClient<KubernetesObject>;
      readonly status: unknown;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const write = () => self.patchStatusOf(self.lastWritten(object), status);
    try {
      await this.#ifPresent(key, signal, write);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // The server's message does not say so.
      const why = `${errorMessage(error)} (does its definition have the subresource "status"?)`;
      throw new Error(why, { cause: error });
    }
  }

  /** Writes to the object itself; `undefined` if it was deleted meanwhile, and nothing is left to do. */
  async #ifPresent<R>(key: string, signal: AbortSignal, write: () => Promise<R>): Promise<R | undefined> {
    try {
      return await write();
    } catch (error) {
      if (isNotFound(error) && await this.#onServer(key, signal) === undefined) return undefined;
      throw error;
    }
  }

  /** A key of the other scope is no object's: what it is about would never be reconciled. */
  #checkScope(key: string): void {
    if (this.#hasOtherScope) return;
    this.#isNamespaced ??= this.#self.informer.indexer.listKeys().at(0)?.includes("/");
    if (this.#isNamespaced === undefined || this.#isNamespaced === key.includes("/")) return;
    this.#hasOtherScope = true; // a defect of the program: once is enough
    const form = this.#isNamespaced ? "namespace/name" : "the name alone";
    this.#log(key).warn(`${this.#shown(key)} is no key of ${this.#self.name}: write ${form}`);
  }

  async #present(key: string, signal: AbortSignal): Promise<KubernetesObject | undefined> {
    if (!this.#writes.get(key)?.readsThrough(this.#self)) return this.#self.informer.indexer.getByKey(key);
    return await this.#onServer(key, signal);
  }

  async #onServer(key: string, signal: AbortSignal): Promise<KubernetesObject | undefined> {
    const { namespace, name } = splitMetaNamespaceKey(key);
    try {
      return await this.#self.client.get(name, { namespace, signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #access(
    key: string,
    object: KubernetesObject,
    { signal, started }: Pick<ReconcileAccess, "signal" | "started">,
  ): ReconcileAccess {
    const writes = getOrMake(this.#writes, key, () => new OwnWrites());
    const { checkLease, readTimeoutMs } = this.#settings;
    return { object, manager: this.name, writes, started, readTimeoutMs, signal, checkLease };
  }

  #context(key: string, access: ReconcileAccess, self: ReconcileClient<KubernetesObject>): AnyContext {
    const { recorder, cluster, clusters, clock } = this.#settings;
    const clientsOf = (resources: LoopCaches["resources"]) =>
      Object.fromEntries(
        [...resources].map(([name, resource]) => [name, new ReconcileClient(resource, access)]),
      );
    const own = clientsOf(this.#caches.resources);
    const elsewhere = [...clusters].filter(([name]) => name !== "").map(([name, caches]) =>
      name === cluster
        ? [name, { ...own, self }]
        : [name, { ...clientsOf(caches.resources), self: new ReconcileClient(caches.self, access) }]
    );
    return {
      ...own,
      key: this.#shown(key),
      cluster,
      clusters: Object.fromEntries(elsewhere),
      self,
      signal: access.signal,
      failures: this.#retries.of(key),
      clock,
      log: this.#log(key),
      events: recorder.about(access.object, this.name, this.#self.client),
      metrics: this.#userMetrics,
    };
  }

  #failed(key: string, error: unknown): string {
    if (isTerminal(error)) {
      this.#retries.forget(key);
      this.#count("controller_runtime_reconcile_errors_total");
      this.#count("controller_runtime_terminal_reconcile_errors_total");
      const what = `Cannot reconcile ${this.#shown(key)}, and waits for its next change`;
      this.#log(key).error(`${what}: ${errorMessage(error)}`, { error });
      return "error";
    }
    this.#retry(key, error);
    return isConflict(error) ? "requeue" : "error";
  }

  #retry(key: string, error: unknown): void {
    this.#retrying.add(key);
    this.#queue.addAfter(key, this.#retries.next(key, error));
    const tries = this.#retries.of(key);
    // A conflict says that the object has changed: that is reconciled next.
    if (isConflict(error)) {
      const what = `${this.#shown(key)} has changed meanwhile: ${errorMessage(error)}`;
      return this.#log(key).debug(what, { tries });
    }
    this.#count("controller_runtime_reconcile_errors_total");
    const what = `Cannot reconcile ${this.#shown(key)}, and tries again`;
    this.#log(key).warn(`${what}: ${errorMessage(error)}`, { error, tries });
  }

  /** The key with the name of its cluster, if there are several. */
  #shown(key: string): string {
    const { cluster } = this.#settings;
    return cluster === "" ? key : `${cluster}:${key}`;
  }

  #log(key: string): Logger {
    const { logger } = this.#settings;
    const fields = (more: LogFields = {}) => ({ controller: this.name, key: this.#shown(key), ...more });
    return {
      debug: (message, more) => logger.debug(message, fields(more)),
      info: (message, more) => logger.info(message, fields(more)),
      warn: (message, more) => logger.warn(message, fields(more)),
      error: (message, more) => logger.error(message, fields(more)),
    };
  }

  #active(change: number): void {
    this.#activeWorkers += change;
    this.#gauge("controller_runtime_active_workers", this.#activeWorkers);
  }

  #count(name: string, labels: Readonly<Record<string, string>> = {}): void {
    this.#settings.metrics?.count(name, 1, { ...this.#labels, ...labels });
  }

  #gauge(name: string, value: number): void {
    this.#settings.metrics?.gauge(name, value, this.#labels);
  }
}
