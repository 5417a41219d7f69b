/**
 * A snapshot in a SQLite database.
 * @module
 */

import * as fs from "node:fs";
import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../../informer/informer_snapshot.ts";
import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotPut,
  SnapshotStorage,
} from "../../informer/snapshot.ts";
import type { ObjectHead } from "../../text/object_text.ts";
import { bytesText, parsed, textBytes } from "../../snapshots/byte_parts.ts";
import { readVersion, type SavedVersion, versionOf } from "../../snapshots/change_record.ts";
import { crc32 } from "../../snapshots/crc32.ts";
import { checkFormat, checkIdentity, corrupt, refusalOf, SnapshotFault } from "../../snapshots/refusals.ts";
import { nextTurn } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { realFiles } from "./files.ts";
import { SnapshotInUseError } from "./snapshot_lock.ts";
import { openSqlite, type SqliteDatabase, type SqliteRow } from "./sqlite_database.ts";

/**
 * Keeps the snapshot of an informer in a SQLite database of its own, one row per object: a change writes only what it
 * changes, and other programs can read the rows. For Node 22.13 or later, Deno and Bun. It loads slower than
 * `fileSnapshot`, as it reads every row.
 *
 * - **Saving** is one transaction, in write-ahead mode, and is on the disk when it ends.
 * - **Loading** checks every row, and that none is missing: each has a checksum, and the sum of all is saved, too.
 * - **The database** can be read by its owner only (mode 0600). A second informer gets a `SnapshotInUseError` as the cause of
 *   a refusal, as SQLite locks the database. What is no such database is renamed to `.foreign` when the first snapshot is saved.
 *
 * @param path The database's file. Its folder need not exist.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer, texts } from "@listwatch/cache";
 * import { sqliteSnapshot } from "@listwatch/cache/node";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), {
 *   storage: texts(),
 *   snapshot: sqliteSnapshot("/var/cache/listwatch/pods.sqlite"),
 * });
 * console.log(informer.indexer.size);
 * ```
 *
 * @category Snapshots
 */
export function sqliteSnapshot(path: string, options: SnapshotOptions = {}): InformerSnapshot {
  return newInformerSnapshot(new SqliteStorage(path), options);
}

/** `PRAGMA application_id`: "LWSN". */
const APPLICATION_ID = 0x4c57534e;
/** `PRAGMA user_version`. */
const FORMAT = 1;
/** How many rows are read or written in one turn of the event loop. */
const ROWS_AT_ONCE = 500;

/** The storage of {@linkcode sqliteSnapshot}. */
export class SqliteStorage implements SnapshotStorage {
  readonly #path: string;
  #identity: SnapshotIdentity | undefined;
  #database: SqliteDatabase | undefined;
  /** What the database has; `undefined`: the next save must write everything. */
  #totals: Totals | undefined;
  /** Why what is there cannot be used. */
  #refusal: SnapshotFault["reason"] | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async load(identity: SnapshotIdentity): Promise<LoadedSnapshot | undefined> {
    this.#identity = identity;
    try {
      const database = await this.#open();
      if (isEmpty(database)) return undefined;
      const { version, totals, identity: saved } = readMeta(database);
      checkIdentity(saved, identity);
      const entries = await readObjects(database, totals);
      this.#totals = totals;
      return { ...version, count: totals.count, entries: () => [entries] };
    } catch (error) {
      const fault = this.#faultOf(error);
      this.#refusal = fault instanceof SnapshotFault ? fault.reason : undefined;
      throw refusalOf(this.#path, fault);
    }
  }

