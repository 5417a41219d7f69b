/**
 * The disk of a program that is killed: it has what was saved, and nothing else.
 * @module
 */

import type {
  LoadedSnapshot,
  SnapshotChange,
  SnapshotEntry,
  SnapshotStorage,
} from "@listwatch/cache/informer";
import type { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** How it saves. */
export interface DiskOptions {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly savesInTurn: boolean;
  /** The longest that a save takes; 0 for saves that are done when they are called. */
  readonly saveMs: number;
  /** Whether the server has lost what the store has now. */
  readonly isOfLostHistory: () => boolean;
  /** The number of histories of the server so far. */
  readonly epoch: () => number;
  /** The probability that a save fails, at present. */
  readonly failChance: () => number;
}

/** A storage whose saves take time, fail, or are cut off by a kill. */
export class SnapshotDisk implements SnapshotStorage {
  readonly savesInTurn: boolean;
  readonly objects: Map<string, SnapshotEntry>;
  readonly #options: DiskOptions;
  meta: Pick<SnapshotChange, "resourceVersion" | "savedAtMs" | "needsList"> | undefined;
  /** Whether the server has lost what was saved. */
  isOfLostHistory = false;
  /** Whether the last save has failed. */
  hasFailed = false;
  /** The process is dead: its saves have no effect. */
  #isDetached = false;

  constructor(options: DiskOptions, objects: ReadonlyMap<string, SnapshotEntry> = new Map()) {
    this.#options = options;
    this.savesInTurn = options.savesInTurn;
    this.objects = new Map(objects);
  }

  /** What a kill leaves of it. */
  killed(): SnapshotDisk {
    this.#isDetached = true;
    return this.attached();
  }

  /** The same content, for the next process. */
  attached(): SnapshotDisk {
    const disk = new SnapshotDisk(this.#options, this.objects);
    disk.meta = this.meta;
    disk.isOfLostHistory = this.isOfLostHistory;
    return disk;
  }

  async load(): Promise<LoadedSnapshot | undefined> {
    const { random, saveMs } = this.#options;
    if (saveMs > 0) await this.#pause();
    const { meta } = this;
    if (meta === undefined) return undefined;
    const how = random.pick(["whole", "head", "head"] as const);
    const entries = Array.from(this.objects.values(), ({ key, json, head }): SnapshotEntry => {
      if (how === "whole" || head === undefined) return { key, json };
      return { key, json, head };
    });
    return { ...meta, count: entries.length, entries: () => [entries] };
  }

  save(change: SnapshotChange): void | Promise<void> {
    const { isOfLostHistory, epoch, saveMs } = this.#options;
    const wasLost = isOfLostHistory();
    const before = epoch();
    const isLost = () => wasLost || epoch() !== before;
    if (this.savesInTurn || saveMs === 0) return this.#write(change, isLost);
    return this.#saveLater(change, isLost);
  }

  async #saveLater(change: SnapshotChange, isLost: () => boolean): Promise<void> {
    await this.#pause();
    this.#write(change, isLost);
    await this.#pause();
  }

  #pause(): Promise<void> {
    const { time, random, saveMs } = this.#options;
    return new Promise((resolve) => time.schedule(resolve, random.int(0, saveMs)));
  }

  #write(
    { replaces, puts, deletes, resourceVersion, savedAtMs, needsList }: SnapshotChange,
    isLost: () => boolean,
  ): void {
    if (this.#isDetached) return;
    this.hasFailed = this.#options.random.chance(this.#options.failChance());
    if (this.hasFailed) throw new Error("the disk is full");
    if (replaces) this.objects.clear();
    for (const key of deletes) this.objects.delete(key);
    for (const put of puts) this.objects.set(put.key, { key: put.key, json: put.json(), head: put.head });
    this.meta = { resourceVersion, savedAtMs, needsList };
    this.isOfLostHistory = isLost();
  }
}
