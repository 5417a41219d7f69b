/**
 * One saved change as bytes: what it says of versions, deletes and objects, and the texts of the objects behind that.
 * @module
 */

import type { SnapshotChange } from "../informer/snapshot.ts";
import { splitHead, textBytes, withHead } from "./byte_parts.ts";
import type { Checksum } from "./crc32.ts";
import { EntryTable, EntryTableBuilder } from "./entry_table.ts";
import { corrupt } from "./refusals.ts";

/** What is saved of the version of a content. */
export type SavedVersion = Pick<SnapshotChange, "resourceVersion" | "savedAtMs" | "needsList">;

/** A change as bytes. */
export interface EncodedChange {
  /** Its version, its deletes, and a table of its objects. */
  readonly summary: Uint8Array<ArrayBuffer>;
  /** Their JSON texts. */
  readonly texts: readonly Uint8Array<ArrayBuffer>[];
  /** Of all texts. */
  readonly textsLength: number;
}

/** A decoded summary. */
export interface SavedChange extends SavedVersion {
  readonly deletes: readonly string[];
  readonly table: EntryTable;
}

/** Encodes a change. */
export function encodeChange(change: SnapshotChange, checksum: Checksum): EncodedChange {
  const { puts, deletes } = change;
  const table = new EntryTableBuilder();
  let textsLength = 0;
  const texts = puts.map((put) => {
    const text = textBytes(put.json());
    table.add({ key: put.key, head: put.head, length: text.length, checksum: checksum(text) });
    textsLength += text.length;
    return text;
  });
  return { summary: withHead({ ...versionOf(change), deletes }, table.encode()), texts, textsLength };
}

/**
 * Decodes the summary of a change.
 *
 * @throws {SnapshotFault} The bytes are something else.
 */
export function decodeSummary(summary: Uint8Array): SavedChange {
  const { head, rest } = splitHead(summary);
  const { deletes } = head as { readonly deletes?: unknown };
  if (!Array.isArray(deletes) || !deletes.every((key) => typeof key === "string")) {
    throw corrupt("a change in it has no list of deletes");
  }
  return { ...readVersion(head), deletes, table: new EntryTable(rest) };
}

/** Only its version. */
export function versionOf({ resourceVersion, savedAtMs, needsList }: SavedVersion): SavedVersion {
  return { resourceVersion, savedAtMs, needsList };
}

/**
 * The version in a head.
 *
 * @throws {SnapshotFault} There is none.
 */
export function readVersion(head: unknown): SavedVersion {
  const { resourceVersion, savedAtMs, needsList } = (head ?? {}) as Partial<SavedVersion>;
  if (
    typeof resourceVersion === "string" && typeof savedAtMs === "number" && typeof needsList === "boolean"
  ) {
    return { resourceVersion, savedAtMs, needsList };
  }
  throw corrupt("a version in it is none");
}
