/**
 * A snapshot in chunks, for stores of keys and values that limit the size of a value.
 *
 * ```
 * manifest   what the snapshot is of, its version, and of each record: the names of its chunks, its length and checksum
 * chunks     the texts of a record's objects, one after the other, and the record's summary behind them
 * ```
 *
 * The first record has all objects of its time; the others are changes since. A chunk never changes: each has a name of its
 * own. A save writes the chunks of one more record, then the manifest, and so the snapshot changes from one state to the
 * next when the store replaces the manifest. What no manifest names any more is removed afterwards.
 *
 * @module
 */

import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotStorage,
} from "../informer/snapshot.ts";
import type { ObjectHead } from "../text/object_text.ts";
import { concatenated } from "../util/concatenated.ts";
import { errorMessage } from "../util/errors.ts";
import { bytesText, parsed, textBytes, withHead } from "./byte_parts.ts";
import { decodeSummary, readVersion, type SavedVersion, versionOf } from "./change_record.ts";
import { crc32 } from "./crc32.ts";
import { type EntryTable, EntryTableBuilder } from "./entry_table.ts";
import { checkFormat, checkIdentity, corrupt, refusalOf, SnapshotFault, truncated } from "./refusals.ts";

/** A store of bytes by name. */
export interface ChunkStore {
  /** For people. */
  readonly description: string;
  /** The largest value that it takes, in bytes. */
  readonly chunkBytes: number;
  /** The bytes of all names, in this order; `undefined` for those that are not there. */
  read(names: readonly string[]): Promise<(Uint8Array | undefined)[]>;
  /** Writes chunks, whose names are new, in any order. */
  write(chunks: readonly Chunk[]): Promise<void>;
  /** Reads the manifest. */
  readManifest(): Promise<Uint8Array | undefined>;
  /** Replaces the manifest at once. */
  writeManifest(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Removes chunks; those that are not there, too. */
  remove(names: readonly string[]): Promise<void>;
  /** The names of all chunks, if the store can list them. */
  list?(): Promise<string[]>;
  close?(): void | Promise<void>;
}

/** A value of a {@linkcode ChunkStore}. */
export interface Chunk {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A record in a manifest. */
interface RecordLine {
  /** Its chunks have these names, with the numbers from `first` on. */
  readonly writer: string;
  readonly first: number;
  readonly chunks: number;
  /** Of all chunks. */
  readonly length: number;
  readonly checksum: number;
  /** The record ends with its summary. */
  readonly summaryLength: number;
}

interface Manifest extends SavedVersion {
  readonly identity: SnapshotIdentity;
  readonly records: readonly RecordLine[];
}

const FORMAT = 1;
/** How many records there are before they are joined, however small: each costs requests at the next start. */
const MAX_RECORDS = 64;
/** How many chunks are read or written at a time. */
const CHUNKS_AT_ONCE = 6;

/** Stores a snapshot in a {@linkcode ChunkStore}. */
export class ChunkedStorage implements SnapshotStorage {
  readonly #store: ChunkStore;
  /** Of the names of this storage's chunks: another writer's are others. */
  readonly #writer: string = crypto.randomUUID();
  #written = 0;
  #identity: SnapshotIdentity | undefined;
  /** The manifest as the last save left it; `undefined`: the next save must write everything. */
  #manifest: Manifest | undefined;
  /** Chunks of manifests that readers may still see. */
  #unnamed: string[] = [];
  #hasSwept = false;

  constructor(store: ChunkStore) {
    this.#store = store;
  }

