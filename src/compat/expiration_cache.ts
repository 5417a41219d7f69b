import { type KeyFunc, keyOf } from "../meta/object.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import {
  type Keyed,
  type KeyedTransaction,
  keyedWrites,
  type Store,
  type Transaction,
} from "../store/store.ts";
import { ThreadSafeStore } from "../store/thread_safe_store.ts";

/** A stored object and when it was put in. */
export interface TimestampedEntry<T> {
  readonly key: string;
  readonly object: T;
  /** The clock's time when the object was put in, in milliseconds. */
  readonly timestampMs: number;
}

/**
 * Decides which entries are too old to be seen.
 *
 * Mirrors client-go's `ExpirationPolicy`.
 */
export interface ExpirationPolicy<T> {
  /** Whether an entry is expired at `nowMs`; called with every entry that is read. */
  isExpired(entry: TimestampedEntry<T>, nowMs: number): boolean;
}

/**
 * Entries expire once they are older than a time to live; at exactly that age they are not.
 *
 * Mirrors client-go's `TTLPolicy`.
 *
 * @example
 * ```ts
 * import { TTLPolicy } from "@listwatch/cache/compat";
 * const policy = new TTLPolicy(1_000);
 * console.log(policy.isExpired({ key: "a", object: {}, timestampMs: 0 }, 1_000)); // false
 * console.log(policy.isExpired({ key: "a", object: {}, timestampMs: 0 }, 1_001)); // true
 * ```
 */
export class TTLPolicy implements ExpirationPolicy<unknown> {
  /** The time to live, in milliseconds; entries never expire where it is 0 or less. */
  readonly ttlMs: number;

  /** @throws {RangeError} The time is not a number. */
  constructor(ttlMs: number) {
    if (Number.isNaN(ttlMs)) {
      throw new RangeError(
        "Cannot make a TTLPolicy of NaN: pass milliseconds, or 0 for entries that never expire",
      );
    }
    this.ttlMs = ttlMs;
  }

  isExpired(entry: TimestampedEntry<unknown>, nowMs: number): boolean {
    return this.ttlMs > 0 && nowMs - entry.timestampMs > this.ttlMs;
  }
}

/** Options of {@linkcode ExpirationCache}. */
export interface ExpirationCacheOptions {
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
}

/**
 * A store whose objects expire. There is no timer: an expired object is dropped by the read that meets it.
 *
 * `get`, `getByKey`, `has`, `list` and `values` neither see nor keep expired objects; `listKeys`
 * and `size` still count them. Writes return no expired object, and make theirs young again.
 * Adding and updating leave the store's resourceVersion alone, unlike in other stores; a delete
 * with an object, `replace` and `bookmark` move it.
 *
 * Mirrors client-go's `ExpirationCache`, its quirks included.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { ExpirationCache } from "@listwatch/cache/compat";
 * const drafts = new ExpirationCache<{ metadata: { name: string }; draft: boolean }>(metaNamespaceKey, {
 *   isExpired: ({ object, timestampMs }, nowMs) => object.draft && nowMs - timestampMs > 60_000,
 * });
 * drafts.add({ metadata: { name: "a" }, draft: true });
 * console.log(drafts.list().length); // 1
 * ```
 */
export class ExpirationCache<T> implements Store<T> {
  readonly #keyFunc: KeyFunc;
  readonly #policy: ExpirationPolicy<T>;
  readonly #clock: Clock;
  readonly #storage: ThreadSafeStore<TimestampedEntry<T>, never> = new ThreadSafeStore();

  constructor(keyFunc: KeyFunc, policy: ExpirationPolicy<T>, options: ExpirationCacheOptions = {}) {
    this.#keyFunc = keyFunc;
    this.#policy = policy;
    this.#clock = options.clock ?? realClock;
  }

  get size(): number {
    return this.#storage.size;
  }

  add(object: T): T | undefined {
    return this.#put(object, "add");
  }

  update(object: T): T | undefined {
    return this.#put(object, "update");
  }

  delete(object: Keyed<T>): T | undefined {
    const entry = this.#storage.deleteWithObject(keyOf(this.#keyFunc, object, "delete"), object);
    return this.#alive(entry, monotonicNow(this.#clock));
  }

