/**
 * The content of a store in the order of its keys.
 * @module
 */

import type { FieldRequirement } from "../../meta/fields.ts";
import { candidateKeysOf, type CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import type { Indexer } from "../../store/indexer.ts";
import type { ServedStore } from "../upstream/served_informer.ts";

/** A value of an index. */
export interface IndexValue {
  readonly index: string;
  readonly value: string;
}

/** Objects in the order of their keys, as they are at one resourceVersion. Never changes. */
export interface Snapshot<T> {
  readonly resourceVersion: string;
  readonly length: number;
  /** The key at an index; they ascend, byte by byte. */
  key(index: number): string;
  /** The object at an index, as the store holds it. */
  object(index: number): Held<T>;
  /** The requirement of a query that all objects fulfil, if it was answered by an index. */
  readonly answers?: FieldRequirement | undefined;
  /** What takes the memory; the same for snapshots that share it. */
  readonly shared: object;
}

/** The index of the first key from a bound on. */
export function firstFrom({ length, key }: Pick<Snapshot<unknown>, "length" | "key">, bound: string): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (key(middle) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A snapshot of a list of keys, and the object of each. */
function snapshotOf<T>(
  resourceVersion: string,
  keys: readonly string[],
  objects: readonly Held<T>[],
  answers?: FieldRequirement,
): Snapshot<T> {
  return {
    resourceVersion,
    length: keys.length,
    key: (index) => keys[index],
    object: (index) => objects[index],
    answers,
    shared: objects,
  };
}

/**
 * Keeps the order of a store's keys, so that a list does not sort them again: a change costs a note, the next snapshot a
 * walk over all keys.
 */
export class OrderedContent<T> {
  readonly #store: ServedStore<Held<T>>;
  #keys: readonly string[] | undefined;
  readonly #added = new Set<string>();
  readonly #deleted = new Set<string>();

  /** @param store With its objects in their held form. */
  constructor(store: ServedStore<Held<T>>) {
    this.#store = store;
  }

  /** A key was added. */
  added(key: string): void {
    if (this.#keys === undefined) return;
    if (!this.#deleted.delete(key)) this.#added.add(key);
  }

  /** A key was deleted. */
  deleted(key: string): void {
    if (this.#keys === undefined) return;
    if (!this.#added.delete(key)) this.#deleted.add(key);
  }

  /** The content now. */
  snapshot(resourceVersion: string): Snapshot<T> {
    return this.#snapshotOf(resourceVersion, this.#sortedKeys());
  }

  /**
   * A part of the content now that includes all matches of a query; `undefined` if no index has it. Costs the size of
   * that part.
   */
  candidates(resourceVersion: string, query: CandidateQuery): Snapshot<T> | undefined {
    const indexer = this.indexer();
    const found = indexer && candidateKeysOf(indexer, query);
    return found && this.#snapshotOf(resourceVersion, found.keys, found.answers);
  }

  /** The objects under a value of an index of the store, which must have it. Costs the size of that part. */
  indexed(resourceVersion: string, { index, value }: IndexValue): Snapshot<T> {
    return this.#snapshotOf(resourceVersion, this.indexer()?.indexKeys(index, value) ?? []);
  }

  /** The store, if it has indices. */
  indexer(): Indexer<Held<T>> | undefined {
    const store = this.#store as ServedStore<Held<T>> & Partial<Indexer<Held<T>>>;
    const isIndexed = store.indexKeys !== undefined && store.countByIndex !== undefined &&
      store.indexValueCounts !== undefined && store.getIndexers !== undefined;
    return isIndexed ? store as Indexer<Held<T>> : undefined;
  }

  #snapshotOf(resourceVersion: string, keys: readonly string[], answers?: FieldRequirement): Snapshot<T> {
    const objects: Held<T>[] = [];
    const present: string[] = [];
    for (const key of keys) {
      const object = this.#store.getByKey(key);
      if (object === undefined) continue;
      present.push(key);
      objects.push(object);
    }
    return snapshotOf(resourceVersion, present, objects, answers);
  }

  #sortedKeys(): readonly string[] {
    const kept = this.#keys;
    if (kept === undefined) {
      this.#keys = this.#store.listKeys().sort();
    } else if (this.#added.size > 0 || this.#deleted.size > 0) {
      this.#keys = merge(kept, { added: Array.from(this.#added).sort(), deleted: this.#deleted });
    }
    this.#added.clear();
    this.#deleted.clear();
    return this.#keys ?? [];
  }
}

/**
 * A snapshot of the content as it was before some changes. It refers to the present one, and has only what differs: in
 * memory and time it costs as much as there are changes.
 *
 * @param before The objects of all keys that have changed since; `undefined` where there was none.
 */
export function rolledBack<T>(
  present: Snapshot<T>,
  resourceVersion: string,
  before: ReadonlyMap<string, Held<T> | undefined>,
): Snapshot<T> {
  /** Ranges that follow each other: of the present snapshot from an index on, or one object of before. */
  const ranges: (readonly [start: number, from: number, key?: string])[] = [];
  let length = 0;
  let next = 0;
  const takeUntil = (index: number) => {
    if (index > next) ranges.push([length, next]);
    length += index - next;
    next = index;
  };
  for (const key of Array.from(before.keys()).sort()) {
    const index = firstFrom(present, key);
    takeUntil(index);
    if (before.get(key) !== undefined) ranges.push([length++, index, key]);
    if (index < present.length && present.key(index) === key) next = index + 1;
  }
  takeUntil(present.length);
  let current = 0;
  const rangeOf = (index: number) => {
    const isIn = (range: number) => ranges[range][0] <= index && index < (ranges[range + 1]?.[0] ?? length);
    // Most reads continue from the last one.
    if (!isIn(current) && !(current + 1 < ranges.length && isIn(++current))) {
      let high = ranges.length - 1;
      for (current = 0; current < high;) {
        const middle = (current + high + 1) >>> 1;
        if (ranges[middle][0] <= index) current = middle;
        else high = middle - 1;
      }
    }
    return ranges[current];
  };
  return {
    resourceVersion,
    length,
    key(index) {
      const [start, from, key] = rangeOf(index);
      return key ?? present.key(from + index - start);
    },
    object(index) {
      const [start, from, key] = rangeOf(index);
      return key === undefined ? present.object(from + index - start) : before.get(key) as Held<T>;
    },
    shared: present.shared,
  };
}

function merge(
  keys: readonly string[],
  change: { readonly added: readonly string[]; readonly deleted: ReadonlySet<string> },
): string[] {
  const { added, deleted } = change;
  const result: string[] = [];
  let next = 0;
  for (const key of keys) {
    while (next < added.length && added[next] < key) result.push(added[next++]);
    if (added[next] === key) next++;
    if (!deleted.has(key)) result.push(key);
  }
  while (next < added.length) result.push(added[next++]);
  return result;
}
