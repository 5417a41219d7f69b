/**
 * What a node has saved: each save is there as a whole or not at
 * all, and one that is running at a kill is lost.
 * @module
 */

import {
  type InformerSnapshot,
  type LoadedSnapshot,
  newInformerSnapshot,
  type SnapshotChange,
  type SnapshotStorage,
} from "@listwatch/cache/informer";
import { type SimObject, stateOf } from "../cluster_model.ts";
import type { SeededRandom } from "../seeded_random.ts";
import type { VirtualTime } from "../virtual_time.ts";

/** The content that was saved last, and its version. */
interface Saved {
  readonly resourceVersion: string;
  readonly savedAtMs: number;
  readonly needsList: boolean;
  readonly objects: ReadonlyMap<string, string>;
}

/** How a node saves: in the turn of each change, or some time later. */
export type SaveKind = "none" | "later" | "in the turn";

/** How the disk of a node is afterwards, when the node starts again. */
export type DiskFate = "kept" | "lost" | "older";

/** What a disk needs of its node. */
export interface DiskOptions {
  readonly kind: Exclude<SaveKind, "none">;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  /** Something is saved. */
  readonly onSaved: (version: number, objects: ReadonlyMap<string, SimObject>) => void;
}

const LONGEST_SAVE_MS = 400;

/** The disk of one node, for all of its lives. */
export class Disk {
  readonly #options: DiskOptions;
  /** The latest last. */
  #saved: Saved[] = [];

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /** Whether exactly this was saved last; anything, if it saves later. */
  has(content: ReadonlyMap<string, SimObject>): boolean {
    if (this.#options.kind === "later") return true;
    const objects = this.#saved.at(-1)?.objects ?? new Map<string, string>();
    return objects.size === content.size && [...content].every(([key, object]) => {
      const json = objects.get(key);
      return json !== undefined && stateOf(JSON.parse(json)) === stateOf(object);
    });
  }

  /** Loses all or a part of what was saved. */
  suffer(fate: DiskFate): void {
    const { length } = this.#saved;
    if (fate === "lost") this.#saved = [];
    else if (fate === "older") this.#saved.length = Math.min(length, this.#options.random.int(1, 5));
  }

  /** The disk for one life, and how to end it: after that nothing is saved. */
  open(): { readonly snapshot: InformerSnapshot; readonly close: () => void } {
    const { kind, time, random, onSaved } = this.#options;
    let isClosed = false;
    const commit = ({ puts, deletes, replaces, ...rest }: SnapshotChange) => {
      if (isClosed) return;
      const objects = new Map(replaces ? [] : this.#saved.at(-1)?.objects);
      for (const key of deletes) objects.delete(key);
      for (const put of puts) objects.set(put.key, put.json());
      this.#saved.push({ ...rest, objects });
      if (rest.needsList) return;
      onSaved(
        Number(rest.resourceVersion),
        new Map([...objects].map(([key, json]) => [key, JSON.parse(json)])),
      );
    };
    const pause = (ms: number) => new Promise<void>((resolve) => time.schedule(resolve, ms));
    const storage: SnapshotStorage = {
      savesInTurn: kind === "in the turn",
      load: async () => {
        await pause(random.int(0, 20));
        const last = this.#saved.at(-1);
        return last && loaded(last);
      },
      save: kind === "in the turn" ? commit : async (change) => {
        await pause(random.int(0, LONGEST_SAVE_MS));
        commit(change);
      },
    };
    return {
      snapshot: newInformerSnapshot(storage, { intervalMs: random.pick([50, 1_000]) }),
      close: () => void (isClosed = true),
    };
  }
}

function loaded({ objects, ...saved }: Saved): LoadedSnapshot {
  const entries = Array.from(objects, ([key, json]) => ({ key, json }));
  return { ...saved, count: entries.length, entries: () => [entries] };
}
