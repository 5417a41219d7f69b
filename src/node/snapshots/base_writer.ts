/**
 * Writes the base of a snapshot file: texts, index, header.
 * @module
 */

import type { SnapshotIdentity } from "../../informer/snapshot.ts";
import { type SavedVersion, versionOf } from "../../snapshots/change_record.ts";
import type { Checksum } from "../../snapshots/crc32.ts";
import { EntryTableBuilder, type TableEntry } from "../../snapshots/entry_table.ts";
import { concatenated } from "../../util/concatenated.ts";
import { encodeHeader, encodeIndex, type FileHeader, HEADER_BYTES } from "./file_format.ts";
import type { FileToWrite } from "./files.ts";

/** An object to write, and the bytes of its text. They are copied: the caller may reuse them. */
export interface TextToWrite {
  readonly entry: TableEntry;
  readonly bytes: Uint8Array;
}

/**
 * Writes a base into an empty file, with others' turns of the event loop between its parts. The header is written last: a
 * file without it is not complete.
 *
 * @returns Its header.
 */
export async function writeBase(
  file: FileToWrite,
  texts: Iterable<TextToWrite>,
  { identity, version, lineage, checksum }: {
    readonly identity: SnapshotIdentity;
    readonly version: SavedVersion;
    readonly lineage: number;
    readonly checksum: Checksum;
  },
): Promise<FileHeader> {
  const table = new EntryTableBuilder();
  let parts: Uint8Array[] = [];
  let gathered = 0;
  let at = HEADER_BYTES;
  const write = async () => {
    const bytes = concatenated(parts, gathered);
    [parts, gathered] = [[], 0];
    await file.write(bytes, at);
    at += bytes.length;
  };
  for (const { entry, bytes } of texts) {
    table.add(entry);
    parts.push(bytes.slice());
    gathered += bytes.length;
    if (gathered >= WRITE_BYTES) await write();
  }
  if (gathered > 0) await write();
  const index = encodeIndex({ identity, ...versionOf(version) }, table.encode());
  await file.write(index, at);
  const header = { lineage, indexAt: at, indexLength: index.length, indexChecksum: checksum(index) };
  await file.write(encodeHeader(header, checksum), 0);
  await file.sync();
  return header;
}

/** How much is written at once: the longest time without a turn of the event loop is what it takes to encode this. */
const WRITE_BYTES = 1 << 20;
