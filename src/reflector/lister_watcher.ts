/** The source of a reflector, and sources that are made of others. */

import {
  isOlder,
  type KubernetesObject,
  metaNamespaceKey,
  metaOf,
  resourceVersionOf,
} from "../meta/object.ts";
import {
  isInitialEventsEnd,
  type ListOptions,
  type ListPage,
  type NamespaceNames,
  type WatchItem,
  type WatchStream,
} from "../meta/list_watch.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import { shardIndexOf, ShardSelector } from "../meta/shard_hash.ts";
import type { Projection } from "../text/field_tree.ts";
import type { HoldText, ListWatchContext } from "../text/object_text_reader.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";

/**
 * A source that can be listed and watched: an API server's resource, or anything that behaves like one.
 * Mirrors client-go's `ListerWatcherWithContext`, with an `AbortSignal` for the context.
 */
export interface ListerWatcher<T> {
  /**
   * Requests one page of a list.
   * @throws {StatusError} The server refused.
   * @throws {NetworkError} No answer came.
   * @throws The signal's reason, once it is aborted.
   */
  list(options: ListOptions, context: ListWatchContext): Promise<ListPage<T>>;
  /** Opens a watch; resolves when the server has accepted it. Throws as {@linkcode ListerWatcher.list}. */
  watch(options: ListOptions, context: ListWatchContext): Promise<WatchStream<T>>;
  /** A name for log lines and errors, such as `pods`. */
  readonly description?: string;
  /** The resource that the source lists, if it is known. */
  readonly resource?: GroupVersionResource;
  /** The fields that the source leaves out of the objects, if that is known. */
  readonly projection?: Projection | undefined;
  /**
   * A text that says which objects the source brings, and with which content, besides the resource: server,
   * namespace, selectors, the fields that are kept or dropped. A snapshot of a source with another identity
   * is not used.
   */
  readonly identity?: string;
  /**
   * The identity of the cluster, whatever its address: the uid of the namespace `kube-system`, which every
   * cluster has, and which differs in each. A snapshot of another cluster is not used. Throws as {@linkcode
   * ListerWatcher.list}.
   */
  clusterUid?(signal: AbortSignal): Promise<string>;
  /**
   * A source of the same objects' names and versions: a copy that is served proves with it that it is fresh.
   */
  metadata?(): ListerWatcher<KubernetesObject>;
  /**
   * The namespaces whose objects it brings, where it is one for several: an informer lists and watches each
   * by itself, by {@linkcode ListerWatcher.inNamespace}, and `watch` refuses.
   */
  readonly namespaces?: NamespaceNames | undefined;
  /** The same source, for one namespace. */
  inNamespace?(namespace: string): ListerWatcher<T>;
}

/**
 * Makes a {@linkcode ListerWatcher} of two functions, with options that are merged into every request.
 * Mirrors client-go's `ListWatch` and its `optionsModifier`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { newListWatch } from "@listwatch/cache/reflector";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const web = newListWatch(pods, (options) => ({ ...options, labelSelector: "app=web" }));
 * ```
 */
export function newListWatch<T>(
  source: ListerWatcher<T>,
  modifyOptions: (options: ListOptions) => ListOptions,
): ListerWatcher<T> {
  return over(source, modifyOptions, (identity) => `${identity} ${JSON.stringify(modifyOptions({}))}`);
}

/** A source whose every request `check` may refuse, by a throw; otherwise the same. */
export function guardedListWatch<T>(source: ListerWatcher<T>, check: () => void): ListerWatcher<T> {
  return over(source, (options) => (check(), options), (identity) => identity);
}

function over<T>(
  source: ListerWatcher<T>,
  modifyOptions: (options: ListOptions) => ListOptions,
  identityOf: (identity: string) => string,
): ListerWatcher<T> {
  const overThat = <O>(other: ListerWatcher<O>) => over(other, modifyOptions, identityOf);
  return {
    description: source.description,
    // The other members depend on the options.
    ...(source.metadata && { metadata: () => overThat(source.metadata!()) }),
    ...(source.resource && { resource: source.resource }),
    ...(source.projection && { projection: source.projection }),
    ...(source.namespaces && { namespaces: source.namespaces }),
    ...(source.inNamespace && { inNamespace: (namespace) => overThat(source.inNamespace!(namespace)) }),
    ...(source.clusterUid && {
      clusterUid: async (signal) => (modifyOptions({}), await source.clusterUid!(signal)),
    }),
    get identity() {
      return source.identity && identityOf(source.identity);
    },
    list: async (options, context) => await source.list(modifyOptions(options), context),
    watch: async (options, context) => await source.watch(modifyOptions(options), context),
  };
}

