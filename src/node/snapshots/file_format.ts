/**
 * The format of a snapshot file.
 *
 * ```
 * header   64 bytes: magic, format, lineage, where the index is, its checksum
 * texts    the JSON texts of all objects, one after the other
 * index    what the snapshot is of, its resourceVersion, and of each object its key, metadata, length and checksum
 * journal  changes since, each a record with its number, lengths and checksums
 * ```
 *
 * The header, the texts and the index are the base: it is complete before the file gets its name, and is never written
 * again. The journal only grows. A record that a kill cut off is the last one: what is before it was saved.
 *
 * @module
 */

import type { SnapshotIdentity } from "../../informer/snapshot.ts";
import { splitHead, viewOf, withHead } from "../../snapshots/byte_parts.ts";
import {
  decodeSummary,
  type EncodedChange,
  readVersion,
  type SavedChange,
  type SavedVersion,
} from "../../snapshots/change_record.ts";
import type { Checksum } from "../../snapshots/crc32.ts";
import { EntryTable } from "../../snapshots/entry_table.ts";
import { checkFormat, corrupt, SnapshotFault, truncated } from "../../snapshots/refusals.ts";
import { concatenated } from "../../util/concatenated.ts";
import type { FileToRead } from "./files.ts";

/** The format that this version writes and reads. */
const FORMAT = 1;
/** A byte that no text begins with, and a line end that a transfer as text would change. */
export const SNAPSHOT_MAGIC: readonly number[] = [0x8c, ...new TextEncoder().encode("LWSNAP"), 0x0a];
export const HEADER_BYTES = 64;

/** What the header says. */
export interface FileHeader {
  /** The number that the journal's records have, too: those of another base are not this one's. */
  readonly lineage: number;
  readonly indexAt: number;
  readonly indexLength: number;
  readonly indexChecksum: number;
}

/** The bytes of a header. */
export function encodeHeader(header: FileHeader, checksum: Checksum): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES);
  bytes.set(SNAPSHOT_MAGIC);
  const view = viewOf(bytes);
  view.setUint32(8, FORMAT, true);
  view.setUint32(12, header.lineage, true);
  view.setFloat64(16, header.indexAt, true);
  view.setUint32(24, header.indexLength, true);
  view.setUint32(28, header.indexChecksum, true);
  view.setUint32(60, checksum(bytes.subarray(0, 60)), true);
  return bytes;
}

/**
 * Reads a header. The magic, the format and the checksum have these places in every format.
 *
 * @param bytes The first bytes of the file.
 * @param size The size of the file.
 * @throws {SnapshotFault} It is no header, or one of a newer format.
 */
export function decodeHeader(bytes: Uint8Array, size: number, checksum: Checksum): FileHeader {
  const isCutOff = bytes.length < HEADER_BYTES;
  if (!SNAPSHOT_MAGIC.slice(0, bytes.length).every((byte, i) => bytes[i] === byte)) {
    throw new SnapshotFault("foreign", "the file is no snapshot of @listwatch/cache");
  }
  if (isCutOff) throw truncated(`it has ${bytes.length} bytes, and its header alone ${HEADER_BYTES}`);
  const view = viewOf(bytes);
  if (view.getUint32(60, true) !== checksum(bytes.subarray(0, 60))) {
    throw corrupt("its header has another checksum");
  }
  checkFormat(view.getUint32(8, true), FORMAT);
  const header = {
    lineage: view.getUint32(12, true),
    indexAt: view.getFloat64(16, true),
    indexLength: view.getUint32(24, true),
    indexChecksum: view.getUint32(28, true),
  };
  if (header.indexAt + header.indexLength > size) {
    throw truncated(`it has ${size} bytes of ${header.indexAt + header.indexLength}`);
  }
  return header;
}

/** What the index says besides the objects. */
export interface IndexHead extends SavedVersion {
  readonly identity: SnapshotIdentity;
}

/** The bytes of an index. */
export function encodeIndex(head: IndexHead, table: Uint8Array): Uint8Array<ArrayBuffer> {
  return withHead(head, table);
}

/**
 * Reads an index.
 *
 * @throws {SnapshotFault} It is not the one that the header is for.
 */
export function decodeIndex(
  bytes: Uint8Array,
  header: FileHeader,
  checksum: Checksum,
): { readonly head: IndexHead; readonly table: EntryTable } {
  if (bytes.length !== header.indexLength) throw truncated("its index ends early");
  if (checksum(bytes) !== header.indexChecksum) throw corrupt("its index has another checksum");
  const { head, rest } = splitHead(bytes);
  const { identity } = head as IndexHead;
  return { head: { identity, ...readVersion(head) }, table: new EntryTable(rest) };
}

