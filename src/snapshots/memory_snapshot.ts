import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import {
  type LoadedSnapshot,
  type SavedVersion,
  type SnapshotChange,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotStorage,
  versionOf,
} from "../informer/snapshot/storage.ts";
import { checkIdentity, refusalOf } from "./saved_values.ts";

/** Options of {@linkcode memorySnapshot}. */
export interface MemorySnapshotOptions extends SnapshotOptions {
  /** The snapshot of an informer that has stopped: its content is loaded. */
  readonly after?: InformerSnapshot;
}

/**
 * Keeps the snapshot of an informer in memory. For tests, and for informers that are stopped and started
 * again within one process.
 * @throws {RangeError} A time among the options is negative or `NaN`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { memorySnapshot } from "@listwatch/cache/snapshots";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const snapshot = memorySnapshot();
 * await new SharedIndexInformer(pods, { snapshot }).run(AbortSignal.timeout(10));
 * // As soon as it runs, this one has what the first one had.
 * const informer = new SharedIndexInformer(pods, { snapshot: memorySnapshot({ after: snapshot }) });
 * console.log(informer.indexer.size);
 * ```
 */
export function memorySnapshot(options: MemorySnapshotOptions = {}): InformerSnapshot {
  const { after, ...rest } = options;
  return newInformerSnapshot(after?.storage ?? new MemoryStorage(), rest);
}

class MemoryStorage implements SnapshotStorage {
  readonly #entries = new Map<string, SnapshotEntry>();
  #identity: SnapshotIdentity | undefined;
  #saved: { readonly identity: SnapshotIdentity; readonly version: SavedVersion } | undefined;

  load(identity: SnapshotIdentity): LoadedSnapshot | undefined {
    this.#identity = identity;
    if (this.#saved === undefined) return undefined;
    try {
      checkIdentity(this.#saved.identity, identity);
    } catch (error) {
      throw refusalOf("the snapshot in memory", error);
    }
    const entries = Array.from(this.#entries.values());
    return { ...this.#saved.version, count: entries.length, entries: () => [entries] };
  }

  save(change: SnapshotChange): void {
    if (this.#identity === undefined) throw new Error("Cannot save a snapshot that was not loaded before");
    // First what may throw: all of a change is saved, or nothing.
    const puts = change.puts.map((put) => ({ key: put.key, head: put.head, json: put.json() }));
    if (change.replaces) this.#entries.clear();
    for (const key of change.deletes) this.#entries.delete(key);
    for (const put of puts) this.#entries.set(put.key, put);
    this.#saved = { identity: this.#identity, version: versionOf(change) };
  }
}