/** @throws {TypeError} The source has a set of namespaces, which one reflector cannot follow. */
export function refuseNamespaces(
  { namespaces, description = "objects" }: Pick<ListerWatcher<unknown>, "namespaces" | "description">,
): void {
  if (namespaces === undefined) return;
  throw new TypeError(
    `Cannot reflect ${description} by one list and watch: give the source to a SharedIndexInformer`,
  );
}

/** Options of {@linkcode shardOf}. */
export interface ShardOptions {
  /** The number of this shard, from 0. */
  readonly index: number;
  /** How many shards there are. */
  readonly of: number;
  /**
   * What decides the shard of an object. `"name"`, the default: the hash of `namespace/name`. `"uid"` and
   * `"namespace"`: the ranges of Kubernetes' `shardSelector` (KEP-5866), by which a server that has it sends
   * only this shard's objects.
   */
  readonly by?: "name" | "uid" | "namespace";
  /** Receives one line if a server ignores the `shardSelector`; the console by default. */
  readonly logger?: Logger;
}

/**
 * The part of a source that belongs to one of `of` shards: every object belongs to exactly one of them, for
 * as long as it exists. Lists, events and the source's `metadata` have only this part; versions and bookmarks
 * are the source's own.
 *
 * What belongs to other shards is skipped as soon as its metadata is read, and never stored; its events move
 * the position nevertheless, as bookmarks. `remainingItemCount` is left out: it counts all objects. A list to
 * which the server has applied another `shardSelector` is refused. Mirrors client-go's `NewShardedListWatch`.
 *
 * The shard is the place of a hash among `of` equal ranges, and stays so. `"name"`: FNV-1a of 32 bits over
 * `namespace/name`, finished by MurmurHash3's `fmix32`. `"uid"`, `"namespace"`: FNV-1a of 64 bits (KEP-5866).
 * @throws {RangeError} `index` and `of` name no shard.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { shardOf } from "@listwatch/cache/reflector";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/pods");
 * const second = new SharedIndexInformer(shardOf(pods, { index: 1, of: 4 }));
 * console.log(second.hasSynced()); // false
 * ```
 */
export function shardOf<T extends KubernetesObject>(
  source: ListerWatcher<T>,
  options: ShardOptions,
): ListerWatcher<T> {
  const { index, of, by = "name" } = options;
  if (!Number.isSafeInteger(of) || of < 1 || !Number.isSafeInteger(index) || index < 0 || index >= of) {
    throw new RangeError(
      `Cannot take shard ${index} of ${of}: \`of\` is 1 or more, \`index\` from 0 to \`of\` - 1`,
    );
  }
  if (of === 1) return source;
  const shard = new ShardSource(source, options);
  return {
    ...over(source, (given) => given, (identity) => `${identity}, shard ${index} of ${of} by ${by}`),
    description: shard.description,
    // The metadata of this shard: a shard that compares itself with the whole would never be equal to it.
    ...(source.metadata && { metadata: () => shardOf(source.metadata!(), options) }),
    ...(source.inNamespace && {
      inNamespace: (namespace) => shardOf(source.inNamespace!(namespace), options),
    }),
    list: (given, context) => shard.list(given, context),
    watch: (given, context) => shard.watch(given, context),
  };
}

/** The lists and watches of a shard. */
class ShardSource<T extends KubernetesObject> implements ListerWatcher<T> {
  readonly description: string;
  readonly #source: ListerWatcher<T>;
  readonly #options: ShardOptions;
  readonly #isOwn: (object: unknown) => boolean;
  readonly #selector: string | undefined;
  #hasWarned = false;

  constructor(source: ListerWatcher<T>, options: ShardOptions) {
    const { index, of, by = "name" } = options;
    this.#source = source;
    this.#options = options;
    this.description = `${source.description ?? "objects"}, shard ${index} of ${of}`;
    const selector = by === "name" ? undefined : ShardSelector.range(by, index, of);
    this.#selector = selector && String(selector);
    this.#isOwn = selector === undefined
      ? (object) => shardIndexOf(metaNamespaceKey(object), of) === index
      : (object) => selector.matches(object);
  }

