/**
 * The recent events of one resource, for watches to replay and for reads of earlier versions.
 * @module
 */

import type { StoreChange, StoreEvent } from "../../informer/store_event.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { resourceVersionOf } from "../../meta/object.ts";
import { compareResourceVersions } from "../../meta/resource_version.ts";
import { VersionWaiters, type VersionWaitOptions } from "../../meta/version_waiters.ts";
import type { CandidateQuery } from "../../store/candidates.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import type { Indexer } from "../../store/indexer.ts";
import type { Clock, TimerHandle } from "../../util/clock.ts";
import { Deque } from "../../util/deque.ts";
import { memorySize } from "../../util/memory_size.ts";
import { EntryViews, type LogEntry } from "./encoding.ts";
import { firstAfter, firstUnseen, inWatchOrder, type LogWindow } from "./log_window.ts";
import type { ServedInformer, ServedStore } from "../upstream/served_informer.ts";
import { type IndexValue, OrderedContent, rolledBack, type Snapshot } from "../lists/snapshot.ts";
import type { FanOut, FanOutSource, Recipient } from "./fan_out.ts";
import { PastStates } from "../lists/past_states.ts";
import { WatchGroups } from "./watch_groups.ts";

/** A watch, as the log sees it. */
export interface LogReader extends Recipient {
  /** The sequence number of the next entry it will read. */
  readonly cursor: number;
  /** Whether it wants {@linkcode LogReader.heartbeat}. */
  readonly wantsHeartbeat: boolean;
  /** Time for a sign of life. */
  heartbeat(): void;
  /** Sends at once what it has room for. */
  flush(): void;
  /** The entries that it would read next were dropped. */
  cut(): void;
  /** The log is closed: end in good order. */
  end(): void;
}

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
}

/**
 * Keeps the last entries of an informer's history, for the watches that read it.
 *
 * Positions never decrease, except at a relist at an older resourceVersion (a restored server), which starts a new history.
 * A late change - under an older resourceVersion, or in a list at the same one - does not move the position. A watch that
 * resumes from there may have seen it or not, and receives it, a second time if necessary. An entry costs two references
 * to objects in their held form; its bytes are made when a watch first needs them.
 */
export class EventLog<T extends KubernetesObject> implements FanOutSource {
  readonly #informer: ServedInformer<T>;
  readonly #options: EventLogOptions;
  readonly #window = { tail: 0, entries: new Deque<LogEntry<T>>() };
  readonly #ordered: OrderedContent<T>;
  readonly #unobserve: () => void;
  readonly #unlisten: (() => void) | undefined;
  readonly #waiters: VersionWaiters;
  #heartbeatTimer: TimerHandle | undefined;
  /** The content now, if it was read since the last change. */
  #snapshot: Snapshot<T> | undefined;
  #position = "";
  /** The position right before the oldest entry whose past is known. */
  #base = "";
  /** The oldest entry that states may be rolled back to. */
  #historyFrom = 0;
  /** The position of the last late entry that was dropped. */
  #lastLateEvicted = "";
  /** Watches may not start before this. */
  #resumeFrom: { readonly position: string; readonly sequence: number } = { position: "", sequence: 0 };
  readonly #pastStates: PastStates<T>;
  /** What the objects of the entries take. */
  #windowBytes = 0;
  /** The entries from here on are not dropped: the watches have not had their turn since. */
  #keepFrom = 0;
  #started = false;
  #closed = false;
  #revision = 0;
  #contentRevision = 0;
  #rewrites = 0;
  readonly #held: ServedStore<Held<T>>;

  /** The entries that are kept. */
  readonly window: LogWindow<T> = this.#window;
  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  /** The watches. */
  readonly recipients: Set<LogReader> = new Set();
  /** What watches read of entries. */
  readonly views: EntryViews<T>;
  /** Watches that send the same. */
  readonly groups: WatchGroups<T>;

