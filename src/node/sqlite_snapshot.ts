import * as fs from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import {
  type LoadedSnapshot,
  type SnapshotChange,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotRefusal,
  type SnapshotRefusedError,
  type SnapshotStorage,
  versionOf,
} from "../informer/snapshot/storage.ts";
import { checkIdentity, corrupt, refusalOf, SnapshotFault } from "../snapshots/saved_values.ts";
import { nextTurn } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import {
  checkIsOurs,
  type Content,
  createTables,
  insertInto,
  less,
  loadSqlite,
  more,
  NOTHING,
  type OpenSqlite,
  readEntries,
  readMeta,
  rollback,
  ROWS_AT_ONCE,
  type SqliteDatabase,
  type SqliteRow,
  transaction,
  writeMeta,
} from "./sqlite_tables.ts";

/**
 * Keeps the snapshot of an informer in a file: a SQLite database with one row per object. For Node, Deno and
 * Bun.
 *
 * - **Saving** writes what has changed, in one transaction. A kill at any moment leaves what the last save
 *   wrote; a loss of power leaves that or an earlier save. A save that replaces everything needs room for the
 *   content twice.
 * - **Loading** checks every row, and that none is missing: each has a checksum, and the sum of all is saved,
 *   too.
 * - **The file** has what the objects have, and only its owner may read it: mode 0600, which a file that was
 *   there gets before anything is written. A missing folder is created with mode 0700.
 * - **One informer per file**, as SQLite locks it: for a second one, in this process or another, the snapshot
 *   is refused (`in-use`); it lists, and saves as soon as the first one has stopped. The system releases the
 *   lock of a process that ends, however it ends.
 * - **A file that is no such database** is refused, and renamed to `.foreign` when the first snapshot is
 *   saved. What is no regular file (a device, a folder, a link) is left alone: nothing is saved.
 * - **A full disk** fails the save, which the informer reports and tries again; the file keeps what was saved
 *   before.
 *
 * @param path The database's file. Its folder need not exist.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { sqliteSnapshot } from "@listwatch/cache/node";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), {
 *   snapshot: sqliteSnapshot("pods.sqlite"),
 * });
 * console.log(informer.indexer.size);
 * ```
 */
export function sqliteSnapshot(path: string, options: SnapshotOptions = {}): InformerSnapshot {
  return newInformerSnapshot(new SqliteStorage(path), options);
}

/** The suffixes that SQLite appends to a database's name for files that belong to it. */
const SUFFIXES = ["-journal", "-wal", "-shm", ""];

/**
 * The storage of {@linkcode sqliteSnapshot}.
 *
 * A save that replaces everything writes rows of a new generation, in many short transactions, and then one
 * row that says which generation counts: one transaction of 500 MB would keep the event loop for seconds.
 * Rows of other generations were replaced by such a save, or left by one that a kill or a full disk has
 * ended; they are deleted.
 */
export class SqliteStorage implements SnapshotStorage {
  readonly #path: string;
  readonly #sqlite: () => Promise<OpenSqlite>;
  #identity: SnapshotIdentity | undefined;
  #database: SqliteDatabase | undefined;
  #inode: number | undefined;
  /** The content of the database; `undefined`: the next save must write everything. */
  #content: Content | undefined;
  /** Whether all rows are of the generation that counts. */
  #isSwept = false;
  /** Whether the database differs from what was saved: nothing is written to it any more. */
  #isDamaged = false;
  #isClosed = false;

  /** @param sqlite Replaced by tests. */
  constructor(path: string, sqlite: () => Promise<OpenSqlite> = loadSqlite) {
    // SQLite reads ":memory:" and "file:..." otherwise than the rest here; a program may change its folder.
    this.#path = resolve(path);
    this.#sqlite = sqlite;
  }