  async list(options: ListOptions, context: ListWatchContext): Promise<ListPage<T>> {
    const sieve = new Sieve(this.#isOwn);
    const page = await this.#source.list(this.#withSelector(options), sieve.context(context));
    const { shardInfo } = page.metadata;
    const isApplied = this.#selector !== undefined && shardInfo !== undefined;
    if (isApplied && shardInfo.selector !== this.#selector) {
      const [applied, own] = [shardInfo.selector, this.#selector].map((each) => JSON.stringify(each));
      throw new Error(
        `Cannot list ${this.description}: the server has applied the shardSelector ${applied}, and not ${own}`,
      );
    }
    if (!isApplied) this.#ignored();
    const { remainingItemCount: _, ...metadata } = page.metadata;
    return {
      ...page,
      metadata: isApplied ? page.metadata : metadata,
      items: page.items.filter((item) => sieve.isOwn(item)),
      ...(page.quarantined && { quarantined: page.quarantined.filter(({ key }) => this.#mayBeOwn(key)) }),
    };
  }

  async watch(options: ListOptions, context: ListWatchContext): Promise<WatchStream<T>> {
    const sieve = new Sieve(this.#isOwn);
    const stream = await this.#source.watch(this.#withSelector(options), sieve.context(context));
    const { resourceVersion = "0", sendInitialEvents } = options;
    const startsInOrder = sendInitialEvents !== true && resourceVersion !== "" && resourceVersion !== "0";
    return this.#ownEvents(stream, sieve, startsInOrder);
  }

  async *#ownEvents(
    stream: WatchStream<T>,
    sieve: Sieve,
    startsInOrder: boolean,
  ): AsyncGenerator<readonly WatchItem<T>[]> {
    // Initial events come in any order: only behind them a version is a position.
    let isInOrder = startsInOrder;
    let position = "";
    for await (const batch of stream) {
      const own: WatchItem<T>[] = [];
      let skippedTo = "";
      for (const item of batch) {
        if (item.type === "QUARANTINED" || item.type === "ERROR") {
          if (item.type === "ERROR" || this.#mayBeOwn(item.quarantined.key)) own.push(item);
          continue;
        }
        if (item.type === "BOOKMARK") isInOrder ||= isInitialEventsEnd(item.object);
        const version = resourceVersionOf(item.object) ?? "";
        const isAdvance = position === "" || isOlder(position, version);
        if (isAdvance) position = version;
        if (item.type === "BOOKMARK" || sieve.isOwn(item.object)) {
          own.push(item);
          skippedTo = "";
          continue;
        }
        this.#ignored();
        if (isAdvance) skippedTo = version;
      }
      if (isInOrder && skippedTo !== "") {
        own.push({ type: "BOOKMARK", object: { metadata: { resourceVersion: skippedTo } } });
      }
      if (own.length > 0) yield own;
    }
  }

  #withSelector(options: ListOptions): ListOptions {
    if (this.#selector === undefined) return options;
    const { shardSelector = this.#selector } = options;
    if (shardSelector === this.#selector) return { ...options, shardSelector };
    throw new TypeError(
      `Cannot read ${this.description}: the request has another shardSelector already; divide a source once`,
    );
  }

  /** Whether something without metadata may be of this shard, by its key. */
  #mayBeOwn(key: string | undefined): boolean {
    const { by = "name", index, of } = this.#options;
    return key === undefined || by !== "name" || shardIndexOf(key, of) === index;
  }

  /** The server has ignored the selector, if it was sent one. */
  #ignored(): void {
    if (this.#selector === undefined || this.#hasWarned) return;
    this.#hasWarned = true;
    guardedLogger(this.#options.logger).warn(
      `${this.description}: the server has ignored the shardSelector (KEP-5866) and sends all objects; those of other ` +
        "shards are skipped here",
    );
  }
}

/** An object of another shard, as far as its place in a watch needs it. */
class Skipped {
  readonly metadata: KubernetesObject["metadata"];

  constructor(object: unknown) {
    this.metadata = metaOf(object);
  }
}

/**
 * Distinguishes the objects of one list or watch as soon as their metadata is read. The held form of an
 * object need not show its name, so held objects are remembered instead.
 */
class Sieve {
  readonly #isOwn: (object: unknown) => boolean;
  readonly #held = new WeakSet<object>();

  constructor(isOwn: (object: unknown) => boolean) {
    this.#isOwn = isOwn;
  }

  /** The context of the source's calls with the objects that it reads. */
  context(context: ListWatchContext): ListWatchContext {
    const { intake, holdText } = context;
    return {
      ...context,
      ...(holdText && { holdText: this.#holdText(holdText) }),
      ...(intake && {
        intake: (item: unknown) => this.isOwn(item) ? this.#remembered(intake(item)) : new Skipped(item),
      }),
    };
  }

  isOwn(item: unknown): boolean {
    if (item instanceof Skipped) return false;
    if (this.#held.has(item as object)) return true;
    return metaOf(item) === undefined || this.#test(item);
  }

  #holdText({ reader, hold }: HoldText): HoldText {
    return {
      reader,
      hold: (text, head, read) =>
        this.#test(head) ? this.#remembered(hold(text, head, read)) : new Skipped(head),
    };
  }

  #remembered(held: unknown): unknown {
    if (typeof held === "object" && held !== null) this.#held.add(held);
    return held;
  }

  #test(object: unknown): boolean {
    try {
      return this.#isOwn(object);
    } catch {
      return true; // It has no key: the informer reports that.
    }
  }
}
