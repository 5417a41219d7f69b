/** The stores of several informers as one. */

import type { KubernetesObject } from "../../meta/object.ts";
import { fieldPathOf, type IndexFunc } from "../../store/index_func.ts";
import { type Held, type Holding, ObjectHolding } from "../../store/holding.ts";
import type { Indexer } from "../../store/store.ts";
import type { ServedStore } from "./served_informer.ts";
import { shownKey } from "./cluster_names.ts";
import type { KeyOwners } from "./key_owners.ts";
import { type Source, SourceObject } from "./source.ts";

/** The objects of all sources, each in the form of its own store. */
class SourcesHolding extends ObjectHolding<KubernetesObject> {
  override isHeld(value: unknown): boolean {
    return value instanceof SourceObject;
  }

  override open(held: Held<KubernetesObject>): KubernetesObject {
    return held instanceof SourceObject ? held.opened("open") : held as KubernetesObject;
  }

  override peek(held: Held<KubernetesObject>): KubernetesObject {
    return held instanceof SourceObject ? held.opened("peek") : held as KubernetesObject;
  }

  override convert<From, To>(whole: From, conversion: (whole: From) => To): To {
    return conversion(whole);
  }

  override json(held: Held<KubernetesObject>): string | undefined {
    return held instanceof SourceObject ? held.json : undefined;
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

  readonly holding: Holding<KubernetesObject> = new SourcesHolding(noKey);
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
    const all = this.#of.sources.map(({ store }) => indexersOf(store));
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
    return this.#indexed((store) => store.countByIndex(indexName, value)).reduce(
      (sum, count) => sum + count,
      0,
    );
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

function indexersOf(store: Partial<HeldIndexer>): Record<string, IndexFunc<Held<KubernetesObject>>> {
  return store.getIndexers?.() ?? {};
}

function noKey(): never {
  throw new TypeError("Cannot compute a key: the objects are of several stores");
}
