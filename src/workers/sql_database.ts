/**
 * The database of a Durable Object, as far as it is used.
 * @module
 */

/**
 * A value of a column, or a bound parameter.
 *
 * @example
 * ```ts
 * import type { SqlValue } from "@listwatch/cache/workers";
 * const row: SqlValue[] = ["shop/web-1", 42, null];
 * ```
 *
 * @category Workers
 */
export type SqlValue = ArrayBuffer | string | number | null;

/**
 * An SQLite database that is written synchronously: `ctx.storage` of a Durable Object, or anything like it. What is written
 * within one turn of the event loop must be committed as a whole, or not at all.
 *
 * @example
 * ```ts
 * import { DiskObjects, type SqlStorage } from "@listwatch/cache/workers";
 * class Pods {
 *   readonly disk: DiskObjects;
 *   constructor(ctx: { readonly storage: SqlStorage }) {
 *     this.disk = new DiskObjects(ctx.storage);
 *   }
 * }
 * ```
 *
 * @category Workers
 */
export interface SqlStorage {
  readonly sql: SqlDatabase;
  /** Runs work, and undoes what it wrote if it throws. */
  transactionSync<R>(work: () => R): R;
}

/**
 * Runs statements.
 *
 * @example
 * ```ts
 * import type { SqlDatabase } from "@listwatch/cache/workers";
 * function count(sql: SqlDatabase): number {
 *   const [[rows]] = sql.exec("SELECT count(*) FROM notes").raw();
 *   return Number(rows);
 * }
 * ```
 *
 * @category Workers
 */
export interface SqlDatabase {
  /** Runs one statement. The rows of a query are read at once, before the next statement. */
  exec(query: string, ...bindings: SqlValue[]): {
    /** The rows, as arrays of their columns. */
    raw(): Iterable<SqlValue[]>;
  };
}

/** All rows of a query. */
export function rowsOf(sql: SqlDatabase, query: string, ...bindings: SqlValue[]): SqlValue[][] {
  return Array.from(sql.exec(query, ...bindings).raw());
}
