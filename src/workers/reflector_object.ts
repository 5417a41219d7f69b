/**
 * A Durable Object that keeps a copy of a resource.
 *
 * How it works. A Durable Object lives while it handles an event, and is evicted 70 to 140 s after the last
 * one. So the informer runs while `alarm()` does, in slices of 45 s: each sets the next alarm first, so that
 * a crash leaves one. The object lives on between two slices, and with it the informer and its watch. Nothing
 * is done at the end, as there is no such moment: everything is in the database when a turn ends.
 * https://developers.cloudflare.com/durable-objects/concepts/durable-object-lifecycle/
 */

import { type ReadApi, readApi } from "../hono/read_api.ts";
import type { ReadApiOptions, ReadApiResource } from "../hono/read_api_options.ts";
import type { Running } from "../informer/queue_drain.ts";
import { newInformerSnapshot } from "../informer/snapshot/informer_snapshot.ts";
import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { newStatus, StatusError } from "../meta/status.ts";
import { guardedListWatch, type ListerWatcher } from "../reflector/lister_watcher.ts";
import { type Clock, monotonicNow, nextTurn, realClock } from "../util/clock.ts";
import { sleep } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import { consoleLogger, guardedLogger, type Logger } from "../util/logger.ts";
import { DiskObjects, type DiskObjectsOptions } from "./disk_objects.ts";
import { createTables, readState, type SqlDatabase, type SqlStorage, writeState } from "./sql_database.ts";
import { waitBeforeStart } from "./starts.ts";

/**
 * The `ctx` of a Durable Object with SQLite storage (`DurableObjectState` of `@cloudflare/workers-types` is
 * one).
 */
export interface DurableObjectContext {
  readonly id: {
    /** The name of the object, if it has one. */
    readonly name?: string | undefined;
  };
  readonly storage: SqlStorage & {
    getAlarm(): Promise<number | null>;
    setAlarm(scheduledTimeMs: number): Promise<void>;
    deleteAlarm(): Promise<void>;
  };
}

/** The source that a {@linkcode ReflectorObject} caches, and how it answers. */
export interface ReflectorSettings<T extends KubernetesObject = KubernetesObject> {
  /** The source that is listed and watched. */
  readonly source: ListerWatcher<T>;
  /** The resource of the source: `v1/pods` for a built-in one, a description for a custom one. */
  readonly resource: ReadApiResource["resource"];
  /** Options of the informer: indices, a transform, metrics, the logger. */
  readonly informer?: Omit<
    SharedIndexInformerOptions<T, string>,
    "storage" | "snapshot" | "queue" | "keyFunc"
  >;
  /** Names what the objects pass through, beside a transform; see `SnapshotOptions.identity`. */
  readonly identity?: string;
  /**
   * Options of the read API. By default the object answers everyone who has it: a Durable Object is reached
   * only by the Workers that have a binding to it, and they decide who may read. `freshness` is
   * `stale-if-error` by default.
   */
  readonly readApi?: Omit<ReadApiOptions, "resources" | "signal">;
  /** Options of the database. */
  readonly disk?: DiskObjectsOptions;
}

/**
 * A Durable Object that owns one list-watch: it keeps a copy of a resource in its SQLite database, and
 * answers reads of it in Kubernetes' own protocol, watches included. Extend it, and say what it caches.
 *
 * - It follows the API server from the first request on, at all times: it is resident, and billed for it. A
 *   crash, a deploy and an eviction cost no list: the next instance has the same content, continues by a
 *   watch, and its readers resume theirs. Deletes that happened meanwhile are events as any other.
 * - What it answers is on disk. Before the first list it answers 503, and after a restart with what it had,
 *   marked stale.
 * - Give it to readers through a Worker that decides who may read: the object itself answers all of its
 *   callers.
 *
 * It needs no flag, such as `nodejs_compat`, and SQLite storage (`new_sqlite_classes` in `wrangler.jsonc`).
 *
 * @example A Worker with one object for each cluster
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";
 * interface Env {
 *   readonly SERVER: string;
 *   readonly TOKEN: string;
 *   readonly PODS: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
 * }
 * export class Pods extends ReflectorObject<Env> {
 *   protected override settings({ SERVER, TOKEN }: Env): ReflectorSettings {
 *     return { source: newCluster({ server: SERVER, token: TOKEN }).resource("v1/pods"), resource: "v1/pods" };
 *   }
 * }
 * export default {
 *   // Decide here who may read.
 *   fetch(request: Request, { PODS }: Env): Promise<Response> {
 *     return PODS.getByName("production").fetch(request);
 *   },
 * };
 * ```
 */
export abstract class ReflectorObject<Env = unknown> {
  readonly #ctx: DurableObjectContext;
  readonly #env: Env;
  #reflection: Reflection | undefined;
  #isArmed = false;

  /** Called by the platform. */
  constructor(ctx: DurableObjectContext, env: Env) {
    this.#ctx = ctx;
    this.#env = env;
  }

  /**
   * Returns what the object caches. Called when the object starts.
   *
   * @param env The bindings of the object.
   * @param name The name of the object; `undefined` if it has none.
   */
  protected abstract settings(env: Env, name: string | undefined): ReflectorSettings;

