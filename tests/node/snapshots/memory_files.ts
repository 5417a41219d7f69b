/**
 * Files in memory, which stop after any number of bytes as a killed process does, and lose what a loss of power loses.
 * @module
 */

import type { FileToRead, FileToWrite, SnapshotFiles } from "../../../src/node/snapshots/files.ts";

/** The process was killed. */
export class Killed extends Error {}

class Inode {
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array();
  /** As of the last sync. */
  synced: Uint8Array<ArrayBuffer> = new Uint8Array();
  constructor(readonly id: string) {}
}

/** Options of {@linkcode MemoryFiles}. */
export interface MemoryFilesOptions {
  /** How many steps are done: a byte is written, a file is made, renamed, synced ... `Infinity` by default. */
  readonly steps?: number;
  /** How many bytes there is room for. */
  readonly room?: number;
}

/** A folder of files. */
export class MemoryFiles implements SnapshotFiles {
  names: Map<string, Inode> = new Map();
  syncedNames: Map<string, Inode> = new Map();
  /** The steps done. */
  steps = 0;
  room: number;
  readonly #maxSteps: number;
  #ids = 0;

  constructor({ steps = Infinity, room = Infinity }: MemoryFilesOptions = {}) {
    this.#maxSteps = steps;
    this.room = room;
  }

  /** The same files, for the next process. */
  afterKill(): MemoryFiles {
    const next = new MemoryFiles();
    for (const [path, { bytes, id }] of this.names) next.set(path, bytes, id);
    return next;
  }

  /** The files as a loss of power may leave them: what was not synced is there in part, or not. */
  afterPowerLoss(random: () => number): MemoryFiles {
    const next = new MemoryFiles();
    const names = random() < 0.5 ? this.names : this.syncedNames;
    for (const [path, { bytes, synced, id }] of names) {
      const left = synced.slice();
      if (bytes.length <= synced.length) {
        next.set(path, left, id);
        continue;
      }
      // The file has grown, or not; what it has grown by was written, or is zeros.
      const grown = new Uint8Array(synced.length + Math.floor(random() * (bytes.length - synced.length + 1)));
      grown.set(left);
      const written = synced.length + Math.floor(random() * (grown.length - synced.length + 1));
      grown.set(bytes.subarray(synced.length, written), synced.length);
      next.set(path, grown, id);
    }
    return next;
  }

  /** The bytes of a file; `undefined` if there is none. */
  bytes(path: string): Uint8Array<ArrayBuffer> | undefined {
    return this.names.get(path)?.bytes;
  }

  /** Sets the bytes of a file. */
  set(path: string, bytes: Uint8Array, id = `set ${++this.#ids}`): void {
    const inode = new Inode(id);
    inode.bytes = bytes.slice();
    inode.synced = inode.bytes;
    this.names.set(path, inode);
    this.syncedNames.set(path, inode);
  }

  openToRead(path: string): FileToRead | undefined {
    const inode = this.names.get(path);
    return inode && {
      size: inode.bytes.length,
      id: inode.id,
      read: (position, length) => inode.bytes.slice(position, position + length),
      close() {},
    };
  }

  async openToWrite(path: string): Promise<FileToWrite> {
    await this.#step();
    const inode = this.names.get(path);
    if (inode === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    return this.#toWrite(inode);
  }

  async create(path: string): Promise<FileToWrite> {
    await this.#step();
    const inode = new Inode(`created ${++this.#ids} after ${this.steps}`);
    this.names.set(path, inode);
    return this.#toWrite(inode);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step();
    const inode = this.names.get(from);
    if (inode === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    this.names.delete(from);
    this.names.set(to, inode);
  }

  async remove(path: string): Promise<void> {
    await this.#step();
    this.names.delete(path);
  }

  async syncFolderOf(): Promise<void> {
    await this.#step();
    this.syncedNames = new Map(this.names);
  }

  async makeFolderOf(): Promise<void> {
    await this.#step();
  }

  async #step(): Promise<void> {
    await undefined;
    if (this.steps >= this.#maxSteps) throw new Killed();
    this.steps++;
  }

  #toWrite(inode: Inode): FileToWrite {
    let isClosed = false;
    const refuseClosed = () => {
      if (isClosed) throw new Error("the file is closed");
    };
    return {
      id: inode.id,
      write: async (bytes, position) => {
        await undefined;
        refuseClosed();
        const fits = Math.max(0, Math.min(bytes.length, this.room));
        const done = Math.min(fits, this.#maxSteps - this.steps);
        const grown = new Uint8Array(Math.max(inode.bytes.length, position + done));
        grown.set(inode.bytes);
        grown.set(bytes.subarray(0, done), position);
        inode.bytes = grown;
        this.steps += done;
        this.room -= done;
        if (done < fits) throw new Killed();
        if (fits < bytes.length) {
          throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
        }
      },
      truncate: async (length) => {
        await this.#step();
        inode.bytes = inode.bytes.slice(0, length);
      },
      sync: async () => {
        refuseClosed();
        await this.#step();
        inode.synced = inode.bytes;
      },
      close: async () => {
        await undefined;
        refuseClosed();
        isClosed = true;
      },
    };
  }
}
