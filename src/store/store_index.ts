import type { KeyFunc } from "../meta/object.ts";
import { atOnce, CacheError } from "../util/errors.ts";
import { IndexerConflictError, IndexFuncError, IndexNotFoundError } from "./errors.ts";
import { type Entry, IndexBucket, NOWHERE, type Place, type Places } from "./index_bucket.ts";
import type { Indexers, IndexFunc, IndexValues } from "./index_func.ts";

interface Index<T> {
  readonly name: string;
  readonly indexFunc: IndexFunc<T>;
  /** Never holds an empty bucket: a value without objects is removed. */
  readonly buckets: Map<string, IndexBucket<T>>;
  /** The buckets of the last entry that has several values. */
  lastList: readonly IndexBucket<T>[];
}

/** The values of one object in every index, in the order of the indices. */
export type Values = readonly (readonly string[])[];

/**
 * Named indices over entries. Values are computed before anything is changed, so that an index function that
 * throws leaves store and indices as they were.
 */
export class StoreIndex<T> {
  readonly #indices: Index<T>[] = [];

  constructor(indexers: Indexers<T>) {
    for (const [name, indexFunc] of Object.entries(indexers)) this.#addEmpty(name, indexFunc);
  }

  get size(): number {
    return this.#indices.length;
  }

  names(): string[] {
    return this.#indices.map((index) => index.name);
  }

