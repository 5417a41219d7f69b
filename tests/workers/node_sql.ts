/**
 * The database of a Durable Object, over `node:sqlite`: a turn is a
 * transaction, and a crash loses the present one.
 * @module
 */

import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlDatabase, SqlStorage, SqlValue } from "@listwatch/cache/workers";

/** A database of which what was written since the last turn is lost in a crash. */
export class NodeSql implements SqlDatabase, SqlStorage {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  #isInTurn = false;
  #isCrashed = false;
  /** How many statements ran. */
  count = 0;
  /** Crashes instead of running this statement. */
  crashesAt: number | undefined;
  /** Called at the crash: the process has ended, not the database alone. */
  onCrash: (() => void) | undefined;
  /** Throws from then on what it returns, if that is an error. */
  failsWith: ((query: string) => Error | undefined) | undefined;

  /** @param path A file, which a later instance may open again; memory by default. */
  constructor(path = ":memory:") {
    this.#database = new DatabaseSync(path);
    this.#database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
  }

  get sql(): this {
    return this;
  }

  transactionSync<R>(work: () => R): R {
    this.#beginTurn();
    this.#database.exec("SAVEPOINT work");
    try {
      return work();
    } catch (error) {
      if (!this.#isCrashed) this.#database.exec("ROLLBACK TO work");
      throw error;
    } finally {
      if (!this.#isCrashed) this.#database.exec("RELEASE work");
    }
  }

  exec(query: string, ...bindings: SqlValue[]): { raw(): Iterable<SqlValue[]> } {
    if (!this.#isCrashed && this.crashesAt !== undefined && this.count >= this.crashesAt) this.crash();
    if (this.#isCrashed) throw new Error("the object has crashed");
    if (bindings.length > 100) throw new Error("too many SQL variables");
    const error = this.failsWith?.(query);
    if (error !== undefined) throw error;
    this.count++;
    this.#beginTurn();
    let statement = this.#statements.get(query);
    if (statement === undefined) {
      statement = this.#database.prepare(query);
      this.#statements.set(query, statement);
    }
    const rows = statement.all(...bindings as never[]) as Record<string, SqlValue>[];
    return { raw: () => rows.map((row) => Object.values(row)) };
  }

  /** Ends the turn: what it wrote is on disk. */
  commit(): void {
    if (!this.#isInTurn || this.#isCrashed) return;
    this.#isInTurn = false;
    this.#database.exec("COMMIT");
  }

  /** The process ends within the turn. */
  crash(): void {
    if (this.#isCrashed) return;
    this.#isCrashed = true;
    this.onCrash?.();
    if (this.#isInTurn) this.#database.exec("ROLLBACK");
    this.#database.close();
  }

  #beginTurn(): void {
    if (this.#isInTurn) return;
    this.#isInTurn = true;
    this.#database.exec("BEGIN");
    setTimeout(() => this.#isCrashed || this.commit(), 0);
  }
}