  /** Starts to follow the informer. */
  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    this.#options = options;
    this.#waiters = new VersionWaiters(() => this.#position, options);
    const { holding, held } = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = holding;
    this.#held = held;
    this.views = new EntryViews(holding);
    this.groups = new WatchGroups(this);
    this.#pastStates = new PastStates(options.clock);
    this.#ordered = new OrderedContent(held);
    const observer = (event: StoreEvent<Held<T>>) => this.#observe(event);
    this.#unobserve = informer.observeHeld?.(observer) ?? informer.observe(observer);
    this.#unlisten = informer.onStatus?.((status) => this.#letGoIfStopped(status));
    this.#letGoIfStopped(informer.status());
    this.isReady();
  }

  /** Whether the informer has synced; before that there is nothing to read. */
  isReady(): boolean {
    if (!this.#informer.hasSynced()) return false;
    if (!this.#started) this.#start("");
    return true;
  }

  /** The resourceVersion that the content has reached. */
  get resourceVersion(): string {
    return this.#position;
  }

  /** Differs whenever a list would: objects or the resourceVersion have changed. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Differs whenever the objects have changed, and after each relist. While it is the same, a watch that starts from the
   * version of an earlier list misses nothing, and is not refused.
   */
  get contentRevision(): number {
    return this.#contentRevision;
  }

  /** How often an object may have changed without another resourceVersion. */
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

  /** The sequence number of the next entry. */
  get head(): number {
    return this.#window.tail + this.#window.entries.length;
  }

  /** How many watches read the log. */
  get readers(): number {
    return this.recipients.size;
  }

  /** The entry of a sequence number from `window.tail` to before `head`. */
  entry(sequence: number): LogEntry<T> | undefined {
    return this.#window.entries.at(sequence - this.#window.tail);
  }

  /** The content now, in key order. Taken once per change. */
  snapshot(): Snapshot<T> {
    if (this.#snapshot === undefined) {
      this.#snapshot = this.#ordered.snapshot(this.#position);
    } else if (this.#snapshot.resourceVersion !== this.#position) {
      this.#snapshot = { ...this.#snapshot, resourceVersion: this.#position };
    }
    return this.#snapshot;
  }

  /**
   * The same, or less: at least what a query matches. Costs only what an index of the store has under one of the query's
   * labels or fields, if there is one.
   */
  candidates(query: CandidateQuery | undefined): Snapshot<T> {
    const candidates = query && this.#ordered.candidates(this.#position, query);
    return candidates ?? this.snapshot();
  }

  /** The content under a value of an index of the store, which must have it. */
  indexed(under: IndexValue): Snapshot<T> {
    return this.#ordered.indexed(this.#position, under);
  }

  /** The store of the objects in their held form, if it has indices. */
  get indexer(): Indexer<Held<T>> | undefined {
    return this.#ordered.indexer();
  }

  /**
   * The content as it was at a resourceVersion that is not in the future, or `undefined` if that is not known any more.
   * Costs a walk over the entries since, and over all keys; the state is kept for a moment, so that a list
   * in pages costs it once.
   */
  stateAt(resourceVersion: string): Snapshot<T> | undefined {
    if (compareResourceVersions(resourceVersion, this.#base) < 0) return undefined;
    if (compareResourceVersions(resourceVersion, this.#position) > 0) return undefined;
    const first = firstAfter(this.#window, resourceVersion, this.#historyFrom);
    const gapAfter = this.entry(first)?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    const known = this.#pastStates.get(first);
    if (known !== undefined) return { ...known, resourceVersion };
    const before = new Map<string, Held<T> | undefined>();
    for (let sequence = first; sequence < this.head; sequence++) {
      const entry = this.entry(sequence);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    if (before.size === 0) return { ...this.snapshot(), resourceVersion };
    const snapshot = rolledBack({ ...this.snapshot(), resourceVersion }, before);
    this.#pastStates.keep(first, snapshot);
    return snapshot;
  }

  /**
   * Where a watch that has seen everything up to a resourceVersion resumes; the end for one from the future; `undefined`
   * if entries it has not seen were dropped, or if its version is before or within a relist. At the present position, late
   * entries may have been dropped unseen: a watch that was refused there would have nowhere to resume.
   */
  resume(resourceVersion: string): number | undefined {
    if (compareResourceVersions(resourceVersion, this.oldestResourceVersion) < 0) return undefined;
    const isBehind = compareResourceVersions(resourceVersion, this.#position) < 0;
    if (isBehind && compareResourceVersions(resourceVersion, this.#lastLateEvicted) <= 0) return undefined;
    return firstUnseen(this.#window, resourceVersion, this.#resumeFrom.sequence);
  }

  /** Whether the content reaches a resourceVersion within a time; at once if it has, or never will. */
  async reaches(resourceVersion: string, options: VersionWaitOptions): Promise<boolean> {
    return await this.#waiters.wait(resourceVersion, options) === "reached";
  }

  /** Adds a watch. Returns how to remove it, which may be called more than once. */
  attach(reader: LogReader): () => void {
    if (this.#closed) {
      reader.end();
      return () => {};
    }
    this.recipients.add(reader);
    this.#scheduleHeartbeat();
    return () => {
      this.recipients.delete(reader);
      if (this.recipients.size === 0) this.#options.fanOut.forget(this);
      this.#scheduleHeartbeat();
    };
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
    for (const reader of Array.from(this.recipients)) reader.end();
    this.recipients.clear();
    this.#scheduleHeartbeat();
    this.#waiters.stop();
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
    this.#revision++;
    this.#contentRevision++;
    this.#position = position;
    this.#base = position;
    this.#resumeFrom = { position, sequence: this.head };
  }

  #observe(event: StoreEvent<Held<T>>): void {
    if (!this.#started) {
      // The first list comes as one event, or object by object, of which nothing is known until the informer has synced.
      if (event.type === "replaced") this.#start(event.resourceVersion);
      return;
    }
    if (event.type === "bookmark") this.#advance(event.resourceVersion);
    else if (event.type === "replaced") this.#replaced(event.resourceVersion, event.changes);
    else this.#changed(event);
  }

  #changed(change: StoreChange<Held<T>>): void {
    const version = resourceVersionOf(change.object) ?? "";
    if (change.type === "updated" && this.#isUnchanged(change.oldObject, change.object)) return;
    const isLate = !this.#advance(version);
    this.#append(change, { position: this.#position, isLate });
    this.#afterAppend();
  }

  /** Whether two states of one object are the same state: of two versions the content differs. */
  #isUnchanged(oldObject: Held<T>, object: Held<T>): boolean {
    return resourceVersionOf(oldObject) === resourceVersionOf(object) &&
      this.holding.isSameContent(oldObject, object);
  }

  #replaced(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const previous = this.#position;
    if (compareResourceVersions(resourceVersion, previous) < 0) {
      return this.#restarted(resourceVersion, changes);
    }
    this.#revision++;
    this.#contentRevision++;
    this.#position = resourceVersion;
    // A watch that has read all of it is at the end; one that stops in its middle is before it and may not resume.
    const isLate = resourceVersion === previous;
    const relist = { position: resourceVersion, gapAfter: previous, isLate };
    const sequence = isLate
      ? firstUnseen(this.#window, resourceVersion, this.#resumeFrom.sequence)
      : undefined;
    for (const change of inWatchOrder(changes)) this.#append(change, relist);
    this.#window.entries.push({ ...BOOKMARK, ...relist, bytes: 0, views: undefined });
    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };
    this.#waiters.moved();
    this.#afterAppend();
  }

  /**
   * The server went back in time. There is no way from what watches have seen to what is there: the same resourceVersion
   * may mean another state. They receive what came before, and then have to list again.
   */
  #restarted(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const readers = Array.from(this.recipients);
    for (const reader of readers) reader.flush();
    for (const change of changes) this.#reorder(change);
    this.#window.tail = this.head;
    this.#window.entries.clear();
    this.#windowBytes = 0;
    this.#pastStates.clear();
    this.#revision++;
    this.#contentRevision++;
    this.#rewrites++;
    this.#position = resourceVersion;
    this.#base = resourceVersion;
    this.#lastLateEvicted = "";
    this.#historyFrom = this.head;
    this.#resumeFrom = { position: resourceVersion, sequence: this.head };
    for (const reader of readers) if (this.recipients.has(reader)) reader.cut();
    this.#waiters.moved();
  }

  #append(
    change: StoreChange<Held<T>>,
    at: { readonly position: string; readonly isLate: boolean; readonly gapAfter?: string },
  ): void {
    this.#reorder(change);
    const { key, object } = change;
    const bytes = memorySize(object);
    this.#windowBytes += bytes;
    const common = { gapAfter: undefined, ...at, key, object, bytes, views: undefined };
    switch (change.type) {
      case "added":
        this.#window.entries.push({ ...common, type: "ADDED", oldObject: undefined });
        break;
      case "updated":
        this.#window.entries.push({ ...common, type: "MODIFIED", oldObject: change.oldObject });
        break;
      case "deleted":
        this.#window.entries.push({ ...common, type: "DELETED", oldObject: change.oldObject ?? object });
        break;
    }
  }

  #reorder(change: StoreChange<Held<T>>): void {
    const { type, key, object } = change;
    this.#snapshot = undefined;
    this.#revision++;
    this.#contentRevision++;
    if (type === "updated" && resourceVersionOf(change.oldObject) === resourceVersionOf(object)) {
      this.#rewrites++;
    }
    if (type === "added") this.#ordered.added(key);
    else if (type === "deleted") this.#ordered.deleted(key);
  }

  /** Whether the position moves to a resourceVersion: not back, and not where it is. */
  #advance(resourceVersion: string): boolean {
    if (compareResourceVersions(resourceVersion, this.#position) <= 0) return false;
    this.#position = resourceVersion;
    this.#revision++;
    this.#waiters.moved();
    return true;
  }

  #afterAppend(): void {
    if (this.#pastStates.states.size > 0) this.#pastStates.dropOld();
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
    if (this.#historyFrom < tail) this.#historyFrom = tail;
    for (const reader of Array.from(this.recipients)) if (reader.cursor < tail) reader.cut();
  }

  #scheduleHeartbeat(): void {
    const isWanted = Array.from(this.recipients).some((reader) => reader.wantsHeartbeat);
    if (isWanted === (this.#heartbeatTimer !== undefined)) return;
    if (isWanted) {
      this.#heartbeatTimer = this.#options.clock.setTimeout(() => {
        this.#heartbeatTimer = undefined;
        for (const reader of this.recipients) if (reader.wantsHeartbeat) reader.heartbeat();
        this.#scheduleHeartbeat();
      }, this.#options.heartbeatMs);
    } else {
      this.#options.clock.clearTimeout(this.#heartbeatTimer);
      this.#heartbeatTimer = undefined;
    }
  }
}

const BOOKMARK = { type: "BOOKMARK", key: "", object: undefined, oldObject: undefined } as const;