  /** The index functions by name: a new object. */
  indexers(): Record<string, IndexFunc<T>> {
    return Object.fromEntries(this.#indices.map((index) => [index.name, index.indexFunc]));
  }

  /** A copy without entries: the same indices in the same order, and more behind them. */
  extendedCopy(indexers: Indexers<T>): StoreIndex<T> {
    this.#refuseTaken(indexers);
    const copy = new StoreIndex<T>({});
    for (const { name, indexFunc } of this.#indices) copy.#addEmpty(name, indexFunc);
    for (const [name, indexFunc] of Object.entries(indexers)) copy.#addEmpty(name, indexFunc);
    return copy;
  }

  /** Adds indices over entries that are there already. */
  add(indexers: Indexers<T>, entries: ReadonlyMap<string, Entry<T>>): void {
    this.#refuseTaken(indexers);
    const added = new StoreIndex(indexers);
    const places: Places<T>[] = [];
    for (const entry of entries.values()) {
      places.push(added.#enter(entry, added.valuesOf(entry.key, entry.object, "addIndexers")));
    }
    let i = 0;
    for (const entry of entries.values()) entry.places = compact(entry.places.concat(places[i++]));
    for (const index of added.#indices) this.#indices.push(index);
  }

  /** The values of an object in every index. */
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

  /**
   * The values that an entry is under in every index: what {@linkcode StoreIndex.valuesOf} gave for its
   * object.
   */
  valuesAt(entry: Entry<T>): Values {
    return entry.places.map((place) =>
      place instanceof IndexBucket ? [place.value] : place.map((bucket) => bucket.value)
    );
  }

  /** Puts an entry that is in no index under its values. */
  insert(entry: Entry<T>, values: Values): void {
    entry.places = this.#enter(entry, values);
  }

  remove(entry: Entry<T>): void {
    const { places } = entry;
    for (let i = 0; i < places.length; i++) {
      const place = places[i];
      if (place instanceof IndexBucket) this.#leave(i, place, entry);
      else for (const bucket of place) this.#leave(i, bucket, entry);
    }
    entry.places = NOWHERE;
  }

  /** Moves an entry to its new values: O(values), where those that stay cost only that they are compared. */
  move(entry: Entry<T>, values: Values): void {
    const before = entry.places;
    let after: Place<T>[] | undefined;
    for (let i = 0; i < values.length; i++) {
      if (isAt(before[i], values[i])) continue;
      after ??= before.slice();
      after[i] = this.#moved(i, before[i], values[i], entry);
    }
    if (after !== undefined) entry.places = compact(after);
  }

  /** The entries under a value; `undefined` where there are none. */
  bucket(indexName: string, value: string): IndexBucket<T> | undefined {
    return this.#find(indexName).buckets.get(value);
  }

  /** The entries that share a value with the object, each once. */
  entriesLike(indexName: string, object: T): readonly Entry<T>[] {
    const { indexFunc, buckets } = this.#find(indexName);
    const values = checkedValues(indexFunc(object));
    if (values.length === 1) return buckets.get(values[0])?.list() ?? [];
    const found = new Set<Entry<T>>();
    for (const value of values) {
      for (const entry of buckets.get(value)?.list() ?? []) found.add(entry);
    }
    return [...found];
  }

  /**
   * The entries that are under all of these values: walks the smallest bucket, and asks the others for each
   * entry.
   */
  intersection(values: IndexValues): readonly Entry<T>[] | undefined {
    const buckets: IndexBucket<T>[] = [];
    let isEmpty = false;
    for (const [name, given] of Object.entries(values)) {
      const index = this.#find(name);
      for (const value of Array.isArray(given) ? given : [given]) {
        if (typeof value !== "string") {
          throw new TypeError(
            `Cannot look in index ${JSON.stringify(name)} for a value of type ${typeof value}: pass a string`,
          );
        }
        const bucket = index.buckets.get(value);
        if (bucket === undefined) isEmpty = true;
        else buckets.push(bucket);
      }
    }
    if (isEmpty) return [];
    if (buckets.length === 0) return undefined;
    buckets.sort((a, b) => a.size - b.size);
    const smallest = buckets[0].list();
    if (buckets.length === 1) return smallest;
    return smallest.filter((entry) => {
      for (let i = 1; i < buckets.length; i++) if (!buckets[i].has(entry)) return false;
      return true;
    });
  }

  /** The values under which an index has objects; none for an unknown index. */
  values(indexName: string): string[] {
    const index = this.#indices.find((index) => index.name === indexName);
    return index === undefined ? [] : [...index.buckets.keys()];
  }

  /** How many entries there are under each value: a new map. */
  counts(indexName: string): Map<string, number> {
    const counts = new Map<string, number>();
    for (const bucket of this.#find(indexName).buckets.values()) counts.set(bucket.value, bucket.size);
    return counts;
  }

  #addEmpty(name: string, indexFunc: IndexFunc<T>): void {
    this.#indices.push({ name, indexFunc, buckets: new Map(), lastList: NOWHERE });
  }

  #refuseTaken(indexers: Indexers<T>): void {
    const taken = Object.keys(indexers).filter((name) => this.#indices.some((index) => index.name === name));
    if (taken.length > 0) throw new IndexerConflictError(taken.sort());
  }

  #find(indexName: string): Index<T> {
    for (const index of this.#indices) if (index.name === indexName) return index;
    throw new IndexNotFoundError(indexName, this.names());
  }

  #enter(entry: Entry<T>, values: Values): Places<T> {
    if (values.length === 0) return NOWHERE;
    const places: Place<T>[] = new Array(values.length);
    for (let i = 0; i < places.length; i++) places[i] = this.#entered(i, values[i], entry);
    return compact(places);
  }

  #entered(i: number, values: readonly string[], entry: Entry<T>): Place<T> {
    if (values.length === 0) return NOWHERE;
    if (values.length === 1) {
      const bucket = this.#bucketFor(i, values[0]);
      bucket.add(entry);
      return bucket;
    }
    const list: IndexBucket<T>[] = new Array(values.length);
    let length = 0;
    for (let j = 0; j < values.length; j++) {
      const bucket = this.#bucketFor(i, values[j]);
      if (bucket.add(entry)) list[length++] = bucket;
    }
    list.length = length;
    return length === 1 ? list[0] : this.#shared(i, list);
  }

  /** Moves an entry within an index, to values that are not where it is. */
  #moved(i: number, old: Place<T>, values: readonly string[], entry: Entry<T>): Place<T> {
    if (values.length === 1) {
      const bucket = this.#bucketFor(i, values[0]);
      bucket.add(entry);
      if (old instanceof IndexBucket) this.#leave(i, old, entry);
      else for (const other of old) if (other !== bucket) this.#leave(i, other, entry);
      return bucket;
    }
    const before = old instanceof IndexBucket ? [old] : old;
    const after = new Set<IndexBucket<T>>();
    for (let j = 0; j < values.length; j++) {
      // A change in a long list mostly concerns one value: the others are where they were.
      const isThere = j < before.length && before[j].value === values[j];
      const bucket = isThere ? before[j] : this.#bucketFor(i, values[j]);
      if (!isThere) bucket.add(entry);
      after.add(bucket);
    }
    for (const bucket of before) if (!after.has(bucket)) this.#leave(i, bucket, entry);
    return this.#shared(i, [...after]);
  }

  /**
   * The list, or the last one if it is the same. Objects that were made alike come one after the other in a
   * list, and carry the same labels: lists of their own would be the better part of what an index by labels
   * costs.
   */
  #shared(i: number, list: readonly IndexBucket<T>[]): readonly IndexBucket<T>[] {
    const index = this.#indices[i];
    const { lastList } = index;
    if (lastList.length !== list.length) return index.lastList = list;
    for (let j = 0; j < list.length; j++) if (lastList[j] !== list[j]) return index.lastList = list;
    return lastList;
  }

