/** The saved parts of a snapshot with their checksums, and why a snapshot is refused. */

import {
  type SavedVersion,
  type SnapshotIdentity,
  type SnapshotRefusal,
  SnapshotRefusedError,
  versionOf,
} from "../informer/snapshot/storage.ts";
import type { ObjectHead } from "../text/object_reader.ts";
import { errorMessage } from "../util/errors.ts";

export function readVersion(value: unknown): SavedVersion {
  const version = (value ?? {}) as SavedVersion;
  const { resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid } = version;
  if (
    typeof resourceVersion === "string" && typeof savedAtMs === "number" && typeof needsList === "boolean" &&
    (watchedVersion === undefined || typeof watchedVersion === "string") &&
    (clusterUid === undefined || typeof clusterUid === "string")
  ) return versionOf(version);
  throw corrupt("a version in it is none");
}

/** The part of a head that informers need. */
export function savedHead({ apiVersion, kind, metadata }: ObjectHead): ObjectHead {
  const { name, namespace, uid, resourceVersion, labels } = metadata ?? {};
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels } } as ObjectHead;
}

export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw corrupt("a value in it is no JSON", error);
  }
}

/** CRC-32, eight bytes at a time, for runtimes without `zlib.crc32`; `before`: that of earlier bytes. */
export function crc32(bytes: Uint8Array, before: number = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES;
  let crc = ~before;
  let at = 0;
  for (const last = bytes.length - 7; at < last; at += 8) {
    crc ^= bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24;
    crc = t7[crc & 255] ^ t6[crc >>> 8 & 255] ^ t5[crc >>> 16 & 255] ^ t4[crc >>> 24] ^
      t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) crc = crc >>> 8 ^ t0[(crc ^ bytes[at]) & 255];
  return ~crc >>> 0;
}

const TABLES: readonly Uint32Array[] = /* @__PURE__ */ newTables();

function newTables(): Uint32Array[] {
  const tables = Array.from({ length: 8 }, () => new Uint32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >>> 1 ^ 0xedb88320 : crc >>> 1;
    tables[0][byte] = crc;
  }
  for (let byte = 0; byte < 256; byte++) {
    for (let i = 1; i < 8; i++) {
      const before = tables[i - 1][byte];
      tables[i][byte] = before >>> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}

export class SnapshotFault extends Error {
  readonly reason: SnapshotRefusal;

  constructor(reason: SnapshotRefusal, detail: string, options?: { readonly cause?: unknown }) {
    super(detail, options);
    this.name = "SnapshotFault";
    this.reason = reason;
  }
}

/** The bytes are not the ones that were saved. */
export function corrupt(detail: string, cause?: unknown): SnapshotFault {
  return new SnapshotFault("corrupt", detail, { cause });
}

export function truncated(detail: string): SnapshotFault {
  return new SnapshotFault("truncated", detail);
}

/** The error of a storage whose content cannot be used; `where` is the storage's name for people. */
export function refusalOf(where: string, error: unknown): SnapshotRefusedError {
  if (error instanceof SnapshotRefusedError) return error;
  const reason = error instanceof SnapshotFault ? error.reason : "unreadable";
  return new SnapshotRefusedError(reason, `${where}: ${errorMessage(error)}`, { cause: error });
}

/** Refuses what another version of this library wrote. */
export function checkFormat(format: unknown, known: number): void {
  if (format === known) return;
  if (typeof format === "number" && format > known) {
    throw new SnapshotFault(
      "newer-format",
      `its format is ${format}, and this version of the library reads format ${known}`,
    );
  }
  throw corrupt(`its format is ${JSON.stringify(format)}`);
}

export function checkIdentity(saved: SnapshotIdentity | undefined, wanted: SnapshotIdentity): void {
  for (const part of ["resource", "source"] as const) {
    if (saved?.[part] === wanted[part]) continue;
    throw new SnapshotFault(
      "other-identity",
      `its ${part} is ${JSON.stringify(saved?.[part])}, not ${JSON.stringify(wanted[part])}`,
    );
  }
}
