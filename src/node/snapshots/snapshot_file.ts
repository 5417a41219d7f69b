/**
 * A snapshot file that is read: its content, of which the texts are read when they are needed.
 * @module
 */

import type { SnapshotEntry } from "../../informer/snapshot.ts";
import type { ObjectHead } from "../../text/object_text.ts";
import { bytesText } from "../../snapshots/byte_parts.ts";
import { type SavedVersion, versionOf } from "../../snapshots/change_record.ts";
import type { Checksum } from "../../snapshots/crc32.ts";
import type { EntryTable } from "../../snapshots/entry_table.ts";
import { corrupt, refusalOf } from "../../snapshots/refusals.ts";
import {
  decodeHeader,
  decodeIndex,
  type FileHeader,
  HEADER_BYTES,
  type IndexHead,
  type Journal,
  readJournal,
} from "./file_format.ts";
import type { FileToRead } from "./files.ts";

/** Options of {@linkcode SnapshotFile}. */
export interface SnapshotFileOptions {
  readonly checksum: Checksum;
  /** The name for people. */
  readonly path: string;
  /** A file of at most this size is read at once and all of it is checked; a larger one as it is needed. */
  readonly maxWholeBytes: number;
}

/** An opened snapshot file. */
export class SnapshotFile {
  readonly header: FileHeader;
  readonly identity: IndexHead["identity"];
  readonly version: SavedVersion;
  readonly journal: Journal;
  /** How many objects there are. */
  readonly count: number;
  readonly #file: FileToRead;
  readonly #options: SnapshotFileOptions;
  readonly #base: EntryTable;
  /** The last state of what the journal has, by key; `undefined`: deleted. */
  readonly #changed = new Map<string, FileEntry | undefined>();
  /** Bytes of the file that were read last. */
  #window: { readonly at: number; readonly bytes: Uint8Array };
  #nextAt = 0;

  /**
   * Reads what is needed to find every object.
   *
   * @throws {SnapshotFault} It is no snapshot, or not as it was saved.
   */
  constructor(file: FileToRead, options: SnapshotFileOptions) {
    const { checksum, maxWholeBytes } = options;
    const source = file.size <= maxWholeBytes ? new WholeFile(file) : file;
    this.#file = source;
    this.#options = options;
    this.header = decodeHeader(source.read(0, HEADER_BYTES), file.size, checksum);
    const { indexAt, indexLength, lineage } = this.header;
    const { head, table } = decodeIndex(source.read(indexAt, indexLength), this.header, checksum);
    this.identity = head.identity;
    this.#base = table;
    this.journal = readJournal(source, indexAt + indexLength, lineage, checksum);
    this.version = versionOf(this.journal.changes.at(-1) ?? head);
    this.#window = { at: 0, bytes: new Uint8Array() };
    this.count = this.#readChanges();
    if (source !== file) {
      file.close();
      for (const text of this.texts()) this.bytes(text);
    }
  }

  /** How many objects there are, after the changes of the journal. */
  #readChanges(): number {
    for (const { deletes, table, textsAt } of this.journal.changes) {
      for (const key of deletes) this.#changed.set(key, undefined);
      let at = textsAt;
      for (let place = 0; place < table.count; place++) {
        this.#changed.set(table.keys[place], new FileEntry(this, table, place, at));
        at += table.length(place);
      }
    }
    let count = 0;
    for (const text of this.#changed.values()) if (text !== undefined) count++;
    if (this.#changed.size === 0) return this.#base.count;
    for (const key of this.#base.keys) if (!this.#changed.has(key)) count++;
    return count;
  }

  /** The objects: first those that did not change, in the order of the file. */
  *texts(): Generator<FileEntry> {
    const table = this.#base;
    let at = HEADER_BYTES;
    for (let place = 0; place < table.count; place++) {
      if (this.#changed.size === 0 || !this.#changed.has(table.keys[place])) {
        yield new FileEntry(this, table, place, at);
      }
      at += table.length(place);
    }
    for (const text of this.#changed.values()) if (text !== undefined) yield text;
  }

  /** The objects, in batches. */
  *entries(): Generator<readonly SnapshotEntry[]> {
    let batch: SnapshotEntry[] = [];
    for (const entry of this.texts()) {
      if (batch.push(entry) < BATCH) continue;
      yield batch;
      batch = [];
    }
    if (batch.length > 0) yield batch;
  }

  /**
   * The bytes of an object's text, which are valid until the next call.
   *
   * @throws {SnapshotFault} They are not the ones that were saved.
   */
  bytes({ table, place, at }: FileEntry): Uint8Array {
    const length = table.length(place);
    const bytes = this.#read(at, length);
    if (bytes.length === length && this.#options.checksum(bytes) === table.checksum(place)) return bytes;
    throw corrupt(`the text of ${JSON.stringify(table.keys[place])} has another checksum`);
  }

  /**
   * An object's text.
   *
   * @throws {SnapshotRefusedError} It is not the one that was saved.
   */
  text(entry: FileEntry): string {
    try {
      return bytesText(this.bytes(entry));
    } catch (error) {
      throw refusalOf(this.#options.path, error);
    }
  }

  /** Closes the file: its texts cannot be read any more. */
  close(): void {
    this.#file.close();
  }

  /** After a text, the one behind it is probably read next: then more is read at once. */
  #read(at: number, length: number): Uint8Array {
    if (at < this.#window.at || at + length > this.#window.at + this.#window.bytes.length) {
      const ahead = at === this.#nextAt ? Math.max(length, READ_AHEAD_BYTES) : length;
      this.#window = { at, bytes: this.#file.read(at, ahead) };
    }
    this.#nextAt = at + length;
    const start = at - this.#window.at;
    return this.#window.bytes.subarray(start, start + length);
  }
}

const BATCH = 2_000;
const READ_AHEAD_BYTES = 1 << 18;

/** An object of the file, and where its text is. */
export class FileEntry implements SnapshotEntry {
  readonly isLate: boolean = true;
  readonly table: EntryTable;
  /** Its place in the table. */
  readonly place: number;
  /** Where its text begins in the file. */
  readonly at: number;
  readonly #file: SnapshotFile;

  constructor(file: SnapshotFile, table: EntryTable, place: number, at: number) {
    this.#file = file;
    this.table = table;
    this.place = place;
    this.at = at;
  }

  get key(): string {
    return this.table.keys[this.place];
  }

  get head(): ObjectHead | undefined {
    return this.table.head(this.place);
  }

  get json(): string {
    return this.#file.text(this);
  }
}

/** A file that was read at once. */
class WholeFile implements FileToRead {
  readonly size: number;
  readonly id: string;
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(file: FileToRead) {
    this.size = file.size;
    this.id = file.id;
    this.#bytes = file.read(0, file.size);
  }

  read(position: number, length: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(position, position + length);
  }

  close(): void {}
}
