/** Why a snapshot is refused. */

import {
  type SnapshotIdentity,
  type SnapshotRefusal,
  SnapshotRefusedError,
} from "../informer/snapshot/storage.ts";
import { errorMessage } from "../util/errors.ts";

/** What is wrong with saved bytes. The storage adds where they are: {@linkcode refusalOf}. */
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

/** Bytes at the end are missing. */
export function truncated(detail: string): SnapshotFault {
  return new SnapshotFault("truncated", detail);
}

/** What a storage throws when its content cannot be used; `where` is its name for people. */
export function refusalOf(where: string, error: unknown): SnapshotRefusedError {
  if (error instanceof SnapshotRefusedError) return error;
  const reason = error instanceof SnapshotFault ? error.reason : "unreadable";
  return new SnapshotRefusedError(reason, `${where}: ${errorMessage(error)}`, { cause: error });
}

/**
 * Refuses what another version of this library wrote.
 *
 * @throws {SnapshotFault} The formats differ.
 */
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

/**
 * Refuses the snapshot of something else.
 *
 * @throws {SnapshotFault} The identities differ.
 */
export function checkIdentity(saved: SnapshotIdentity | undefined, wanted: SnapshotIdentity): void {
  for (const part of ["resource", "source"] as const) {
    if (saved?.[part] === wanted[part]) continue;
    throw new SnapshotFault(
      "other-identity",
      `its ${part} is ${JSON.stringify(saved?.[part])}, not ${JSON.stringify(wanted[part])}`,
    );
  }
}
