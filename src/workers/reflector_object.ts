/**
 * A Durable Object that keeps a copy of a resource.
 *
 * How it works. A Durable Object lives while it handles an event, and is evicted 70 to 140 s after the last one. So the
 * informer runs while `alarm()` does, in slices of 45 s: each sets the next alarm first, so that a crash leaves one. The
 * object lives on between two slices, and with it the informer and its watch. Nothing is done at the end, as there is no
 * such moment: everything is in the database when a turn ends.
 * https://developers.cloudflare.com/durable-objects/concepts/durable-object-lifecycle/
 *
 * @module
 */

import { realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { consoleLogger } from "../util/logger.ts";
import { createTables, readState, writeState } from "./disk_tables.ts";
import type { DurableObjectContext } from "./durable_object.ts";
import { Reflection, type ReflectorSettings } from "./reflection.ts";
import type { SqlDatabase } from "./sql_database.ts";

/**
 * A Durable Object that owns one list-watch: it keeps a copy of a resource in its SQLite database, and answers reads of it
 * in Kubernetes' own protocol, watches included. Extend it, and say what it caches.
 *
 * - It follows the API server from the first request on, at all times: it is resident, and billed for it. A crash, a deploy
 *   and an eviction cost no list: the next instance has the same content, continues by a watch, and its readers resume
 *   theirs. Deletes that happened meanwhile are events as any other.
 * - What it answers is on disk. Before the first list it answers 503, and after a restart with what it had, marked stale.
 * - Give it to readers through a Worker that decides who may read: the object itself answers all of its callers.
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
 *
 * @category Workers
 */
export abstract class ReflectorObject<Env = unknown> {
  readonly #ctx: DurableObjectContext;
  readonly #env: Env;
  #reflection: Reflection | undefined;
  /** Whether an alarm is set, or runs. */
  #isArmed = false;

  /** Called by the platform. */
  constructor(ctx: DurableObjectContext, env: Env) {
    this.#ctx = ctx;
    this.#env = env;
  }

  /**
   * What the object caches. Called when the object starts.
   *
   * @param env Its bindings.
   * @param name The name of the object; `undefined` if it has none.
   */
  protected abstract settings(env: Env, name: string | undefined): ReflectorSettings;

  /**
   * Answers a read as `readApi` does. The first one starts the object.
   *
   * @throws What {@linkcode ReflectorObject.settings} throws, and what `readApi` throws about its options.
   */
  async fetch(request: Request): Promise<Response> {
    const { api, loaded } = this.#start();
    if (!this.#isArmed) await this.#arm();
    await loaded;
    return await api.fetch(request);
  }

  /** Called by the platform: lets the object run for 45 s. Never throws. */
  async alarm(): Promise<void> {
    this.#isArmed = true;
    const { storage } = this.#ctx;
    try {
      // If nothing below returns, this is the next one: the platform repeats a failed alarm six times only.
      await storage.setAlarm(realClock.now() + AFTER_CRASH_MS);
      await this.#start().slice();
      await storage.setAlarm(realClock.now());
    } catch (error) {
      consoleLogger.error(`The object is tried again in a minute, as it has failed: ${errorMessage(error)}`);
    }
  }

  #start(): Reflection {
    if (this.#reflection === undefined || this.#reflection.hasStopped) {
      const { id, storage } = this.#ctx;
      this.#reflection = new Reflection(storage, this.settings(this.#env, keptName(storage.sql, id.name)));
    }
    return this.#reflection;
  }

  async #arm(): Promise<void> {
    this.#isArmed = true;
    const { storage } = this.#ctx;
    if (await storage.getAlarm() === null) await storage.setAlarm(realClock.now());
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
