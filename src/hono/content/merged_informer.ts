/**
 * Several informers as one: the parts of a resource that shards, clusters or other caches hold.
 *
 * How it works. Each source is an ordinary informer with a store of its own. What its observers see becomes
 * what one informer's observers would see: the changes in the same turn, then a bookmark with the merged
 * version behind them; its list is a list here, of what it changes. So nothing that reads a `ServedInformer`
 * needs a second way. A key is shown by one source (source.ts). Objects keep the versions of their
 * servers; each part of the merged version is that of a state which the source had, and goes back by a list
 * only. A source without content has the part `0`.
 */

import { newEventOpener, type StoreEvent } from "../../informer/events.ts";
import {
  decodeMergedVersion,
  encodeMergedVersion,
  MOST_SHARDS,
  newLayout,
} from "../../meta/merged_version.ts";
import { isOlder, type KubernetesObject, layoutOf, metaNamespaceKey, metaOf } from "../../meta/object.ts";
import { type Held, type Holding, type KeyedHead, newHead, ObjectHolding } from "../../store/holding.ts";
import { fieldPathOf, type IndexFunc } from "../../store/index_func.ts";
import type { Indexer } from "../../store/store.ts";
import type { FieldCut } from "../../text/field_cut.ts";
import { Listeners } from "../../util/errors.ts";
import { guardedLogger, type Logger, logsThrown } from "../../util/logger.ts";
import { KeyOwners, shownKey, Source, SourceObject } from "./source.ts";
import type { NamedInformer, ServedInformer, ServedStore } from "./served_informer.ts";

/** Options of {@linkcode MergedInformer}. */
export interface MergedInformerOptions {
  /**
   * `"cluster"`: each source is a cluster of its own, and its name (a label, without dots) comes before the
   * names of its objects: `eu-1.web-1`. By default the sources are shards of one cluster, and each object is
   * in one of them.
   */
  readonly by?: "cluster";
  /** Logs what observers throw; the console by default. */
  readonly logger?: Logger;
}

/**
 * Several informers as one, for {@linkcode readApi}: clusters, shards of one cluster (`shardOf`), caches of
 * either.
 *
 * Each of them runs and stops by itself, has its own store, and should have the same indices. The read API
 * has one log over all, whose versions are merged ones: docs/scale.md says what they mean. Its content is
 * kept while something observes it, as a read API does.
 *
 * @throws {TypeError} There are no sources, two of one name, or more than 999; a cluster's name is no label.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { MergedInformer, readApi } from "@listwatch/cache/hono";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const clusters = ["eu-1", "us-1"].map((name) => {
 *   const server = new InMemoryApiServer();
 *   server.create("v1/pods", pod("web", { namespace: "shop" }));
 *   const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
 *   const informer = new SharedIndexInformer(pods);
 *   return { name, informer, running: informer.start(), server };
 * });
 * const informer = new MergedInformer(clusters, { by: "cluster" });
 * const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
 * for (const { informer } of clusters) await informer.synced();
 * const { items } = await (await api.request("/api/v1/pods")).json();
 * console.log(items.map((pod: { metadata: { name: string } }) => pod.metadata.name)); // [ "eu-1.web", "us-1.web" ]
 * for (const { running, server } of clusters) {
 *   await running.stop();
 *   server.close();
 * }
 * ```
 */
export class MergedInformer implements ServedInformer {
  readonly #sources: readonly Source[];
  readonly #store: MergedStore;
  readonly #owners: KeyOwners;
  readonly #layout: string;
  readonly #hasClusters: boolean;
  readonly #observers: Listeners<StoreEvent<Held<KubernetesObject>>>;
  #stopFollowing: (() => void) | undefined;
  #resourceVersion: string;

  readonly sources: readonly NamedInformer[];
  /** The content of all of them. */
  readonly indexer: ServedStore<KubernetesObject>;

