/**
 * A snapshot in a file.
 * @module
 */

import * as zlib from "node:zlib";
import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../../informer/informer_snapshot.ts";
import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotIdentity,
  SnapshotStorage,
} from "../../informer/snapshot.ts";
import { encodeChange, type EncodedChange } from "../../snapshots/change_record.ts";
import { type Checksum, crc32 } from "../../snapshots/crc32.ts";
import { textBytes } from "../../snapshots/byte_parts.ts";
import { checkIdentity, refusalOf, SnapshotFault } from "../../snapshots/refusals.ts";
import { realClock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { type TextToWrite, writeBase } from "./base_writer.ts";
import { encodeRecord } from "./file_format.ts";
import { type FileToRead, type FileToWrite, realFiles, type SnapshotFiles } from "./files.ts";
import { SnapshotFile } from "./snapshot_file.ts";
import { FileLock, type SnapshotLock } from "./snapshot_lock.ts";

/**
 * Keeps the snapshot of an informer in a file. For Node, Deno and Bun.
 *
 * - **Saving** appends what changed, and waits until it is on the disk. When that is half as long as the rest, everything is written
 *   to another file, which then replaces this one. So a kill at any moment leaves what the last save wrote.
 * - **Loading** reads which objects there are. The texts of a file above 32 MB are read when they are needed, so that
 *   100,000 pods are there in less than half a second: use `storage: texts()`, as objects would have to be parsed first.
 * - **The file** has what the objects have, and only its owner may read it (mode 0600). A missing folder is created with mode
 *   0700. Beside the file are `.lock`, which names the process that writes it, and for moments `.new`.
 * - **One informer per file**: for a second one, in this process or another, the snapshot is refused, with a `SnapshotInUseError`
 *   as the cause; it lists, and saves as soon as the first one has stopped.
 * - **A file that is no snapshot** is refused, and renamed to `.foreign` when the first snapshot is saved.
 * - **A full disk** fails the save, which the informer reports; the file keeps what was saved before.
 *
 * @param path The file. Its folder need not exist.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer, texts } from "@listwatch/cache";
 * import { fileSnapshot } from "@listwatch/cache/node";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), {
 *   storage: texts(),
 *   snapshot: fileSnapshot("/var/cache/listwatch/pods.snap"),
 * });
 * console.log(informer.indexer.size);
 * ```
 *
 * @category Snapshots
 */
export function fileSnapshot(path: string, options: SnapshotOptions = {}): InformerSnapshot {
  return newInformerSnapshot(newFileStorage(path), options);
}

/** What tests replace. */
export interface FileStorageOptions {
  readonly files?: SnapshotFiles;
  readonly lock?: SnapshotLock;
  readonly checksum?: Checksum;
  readonly maxWholeBytes?: number;
  /** The journal is joined with the base when it is longer than this and than half of the base. */
  readonly minJournalBytes?: number;
  /** A number that no other base of the same path has. */
  readonly newLineage?: () => number;
}

/** Makes the storage of {@linkcode fileSnapshot}. */
export function newFileStorage(path: string, options: FileStorageOptions = {}): SnapshotStorage {
  return new FileStorage(path, {
    files: realFiles,
    lock: new FileLock(path, { token: crypto.randomUUID(), clock: realClock }),
    // Node 22.0 has none.
    checksum: (zlib as { readonly crc32?: Checksum }).crc32 ?? crc32,
    maxWholeBytes: 32 << 20,
    minJournalBytes: 4 << 20,
    newLineage: () => crypto.getRandomValues(new Uint32Array(1))[0],
    ...options,
  });
}

class FileStorage implements SnapshotStorage {
  readonly #path: string;
  readonly #options: Required<FileStorageOptions>;
  #identity: SnapshotIdentity | undefined;
  /** The file as the last save left it; `undefined`: the next save must write all of it. */
  #current: CurrentFile | undefined;
  /** Something else is at the path: it is moved, and not lost. */
  #isForeign = false;
  /** Closes files of which texts are still to be read when no text needs them any more. */
  readonly #closing = new FinalizationRegistry<FileToRead>((file) => file.close());

  constructor(path: string, options: Required<FileStorageOptions>) {
    this.#path = path;
    this.#options = options;
  }

  async load(identity: SnapshotIdentity): Promise<LoadedSnapshot | undefined> {
    this.#identity = identity;
    const { files, lock } = this.#options;
    try {
      await files.makeFolderOf(this.#path);
      lock.hold();
      await files.remove(this.#newPath);
      const source = files.openToRead(this.#path);
      if (source === undefined) return undefined;
      const file = this.#openOf(source, identity);
      this.#closing.register(file, source);
      this.#current = currentFile(source.id, file);
      return { ...file.version, count: file.count, entries: () => file.entries() };
    } catch (error) {
      throw refusalOf(this.#path, error);
    }
  }

  async save(change: SnapshotChange): Promise<void> {
    const current = this.#current;
    // If this save fails, what the file has is no longer what the informer believes it has.
    this.#current = undefined;
    try {
      this.#options.lock.hold();
      if (change.replaces) {
        this.#current = await this.#replace(change, putTexts(change, this.#options.checksum));
      } else if (current === undefined) {
        throw new Error("the save before failed, or there was none: this one must have all objects");
      } else this.#current = await this.#add(change, current);
    } catch (error) {
      throw new Error(`Cannot save the snapshot ${this.#path}: ${errorMessage(error)}`, { cause: error });
    } finally {
      if (current?.writer !== this.#current?.writer) await current?.writer?.close();
    }
  }

  async close(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    await current?.writer?.close();
    this.#options.lock.release();
  }

  /** Where a new file is written before it replaces the old one. */
  get #newPath(): string {
    return `${this.#path}.new`;
  }

  #openOf(source: FileToRead, identity: SnapshotIdentity): SnapshotFile {
    try {
      const file = this.#open(source);
      checkIdentity(file.identity, identity);
      return file;
    } catch (error) {
      source.close();
      this.#isForeign = error instanceof SnapshotFault && error.reason === "foreign";
      throw error;
    }
  }

  #open(source: FileToRead): SnapshotFile {
    const { checksum, maxWholeBytes } = this.#options;
    return new SnapshotFile(source, { checksum, maxWholeBytes, path: this.#path });
  }

  /** Appends the change, or writes a file with everything in it. */
  async #add(change: SnapshotChange, current: CurrentFile): Promise<CurrentFile> {
    const { files, checksum, minJournalBytes } = this.#options;
    const { lineage, records, baseLength, end } = current;
    const maxJournalBytes = Math.max(minJournalBytes, baseLength / 2);
    if (change.puts.length > MAX_RECORD_PUTS) return await this.#join(change, current);
    const encoded = encodeChange(change, checksum);
    if (end - baseLength + lengthOf(encoded) > maxJournalBytes) return await this.#join(change, current);
    const record = encodeRecord(encoded, { lineage, number: records + 1 }, checksum);
    const writer = current.writer ?? await files.openToWrite(this.#path);
    try {
      this.#checkIsOurs(current);
      // What a kill left behind the last complete record.
      if (current.writer === undefined) await writer.truncate(end);
      await writer.write(record, end);
      await writer.sync();
      return { ...current, writer, records: records + 1, end: end + record.length };
    } catch (error) {
      if (writer !== current.writer) await writer.close();
      throw error;
    }
  }

  /** Writes the objects of the file, as the change leaves them, into a new one. */
  async #join(change: SnapshotChange, current: CurrentFile): Promise<CurrentFile> {
    const source = this.#options.files.openToRead(this.#path);
    if (source === undefined) throw new Error("the file was removed");
    try {
      if (source.id !== current.id) throw new Error("another process replaced the file");
      return await this.#replace(change, joinedTexts(this.#open(source), change, this.#options.checksum));
    } finally {
      source.close();
    }
  }

  async #replace(change: SnapshotChange, texts: Iterable<TextToWrite>): Promise<CurrentFile> {
    const { files, checksum, newLineage } = this.#options;
    const identity = this.#identity;
    if (identity === undefined) throw new Error("it was not loaded before");
    const lineage = newLineage();
    const writer = await files.create(this.#newPath);
    try {
      const { indexAt, indexLength } = await writeBase(writer, texts, {
        identity,
        version: change,
        lineage,
        checksum,
      });
      if (this.#isForeign) await files.rename(this.#path, `${this.#path}.foreign`);
      this.#isForeign = false;
      await files.rename(this.#newPath, this.#path);
      await files.syncFolderOf(this.#path);
      const baseLength = indexAt + indexLength;
      return { id: writer.id, writer, lineage, records: 0, baseLength, end: baseLength };
    } catch (error) {
      await writer.close();
      await files.remove(this.#newPath).catch(() => {}); // the disk has room again
      throw error;
    }
  }

  /** The lock says so, too, unless its owner was taken for ended. */
  #checkIsOurs({ id }: CurrentFile): void {
    const file = this.#options.files.openToRead(this.#path);
    file?.close();
    if (file?.id !== id) throw new Error("another process replaced or removed the file");
  }
}

/** More objects than that in one change are not put into a record: it is made in one turn of the event loop. */
const MAX_RECORD_PUTS = 1_000;

/** A file that can be appended to. */
interface CurrentFile {
  readonly id: string;
  /** Open since the first save. */
  readonly writer: FileToWrite | undefined;
  readonly lineage: number;
  /** How many its journal has. */
  readonly records: number;
  readonly baseLength: number;
  /** Where the next record is written. */
  readonly end: number;
}

function currentFile(id: string, { header, journal }: SnapshotFile): CurrentFile {
  return {
    id,
    writer: undefined,
    lineage: header.lineage,
    records: journal.changes.length,
    baseLength: header.indexAt + header.indexLength,
    end: journal.end,
  };
}

function lengthOf({ summary, textsLength }: EncodedChange): number {
  return summary.length + textsLength;
}

function* putTexts({ puts }: SnapshotChange, checksum: Checksum): Generator<TextToWrite> {
  for (const put of puts) {
    const bytes = textBytes(put.json());
    yield { bytes, entry: { key: put.key, head: put.head, length: bytes.length, checksum: checksum(bytes) } };
  }
}

/** What a file has after a change: first what did not change, in its order. */
function* joinedTexts(
  file: SnapshotFile,
  change: SnapshotChange,
  checksum: Checksum,
): Generator<TextToWrite> {
  const changed = new Set(change.deletes);
  for (const { key } of change.puts) changed.add(key);
  for (const text of file.texts()) {
    if (!changed.has(text.table.keys[text.place])) {
      yield { bytes: file.bytes(text), entry: text.table.entry(text.place) };
    }
  }
  yield* putTexts(change, checksum);
}
