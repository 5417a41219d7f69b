/** A queue, values that were used last, a heap, and binary search. */

// Freed slots are released in one slice once there are this many and they are more than half of the array.
const COMPACT_AT = 1024;

/** A first-in, first-out buffer: unlike `Array.prototype.shift` it moves an index, not every element. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Removes and returns the first; `undefined` when empty. */
  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined; // so that it can be garbage-collected
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** The element at `index` (0 = first), or `undefined`. */
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  /** The elements from first to last, with those that are pushed meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T;
  }
}

/**
 * The values that were set last: those that weigh `most` together, and up to as much of those before them.
 *
 * Two maps take turns, and none is deleted from. A map from which keys are deleted makes new tables, and once
 * a table has become old, V8 keeps all that it held, and all tables after it, up to a collection of the whole
 * heap.
 */
export class Recent<K, V> {
  readonly #most: number;
  #latest = new Map<K, V>();
  #before = this.#latest;
  /** The weight of the latest map. */
  #weight = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: K): V | undefined {
    return this.#latest.get(key) ?? this.#before.get(key);
  }

  /** Sets the value of a key; a value heavier than the whole is not kept. */
  set(key: K, value: V, weight = 1): void {
    if (weight > this.#most) return;
    if (!this.#latest.has(key) && (this.#weight += weight) > this.#most) {
      this.#before = this.#latest;
      this.#latest = new Map();
      this.#weight = weight;
    }
    this.#latest.set(key, value);
  }

  clear(): void {
    this.#latest = this.#before = new Map();
    this.#weight = 0;
  }
}

interface Entry<K, T> {
  readonly key: K;
  item: T;
  index: number;
}

/**
 * Items by key, with access to the least one. Setting, removing and popping cost the logarithm of the size;
 * finding is constant. Among equal items any may come first.
 */
export class KeyedHeap<K, T> {
  readonly #less: (a: T, b: T) => boolean;
  readonly #entries = new Map<K, Entry<K, T>>();
  readonly #heap: Entry<K, T>[] = [];

  /** @param less Whether `a` must come out before `b`. */
  constructor(less: (a: T, b: T) => boolean) {
    this.#less = less;
  }

  get size(): number {
    return this.#heap.length;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  get(key: K): T | undefined {
    return this.#entries.get(key)?.item;
  }

  /** Adds an item, or replaces the one with its key and moves it to its new place. */
  set(key: K, item: T): void {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { key, item, index: this.#heap.length };
      this.#entries.set(key, entry);
    } else {
      entry.item = item;
    }
    this.#fix(entry);
  }

  /** Removes the item with this key; `false` if there is none. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#remove(entry);
    return entry !== undefined;
  }

  peek(): T | undefined {
    return this.#heap[0]?.item;
  }

  pop(): T | undefined {
    const least = this.#heap[0];
    if (least !== undefined) this.#remove(least);
    return least?.item;
  }

  clear(): void {
    this.#entries.clear();
    this.#heap.length = 0;
  }

  /** Every item with its key, in no order. */
  entries(): IterableIterator<{ readonly key: K; readonly item: T }> {
    return this.#entries.values();
  }

  #remove(entry: Entry<K, T>): void {
    this.#entries.delete(entry.key);
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    last.index = entry.index;
    this.#fix(last);
  }

  /** Moves an entry up, then down, to its place. */
  #fix(entry: Entry<K, T>): void {
    let { index } = entry;
    for (; index > 0; index = (index - 1) >> 1) {
      const parent = this.#heap[(index - 1) >> 1];
      if (!this.#less(entry.item, parent.item)) break;
      this.#place(parent, index);
    }
    while (true) {
      let childIndex = 2 * index + 1;
      if (childIndex >= this.#heap.length) break;
      const right = this.#heap[childIndex + 1];
      if (right !== undefined && this.#less(right.item, this.#heap[childIndex].item)) childIndex++;
      const child = this.#heap[childIndex];
      if (!this.#less(child.item, entry.item)) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(entry, index);
  }

  #place(entry: Entry<K, T>, index: number): void {
    this.#heap[index] = entry;
    entry.index = index;
  }
}

/** The index of the first of the ascending `keys` not less than `bound`; their number if there is none. */
export function lowerBound<K extends string | number>(keys: readonly K[], bound: K): number {
  return firstIndex(keys.length, (index) => keys[index] >= bound);
}

/** The first index from `start` on at which something is so, as it is from there on; `end` for none. */
export function firstIndex(end: number, isSo: (index: number) => boolean, start: number = 0): number {
  let low = start;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isSo(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The value of a key in a map; if there is none, sets and returns what `make` makes. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}
