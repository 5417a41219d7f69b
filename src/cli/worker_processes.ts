/**
 * The processes of `serve --workers`; worker_pool.ts describes them.
 * @module
 */

import { type ChildProgram, startProgram } from "../node/child_program.ts";
import { InformerStateError } from "../informer/errors.ts";
import { onAbort, sleepUnlessAborted } from "../util/abort.ts";
import { BackoffManager } from "../util/backoff.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";
import { deferred } from "../util/deferred.ts";
import type { Logger } from "../util/logger.ts";
import type { Connection } from "./connect.ts";
import { CommandError } from "./errors.ts";
import { DEFAULT_HOST, type ServedContent } from "./serve_readers.ts";
import type { ServeOptions } from "./serve_options.ts";
import { type FromWorker, type StartMessage, type ToWorker, WORKER_COMMAND } from "./worker_messages.ts";
import { joinMetrics, type MetricsPart } from "./worker_metrics.ts";

/** What workers serve, and where it comes from. */
export interface WorkerContent extends ServedContent {
  readonly connection: Pick<Connection, "cluster">;
  /** Calls a listener when a description of a resource has changed. */
  onDefinition(listener: () => void): void;
}

/** Options of {@linkcode startWorkers}. */
export interface WorkerPoolOptions extends ServeOptions {
  readonly workers: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

const STATE_MS = 1_000;
const START_LIMIT_MS = 30_000;
const SYNC_LIMIT_MS = 10_000;
const STOP_LIMIT_MS = 700;
// In states that are sent, not in time: when the parent itself was suspended, no worker is late.
const MOST_UNANSWERED = 10;
const MOST_UNANSWERED_AT_START = 30;
const MEASURE_LIMIT_MS = 1_000;
const BACKOFF = { durationMs: 250, factor: 2, capMs: 30_000 };
// A worker that has lived that long is no longer taken for one that cannot start.
const HEALTHY_MS = 60_000;

/** One place among the workers, and who has it. */
interface Slot {
  readonly worker: number;
  child: ChildProgram | undefined;
  watches: readonly number[];
  /** How many states were sent since the last message of the process. */
  unanswered: number;
  /** Whether the process has sent anything. */
  hasAnswered: boolean;
  /** Whether a process in this place has ever listened. */
  hasListened: boolean;
  hasSynced: boolean;
}

/** Starts the processes, sends them the state of the API server, and replaces those that end or hang. */
export class WorkerProcesses {
  readonly #content: WorkerContent;
  readonly #options: WorkerPoolOptions;
  readonly #of: { readonly module: URL; readonly port: number; readonly token: string };
  readonly #slots: readonly Slot[];
  readonly #stop = new AbortController();
  readonly #listening = deferred<{ readonly url: string; readonly access: string }>();
  readonly #synced = deferred<void>();
  readonly #measures = new Map<number, (text: string) => void>();
  #measure = 0;
  #sourceUrl = "";
  #stateTimer: TimerHandle | undefined;

  /** Resolves when all listen; rejects when one cannot start. */
  readonly listening: Promise<{ readonly url: string; readonly access: string }> = this.#listening.promise;
  /** Resolves when each has had its first lists. */
  readonly synced: Promise<void> = this.#synced.promise;

