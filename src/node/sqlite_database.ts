/** SQLite of Node, Deno and Bun. */

import { errorMessage } from "../util/errors.ts";

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

/**
 * The runtime's SQLite, which is loaded when it is needed first.
 *
 * @throws {Error} It has none.
 */
export async function loadSqlite(): Promise<OpenSqlite> {
  try {
    const { DatabaseSync } = await import("node:sqlite");
    return (path) => new DatabaseSync(path) as SqliteDatabase;
  } catch (error) {
    throw new Error(
      `this runtime has no node:sqlite (${
        errorMessage(error)
      }): it needs Node 22.13, Deno 2.2, Bun 1.4, or a later one`,
    );
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

/** Ends a transaction that has failed. */
export function rollback(database: SqliteDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // It was rolled back with the statement that failed, as when the disk is full.
  }
}

export function pragma(database: SqliteDatabase, name: string): unknown {
  return (database.prepare(`PRAGMA ${name}`).all() as SqliteRow[])[0]?.[name];
}
