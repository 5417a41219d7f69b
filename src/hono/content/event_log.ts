/**
 * The recent events of one resource, which watches replay, and which earlier states are computed from.
 * @module
 */

import type { StoreChange, StoreEvent } from "../../informer/events.ts";
import {
  compareResourceVersions,
  type KubernetesObject,
  layoutOf,
  resourceVersionOf,
} from "../../meta/object.ts";
import {
  PartwiseVersionWaiters,
  type VersionWaiters,
  type VersionWaitOptions,
} from "../../meta/version_waiters.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import { memorySize } from "../../util/json.ts";
import { EntryViews, type LogEntry } from "../send/encoding.ts";
import type { KeptEntry, KeptLog, LogHistory } from "./log_history.ts";
import { firstUnseen, inWatchOrder, isOnTheWay, type LogWindow } from "./log_window.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";
import { ContentHashes } from "./versions.ts";
import { ContentStates } from "./states.ts";
import type { FanOut, FanOutSource } from "../send/fan_out.ts";
import { Heartbeats, type LogReader } from "../send/heartbeats.ts";
import { WatchGroups } from "../send/watch_groups.ts";

/** Options of {@linkcode EventLog}. */
export interface EventLogOptions {
  readonly clock: Clock;
  /** How many entries are kept. */
  readonly capacity: number;
  /** How many bytes the objects of the kept entries may take. */
  readonly capacityBytes: number;
  /** Lets its watches send. */
  readonly fanOut: FanOut;
  /** Time between heartbeats. */
  readonly heartbeatMs: number;
  /** Keeps the entries for the next process; by default they end with this one. */
  readonly history?: LogHistory | undefined;
}

/**
 * Keeps the last entries of an informer's history, for the watches that read it.
 *
 * Positions never decrease, except at a relist at an older resourceVersion (a restored server), which starts
 * a new history. A late change - under an older resourceVersion, or in a list at the same one - does not move
 * the position. A watch that resumes from there may have seen it or not, and receives it, a second time if
 * necessary. Where the position is a merged resourceVersion, objects have the versions of their own servers,
 * and a bookmark follows each change, or a few of them, with the position behind them. An entry costs two
 * references to objects in their held form; its bytes are made when a watch first needs them.
 */
export class EventLog<T extends KubernetesObject> implements FanOutSource {
  readonly #informer: ServedInformer<T>;
  readonly #options: EventLogOptions;
  readonly #window = { tail: 0, entries: new Deque<LogEntry<T>>() };
  readonly #unobserve: () => void;
  readonly #unlisten: (() => void) | undefined;
  readonly #waiters: VersionWaiters;
  readonly #heartbeats: Heartbeats;
  #position = "";
  /** The position right before the oldest entry whose past is known. */
  #base = "";
  /** The oldest entry that states may be rolled back to. */
  #historyFrom = 0;
  /** The position of the last late entry that was dropped. */
  #lastLateEvicted = "";
  /** Watches may not start before this. */
  #resumeFrom: { readonly position: string; readonly sequence: number } = { position: "", sequence: 0 };
  /** What the objects of the entries take. */
  #windowBytes = 0;
  /** The entries from here on are not dropped: the watches have not had their turn since. */
  #keepFrom = 0;
  #started = false;
  #closed = false;
  /** Of the position: `""` unless it is a merged resourceVersion. */
  #layout = "";
  /** Changes whose versions say nothing about the position: the next bookmark places them. */
  #unplaced: StoreChange<Held<T>>[] = [];
  #contentRevision = 0;
  #rewrites = 0;
  readonly #held: ServedStore<Held<T>>;

  /** The entries that are kept. */
  readonly window: LogWindow<T> = this.#window;
  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  /** The watches. */
  readonly recipients: Set<LogReader> = new Set();
  /** What lists read. */
  readonly states: ContentStates<T>;
  /** Shows whether lists are the same. */
  readonly hashes: ContentHashes<T>;
  /** What watches read of entries. */
  readonly views: EntryViews<T>;
  /** Watches that send the same. */
  readonly groups: WatchGroups<T>;

