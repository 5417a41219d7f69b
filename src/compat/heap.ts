import { keyOf } from "../meta/object.ts";
import { waitIn } from "../util/deferred.ts";
import { CacheError } from "../util/errors.ts";
import { KeyedHeap } from "../util/collections.ts";

/**
 * Something was added to a closed {@linkcode Heap}, or popped from one that is closed and empty.
 *
 * @example
 * ```ts
 * import { Heap, HeapClosedError } from "@listwatch/cache/compat";
 * const heap = new Heap<number>(String, (a, b) => a < b);
 * heap.close();
 * await heap.pop().catch((error) => console.log(error instanceof HeapClosedError)); // true
 * ```
 */
export class HeapClosedError extends CacheError {
  constructor(operation: string) {
    super("HeapClosed", `Cannot ${operation}: the heap is closed`);
  }
}

/**
 * An object that was to be deleted from a {@linkcode Heap} is not in it.
 *
 * @example
 * ```ts
 * import { Heap, HeapItemNotFoundError } from "@listwatch/cache/compat";
 * try {
 *   new Heap<number>(String, (a, b) => a < b).delete(7);
 * } catch (error) {
 *   if (error instanceof HeapItemNotFoundError) console.log(error.key); // 7
 * }
 * ```
 */
export class HeapItemNotFoundError extends CacheError {
  readonly key: string;

  constructor(key: string) {
    super("NotFound", `Cannot delete ${JSON.stringify(key)} from the heap: object not found`);
    this.key = key;
  }
}

/**
 * A priority queue: objects by key, of which the least is popped first. One object per key; adding one again
 * replaces it and moves it to its new place. Adding, deleting and popping cost the logarithm of the size.
 *
 * Objects are shared, not copied: change one only through {@linkcode Heap.update}, or its place will be
 * wrong. Only {@linkcode Heap.pop} may wait. A call throws a `KeyError` where the key function fails, and one
 * that adds a {@linkcode HeapClosedError} where the heap is closed.
 *
 * Mirrors client-go's `cache.Heap`.
 *
 * @example
 * ```ts
 * import { Heap } from "@listwatch/cache/compat";
 * const heap = new Heap<{ name: string; priority: number }>(
 *   (item) => (item as { name: string }).name,
 *   (a, b) => a.priority < b.priority,
 * );
 * heap.bulkAdd([{ name: "later", priority: 2 }, { name: "first", priority: 1 }]);
 * console.log((await heap.pop()).name, heap.listKeys()); // first ["later"]
 * ```
 */
export class Heap<T> {
  readonly #keyFunc: (object: T) => string;
  readonly #items: KeyedHeap<string, T>;
  readonly #waiting = new Set<PromiseWithResolvers<T>>();
  #closed = false;

  /**
   * @param keyFunc The key of an object.
   * @param less Whether `a` must be popped before `b`; must be a strict order and must not throw.
   */
  constructor(keyFunc: (object: T) => string, less: (a: T, b: T) => boolean) {
    this.#keyFunc = keyFunc;
    this.#items = new KeyedHeap(less);
  }

  /** How many objects are in the heap. */
  get size(): number {
    return this.#items.size;
  }

  /** Whether {@linkcode Heap.close} was called. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Adds an object, or replaces the one with its key. */
  add(object: T): void {
    const key = this.#keyOf(object, "add");
    this.#assertOpen("add");
    this.#items.set(key, object);
    this.#serve();
  }

  /** As {@linkcode Heap.add}. */
  update(object: T): void {
    this.add(object);
  }

  /** Adds an object unless there is one with its key: puts one back without losing a newer one. */
  addIfNotPresent(object: T): void {
    const key = this.#keyOf(object, "add");
    this.#assertOpen("add");
    if (!this.#items.has(key)) this.#items.set(key, object);
    this.#serve();
  }

  /** Adds many objects, up to one that has no key, and only then wakes the waiting calls of `pop`. */
  bulkAdd(objects: readonly T[]): void {
    this.#assertOpen("add");
    try {
      for (const object of objects) this.#items.set(this.#keyOf(object, "add"), object);
    } finally {
      this.#serve();
    }
  }

  /**
   * Removes the object with this object's key; also from a closed heap.
   *
   * @throws {HeapItemNotFoundError} There is none.
   */
  delete(object: T): void {
    const key = this.#keyOf(object, "delete");
    if (!this.#items.delete(key)) throw new HeapItemNotFoundError(key);
  }

  /**
   * Takes the least object out, waiting for one if there is none. The longest waiting caller is first. A
   * closed heap still hands out what is in it.
   *
   * @param signal Ends the wait; nothing was popped then.
   * @throws {HeapClosedError} The heap is closed and empty, or is closed during the wait.
   * @throws The signal's reason.
   */
  async pop(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#items.size > 0) return this.#items.pop() as T;
    this.#assertOpen("pop");
    return await waitIn(this.#waiting, signal);
  }

  /**
   * Takes the least object out, without waiting: `undefined` if there is none.
   *
   * @throws {HeapClosedError} The heap is closed and empty.
   */
  tryPop(): T | undefined {
    if (this.#items.size === 0) this.#assertOpen("pop");
    return this.#items.pop();
  }

  /** Every object, in no order. */
  list(): T[] {
    return Array.from(this.#items.entries(), ({ item }) => item);
  }

  /** Every key, in no order. */
  listKeys(): string[] {
    return Array.from(this.#items.entries(), ({ key }) => key);
  }

  /** The object with this object's key, or `undefined`. */
  get(object: T): T | undefined {
    return this.#items.get(this.#keyOf(object, "get"));
  }

  /** The object with this key, or `undefined`. */
  getByKey(key: string): T | undefined {
    return this.#items.get(key);
  }

  /** Refuses new objects from now on, and ends every wait to pop. The objects in it can still be popped. */
  close(): void {
    this.#closed = true;
    for (const waiting of this.#waiting) waiting.reject(new HeapClosedError("pop"));
    this.#waiting.clear();
  }

  #keyOf(object: T, operation: string): string {
    return keyOf((value) => this.#keyFunc(value as T), object, operation);
  }

  #assertOpen(operation: string): void {
    if (this.#closed) throw new HeapClosedError(operation);
  }

  #serve(): void {
    for (const waiting of this.#waiting) {
      if (this.#items.size === 0) return;
      this.#waiting.delete(waiting);
      waiting.resolve(this.#items.pop() as T);
    }
  }
}
