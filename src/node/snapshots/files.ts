/**
 * The file system, as snapshots need it.
 * @module
 */

import * as fs from "node:fs";
import { dirname } from "node:path";

/** A file that is read. Reads are synchronous, since those of a store are. */
export interface FileToRead {
  readonly size: number;
  /** The same for every opening of one file, and another one for the file that replaces it. */
  readonly id: string;
  /** Fewer bytes than that only at the end of the file. */
  read(position: number, length: number): Uint8Array<ArrayBuffer>;
  close(): void;
}

/** A file that is written. */
export interface FileToWrite {
  readonly id: string;
  /** Writes all of the bytes, or rejects. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  truncate(length: number): Promise<void>;
  /** Resolves when what was written would survive a loss of power. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The operations of snapshots on files: tests replace them. */
export interface SnapshotFiles {
  /** `undefined`: there is no such file. */
  openToRead(path: string): FileToRead | undefined;
  /** Opens a file that exists. */
  openToWrite(path: string): Promise<FileToWrite>;
  /** Makes an empty file, in place of one that is there, which only its owner may read and write. */
  create(path: string): Promise<FileToWrite>;
  /** Replaces the file at `to` at once. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file, if it is there. */
  remove(path: string): Promise<void>;
  /** Makes renames in a file's folder survive a loss of power, where the system can do that. */
  syncFolderOf(path: string): Promise<void>;
  /** Makes a file's folder, if it is missing, which only its owner may open. */
  makeFolderOf(path: string): Promise<void>;
}

/** The files of this machine. */
export const realFiles: SnapshotFiles = {
  openToRead: (path) => {
    let descriptor: number;
    try {
      descriptor = fs.openSync(path, "r");
    } catch (error) {
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    }
    try {
      return new RealFileToRead(descriptor);
    } catch (error) {
      fs.closeSync(descriptor);
      throw error;
    }
  },
  openToWrite: (path) => openToWrite(path, "r+"),
  create: async (path) => {
    // What was left there may have another mode, or be a link to another file.
    await fs.promises.rm(path, { force: true });
    return await openToWrite(path, "wx");
  },
  rename: (from, to) => fs.promises.rename(from, to),
  remove: (path) => fs.promises.rm(path, { force: true }),
  syncFolderOf: async (path) => {
    // Windows cannot open folders, and its renames need no such step.
    const folder = await fs.promises.open(dirname(path), "r").catch(() => undefined);
    try {
      await folder?.sync();
    } finally {
      await folder?.close();
    }
  },
  makeFolderOf: async (path) => {
    await fs.promises.mkdir(dirname(path), { recursive: true, mode: 0o700 });
  },
};

const OWNER_ONLY = 0o600;

class RealFileToRead implements FileToRead {
  readonly size: number;
  readonly id: string;
  readonly #descriptor: number;
  #isClosed = false;

  constructor(descriptor: number) {
    const stat = fs.fstatSync(descriptor);
    if (!stat.isFile()) throw new Error("it is no file");
    this.size = stat.size;
    this.id = `${stat.dev}/${stat.ino}`;
    this.#descriptor = descriptor;
  }

  read(position: number, length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(Math.min(length, Math.max(0, this.size - position)));
    let at = 0;
    while (at < bytes.length) {
      const read = fs.readSync(this.#descriptor, bytes, at, bytes.length - at, position + at);
      if (read === 0) return bytes.subarray(0, at);
      at += read;
    }
    return bytes;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    fs.closeSync(this.#descriptor);
  }
}

async function openToWrite(path: string, flags: string): Promise<FileToWrite> {
  const handle = await fs.promises.open(path, flags, OWNER_ONLY);
  try {
    const stat = await handle.stat();
    return {
      id: `${stat.dev}/${stat.ino}`,
      write: async (bytes, position) => {
        for (let at = 0; at < bytes.length;) {
          const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at);
          if (bytesWritten === 0) throw new Error("nothing more could be written");
          at += bytesWritten;
        }
      },
      truncate: (length) => handle.truncate(length),
      sync: () => handle.datasync(),
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Whether an error of the file system has a code. */
export function hasCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown } | null)?.code === code;
}
