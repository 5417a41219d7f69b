import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import { ChunkedStorage, type ChunkStore, MANIFEST } from "./chunked_storage.ts";

/** What a snapshot needs of `Deno.Kv`. */
export interface DenoKv {
  /** The value of a key, and its version; `null`: there is none. */
  get(key: readonly string[]): Promise<{ readonly value: unknown; readonly versionstamp: string | null }>;
  /** The entries of all keys with a prefix. */
  list(selector: { prefix: readonly string[] }): AsyncIterable<{ readonly key: readonly unknown[] }>;
  /** Begins an operation that does all it has, or nothing. */
  atomic(): DenoKvOperation;
}

/** What a snapshot needs of `Deno.AtomicOperation`. */
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
  /** What all keys of this snapshot begin with; `["listwatch"]` by default. Each informer needs its own. */
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
  return newInformerSnapshot(new ChunkedStorage(new DenoKvChunks(kv, prefix)), rest);
}

/** https://docs.deno.com/deploy/kv/manual/ : a value has up to 64 KiB. */
const CHUNK_BYTES = 60_000;

class DenoKvChunks implements ChunkStore {
  readonly description: string;
  readonly chunkBytes: number = CHUNK_BYTES;
  readonly #kv: DenoKv;
  readonly #prefix: readonly string[];
  /** The manifest that was read or written last; `null`: there was none. */
  #versionstamp: string | null = null;

  constructor(kv: DenoKv, prefix: readonly string[]) {
    this.description = `Deno KV, with the prefix ${JSON.stringify(prefix)}`;
    this.#kv = kv;
    this.#prefix = prefix;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const { value, versionstamp } = await this.#kv.get(this.#keyOf(name));
    const bytes = value instanceof Uint8Array ? value : undefined;
    if (name !== MANIFEST) return bytes;
    this.#versionstamp = versionstamp;
    // Something else may be there.
    return versionstamp === null ? undefined : bytes ?? new Uint8Array();
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const key = this.#keyOf(name);
    if (name !== MANIFEST) return void await this.#kv.atomic().set(key, bytes).commit();
    const { ok, versionstamp } = await this.#kv.atomic().check({ key, versionstamp: this.#versionstamp })
      .set(key, bytes).commit();
    // After a conflict, the next save has everything: it may replace what is there now.
    this.#versionstamp = ok && versionstamp ? versionstamp : (await this.#kv.get(key)).versionstamp;
    if (!ok) throw new Error("another informer has saved its snapshot there; give each its own prefix");
  }

  async remove(name: string): Promise<void> {
    await this.#kv.atomic().delete(this.#keyOf(name)).commit();
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of this.#kv.list({ prefix: [...this.#prefix, "chunks"] })) {
      names.push(String(key.at(-1)));
    }
    return names;
  }

  #keyOf(name: string): readonly string[] {
    return name === MANIFEST ? [...this.#prefix, name] : [...this.#prefix, "chunks", name];
  }
}
