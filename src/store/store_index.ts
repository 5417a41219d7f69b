/** The indices of a store, and what is learnt of their functions. */

import type { KeyFunc } from "../meta/object.ts";
import type { FieldTexts, TextFields } from "../text/field_tree.ts";
import { atOnce } from "../util/errors.ts";
import { isSameJson } from "../util/json.ts";
import { IndexerConflictError, IndexFuncError, IndexKeyError, IndexNotFoundError } from "./errors.ts";
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

/**
 * The values of one index function for objects that are text, without an object: most functions read a field
 * or two, such as `spec.nodeName`, and give the same values for all objects that have the same there.
 *
 * After some hundred objects the function is called with one that notes what is read of it. If that was
 * fields with strings, they are read in the walk over each text from then on, and the values are known for
 * each combination that the function was once called with, and looked at so. A function that does more than
 * to read, or gives other values then, is called with every object; so is one whose fields are mostly new.
 */
export class LearntIndex {
  readonly #indexFunc: IndexFunc<never>;
  readonly #fields: TextFields;
  /** The fields that it reads, as JSON texts of their paths, each with its place. */
  readonly #places = new Map<string, number>();
  /** The places, in the order in which they were added. */
  #order: readonly number[] = [];
  readonly #known = new Map<string, readonly string[]>();
  #seen = 0;
  #hits = 0;
  #misses = 0;
  #isOver = false;

  constructor(indexFunc: IndexFunc<never>, fields: TextFields) {
    this.#indexFunc = indexFunc;
    this.#fields = fields;
  }

  /** The values for an object with these fields, if they are known. */
  values(fields: FieldTexts | undefined): readonly string[] | undefined {
    const combination = fields && this.#combinationOf(fields);
    if (combination === undefined) return undefined;
    const values = this.#known.get(combination);
    if (values !== undefined) this.#hits++;
    return values;
  }

  /** Whether to look at how it reads the object that was held just now: once, when some have come. */
  isCurious(): boolean {
    return this.#order.length === 0 && !this.#isOver && ++this.#seen >= LEARNS_AFTER;
  }

  /** Learns from an object with these fields, of which the values were not known. */
  learn(
    opened: { read<R>(reader: (object: object) => R): R },
    fields: FieldTexts | undefined,
    values?: readonly string[],
  ): void {
    const combination = fields && this.#combinationOf(fields);
    if (combination === undefined && !this.isCurious()) return;
    const trace = new Trace();
    let traced: unknown;
    try {
      traced = opened.read((object) => checkedValues(this.#indexFunc(trace.of(object, []) as never)));
    } catch {
      trace.isReading = false;
    }
    trace.isOver = true;
    if (!trace.isReading || values !== undefined && !isSameJson(values, traced)) return this.#end();
    if (this.#addPaths(trace)) return;
    if (combination === undefined || !Array.isArray(values)) return;
    this.#misses++;
    if (this.#isHopeless()) return this.#end();
    if (!this.#hasRead(trace, fields!)) return;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(combination, [...values]);
  }

  /** Adds the fields that are read for the first time; whether there were some. */
  #addPaths({ leaves }: Trace): boolean {
    const added = [...leaves.keys()].filter((path) => !this.#places.has(path));
    if (added.length === 0) return false;
    if (this.#places.size + added.length > MOST_PATHS) this.#end();
    else for (const path of added) this.#places.set(path, this.#fields.addText(JSON.parse(path)));
    this.#order = [...this.#places.values()];
    this.#known.clear();
    return true;
  }

  /** The values of the fields as one key; `undefined` if one is no string, or was not read. */
  #combinationOf(fields: FieldTexts): string | undefined {
    const places = this.#order;
    if (places.length === 1) return textAt(fields, places[0]);
    if (places.length === 0) return undefined;
    let combination = "";
    for (const place of places) {
      const text = textAt(fields, place);
      if (text === undefined) return undefined;
      combination += `${text.length}:${text}`;
    }
    return combination;
  }

  /** Whether nothing but strings was read, which the text has in these fields, too. */
  #hasRead(trace: Trace, fields: FieldTexts): boolean {
    for (const [path, value] of trace.leaves) {
      if (typeof value !== "string" || value !== textAt(fields, this.#places.get(path)!)) return false;
    }
    // A string in an object shows that the object is there.
    const paths = [...trace.leaves.keys()];
    return trace.objects.every((object) => paths.some((path) => path.startsWith(`${object.slice(0, -1)},`)));
  }

  #isHopeless(): boolean {
    return this.#misses >= FEW && this.#hits * 64 < this.#misses ||
      this.#misses >= MANY && this.#hits < this.#misses;
  }

  #end(): void {
    this.#isOver = true;
    this.#order = [];
    for (const place of this.#places.values()) this.#fields.remove(place);
    this.#places.clear();
    this.#known.clear();
  }
}

/** After how many objects it is looked at what is read of them: fewer cost little in any way. */
const LEARNS_AFTER = 1024;
/** The most fields that an index function may depend on. */
const MOST_PATHS = 4;
/** The most combinations that are known at a time. */
const MOST_KNOWN = 1 << 16;
/** After how many new combinations some should have come again, and as many as are new. */
const FEW = 1 << 10;
const MANY = 1 << 14;

function textAt(fields: FieldTexts, place: number): string | undefined {
  const values = place < fields.length ? fields[place] : undefined;
  return values?.length === 1 ? values[0] : undefined;
}

/** All that may happen to an object: the traps of a `Proxy` have the names of what `Reflect` has. */
const TRAPS = /* @__PURE__ */ Object.getOwnPropertyNames(
  Reflect,
) as (keyof typeof Reflect & keyof ProxyHandler<object>)[];

/** Notes what an index function reads of an object. */
class Trace {
  /** The values that are no objects, by the JSON texts of their paths. */
  readonly leaves = new Map<string, unknown>();
  /** The paths of the objects. */
  readonly objects: string[] = [];
  /** Whether the function did nothing but read members of objects. */
  isReading = true;
  /** Whether the call is over: an object that the function has kept is then the real one. */
  isOver = false;

  /** An object that notes what is read of it. */
  of(object: object, path: readonly string[]): object {
    const handler: ProxyHandler<object> = {};
    for (const trap of TRAPS) {
      handler[trap] = (...given: unknown[]): never => {
        this.isReading &&= this.isOver;
        if (!this.isOver) throw new TypeError("more than a read");
        // Called without the receiver, which is the proxy.
        return (Reflect[trap] as (...given: unknown[]) => never)(...given.slice(0, 3));
      };
    }
    handler.get = (target, name) => this.isOver ? Reflect.get(target, name) : this.#read(target, name, path);
    return new Proxy(object, handler);
  }

  #read(object: object, name: string | symbol, path: readonly string[]): unknown {
    const value = Reflect.get(object, name);
    const isOwn = Object.hasOwn(object, name);
    if (typeof name === "symbol" || !isOwn && value !== undefined || Array.isArray(value)) {
      this.isReading = false;
      return value;
    }
    const below = [...path, name];
    if (typeof value === "object" && value !== null) {
      this.objects.push(JSON.stringify(below));
      return this.of(value, below);
    }
    this.leaves.set(JSON.stringify(below), value);
    return value;
  }
}
