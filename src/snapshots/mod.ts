/**
 * Snapshots of informers in key-value stores, and in memory: what an informer holds is saved as it changes,
 * and is there at once when the next one starts. For every runtime; files and SQLite are in
 * `@listwatch/cache/node`.
 *
 * @module
 */

export {
  type DenoKv,
  type DenoKvOperation,
  denoKvSnapshot,
  type DenoKvSnapshotOptions,
} from "./deno_kv_snapshot.ts";
export {
  type KeyValueBinding,
  keyValueSnapshot,
  type KeyValueSnapshotOptions,
} from "./key_value_snapshot.ts";
export { memorySnapshot, type MemorySnapshotOptions } from "./memory_snapshot.ts";
