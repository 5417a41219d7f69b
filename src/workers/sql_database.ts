/**
 * The database of a Durable Object, as far as it is used, and the tables of an object's content.
 *
 * - `bodies`: the states of objects as JSON text, each written once.
 * - `objects`: the content: for each key the number of its state, and what is read of it without its text.
 * - `events`: the entries of the event log, the oldest first. They are deleted, and the states that they
 *   replaced with them, some minutes after the log has dropped them.
 * - `state`: what is there once.
 *
 * There is no second index, as each row of an index is a row written, for which Cloudflare charges.
 *
 * @module
 */

/** A value of a column, or a bound parameter. */
export type SqlValue = ArrayBuffer | string | number | null;

/**
 * An SQLite database that is written synchronously: `ctx.storage` of a Durable Object, or anything like it.
 * The writes of one turn of the event loop must be committed as a whole, or not at all.
 */
export interface SqlStorage {
  readonly sql: SqlDatabase;
  /** Runs work, and undoes what it wrote if it throws. */
  transactionSync<R>(work: () => R): R;
}

/** A database that runs statements. */
export interface SqlDatabase {
  /** Runs one statement. The rows of a query are read at once, before the next statement. */
  exec(query: string, ...bindings: SqlValue[]): {
    /** The rows, as arrays of their columns. */
    raw(): Iterable<SqlValue[]>;
  };
}

export function rowsOf(sql: SqlDatabase, query: string, ...bindings: SqlValue[]): SqlValue[][] {
  return Array.from(sql.exec(query, ...bindings).raw());
}

/** Goes up when older code cannot read the tables, or they have other columns. */
export const FORMAT = 1;

/** The name of the content's saved state, which has its format, in `state`. */
export const SAVED = "saved";

/** Makes the tables, if they are not there, or have the columns of another format. */
export function createTables(sql: SqlDatabase): void {
  sql.exec(
    "CREATE TABLE IF NOT EXISTS listwatch_state(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
  );
  const { format } = readState<{ readonly format: number }>(sql, SAVED) ?? { format: FORMAT };
  if (format !== FORMAT) {
    for (const table of ["bodies", "objects", "events"]) sql.exec(`DROP TABLE IF EXISTS listwatch_${table}`);
    sql.exec("DELETE FROM listwatch_state WHERE name = 'log'");
  }
  for (const statement of TABLES) sql.exec(statement);
}

const TABLES = [
  "CREATE TABLE IF NOT EXISTS listwatch_bodies(id INTEGER PRIMARY KEY, json TEXT NOT NULL)",
  `CREATE TABLE IF NOT EXISTS listwatch_objects(
    key TEXT PRIMARY KEY, body INTEGER NOT NULL,
    uid TEXT, version TEXT, namespace TEXT, type TEXT, labels TEXT, fields TEXT
  ) WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS listwatch_events(
    sequence INTEGER PRIMARY KEY, type TEXT NOT NULL, position TEXT NOT NULL, key TEXT NOT NULL,
    body INTEGER, old_body INTEGER, late INTEGER NOT NULL, gap_after TEXT
  )`,
];

/** Reads a value of `state`; a text that is no JSON is none. */
export function readState<V>(sql: SqlDatabase, name: string): V | undefined {
  const [row] = rowsOf(sql, "SELECT value FROM listwatch_state WHERE name = ?", name);
  try {
    return row && JSON.parse(row[0] as string);
  } catch {
    return undefined;
  }
}

export function writeState(sql: SqlDatabase, name: string, value: unknown): void {
  sql.exec(
    "INSERT INTO listwatch_state(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
    name,
    JSON.stringify(value),
  );
}
