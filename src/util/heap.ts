/**
 * A binary heap whose items can be found, moved and removed by key.
 * @module
 */

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

  /** The number of items. */
  get size(): number {
    return this.#heap.length;
  }

  /** Whether there is an item with this key. */
  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** The item with this key. */
  get(key: K): T | undefined {
    return this.#entries.get(key)?.item;
  }

  /** Adds an item, or replaces the one with its key and moves it to its new place. */
  set(key: K, item: T): void {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { key, item, index: this.#heap.length };
      this.#entries.set(key, entry);
      this.#heap.push(entry);
    } else {
      entry.item = item;
    }
    this.#fix(entry);
  }

  /** Removes the item with this key; `false` if there is none. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#remove(entry);
    return true;
  }

  /** The least item; it is not removed. */
  peek(): T | undefined {
    return this.#heap[0]?.item;
  }

  /** Removes and returns the least item. */
  pop(): T | undefined {
    const least = this.#heap[0];
    if (least === undefined) return undefined;
    this.#remove(least);
    return least.item;
  }

  /** Removes everything. */
  clear(): void {
    this.#entries.clear();
    this.#heap.length = 0;
  }

  /** Every key, in no order. */
  keys(): IterableIterator<K> {
    return this.#entries.keys();
  }

  /** Every item, in no order. */
  *values(): IterableIterator<T> {
    for (const entry of this.#heap) yield entry.item;
  }

  #remove(entry: Entry<K, T>): void {
    this.#entries.delete(entry.key);
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    this.#place(last, entry.index);
    this.#fix(last);
  }

  #fix(entry: Entry<K, T>): void {
    this.#up(entry);
    this.#down(entry);
  }

  #up(entry: Entry<K, T>): void {
    let index = entry.index;
    while (index > 0) {
      const parent = this.#heap[(index - 1) >> 1];
      if (!this.#less(entry.item, parent.item)) break;
      this.#place(parent, index);
      index = (index - 1) >> 1;
    }
    this.#place(entry, index);
  }

  #down(entry: Entry<K, T>): void {
    let index = entry.index;
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
