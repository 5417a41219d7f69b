import { type KeyFunc, keyOf } from "../meta/object.ts";
import type { Keyed } from "../store/store.ts";
import { ErrRequeue } from "./errors.ts";
import { type Failure, NOTHING, PoppingQueue, type SlowTraceOptions } from "./atomic_fifo.ts";

/**
 * A queue of keys in the order they first came, with the newest object of each: an object that changes while
 * it waits is popped once, at its old place, in its newest state. A delete takes the object out of the queue
 * unseen. A call throws a `KeyError`, and changes nothing, where the key function threw.
 *
 * Mirrors client-go's [`FIFO`](https://github.com/kubernetes/client-go/blob/v0.24.17/tools/cache/fifo.go) of
 * the 1.24 generation, with `addIfNotPresent` and `ErrRequeue`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { FIFO } from "@listwatch/cache/queue";
 * const queue = new FIFO<{ metadata: { name: string }; n: number }>(metaNamespaceKey);
 * queue.add({ metadata: { name: "a" }, n: 1 });
 * queue.add({ metadata: { name: "b" }, n: 1 });
 * queue.update({ metadata: { name: "a" }, n: 2 });
 * const popped = await queue.pop(() => {});
 * console.log(popped.metadata.name, popped.n); // a 2
 * ```
 */
export class FIFO<T> extends PoppingQueue<T, string> {
  readonly #keyFunc: KeyFunc;
  #items = new Map<string, T>();

  constructor(keyFunc: KeyFunc, options: SlowTraceOptions = {}) {
    super(options);
    this.#keyFunc = keyFunc;
  }

  /** Queues an object; where its key is queued already, the object takes the place of the older one. */
  add(object: T): void {
    this.#put(keyOf(this.#keyFunc, object, "add"), object);
  }

  /** As {@linkcode FIFO.add}. */
  update(object: T): void {
    this.#put(keyOf(this.#keyFunc, object, "update"), object);
  }

  /** Queues an object unless its key is queued. */
  addIfNotPresent(object: T): void {
    this.#put(keyOf(this.#keyFunc, object, "addIfNotPresent"), object, false);
  }

  /**
   * Takes an object out of the queue: it will not be popped. Its key keeps its place: an object that is added
   * under it before that place is reached comes out there.
   */
  delete(object: Keyed<T>): void {
    const key = keyOf(this.#keyFunc, object, "delete");
    this.population.populate();
    this.#items.delete(key);
  }

  /** Fills the queue with these objects only, in their order; the last of several with one key counts. */
  replace(objects: readonly T[], _resourceVersion?: string): void {
    const items = new Map<string, T>();
    for (const object of objects) items.set(keyOf(this.#keyFunc, object, "replace"), object);
    this.population.populate(items.size);
    this.#items = items;
    this.places.clear();
    for (const key of items.keys()) this.places.push(key);
    if (items.size > 0) this.consumers.wakeAll();
  }

  /** Does nothing, as in client-go: every queued object has its place in the queue. */
  resync(): void {}

  /** The queued objects: a new array, in no order that may be relied on. */
  list(): T[] {
    return [...this.#items.values()];
  }

  /** The keys of the queued objects: a new array, in no order that may be relied on. */
  listKeys(): string[] {
    return [...this.#items.keys()];
  }

  /** The queued object that has the key of the given one. */
  get(object: Keyed<T>): T | undefined {
    return this.#items.get(keyOf(this.#keyFunc, object, "get"));
  }

  /** The queued object of a key. */
  getByKey(key: string): T | undefined {
    return this.#items.get(key);
  }

  #put(key: string, object: T, replaces = true): void {
    this.population.populate();
    const isQueued = this.#items.has(key);
    if (isQueued && !replaces) return;
    if (!isQueued) this.places.push(key);
    this.#items.set(key, object);
    this.consumers.wakeAll();
  }

  /** @internal */
  protected override take(): T | typeof NOTHING {
    for (let key = this.places.shift(); key !== undefined; key = this.places.shift()) {
      if (this.#items.has(key)) {
        const item = this.#items.get(key) as T;
        this.#items.delete(key);
        return item;
      }
      this.population.popped(1); // a place whose object was deleted
    }
    return NOTHING;
  }

  /** @internal */
  protected override labelOf(item: T): string {
    return keyOf(this.#keyFunc, item, "pop");
  }

  /** @internal */
  protected override failed(item: T, error: unknown): Failure | undefined {
    if (!(error instanceof ErrRequeue)) return { error };
    this.#put(keyOf(this.#keyFunc, item, "requeue"), item, false);
    return error.cause === undefined ? undefined : { error: error.cause };
  }
}