  constructor(sources: readonly NamedInformer[], options: MergedInformerOptions = {}) {
    checkSources(sources, options);
    this.sources = sources.map(({ name, informer }) => ({ name, informer }));
    const logged = { logger: guardedLogger(options.logger), name: "merged informer" };
    this.#observers = new Listeners(logsThrown(logged, "an observer"));
    this.#hasClusters = options.by === "cluster";
    this.#layout = newLayout([options.by ?? "any", ...sources.map(({ name }) => name)]);
    this.#sources = sources.map(({ name, informer }) => new Source(name, informer, this.#hasClusters));
    this.#owners = new KeyOwners(this.#sources);
    this.#resourceVersion = this.#merged();
    const owners = this.#owners;
    this.indexer = this.#store = new MergedStore({
      sources: this.#sources,
      owners,
      version: () => this.#resourceVersion,
    });
  }

  /** Whether all have synced. */
  hasSynced(): boolean {
    this.#admit();
    return this.#sources.every(({ informer }) => informer.hasSynced());
  }

  /** Whether some have content, and not all have synced. */
  isRestored(): boolean {
    return !this.hasSynced() && this.#sources.some(({ isIn }) => isIn);
  }

  observe(observer: (event: StoreEvent<KubernetesObject>) => void): () => void {
    const opened = newEventOpener(this.#store.holding);
    return this.observeHeld((event) => observer(opened(event)));
  }

  /**
   * As {@linkcode ServedInformer.observeHeld}.
   *
   * @internal
   */
  observeHeld(observer: (event: StoreEvent<Held<KubernetesObject>>) => void): () => void {
    const remove = this.#observers.add(observer);
    this.#stopFollowing ??= this.#follow();
    return () => {
      if (!remove() || this.#observers.size > 0) return;
      this.#stopFollowing?.();
      this.#stopFollowing = undefined;
    };
  }

  /** Calls a listener whenever the phase of a source changes, until the returned function is called. */
  onStatus(listener: (status: { readonly phase: string }) => void): () => void {
    const notify = () => {
      this.#admit();
      listener(this.status());
    };
    const unlisten = this.#sources.map(({ informer }) => informer.onStatus?.(notify));
    return () => unlisten.forEach((each) => each?.());
  }

  /** The status of the first source that does not watch. */
  status(): ReturnType<ServedInformer["status"]> {
    const all = this.#sources.map(({ informer }) => informer.status());
    const running = all.filter(({ phase }) => phase !== "stopped");
    return running.find(({ phase }) => phase !== "watching") ?? running[0] ?? all[0];
  }

  /** The longest silence of all. */
  lagMs(): number | undefined {
    const lags = this.#sources.map(({ informer }) => informer.lagMs?.());
    return lags.includes(undefined) ? undefined : Math.max(...lags as number[]);
  }

  partsOf(resourceVersion: string): readonly string[] | undefined {
    // A version of the cluster that all shards belong to: each of them can come to it.
    if (layoutOf(resourceVersion) === "" && !this.#hasClusters) {
      return this.#sources.map(() => resourceVersion);
    }
    const { layout, parts } = decodeMergedVersion(resourceVersion) ?? {};
    return layout === this.#layout && parts?.length === this.#sources.length ? parts : undefined;
  }

  sourceOf(name: string): NamedInformer | undefined {
    const cluster = this.#hasClusters ? name.split(".", 1)[0] : undefined;
    return this.sources.find(({ name }) => name === cluster);
  }

  /** Follows the sources: their objects are the content, at once. */
  #follow(): () => void {
    for (const source of this.#sources) source.isIn = false;
    this.#owners.clear();
    const unobserve = this.#sources.map((source) => source.observe((event) => this.#observe(source, event)));
    this.#admit({ isSilent: true });
    return () => unobserve.forEach((each) => each());
  }

  /** Takes the content of sources that have come to have some. */
  #admit({ isSilent = false } = {}): void {
    if (this.#stopFollowing === undefined && !isSilent) return;
    for (const source of this.#sources) if (!source.isIn && source.hasContent) this.#take(source, isSilent);
  }

  #take(source: Source, isSilent = false): void {
    source.isIn = true;
    source.moveTo(source.storeVersion);
    this.#resourceVersion = this.#merged();
    const changes = source.store.listKeys().flatMap((key) =>
      this.#owners.changed(source, { type: "added", key, object: source.store.getByKey(key)! })
    );
    if (!isSilent) {
      this.#observers.call({ type: "replaced", resourceVersion: this.#resourceVersion, changes });
    }
  }

  #observe(source: Source, event: StoreEvent<Held<KubernetesObject>>): void {
    if (!source.isIn) {
      if (event.type === "replaced" || source.hasContent) this.#take(source);
      return;
    }
    const { storeVersion, position } = source;
    // An event may be late; a list says where its server is now.
    if (event.type === "replaced" || !isOlder(storeVersion, position)) source.moveTo(storeVersion);
    if (event.type === "bookmark") source.mayLackEvents = event.byState === true;
    else if (event.type === "replaced" || source.position !== position) source.mayLackEvents = false;
    this.#resourceVersion = this.#merged();
    if (event.type === "replaced") {
      const changes = event.changes.flatMap((change) => this.#owners.changed(source, change));
      this.#observers.call({
        ...event,
        resourceVersion: this.#resourceVersion,
        changes: changes.concat(this.#owners.moved(source)),
      });
      return;
    }
    const changes = event.type === "bookmark" ? [] : this.#owners.changed(source, event);
    for (const change of changes.concat(this.#owners.moved(source))) this.#observers.call(change);
    const byState = this.#sources.some(({ mayLackEvents }) => mayLackEvents);
    this.#observers.call({
      type: "bookmark",
      resourceVersion: this.#resourceVersion,
      ...(byState && { byState }),
    });
  }

  #merged(): string {
    const parts = this.#sources.map(({ position }) => position);
    return encodeMergedVersion({ layout: this.#layout, parts });
  }
}

function checkSources(sources: readonly NamedInformer[], { by }: MergedInformerOptions): void {
  if (sources.length === 0 || sources.length > MOST_SHARDS) {
    throw new TypeError(`Cannot merge ${sources.length} informers: give 1 to ${MOST_SHARDS}`);
  }
  const names = new Set<string>();
  for (const { name, informer } of sources) {
    const quoted = JSON.stringify(name);
    if (informer.sources !== undefined) {
      throw new TypeError(
        `Cannot merge ${quoted}, which is merged itself: give the informers that it is made of`,
      );
    }
    if (names.has(name)) throw new TypeError(`Cannot merge informers: two of them are named ${quoted}`);
    names.add(name);
    if (by === "cluster" && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
      const why = "it comes before the names of its objects; use lower-case letters, digits and hyphens";
      throw new TypeError(`Cannot merge a cluster of the name ${quoted}: ${why}`);
    }
  }
}

class SourcesHolding extends ObjectHolding<KubernetesObject> {
  override head(held: Held<KubernetesObject>): KeyedHead {
    const { key } = held as SourceObject;
    // Clusters' objects have other names than their own.
    return newHead(key, metaOf(held), key.slice(key.indexOf("/") + 1));
  }

  override open(held: Held<KubernetesObject>): KubernetesObject {
    return held instanceof SourceObject ? held.opened("open") : held as KubernetesObject;
  }

  override peek(held: Held<KubernetesObject>): KubernetesObject {
    return held instanceof SourceObject ? held.opened("peek") : held as KubernetesObject;
  }

  override json(held: Held<KubernetesObject>, fields?: FieldCut): string | undefined {
    return held instanceof SourceObject ? held.json(fields) : undefined;
  }

  override cut(held: Held<KubernetesObject>, fields: FieldCut): object | undefined {
    return held instanceof SourceObject ? held.cut(fields) : undefined;
  }

  override isSameContent(a: Held<KubernetesObject>, b: Held<KubernetesObject>): boolean {
    return a instanceof SourceObject && b instanceof SourceObject && a.source === b.source
      ? a.source.holding.isSameContent(a.held, b.held)
      : super.isSameContent(this.peek(a), this.peek(b));
  }
}

interface MergedStoreOptions {
  readonly sources: readonly Source[];
  readonly owners: KeyOwners;
  readonly version: () => string;
  readonly isHeld?: boolean;
}

type HeldIndexer = Indexer<Held<KubernetesObject>>;

/**
 * The part of an `Indexer` that is read of several informers: their keys together, and the indices that all
 * of them have, by name.
 */
export class MergedStore implements ServedStore<KubernetesObject> {
  readonly #of: MergedStoreOptions;

  readonly holding: Holding<KubernetesObject> = new SourcesHolding(metaNamespaceKey);
  readonly held: ServedStore<Held<KubernetesObject>>;

  constructor(of: MergedStoreOptions) {
    this.#of = of;
    this.held = of.isHeld ? this : new MergedStore({ ...of, isHeld: true });
  }

  listKeys(): string[] {
    return this.#of.owners.keys();
  }

  getByKey(key: string): KubernetesObject | undefined {
    const shown = this.#of.owners.ownerOf(key)?.shown(key);
    return this.#of.isHeld ? shown as KubernetesObject | undefined : shown?.opened("open");
  }

  lastStoreSyncResourceVersion(): string {
    return this.#of.version();
  }

  /** The index functions that all sources have. */
  getIndexers(): Record<string, IndexFunc<Held<KubernetesObject>>> {
    const all = this.#of.sources.map(({ store }) => (store as Partial<HeldIndexer>).getIndexers?.() ?? {});
    const names = Object.keys(all[0]).filter((name) => all.every((each) => Object.hasOwn(each, name)));
    const ofSource = new Map(this.#of.sources.map((source, i) => [source, all[i]]));
    return Object.fromEntries(names.map((name) => {
      const values = (object: Held<KubernetesObject>) =>
        object instanceof SourceObject ? ofSource.get(object.source)![name](object.held) : [];
      // An index by name has the names in the clusters, which are not those that are shown.
      const isOfNames = this.#of.sources[0].isCluster && fieldPathOf(all[0][name]) === "metadata.name";
      return [name, isOfNames ? values : Object.assign(values, all[0][name])];
    }));
  }

  /** The keys under a value of an index, ascending. */
  indexKeys(indexName: string, value: string): string[] {
    return this.#indexed((store, source) =>
      store.indexKeys(indexName, value)
        .map((key) => source.isCluster ? shownKey(source.name, key) : key)
        .filter((key) => source.isCluster || this.#of.owners.ownerOf(key) === source)
    ).flat().sort();
  }

  countByIndex(indexName: string, value: string): number {
    const counts = this.#indexed((store) => store.countByIndex(indexName, value));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  indexValueCounts(indexName: string): Map<string, number> {
    const counts = new Map<string, number>();
    for (const each of this.#indexed((store) => store.indexValueCounts(indexName))) {
      for (const [value, count] of each) counts.set(value, (counts.get(value) ?? 0) + count);
    }
    return counts;
  }

  get size(): number {
    return this.#indexed(({ size }) => size).reduce((sum, size) => sum + size, 0);
  }

  #indexed<R>(read: (store: HeldIndexer, source: Source) => R): R[] {
    return this.#of.sources.flatMap((source) =>
      source.isIn ? [read(source.store as HeldIndexer, source)] : []
    );
  }
}
