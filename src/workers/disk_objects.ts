import type { LogHistory } from "../hono/content/log_history.ts";
import {
  type LoadedSnapshot,
  type SavedVersion,
  type SnapshotChange,
  type SnapshotIdentity,
  SnapshotRefusedError,
  type SnapshotStorage,
  versionOf,
} from "../informer/snapshot/storage.ts";
import type { KeyFunc } from "../meta/object.ts";
import type { HoldingOptions, NewHolding } from "../store/holding.ts";
import { EncodedHolding, type TextsOptions } from "../store/encoded_holding.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { BodySweep, DiskBodies, DiskContent } from "./disk_content.ts";
import { DiskHistory } from "./disk_history.ts";
import { createTables, FORMAT, readState, SAVED, type SqlStorage, writeState } from "./sql_database.ts";

/** Options of {@linkcode DiskObjects}. */
export interface DiskObjectsOptions extends TextsOptions {
  /**
   * The longest text of an object, in bytes; 2,000,000 by default, which the rows of a Durable Object have
   * room for. A longer one is quarantined.
   */
  readonly maxObjectBytes?: number;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
  /** Receives failures of the event log; the console by default. */
  readonly logger?: Logger;
}

/**
 * The objects of one informer in an SQLite database that commits whole turns, such as that of a Durable
 * Object: the informer's `storage`, its `snapshot`, and the history of its event log for `readApi`.
 *
 * - The JSON text of each state is a row, written when the text arrives. Memory has keys, metadata (uid,
 *   version, namespace, labels) and indices: about 400 bytes an object. A read takes the text from the
 *   database, the last ones excepted.
 * - Each change is written in its turn, before observers and readers see it. So a reader sees only what is on
 *   disk, and a crash loses only what no reader has seen.
 * - After a restart the informer has the same content at the same version, and continues by a watch; readers
 *   resume their watches from the same log.
 * - States that were replaced are deleted by {@linkcode DiskObjects.reclaim}.
 *
 * The tables' names begin with `listwatch_`; others of the same database are not touched. One instance at a
 * time may use them.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { readApi } from "@listwatch/cache/hono";
 * import { newInformerSnapshot } from "@listwatch/cache/informer";
 * import { DiskObjects, type SqlStorage } from "@listwatch/cache/workers";
 * function podsOn(storage: SqlStorage) {
 *   const disk = new DiskObjects(storage);
 *   const source = newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/pods");
 *   const pods = new SharedIndexInformer(source, { storage: disk.texts, snapshot: newInformerSnapshot(disk) });
 *   const resources = [{ informer: pods, resource: "v1/pods", history: disk.history }];
 *   return { pods, api: readApi({ resources, allowAnonymous: true }) };
 * }
 * ```
 */
export class DiskObjects implements SnapshotStorage {
  readonly #storage: SqlStorage;
  readonly #bodies: DiskBodies;
  readonly #content: DiskContent;
  readonly #history: DiskHistory;
  #identity = "";
  /** The value of {@linkcode DiskHistory.leadTo} for the loaded content. */
  #rowsLeadTo: number | undefined;
  #sweep: BodySweep | undefined;
  /**
   * Up to which state the next sweep looks for those that were never stored: in the beginning, because of a
   * crash.
   */
  #sweepTo: number | undefined;
  #storedCount = 0;
  #sweptCount = 0;
  /** The marks of earlier calls of {@linkcode DiskObjects.reclaim}, the oldest first. */
  #marks: Mark[] = [];
  readonly #clock: Clock;

  /** Each change is saved in its turn. */
  readonly savesInTurn = true;
  /** The informer's `storage`. */
  readonly texts: NewHolding;

