/**
 * The recent events of one resource, for watches to replay and for reads of earlier versions.
 * @module
 */

import type { StoreChange, StoreEvent } from "../informer/store_event.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { resourceVersionOf } from "../meta/object.ts";
import { compareResourceVersions } from "../meta/resource_version.ts";
import { VersionWaiters, type VersionWaitOptions } from "../meta/version_waiters.ts";
import type { CandidateQuery } from "../store/candidates.ts";
import { type Held, heldStoreOf, type Holding } from "../store/holding.ts";
import type { Indexer } from "../store/indexer.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { Deque } from "../util/deque.ts";
import { EntryViews, type LogEntry } from "./encoding.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";
import { type IndexValue, OrderedContent, rolledBack, type Snapshot } from "./snapshot.ts";

/** A watch, as the log sees it. */
export interface LogReader {
  /** The sequence number of the next entry it will read. */
  readonly cursor: number;
  /** Whether it wants {@linkcode LogReader.heartbeat}. */
  readonly wantsHeartbeat: boolean;
  /** There are new entries. */
  wake(): void;
  /** Time for a sign of life. */
  heartbeat(): void;
  /** The entries that it would read next were dropped. */
  cut(): void;
  /** The log is closed: end in good order. */
  end(): void;
}

/** The entries that a log keeps, by their sequence numbers from `tail` on. */
export interface LogWindow<T> {
  readonly tail: number;
  readonly entries: Pick<Deque<LogEntry<T>>, "length" | "at">;
}

/** Options of {@linkcode EventLog}. */
export interface EventLogOptions {
  readonly clock: Clock;
  /** How many entries are kept. */
  readonly capacity: number;
  /** Time between heartbeats. */
  readonly heartbeatMs: number;
}

/** A state of the past, kept for the next pages of lists. */
interface PastState<T> {
  readonly snapshot: Snapshot<T>;
  readonly untilMs: number;
}

// Pages of a long list come within seconds of each other; a state takes two references for each object.
const PAST_STATES = 8;
const PAST_STATE_MS = 30_000;

/**
 * Keeps the last entries of an informer's history, and wakes the watches that read it.
 *
 * Positions never decrease, except at a relist at an older resourceVersion (a restored server), which starts a new history.
 * A late change - under an older resourceVersion, or in a list at the same one - does not move the position. A watch that
 * resumes from there may have seen it or not, and receives it, a second time if necessary. An entry costs two references
 * to objects in their held form; its bytes are made when a watch first needs them.
 */
export class EventLog<T extends KubernetesObject> {
  readonly #informer: ServedInformer<T>;
  readonly #options: EventLogOptions;
  readonly #window = { tail: 0, entries: new Deque<LogEntry<T>>() };
  readonly #ordered: OrderedContent<T>;
  readonly #readers = new Set<LogReader>();
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
  /** By the sequence number of the first entry that came after; the least recently used first. */
  readonly #pastStates = new Map<number, PastState<T>>();
  #started = false;
  #flushScheduled = false;
  #closed = false;
  #revision = 0;
  #rewrites = 0;
  readonly #held: ServedStore<Held<T>>;

  /** The entries that are kept. */
  readonly window: LogWindow<T> = this.#window;
  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  /** What watches read of entries. */
  readonly views: EntryViews<T>;

  /** Starts to follow the informer. */
  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    this.#options = options;
    this.#waiters = new VersionWaiters(() => this.#position, options);
    const { holding, held } = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = holding;
    this.#held = held;
    this.views = new EntryViews(holding);
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
    return this.#readers.size;
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
    const first = this.#firstAfter(resourceVersion, this.#historyFrom);
    const gapAfter = this.entry(first)?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    const known = this.#pastState(first);
    if (known !== undefined) return { ...known, resourceVersion };
    const before = new Map<string, Held<T> | undefined>();
    for (let sequence = first; sequence < this.head; sequence++) {
      const entry = this.entry(sequence);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    if (before.size === 0) return { ...this.snapshot(), resourceVersion };
    const snapshot = rolledBack({ ...this.snapshot(), resourceVersion }, before);
    this.#keepPastState(first, snapshot);
    return snapshot;
  }

