/**
 * SQLite of Node, Deno and Bun, as far as they are alike.
 * @module
 */

import { errorMessage } from "../../util/errors.ts";

/** A value of a column. */
export type SqliteValue = string | number | null | Uint8Array;

/** A row, by the names of its columns. */
export type SqliteRow = Readonly<Record<string, SqliteValue>>;

/** An open database. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

/** A prepared statement. */
export interface SqliteStatement {
  run(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
}

/**
 * Opens a database.
 *
 * @throws {Error} The runtime has no SQLite, or the file cannot be opened.
 */
export async function openSqlite(path: string): Promise<SqliteDatabase> {
  // In a variable, so that neither a bundler nor a type checker looks for it elsewhere.
  const ofBun = "bun:sqlite";
  const newest = await import("node:sqlite").catch((error) => error);
  if ("DatabaseSync" in newest) return new newest.DatabaseSync(path) as SqliteDatabase;
  const bun = await import(ofBun).catch(() => undefined) as
    | { readonly Database: new (path: string) => SqliteDatabase }
    | undefined;
  if (bun !== undefined) return new bun.Database(path);
  throw new Error(
    `this runtime has no SQLite (${errorMessage(newest)}): it needs Node 22.13 or later, Deno 2.2 or Bun; ` +
      "or use fileSnapshot",
  );
}
