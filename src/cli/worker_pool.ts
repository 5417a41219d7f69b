/**
 * `serve --workers N`: readers are served by N processes that share the port.
 *
 * ```
 * API server ──one watch per resource──> parent ──loopback, token──> worker 1 ──> readers
 *                                                               └──> worker 2 ──> readers
 * ```
 *
 * - **Processes, not threads**: a worker that runs out of memory or hangs takes nothing else with it, `kill` and `ps` show
 *   it, and Deno and Node have the same interface for them. The kernel spreads connections over sockets with
 *   `SO_REUSEPORT`; before the first one the parent makes sure that no other program has the port. Linux only, with Deno, or
 *   Node 22.12 and later; refused elsewhere. A connection stays with its worker: few readers may all have the same one.
 * - **The parent** reflects the cluster and serves the copy to the workers only: on loopback, by the read API. It serves no
 *   reader, so that none can delay what the others receive.
 * - **A worker** is `serve` with the parent as its cluster: the same hooks, page and certificate. It holds no credential of the
 *   cluster. Token and access reviews and OpenAPI documents are requested through the parent; pass-through requests are sent
 *   with the reader's token, directly.
 * - **The token** for the parent is made at each start. It, the other options and all messages travel over pipes (stdin, stdout):
 *   none is in an argument, the environment or a file.
 * - **resourceVersions** are the API server's in all workers, so that a reader may move between them. A version that its
 *   worker has not reached is waited for, as by every read API. A consistent read asks the parent, which asks the API
 *   server; both share the question among all waiting readers. ETags are each worker's own: a reader that moves receives
 *   the body once more.
 * - **Start**: workers listen at once and are not ready until the parent, and then they, have the first lists. A worker
 *   that takes another one's place listens when it has them, or after 10 s: until then the others have its readers.
 * - **A worker that ends** is started again, after 0.25 s to 30 s; logged, and counted as `serve_worker_restarts_total`. Its
 *   readers reconnect to the others. One that cannot start at first ends `serve`.
 * - **Stop**: the parent closes the pipes; workers end their watches and exit, or are killed after 0.7 s. When the parent
 *   ends in any other way, the pipes close, too.
 * - **State** of the API server (`/readyz`, `Age`, the page) is the parent's: it sends it once a second. `/metrics` of any
 *   worker has the measurements of all, with the label `worker`, and those of the parent without it. Lines of the access
 *   log are written by the parent, one at a time.
 * - **Limits** of readers, per client and in all, are each worker's own: N times as many in all. Memory, too: each worker
 *   holds the objects.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { type ChildProgram, startProgram } from "../node/child_program.ts";
import { serveFetch } from "../node/serve_fetch.ts";
import { canSharePorts, freePort } from "../node/shared_port.ts";
import { InformerStateError } from "../informer/errors.ts";
import { abortable, onAbort, sleepUnlessAborted } from "../util/abort.ts";
import { BackoffManager } from "../util/backoff.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";
import { deferred } from "../util/deferred.ts";
import type { Logger } from "../util/logger.ts";
import type { Connection } from "./connect.ts";
import { CommandError, explainListenError } from "./errors.ts";
import { DEFAULT_HOST, DEFAULT_PORT, type ServedContent } from "./serve_readers.ts";
import type { ServeOptions } from "./serve_options.ts";
import { type FromWorker, type StartMessage, type ToWorker, WORKER_COMMAND } from "./worker_messages.ts";
import { joinMetrics, type MetricsPart } from "./worker_metrics.ts";
import { newWorkerSource } from "./worker_source.ts";

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

/** Running workers. */
export interface WorkerPool {
  readonly url: string;
  /** Who may read, as text for people. */
  readonly access: string;
  /** Resolves when all have ended. */
  readonly finished: Promise<void>;
  /** Resolves when each worker has had its first lists. */
  synced(signal?: AbortSignal): Promise<void>;
  close(): void;
}

const STATE_MS = 1_000;
const START_LIMIT_MS = 30_000;
const SYNC_LIMIT_MS = 10_000;
const STOP_LIMIT_MS = 700;
const MEASURE_LIMIT_MS = 1_000;
const BACKOFF = { durationMs: 250, factor: 2, capMs: 30_000 };
// A worker that has lived that long is no longer taken for one that cannot start.
const HEALTHY_MS = 60_000;

/**
 * Starts the workers, and keeps them running until the signal is aborted. Resolves when all of them listen.
 *
 * @throws {CommandError} Processes cannot share a port here, the port is in use, or a worker cannot start.
 */
export async function startWorkers(content: WorkerContent, options: WorkerPoolOptions): Promise<WorkerPool> {
  const { host = DEFAULT_HOST, clock, signal } = options;
  const module = programModule();
  if (!await canSharePorts()) {
    throw new CommandError(
      "Cannot serve with --workers: processes cannot share a port here; it needs Linux, and Deno or Node 22.12 or later",
    );
  }
  const port = await freePort(host, options.port ?? DEFAULT_PORT).catch((error) => {
    throw explainListenError(error, host, options.port ?? DEFAULT_PORT);
  });
  const token = randomBytes(32).toString("base64url");
  const sourceStop = new AbortController();
  const pool = new Pool(content, options, { module, port, token });
  const source = await serveFetch(
    newWorkerSource(content, {
      token,
      cluster: content.connection.cluster,
      serve: options,
      metricsText: () => pool.metricsText(),
      signal: sourceStop.signal,
      clock,
    }).fetch,
    { signal: sourceStop.signal, logger: options.logger },
  );
  const ended = pool.run(source.url);
  // The workers end first: an end of their source would look like an outage to them.
  const finished = ended.finally(() => sourceStop.abort()).then(() => source.finished);
  finished.catch(() => {});
  try {
    const { url, access } = await abortable(pool.listening, signal);
    return { url, access, finished, synced: (until) => abortable(pool.synced, until), close: () => {} };
  } catch (error) {
    pool.stop();
    await finished;
    throw error;
  }
}

/** The module whose command is {@linkcode WORKER_COMMAND}: of the sources, or of the npm package. */
function programModule(): URL {
  const isSource = import.meta.url.endsWith(".ts");
  // In the package, this is `lib/rooms/cli.js`.
  const module = new URL(isSource ? "./main.ts" : "../../bin/listwatch.js", import.meta.url);
  if (module.protocol !== "file:" || existsSync(module)) return module;
  throw new CommandError(
    `Cannot serve with --workers: ${module.pathname} is missing; it needs the package as it is installed, not a bundle`,
  );
}

/** One place among the workers, and who has it. */
interface Slot {
  readonly worker: number;
  child: ChildProgram | undefined;
  watches: readonly number[];
  hasListened: boolean;
  hasSynced: boolean;
}

class Pool {
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
        if (from.type === "failed") failure = from.message;
        else this.#receive(slot, from);
      },
      onLine: (line) => logger.warn(`worker ${slot.worker} printed: ${line}`),
    });
    slot.child = child;
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