  list(): T[] {
    const nowMs = monotonicNow(this.#clock);
    const objects: T[] = [];
    const expiredKeys: string[] = [];
    for (const entry of this.#storage.values()) {
      if (this.#policy.isExpired(entry, nowMs)) expiredKeys.push(entry.key);
      else objects.push(entry.object);
    }
    for (const key of expiredKeys) this.#storage.delete(key);
    return objects;
  }

  listKeys(): string[] {
    return this.#storage.listKeys();
  }

  values(): IterableIterator<T> {
    return this.list().values();
  }

  get(object: Keyed<T>): T | undefined {
    return this.getByKey(keyOf(this.#keyFunc, object, "get"));
  }

  getByKey(key: string): T | undefined {
    return this.#find(key)?.object;
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  replace(objects: readonly T[], resourceVersion: string): void {
    const timestampMs = monotonicNow(this.#clock);
    const entries = objects.map((object): [string, TimestampedEntry<T>] => {
      const key = keyOf(this.#keyFunc, object, "replace");
      return [key, { key, object, timestampMs }];
    });
    this.#storage.replace(entries, resourceVersion);
  }

  transaction(writes: readonly Transaction<T>[]): void {
    const timestampMs = monotonicNow(this.#clock);
    const keyed = keyedWrites(this.#keyFunc, writes);
    this.#storage.transaction(keyed.writes.map((write): KeyedTransaction<TimestampedEntry<T>> => {
      if (write.type === "Delete") return write;
      const { type, key, object } = write;
      return { type, key, object: { key, object, timestampMs } };
    }));
    if (keyed.error !== undefined) throw keyed.error;
  }

  resync(): void {}

  bookmark(resourceVersion: string): void {
    this.#storage.bookmark(resourceVersion);
  }

  lastStoreSyncResourceVersion(): string {
    return this.#storage.lastStoreSyncResourceVersion();
  }

  #put(object: T, operation: "add" | "update"): T | undefined {
    const key = keyOf(this.#keyFunc, object, operation);
    const timestampMs = monotonicNow(this.#clock);
    return this.#alive(this.#storage[operation](key, { key, object, timestampMs }), timestampMs);
  }

  #find(key: string): TimestampedEntry<T> | undefined {
    const entry = this.#storage.get(key);
    if (entry === undefined || !this.#policy.isExpired(entry, monotonicNow(this.#clock))) return entry;
    this.#storage.delete(key);
    return undefined;
  }

  #alive(entry: TimestampedEntry<T> | undefined, nowMs: number): T | undefined {
    return entry === undefined || this.#policy.isExpired(entry, nowMs) ? undefined : entry.object;
  }
}

/**
 * Makes an empty store whose objects expire once they are older than `ttlMs` milliseconds; never where that
 * is 0 or less.
 *
 * Mirrors client-go's `NewTTLStore`.
 *
 * @throws {RangeError} The time is not a number.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newTTLStore } from "@listwatch/cache/compat";
 * const recent = newTTLStore<{ metadata: { name: string } }>(metaNamespaceKey, 30_000);
 * recent.add({ metadata: { name: "a" } });
 * console.log(recent.has("a")); // true, for half a minute
 * ```
 */
export function newTTLStore<T>(
  keyFunc: KeyFunc,
  ttlMs: number,
  options: ExpirationCacheOptions = {},
): ExpirationCache<T> {
  return new ExpirationCache<T>(keyFunc, new TTLPolicy(ttlMs), options);
}

/**
 * Makes an empty store whose objects expire when a policy says so.
 *
 * Mirrors client-go's `NewExpirationStore`.
 *
 * @example
 * ```ts
 * import { metaNamespaceKey } from "@listwatch/cache";
 * import { newExpirationStore, TTLPolicy } from "@listwatch/cache/compat";
 * const store = newExpirationStore(metaNamespaceKey, new TTLPolicy(30_000));
 * store.add({ metadata: { name: "a" } });
 * ```
 */
export function newExpirationStore<T>(
  keyFunc: KeyFunc,
  policy: ExpirationPolicy<T>,
  options: ExpirationCacheOptions = {},
): ExpirationCache<T> {
  return new ExpirationCache<T>(keyFunc, policy, options);
}