  /**
   * Answers a read as `readApi` does. The first one starts the object.
   *
   * @throws The errors of {@linkcode ReflectorObject.settings}, and of `readApi` about its options.
   */
  async fetch(request: Request): Promise<Response> {
    const { api, loaded } = this.#start();
    if (!this.#isArmed) await this.#arm();
    await loaded;
    return await api.fetch(request);
  }

  /** Called by the platform: lets the object run for 45 s. Throws only where no next alarm could be set. */
  async alarm(): Promise<void> {
    // If nothing below returns, this is the next one: the platform repeats a failed alarm six times only.
    await this.#setAlarm(AFTER_CRASH_MS);
    try {
      await this.#start().slice();
      await this.#setAlarm(0);
    } catch (error) {
      consoleLogger.error(`The object is tried again in a minute, as it has failed: ${errorMessage(error)}`);
    }
  }

  #start(): Reflection {
    if (this.#reflection === undefined || this.#reflection.isOver) {
      const { id, storage } = this.#ctx;
      this.#reflection = new Reflection(storage, this.settings(this.#env, keptName(storage.sql, id.name)));
    }
    return this.#reflection;
  }

  async #arm(): Promise<void> {
    this.#isArmed = await this.#ctx.storage.getAlarm() !== null;
    if (!this.#isArmed) await this.#setAlarm(0);
  }

  async #setAlarm(inMs: number): Promise<void> {
    this.#isArmed = false;
    await this.#ctx.storage.setAlarm(realClock.now() + inMs);
    this.#isArmed = true;
  }
}

const AFTER_CRASH_MS = 60_000;

/** The name of an object, which the platform says in requests and not in alarms. */
function keptName(sql: SqlDatabase, name: string | undefined): string | undefined {
  createTables(sql);
  const kept = readState<string>(sql, "name");
  if (kept === undefined && name !== undefined) writeState(sql, "name", name);
  return kept ?? name;
}

/** One list-watch over a database: runs from the start on, and is kept alive by slices. */
class Reflection {
  readonly #disk: DiskObjects;
  readonly #informer: SharedIndexInformer<KubernetesObject, string>;
  readonly #running: Running;
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  readonly #logger: Logger;
  #stoppedMs: number | undefined;

  readonly api: ReadApi;
  /** Resolves when what the database has can be read. */
  readonly loaded: Promise<void>;

  constructor(storage: SqlStorage, settings: ReflectorSettings) {
    const { resource, informer: options = {}, identity } = settings;
    this.#clock = options.clock ?? realClock;
    this.#logger = guardedLogger(options.logger);
    const source = this.#asksAfterWait(settings.source, waitBeforeStart(storage.sql, this.#clock.now()));
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
      // Reads can be proven fresh where the API server says how far it is.
      ...(source.metadata !== undefined && { freshness: "stale-if-error" }),
      ...(settings.readApi?.authorize === undefined && { allowAnonymous: true }),
      ...settings.readApi,
      resources: [{ informer: this.#informer, resource, history: this.#disk.history }],
      signal,
    });
    this.#running = this.#informer.start(signal);
    this.#running.done.catch((error) => {
      this.#logger.error(`${this.#informer.name}: the informer has failed: ${errorMessage(error)}`);
    }).finally(() => this.stop());
    this.loaded = this.#loaded();
  }

  /** Whether another one is due. Until then it answers with what it had, as an API server is away. */
  get isOver(): boolean {
    return this.#stoppedMs !== undefined && monotonicNow(this.#clock) - this.#stoppedMs >= RESTART_MS;
  }

  /** Tidies the database up, and lets it run for a while. */
  async slice(): Promise<void> {
    await this.#tidy();
    await sleep(SLICE_MS, { clock: this.#clock });
  }

  stop(): void {
    this.#stoppedMs = monotonicNow(this.#clock);
    this.#abort.abort();
  }

  /** What a crash has left over comes first: an object that crashes soon, again and again, would fill up. */
  async #tidy(): Promise<void> {
    for (let step = 0; step < MOST_RECLAIM_STEPS && this.#stoppedMs === undefined; step++) {
      const isListing = this.#informer.status().phase !== "watching";
      if (!this.#disk.reclaim({ isListing })) return;
      await nextTurn();
    }
  }

  /** A source that refuses until a time has passed; the informer waits as for a busy API server. */
  #asksAfterWait(source: ReflectorSettings["source"], waitMs: number): ReflectorSettings["source"] {
    if (waitMs === 0) return source;
    const startMs = monotonicNow(this.#clock);
    return guardedListWatch(source, () => {
      const retryAfterMs = startMs + waitMs - monotonicNow(this.#clock);
      if (retryAfterMs <= 0) return;
      const message = "The object has started several times and saved nothing: it waits before it asks again";
      throw new StatusError(newStatus(503, "ServiceUnavailable", message), { retryAfterMs });
    });
  }

  async #loaded(): Promise<void> {
    const load = () => this.#informer.status().snapshot?.load;
    while (load() === "loading" && this.#stoppedMs === undefined) await nextTurn();
    // Many objects are stored in many turns.
    if (load() === "restored") await this.#informer.restored(this.#abort.signal).catch(() => {});
  }
}

/**
 * Below the 70 s after which an object without an event may be evicted, and far below the 15 minutes that an
 * alarm may take.
 */
const SLICE_MS = 45_000;
/** An informer that has failed may fail again at once: each restart is a watch or a list. */
const RESTART_MS = 30_000;
/** The steps of a slice that give back rows, 500 each. */
const MOST_RECLAIM_STEPS = 200;
/** A peer that has left is noticed at the next write only. */
const BOOKMARK_INTERVAL_MS = 15_000;
