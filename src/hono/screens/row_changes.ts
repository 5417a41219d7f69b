/** States of the rows of a window, and what has changed between two of them. */

import { getOrMake, lowerBound } from "../../util/collections.ts";
import { type Blocks, readerOf, sharesValues } from "../content/states.ts";

/** The difference between two states: ascending places in all of their rows. */
export interface Difference {
  readonly removed: readonly number[];
  /** The new rows, by their places now. */
  readonly inserted: readonly number[];
  readonly changed: readonly number[];
}

/** All rows, as they are at one resourceVersion; or the first ones, and how many there are. Never changes. */
export class RowsState<V> {
  readonly #blocks: Blocks<V>;
  readonly #differences = new Map<Blocks<V>, FoundDifference>();
  readonly resourceVersion: string;
  readonly length: number;
  readonly value: (index: number) => V;

  constructor(blocks: Blocks<V>, resourceVersion: string, length: number = blocks.length) {
    this.#blocks = blocks;
    this.resourceVersion = resourceVersion;
    this.length = length;
    this.value = readerOf(blocks).value;
  }

  isOf(blocks: Blocks<V>, resourceVersion: string): boolean {
    return this.#blocks === blocks && this.resourceVersion === resourceVersion;
  }

  /**
   * Whether the rows from one place up to another are those that were there in an earlier state. Mostly its
   * blocks say so; otherwise what differs is found once for all windows.
   */
  isSameIn(before: RowsState<V>, from: number, to: number): boolean {
    if (sharesValues(this.#blocks, before.#blocks, from, to)) return true;
    const { removed, inserted, changed } = this.differenceFrom(before, to);
    const count = lowerBound(removed, from);
    return lowerBound(inserted, from) === count && lowerBound(removed, to) === count &&
      lowerBound(inserted, to) === count && lowerBound(changed, from) === lowerBound(changed, to);
  }

  /** The difference from an earlier state, at least in the rows before a place. Found once for each state. */
  differenceFrom(before: RowsState<V>, end: number = Infinity): Difference {
    const blocks = before.#blocks;
    const difference = getOrMake(this.#differences, blocks, () => new FoundDifference(blocks, this.#blocks));
    difference.find(end);
    return difference;
  }
}

/** The difference between two states, as far as it was searched, in the blocks that they do not share. */
class FoundDifference implements Difference {
  readonly #before: Blocks<unknown>;
  readonly #after: Blocks<unknown>;
  readonly removed: number[] = [];
  readonly inserted: number[] = [];
  readonly changed: number[] = [];
  /** Where the search is: blocks, and places in them. */
  #at: readonly [i: number, j: number, a: number, b: number] = [0, 0, 0, 0];

  constructor(before: Blocks<unknown>, after: Blocks<unknown>) {
    this.#before = before;
    this.#after = after;
  }

  /** Finds what differs before a place, in both. */
  find(end: number): void {
    const { removed, inserted, changed } = this;
    const [before, after] = [this.#before, this.#after];
    let [i, j, a, b] = this.#at;
    while (before.starts[i] + a < end || after.starts[j] + b < end) {
      const [old, now] = [before.blocks[i], after.blocks[j]];
      const isEqual = old !== undefined && now !== undefined && a === b && old.keys === now.keys;
      if (isEqual) {
        // The keys are the same to the end; mostly the values are, too.
        for (; old !== now && b < now.keys.length; b++) {
          if (old.values[b] !== now.values[b]) changed.push(after.starts[j] + b);
        }
        [i, j, a, b] = [i + 1, j + 1, 0, 0];
        continue;
      }
      const [oldLength, nowLength] = [old?.keys.length ?? 0, now?.keys.length ?? 0];
      while (a < oldLength && b < nowLength) {
        const [oldKey, key] = [old.keys[a], now.keys[b]];
        if (oldKey === key) {
          if (old.values[a++] !== now.values[b]) changed.push(after.starts[j] + b);
          b++;
        } else if (oldKey < key) removed.push(before.starts[i] + a++);
        else inserted.push(after.starts[j] + b++);
      }
      if (now === undefined) { while (a < oldLength) removed.push(before.starts[i] + a++); }
      if (old === undefined) { while (b < nowLength) inserted.push(after.starts[j] + b++); }
      if (old !== undefined && a === oldLength) [i, a] = [i + 1, 0];
      if (now !== undefined && b === nowLength) [j, b] = [j + 1, 0];
    }
    this.#at = [i, j, a, b];
  }
}

export interface WindowRow {
  /** The identity of the row in every state. */
  readonly id: string;
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
 * The next shown rows and the steps to them, given what differs in all rows. Only places are counted: of a
 * thousand windows with fifty rows each, no row that stays is touched.
 *
 * @param shown The rows that are shown now.
 * @param next The places that are shown next, and what makes the rows that come.
 * @returns Also the steps that lead to them, as few as there can be: each is for the rows before it.
 */
export function nextRows(
  shown: { readonly from: number; readonly rows: readonly WindowRow[] },
  next: { readonly from: number; readonly to: number; row(index: number): WindowRow },
  difference: Difference,
): { readonly rows: readonly WindowRow[]; readonly changes: readonly RowChange[] } {
  const { from: fromBefore, rows: before } = shown;
  const { removed, inserted, changed } = difference;
  const rows: WindowRow[] = [];
  /** Places in the rows before, and in these. */
  const left: number[] = [];
  const entered: number[] = [];
  const updates: RowChange[] = [];
  const endBefore = fromBefore + before.length;
  let old = fromBefore;
  let now = next.from;
  let r = lowerBound(removed, old);
  let s = lowerBound(inserted, now);
  let c = lowerBound(changed, now);
  const enter = () => {
    entered.push(rows.length);
    rows.push(next.row(now++));
  };
  while (old < endBefore || now < next.to) {
    if (old < endBefore && removed[r] === old) {
      left.push(old++ - fromBefore);
      r++;
      continue;
    }
    if (now < next.to && inserted[s] === now) {
      enter();
      s++;
      continue;
    }
    // Counts the rows that stay before the old row, and before the new one.
    const [rankBefore, rank] = [old - r, now - s];
    if (old < endBefore && (now >= next.to || rankBefore < rank)) left.push(old++ - fromBefore);
    else if (old >= endBefore || rank < rankBefore) enter();
    else {
      const row = before[old++ - fromBefore];
      while (changed[c] < now) c++;
      if (changed[c] === now) {
        const other = next.row(now);
        if (other.json !== row.json) updates.push({ op: "update", at: rows.length, row: other });
        rows.push(other);
      } else rows.push(row);
      now++;
    }
  }
  if (isMoved(before, left, rows, entered)) return { rows, changes: changesByPlace(before, rows) };
  const changes: readonly RowChange[] = [
    ...left.reverse().map((at) => ({ op: "remove", at }) as const),
    ...entered.map((at) => ({ op: "insert", at, row: rows[at] }) as const),
    ...updates,
  ];
  return { rows, changes };
}

/** Whether a row that has left is one of those that have come. */
function isMoved(
  before: readonly WindowRow[],
  left: readonly number[],
  rows: readonly WindowRow[],
  entered: readonly number[],
): boolean {
  if (left.length === 0 || entered.length === 0) return false;
  const ids = new Set(left.map((at) => before[at].id));
  return entered.some((at) => ids.has(rows[at].id));
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
      if (placeAfter.get(rows[i])! < place) to = i + 1;
    }
    rows.splice(to, 0, id);
    changes.push({ op: "move", from, to });
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
