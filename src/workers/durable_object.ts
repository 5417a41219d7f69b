/**
 * What a Durable Object is given by its platform, as far as it is used.
 * @module
 */

import type { SqlStorage } from "./sql_database.ts";

/**
 * The `ctx` of a Durable Object with SQLite storage (`DurableObjectState` of `@cloudflare/workers-types` is one).
 *
 * @example
 * ```ts
 * import { type DurableObjectContext, ReflectorObject } from "@listwatch/cache/workers";
 * export class Pods extends ReflectorObject {
 *   constructor(ctx: DurableObjectContext, env: unknown) {
 *     super(ctx, env);
 *   }
 * }
 * ```
 *
 * @category Workers
 */
export interface DurableObjectContext {
  readonly id: {
    /** The name that the object was asked for by, if any. */
    readonly name?: string | undefined;
  };
  readonly storage: SqlStorage & {
    getAlarm(): Promise<number | null>;
    setAlarm(scheduledTimeMs: number): Promise<void>;
    deleteAlarm(): Promise<void>;
  };
}
