import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import { ChunkedStorage, type ChunkStore, MANIFEST } from "./chunked_storage.ts";

/** The part of `Deno.Kv` that a snapshot needs. */
export interface DenoKv {
  /** The value of a key, and its version; `null`: there is none. */
  get(key: readonly string[]): Promise<{ readonly value: unknown; readonly versionstamp: string | null }>;
  /** The entries of all keys with a prefix. */
  list(selector: { prefix: readonly string[] }): AsyncIterable<{ readonly key: readonly unknown[] }>;
  /** Begins an operation that does all it has, or nothing. */
  atomic(): DenoKvOperation;
}

/** The part of `Deno.AtomicOperation` that a snapshot needs. */
export interface DenoKvOperation {
  /** The operation fails unless the keys have these versions. */
  check(
    ...checks: { readonly key: readonly string[]; readonly versionstamp: string | null }[]
  ): DenoKvOperation;
  /** Sets a value. */
  set(key: readonly string[], value: unknown): DenoKvOperation;
  /** Removes a key. */
  delete(key: readonly string[]): DenoKvOperation;
  /** Does it, and returns the version of what it set; `ok` is false if a check failed. */
  commit(): Promise<{ readonly ok: boolean; readonly versionstamp?: string }>;
}

/** Options of {@linkcode denoKvSnapshot}. */
export interface DenoKvSnapshotOptions extends SnapshotOptions {
  /** The beginning of all keys of this snapshot; `["listwatch"]` by default. Each informer needs its own. */
  readonly prefix?: readonly string[];
}

/**
 * Keeps the snapshot of an informer in Deno KV, which may be far away: on Deno Deploy, for one.
 *
 * What changed is written as new values of up to 60 KB; then one value, the manifest, names all that belong
 * together, with their checksums. It is replaced in an atomic operation, which fails if another informer has
 * replaced it meanwhile: then the save fails, the informer reports it, and its next save has everything.
 *
 * The snapshot does not close the KV.
 * @param kv What `Deno.openKv` returns.
 * @throws {RangeError} A time among the options is negative or `NaN`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { type DenoKv, denoKvSnapshot } from "@listwatch/cache/snapshots";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * function newInformer(kv: DenoKv): SharedIndexInformer<KubernetesObject> { // await Deno.openKv()
 *   const snapshot = denoKvSnapshot(kv, { prefix: ["listwatch", "pods"] });
 *   return new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), { snapshot });
 * }
 * ```
 */
export function denoKvSnapshot(kv: DenoKv, options: DenoKvSnapshotOptions = {}): InformerSnapshot {
  const { prefix = ["listwatch"], ...rest } = options;
  return newInformerSnapshot(new ChunkedStorage(denoKvChunks(kv, prefix)), rest);
}

/** The size of a chunk. A value has up to 64 KiB: https://docs.deno.com/deploy/kv/manual/ */
const CHUNK_BYTES = 60_000;

function denoKvChunks(kv: DenoKv, prefix: readonly string[]): ChunkStore {
  /** The version of the manifest that was read or written last; `null`: there was none. */
  let known: string | null = null;
  const keyOf = (name: string) => name === MANIFEST ? [...prefix, name] : [...prefix, "chunks", name];
  return {
    description: `Deno KV, with the prefix ${JSON.stringify(prefix)}`,
    chunkBytes: CHUNK_BYTES,
    async get(name) {
      const { value, versionstamp } = await kv.get(keyOf(name));
      const bytes = value instanceof Uint8Array ? value : undefined;
      if (name !== MANIFEST) return bytes;
      known = versionstamp;
      // Something else may be there.
      return versionstamp === null ? undefined : bytes ?? new Uint8Array();
    },
    async put(name, bytes) {
      const key = keyOf(name);
      if (name !== MANIFEST) return void await kv.atomic().set(key, bytes).commit();
      const checked = kv.atomic().check({ key, versionstamp: known });
      const { ok, versionstamp } = await checked.set(key, bytes).commit();
      // After a conflict, the next save has everything: it may replace what is there now.
      known = ok && versionstamp ? versionstamp : (await kv.get(key)).versionstamp;
      if (!ok) throw new Error("another informer has saved its snapshot there; give each its own prefix");
    },
    async remove(name) {
      await kv.atomic().delete(keyOf(name)).commit();
    },
    async list() {
      const names: string[] = [];
      for await (const { key } of kv.list({ prefix: [...prefix, "chunks"] })) names.push(String(key.at(-1)));
      return names;
    },
  };
}
