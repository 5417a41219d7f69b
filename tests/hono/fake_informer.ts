import {
  type Indexer,
  type KubernetesObject,
  metaNamespaceKey,
  newIndexer,
  type StoreChange,
  type StoreEvent,
} from "@listwatch/cache";

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
  readonly indexer: Indexer<TestObject, never> = newIndexer(metaNamespaceKey, {});
  readonly observers: Set<(event: StoreEvent<TestObject>) => void> = new Set();
  synced = false;
  phase = "idle";

  /** Synced from the start, with these objects. */
  static with(objects: readonly TestObject[], resourceVersion: number): FakeInformer {
    const informer = new FakeInformer();
    informer.relist(objects, resourceVersion);
    return informer;
  }

  hasSynced(): boolean {
    return this.synced;
  }

  observe(observer: (event: StoreEvent<TestObject>) => void): () => void {
    this.observers.add(observer);
    return () => this.observers.delete(observer);
  }

  status(): { phase: string } {
    return { phase: this.phase };
  }

  /** Adds or updates. */
  put(next: TestObject): void {
    const key = metaNamespaceKey(next);
    const oldObject = this.indexer.add(next);
    this.#tell(
      oldObject === undefined
        ? { type: "added", key, object: next }
        : { type: "updated", key, object: next, oldObject },
    );
  }

  /** Deletes, at a resourceVersion. */
  remove(name: string, resourceVersion: number): void {
    const oldObject = this.indexer.getByKey(name);
    const last = object(name, resourceVersion);
    const final = { ...oldObject, metadata: { ...oldObject?.metadata, ...last.metadata } };
    this.indexer.delete(final);
    this.#tell({ type: "deleted", key: name, object: final, oldObject });
  }

  /** Nothing changed up to a resourceVersion. */
  bookmark(resourceVersion: number): void {
    this.indexer.bookmark(String(resourceVersion));
    this.#tell({ type: "bookmark", resourceVersion: String(resourceVersion) });
  }

  /** A list replaces the content. */
  relist(objects: readonly TestObject[], resourceVersion: number): void {
    const changes: StoreChange<TestObject>[] = [];
    const keys = new Set(objects.map(metaNamespaceKey));
    for (const key of this.indexer.listKeys()) {
      const oldObject = this.indexer.getByKey(key);
      if (!keys.has(key) && oldObject) changes.push({ type: "deleted", key, object: oldObject, oldObject });
    }
    for (const next of objects) {
      const key = metaNamespaceKey(next);
      const oldObject = this.indexer.getByKey(key);
      if (oldObject === undefined) changes.push({ type: "added", key, object: next });
      else if (oldObject.metadata?.resourceVersion !== next.metadata?.resourceVersion) {
        changes.push({ type: "updated", key, object: next, oldObject });
      }
    }
    this.indexer.replace(objects, String(resourceVersion));
    this.#tell({ type: "replaced", resourceVersion: String(resourceVersion), changes });
    this.synced = true;
  }

  #tell(event: StoreEvent<TestObject>): void {
    for (const observer of this.observers) observer(event);
  }
}
