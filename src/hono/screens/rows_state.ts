/** Rows in their order at one resourceVersion, and where the rows of two states differ. */

import { getOrMake, lowerBound } from "../../util/collections.ts";
import { type Blocks, readerOf, sharesValues } from "../content/states.ts";

/** What differs between two states: places in all of their rows, which ascend. */
export interface Difference {
  /** The rows that are not there any more, by their places before. */
  readonly removed: readonly number[];
  /** The rows that are new there, by their places now. */
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

  /** What differs from an earlier state, at least in the rows before a place. Found once for each. */
  differenceFrom(before: RowsState<V>, end: number = Infinity): Difference {
    const blocks = before.#blocks;
    const difference = getOrMake(this.#differences, blocks, () => new FoundDifference(blocks, this.#blocks));
    difference.find(end);
    return difference;
  }
}

/** What differs between two versions, as far as it was sought, in the blocks that they do not share. */
class FoundDifference implements Difference {
  readonly #before: Blocks<unknown>;
  readonly #after: Blocks<unknown>;
  readonly removed: number[] = [];
  readonly inserted: number[] = [];
  readonly changed: number[] = [];
  /** Where it is: blocks, and places in them. */
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