  /** Makes the tables, if they are not there. */
  constructor(storage: SqlStorage, options: DiskObjectsOptions = {}) {
    const { sql } = storage;
    this.#storage = storage;
    createTables(sql);
    this.#bodies = new DiskBodies(sql, options.maxObjectBytes ?? MAX_OBJECT_BYTES);
    this.#content = new DiskContent(sql, this.#bodies);
    this.#history = new DiskHistory(sql, {
      content: this.#content,
      logger: guardedLogger(options.logger),
      rowsLeadTo: () => this.#rowsLeadTo,
    });
    this.#clock = options.clock ?? realClock;
    this.#sweepTo = this.#bodies.lastId;
    this.texts = <T>(keyFunc: KeyFunc, { freeze }: HoldingOptions = {}) =>
      new EncodedHolding<T>(keyFunc, this.#bodies, { ...options, freeze });
  }

  /** The history of the event log, for the informer's resource of a `readApi`. */
  get history(): LogHistory {
    return this.#history;
  }

  load(identity: SnapshotIdentity): LoadedSnapshot | undefined {
    this.#identity = JSON.stringify([identity.resource, identity.source]);
    const saved = readState<SavedState>(this.#storage.sql, SAVED);
    if (saved === undefined) return undefined;
    if (saved.format !== FORMAT) {
      throw new SnapshotRefusedError(
        "newer-format",
        `it has format ${saved.format}, and this version reads ${FORMAT}`,
      );
    }
    if (saved.identity !== this.#identity) {
      throw new SnapshotRefusedError(
        "other-identity",
        `it is of ${saved.identity}, not of ${this.#identity}`,
      );
    }
    const paths = JSON.stringify(this.#bodies.paths);
    if (saved.paths !== paths) this.#content.dropFields();
    this.#rowsLeadTo = saved.rowsLeadTo ?? 0;
    return { ...versionOf(saved), count: this.#content.size, entries: () => this.#content.entries() };
  }

  /** Writes a change, or nothing of it; it is committed with the turn. */
  save(change: SnapshotChange): void {
    const { replaces, puts, deletes } = change;
    const { sql } = this.#storage;
    this.#storage.transactionSync(() => {
      if (replaces) this.#content.clear();
      for (const key of deletes) this.#content.delete(key);
      for (const put of puts) this.#content.put(put.key, put.held, () => put.json());
      this.#bodies.writeAll();
      this.#history.dropBroken();
      const identity = this.#identity;
      const paths = JSON.stringify(this.#bodies.paths);
      const hasChanged = replaces || deletes.length > 0 || puts.length > 0;
      const rowsLeadTo = this.#history.leadTo({ hasChanged });
      const saved: SavedState = { format: FORMAT, identity, paths, rowsLeadTo, ...versionOf(change) };
      writeState(sql, SAVED, saved);
    });
    this.#bodies.wroteAll();
    this.#storedCount += puts.length;
  }

  /**
   * Deletes states that objects had: those whose events the log dropped five minutes ago or earlier, as slow
   * readers may be reading them, and those that were never stored. To be called every minute or so; while it
   * returns `true`, again in another turn.
   *
   * @param options `isListing`: the informer is listing, and what it has read is not stored yet. `limit`: how
   * many rows it looks at; 500 by default.
   * @returns Whether there is more to delete now.
   */
  reclaim({ isListing, limit = 500 }: { readonly isListing: boolean; readonly limit?: number }): boolean {
    const nowMs = monotonicNow(this.#clock);
    const last = this.#marks.at(-1);
    if (!isListing && (last === undefined || nowMs - last.atMs >= MARK_INTERVAL_MS)) {
      const { lastId: bodyId, count } = this.#bodies;
      const unstored = count - this.#storedCount;
      this.#marks.push({ atMs: nowMs, tail: this.#history.tail, bodyId, unstored });
    }
    while (this.#marks.length > 1 && nowMs - this.#marks[1].atMs >= READERS_MS) this.#marks.shift();
    const mark = this.#marks.at(0);
    if (mark === undefined || nowMs - mark.atMs < READERS_MS) return this.#stepSweep(limit);
    if (this.#history.reclaim(mark.tail, limit) > 0) return true;
    if (this.#sweepTo === undefined && mark.unstored - this.#sweptCount > MOST_UNSTORED) {
      this.#sweptCount = mark.unstored;
      this.#sweepTo = mark.bodyId;
    }
    return this.#stepSweep(limit);
  }

  #stepSweep(limit: number): boolean {
    if (this.#sweepTo === undefined) return false;
    this.#sweep ??= new BodySweep(this.#storage.sql, this.#sweepTo);
    if (this.#sweep.step(limit)) return true;
    this.#sweep = undefined;
    this.#sweepTo = undefined;
    return false;
  }
}

/** How long a reader may take for an answer that began with an earlier state. */
const READERS_MS = 5 * 60_000;
const MARK_INTERVAL_MS = 30_000;
/** How many states may be in the database without being referred to before a sweep looks for them. */
const MOST_UNSTORED = 1_000;

interface Mark {
  readonly atMs: number;
  readonly tail: number;
  readonly bodyId: number;
  /** How many states had been written and not stored. */
  readonly unstored: number;
}
const MAX_OBJECT_BYTES = 2_000_000;

interface SavedState extends SavedVersion {
  readonly format: number;
  readonly identity: string;
  /** The paths of the fields whose values the objects have. */
  readonly paths: string;
  /** Up to which row the event log leads to it. */
  readonly rowsLeadTo?: number;
}
