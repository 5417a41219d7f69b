/**
 * What a store holds, and the few ways in which that changes.
 * @module
 */

import type { Indexers } from "./index_func.ts";
import { type Entry, newEntry, StoreIndex, type Values } from "./store_index.ts";

/**
 * The entries of a store, their indices, and the resourceVersion that they stand at. Whoever works on it for several
 * turns (a replace, an addition of indices) learns here what others did meanwhile.
 */
export class StoreContent<T> {
  entries: ReadonlyMap<string, Entry<T>>;
  index: StoreIndex<T>;
  resourceVersion = "";
  /** Grows with every change of what is stored, and of how it is indexed. */
  writes = 0;
  /** Grows whenever there are other indices than before. */
  indexChanges = 0;
  /** Each is given the keys of the objects that are written. */
  readonly journals: Set<Set<string>> = new Set();
  /** The same as `entries`. */
  #entries: Map<string, Entry<T>>;

  constructor(indexers: Indexers<T>) {
    this.entries = this.#entries = new Map();
    this.index = new StoreIndex<T>(indexers);
  }

  /** Puts an object in under these values, and returns the one it replaces. */
  put(key: string, object: T, values: Values): T | undefined {
    this.#wrote(key);
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const added = newEntry(key, object);
      this.#entries.set(key, added);
      this.index.insert(added, values);
      return undefined;
    }
    const old = entry.object;
    entry.object = object;
    this.index.move(entry, values);
    return old;
  }

  /** Takes an object out, and returns it. */
  remove(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#wrote(key);
    this.#entries.delete(key);
    this.index.remove(entry);
    return entry.object;
  }

  /** Adds indices over what is stored. */
  addIndexers(indexers: Indexers<T>): void {
    this.index.add(indexers, this.entries);
    this.writes++;
    this.indexChanges++;
  }

  /** Holds other entries from now on, in indices of their own. */
  become(entries: Map<string, Entry<T>>, index: StoreIndex<T>): void {
    if (index.size !== this.index.size) this.indexChanges++;
    this.writes++;
    this.entries = this.#entries = entries;
    this.index = index;
  }

  #wrote(key: string): void {
    this.writes++;
    if (this.journals.size > 0) { for (const journal of this.journals) journal.add(key); }
  }
}
