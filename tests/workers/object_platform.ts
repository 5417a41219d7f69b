/**
 * The platform of a Durable Object, as far as a test needs it: one instance at a time, its
 * database and its alarm, on a clock of the test.
 * @module
 */

import type { FetchFunction } from "@listwatch/cache/client";
import type { Clock } from "@listwatch/cache";
import type { FakeClock } from "@listwatch/cache/testing";
import type { DurableObjectContext } from "@listwatch/cache/workers";
import { NodeSql } from "./node_sql.ts";

/** What an object that the platform runs has. */
export interface HostedObject {
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}

/** What an instance is made with: as long as it lives. */
export interface Instance {
  readonly ctx: DurableObjectContext;
  readonly fetch: FetchFunction;
  readonly clock: Clock;
}

/** Runs one object, and kills it. */
export class ObjectPlatform {
  readonly #clock: FakeClock;
  readonly #upstream: FetchFunction;
  readonly #newObject: (instance: Instance) => HostedObject;
  readonly #folder = Deno.makeTempDirSync({ prefix: "listwatch-object-" });
  #alarmMs: number | undefined;
  #isInAlarm = false;
  #alarmTimer: unknown;
  #instance: { readonly object: HostedObject; readonly sql: NodeSql; isAlive: boolean } | undefined;
  /** How many instances there were. */
  instances = 0;
  /** How many alarms. */
  alarms = 0;
  /** How many of them have failed, which the platform repeats soon, and six times only. */
  failedAlarms = 0;
  /** How many of the next calls about alarms fail. */
  alarmFailures = 0;

  constructor(
    clock: FakeClock,
    options: { readonly upstream: FetchFunction; readonly newObject: (instance: Instance) => HostedObject },
  ) {
    this.#clock = clock;
    this.#upstream = options.upstream;
    this.#newObject = options.newObject;
  }

  /** The database of the present instance. */
  get sql(): NodeSql {
    return this.#present().sql;
  }

  /** When the next alarm is due, in milliseconds from now; `undefined` if there is none. */
  get alarmInMs(): number | undefined {
    return this.#alarmMs === undefined ? undefined : this.#alarmMs - this.#clock.monotonicNow();
  }

  /** A request to the object, which starts an instance if there is none. */
  async fetch(path: string, init?: RequestInit): Promise<Response> {
    return await this.#present("test").object.fetch(new Request(`http://object${path}`, init));
  }

  /**
   * The process ends at once: what the present turn has written is
   * lost, and nothing of the instance runs any more.
   */
  kill(): void {
    if (this.#instance === undefined) return;
    this.#instance.isAlive = false;
    this.#instance.sql.crash();
    this.#instance = undefined;
    // A running alarm is delivered again.
    if (this.#isInAlarm) this.#alarmMs = this.#clock.monotonicNow();
    this.#isInAlarm = false;
    this.#schedule();
  }

  /** Ends the present turn: what it wrote is on disk. */
  commit(): void {
    this.#instance?.sql.commit();
  }

  /** Ends it all. */
  close(): void {
    this.commit();
    this.kill();
    this.#clock.clearTimeout(this.#alarmTimer);
    Deno.removeSync(this.#folder, { recursive: true });
  }

  /** @param name Alarms have none. */
  #present(name?: string) {
    return this.#instance ??= this.#start(name);
  }

  #start(name: string | undefined) {
    this.instances++;
    const sql = new NodeSql(`${this.#folder}/object.sqlite`);
    const life = { isAlive: true };
    sql.onCrash = () => life.isAlive = false;
    const storage = {
      sql,
      transactionSync: <R>(work: () => R) => sql.transactionSync(work),
      getAlarm: () => this.#unlessFailing().then(() => this.#isInAlarm ? null : this.#alarmMs ?? null),
      setAlarm: async (atMs: number) => {
        if (!life.isAlive) return await never<void>();
        await this.#unlessFailing();
        this.#alarmMs = this.#clock.monotonicNow() + Math.max(0, atMs - Date.now());
        this.#schedule();
      },
      deleteAlarm: () => {
        this.#alarmMs = undefined;
        return Promise.resolve();
      },
    };
    const object = this.#newObject({
      ctx: { id: { name }, storage },
      fetch: mortalFetch(this.#upstream, life),
      clock: mortalClock(this.#clock, life),
    });
    return Object.assign(life, { object, sql });
  }

  #unlessFailing(): Promise<void> {
    if (this.alarmFailures === 0) return Promise.resolve();
    this.alarmFailures--;
    return Promise.reject(new Error("storage is overloaded"));
  }

  #schedule(): void {
    this.#clock.clearTimeout(this.#alarmTimer);
    if (this.#alarmMs === undefined) return;
    this.#alarmTimer = this.#clock.setTimeout(
      () => void this.#alarm(),
      this.#alarmMs - this.#clock.monotonicNow(),
    );
  }

  async #alarm(): Promise<void> {
    if (this.#isInAlarm) return; // it is delivered after the running one
    this.#alarmMs = undefined;
    this.#isInAlarm = true;
    this.alarms++;
    const instance = this.#present();
    const hasFailed = await instance.object.alarm().then(() => false, () => true);
    if (this.#instance !== instance) return;
    this.#isInAlarm = false;
    if (hasFailed) this.failedAlarms++;
    if (hasFailed) this.#alarmMs = this.#clock.monotonicNow() + REPEAT_MS;
    this.#schedule();
  }
}

// How soon the platform repeats an alarm that has failed.
const REPEAT_MS = 2_000;

interface Life {
  readonly isAlive: boolean;
}

const never = <T>(): Promise<T> => new Promise<T>(() => {});

function mortalClock(clock: FakeClock, life: Life): Clock {
  return {
    now: () => clock.now(),
    monotonicNow: () => clock.monotonicNow(),
    setTimeout: (callback, ms) => clock.setTimeout(() => life.isAlive && callback(), ms),
    clearTimeout: (handle) => clock.clearTimeout(handle),
  };
}

/** A `fetch` whose connections end with the process, which does not notice it. */
function mortalFetch(fetch: FetchFunction, life: Life): FetchFunction {
  return async (input, init) => {
    if (!life.isAlive) return await never();
    const response = await fetch(input, init);
    if (!life.isAlive) {
      await response.body?.cancel();
      return await never();
    }
    if (response.body === null) return response;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (!life.isAlive) {
          reader.cancel().catch(() => {});
          return await never();
        }
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, response);
  };
}