  async load(identity: SnapshotIdentity): Promise<LoadedSnapshot | undefined> {
    this.#identity = identity;
    try {
      const bytes = await this.#store.readManifest();
      if (bytes === undefined) return undefined;
      const manifest = decodeManifest(bytes);
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
    try {
      if (identity === undefined) throw new Error("it was not loaded before");
      if (before === undefined && !change.replaces) {
        throw new Error("the save before failed, or there was none: this one must have all objects");
      }
      const records = change.replaces || before === undefined
        ? [await this.#write(change.deletes, change, putTexts(change))]
        : await this.#add(change, before);
      const manifest = { identity, ...versionOf(change), records };
      await this.#store.writeManifest(encodeManifest(manifest));
      this.#manifest = manifest;
      // The change is saved. What cannot be removed now is removed later.
      await this.#sweep(before, manifest).catch(() => (this.#hasSwept = false));
    } catch (error) {
      throw new Error(`Cannot save the snapshot in ${this.#store.description}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    this.#manifest = undefined;
    await this.#store.close?.();
  }

  async #add(change: SnapshotChange, before: Manifest): Promise<readonly RecordLine[]> {
    if (change.puts.length === 0 && change.deletes.length === 0) return before.records;
    const [base, ...since] = before.records;
    const sinceLength = since.reduce((sum, { length }) => sum + length, 0);
    if (since.length + 1 < MAX_RECORDS && sinceLength <= base.length) {
      return [...before.records, await this.#write(change.deletes, change, putTexts(change))];
    }
    const content = await this.#content(before);
    for (const key of change.deletes) content.delete(key);
    for (const { key } of change.puts) content.delete(key);
    return [await this.#write([], change, joinedTexts(content, change))];
  }

  /** Writes the chunks of a record. */
  async #write(
    deletes: readonly string[],
    version: SavedVersion,
    texts: Iterable<TextToSave>,
  ): Promise<RecordLine> {
    const { chunkBytes } = this.#store;
    const table = new EntryTableBuilder();
    const first = this.#written;
    let chunks: Chunk[] = [];
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
    const add = async (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length;) {
        const part = bytes.subarray(at, at + chunkBytes - gathered);
        parts.push(part);
        gathered += part.length;
        at += part.length;
        if (gathered < chunkBytes) continue;
        endChunk();
        if (chunks.length < CHUNKS_AT_ONCE) continue;
        await this.#store.write(chunks);
        chunks = [];
      }
    };
    for (const { key, head, bytes } of texts) {
      table.add({ key, head, length: bytes.length, checksum: 0 }); // the record has one
      await add(bytes);
    }
    const summary = withHead({ ...versionOf(version), deletes }, table.encode());
    await add(summary);
    if (gathered > 0) endChunk();
    await this.#store.write(chunks);
    return {
      writer: this.#writer,
      first,
      chunks: this.#written - first,
      length,
      checksum,
      summaryLength: summary.length,
    };
  }

  /** All objects of a manifest, by key. */
  async #content({ records }: Manifest): Promise<Map<string, SavedText>> {
    const content = new Map<string, SavedText>();
    for (const record of records) {
      const bytes = await this.#read(record);
      const textsLength = bytes.length - record.summaryLength;
      const { deletes, table } = decodeSummary(bytes.subarray(textsLength));
      for (const key of deletes) content.delete(key);
      let at = 0;
      for (let place = 0; place < table.count; place++) {
        const key = table.keys[place];
        content.delete(key);
        content.set(key, new SavedText(table, place, bytes.subarray(at, at += table.length(place))));
      }
      if (at !== textsLength) throw corrupt("the texts of a record in it have other lengths");
    }
    return content;
  }

  async #read(record: RecordLine): Promise<Uint8Array> {
    const names = namesIn(record);
    const parts: Uint8Array[] = [];
    let [length, checksum] = [0, 0];
    for (let at = 0; at < names.length; at += CHUNKS_AT_ONCE) {
      for (const [i, bytes] of (await this.#store.read(names.slice(at, at + CHUNKS_AT_ONCE))).entries()) {
        if (bytes === undefined) throw new SnapshotFault("torn", `its chunk ${names[at + i]} is missing`);
        checksum = crc32(bytes, checksum);
        length += bytes.length;
        parts.push(bytes);
      }
    }
    if (length < record.length) throw truncated(`a record in it has ${length} bytes of ${record.length}`);
    if (length !== record.length || checksum !== record.checksum) {
      throw corrupt("a record in it has another checksum");
    }
    return concatenated(parts, length);
  }

  /**
   * Removes chunks that the last but one manifest named last: a store that is not consistent may show that one for a while. At
   * first, and where the store can list them, all that were left behind, by a kill for one.
   */
  async #sweep(before: Manifest | undefined, now: Manifest): Promise<void> {
    const named = new Set(namesOf(now));
    const unnamed = namesOf(before).filter((name) => !named.has(name));
    const listed = this.#hasSwept ? undefined : await this.#store.list?.();
    this.#hasSwept = true;
    if (unnamed.length === 0 && listed === undefined) return;
    const due = listed?.filter((name) => !named.has(name) && !unnamed.includes(name)) ?? this.#unnamed;
    this.#unnamed = unnamed;
    await this.#store.remove(due);
  }
}

/** An object to save. */
interface TextToSave {
  readonly key: string;
  readonly head: ObjectHead | undefined;
  readonly bytes: Uint8Array;
}

/** An object that was saved. */
class SavedText implements SnapshotEntry, TextToSave {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly #table: EntryTable;
  readonly #place: number;

  constructor(table: EntryTable, place: number, bytes: Uint8Array) {
    this.key = table.keys[place];
    this.bytes = bytes;
    this.#table = table;
    this.#place = place;
  }

  get head(): ObjectHead | undefined {
    return this.#table.head(this.#place);
  }

  get json(): string {
    return bytesText(this.bytes);
  }
}

function* putTexts({ puts }: SnapshotChange): Generator<TextToSave> {
  for (const put of puts) yield { key: put.key, head: put.head, bytes: textBytes(put.json()) };
}

function* joinedTexts(
  content: ReadonlyMap<string, SavedText>,
  change: SnapshotChange,
): Generator<TextToSave> {
  yield* content.values();
  yield* putTexts(change);
}

const BATCH = 2_000;

function* batches(content: ReadonlyMap<string, SavedText>): Generator<readonly SnapshotEntry[]> {
  let batch: SnapshotEntry[] = [];
  for (const entry of content.values()) {
    if (batch.push(entry) < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

function namesOf(manifest: Manifest | undefined): string[] {
  return (manifest?.records ?? []).flatMap(namesIn);
}

function namesIn({ writer, first, chunks }: RecordLine): string[] {
  return Array.from({ length: chunks }, (_, i) => nameOf(writer, first + i));
}

function nameOf(writer: string, number: number): string {
  return `${writer}-${number}`;
}

/** A line with the format and the checksum, and the manifest. */
function encodeManifest(manifest: Manifest): Uint8Array<ArrayBuffer> {
  const body = textBytes(JSON.stringify(manifest));
  const line = textBytes(`listwatch snapshot ${FORMAT} ${crc32(body)}\n`);
  return concatenated([line, body], line.length + body.length);
}

function decodeManifest(bytes: Uint8Array): Manifest {
  const end = bytes.indexOf(0x0a);
  const [, format, checksum] = FIRST_LINE.exec(latin1(bytes.subarray(0, end + 1))) ?? [];
  if (format === undefined) throw new SnapshotFault("foreign", "its manifest is none of @listwatch/cache");
  checkFormat(Number(format), FORMAT);
  const body = bytes.subarray(end + 1);
  if (crc32(body) !== Number(checksum)) throw corrupt("its manifest has another checksum");
  const manifest = parsed(bytesText(body)) as Manifest;
  return { identity: manifest.identity, records: manifest.records, ...readVersion(manifest) };
}

const FIRST_LINE = /^listwatch snapshot ([0-9]{1,9}) ([0-9]{1,10})\n$/;

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 64));
}
