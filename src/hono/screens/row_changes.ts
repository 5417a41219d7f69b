/** What has changed in the rows of a window. */

import { lowerBound } from "../../util/collections.ts";

/** A row of a window. */
export interface WindowRow {
  /** What makes it the same row in another state. */
  readonly id: string;
  /** What is shown of it, as JSON. */
  readonly json: string;
}

/** One step from rows to others; `at`, `from` and `to` are places in the rows after the steps before it. */
export type RowChange =
  | { readonly op: "remove"; readonly at: number }
  /** The row leaves the place `from`; in the rows without it, its place is `to`. */
  | { readonly op: "move"; readonly from: number; readonly to: number }
  | { readonly op: "insert"; readonly at: number; readonly row: WindowRow }
  | { readonly op: "update"; readonly at: number; readonly row: WindowRow };

/** The steps that make some rows into others, as few as there can be: each is for the rows before it. */
export function rowChanges(before: readonly WindowRow[], after: readonly WindowRow[]): RowChange[] {
  const changes: RowChange[] = [];
  const placeAfter = new Map(after.map(({ id }, i) => [id, i]));
  const rows = before.map(({ id }) => id);
  for (let at = rows.length - 1; at >= 0; at--) {
    if (placeAfter.has(rows[at])) continue;
    rows.splice(at, 1);
    changes.push({ op: "remove", at });
  }
  const places = rows.map((id) => placeAfter.get(id)!);
  // The rows that are in order already; the others move, one by one, behind their predecessors.
  const settled = new Set(longestAscending(places));
  for (const place of places.filter((place) => !settled.has(place)).sort((a, b) => a - b)) {
    const { id } = after[place];
    const from = rows.indexOf(id);
    rows.splice(from, 1);
    let to = 0;
    for (let i = 0; i < rows.length; i++) {
      const other = placeAfter.get(rows[i])!;
      if (settled.has(other) && other < place) to = i + 1;
    }
    rows.splice(to, 0, id);
    settled.add(place);
    if (from !== to) changes.push({ op: "move", from, to });
  }
  const known = new Map(before.map(({ id, json }) => [id, json]));
  for (const [at, row] of after.entries()) {
    if (!known.has(row.id)) changes.push({ op: "insert", at, row });
  }
  for (const [at, row] of after.entries()) {
    const json = known.get(row.id);
    if (json !== undefined && json !== row.json) changes.push({ op: "update", at, row });
  }
  return changes;
}

/** The longest ascending part of different numbers. */
function longestAscending(numbers: readonly number[]): number[] {
  // The last numbers of the parts of each length, the least ones; and what is before each number.
  const lasts: number[] = [];
  const before = new Map<number, number | undefined>();
  for (const number of numbers) {
    const length = lowerBound(lasts, number);
    before.set(number, lasts[length - 1]);
    lasts[length] = number;
  }
  const part: number[] = [];
  for (let number = lasts.at(-1); number !== undefined; number = before.get(number)) part.push(number);
  return part.reverse();
}