  #pastState(first: number): Snapshot<T> | undefined {
    this.#dropPastStates();
    const state = this.#pastStates.get(first);
    if (state !== undefined) this.#keepPastState(first, state.snapshot);
    return state?.snapshot;
  }

  #keepPastState(first: number, snapshot: Snapshot<T>): void {
    const untilMs = monotonicNow(this.#options.clock) + PAST_STATE_MS;
    this.#pastStates.delete(first);
    this.#pastStates.set(first, { snapshot, untilMs });
    for (const oldest of this.#pastStates.keys()) {
      if (this.#pastStates.size <= PAST_STATES) return;
      this.#pastStates.delete(oldest);
    }
  }

  /** Drops states that were not read for a moment. Without a timer: they stay while nothing happens. */
  #dropPastStates(): void {
    if (this.#pastStates.size === 0) return;
    const nowMs = monotonicNow(this.#options.clock);
    for (const [first, { untilMs }] of this.#pastStates) if (untilMs <= nowMs) this.#pastStates.delete(first);
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
    return this.#firstUnseen(resourceVersion);
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
    this.#readers.add(reader);
    this.#scheduleHeartbeat();
    return () => {
      this.#readers.delete(reader);
      this.#scheduleHeartbeat();
    };
  }

  /** Stops following the informer, ends every watch and every wait. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unobserve();
    this.#unlisten?.();
    for (const reader of Array.from(this.#readers)) reader.end();
    this.#readers.clear();
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
    this.#position = resourceVersion;
    // A watch that has read all of it is at the end; one that stops in its middle is before it and may not resume.
    const isLate = resourceVersion === previous;
    const relist = { position: resourceVersion, gapAfter: previous, isLate };
    const sequence = isLate ? this.#firstUnseen(resourceVersion) : undefined;
    for (const change of inWatchOrder(changes)) this.#append(change, relist);
    this.#window.entries.push({ ...BOOKMARK, ...relist, views: undefined });
    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };
    this.#waiters.moved();
    this.#afterAppend();
  }

  /**
   * The server went back in time. There is no way from what watches have seen to what is there: the same resourceVersion
   * may mean another state. They receive what came before, and then have to list again.
   */
  #restarted(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const readers = Array.from(this.#readers);
    this.views.burst(readers);
    for (const change of changes) this.#reorder(change);
    this.#window.tail = this.head;
    this.#window.entries.clear();
    this.#pastStates.clear();
    this.#revision++;
    this.#rewrites++;
    this.#position = resourceVersion;
    this.#base = resourceVersion;
    this.#lastLateEvicted = "";
    this.#historyFrom = this.head;
    this.#resumeFrom = { position: resourceVersion, sequence: this.head };
    for (const reader of readers) if (this.#readers.has(reader)) reader.cut();
    this.#waiters.moved();
  }

  #append(
    change: StoreChange<Held<T>>,
    at: { readonly position: string; readonly isLate: boolean; readonly gapAfter?: string },
  ): void {
    this.#reorder(change);
    const { key, object } = change;
    const common = { gapAfter: undefined, ...at, key, object, views: undefined };
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
    this.#dropPastStates();
    if (this.#readers.size === 0) {
      this.#trim();
    } else if (!this.#flushScheduled) {
      // After the turn, so that everything it brings goes out as one chunk.
      this.#flushScheduled = true;
      queueMicrotask(() => this.#flush());
    }
  }

  #flush(): void {
    this.#flushScheduled = false;
    this.views.burst(this.#readers);
    this.#trim();
  }

  #trim(): void {
    const { entries } = this.#window;
    if (entries.length <= this.#options.capacity) return;
    while (entries.length > this.#options.capacity) {
      const evicted = entries.shift();
      this.#window.tail++;
      if (evicted?.isLate) this.#lastLateEvicted = evicted.position;
      if (evicted !== undefined && this.#window.tail > this.#historyFrom) this.#base = evicted.position;
    }
    const { tail } = this.#window;
    if (this.#historyFrom < tail) this.#historyFrom = tail;
    for (const reader of Array.from(this.#readers)) if (reader.cursor < tail) reader.cut();
  }

  /** The first entry from `from` on whose position is after a resourceVersion; by bisection. */
  #firstAfter(resourceVersion: string, from: number): number {
    let low = Math.max(from, this.#window.tail);
    let high = this.head;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const position = this.entry(middle)?.position ?? "";
      if (compareResourceVersions(position, resourceVersion) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The first entry that a reader at a resourceVersion may not have seen: after it, or late. */
  #firstUnseen(resourceVersion: string): number {
    const from = Math.max(this.#resumeFrom.sequence, this.#window.tail);
    let first = this.#firstAfter(resourceVersion, from);
    const isUnseen = (entry?: LogEntry<T>) =>
      entry?.isLate === true && compareResourceVersions(entry.position, resourceVersion) === 0;
    while (first > from && isUnseen(this.entry(first - 1))) first--;
    return first;
  }

  #scheduleHeartbeat(): void {
    const isWanted = Array.from(this.#readers).some((reader) => reader.wantsHeartbeat);
    if (isWanted === (this.#heartbeatTimer !== undefined)) return;
    if (isWanted) {
      this.#heartbeatTimer = this.#options.clock.setTimeout(() => {
        this.#heartbeatTimer = undefined;
        for (const reader of Array.from(this.#readers)) if (reader.wantsHeartbeat) reader.heartbeat();
        this.#scheduleHeartbeat();
      }, this.#options.heartbeatMs);
    } else {
      this.#options.clock.clearTimeout(this.#heartbeatTimer);
      this.#heartbeatTimer = undefined;
    }
  }
}

const BOOKMARK = { type: "BOOKMARK", key: "", object: undefined, oldObject: undefined } as const;

/**
 * Deletes first, as their objects carry old resourceVersions; then by ascending resourceVersion, so that only the last
 * can bring a reader to the relist's own.
 */
function inWatchOrder<T>(changes: readonly StoreChange<T>[]): StoreChange<T>[] {
  const deletes: StoreChange<T>[] = changes.filter((change) => change.type === "deleted");
  const others: StoreChange<T>[] = changes.filter((change) => change.type !== "deleted");
  const version = (change: StoreChange<T>) => resourceVersionOf(change.object) ?? "";
  others.sort((a, b) => compareResourceVersions(version(a), version(b)));
  return deletes.concat(others);
}
