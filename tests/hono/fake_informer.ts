import { type Indexer, type Indexers, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import type { StoreChange, StoreEvent } from "@listwatch/cache/informer";
import { newEventOpener } from "../../src/informer/events.ts";
import { resourceVersionOf } from "../../src/meta/object.ts";
import type { Cache } from "../../src/store/cache.ts";
import type { Held } from "../../src/store/holding.ts";
import { newTestStore } from "./storages.ts";

/** An object of the tests: any fields beside the metadata. */
export interface TestObject extends KubernetesObject {
  readonly [field: string]: unknown;
}

/** Makes an object; `name` may be `namespace/name`. */
export function object(
  name: string,
  resourceVersion: number,
  fields: Record<string, unknown> = {},
): TestObject {
  const [last, namespace] = name.split("/").reverse();
  const { labels, ...rest } = fields as { labels?: Record<string, string> };
  return {
    metadata: {
      name: last,
      ...(namespace !== undefined && { namespace }),
      resourceVersion: String(resourceVersion),
      ...(labels !== undefined && { labels }),
    },
    ...rest,
  };
}

/** What an informer does as far as its readers can see, by hand and without a reflector. */
export class FakeInformer {
  readonly indexer: Indexer<TestObject, string>;
  readonly observers: Set<(event: StoreEvent<Held<TestObject>>) => void> = new Set();
  readonly #store: Cache<TestObject, string>;
  synced = false;
  phase = "idle";
  lag: number | undefined;

  constructor(indexers: Indexers<TestObject, string> = {}) {
    this.#store = newTestStore(indexers);
    this.indexer = this.#store;
  }

  /** Synced from the start, with these objects. */
  static with(
    objects: readonly TestObject[],
    resourceVersion: number,
    indexers?: Indexers<TestObject, string>,
  ): FakeInformer {
    const informer = new FakeInformer(indexers);
    informer.relist(objects, resourceVersion);
    return informer;
  }

  hasSynced(): boolean {
    return this.synced;
  }

  observe(observer: (event: StoreEvent<TestObject>) => void): () => void {
    return this.observeHeld((event) => observer(newEventOpener(this.#store.holding)(event)));
  }

  observeHeld(observer: (event: StoreEvent<Held<TestObject>>) => void): () => void {
    this.observers.add(observer);
    return () => this.observers.delete(observer);
  }

  status(): { phase: string } {
    return { phase: this.phase };
  }

  lagMs(): number | undefined {
    return this.lag;
  }

  /** Adds or updates. */
  put(next: TestObject): void {
    const key = metaNamespaceKey(next);
    const oldObject = this.#store.held.getByKey(key);
    this.indexer.add(next);
    const object = this.#held(key);
    this.#tell(
      oldObject === undefined ? { type: "added", key, object } : { type: "updated", key, object, oldObject },
    );
  }

  /** Deletes, at a resourceVersion. */
  remove(name: string, resourceVersion: number): void {
    const known = this.indexer.getByKey(name);
    const oldObject = this.#store.held.getByKey(name);
    const last = object(name, resourceVersion);
    const final = { ...known, metadata: { ...known?.metadata, ...last.metadata } };
    this.indexer.delete(final);
    this.#tell({ type: "deleted", key: name, object: this.#store.holding.hold(final), oldObject });
  }

  /** Nothing changed up to a resourceVersion. */
  bookmark(resourceVersion: number | string, how?: { readonly byState: true }): void {
    this.indexer.bookmark(String(resourceVersion));
    this.#tell({ type: "bookmark", resourceVersion: String(resourceVersion), ...how });
  }

  /** An event came that a proof by state had passed. */
  passed(): void {
    this.#tell({
      type: "replaced",
      resourceVersion: this.indexer.lastStoreSyncResourceVersion(),
      changes: [],
      isGap: true,
    });
  }

  /** A list replaces the content. */
  relist(objects: readonly TestObject[], resourceVersion: number | string): void {
    const { held } = this.#store;
    const before = new Map(held.listKeys().map((key) => [key, this.#held(key)]));
    this.indexer.replace(objects, String(resourceVersion));
    const changes: StoreChange<Held<TestObject>>[] = [];
    for (const [key, oldObject] of before) {
      if (!held.has(key)) changes.push({ type: "deleted", key, object: oldObject, oldObject });
    }
    for (const key of objects.map(metaNamespaceKey)) {
      const oldObject = before.get(key);
      const object = this.#held(key);
      if (oldObject === undefined) changes.push({ type: "added", key, object });
      else if (
        resourceVersionOf(oldObject) !== resourceVersionOf(object) ||
        !this.#store.holding.isSameContent(oldObject, object)
      ) {
        changes.push({ type: "updated", key, object, oldObject });
      }
    }
    this.#tell({ type: "replaced", resourceVersion: String(resourceVersion), changes });
    this.synced = true;
  }

  #held(key: string): Held<TestObject> {
    return this.#store.held.getByKey(key) as Held<TestObject>;
  }

  #tell(event: StoreEvent<Held<TestObject>>): void {
    for (const observer of this.observers) observer(event);
  }
}
