/** The states of objects as texts on disk, and the rows of the present objects. */

import type { SnapshotEntry } from "../informer/snapshot/storage.ts";
import { newStatus, StatusError } from "../meta/status.ts";
import type { TextForm } from "../store/encoded_holding.ts";
import { TextObject } from "../text/lazy_object.ts";
import type { FieldTexts } from "../text/field_tree.ts";
import { rowsOf, type SqlDatabase, type SqlValue } from "./sql_database.ts";
import { getOrMake } from "../util/collections.ts";

/**
 * Texts in a table, each written once, when its object arrives; memory has the number of its row. Rows that
 * nothing refers to are deleted by {@linkcode BodySweep}.
 */
export class DiskBodies implements TextForm {
  readonly #sql: SqlDatabase;
  readonly #maxBytes: number;
  #lastId: number;
  readonly #paths: string[] = [];
  /** The values of the fields of states that were written and are not stored yet. */
  readonly #fields = new Map<string, FieldTexts>();
  /** The texts that are not written yet. */
  readonly #unwritten = new Map<number, string>();
  #unwrittenLength = 0;

  /** Continues after what is in the table, which must exist. */
  constructor(sql: SqlDatabase, maxBytes: number) {
    this.#sql = sql;
    this.#maxBytes = maxBytes;
    const [[lastId]] = rowsOf(sql, "SELECT coalesce(max(id), 0) FROM listwatch_bodies");
    this.#lastId = Number(lastId);
  }

  count = 0;

  get lastId(): number {
    return this.#lastId;
  }

