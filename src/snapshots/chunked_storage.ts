/**
 * A snapshot in chunks, for stores of keys and values that limit the size of a value.
 *
 * ```
 * manifest   what the snapshot is of, its version, and of each record: the names of its chunks, its length and checksum
 * chunks     the bytes of a record: a line with the keys that were deleted, and for each object a line with its key, its
 *            head and the length of its text, and the text
 * ```
 *
 * The first record has all objects of its time; the others are changes since. A chunk never changes. A save
 * writes the chunks of one more record, then the manifest, with which the snapshot changes from one state to
 * the next. What no manifest names any more is removed afterwards.
 */

import {
  type LoadedSnapshot,
  type SavedVersion,
  type SnapshotChange,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotStorage,
  versionOf,
} from "../informer/snapshot/storage.ts";
import type { ObjectHead } from "../text/object_reader.ts";
import { nextTurn } from "../util/clock.ts";
import { concatenated } from "../util/bytes.ts";
import { errorMessage } from "../util/errors.ts";
import {
  checkFormat,
  checkIdentity,
  corrupt,
  crc32,
  parsed,
  readVersion,
  refusalOf,
  savedHead,
  SnapshotFault,
  truncated,
} from "./saved_values.ts";

/** A store of bytes by name. Its operations may run at the same time. */
export interface ChunkStore {
  readonly description: string;
  readonly chunkBytes: number;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Sets the bytes of a name at once. Only those of {@linkcode MANIFEST} are ever replaced. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  remove(name: string): Promise<void>;
  /** The names of all chunks, if the store can list them; {@linkcode MANIFEST} may be among them. */
  list?(): Promise<string[]>;
}

export const MANIFEST = "manifest";

interface RecordLine {
  /** The name of the chunks, followed by their numbers from `first` on. */
  readonly writer: string;
  readonly first: number;
  readonly chunks: number;
  /** The length of all chunks together. */
  readonly length: number;
  readonly checksum: number;
}

interface Manifest extends SavedVersion {
  readonly identity: SnapshotIdentity;
  readonly records: readonly RecordLine[];
}

interface SavedText {
  readonly head: unknown;
  readonly bytes: Uint8Array;
}

const FORMAT = 2;
/** More records are joined, however small: each costs requests at the next start. */
const MAX_RECORDS = 64;
/** How many chunks are read or written at a time. */
const CHUNKS_AT_ONCE = 6;

export class ChunkedStorage implements SnapshotStorage {
  readonly #store: ChunkStore;
  /** A part of the names of this storage's chunks: another writer's are others. */
  readonly #writer: string = crypto.randomUUID();
  #written = 0;
  #identity: SnapshotIdentity | undefined;
  /** The manifest as the last save left it; `undefined`: the next save must write everything. */
  #manifest: Manifest | undefined;
  /** Chunks that the manifest in the store may name, also one whose save has failed. */
  #named: string[] = [];
  /** Chunks of manifests that readers may still see. */
  #unnamed: string[] = [];
  #hasSwept = false;

  constructor(store: ChunkStore) {
    this.#store = store;
  }

