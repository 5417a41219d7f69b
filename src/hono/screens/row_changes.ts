/** What has changed in the rows of a window. */

import { lowerBound } from "../../util/collections.ts";

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

/**
 * The row of each state: that of the same state before, if it is where it was, or a few places from there;
 * otherwise it is made.
 */
export function rowsOf(
  states: readonly unknown[],
  before: { readonly states: readonly unknown[]; readonly rows: readonly WindowRow[] },
  make: (index: number) => WindowRow,
): WindowRow[] {
  let shift = 0;
  return states.map((state, i) => {
    for (const step of NEAR) {
      const place = i + shift + step;
      if (before.states[place] !== state) continue;
      shift += step;
      return before.rows[place];
    }
    return make(i);
  });
}

const NEAR = [0, -1, 1, -2, 2, -3, 3];
// How many rows come or go at one place, at most, where that is found without a table.
const MOST_AT_ONCE = 4;

/** The steps that make some rows into others, as few as there can be: each is for the rows before it. */
export function rowChanges(before: readonly WindowRow[], after: readonly WindowRow[]): RowChange[] {
  return changesInPlace(before, after) ?? changesByPlace(before, after);
}

/** The steps where rows come, go and change; `undefined` if one may have moved. Needs no table of rows. */
function changesInPlace(before: readonly WindowRow[], after: readonly WindowRow[]): RowChange[] | undefined {
  const removed: number[] = [];
  const inserted: number[] = [];
  const updates: RowChange[] = [];
  let i = 0;
  let at = 0;
  while (i < before.length || at < after.length) {
    const [old, row] = [before[i], after[at]];
    if (old?.id === row?.id) {
      if (old.json !== row.json) updates.push({ op: "update", at, row });
      i++;
      at++;
      continue;
    }
    const [removes, inserts] = gap(before, after, { i, at });
    if (removes === 0 && inserts === 0) return undefined;
    for (let k = 0; k < removes; k++) removed.push(i++);
    for (let k = 0; k < inserts; k++) inserted.push(at++);
  }
  const isMove = inserted.some((at) => removed.some((i) => before[i].id === after[at].id));
  if (isMove) return undefined;
  return [
    ...removed.reverse().map((at) => ({ op: "remove", at }) as const),
    ...inserted.map((at) => ({ op: "insert", at, row: after[at] }) as const),
    ...updates,
  ];
}

/** How many rows go and come at a place until the next row that stays; neither if there is none near. */
function gap(
  before: readonly WindowRow[],
  after: readonly WindowRow[],
  { i, at }: { readonly i: number; readonly at: number },
): [number, number] {
  if (i === before.length) return [0, after.length - at];
  if (at === after.length) return [before.length - i, 0];
  for (let k = 1; k <= MOST_AT_ONCE; k++) {
    if (before[i + k]?.id === after[at].id) return [k, 0];
    if (after[at + k]?.id === before[i].id) return [0, k];
    if (before[i + k] !== undefined && before[i + k].id === after[at + k]?.id) return [k, k];
  }
  const rest = Math.max(before.length - i, after.length - at);
  return rest <= MOST_AT_ONCE ? [before.length - i, after.length - at] : [0, 0];
}

function changesByPlace(before: readonly WindowRow[], after: readonly WindowRow[]): RowChange[] {
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
