/**
 * Deletes states that nothing refers to.
 * @module
 */

import type { SqlDatabase } from "./sql_database.ts";
import { rowsOf } from "./sql_database.ts";

/**
 * Deletes the rows of `bodies` up to a number that neither an object nor an event refers to, in short steps. Such rows come
 * from crashes in the middle of a list, and from objects that turned out to be unchanged or were quarantined. All
 * others are deleted with the event that replaced them.
 */
export class BodySweep {
  readonly #sql: SqlDatabase;
  readonly #lastId: number;
  /** The rows that are referred to, ascending. */
  readonly #used: Float64Array;
  #at = 0;
  #after = 0;

  /** @param lastId The last row that may be deleted: everything up to it has been stored, or never will be. */
  constructor(sql: SqlDatabase, lastId: number) {
    this.#sql = sql;
    this.#lastId = lastId;
    const rows = rowsOf(
      sql,
      "SELECT body FROM listwatch_objects WHERE body <= ?1 UNION ALL " +
        "SELECT body FROM listwatch_events WHERE body <= ?1 UNION ALL " +
        "SELECT old_body FROM listwatch_events WHERE old_body <= ?1",
      lastId,
    );
    this.#used = Float64Array.from(rows, ([id]) => Number(id)).sort();
  }

  /**
   * Looks at some rows, and deletes those that are not referred to.
   *
   * @returns Whether there are more.
   */
  step(limit: number): boolean {
    const rows = rowsOf(
      this.#sql,
      "SELECT id FROM listwatch_bodies WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
      this.#after,
      this.#lastId,
      limit,
    );
    for (const [row] of rows) {
      const id = Number(row);
      while (this.#at < this.#used.length && this.#used[this.#at] < id) this.#at++;
      if (this.#used[this.#at] !== id) this.#sql.exec("DELETE FROM listwatch_bodies WHERE id = ?", id);
      this.#after = id;
    }
    return rows.length === limit;
  }
}
