/**
 * A snapshot in Deno KV.
 * @module
 */

import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/informer_snapshot.ts";
import { type Chunk, ChunkedStorage, type ChunkStore } from "./chunked_storage.ts";

/**
 * What a snapshot needs of `Deno.Kv`.
 *
 * @category Snapshots
 */
export interface DenoKv {
  /** The value of a key, and its version; `null`: there is none. */
  get(key: readonly string[]): Promise<{ readonly value: unknown; readonly versionstamp: string | null }>;
  /** The entries of all keys with a prefix. */
  list(selector: { prefix: readonly string[] }): AsyncIterable<{ readonly key: readonly unknown[] }>;
  /** Begins an operation that does all it has, or nothing. */
  atomic(): DenoKvOperation;
}

/**
 * What a snapshot needs of `Deno.AtomicOperation`.
 *
 * @category Snapshots
 */
export interface DenoKvOperation {
  /** The operation fails unless the keys have these versions. */
  check(
    ...checks: { readonly key: readonly string[]; readonly versionstamp: string | null }[]
  ): DenoKvOperation;
  /** Sets a value. */
  set(key: readonly string[], value: unknown): DenoKvOperation;
  /** Removes a key. */
  delete(key: readonly string[]): DenoKvOperation;
  /** Does it; `ok` is false if a check failed. */
  commit(): Promise<{ readonly ok: boolean }>;
}

/**
 * Options of {@linkcode denoKvSnapshot}.
 *
 * @category Snapshots
 */
export interface DenoKvSnapshotOptions extends SnapshotOptions {
  /** What all keys of this snapshot begin with; `["listwatch"]` by default. Each informer needs its own. */
  readonly prefix?: readonly string[];
}

/**
 * Keeps the snapshot of an informer in Deno KV, which may be far away: on Deno Deploy, for one.
 *
 * What changed is written as new values of up to 60 KB; then one value, the manifest, names all that belong together, with
 * their checksums. It is replaced in an atomic operation, which fails if another informer has replaced it meanwhile: then
 * the save fails, the informer reports it, and its next save has everything.
 *
 * The snapshot does not close the KV.
 *
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
 *
 * @category Snapshots
 */
export function denoKvSnapshot(kv: DenoKv, options: DenoKvSnapshotOptions = {}): InformerSnapshot {
  const { prefix = ["listwatch"], ...rest } = options;
  return newInformerSnapshot(new ChunkedStorage(new DenoKvChunks(kv, prefix)), rest);
}

/** https://docs.deno.com/deploy/kv/manual/ : a value has up to 64 KiB, an atomic operation up to 800 KB. */
const CHUNK_BYTES = 60_000;
const DELETES_AT_ONCE = 100;

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

  async read(names: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    return await Promise.all(
      names.map(async (name) => bytesIn((await this.#kv.get(this.#keyOf(name))).value)),
    );
  }

  async write(chunks: readonly Chunk[]): Promise<void> {
    if (chunks.length === 0) return;
    let operation = this.#kv.atomic();
    for (const { name, bytes } of chunks) operation = operation.set(this.#keyOf(name), bytes);
    await operation.commit();
  }

  async readManifest(): Promise<Uint8Array | undefined> {
    const { value, versionstamp } = await this.#kv.get(this.#manifestKey);
    this.#versionstamp = versionstamp;
    if (versionstamp === null) return undefined;
    return bytesIn(value) ?? new Uint8Array(); // something else is there
  }

  async writeManifest(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const key = this.#manifestKey;
    const { ok } = await this.#kv.atomic().check({ key, versionstamp: this.#versionstamp }).set(key, bytes)
      .commit();
    // The next save has everything: it may replace what is there now.
    this.#versionstamp = (await this.#kv.get(key)).versionstamp;
    if (!ok) throw new Error("another informer has saved its snapshot there; give each its own prefix");
  }

  async remove(names: readonly string[]): Promise<void> {
    for (let at = 0; at < names.length; at += DELETES_AT_ONCE) {
      let operation = this.#kv.atomic();
      for (const name of names.slice(at, at + DELETES_AT_ONCE)) {
        operation = operation.delete(this.#keyOf(name));
      }
      await operation.commit();
    }
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of this.#kv.list({ prefix: [...this.#prefix, "chunks"] })) {
      names.push(String(key.at(-1)));
    }
    return names;
  }

  get #manifestKey(): readonly string[] {
    return [...this.#prefix, "manifest"];
  }

  #keyOf(name: string): readonly string[] {
    return [...this.#prefix, "chunks", name];
  }
}

function bytesIn(value: unknown): Uint8Array | undefined {
  return value instanceof Uint8Array ? value : undefined;
}