  /** @param of The program of a worker, the port of the readers, and the token for the parent. */
  constructor(
    content: WorkerContent,
    options: WorkerPoolOptions,
    of: { readonly module: URL; readonly port: number; readonly token: string },
  ) {
    this.#content = content;
    this.#options = options;
    this.#of = of;
    this.#slots = Array.from({ length: options.workers }, (_, i) => ({
      worker: i + 1,
      child: undefined,
      watches: [],
      unanswered: 0,
      hasAnswered: false,
      hasListened: false,
      hasSynced: false,
    }));
    this.listening.catch(() => {});
    this.synced.catch(() => {});
  }

  /** Runs all workers until the signal is aborted. */
  async run(sourceUrl: string): Promise<void> {
    const { signal, clock } = this.#options;
    this.#sourceUrl = sourceUrl;
    const unlisten = onAbort(signal, () => this.stop());
    this.#content.onDefinition(() => this.#sendAll({ type: "describe", resources: this.#descriptions() }));
    for (const { informer } of this.#content.resources) {
      informer.synced(this.#stop.signal).then(() => this.#sendState(), () => {});
    }
    const tick = () => {
      this.#killHung();
      this.#sendState();
      this.#stateTimer = clock.setTimeout(tick, STATE_MS);
    };
    this.#stateTimer = clock.setTimeout(tick, STATE_MS);
    const startTimer = clock.setTimeout(
      () =>
        this.#listening.reject(
          new CommandError(`Cannot start the workers: not all listen after ${START_LIMIT_MS / 1_000} s`),
        ),
      START_LIMIT_MS,
    );
    this.listening.then(() => clock.clearTimeout(startTimer), () => clock.clearTimeout(startTimer));
    await Promise.all(this.#slots.map((slot) => this.#keepRunning(slot)));
    clock.clearTimeout(this.#stateTimer);
    clock.clearTimeout(startTimer);
    unlisten();
    this.#synced.reject(new InformerStateError("Cannot wait for the workers: they were stopped first"));
  }

  /** Ends all workers. */
  stop(): void {
    this.#stop.abort();
  }

  /** The measurements of all processes. */
  async metricsText(): Promise<string> {
    const { metrics } = this.#content;
    metrics?.gauge("serve_workers", this.#slots.filter(({ child }) => child !== undefined).length, NO_LABELS);
    const parts = await Promise.all(this.#slots.map((slot) => this.#metricsOf(slot)));
    return joinMetrics([
      { text: await metrics?.text() ?? "" },
      ...parts.filter((part) => part !== undefined),
    ]);
  }

  /** `undefined` if the worker does not answer. */
  #metricsOf({ worker, child }: Slot): Promise<MetricsPart | undefined> {
    if (child === undefined) return Promise.resolve(undefined);
    const { clock } = this.#options;
    const id = this.#measure++;
    return new Promise((resolve) => {
      const done = (part: MetricsPart | undefined): void => {
        clock.clearTimeout(timer);
        this.#measures.delete(id);
        resolve(part);
      };
      const timer = clock.setTimeout(() => done(undefined), MEASURE_LIMIT_MS);
      this.#measures.set(id, (text) => done({ worker, text }));
      this.#send(child, { type: "measure", id });
    });
  }

  async #keepRunning(slot: Slot): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stop;
    const backoff = new BackoffManager(BACKOFF, {
      clock,
      random: () => 0,
      resetMs: HEALTHY_MS,
      resetAfter: "quiet",
    });
    const { metrics } = this.#content;
    while (!signal.aborted) {
      const how = await this.#runOne(slot);
      if (signal.aborted) return;
      if (!slot.hasListened) {
        this.#listening.reject(new CommandError(`Cannot start worker ${slot.worker}: it ${how}`));
        return this.stop();
      }
      const delayMs = backoff.nextDelayMs();
      metrics?.count("serve_worker_restarts_total", 1, NO_LABELS);
      logger.error(`Worker ${slot.worker} ${how}; it is started again in ${delayMs / 1_000} s`);
      await sleepUnlessAborted(delayMs, { clock, signal });
    }
  }

  /** Runs one process to its end, and returns how it ended. */
  async #runOne(slot: Slot): Promise<string> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stop;
    let failure: string | undefined;
    const child = startProgram(this.#of.module, {
      args: [WORKER_COMMAND],
      onMessage: (message) => {
        const from = message as FromWorker;
        slot.unanswered = 0;
        slot.hasAnswered = true;
        if (from.type === "failed") failure = from.message;
        else this.#receive(slot, from);
      },
      onLine: (line) => logger.warn(`worker ${slot.worker} printed: ${line}`),
    });
    slot.child = child;
    slot.unanswered = 0;
    slot.hasAnswered = false;
    this.#send(child, this.#startMessage(slot));
    this.#sendState([child]);
    let timer: TimerHandle | undefined;
    const unlisten = onAbort(signal, () => {
      child.finish();
      timer = clock.setTimeout(() => child.kill(), STOP_LIMIT_MS);
    });
    const how = await child.ended;
    unlisten();
    clock.clearTimeout(timer);
    slot.child = undefined;
    slot.watches = [];
    return failure === undefined ? how : `failed: ${failure}`;
  }

  #receive(slot: Slot, message: Exclude<FromWorker, { type: "failed" }>): void {
    const { logger } = this.#options;
    switch (message.type) {
      case "listening":
        slot.hasListened = true;
        if (this.#slots.every(({ hasListened }) => hasListened)) this.#listening.resolve(message);
        return;
      case "synced":
        slot.hasSynced = true;
        if (this.#slots.every(({ hasSynced }) => hasSynced)) this.#synced.resolve();
        return;
      case "watches":
        slot.watches = message.watches;
        return;
      case "alive":
        return;
      case "metrics":
        return this.#measures.get(message.id)?.(message.text);
      case "access":
        return this.#options.accessLog?.({ ...message.entry, worker: slot.worker });
      case "log":
        return logger[message.level](`worker ${slot.worker}: ${message.message}`);
    }
  }

  #startMessage({ worker, hasListened }: Slot): StartMessage {
    const { host = DEFAULT_HOST, maxLagMs, accessLog } = this.#options;
    const { source, namespace, token, tokenFile, clusterRbac, readerNamespaces, readerResources } =
      this.#options;
    const { allowedHosts, corsOrigins, tlsCert, tlsKey, storage, passThrough, passThroughWrites } =
      this.#options;
    const { freshness, metrics, allowAnonymous, allowSecrets } = this.#options;
    const { resources, inDiscoveryOrder, cluster: { name, server }, version } = this.#content;
    return {
      type: "start",
      worker,
      source: { url: this.#sourceUrl, token: this.#of.token },
      options: {
        ...{ source, namespace, token, tokenFile, clusterRbac, readerNamespaces, readerResources },
        ...{ allowedHosts, corsOrigins, tlsCert, tlsKey, storage, passThrough, passThroughWrites },
        ...{ freshness, metrics, allowAnonymous, allowSecrets, host, port: this.#of.port },
      },
      maxLagMs: maxLagMs === Infinity ? null : maxLagMs,
      accessLog: accessLog !== undefined,
      resources: this.#descriptions(),
      inDiscoveryOrder: inDiscoveryOrder.map((one) => resources.indexOf(one)),
      cluster: { name, server },
      version,
      syncLimitMs: hasListened ? SYNC_LIMIT_MS : 0,
    };
  }

  #descriptions(): StartMessage["resources"] {
    return this.#content.resources.map(({ resource }) => resource);
  }

  #sendState(children: readonly ChildProgram[] = this.#children()): void {
    if (children.length === 0) return;
    const resources = this.#content.resources.map(({ informer }) => {
      const { lagMs, hasNoBookmarks, outage, lastError } = informer.status();
      return { synced: informer.hasSynced(), lagMs, hasNoBookmarks, outage, lastError };
    });
    const watches = resources.map((_, i) =>
      this.#slots.reduce((sum, { watches }) => sum + (watches[i] ?? 0), 0)
    );
    for (const child of children) this.#send(child, { type: "state", resources, watches } as ToWorker);
  }

  /** Ends the workers that do not answer, so that they are started again. Called before each state is sent. */
  #killHung(): void {
    for (const slot of this.#slots) {
      const { child, hasAnswered, worker } = slot;
      if (child === undefined) continue;
      const most = hasAnswered ? MOST_UNANSWERED : MOST_UNANSWERED_AT_START;
      if (slot.unanswered++ < most) continue;
      this.#options.logger.error(`Worker ${worker} hangs: it has not answered for ${most} s, and is killed`);
      slot.unanswered = 0;
      child.kill();
    }
  }

  #sendAll(message: ToWorker): void {
    for (const child of this.#children()) this.#send(child, message);
  }

  #send(child: ChildProgram, message: ToWorker): void {
    child.send(message);
  }

  #children(): ChildProgram[] {
    return this.#slots.map(({ child }) => child).filter((child) => child !== undefined);
  }
}

const NO_LABELS = {};