  async load(identity: SnapshotIdentity): Promise<LoadedSnapshot | undefined> {
    this.#identity = identity;
    try {
      const bytes = await this.#store.get(MANIFEST);
      if (bytes === undefined) return undefined;
      const manifest = decodeManifest(bytes);
      this.#named = namesOf(manifest);
      checkIdentity(manifest.identity, identity);
      const content = await this.#content(manifest);
      this.#manifest = manifest;
      return { ...versionOf(manifest), count: content.size, entries: () => batches(content) };
    } catch (error) {
      throw refusalOf(this.#store.description, error);
    }
  }

  async save(change: SnapshotChange): Promise<void> {
    const before = this.#manifest;
    this.#manifest = undefined;
    const identity = this.#identity;
    const first = this.#written;
    try {
      if (identity === undefined) throw new Error("it was not loaded before");
      const records = change.replaces
        ? [await this.#write(change.deletes, putTexts(change))]
        : await this.#add(change, before);
      const manifest = { identity, ...versionOf(change), records };
      await this.#store.put(MANIFEST, encodeManifest(manifest));
      this.#manifest = manifest;
      // The change is saved. Chunks that cannot be removed now are removed later.
      await this.#sweep(manifest).catch(() => {});
    } catch (error) {
      this.#named.push(...namesIn({ writer: this.#writer, first, chunks: this.#written - first }));
      throw new Error(`Cannot save the snapshot in ${this.#store.description}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }

  async #add(change: SnapshotChange, before: Manifest | undefined): Promise<readonly RecordLine[]> {
    if (before === undefined) {
      throw new Error("the save before failed, or there was none: this one must have all objects");
    }
    if (change.puts.length === 0 && change.deletes.length === 0) return before.records;
    const [base, ...since] = before.records;
    const sinceLength = since.reduce((sum, { length }) => sum + length, 0);
    if (since.length + 1 < MAX_RECORDS && sinceLength <= base.length) {
      return [...before.records, await this.#write(change.deletes, putTexts(change))];
    }
    const content = await this.#content(before);
    for (const key of change.deletes) content.delete(key);
    for (const [key, text] of putTexts(change)) content.set(key, text);
    return [await this.#write([], content)];
  }

  async #write(
    deletes: readonly string[],
    texts: Iterable<readonly [key: string, text: SavedText]>,
  ): Promise<RecordLine> {
    const { chunkBytes } = this.#store;
    const first = this.#written;
    let chunks: { readonly name: string; readonly bytes: Uint8Array<ArrayBuffer> }[] = [];
    let parts: Uint8Array[] = [];
    let gathered = 0;
    let length = 0;
    let checksum = 0;
    const endChunk = () => {
      const bytes = concatenated(parts, gathered);
      chunks.push({ name: nameOf(this.#writer, this.#written++), bytes });
      checksum = crc32(bytes, checksum);
      length += gathered;
      [parts, gathered] = [[], 0];
    };
    const put = async () => {
      await Promise.all(chunks.map(({ name, bytes }) => this.#store.put(name, bytes)));
      chunks = [];
    };
    const add = async (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length;) {
        const part = bytes.subarray(at, at + chunkBytes - gathered);
        parts.push(part);
        gathered += part.length;
        at += part.length;
        if (gathered < chunkBytes) continue;
        endChunk();
        if (chunks.length === CHUNKS_AT_ONCE) await put();
        await nextTurn();
      }
    };
    await add(lineOf(deletes));
    for (const [key, { head, bytes }] of texts) {
      await add(lineOf([key, head, bytes.length]));
      await add(bytes);
    }
    if (gathered > 0) endChunk();
    await put();
    return { writer: this.#writer, first, chunks: this.#written - first, length, checksum };
  }

  async #content({ records }: Manifest): Promise<Map<string, SavedText>> {
    const content = new Map<string, SavedText>();
    for (const record of records) {
      const bytes = await this.#read(record);
      let at = 0;
      const readLine = () => {
        const end = bytes.indexOf(NEWLINE, at);
        if (end < 0) throw corrupt("a line of a record in it has no end");
        const value = parsed(decoder.decode(bytes.subarray(at, end)));
        at = end + 1;
        if (!Array.isArray(value)) throw corrupt("a line of a record in it is no list");
        return value;
      };
      for (const key of readLine()) content.delete(key);
      while (at < bytes.length) {
        const [key, head, length] = readLine();
        content.set(key, { head, bytes: bytes.subarray(at, at += length) });
        if (content.size % BATCH === 0) await nextTurn();
      }
    }
    return content;
  }

  async #read(record: RecordLine): Promise<Uint8Array> {
    const names = namesIn(record);
    const parts: Uint8Array[] = [];
    let [length, checksum] = [0, 0];
    for (let at = 0; at < names.length; at += CHUNKS_AT_ONCE) {
      const some = names.slice(at, at + CHUNKS_AT_ONCE);
      for (const [i, bytes] of (await Promise.all(some.map((name) => this.#store.get(name)))).entries()) {
        if (bytes === undefined) throw new SnapshotFault("torn", `its chunk ${some[i]} is missing`);
        checksum = crc32(bytes, checksum);
        length += bytes.length;
        parts.push(bytes);
      }
    }
    if (length < record.length) throw truncated(`a record in it has ${length} bytes of ${record.length}`);
    if (checksum !== record.checksum) throw corrupt("a record in it has another checksum");
    return concatenated(parts, length);
  }

  /**
   * Removes chunks that the last but one manifest named last: a store that is not consistent may show that
   * one for a while. At first, and where the store can list them, all that were left behind, by a kill for
   * one.
   */
  async #sweep(manifest: Manifest): Promise<void> {
    const names = namesOf(manifest);
    const named = new Set([MANIFEST, ...names]);
    const unnamed = this.#named.filter((name) => !named.has(name));
    this.#named = names;
    const listed = this.#hasSwept ? undefined : await this.#store.list?.();
    this.#hasSwept = true;
    const due = listed?.filter((name) => !named.has(name) && !unnamed.includes(name)) ?? this.#unnamed;
    this.#unnamed = [...due, ...unnamed];
    for (let at = 0; at < due.length; at += CHUNKS_AT_ONCE) {
      await Promise.all(due.slice(at, at + CHUNKS_AT_ONCE).map((name) => this.#store.remove(name)));
    }
    this.#unnamed = unnamed;
  }
}

const NEWLINE = 0x0a;
const encoder = /* @__PURE__ */ new TextEncoder();
const decoder = /* @__PURE__ */ new TextDecoder();

/** JSON without line ends, and one behind it. */
function lineOf(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(`${JSON.stringify(value)}\n`);
}

function* putTexts({ puts }: SnapshotChange): Generator<readonly [key: string, text: SavedText]> {
  for (const put of puts) yield [put.key, { head: savedHead(put.head), bytes: encoder.encode(put.json()) }];
}

const BATCH = 200;

function* batches(content: ReadonlyMap<string, SavedText>): Generator<readonly SnapshotEntry[]> {
  let batch: SnapshotEntry[] = [];
  for (const [key, { head, bytes }] of content) {
    const json = decoder.decode(bytes);
    if (batch.push({ key, head: head as ObjectHead, json }) < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

function namesOf({ records }: Manifest): string[] {
  return records.flatMap(namesIn);
}

function namesIn({ writer, first, chunks }: Pick<RecordLine, "writer" | "first" | "chunks">): string[] {
  return Array.from({ length: chunks }, (_, i) => nameOf(writer, first + i));
}

function nameOf(writer: string, number: number): string {
  return `${writer}-${number}`;
}

/** A line with the format and the checksum, and the manifest. */
function encodeManifest(manifest: Manifest): Uint8Array<ArrayBuffer> {
  const body = encoder.encode(JSON.stringify(manifest));
  const line = encoder.encode(`listwatch snapshot ${FORMAT} ${crc32(body)}\n`);
  return concatenated([line, body]);
}

function decodeManifest(bytes: Uint8Array): Manifest {
  const end = bytes.indexOf(NEWLINE) + 1;
  const [, format, checksum] = FIRST_LINE.exec(decoder.decode(bytes.subarray(0, end))) ?? [];
  if (format === undefined) throw new SnapshotFault("foreign", "its manifest is none of @listwatch/cache");
  checkFormat(Number(format), FORMAT);
  const body = bytes.subarray(end);
  if (crc32(body) !== Number(checksum)) throw corrupt("its manifest has another checksum");
  const manifest = parsed(decoder.decode(body)) as Manifest;
  return { identity: manifest.identity, records: manifest.records, ...readVersion(manifest) };
}

const FIRST_LINE = /^listwatch snapshot ([0-9]{1,9}) ([0-9]{1,10})\n$/;
