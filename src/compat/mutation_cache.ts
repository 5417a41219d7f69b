import {
  compareResourceVersions,
  type DeletedObject,
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
  metaOf,
} from "../meta/object.ts";
import type { NoIndexNames } from "../store/index_func.ts";
import { checkedValues } from "../store/store_index.ts";
import type { Indexer, Store } from "../store/store.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { ResourceEventHandler } from "../informer/events.ts";

/** A `MutationCache` without an indexer was queried by index. */
export class NoIndexerError extends CacheError {
  /** Makes the error; `indexName` is the index that was queried. */
  constructor(indexName: string) {
    super(
      "NoIndexer",
      `Cannot look up the index ${
        JSON.stringify(indexName)
      }: no indexer has been provided to the mutation cache`,
    );
  }
}

/** Options of {@linkcode MutationCache}. All may be left out. */
export interface MutationCacheOptions<
  T,
  I extends string = NoIndexNames<"give `indexer` in the options, and no type arguments">,
> {
  /** The store in which `byIndex` looks, usually the informer's; without it `byIndex` throws. */
  readonly indexer?: Indexer<T, I>;
  /** How long a write is remembered, in milliseconds; 300,000 by default. */
  readonly ttlMs?: number;
  /**
   * Whether a written object that the store does not hold is returned. Not by default, as it may have been
   * created (the watch will bring it) or be deleted since.
   *
   * - `true`: as client-go does it, where `getByKey` returns such an object once and forgets it; `byIndex`
   *   does not.
   * - `"untilStored"`: on every read, until the store has caught up or `ttlMs` are over.
   *
   * With {@linkcode MutationCache.handler} registered at the informer, a delete that the handler saw is
   * known; after a delete that it never saw, the object shows for up to `ttlMs`.
   */
  readonly includeAdds?: boolean | "untilStored";
  /** How many writes are remembered; 100 by default. The one that was not used for longest goes first. */
  readonly maxSize?: number;
  /** Keys; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/** An object that was written here, or a mark that one was deleted. */
interface Entry<T> {
  /** `undefined` once the object was deleted: what is left is a tombstone that keeps late news of it out. */
  readonly object: T | undefined;
  /** `undefined` for what has no metadata and cannot be compared. */
  readonly resourceVersion: string | undefined;
  readonly uid: string;
  readonly expiresMs: number;
}

const DEFAULT_TTL_MS = 300_000;
const DEFAULT_MAX_SIZE = 100;

/**
 * A store overlaid with one's own recent writes: after an update, a controller that looks at its cache again
 * finds what it wrote, or something newer, although the watch has not brought it yet.
 *
 * Hand it what each create or update returned ({@linkcode MutationCache.mutation}); reads return the newer of
 * that and the store's object, by resourceVersion. It may forget (after `ttlMs`, or when there were too many
 * writes); {@linkcode MutationCache.handler}, registered, keeps it small and informs it of deletes. Mirrors
 * client-go's
 * [`MutationCache`](https://github.com/kubernetes/client-go/blob/master/tools/cache/mutation_cache.go) with
 * integer resourceVersions.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { MutationCache } from "@listwatch/cache/compat";
 * const fetch = () => Response.json({ metadata: { namespace: "shop", name: "settings", resourceVersion: "7" } });
 * const configMaps = newCluster({ server: "http://127.0.0.1:8001", fetch }).resource<KubernetesObject>("v1/configmaps");
 * const informer = new SharedIndexInformer(configMaps);
 * const cache = new MutationCache<KubernetesObject>(informer.indexer, { includeAdds: "untilStored" });
 * informer.addEventHandler(cache.handler);
 * cache.mutation(await configMaps.create({ metadata: { namespace: "shop", name: "settings" } }));
 * console.log(cache.getByKey("shop/settings")?.metadata?.resourceVersion); // 7
 * ```
 */
export class MutationCache<
  T,
  I extends string = NoIndexNames<"give `indexer` in the options, and no type arguments">,
> {
  readonly #store: Pick<Store<T>, "getByKey">;
  readonly #indexer: Indexer<T, I> | undefined;
  readonly #ttlMs: number;
  readonly #includeAdds: boolean | "untilStored";
  readonly #maxSize: number;
  readonly #keyFunc: KeyFunc;
  readonly #clock: Clock;
  readonly #logger: Logger;
  // In the order of use: the entry that was not used for longest comes first.
  readonly #entries = new Map<string, Entry<T>>();

  /**
   * Receives the informer's changes: register it with `addEventHandler`. It drops writes that have arrived in
   * the store, and writes to objects that are deleted.
   */
  readonly handler: ResourceEventHandler<T> = {
    onAdd: (object) => this.onAddOrUpdate(object),
    onUpdate: (_oldObject, newObject) => this.onAddOrUpdate(newObject),
    onDelete: (deleted) => this.onDelete(deleted),
  };

  constructor(store: Pick<Store<T>, "getByKey">, options: MutationCacheOptions<T, I> = {}) {
    this.#store = store;
    this.#indexer = options.indexer;
    this.#ttlMs = options.ttlMs ?? DEFAULT_TTL_MS;
    this.#includeAdds = options.includeAdds ?? false;
    this.#maxSize = options.maxSize ?? DEFAULT_MAX_SIZE;
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#clock = options.clock ?? realClock;
    this.#logger = guardedLogger(options.logger);
    requireNumbers("make a mutation cache", { maxSize: this.#maxSize }, { least: 1, mayBeInfinite: true });
    requireNumbers("make a mutation cache", { ttlMs: this.#ttlMs }, { mayBeInfinite: true });
  }

  /**
   * The newer of the stored and the written object of a key; one that is not stored only with `includeAdds`.
   */
  getByKey(key: string): T | undefined {
    const stored = this.#store.getByKey(key);
    if (stored !== undefined) return this.#newer(key, stored);
    if (!this.#includeAdds) return undefined;
    const held = this.#get(key);
    if (held?.object !== undefined && this.#includeAdds === true && isComparable(held)) {
      this.#entries.delete(key);
    }
    return held?.object;
  }

  /**
   * The objects under a value of an index, each as {@linkcode MutationCache.getByKey} returns it; in no order
   * that may be relied on. A stored object is found under the values it is stored with, even if its newer
   * state has others; with `includeAdds`, written objects that are not stored under the value are found under
   * their own.
   * @throws {NoIndexerError} The cache was made without an indexer.
   * @throws {IndexNotFoundError} There is no such index.
   */
  byIndex(indexName: I, value: string): T[] {
    const indexer = this.#indexer;
    if (indexer === undefined) throw new NoIndexerError(indexName);
    const keys = indexer.indexKeys(indexName, value);
    const objects: T[] = [];
    for (const key of keys) {
      const stored = indexer.getByKey(key);
      if (stored !== undefined) objects.push(this.#newer(key, stored));
    }
    if (!this.#includeAdds) return objects;
    const found = new Set(keys);
    const indexFunc = indexer.getIndexers()[indexName];
    // The oldest object comes first, so that looking at all of them leaves their order as it is.
    for (const key of [...this.#entries.keys()]) {
      const object = this.#get(key)?.object;
      if (object === undefined || found.has(key)) continue;
      try {
        if (checkedValues(indexFunc(object)).includes(value)) objects.push(object);
      } catch (error) {
        this.#logger.debug(`Cannot index ${key} by ${indexName}: ${errorMessage(error)}`, { error });
      }
    }
    return objects;
  }

  /**
   * Remembers what a create or an update returned. Older news than it has of the object is dropped, and so is
   * any of an object instance that it knows to be deleted. An object without a key is logged and dropped:
   * reads continue without it.
   */
  mutation(object: T): void {
    const key = this.#keyOf(object);
    if (key === undefined) return;
    const entry = this.#entryOf(object);
    const held = this.#get(key);
    if (held !== undefined && isComparable(entry) && isComparable(held)) {
      const order = compare(entry, held);
      if (order < 0) return;
      if (held.object === undefined && (order === 0 || entry.uid === held.uid)) return;
    }
    this.#put(key, entry);
  }

  /** The store holds this object now: drop a write that is not newer. */
  onAddOrUpdate(object: T): void {
    const key = this.#keyOf(object);
    if (key === undefined) return;
    const entry = this.#entryOf(object);
    const held = this.#get(key);
    if (held !== undefined && isComparable(entry) && isComparable(held) && compare(entry, held) >= 0) {
      this.#entries.delete(key);
    }
  }

  /**
   * The store holds this object no more: drop writes to it, and refuse them from now on. A write to a newer
   * object of the same name is kept.
   */
  onDelete(deleted: DeletedObject<T>): void {
    const { key, object } = deleted;
    const entry = this.#entryOf(object as T);
    if (!isComparable(entry)) return; // the instance is unknown
    const held = this.#get(key);
    if (held !== undefined && isComparable(held) && compare(entry, held) < 0 && entry.uid !== held.uid) {
      return;
    }
    this.#put(key, { ...entry, object: undefined });
  }

  #newer(key: string, stored: T): T {
    const held = this.#get(key);
    if (held === undefined || !isComparable(held)) return stored;
    const entry = this.#entryOf(stored);
    if (!isComparable(entry)) return stored;
    if (compare(entry, held) < 0) return held.object ?? stored;
    this.#entries.delete(key);
    return stored;
  }

  #get(key: string): Entry<T> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (monotonicNow(this.#clock) > entry.expiresMs) return undefined;
    this.#entries.set(key, entry);
    return entry;
  }

  #put(key: string, entry: Entry<T>): void {
    if (!this.#entries.delete(key) && this.#entries.size >= this.#maxSize) {
      const [oldest] = this.#entries.keys();
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, entry);
  }

  #entryOf(object: T): Entry<T> {
    const metadata = metaOf(object);
    return {
      object,
      resourceVersion: metadata === undefined ? undefined : metadata.resourceVersion ?? "",
      uid: metadata?.uid ?? "",
      expiresMs: monotonicNow(this.#clock) + this.#ttlMs,
    };
  }

  #keyOf(object: T): string | undefined {
    try {
      return this.#keyFunc(object);
    } catch (error) {
      this.#logger.warn(`Cannot remember a write: ${errorMessage(error)}`, { error });
      return undefined;
    }
  }
}

type Comparable<T> = Entry<T> & { readonly resourceVersion: string };

function isComparable<T>(entry: Entry<T>): entry is Comparable<T> {
  return entry.resourceVersion !== undefined;
}

function compare(a: Comparable<unknown>, b: Comparable<unknown>): -1 | 0 | 1 {
  return compareResourceVersions(digits(a), digits(b));
}

/** A missing resourceVersion counts as 0, and leading zeros for nothing. */
function digits({ resourceVersion }: Comparable<unknown>): string {
  return resourceVersion.replace(/^0+/, "");
}
