/**
 * The database of a Durable Object, as far as it is used.
 * @module
 */

/**
 * A value of a column, or a bound parameter.
 *
 * @category Workers
 */
export type SqlValue = ArrayBuffer | string | number | null;

/**
 * An SQLite database that is written synchronously: `ctx.storage` of a Durable Object, or anything like it. What is written
 * within one turn of the event loop must be committed as a whole, or not at all.
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