  encode(json: string, fields?: FieldTexts): string {
    this.#refuseLong(json);
    const id = this.#lastId + 1;
    try {
      this.#sql.exec("INSERT INTO listwatch_bodies(id, json) VALUES(?, ?)", id, json);
      this.#lastId = id;
      this.count++;
    } catch (error) {
      if (this.#unwrittenLength + json.length > MOST_UNWRITTEN) throw error;
      this.keep(json);
    }
    const text = String(id);
    if (fields !== undefined && fields.length === this.#paths.length && fields.length > 0) {
      if (this.#fields.size >= MOST_FIELDS) this.#fields.clear();
      this.#fields.set(text, fields);
    }
    return text;
  }

  /** A text whose row is written later: with the change that refers to it, or not at all. */
  keep(json: string): number {
    this.#refuseLong(json);
    const id = ++this.#lastId;
    this.#unwritten.set(id, json);
    this.#unwrittenLength += json.length;
    this.count++;
    return id;
  }

  /** Writes the texts that are not written yet; throws if one of them cannot be. */
  writeAll(): void {
    const query = "INSERT INTO listwatch_bodies(id, json) VALUES(?, ?) ON CONFLICT(id) DO NOTHING";
    for (const [id, json] of this.#unwritten) this.#sql.exec(query, id, json);
  }

  /** All texts are written, and no transaction can undo it. */
  wroteAll(): void {
    this.#unwritten.clear();
    this.#unwrittenLength = 0;
  }

  decode(id: string): string {
    const unwritten = this.#unwritten.get(Number(id));
    if (unwritten !== undefined) return unwritten;
    const [row] = rowsOf(this.#sql, "SELECT json FROM listwatch_bodies WHERE id = ?", Number(id));
    if (row !== undefined) return row[0] as string;
    const why = `its text (${id}) was deleted, minutes after the object had changed`;
    throw new StatusError(newStatus(410, "Expired", `Cannot read an earlier state of an object: ${why}`));
  }

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

  /** Refuses an object that is too long for SQLite, which counts bytes; a character has three at most. */
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
/** Beyond so many characters an object whose text cannot be written is quarantined. */
const MOST_UNWRITTEN = 8_000_000;
/** Beyond so many fields, those of states that are never stored are dropped. */
const MOST_FIELDS = 500_000;

/** The table of the present objects: reads it in batches, and writes one object at a time. */
export class DiskContent {
  readonly #sql: SqlDatabase;
  readonly #bodies: DiskBodies;
  /** The rows of objects that could not be held as text, such as what a transform made with a Date in it. */
  readonly #ids = new WeakMap<object, number>();
  readonly #labelTexts = new WeakMap<object, string>();

  constructor(sql: SqlDatabase, bodies: DiskBodies) {
    this.#sql = sql;
    this.#bodies = bodies;
  }

  get size(): number {
    return Number(rowsOf(this.#sql, "SELECT count(*) FROM listwatch_objects")[0][0]);
  }

  put(key: string, held: unknown, json: () => string): void {
    const object = held instanceof TextObject ? held : newTextObject(key, "", json());
    const { apiVersion, kind, uid, resourceVersion, namespace, labels } = object;
    const fields = this.#bodies.takeFields(object.text);
    this.#sql.exec(
      "INSERT INTO listwatch_objects(key, body, uid, version, namespace, type, labels, fields) " +
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?) " +
        "ON CONFLICT(key) DO UPDATE SET body = excluded.body, uid = excluded.uid, version = excluded.version, " +
        "namespace = excluded.namespace, type = excluded.type, labels = excluded.labels, fields = excluded.fields",
      key,
      this.idOf(held, json),
      uid ?? null,
      resourceVersion ?? null,
      namespace ?? null,
      JSON.stringify([apiVersion ?? null, kind ?? null]),
      labels === undefined ? null : getOrMake(this.#labelTexts, labels, () => JSON.stringify(labels)),
      fields === undefined ? null : JSON.stringify(fields),
    );
  }

  delete(key: string): void {
    this.#sql.exec("DELETE FROM listwatch_objects WHERE key = ?", key);
  }

  /**
   * The store has other indices than when the fields were written: forgets their values, which are read from
   * the texts.
   */
  dropFields(): void {
    this.#sql.exec("UPDATE listwatch_objects SET fields = NULL WHERE fields IS NOT NULL");
  }

  clear(): void {
    this.#sql.exec("DELETE FROM listwatch_objects");
  }

  /** Writes the texts that are not written yet, so that no other row refers to one that is not there. */
  writeAll(): void {
    this.#bodies.writeAll();
    this.#bodies.wroteAll();
  }

  /** The row of an object's state; written by {@linkcode DiskContent.writeAll}, if it is not held as text. */
  idOf(held: unknown, json: () => string): number {
    if (held instanceof TextObject) return Number(held.text);
    return getOrMake(this.#ids, held as object, () => this.#bodies.keep(json()));
  }

  deleteState(key: string, id: number): void {
    this.#sql.exec(
      "DELETE FROM listwatch_bodies WHERE id = ? AND NOT EXISTS " +
        "(SELECT 1 FROM listwatch_objects WHERE key = ? AND body = ?)",
      id,
      key,
      id,
    );
  }

  /** An object of which only the row is known: its text is read. */
  read(key: string, id: number): TextObject {
    return newTextObject(key, String(id), this.#bodies.decode(String(id)));
  }

  *entries(): Generator<readonly SnapshotEntry[]> {
    const shared = new SharedValues();
    const bodies = this.#bodies;
    for (let after = "";;) {
      const rows = rowsOf(
        this.#sql,
        "SELECT key, body, uid, version, namespace, type, labels, fields FROM listwatch_objects " +
          "WHERE key > ? ORDER BY key LIMIT ?",
        after,
        BATCH_ROWS,
      );
      yield rows.map((row) => newEntry(row, shared, bodies));
      if (rows.length < BATCH_ROWS) return;
      after = rows[rows.length - 1][0] as string;
    }
  }
}

const BATCH_ROWS = 1_000;

/** Values that many objects have: one in memory for all of them. */
class SharedValues {
  readonly #namespaces = new Map<string, string>();
  readonly #parsed = new Map<string, unknown>();

  text(value: SqlValue): string | undefined {
    return typeof value === "string" ? getOrMake(this.#namespaces, value, () => value) : undefined;
  }

  parsed<V>(value: SqlValue): V | undefined {
    if (typeof value !== "string") return undefined;
    const known = this.#parsed.get(value) as V | undefined;
    if (known !== undefined) return known;
    const parsed = JSON.parse(value);
    // Labels may differ in every object: then nothing is shared.
    if (this.#parsed.size < MAX_SHARED) this.#parsed.set(value, parsed);
    return parsed;
  }
}

const MAX_SHARED = 10_000;

function newEntry(row: readonly SqlValue[], shared: SharedValues, bodies: DiskBodies): SnapshotEntry {
  const [key, body, uid, version, namespace, type, labels, fields] = row;
  const types = shared.parsed<[string | null, string | null]>(type);
  const held = new TextObject(key as string, {
    uid: uid as string | null ?? undefined,
    resourceVersion: version as string | null ?? undefined,
    namespace: shared.text(namespace),
    labels: shared.parsed(labels),
    apiVersion: types?.[0] ?? undefined,
    kind: types?.[1] ?? undefined,
  }, String(body));
  held.fields = shared.parsed(fields);
  return {
    key: held.key,
    held,
    get json() {
      return bodies.decode(held.text);
    },
  };
}

/** A text object for a text in the database of which this process knows nothing. */
function newTextObject(key: string, text: string, json: string): TextObject {
  const { apiVersion, kind, metadata } = JSON.parse(json);
  const { uid, resourceVersion, namespace, labels } = metadata ?? {};
  return new TextObject(key, {
    apiVersion,
    kind,
    uid,
    resourceVersion: metadata === undefined ? undefined : resourceVersion ?? "",
    namespace,
    labels,
  }, text);
}

/**
 * Deletes the rows of `bodies` up to a number that neither an object nor an event refers to, in short steps.
 * Such rows come from crashes in the middle of a list, and from objects that turned out to be unchanged or
 * were quarantined. All others are deleted with the event that replaced them.
 */
export class BodySweep {
  readonly #sql: SqlDatabase;
  readonly #lastId: number;
  /** The rows that are referred to, ascending. */
  readonly #used: Float64Array;
  #at = 0;
  #after = 0;

  /**
   * @param lastId The last row that may be deleted: everything up to it has been stored, or never will be.
   */
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

  /** Looks at some rows, and deletes those that are not referred to. */
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
      while (this.#used[this.#at] < id) this.#at++;
      if (this.#used[this.#at] !== id) this.#sql.exec("DELETE FROM listwatch_bodies WHERE id = ?", id);
      this.#after = id;
    }
    return rows.length === limit;
  }
}