  #bucketFor(i: number, value: string): IndexBucket<T> {
    const { buckets } = this.#indices[i];
    let bucket = buckets.get(value);
    if (bucket === undefined) buckets.set(value, bucket = new IndexBucket(value));
    return bucket;
  }

  #leave(i: number, bucket: IndexBucket<T>, entry: Entry<T>): void {
    bucket.delete(entry);
    if (bucket.size === 0) this.#indices[i].buckets.delete(bucket.value);
  }
}

const NO_VALUES: Values = [];

/** Whether an entry that is at a place has these values. */
function isAt<T>(place: Place<T>, values: readonly string[]): boolean {
  if (place instanceof IndexBucket) return values.length === 1 && place.value === values[0];
  if (place.length !== values.length) return false;
  for (let i = 0; i < place.length; i++) if (place[i].value !== values[i]) return false;
  return true;
}

/**
 * The places themselves, or a list that other entries have too: one index costs an entry no list of its own.
 */
function compact<T>(places: Places<T>): Places<T> {
  return places.length === 1 && places[0] instanceof IndexBucket ? places[0].alone : places;
}

/**
 * Checks the result of an index function.
 * @throws {TypeError} The result is no array of strings.
 */
export function checkedValues(values: readonly string[]): readonly string[] {
  if (!Array.isArray(values)) throw noValues(values, `not ${typeof values}`);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== "string") throw noValues(value, `but value ${i} is of type ${typeof value}`);
  }
  return values;
}

function noValues(value: unknown, text: string): TypeError {
  atOnce(value);
  return new TypeError(`an index function must return an array of strings, ${text}`);
}

/** An index function that must give exactly one value gave none, or several. */
export class IndexKeyError extends CacheError {
  /** Makes the error for the values that the index function returned. */
  constructor(values: readonly string[]) {
    const isEmpty = values.length === 0;
    super(
      isEmpty ? "EmptyIndexKeys" : "TooManyKeys",
      isEmpty ? "unexpected empty indexKeys" : `too many keys: ${values.join(", ")}`,
    );
  }
}

/**
 * Makes a key function out of an index function that gives exactly one value.
 *
 * Mirrors client-go's `IndexFuncToKeyFuncAdapter`; the key function throws an {@linkcode IndexKeyError} where
 * the index function gives no value or several.
 */
export function indexFuncToKeyFunc<T>(indexFunc: IndexFunc<T>): KeyFunc {
  return (value) => {
    const values = checkedValues(indexFunc(value as T));
    if (values.length !== 1) throw new IndexKeyError(values);
    return values[0];
  };
}