  async load(identity: SnapshotIdentity): Promise<LoadedSnapshot | undefined> {
    this.#identity = identity;
    try {
      const database = await this.#open();
      const meta = readMeta(database);
      if (meta === undefined) return undefined;
      checkIdentity(meta.identity, identity);
      const { version, content } = meta;
      this.#content = content;
      return { ...version, count: content.count, entries: () => this.#entries(database, content) };
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  async save(change: SnapshotChange): Promise<void> {
    const before = this.#content;
    this.#content = undefined;
    try {
      if (this.#identity === undefined) throw new Error("it was not loaded before");
      if (change.replaces) this.#content = await this.#replace(change);
      else if (before !== undefined) this.#content = await this.#update(await this.#open(), change, before);
      else throw new Error("the save before failed, or there was none: this one must have all objects");
    } catch (error) {
      const why = this.#faultOf(error);
      throw new Error(`Cannot save the snapshot ${this.#path}: ${errorMessage(why)}`, { cause: why });
    } finally {
      // Files that cannot be deleted now are deleted after the next save.
      await this.#sweep().catch(() => {});
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#forget();
  }

  async remove(): Promise<void> {
    try {
      await this.#open();
      this.close();
      for (const suffix of SUFFIXES) fs.rmSync(this.#path + suffix, { force: true });
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  #forget(): void {
    const database = this.#database;
    this.#database = undefined;
    this.#content = undefined;
    this.#isSwept = false;
    database?.close();
  }

  /**
   * Opens the database, takes its lock, and keeps other users from reading it.
   *
   * This process must not open the file itself while it is there: POSIX takes a process' locks on a file away
   * when any of its descriptors of that file is closed.
   * https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
   */
  async #open(): Promise<SqliteDatabase> {
    const open = await this.#sqlite();
    if (this.#isClosed) throw new Error("its informer has stopped");
    if (this.#database !== undefined) {
      if (inodeOf(this.#path) === this.#inode) return this.#database;
      this.#forget();
      throw new Error("the file was removed or replaced");
    }
    const isNew = prepareFile(this.#path);
    const database = open(this.#path);
    try {
      // The lock is kept until the database is closed.
      database.exec("PRAGMA locking_mode = EXCLUSIVE");
      if (isNew) database.exec("PRAGMA auto_vacuum = INCREMENTAL");
      database.exec("BEGIN EXCLUSIVE");
      checkIsOurs(database);
      database.exec("COMMIT");
      restrictModes(this.#path);
      database.exec("PRAGMA journal_mode = WAL");
      database.exec("PRAGMA synchronous = NORMAL");
      database.exec(`PRAGMA journal_size_limit = ${4 << 20}`);
    } catch (error) {
      database.close();
      throw error;
    }
    this.#inode = inodeOf(this.#path);
    return this.#database = database;
  }

  *#entries(database: SqliteDatabase, content: Content): Generator<readonly SnapshotEntry[]> {
    try {
      yield* readEntries(database, content);
    } catch (error) {
      throw this.#refusal(error);
    }
  }

  /** Writes what has changed, in one transaction, between whose steps others have turns of the event loop. */
  async #update(database: SqliteDatabase, change: SnapshotChange, before: Content): Promise<Content> {
    const { generation } = before;
    let content = before;
    const remove = database.prepare(
      "DELETE FROM objects WHERE generation = ? AND key = ? RETURNING checksum",
    );
    const removed = (key: string) => {
      for (const { checksum } of remove.all(generation, key) as { readonly checksum: number }[]) {
        content = less(content, checksum);
      }
    };
    const insert = insertInto(database);
    let rows = 0;
    database.exec("BEGIN IMMEDIATE");
    try {
      for (const key of change.deletes) removed(key);
      for (const put of change.puts) {
        removed(put.key);
        content = more(content, insert(generation, put));
        if (++rows % ROWS_AT_ONCE === 0) await nextTurn();
      }
      writeMeta(database, { identity: this.#identity!, version: versionOf(change), content });
      database.exec("COMMIT");
      return content;
    } catch (error) {
      rollback(database);
      throw error;
    }
  }

  /** Writes everything, also where what is there cannot be used. */
  async #replace(change: SnapshotChange): Promise<Content> {
    try {
      const database = await this.#open();
      if (!this.#isDamaged) return await this.#writeAll(database, change);
      this.#moveAway("corrupt");
    } catch (error) {
      const fault = this.#faultOf(error);
      if (!(fault instanceof SnapshotFault) || fault.reason === "in-use") throw fault;
      this.#moveAway(fault.reason);
    }
    return await this.#writeAll(await this.#open(), change);
  }

  /** Makes room for a new database. */
  #moveAway(reason: SnapshotRefusal): void {
    this.#forget();
    this.#isDamaged = false;
    for (const suffix of SUFFIXES) {
      const path = this.#path + suffix;
      if (reason !== "foreign") fs.rmSync(path, { force: true });
      else if (fs.existsSync(path)) fs.renameSync(path, unusedName(`${this.#path}.foreign`, suffix));
    }
  }

  async #writeAll(database: SqliteDatabase, change: SnapshotChange): Promise<Content> {
    createTables(database);
    await this.#sweep();
    this.#isSwept = false;
    const insert = insertInto(database);
    const [{ last }] = database.prepare("SELECT max(generation) AS last FROM objects").all() as SqliteRow[];
    const generation = Number(last) + 1;
    let content: Content = { ...NOTHING, generation };
    for (let at = 0; at < change.puts.length; at += ROWS_AT_ONCE) {
      transaction(database, () => {
        for (const put of change.puts.slice(at, at + ROWS_AT_ONCE)) {
          content = more(content, insert(generation, put));
        }
      });
      await nextTurn();
    }
    writeMeta(database, { identity: this.#identity!, version: versionOf(change), content });
    return content;
  }

  /** Deletes rows of other generations than the one that counts, and gives their room back. */
  async #sweep(): Promise<void> {
    const database = this.#database;
    if (database === undefined || this.#isSwept) return;
    const { content } = readMeta(database) ?? {};
    const { generation } = content ?? NOTHING;
    const remove = database.prepare(
      "DELETE FROM objects WHERE id IN " +
        "(SELECT id FROM objects WHERE generation < ? OR generation > ? LIMIT ?) RETURNING id",
    );
    const vacuum = database.prepare("PRAGMA incremental_vacuum");
    while (remove.all(generation, generation, ROWS_AT_ONCE).length > 0) {
      vacuum.all(); // a row for each page: `exec` stops after the first
      await nextTurn();
    }
    this.#isSwept = true;
  }

  #refusal(error: unknown): SnapshotRefusedError {
    const refusal = refusalOf(this.#path, this.#faultOf(error));
    this.#isDamaged ||= refusal.reason === "corrupt";
    return refusal;
  }

  /** SQLite's error in our words. */
  #faultOf(error: unknown): unknown {
    const text = errorMessage(error);
    if (/database is locked/.test(text)) {
      const why = "another informer uses it, of this process or of another one; give each its own path";
      return new SnapshotFault("in-use", why, { cause: error });
    }
    if (/not a database/.test(text)) {
      return new SnapshotFault("foreign", "the file is no snapshot of @listwatch/cache", { cause: error });
    }
    if (/malformed|no such (table|column)/.test(text)) return corrupt(text, error);
    return error;
  }
}

/**
 * Makes sure that there is a file which may be a database, and makes an empty one that only its owner may
 * read.
 */
function prepareFile(path: string): boolean {
  fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  for (const suffix of SUFFIXES) {
    const stat = fs.lstatSync(path + suffix, { throwIfNoEntry: false });
    if (stat !== undefined && !stat.isFile()) {
      throw new Error(`${path + suffix} is no regular file, and is left alone`);
    }
  }
  const size = fs.statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) fs.closeSync(fs.openSync(path, "wx", 0o600));
  return !size;
}

/** SQLite's own files get the mode of the database. */
function restrictModes(path: string): void {
  if (process.platform === "win32") return;
  for (const suffix of SUFFIXES) {
    const stat = fs.lstatSync(path + suffix, { throwIfNoEntry: false });
    if (stat !== undefined && (stat.mode & 0o077) !== 0) fs.chmodSync(path + suffix, 0o600);
  }
}

function inodeOf(path: string): number | undefined {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.ino;
}

/** A name that no file has: a moved file replaces nothing. */
function unusedName(path: string, suffix: string): string {
  for (let number = 1;; number++) {
    const name = (number === 1 ? path : `${path}.${number}`) + suffix;
    if (fs.lstatSync(name, { throwIfNoEntry: false }) === undefined) return name;
  }
}
