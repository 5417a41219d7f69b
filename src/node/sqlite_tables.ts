/**
 * The tables of a snapshot in SQLite.
 *
 * `objects` has a row for each object, in generations of which one counts; `meta` has one row, which says
 * which, and what the snapshot is of.
 */

import { crc32 } from "node:zlib";
import type {
  SavedVersion,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotPut,
} from "../informer/snapshot/storage.ts";
import {
  checkFormat,
  corrupt,
  parsed,
  readVersion,
  savedHead,
  SnapshotFault,
} from "../snapshots/saved_values.ts";
import type { ObjectHead } from "../text/object_reader.ts";
import { errorMessage } from "../util/errors.ts";

/** `PRAGMA application_id`: "LWSN". */
const APPLICATION_ID = 0x4c57534e;
/** `PRAGMA user_version`. */
const FORMAT = 2;
/**
 * How many rows are read, written or deleted in one turn of the event loop, and how many characters are read.
 */
export const ROWS_AT_ONCE = 200;
const CHARACTERS_AT_ONCE = 1 << 20;
/** How many rows are read at first, when it is not known how long they are. */
const FIRST_ROWS = 20;

/** The rows that count. */
export interface Content {
  readonly generation: number;
  readonly count: number;
  /** The sum of their checksums, modulo 2^32: with the count, it changes if a row is lost. */
  readonly sum: number;
}

export const NOTHING: Content = { generation: 0, count: 0, sum: 0 };

export function more({ generation, count, sum }: Content, checksum: number): Content {
  return { generation, count: count + 1, sum: (sum + checksum) >>> 0 };
}

export function less({ generation, count, sum }: Content, checksum: number): Content {
  return { generation, count: count - 1, sum: (sum - checksum) >>> 0 };
}

/** The saved data besides the objects. */
export interface Meta {
  readonly identity: SnapshotIdentity;
  readonly version: SavedVersion;
  readonly content: Content;
}

/** Refuses the database of another program. */
export function checkIsOurs(database: SqliteDatabase): void {
  if (isEmpty(database) || pragma(database, "application_id") === APPLICATION_ID) return;
  throw new SnapshotFault("foreign", "the database is no snapshot of @listwatch/cache");
}

/** Whether nothing was saved yet: then there are no tables. */
function isEmpty(database: SqliteDatabase): boolean {
  const [{ tables }] = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").all() as SqliteRow[];
  return tables === 0;
}

export function createTables(database: SqliteDatabase): void {
  if (!isEmpty(database)) return checkFormat(pragma(database, "user_version"), FORMAT);
  transaction(database, () => {
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${FORMAT}`);
    database.exec(
      "CREATE TABLE objects (id INTEGER PRIMARY KEY, generation INTEGER, key TEXT, checksum INTEGER, " +
        "head TEXT, json TEXT, UNIQUE (generation, key))",
    );
    database.exec("CREATE TABLE meta (id INTEGER PRIMARY KEY, json TEXT, checksum INTEGER)");
  });
}

export function writeMeta(database: SqliteDatabase, meta: Meta): void {
  const json = JSON.stringify(meta);
  database.prepare("INSERT OR REPLACE INTO meta (id, json, checksum) VALUES (1, ?, ?)").run(
    json,
    crc32(json),
  );
}

/** Reads the saved data besides the objects; `undefined`: nothing was saved yet. */
export function readMeta(database: SqliteDatabase): Meta | undefined {
  if (isEmpty(database)) return undefined;
  checkFormat(pragma(database, "user_version"), FORMAT);
  const [row] = database.prepare("SELECT json, checksum FROM meta WHERE id = 1").all() as SqliteRow[];
  if (row === undefined) return undefined;
  const { json, checksum } = row;
  if (typeof json !== "string" || crc32(json) !== checksum) throw corrupt("its version has another checksum");
  const { identity, version, content } = parsed(json) as Meta;
  return { identity, version: readVersion(version), content };
}

/** Makes what writes a row, and returns its checksum. */
export function insertInto(database: SqliteDatabase): (generation: number, put: SnapshotPut) => number {
  const insert = database.prepare(
    "INSERT INTO objects (generation, key, checksum, head, json) VALUES (?, ?, ?, ?, ?)",
  );
  return (generation, put) => {
    const head = JSON.stringify(savedHead(put.head));
    const json = put.json();
    const checksum = rowChecksum(put.key, head, json);
    insert.run(generation, put.key, checksum, head, json);
    return checksum;
  };
}

function rowChecksum(key: string, head: string, json: string): number {
  return crc32(json, crc32(`${key}\0${head}\0`));
}

/** The objects, in batches, each as it was saved. */
export function* readEntries(
  database: SqliteDatabase,
  { generation, count, sum }: Content,
): Generator<readonly SnapshotEntry[]> {
  // No iterator: Node 22.13 frees the statement while one is used. No index: its order would need a sort of
  // all rows.
  const select = database.prepare(
    "SELECT id, key, head, json, checksum FROM objects NOT INDEXED WHERE generation = ? AND id > ? " +
      "ORDER BY id LIMIT ?",
  );
  let found: Content = { ...NOTHING, generation };
  let limit = FIRST_ROWS;
  for (let after = 0;;) {
    const rows = select.all(generation, after, limit) as SqliteRow[];
    const batch: SnapshotEntry[] = [];
    let characters = 1;
    for (const { id, key, head, json, checksum } of rows) {
      if (
        typeof key !== "string" || typeof head !== "string" || typeof json !== "string" ||
        typeof id !== "number" || rowChecksum(key, head, json) !== checksum
      ) {
        throw corrupt(`the row of ${JSON.stringify(key)} has another checksum`);
      }
      found = more(found, checksum);
      batch.push({ key, head: parsed(head) as ObjectHead, json });
      characters += json.length;
      after = id;
    }
    if (batch.length > 0) yield batch;
    if (rows.length < limit) break;
    const fits = Math.floor(CHARACTERS_AT_ONCE * rows.length / characters);
    limit = Math.max(1, Math.min(ROWS_AT_ONCE, fits));
  }
  if (found.count !== count || found.sum !== sum) {
    throw corrupt(`it has ${found.count} rows that are not the ${count} that were saved`);
  }
}

export type SqliteValue = string | number | null;

export type SqliteRow = Readonly<Record<string, SqliteValue>>;

export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteStatement {
  run(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
}

export type OpenSqlite = (path: string) => SqliteDatabase;

/** The runtime's SQLite, which is loaded when it is needed first. */
export async function loadSqlite(): Promise<OpenSqlite> {
  try {
    const { DatabaseSync } = await import("node:sqlite");
    return (path) => new DatabaseSync(path) as SqliteDatabase;
  } catch (error) {
    const needs = "it needs Node 22.13, Deno 2.2, Bun 1.4, or a later one";
    throw new Error(`this runtime has no node:sqlite (${errorMessage(error)}): ${needs}`);
  }
}

/** Runs work in a transaction: all of it, or nothing. */
export function transaction(database: SqliteDatabase, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    rollback(database);
    throw error;
  }
}

export function rollback(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // The transaction was rolled back with the statement that failed, as when the disk is full.
  }
}

export function pragma(database: SqliteDatabase, name: string): unknown {
  return (database.prepare(`PRAGMA ${name}`).all() as SqliteRow[])[0]?.[name];
}
