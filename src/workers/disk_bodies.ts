/**
 * The states of objects, as texts on disk.
 * @module
 */

import type { FieldTexts } from "../text/field_tree.ts";
import type { TextForm } from "../store/text_holding.ts";
import { rowsOf, type SqlDatabase } from "./sql_database.ts";

/**
 * Texts in a table, each written once, when its object arrives; what is held in memory is the number of its row. Rows that
 * nothing refers to are deleted by {@linkcode BodySweep}.
 */
export class DiskBodies implements TextForm {
  readonly #sql: SqlDatabase;
  readonly #maxBytes: number;
  #lastId: number;
  readonly #paths: string[] = [];
  /** The values of the fields of states that were written and are not stored yet. */
  readonly #fields = new Map<string, FieldTexts>();

  /** Continues after what is in the table, which must exist. */
  constructor(sql: SqlDatabase, maxBytes: number) {
    this.#sql = sql;
    this.#maxBytes = maxBytes;
    const [[lastId]] = rowsOf(sql, "SELECT coalesce(max(id), 0) FROM listwatch_bodies");
    this.#lastId = Number(lastId);
  }

  /** How many texts were written since the start. */
  count = 0;

  /** The number of the last row. */
  get lastId(): number {
    return this.#lastId;
  }

  /**
   * Writes a text.
   *
   * @throws {RangeError} It is too long for a row.
   */
  encode(json: string, fields?: FieldTexts): string {
    this.#refuseLong(json);
    const id = this.#lastId + 1;
    this.#sql.exec("INSERT INTO listwatch_bodies(id, json) VALUES(?, ?)", id, json);
    this.#lastId = id;
    this.count++;
    const text = String(id);
    if (fields !== undefined && fields.length === this.#paths.length && fields.length > 0) {
      if (this.#fields.size >= MOST_FIELDS) this.#fields.clear();
      this.#fields.set(text, fields);
    }
    return text;
  }

  /**
   * Reads a text.
   *
   * @throws {Error} Its row was deleted, long after the object got another state.
   */
  decode(id: string): string {
    const [row] = rowsOf(this.#sql, "SELECT json FROM listwatch_bodies WHERE id = ?", Number(id));
    if (row !== undefined) return row[0] as string;
    throw new Error(
      `Cannot read an earlier state of an object: its text (${id}) was deleted, minutes after the object had changed`,
    );
  }

  /** The paths of the indexed fields. */
  get paths(): readonly string[] {
    return this.#paths;
  }

  fieldAdded(path: string): void {
    this.#paths.push(path);
    this.#fields.clear();
  }

  /** The values of the fields of a state that is stored now, if the source read them. */
  takeFields(id: string): FieldTexts | undefined {
    const fields = this.#fields.get(id);
    this.#fields.delete(id);
    return fields;
  }

  /** SQLite counts bytes; a character has three at most. */
  #refuseLong(json: string): void {
    if (json.length * 3 <= this.#maxBytes) return;
    const bytes = encoder.encode(json).byteLength;
    if (bytes <= this.#maxBytes) return;
    throw new RangeError(
      `Cannot store an object of ${bytes} bytes: a row takes ${this.#maxBytes} at most; drop fields of it (\`drop\`, a transform)`,
    );
  }
}

const encoder = new TextEncoder();
/** Those of states that are never stored are dropped then. */
const MOST_FIELDS = 500_000;
