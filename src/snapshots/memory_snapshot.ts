/**
 * A snapshot in memory.
 * @module
 */

import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/informer_snapshot.ts";
import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotStorage,
} from "../informer/snapshot.ts";
import { type SavedVersion, versionOf } from "./change_record.ts";
import { checkIdentity, refusalOf } from "./refusals.ts";

/**
 * Keeps the snapshot of an informer in this object: what one informer saved, the next one with the same snapshot loads. For
 * tests, and for informers that are stopped and started within one process.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { memorySnapshot } from "@listwatch/cache/snapshots";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const snapshot = memorySnapshot();
 * const first = new SharedIndexInformer(pods, { snapshot });
 * await first.run(AbortSignal.timeout(10));
 * const second = new SharedIndexInformer(pods, { snapshot }); // has what the first one had, as soon as it runs
 * console.log(second.indexer.size);
 * ```
 *
 * @category Snapshots
 */
export function memorySnapshot(options: SnapshotOptions = {}): InformerSnapshot {
  return newInformerSnapshot(new MemoryStorage(), options);
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