const RECORD_MAGIC = 0x4352574c; // "LWRC"
const RECORD_HEADER_BYTES = 28;

/** Which record of which journal. */
interface RecordNumber {
  readonly lineage: number;
  /** From 1. */
  readonly number: number;
}

/** The bytes of a record. */
export function encodeRecord(
  { summary, texts, textsLength }: EncodedChange,
  { lineage, number }: RecordNumber,
  checksum: Checksum,
): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(RECORD_HEADER_BYTES);
  const view = viewOf(header);
  view.setUint32(0, RECORD_MAGIC, true);
  view.setUint32(4, lineage, true);
  view.setUint32(8, number, true);
  view.setUint32(12, summary.length, true);
  view.setUint32(16, textsLength, true);
  view.setUint32(20, checksum(summary), true);
  view.setUint32(24, checksum(header.subarray(0, 24)), true);
  return concatenated([header, summary, ...texts], header.length + summary.length + textsLength);
}

/** A change, and where its texts are in the file. */
export interface JournalChange extends SavedChange {
  readonly textsAt: number;
}

/** The complete records of a journal. */
export interface Journal {
  readonly changes: readonly JournalChange[];
  /** Where the last one ends, and the next is written. */
  readonly end: number;
}

/**
 * Reads a journal. What follows its last complete record was being written when the writer was killed, and is left out.
 * Only the last record can be incomplete, as each is on the disk before the next is written: so the texts of
 * the others are not read here.
 *
 * @param at Where it begins.
 * @throws {SnapshotFault} A complete record follows an incomplete one: that is no kill's doing.
 */
export function readJournal(file: FileToRead, at: number, lineage: number, checksum: Checksum): Journal {
  const changes: JournalChange[] = [];
  let end = at;
  for (;;) {
    const record = recordAt(file, end, { lineage, number: changes.length + 1 }, checksum);
    if (record === undefined) break;
    if (record.end === file.size && !hasItsTexts(file, record.change, checksum)) break;
    changes.push(record.change);
    end = record.end;
  }
  if (end < file.size) refuseRecordsAfter(file, end, { lineage, number: changes.length + 1 }, checksum);
  return { changes, end };
}

/** The record at a place, whose texts are not read; `undefined` if there is no complete record of that number. */
function recordAt(
  file: FileToRead,
  at: number,
  wanted: RecordNumber,
  checksum: Checksum,
): { readonly change: JournalChange; readonly end: number } | undefined {
  const header = file.read(at, RECORD_HEADER_BYTES);
  if (header.length < RECORD_HEADER_BYTES) return undefined;
  const view = viewOf(header);
  if (
    view.getUint32(0, true) !== RECORD_MAGIC || view.getUint32(4, true) !== wanted.lineage ||
    view.getUint32(8, true) !== wanted.number || view.getUint32(24, true) !== checksum(header.subarray(0, 24))
  ) return undefined;
  const summaryLength = view.getUint32(12, true);
  const textsAt = at + RECORD_HEADER_BYTES + summaryLength;
  const end = textsAt + view.getUint32(16, true);
  if (end > file.size) return undefined;
  const summary = file.read(at + RECORD_HEADER_BYTES, summaryLength);
  if (checksum(summary) !== view.getUint32(20, true)) return undefined;
  const change = decodeSummary(summary);
  if (textsAt + textsLengthOf(change.table) !== end) {
    throw corrupt("the texts of a change in it have other lengths");
  }
  return { change: { ...change, textsAt }, end };
}

/** Whether the texts of a change are those that were saved. */
function hasItsTexts(file: FileToRead, { table, textsAt }: JournalChange, checksum: Checksum): boolean {
  let at = textsAt;
  for (let place = 0; place < table.count; place++) {
    const text = file.read(at, table.length(place));
    if (checksum(text) !== table.checksum(place)) return false;
    at += text.length;
  }
  return true;
}

function textsLengthOf(table: EntryTable): number {
  let length = 0;
  for (let place = 0; place < table.count; place++) length += table.length(place);
  return length;
}

function refuseRecordsAfter(file: FileToRead, end: number, missing: RecordNumber, checksum: Checksum): void {
  const rest = file.read(end, file.size - end);
  const view = viewOf(rest);
  for (let at = 1; at + RECORD_HEADER_BYTES <= rest.length; at++) {
    if (view.getUint32(at, true) !== RECORD_MAGIC || view.getUint32(at + 4, true) !== missing.lineage) {
      continue;
    }
    const number = view.getUint32(at + 8, true);
    if (
      number <= missing.number || recordAt(file, end + at, { ...missing, number }, checksum) === undefined
    ) {
      continue;
    }
    throw corrupt(`record ${missing.number} of its journal is not complete, and record ${number} is`);
  }
}
