/** The entries of a store, and the sets of entries under index values. */

/**
 * A stored object, its key, and where the indices have it. There is one entry per object, shared by the store
 * and all its indices, so that an update that moves no index value touches nothing but the entry.
 */
export interface Entry<T> {
  readonly key: string;
  object: T;
  /** Written by the indices only. */
  places: Places<T>;
}

/** The place of an entry in one index: under its value, or each of several, or (an empty list) nowhere. */
export type Place<T> = IndexBucket<T> | readonly IndexBucket<T>[];

/** The places of an entry, in the order of the indices. Never changed, only replaced. */
export type Places<T> = readonly Place<T>[];

export function newEntry<T>(key: string, object: T): Entry<T> {
  return { key, object, places: NOWHERE };
}

/** The place of an entry that an index does not have. */
export const NOWHERE: readonly never[] = [];

/**
 * Up to this many entries a bucket is a list only. Most values of a fine-grained index (by owner, by uid)
 * have one or two objects, and a `Set` for each would cost more than the rest of the index.
 */
const MAX_LISTED = 8;

/**
 * The entries under one value. Adding, removing and asking for one entry cost O(1).
 *
 * Lists that were handed out are never changed: writes do not disturb a walk.
 */
export class IndexBucket<T> {
  /** The value of the index. */
  readonly value: string;
  /** The entries; in a large bucket made when they are read, and kept until it changes. */
  #list: readonly Entry<T>[] | undefined = NO_ENTRIES;
  /** The set of a bucket that was large; `undefined` in others. */
  #set: Set<Entry<T>> | undefined = undefined;
  #alone: readonly [IndexBucket<T>] | undefined = undefined;

  constructor(value: string) {
    this.value = value;
  }

  get size(): number {
    return this.#set === undefined ? this.#list!.length : this.#set.size;
  }

  /**
   * A list of this bucket alone, always the same: what all its entries remember where there is no other
   * index.
   */
  get alone(): readonly [IndexBucket<T>] {
    return this.#alone ??= [this];
  }

  has(entry: Entry<T>): boolean {
    return this.#set === undefined ? this.#list!.includes(entry) : this.#set.has(entry);
  }

  /**
   * All entries, in no order that may be relied on; stays as it is when the bucket changes, which then has
   * another.
   */
  list(): readonly Entry<T>[] {
    return this.#list ??= [...this.#set!];
  }

  /** Whether a list is still what the bucket holds. */
  isCurrent(list: readonly Entry<T>[]): boolean {
    return this.#list === list;
  }

  add(entry: Entry<T>): boolean {
    const set = this.#set;
    if (set !== undefined) {
      const { size } = set;
      if (set.add(entry).size === size) return false;
      this.#list = undefined;
      return true;
    }
    const list = this.#list!;
    if (list.includes(entry)) return false;
    if (list.length < MAX_LISTED) {
      this.#list = list.length === 0 ? [entry] : [...list, entry];
    } else {
      this.#set = new Set(list).add(entry);
      this.#list = undefined;
    }
    return true;
  }

  /** Takes an entry out; one that is not here is fine. */
  delete(entry: Entry<T>): void {
    if (this.#set === undefined) this.#list = this.#list!.filter((other) => other !== entry);
    else if (this.#set.delete(entry)) this.#list = undefined;
  }
}

/** Walks the list that a bucket had when the walk began. No generator: those are several times slower. */
export class BucketIterator<T> implements IterableIterator<T> {
  readonly #bucket: IndexBucket<T> | undefined;
  #list: readonly Entry<T>[];
  #position = 0;

  constructor(bucket: IndexBucket<T> | undefined) {
    this.#bucket = bucket;
    this.#list = bucket?.list() ?? [];
  }

  next(): IteratorResult<T, undefined> {
    const bucket = this.#bucket;
    const list = this.#list;
    while (this.#position < list.length) {
      const entry = list[this.#position++];
      if (bucket!.isCurrent(list) || bucket!.has(entry)) return { done: false, value: entry.object };
    }
    return { done: true, value: undefined };
  }

  return(): IteratorResult<T, undefined> {
    this.#list = [];
    return { done: true, value: undefined };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

const NO_ENTRIES: readonly never[] = [];
