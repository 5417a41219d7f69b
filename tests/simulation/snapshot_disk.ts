/**
 * The disk of a program that is killed: it has what was saved, and nothing else.
 * @module
 */

import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotEntry,
  SnapshotIdentity,
  SnapshotStorage,
} from "@listwatch/cache/informer";
import { abortable } from "../../src/util/abort.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** How it saves and loads. */
export interface DiskOptions {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly savesInTurn: boolean;
  /** The longest that a save takes; 0 for saves that are done when they are called. */
  readonly saveMs: number;
  /** The longest that each part of a load takes. */
  readonly loadMs: number;
  /** Whether a load ends when its signal is aborted. */
  readonly heedsSignal: boolean;
  /** The probability that a load fails in its middle. */
  readonly lossChance: number;
  /** Whether the server has lost what the store has now. */
  readonly isOfLostHistory: () => boolean;
  /** The number of histories of the server so far. */
  readonly epoch: () => number;
  /** The probability that a save fails, at present. */
  readonly failChance: () => number;
  readonly violate: (text: string) => void;
}

/** How many objects a batch of a load has. */
const BATCH = 700;

/** A storage whose loads and saves take time, fail, or are cut off by a kill. */
export class SnapshotDisk implements SnapshotStorage {
  readonly savesInTurn: boolean;
  readonly objects: Map<string, SnapshotEntry>;
  readonly #options: DiskOptions;
  meta: Omit<SnapshotChange, "replaces" | "puts" | "deletes"> | undefined;
  /** Whether the server has lost what was saved. */
  isOfLostHistory = false;
  /** Whether the last save has failed. */
  hasFailed = false;
  /** Whether the stop did not wait for its end. */
  isLeft = false;
  /** The process is dead: its saves have no effect. */
  #isDetached = false;
  #isLoading = false;
  /** Whether this process has it open: no other one can, until this one has closed it. */
  #isLocked = false;

  constructor(options: DiskOptions, objects: ReadonlyMap<string, SnapshotEntry> = new Map()) {
    this.#options = options;
    this.savesInTurn = options.savesInTurn;
    this.objects = new Map(objects);
  }

  /** Whether a load runs. */
  get isLoading(): boolean {
    return this.#isLoading;
  }

  /** Whether it may lack what the informer had at its stop: the last save has failed, or was not awaited. */
  get isBehind(): boolean {
    return this.hasFailed || this.isLeft;
  }

  /** What a kill leaves of it. */
  killed(): SnapshotDisk {
    this.#isDetached = true;
    return this.attached();
  }

  /** The disk with its content, for the next process. */
  attached(): SnapshotDisk {
    if (this.#isLocked && !this.#isDetached && !this.isLeft) {
      this.#options.violate("its storage is still open after the stop");
    }
    const disk = new SnapshotDisk(this.#options, this.objects);
    disk.meta = this.meta;
    disk.isOfLostHistory = this.isOfLostHistory;
    return disk;
  }

  async load(
    _identity: SnapshotIdentity,
    signal?: AbortSignal,
  ): Promise<LoadedSnapshot | undefined> {
    const heeded = this.#options.heedsSignal ? signal : undefined;
    this.#isLoading = true;
    try {
      await this.#pause(this.#options.loadMs, heeded);
      this.#isLocked = true;
      await this.#pause(this.#options.loadMs, heeded);
    } finally {
      this.#isLoading = false;
    }
    const { meta } = this;
    if (meta === undefined) return undefined;
    const all = this.#entries();
    return { ...meta, count: all.length, entries: () => this.#batches(all, heeded) };
  }

  save(change: SnapshotChange): void | Promise<void> {
    const { isOfLostHistory, epoch, saveMs } = this.#options;
    if (!this.#isDetached && this.#isLoading) this.#options.violate("saves while its load still runs");
    const wasLost = isOfLostHistory();
    const before = epoch();
    const isLost = () => wasLost || epoch() !== before;
    if (this.savesInTurn || saveMs === 0) return this.#write(change, isLost);
    return this.#saveLater(change, isLost);
  }

  close(): void {
    if (!this.#isDetached && this.#isLoading) this.#options.violate("closes its storage while its load runs");
    this.#isLocked = false;
  }

  #entries(): SnapshotEntry[] {
    const hasHeads = this.#options.random.chance(0.7);
    return Array.from(
      this.objects.values(),
      ({ key, json, head }): SnapshotEntry =>
        head === undefined || !hasHeads ? { key, json } : { key, json, head },
    );
  }

  async *#batches(
    all: readonly SnapshotEntry[],
    heeded: AbortSignal | undefined,
  ): AsyncIterable<readonly SnapshotEntry[]> {
    this.#isLoading = true;
    try {
      for (let at = 0; at < all.length; at += BATCH) {
        yield all.slice(at, at + BATCH);
        if (this.#options.random.chance(this.#options.lossChance)) throw new Error("a text is lost");
        await this.#pause(this.#options.loadMs, heeded);
      }
    } finally {
      this.#isLoading = false;
    }
  }

  async #saveLater(change: SnapshotChange, isLost: () => boolean): Promise<void> {
    await this.#pause(this.#options.saveMs);
    this.#write(change, isLost);
    await this.#pause(this.#options.saveMs);
  }

  async #pause(longestMs: number, heeded?: AbortSignal): Promise<void> {
    if (longestMs === 0) return;
    const { time, random } = this.#options;
    const pause = new Promise<void>((resolve) => time.schedule(resolve, random.int(0, longestMs)));
    await abortable(pause, heeded);
  }

  #write({ replaces, puts, deletes, ...version }: SnapshotChange, isLost: () => boolean): void {
    if (this.#isDetached) return;
    this.hasFailed = this.#options.random.chance(this.#options.failChance());
    if (this.hasFailed) throw new Error("the disk is full");
    const entries = puts.map((put) => ({ key: put.key, json: put.json(), head: put.head }));
    if (replaces) this.objects.clear();
    for (const key of deletes) this.objects.delete(key);
    for (const entry of entries) this.objects.set(entry.key, entry);
    this.meta = version;
    this.isOfLostHistory = isLost();
  }
}
