/**
 * A queue on an array: push and shift in constant time.
 * @module
 */

// Freed slots are released in one slice once there are this many and they are more than half of the array.
const COMPACT_AT = 1024;

/**
 * A first-in, first-out buffer. `Array.prototype.shift` moves every element; this moves an index and releases
 * the freed slots from time to time, so that a long queue costs constant time per element (amortized).
 */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  /** How many elements are in it. */
  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Adds at the end. */
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

  /** Empties it. */
  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  /** From first to last; includes elements that are pushed meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T;
  }
}
