/** Values in the order of their keys, in blocks that their versions share. */

import { firstIndex, lowerBound } from "../../util/collections.ts";

/** Some values in the order of their keys. Never changes. */
export interface Block<V> {
  readonly keys: readonly string[];
  readonly values: readonly V[];
}

/** All of them. Never changes; what is made of it shares the blocks in which nothing differs. */
export interface Blocks<V> {
  readonly length: number;
  readonly blocks: readonly Block<V>[];
  /** The index of the first value of each block. */
  readonly starts: readonly number[];
}

/** Reads by index; fast where reads follow each other. */
export interface BlocksReader<V> {
  readonly key: (index: number) => string;
  readonly value: (index: number) => V;
}

// A change copies one block, and a new state has a reference to each.
const BLOCK = 512;

/** The values of ascending keys; those without one are left out. */
export function blocksOf<V>(keys: readonly string[], valueOf: (key: string) => V | undefined): Blocks<V> {
  const blocks: Block<V>[] = [];
  let block: { keys: string[]; values: V[] } | undefined;
  for (const key of keys) {
    const value = valueOf(key);
    if (value === undefined) continue;
    if (block === undefined || block.keys.length === BLOCK) blocks.push(block = { keys: [], values: [] });
    block.keys.push(key);
    block.values.push(value);
  }
  return joined(blocks);
}

/** The values of several blocks of any length, no key of which is in two of them; a step is a block. */
export function* mergedBlocks<V>(runs: readonly Block<V>[]): Generator<undefined, Blocks<V>, undefined> {
  while (runs.length > 1) {
    const longer: Block<V>[] = [];
    for (let i = 0; i < runs.length; i += 2) {
      longer.push(i + 1 < runs.length ? yield* merged(runs[i], runs[i + 1]) : runs[i]);
    }
    runs = longer;
  }
  const result: Block<V>[] = [];
  for (const run of runs) add(result, run);
  return joined(result);
}

function* merged<V>(a: Block<V>, b: Block<V>): Generator<undefined, Block<V>, undefined> {
  const length = a.keys.length + b.keys.length;
  const keys = new Array<string>(length);
  const values = new Array<V>(length);
  let i = 0;
  let j = 0;
  for (let at = 0; at < length; at++) {
    const isOfA = j === b.keys.length || i < a.keys.length && a.keys[i] < b.keys[j];
    keys[at] = isOfA ? a.keys[i] : b.keys[j];
    values[at] = isOfA ? a.values[i++] : b.values[j++];
    if (at % BLOCK === 0) yield;
  }
  return { keys, values };
}

/** The same with the values that some keys have now; `undefined` for none. */
export function withChanges<V>(
  { blocks }: Blocks<V>,
  changed: Iterable<string>,
  valueOf: (key: string) => V | undefined,
): Blocks<V> {
  const byBlock = new Map<number, string[]>();
  for (const key of changed) {
    const place = Math.max(0, firstIndex(blocks.length, (i) => blocks[i].keys[0] > key) - 1);
    const others = byBlock.get(place);
    if (others === undefined) byBlock.set(place, [key]);
    else others.push(key);
  }
  const result: Block<V>[] = [];
  for (let i = 0; i < Math.max(1, blocks.length); i++) {
    const block = blocks[i] ?? { keys: [], values: [] };
    const keys = byBlock.get(i);
    if (keys === undefined) result.push(block);
    else add(result, changedBlock(block, keys, valueOf));
  }
  return joined(result);
}

export const NO_BLOCKS: Blocks<never> = { length: 0, blocks: [], starts: [] };

/** The index of the first key from a bound on. */
export function firstIn({ blocks, starts }: Blocks<unknown>, bound: string): number {
  const place = Math.max(0, firstIndex(blocks.length, (i) => blocks[i].keys[0] > bound) - 1);
  const keys = blocks[place]?.keys ?? [];
  return (starts[place] ?? 0) + lowerBound(keys, bound);
}

/** Whether two versions share the values from one index up to another: then they are the same. */
export function sharesValues(a: Blocks<unknown>, b: Blocks<unknown>, from: number, to: number): boolean {
  if (to > a.length || to > b.length) return false;
  let i = firstIndex(a.starts.length, (i) => a.starts[i] > from) - 1;
  for (let j = firstIndex(b.starts.length, (j) => b.starts[j] > from) - 1; a.starts[i] < to; i++, j++) {
    if (a.blocks[i] !== b.blocks[j] || a.starts[i] !== b.starts[j]) return false;
  }
  return true;
}

/** A reader of its own for each walk. */
export function readerOf<V>({ blocks, starts, length }: Blocks<V>): BlocksReader<V> {
  let current = 0;
  const blockOf = (index: number): Block<V> => {
    const isIn = (i: number) => starts[i] <= index && index < (starts[i + 1] ?? length);
    if (!isIn(current) && !(current + 1 < blocks.length && isIn(++current))) {
      current = firstIndex(starts.length, (i) => starts[i] > index) - 1;
    }
    return blocks[current];
  };
  return {
    key: (index) => blockOf(index).keys[index - starts[current]],
    value: (index) => blockOf(index).values[index - starts[current]],
  };
}

function changedBlock<V>(
  { keys, values }: Block<V>,
  changed: readonly string[],
  valueOf: (key: string) => V | undefined,
): Block<V> {
  const next = values.slice();
  /** Keys that come or go. */
  const others: string[] = [];
  for (const key of changed) {
    const at = lowerBound(keys, key);
    const value = valueOf(key);
    if (keys[at] === key && value !== undefined) next[at] = value;
    else if (keys[at] === key || value !== undefined) others.push(key);
  }
  if (others.length === 0) return { keys, values: next };
  others.sort();
  const result: { keys: string[]; values: V[] } = { keys: [], values: [] };
  let at = 0;
  const takeBefore = (key: string | undefined) => {
    for (; at < keys.length && (key === undefined || keys[at] < key); at++) {
      result.keys.push(keys[at]);
      result.values.push(next[at]);
    }
  };
  for (const key of others) {
    takeBefore(key);
    if (keys[at] === key) {
      at++; // it went
      continue;
    }
    result.keys.push(key);
    result.values.push(valueOf(key)!);
  }
  takeBefore(undefined);
  return result;
}

/** Adds a block: as several if it is long, to the last one if both are short. */
function add<V>(blocks: Block<V>[], { keys, values }: Block<V>): void {
  const last = blocks.at(-1);
  if (last !== undefined && last.keys.length + keys.length <= BLOCK / 2) {
    blocks[blocks.length - 1] = { keys: last.keys.concat(keys), values: last.values.concat(values) };
  } else if (keys.length <= 2 * BLOCK) {
    if (keys.length > 0) blocks.push({ keys, values });
  } else {
    for (let at = 0; at < keys.length; at += BLOCK) {
      blocks.push({ keys: keys.slice(at, at + BLOCK), values: values.slice(at, at + BLOCK) });
    }
  }
}

function joined<V>(blocks: readonly Block<V>[]): Blocks<V> {
  let length = 0;
  const starts = blocks.map(({ keys }) => (length += keys.length) - keys.length);
  return { blocks, starts, length };
}
