/**
 * What a Durable Object is given by its platform, as far as it is used.
 * @module
 */

import type { SqlStorage } from "./sql_database.ts";

/**
 * The `ctx` of a Durable Object with SQLite storage (`DurableObjectState` of `@cloudflare/workers-types` is one).
 *
 * @category Workers
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
