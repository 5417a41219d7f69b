/** The states of the content of an event log: the present one, parts of it, and those of the past. */

import type { FieldRequirement } from "../../meta/fields.ts";
import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import { candidateKeysOf, type CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import type { Indexer } from "../../store/store.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { firstIndex, lowerBound } from "../../util/collections.ts";
import type { ServedStore } from "./served_informer.ts";
import type { EventLog } from "./event_log.ts";
import type { KeyFollower } from "./log_history.ts";

export interface IndexValue {
  readonly index: string;
  readonly value: string;
}

/** Objects in the order of their keys, as they are at one resourceVersion. Never changes. */
export interface Snapshot<T> {
  readonly resourceVersion: string;
  readonly length: number;
  /** The key at an index; they ascend, byte by byte. */
  readonly key: (index: number) => string;
  readonly object: (index: number) => Held<T>;
  /** The requirement of a query that all objects fulfil, if it was answered by an index. */
  readonly answers?: FieldRequirement | undefined;
}

interface KeptState<T> {
  readonly revision: number;
  /** The first entry after it. */
  readonly sequence: number;
  readonly snapshot: Snapshot<T>;
  readonly blocks: Blocks<Held<T>>;
}

/**
 * Makes snapshots of the content of a log, now and before. Objects are in blocks in the order of their keys,
 * which snapshots share: a change costs a note, the next snapshot a copy of the blocks that have changed.
 */
export class ContentStates<T extends KubernetesObject> implements KeyFollower {
  readonly #log: EventLog<T>;
  readonly #store: ServedStore<Held<T>>;
  readonly #clock: Clock;
  /** The objects, but for what has changed since. */
  #blocks: Blocks<Held<T>> | undefined;
  /** The content when it was read last, and before that: pages continue at the state of the first one. */
  #kept: readonly KeptState<T>[] = [];

  constructor(log: EventLog<T>, store: ServedStore<Held<T>>, clock: Clock) {
    this.#log = log;
    this.#store = store;
    this.#clock = clock;
    log.followKeys(this);
  }

  noted(): void {
    if (this.#blocks === undefined) return this.#log.changedKeys.clear();
    this.#present();
    this.#keep(this.#kept[0]);
  }

  restarted(): void {
    this.#kept = [];
  }

  /** The content now, in key order. Taken once per change. */
  snapshot(): Snapshot<T> {
    const { resourceVersion, revision, tail, entries } = this.#log.window;
    const [last] = this.#kept;
    const same = last?.revision === revision ? last : undefined;
    if (same?.snapshot.resourceVersion === resourceVersion) return same.snapshot;
    const blocks = same?.blocks ?? this.#present();
    const snapshot = same === undefined
      ? snapshotOf(blocks, resourceVersion)
      : { ...same.snapshot, resourceVersion };
    this.#keep({ revision, sequence: tail + entries.length, snapshot, blocks });
    return snapshot;
  }

  /**
   * A snapshot of at least the objects that a query matches. It costs only the objects that an index of the
   * store has under one of the query's labels or fields, if there is one.
   */
  candidates(query: CandidateQuery | undefined): Snapshot<T> {
    const indexer = query && this.indexer;
    const found = indexer && candidateKeysOf(indexer, query);
    if (found === undefined) return this.snapshot();
    return this.#snapshotOf(found.keys, this.#log.window.resourceVersion, found.answers);
  }

  /** The content under a value of an index of the store, which must have it. Costs the size of that part. */
  indexed({ index, value }: IndexValue): Snapshot<T> {
    return this.#snapshotOf(this.indexer?.indexKeys(index, value) ?? [], this.#log.window.resourceVersion);
  }

  /** The store of the objects in their held form, if it has indices. */
  get indexer(): Indexer<Held<T>> | undefined {
    const store = this.#store as ServedStore<Held<T>> & Partial<Indexer<Held<T>>>;
    const isIndexed = store.indexKeys !== undefined && store.countByIndex !== undefined &&
      store.indexValueCounts !== undefined && store.getIndexers !== undefined;
    return isIndexed ? store as Indexer<Held<T>> : undefined;
  }

  /**
   * The content as it was at a resourceVersion that is not in the future, or `undefined` if that is not known
   * any more: an API server compacts its history after five minutes. Costs a walk over the entries that have
   * come since, up to the next snapshot of the content that is kept, which states of the past share.
   */
  stateAt(resourceVersion: string): Snapshot<T> | undefined {
    const first = this.#firstAfter(resourceVersion);
    if (first === undefined) return undefined;
    if (this.#kept.length === 0 || this.#kept[0].sequence < first) this.snapshot();
    const { snapshot, blocks, sequence } = this.#kept.findLast((state) => state.sequence >= first)!;
    const before = this.#changedIn(first, sequence);
    if (before.size === 0) return { ...snapshot, resourceVersion };
    return snapshotOf(withChanges(blocks, before.keys(), (key) => before.get(key)), resourceVersion);
  }

  /**
   * The objects that differed from the present content at a resourceVersion, as they were, by key;
   * `undefined` for a key without an object. `undefined` as a whole if that state is not known any more.
   */
  differencesAt(resourceVersion: string): ReadonlyMap<string, Held<T> | undefined> | undefined {
    const first = this.#firstAfter(resourceVersion);
    return first === undefined ? undefined : this.#changedIn(first, this.#log.head);
  }

  /** The first entry after a state of the past; `undefined` if that is not known any more. */
  #firstAfter(resourceVersion: string): number | undefined {
    const { oldestState } = this.#log;
    const { resourceVersion: now, tail, entries } = this.#log.window;
    if (compareResourceVersions(resourceVersion, oldestState) < 0) return undefined;
    if (compareResourceVersions(resourceVersion, now) > 0) return undefined;
    if (!this.#log.isOnTheWay(resourceVersion, oldestState)) return undefined;
    if (this.#log.mayLackEvents(resourceVersion)) return undefined;
    const first = this.#log.firstAfter(resourceVersion);
    const next = entries.at(first - tail);
    if (next !== undefined && monotonicNow(this.#clock) - next.atMs >= PAST_MS) return undefined;
    const gapAfter = next?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    return first;
  }

  #changedIn(first: number, end: number): Map<string, Held<T> | undefined> {
    const { tail, entries } = this.#log.window;
    const before = new Map<string, Held<T> | undefined>();
    for (let i = first; i < end; i++) {
      const entry = entries.at(i - tail);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    return before;
  }

  /** About how many units of a `Pacer` a state at a resourceVersion takes. */
  unitsOf(resourceVersion: string): number {
    return ENTRY_UNITS * (this.#log.head - this.#log.firstAfter(resourceVersion));
  }

  #snapshotOf(keys: readonly string[], resourceVersion: string, answers?: FieldRequirement): Snapshot<T> {
    const objects = keys.map((key) => this.#store.getByKey(key)!);
    return {
      resourceVersion,
      length: keys.length,
      key: (index) => keys[index],
      object: (index) => objects[index],
      answers,
    };
  }

  #present(): Blocks<Held<T>> {
    const { changedKeys } = this.#log;
    const valueOf = (key: string) => this.#store.getByKey(key);
    if (this.#blocks === undefined) this.#blocks = blocksOf(this.#store.listKeys().sort(), valueOf);
    else if (changedKeys.size > 0) this.#blocks = withChanges(this.#blocks, changedKeys, valueOf);
    changedKeys.clear();
    return this.#blocks;
  }

  /** Keeps a state as the latest one, and those before it that states may still be rolled back from. */
  #keep(latest: KeptState<T> | undefined): void {
    if (latest === undefined) return;
    const { sequence } = latest;
    const others = this.#kept.filter((state) =>
      state.sequence < sequence && state.sequence >= this.#log.window.tail
    );
    this.#kept = [latest, ...others.slice(0, KEPT_STATES - 1)];
  }
}

// The number of past states that are kept; each keeps the objects that have changed since.
const KEPT_STATES = 8;
// As kube-apiserver's --etcd-compaction-interval:
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/
const PAST_MS = 300_000;
// The cost of noting an entry, sorting its key and finding its place.
const ENTRY_UNITS = 50;

function snapshotOf<T>(blocks: Blocks<Held<T>>, resourceVersion: string): Snapshot<T> {
  const { key, value: object } = readerOf(blocks);
  return { resourceVersion, length: blocks.length, key, object };
}

/** Values in the order of their keys. Never changes. */
export interface Block<V> {
  readonly keys: readonly string[];
  readonly values: readonly V[];
}

/** Blocks with all values. Never changes; copies with changes share the blocks in which nothing differs. */
export interface Blocks<V> {
  readonly length: number;
  readonly blocks: readonly Block<V>[];
  /** The index of the first value of each block. */
  readonly starts: readonly number[];
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

/** A copy with new values of some keys; `undefined` removes a key. */
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
    if (keys !== undefined) add(result, changedBlock(block, keys, valueOf));
    else if (i < blocks.length) result.push(block);
  }
  return joined(result);
}

export const NO_BLOCKS: Blocks<never> = { length: 0, blocks: [], starts: [] };

/** The index of the first key from a bound on. */
export function firstIn({ blocks, starts }: Blocks<unknown>, bound: string): number {
  const place = firstIndex(blocks.length, (i) => blocks[i].keys[0] > bound) - 1;
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

/** Reads by index, fast where reads follow each other: a reader of its own for each walk. */
export function readerOf<V>(
  { blocks, starts, length }: Blocks<V>,
): { readonly key: (index: number) => string; readonly value: (index: number) => V } {
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

/** Adds a block: a long one as several, a short one to a short last block. */
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
