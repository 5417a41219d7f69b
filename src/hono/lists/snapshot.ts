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
  /** Ascending, byte by byte. */
  readonly keys: readonly string[];
  /** The requirement of a query that all objects fulfil, if it was answered by an index. */
  readonly answers?: FieldRequirement | undefined;
  /** The object of each key, as the store holds it. */
  readonly objects: readonly Held<T>[];
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
    return this.#snapshotOf(this.#sortedKeys(), resourceVersion);
  }

  /**
   * A part of the content now that includes all matches of a query; `undefined` if no index has it. Costs the size of
   * that part.
   */
  candidates(resourceVersion: string, query: CandidateQuery): Snapshot<T> | undefined {
    const indexer = this.indexer();
    const found = indexer && candidateKeysOf(indexer, query);
    return found && { ...this.#snapshotOf(found.keys, resourceVersion), answers: found.answers };
  }

  /** The objects under a value of an index of the store, which must have it. Costs the size of that part. */
  indexed(resourceVersion: string, { index, value }: IndexValue): Snapshot<T> {
    return this.#snapshotOf(this.indexer()?.indexKeys(index, value) ?? [], resourceVersion);
  }

  /** The store, if it has indices. */
  indexer(): Indexer<Held<T>> | undefined {
    const store = this.#store as ServedStore<Held<T>> & Partial<Indexer<Held<T>>>;
    const isIndexed = store.indexKeys !== undefined && store.countByIndex !== undefined &&
      store.indexValueCounts !== undefined && store.getIndexers !== undefined;
    return isIndexed ? store as Indexer<Held<T>> : undefined;
  }

  #snapshotOf(keys: readonly string[], resourceVersion: string): Snapshot<T> {
    const objects: Held<T>[] = [];
    const present: string[] = [];
    for (const key of keys) {
      const object = this.#store.getByKey(key);
      if (object === undefined) continue;
      present.push(key);
      objects.push(object);
    }
    return { resourceVersion, keys: present, objects };
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
 * A snapshot of the content as it was before some changes.
 *
 * @param before The objects of all keys that have changed since; `undefined` where there was none.
 */
export function rolledBack<T>(
  { resourceVersion, keys, objects }: Snapshot<T>,
  before: ReadonlyMap<string, Held<T> | undefined>,
): Snapshot<T> {
  const oldKeys = Array.from(before.keys()).sort();
  const resultKeys: string[] = [];
  const resultObjects: Held<T>[] = [];
  let next = 0;
  const takeOld = (until: string | undefined) => {
    while (next < oldKeys.length && (until === undefined || oldKeys[next] < until)) {
      const object = before.get(oldKeys[next]);
      if (object !== undefined) {
        resultKeys.push(oldKeys[next]);
        resultObjects.push(object);
      }
      next++;
    }
  };
  for (let i = 0; i < keys.length; i++) {
    takeOld(keys[i]);
    // A key that has changed is taken from `before`, right before the key that follows it.
    if (before.has(keys[i])) continue;
    resultKeys.push(keys[i]);
    resultObjects.push(objects[i]);
  }
  takeOld(undefined);
  return { resourceVersion, keys: resultKeys, objects: resultObjects };
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
