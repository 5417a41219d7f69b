/**
 * The informer of a Durable Object, and the read API over it.
 * @module
 */

import { type ReadApi, readApi } from "../hono/read_api.ts";
import type { ReadApiOptions, ReadApiResource } from "../hono/read_api_options.ts";
import type { Running } from "../informer/controller.ts";
import { newInformerSnapshot } from "../informer/informer_snapshot.ts";
import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { type Clock, nextTurn, realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { DiskObjects, type DiskObjectsOptions } from "./disk_objects.ts";
import type { SqlStorage } from "./sql_database.ts";

/**
 * What a {@linkcode ReflectorObject} caches, and how it answers.
 *
 * @category Workers
 */
export interface ReflectorSettings<T extends KubernetesObject = KubernetesObject> {
  /** What is listed and watched. */
  readonly source: ListerWatcher<T>;
  /** What that is: `v1/pods` for what Kubernetes brings, a description for custom resources. */
  readonly resource: ReadApiResource["resource"];
  /** Options of the informer: indices, a transform, metrics, the logger. */
  readonly informer?: Omit<
    SharedIndexInformerOptions<T, string>,
    "storage" | "snapshot" | "queue" | "keyFunc"
  >;
  /** Names what the objects pass through, beside a transform; see `SnapshotOptions.identity`. */
  readonly identity?: string;
  /**
   * Options of the read API. By default the object answers everyone who has it: a Durable Object is reached only by the
   * Workers that have a binding to it, and they decide who may read.
   */
  readonly readApi?: Omit<ReadApiOptions, "resources" | "signal">;
  /** Options of the database. */
  readonly disk?: DiskObjectsOptions;
}

/** One list-watch over a database: runs from the start on, and is kept alive by slices. */
export class Reflection {
  readonly #disk: DiskObjects;
  readonly #informer: SharedIndexInformer<KubernetesObject, string>;
  readonly #running: Running;
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  readonly #logger: Logger;
  #hasStopped = false;

  /** Answers reads. */
  readonly api: ReadApi;
  /** Resolves when what the database has can be read. */
  readonly loaded: Promise<void>;

  /** Starts it. */
  constructor(storage: SqlStorage, settings: ReflectorSettings) {
    const { source, resource, informer: options = {}, identity } = settings;
    this.#clock = options.clock ?? realClock;
    this.#logger = options.logger ?? consoleLogger;
    this.#disk = new DiskObjects(storage, { clock: this.#clock, logger: this.#logger, ...settings.disk });
    this.#informer = new SharedIndexInformer(source, {
      ...options,
      storage: this.#disk.texts,
      snapshot: newInformerSnapshot(this.#disk, { ...(identity !== undefined && { identity }) }),
    });
    const { signal } = this.#abort;
    this.api = readApi({
      clock: this.#clock,
      logger: this.#logger,
      bookmarkIntervalMs: BOOKMARK_INTERVAL_MS,
      // All requests come from Workers, whatever client they are for.
      clientOf: () => undefined,
      ...settings.readApi,
      ...(settings.readApi?.authorize === undefined && { allowAnonymous: true }),
      resources: [{ informer: this.#informer, resource, history: this.#disk.history }],
      signal,
    });
    this.#running = this.#informer.start(signal);
    this.#running.done.catch((error) => {
      this.#logger.error(`${this.#informer.name}: the informer has failed: ${errorMessage(error)}`);
    }).finally(() => this.stop());
    this.loaded = this.#loaded();
  }

  /** Whether it has ended: only by an error. */
  get hasStopped(): boolean {
    return this.#hasStopped;
  }

  /** Lets it run for a while, and tidies the database up. A limited amount of work besides what the server sends. */
  async slice(): Promise<void> {
    await this.#rest();
    for (let step = 0; step < MOST_RECLAIM_STEPS && !this.#hasStopped; step++) {
      const isListing = this.#informer.status().phase !== "watching";
      if (!this.#disk.reclaim({ isListing })) return;
      await nextTurn();
    }
  }

  /** Ends it, and its watches. */
  stop(): void {
    this.#hasStopped = true;
    this.#abort.abort();
  }

  async #loaded(): Promise<void> {
    while (this.#informer.status().snapshot?.load === "loading" && !this.#hasStopped) await nextTurn();
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => this.#clock.setTimeout(resolve, SLICE_MS));
  }
}

/** Below the 70 s after which an object without an event may be evicted, and far below the 15 minutes that an alarm may take. */
const SLICE_MS = 45_000;
/** In a slice, 500 rows each. */
const MOST_RECLAIM_STEPS = 200;
/** A peer that has left is noticed at the next write only. */
const BOOKMARK_INTERVAL_MS = 15_000;