  /** Starts to follow the informer. */
  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    this.#options = options;
    this.#waiters = new PartwiseVersionWaiters(() => this.#position, options);
    const { holding, held } = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = holding;
    this.#held = held;
    this.views = new EntryViews(holding);
    this.groups = new WatchGroups(this);
    this.states = new ContentStates(this, held, options.clock);
    this.hashes = new ContentHashes(this);
    this.#heartbeats = new Heartbeats(this.recipients, options);
    const observer = (event: StoreEvent<Held<T>>) => this.#observe(event);
    this.#unobserve = informer.observeHeld?.(observer) ?? informer.observe(observer);
    this.#unlisten = informer.onStatus?.((status) => this.#letGoIfStopped(status));
    this.#letGoIfStopped(informer.status());
    this.isReady();
  }

  /**
   * Whether the informer has synced, or has the content of a snapshot; before that there is nothing to read.
   */
  isReady(): boolean {
    if (!this.#informer.hasSynced() && !this.#informer.isRestored?.()) return false;
    if (!this.#started) this.#start("");
    return true;
  }

  /** The resourceVersion that the content has reached. */
  get resourceVersion(): string {
    return this.#position;
  }

  /** How many milliseconds ago the informer had the last contact with its server; 0 if it does not say. */
  get ageMs(): number {
    const { lagMs = 0 } = this.#informer.status();
    return Number.isFinite(lagMs) ? lagMs : 0;
  }

  /** Differs whenever the objects have changed. */
  get contentRevision(): number {
    return this.#contentRevision;
  }

  /**
   * How often the content changed in a way that resourceVersions do not show: a state of an object may have
   * replaced another one of the same resourceVersion.
   */
  get rewrites(): number {
    return this.#rewrites;
  }

  /** The object of a key, as the store holds it. */
  held(key: string): Held<T> | undefined {
    return this.#held.getByKey(key);
  }

  /** The oldest resourceVersion that a watch may start from. */
  get oldestResourceVersion(): string {
    const { position } = this.#resumeFrom;
    return compareResourceVersions(position, this.#base) < 0 ? this.#base : position;
  }

  /** The oldest state that the present one can be rolled back to. */
  get oldestState(): { readonly resourceVersion: string; readonly sequence: number } {
    return { resourceVersion: this.#base, sequence: this.#historyFrom };
  }

  /** The sequence number of the next entry. */
  get head(): number {
    return this.#window.tail + this.#window.entries.length;
  }

  /** How many watches read the log. */
  get readers(): number {
    return this.recipients.size;
  }

  /**
   * Where a watch that has seen everything up to a resourceVersion resumes; the end for one from the future;
   * `undefined` if entries it has not seen were dropped, or if its version is before or within a relist. At
   * the present position, late entries may have been dropped unseen: a watch that was refused there would
   * have nowhere to resume.
   */
  resume(resourceVersion: string): number | undefined {
    if (compareResourceVersions(resourceVersion, this.oldestResourceVersion) < 0) return undefined;
    const isBehind = compareResourceVersions(resourceVersion, this.#position) < 0;
    if (isBehind && compareResourceVersions(resourceVersion, this.#lastLateEvicted) <= 0) return undefined;
    if (!isOnTheWay(this.#window, resourceVersion, this)) return undefined;
    return firstUnseen(this.#window, resourceVersion, this.#resumeFrom.sequence);
  }

  /** Whether the content reaches a resourceVersion within a time; at once if it has, or never will. */
  async reaches(resourceVersion: string, options: VersionWaitOptions): Promise<boolean> {
    return await this.#waiters.wait(resourceVersion, options) === "reached";
  }

  /** Adds a watch. */
  attach(reader: LogReader): void {
    if (this.#closed) return reader.end();
    this.recipients.add(reader);
    this.#heartbeats.added(reader);
  }

  /** Removes a watch, if it is there. */
  detach(reader: LogReader): void {
    if (!this.recipients.delete(reader)) return;
    this.#heartbeats.removed(reader);
    if (this.recipients.size === 0) this.#options.fanOut.forget(this);
  }

  passEnds(hasGrown: boolean): void {
    this.views.passEnds();
    this.groups.clear();
    this.#trim(hasGrown ? this.#keepFrom : Infinity);
    // The next pass sends them to every watch that has room.
    this.#keepFrom = hasGrown ? this.head : 0;
  }

  /** Stops following the informer, ends every watch and every wait. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unobserve();
    this.#unlisten?.();
    this.endReaders();
    this.#waiters.stop();
  }

  /** Ends each reader after what there is for it. */
  endReaders(): void {
    for (const reader of Array.from(this.recipients)) reader.end();
  }

  /** An informer that has stopped reaches no other version. */
  #letGoIfStopped({ phase }: { readonly phase: string }): void {
    if (phase === "stopped") this.#waiters.stop();
  }

  /** What the store holds now is where the log begins. */
  #start(resourceVersion: string): void {
    this.#started = true;
    const stored = this.#informer.indexer.lastStoreSyncResourceVersion();
    const position = compareResourceVersions(resourceVersion, stored) > 0 ? resourceVersion : stored;
    this.#contentRevision++;
    this.#position = position;
    this.#layout = layoutOf(position);
    this.#base = position;
    this.#resumeFrom = { position, sequence: this.head };
    const { history, capacity } = this.#options;
    const kept = history?.restore<T>(position, { capacity, held: (key) => this.held(key) });
    if (kept === undefined) history?.begin(this.#resumeFrom);
    else this.#restore(kept);
  }

  #restore({ tail, entries, base, lastLateEvicted, resumeFrom }: KeptLog<T>): void {
    this.#window.tail = tail;
    for (const entry of entries) this.#push(entry);
    this.#base = base;
    this.#historyFrom = tail;
    this.#lastLateEvicted = lastLateEvicted;
    this.#resumeFrom = resumeFrom;
    this.#trim(Infinity);
  }

  #observe(event: StoreEvent<Held<T>>): void {
    if (!this.#started) {
      // The first list comes as one event, or object by object, of which nothing is known until the informer
      // has synced.
      if (event.type === "replaced") this.#start(event.resourceVersion);
      return;
    }
    if (event.type === "bookmark") this.#bookmark(event.resourceVersion);
    else if (event.type === "replaced") this.#replaced(event.resourceVersion, event.changes);
    else this.#changed(event);
  }

  #changed(change: StoreChange<Held<T>>): void {
    const version = resourceVersionOf(change.object) ?? "";
    if (change.type === "updated" && this.#isUnchanged(change.oldObject, change.object)) return;
    this.#reorder(change);
    if (this.#layout !== "" && layoutOf(version) !== this.#layout) {
      this.#unplaced.push(change);
      return;
    }
    const isLate = !this.#advance(version);
    if (isLate) this.#noteRewrite(change);
    this.#append(change, { position: this.#position, isLate });
    this.#afterAppend();
  }

  /**
   * Everything up to a resourceVersion is there: also what came since the position and is not placed yet, as
   * one step.
   */
  #bookmark(resourceVersion: string): void {
    const before = this.#position;
    const isLate = !this.#advance(resourceVersion);
    this.#layout = layoutOf(this.#position);
    if (this.#unplaced.length > 0) this.#place({ isLate, ...(!isLate && { gapAfter: before }) });
    this.#heartbeats.heard();
  }

  #place(at: { readonly isLate: boolean; readonly gapAfter?: string }): void {
    const changes = this.#unplaced;
    this.#unplaced = [];
    for (const change of changes) {
      if (at.isLate) this.#noteRewrite(change);
      this.#append(change, { position: this.#position, ...at });
    }
    this.#afterAppend();
  }

  /** Whether two states of one object are the same state: of two versions the content differs. */
  #isUnchanged(oldObject: Held<T>, object: Held<T>): boolean {
    return resourceVersionOf(oldObject) === resourceVersionOf(object) &&
      this.holding.isSameContent(oldObject, object);
  }

  #replaced(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    if (this.#unplaced.length > 0) this.#place({ isLate: true });
    const previous = this.#position;
    if (compareResourceVersions(resourceVersion, previous) < 0) {
      return this.#restarted(resourceVersion, changes);
    }
    const ending = Array.from(this.recipients).filter((reader) => reader.endsAtRelist);
    for (const reader of ending) reader.flush();
    this.#contentRevision++;
    this.#position = resourceVersion;
    this.#layout = layoutOf(resourceVersion);
    // A watch that has read all of it is at the end; one that stops in its middle is before it and may not
    // resume.
    const isLate = resourceVersion === previous;
    const relist = { position: resourceVersion, gapAfter: previous, isLate };
    const sequence = isLate
      ? firstUnseen(this.#window, resourceVersion, this.#resumeFrom.sequence)
      : undefined;
    for (const change of inWatchOrder(changes)) {
      if (compareResourceVersions(resourceVersionOf(change.object) ?? "", previous) <= 0) {
        this.#noteRewrite(change);
      }
      this.#reorder(change);
      this.#append(change, relist);
    }
    this.#keep({ ...BOOKMARK, ...relist });
    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };
    this.#options.history?.resumeFrom(this.#resumeFrom);
    for (const reader of ending) if (this.recipients.has(reader)) reader.cut();
    this.#waiters.moved();
    this.#afterAppend();
  }

  /**
   * The server went back in time. There is no way from what watches have seen to what is there: the same
   * resourceVersion may mean another state. They receive what came before, and then have to list again.
   */
  #restarted(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const readers = Array.from(this.recipients);
    for (const reader of readers) reader.flush();
    for (const change of changes) this.#reorder(change);
    this.#window.tail = this.head;
    this.#window.entries.clear();
    this.#windowBytes = 0;
    this.states.restarted();
    this.#contentRevision++;
    this.#rewrites++;
    this.#position = resourceVersion;
    this.#layout = layoutOf(resourceVersion);
    this.#base = resourceVersion;
    this.#lastLateEvicted = "";
    this.#historyFrom = this.head;
    this.#resumeFrom = { position: resourceVersion, sequence: this.head };
    this.#options.history?.begin(this.#resumeFrom);
    for (const reader of readers) if (this.recipients.has(reader)) reader.cut();
    this.#waiters.moved();
  }

  #append(
    change: StoreChange<Held<T>>,
    at: { readonly position: string; readonly isLate: boolean; readonly gapAfter?: string },
  ): void {
    const { key, object } = change;
    const common = { gapAfter: undefined, ...at, key, object };
    switch (change.type) {
      case "added":
        this.#keep({ ...common, type: "ADDED", oldObject: undefined });
        break;
      case "updated":
        this.#keep({ ...common, type: "MODIFIED", oldObject: change.oldObject });
        break;
      case "deleted":
        // It was not there: what sums up the entries would go wrong.
        if (change.oldObject === undefined) this.#rewrites++;
        this.#keep({ ...common, type: "DELETED", oldObject: change.oldObject ?? object });
        break;
    }
  }

  #keep(entry: KeptEntry<T>): void {
    this.#options.history?.append(this.head, entry);
    this.#push(entry);
  }

  #push(entry: KeptEntry<T>): void {
    const bytes = entry.object === undefined ? 0 : memorySize(entry.object);
    this.#windowBytes += bytes;
    const atMs = monotonicNow(this.#options.clock);
    const isPlaced = this.#layout === "" || layoutOf(resourceVersionOf(entry.object) ?? "") === this.#layout;
    this.#window.entries.push({ ...entry, bytes, atMs, isPlaced, views: undefined });
  }

  /**
   * An object comes with a resourceVersion that the log had reached before: it may have had another state
   * under it. Every other state is under a resourceVersion of its own, since which the content has not had an
   * older one.
   */
  #noteRewrite({ type }: StoreChange<Held<T>>): void {
    if (type !== "deleted") this.#rewrites++;
  }

  #reorder(change: StoreChange<Held<T>>): void {
    const { type, key } = change;
    this.#contentRevision++;
    if (type === "added") this.states.added(key);
    else if (type === "deleted" && change.oldObject !== undefined) this.states.deleted(key);
  }

  /** Whether the position moves to a resourceVersion: not back, and not where it is. */
  #advance(resourceVersion: string): boolean {
    if (compareResourceVersions(resourceVersion, this.#position) <= 0) return false;
    this.#position = resourceVersion;
    this.#waiters.moved();
    return true;
  }

  #afterAppend(): void {
    if (this.recipients.size === 0) return this.#trim(Infinity);
    // All watches are about to read the same entries.
    this.views.isPass = true;
    this.#options.fanOut.grown(this);
  }

  /** Drops the oldest entries, where there are too many. */
  #trim(keepFrom: number): void {
    const { entries } = this.#window;
    const { capacity, capacityBytes } = this.#options;
    const before = this.#window.tail;
    while (
      (entries.length > capacity || this.#windowBytes > capacityBytes) && entries.length > 0 &&
      this.#window.tail < keepFrom
    ) {
      const evicted = entries.shift()!;
      this.#window.tail++;
      this.#windowBytes -= evicted.bytes;
      this.views.forget(evicted);
      if (evicted.isLate) this.#lastLateEvicted = evicted.position;
      if (this.#window.tail > this.#historyFrom) this.#base = evicted.position;
    }
    const { tail } = this.#window;
    if (tail === before) return;
    this.#options.history?.evicted(tail);
    if (this.#historyFrom < tail) this.#historyFrom = tail;
    for (const reader of Array.from(this.recipients)) if (reader.cursor < tail) reader.cut();
  }
}

const BOOKMARK = { type: "BOOKMARK", key: "", object: undefined, oldObject: undefined } as const;
