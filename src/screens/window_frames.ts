/** The frames of a window, as the server sends them, and what they make of its rows. */

import { AGE_ANNOTATION } from "../meta/list_watch.ts";
import { type Status, StatusError } from "../meta/status.ts";
import { recordOf } from "../util/json.ts";

/** A column of a Table. */
export interface WindowColumn {
  /** The heading: `Restarts`. */
  readonly name: string;
  /** `string`, `integer`, `number`, `boolean` or `date`. */
  readonly type: string;
  /** `name` for the column of names; mostly empty. */
  readonly format: string;
  /** What it shows, in a sentence. */
  readonly description: string;
  /** 0 if it is always shown, more if only where there is much room. */
  readonly priority: number;
}

/** The rows that a window shows, in one state. */
export interface WindowRows<Row> {
  /** In their order. A row that has not changed is the same object as in the state before. */
  readonly rows: readonly Row[];
  /** How many rows there are in all, shown or not. */
  readonly total: number;
  /** How many rows come before the first one that is shown. */
  readonly offset: number;
  /** The state of the resource that the rows are of. */
  readonly resourceVersion: string;
  /** The columns of `cells`, where the rows are those of a Table. */
  readonly columns: readonly WindowColumn[];
}

export interface FrameResult<Row> {
  readonly shown: WindowRows<Row>;
  /** How long ago the server had its last contact with its own, if it says so, in milliseconds. */
  readonly ageMs: number | undefined;
}

type Members = Readonly<Record<string, unknown>>;

/**
 * The rows after a frame.
 * @throws {TypeError} It cannot be one: what is shown would be wrong from here on.
 */
export function afterFrame<Row>(shown: WindowRows<Row> | undefined, line: string): FrameResult<Row> {
  const { type, object } = JSON.parse(line) as { readonly type?: unknown; readonly object?: Members };
  if (type === "ERROR") throw new StatusError(object as unknown as Status);
  const { resourceVersion = "", annotations } = recordOf(object?.metadata) as {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  if (type === "ROWS") {
    const rows = object?.items ?? object?.rows;
    if (!Array.isArray(rows)) throw new TypeError("a window begins without rows");
    const columns = (object?.columnDefinitions ?? []) as readonly WindowColumn[];
    return { shown: { rows, ...placeOf(object), resourceVersion, columns }, ageMs: undefined };
  }
  if (shown === undefined) throw new TypeError(`a window begins with ${JSON.stringify(type)}`);
  if (type === "BOOKMARK") {
    const age = annotations?.[AGE_ANNOTATION];
    return { shown: { ...shown, resourceVersion }, ageMs: age === undefined ? 0 : Number(age) };
  }
  if (type !== "CHANGES" || !Array.isArray(object?.changes)) {
    throw new TypeError(`a window continues with ${JSON.stringify(type)}`);
  }
  const rows = changed(shown.rows, object.changes as readonly Members[]);
  return { shown: { ...shown, rows, ...placeOf(object), resourceVersion }, ageMs: undefined };
}

function placeOf(object: Members | undefined): { readonly total: number; readonly offset: number } {
  const { total, offset } = recordOf(object?.window);
  if (typeof total !== "number" || typeof offset !== "number") throw new TypeError("a frame has no place");
  return { total, offset };
}

function changed<Row>(before: readonly Row[], changes: readonly Members[]): readonly Row[] {
  if (changes.length === 0) return before;
  const rows = [...before];
  for (const { op, at, from, to, item } of changes) {
    if (op === "move") {
      rows.splice(indexIn(to, rows.length), 0, ...rows.splice(indexIn(from, rows.length), 1));
    } else if (op === "insert") rows.splice(indexIn(at, rows.length + 1), 0, item as Row);
    else if (op === "remove") rows.splice(indexIn(at, rows.length), 1);
    else if (op === "update") rows[indexIn(at, rows.length)] = item as Row;
    else throw new TypeError(`there is no change ${JSON.stringify(op)}`);
  }
  return rows;
}

function indexIn(index: unknown, length: number): number {
  if (typeof index === "number" && Number.isInteger(index) && index >= 0 && index < length) return index;
  throw new TypeError(`${JSON.stringify(index)} is no place among ${length} rows`);
}
