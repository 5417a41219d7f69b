import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import { requireNumbers } from "../util/require_number.ts";
import { ChunkedStorage, type ChunkStore, MANIFEST } from "./chunked_storage.ts";

/**
 * A store of keys and values: a KV namespace or an R2 bucket of Cloudflare, or an object with these three
 * methods. They may be asynchronous.
 */
export interface KeyValueBinding {
  /**
   * The bytes of a key, as an `ArrayBuffer`, a `Uint8Array` or something with `arrayBuffer()`; `null` or
   * `undefined` if there are none. The second argument is for KV namespaces, and may be ignored.
   */
  get(key: string, type: "arrayBuffer"): unknown;
  /** Sets the bytes of a key. */
  put(key: string, value: Uint8Array<ArrayBuffer>): unknown;
  /** Removes a key. */
  delete(key: string): unknown;
  /**
   * The keys with a prefix, as KV namespaces (`keys`) and R2 (`objects`) list them. Without it, what a killed
   * process has left behind is not removed.
   */
  list?(options: { prefix: string; cursor?: string }): unknown;
}

/** Options of {@linkcode keyValueSnapshot}. */
export interface KeyValueSnapshotOptions extends SnapshotOptions {
  /** The beginning of all keys of this snapshot; `listwatch/` by default. Each informer needs its own. */
  readonly prefix?: string;
  /** The largest value in bytes; 4 MB by default. KV namespaces take 25 MiB. */
  readonly chunkBytes?: number;
  /** As for every snapshot, but 10,000 by default: a KV namespace takes one write per second and key. */
  readonly intervalMs?: number;
}

/**
 * Keeps the snapshot of an informer in a store of keys and values.
 *
 * What changed is written as one new value or more; then one value, the manifest, names all that belong
 * together, with their checksums. In a store that is only eventually consistent, as KV namespaces are, a
 * reader may see a manifest before the values that it names: such a snapshot is refused as `torn`, and
 * everything is listed. Values that no manifest names are removed after the manifest that follows.
 *
 * One informer writes a prefix at a time. If two do, the snapshot is what one of them saved, or is refused.
 * @throws {RangeError} A time among the options is negative or
 * `NaN`, or `chunkBytes` is no whole number above 0.
 *
 * @example In a Worker with a KV namespace
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { type KeyValueBinding, keyValueSnapshot } from "@listwatch/cache/snapshots";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * function newInformer(env: { SNAPSHOTS: KeyValueBinding }): SharedIndexInformer<KubernetesObject> {
 *   const snapshot = keyValueSnapshot(env.SNAPSHOTS, { prefix: "services/" });
 *   return new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/services"), { snapshot });
 * }
 * ```
 */
export function keyValueSnapshot(
  binding: KeyValueBinding,
  options: KeyValueSnapshotOptions = {},
): InformerSnapshot {
  const { prefix = "listwatch/", chunkBytes = 4 << 20, ...rest } = options;
  requireNumbers("keep a snapshot", { chunkBytes }, { least: 1, isWhole: true });
  const storage = new ChunkedStorage(boundChunks(binding, { prefix, chunkBytes }));
  return newInformerSnapshot(storage, { intervalMs: 10_000, ...rest });
}

function boundChunks(
  binding: KeyValueBinding,
  { prefix, chunkBytes }: { readonly prefix: string; readonly chunkBytes: number },
): ChunkStore {
  const keyOf = (name: string) => `${prefix}${name === MANIFEST ? "" : "chunks/"}${name}`;
  const list = async () => {
    const prefix = keyOf("");
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await binding.list!({ prefix, ...(cursor !== undefined && { cursor }) }) as ListPage;
      for (const { name } of page.keys ?? []) names.push(name.slice(prefix.length));
      for (const { key } of page.objects ?? []) names.push(key.slice(prefix.length));
      cursor = page.list_complete === false || page.truncated === true ? page.cursor : undefined;
    } while (cursor !== undefined);
    return names;
  };
  return {
    description: `the key-value store, with the prefix ${JSON.stringify(prefix)}`,
    chunkBytes,
    async get(name) {
      // The second argument of a bucket's `get` is an object.
      const types = "head" in binding ? [] : ["arrayBuffer"];
      const get = binding.get as (key: string, ...types: string[]) => unknown;
      return await bytesOf(await get.call(binding, keyOf(name), ...types));
    },
    async put(name, bytes) {
      await binding.put(keyOf(name), bytes);
    },
    async remove(name) {
      await binding.delete(keyOf(name));
    },
    ...(typeof binding.list === "function" && { list }),
  };
}

interface ListPage {
  readonly keys?: readonly { readonly name: string }[];
  readonly objects?: readonly { readonly key: string }[];
  readonly list_complete?: boolean;
  readonly truncated?: boolean;
  readonly cursor?: string;
}

async function bytesOf(value: unknown): Promise<Uint8Array | undefined> {
  if (value === null || value === undefined) return undefined;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  const { arrayBuffer } = value as { readonly arrayBuffer?: unknown };
  if (typeof arrayBuffer === "function") return new Uint8Array(await arrayBuffer.call(value));
  throw new TypeError("the store returned a value that is no bytes");
}
