/**
 * The indices of a store.
 * @module
 */

import { IndexerConflictError, IndexFuncError, IndexNotFoundError } from "./errors.ts";
import type { Indexers, IndexFunc } from "./index_func.ts";

/**
 * A stored object and its key. There is one entry per object, shared by the store and all its indices, so that an
 * update that moves no index value touches nothing but the entry.
 */
export interface Entry<T> {
  readonly key: string;
  object: T;
}

interface Index<T> {
  readonly name: string;
  readonly indexFunc: IndexFunc<T>;
  /** Never holds an empty set: a value without objects is removed. */
  readonly entriesByValue: Map<string, Set<Entry<T>>>;
}

/** The values of one object in every index, in the order of the indices. */
export type Values = readonly (readonly string[])[];

/**
 * Named indices over entries. Values are computed before anything is changed, so that an index function that throws
 * leaves store and indices as they were.
 */
export class StoreIndex<T> {
  readonly #indices: Index<T>[] = [];

  /** Makes indices without entries. */
  constructor(indexers: Indexers<T>) {
    for (const [name, indexFunc] of Object.entries(indexers)) {
      this.#indices.push({ name, indexFunc, entriesByValue: new Map() });
    }
  }

  /** The names of the indices. */
  names(): string[] {
    return this.#indices.map((index) => index.name);
  }

  /** The index functions by name: a new object. */
  indexers(): Record<string, IndexFunc<T>> {
    return Object.fromEntries(this.#indices.map((index) => [index.name, index.indexFunc]));
  }

  /** The same indices without entries. */
  emptyCopy(): StoreIndex<T> {
    return new StoreIndex(this.indexers());
  }

  /**
   * Adds indices over entries that are there already.
   *
   * @throws {IndexerConflictError} A name is taken; nothing was added.
   * @throws {IndexFuncError} An index function threw; nothing was added.
   */
  add(indexers: Indexers<T>, entries: Iterable<Entry<T>>): void {
    const taken = Object.keys(indexers).filter((name) => this.#indices.some((index) => index.name === name));
    if (taken.length > 0) throw new IndexerConflictError(taken.sort());
    const added = new StoreIndex(indexers);
    for (const entry of entries) added.insert(entry, added.valuesOf(entry.key, entry.object, "addIndexers"));
    for (const index of added.#indices) this.#indices.push(index);
  }

  /**
   * The values of an object in every index.
   *
   * @throws {IndexFuncError} An index function threw, or returned something else than an array of strings.
   */
  valuesOf(key: string, object: T, operation: string): Values {
    if (this.#indices.length === 0) return NO_VALUES;
    const values: (readonly string[])[] = new Array(this.#indices.length);
    for (let i = 0; i < values.length; i++) {
      const { name, indexFunc } = this.#indices[i];
      try {
        values[i] = checkedValues(indexFunc(object));
      } catch (error) {
        throw new IndexFuncError(name, key, operation, error);
      }
    }
    return values;
  }

  /** Puts an entry under its values. */
  insert(entry: Entry<T>, values: Values): void {
    for (let i = 0; i < values.length; i++) {
      for (const value of values[i]) this.#put(i, value, entry);
    }
  }

  /** Takes an entry from under its values. */
  remove(entry: Entry<T>, values: Values): void {
    for (let i = 0; i < values.length; i++) {
      for (const value of values[i]) this.#take(i, value, entry);
    }
  }

  /** Moves an entry; costs nothing for values that stay. */
  move(entry: Entry<T>, oldValues: Values, newValues: Values): void {
    for (let i = 0; i < newValues.length; i++) {
      const before = oldValues[i];
      const after = newValues[i];
      if (before.length === 1 && after.length === 1 && before[0] === after[0]) continue;
      for (const value of before) if (!after.includes(value)) this.#take(i, value, entry);
      for (const value of after) this.#put(i, value, entry);
    }
  }

  /**
   * The entries under a value.
   *
   * @throws {IndexNotFoundError} There is no such index.
   */
  entries(indexName: string, value: string): ReadonlySet<Entry<T>> {
    return this.#find(indexName).entriesByValue.get(value) ?? (NO_ENTRIES as ReadonlySet<Entry<T>>);
  }

  /**
   * The entries that share a value with the object, each once.
   *
   * @throws {IndexNotFoundError} There is no such index.
   * @throws What the index function throws.
   */
  entriesLike(indexName: string, object: T): ReadonlySet<Entry<T>> {
    const { indexFunc, entriesByValue } = this.#find(indexName);
    const found = new Set<Entry<T>>();
    for (const value of checkedValues(indexFunc(object))) {
      for (const entry of entriesByValue.get(value) ?? []) found.add(entry);
    }
    return found;
  }

  /** The values under which an index has objects; none for an unknown index. */
  values(indexName: string): string[] {
    const index = this.#indices.find((index) => index.name === indexName);
    return index === undefined ? [] : [...index.entriesByValue.keys()];
  }

  #find(indexName: string): Index<T> {
    for (const index of this.#indices) if (index.name === indexName) return index;
    throw new IndexNotFoundError(indexName, this.names());
  }

  #put(i: number, value: string, entry: Entry<T>): void {
    const { entriesByValue } = this.#indices[i];
    const entries = entriesByValue.get(value);
    if (entries === undefined) entriesByValue.set(value, new Set([entry]));
    else entries.add(entry);
  }

  #take(i: number, value: string, entry: Entry<T>): void {
    const { entriesByValue } = this.#indices[i];
    const entries = entriesByValue.get(value);
    if (entries === undefined) return;
    entries.delete(entry);
    if (entries.size === 0) entriesByValue.delete(value);
  }
}

const NO_VALUES: Values = [];
const NO_ENTRIES: ReadonlySet<never> = new Set<never>();

function checkedValues(values: readonly string[]): readonly string[] {
  if (!Array.isArray(values)) {
    throw new TypeError(`an index function must return an array of strings, not ${typeof values}`);
  }
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] !== "string") {
      throw new TypeError(
        `an index function must return strings, but value ${i} is of type ${typeof values[i]}`,
      );
    }
  }
  return values;
}