  async save(change: SnapshotChange): Promise<void> {
    const before = this.#totals;
    this.#totals = undefined;
    try {
      if (this.#identity === undefined) throw new Error("it was not loaded before");
      if (before === undefined && !change.replaces) {
        throw new Error("the save before failed, or there was none: this one must have all objects");
      }
      if (change.replaces && this.#refusal !== undefined) await this.#startOver();
      const database = await this.#open();
      this.#totals = await this.#write(database, change, before);
    } catch (error) {
      const why = this.#faultOf(error);
      throw new Error(`Cannot save the snapshot ${this.#path}: ${errorMessage(why)}`, { cause: why });
    }
  }

  close(): void {
    this.#totals = undefined;
    this.#database?.close();
    this.#database = undefined;
  }

  async #open(): Promise<SqliteDatabase> {
    if (this.#database !== undefined) return this.#database;
    await realFiles.makeFolderOf(this.#path);
    fs.closeSync(fs.openSync(this.#path, "a", 0o600)); // SQLite's own files get the mode of this one
    const database = await openSqlite(this.#path);
    try {
      database.exec("PRAGMA locking_mode = EXCLUSIVE");
      database.exec("PRAGMA journal_mode = WAL");
      database.exec("PRAGMA synchronous = FULL");
      // Takes the lock.
      database.exec("BEGIN IMMEDIATE; COMMIT");
    } catch (error) {
      database.close();
      throw error;
    }
    return this.#database = database;
  }

  /** Makes room for a new database. */
  async #startOver(): Promise<void> {
    this.#database?.close();
    this.#database = undefined;
    for (const suffix of ["", "-wal", "-shm"]) {
      const path = this.#path + suffix;
      if (this.#refusal === "foreign" && fs.existsSync(path)) {
        await realFiles.rename(path, `${this.#path}.foreign${suffix}`);
      } else await realFiles.remove(path);
    }
    this.#refusal = undefined;
  }

  /** In one transaction, between whose steps others have turns of the event loop: the database is locked for them. */
  async #write(
    database: SqliteDatabase,
    change: SnapshotChange,
    before: Totals | undefined,
  ): Promise<Totals> {
    let totals = before ?? NOTHING;
    database.exec("BEGIN IMMEDIATE");
    try {
      if (change.replaces) {
        createTables(database);
        database.exec("DELETE FROM objects");
        totals = NOTHING;
      }
      const remove = database.prepare("DELETE FROM objects WHERE key = ? RETURNING checksum");
      const insert = database.prepare("INSERT INTO objects (key, head, json, checksum) VALUES (?, ?, ?, ?)");
      const removed = (key: string) => {
        for (const { checksum } of remove.all(key) as { checksum: number }[]) totals = less(totals, checksum);
      };
      let rows = 0;
      for (const key of change.deletes) removed(key);
      for (const put of change.puts) {
        if (!change.replaces) removed(put.key);
        const { head, json, checksum } = rowOf(put);
        insert.run(put.key, head, json, checksum);
        totals = more(totals, checksum);
        if (++rows % ROWS_AT_ONCE === 0) await nextTurn();
      }
      writeMeta(database, { identity: this.#identity!, version: versionOf(change), totals });
      database.exec("COMMIT");
      return totals;
    } catch (error) {
      try {
        database.exec("ROLLBACK");
      } catch {
        // It was rolled back with the statement that failed, as when the disk is full.
      }
      throw error;
    }
  }

  /** What SQLite says, in our words. */
  #faultOf(error: unknown): unknown {
    const text = errorMessage(error);
    if (/database is locked/.test(text)) return new SnapshotInUseError(this.#path, "another informer");
    if (/not a database/.test(text)) {
      return new SnapshotFault("foreign", "the file is no snapshot of @listwatch/cache", { cause: error });
    }
    if (/malformed|no such (table|column)/.test(text)) return corrupt(text, error);
    return error;
  }
}

/** How many rows there are, and the sum of their checksums: a row that is lost changes both. */
interface Totals {
  readonly count: number;
  /** Modulo 2^32. */
  readonly sum: number;
}

const NOTHING: Totals = { count: 0, sum: 0 };

function more({ count, sum }: Totals, checksum: number): Totals {
  return { count: count + 1, sum: (sum + checksum) >>> 0 };
}

function less({ count, sum }: Totals, checksum: number): Totals {
  return { count: count - 1, sum: (sum - checksum) >>> 0 };
}

interface Meta {
  readonly identity: SnapshotIdentity;
  readonly version: SavedVersion;
  readonly totals: Totals;
}

function createTables(database: SqliteDatabase): void {
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  database.exec(`PRAGMA user_version = ${FORMAT}`);
  database.exec(
    "CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, head TEXT, json BLOB, checksum INTEGER)",
  );
  database.exec("CREATE TABLE IF NOT EXISTS meta (id INTEGER PRIMARY KEY, json TEXT, checksum INTEGER)");
}

/** Whether nothing was saved yet: then there are no tables. */
function isEmpty(database: SqliteDatabase): boolean {
  const [{ tables }] = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").all() as SqliteRow[];
  return tables === 0;
}

function writeMeta(database: SqliteDatabase, meta: Meta): void {
  const json = JSON.stringify(meta);
  database.prepare("INSERT OR REPLACE INTO meta (id, json, checksum) VALUES (1, ?, ?)")
    .run(json, crc32(textBytes(json)));
}

function readMeta(database: SqliteDatabase): Meta {
  const pragma = (name: string) => (database.prepare(`PRAGMA ${name}`).all() as SqliteRow[])[0]?.[name];
  if (pragma("application_id") !== APPLICATION_ID) {
    throw new SnapshotFault("foreign", "the database is no snapshot of @listwatch/cache");
  }
  checkFormat(pragma("user_version"), FORMAT);
  const [row] = database.prepare("SELECT json, checksum FROM meta WHERE id = 1").all() as SqliteRow[];
  if (typeof row?.json !== "string" || crc32(textBytes(row.json)) !== row.checksum) {
    throw corrupt("its version has another checksum");
  }
  const { identity, version, totals } = parsed(row.json) as Meta;
  return { identity, version: readVersion(version), totals };
}

/** All rows, each as it was saved. */
async function readObjects(database: SqliteDatabase, totals: Totals): Promise<SnapshotEntry[]> {
  const select = database.prepare(
    "SELECT rowid, key, head, json, checksum FROM objects WHERE rowid > ? ORDER BY rowid LIMIT ?",
  );
  const entries: SnapshotEntry[] = [];
  let found = NOTHING;
  for (let after = 0;;) {
    const rows = select.all(after, ROWS_AT_ONCE) as SqliteRow[];
    for (const { rowid, key, head, json, checksum } of rows) {
      if (
        typeof key !== "string" || typeof head !== "string" || !(json instanceof Uint8Array) ||
        typeof rowid !== "number" || rowChecksum(key, head, json) !== checksum
      ) {
        throw corrupt(`the row of ${JSON.stringify(key)} has another checksum`);
      }
      entries.push({ key, head: parsed(head) as ObjectHead, json: bytesText(json) });
      found = more(found, checksum);
      after = rowid;
    }
    if (rows.length < ROWS_AT_ONCE) break;
    await nextTurn();
  }
  if (found.count !== totals.count || found.sum !== totals.sum) {
    throw corrupt(`it has ${found.count} rows that are not the ${totals.count} that were saved`);
  }
  return entries;
}

function rowOf(put: SnapshotPut): {
  readonly head: string;
  readonly json: Uint8Array;
  readonly checksum: number;
} {
  const { apiVersion, kind, metadata } = put.head;
  const { name, namespace, uid, resourceVersion, labels } = metadata ?? {};
  const saved = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels } };
  const head = JSON.stringify(saved);
  const json = textBytes(put.json());
  return { head, json, checksum: rowChecksum(put.key, head, json) };
}

function rowChecksum(key: string, head: string, json: Uint8Array): number {
  return crc32(json, crc32(textBytes(`${key}\0${head}\0`)));
}
