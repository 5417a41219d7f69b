/** The recent events of one resource, which watches replay, and which earlier states are computed from. */

import type { StoreChange, StoreEvent } from "../../informer/events.ts";
import {
  compareResourceVersions,
  isSameState,
  type KubernetesObject,
  layoutOf,
  resourceVersionOf,
} from "../../meta/object.ts";
import { hasReached } from "../../meta/merged_version.ts";
import {
  newPartwiseWaiters,
  type VersionWaiters,
  type VersionWaitOptions,
} from "../../meta/version_waiters.ts";
import type { Held, Holding } from "../../store/holding.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque, firstIndex } from "../../util/collections.ts";
import { memorySize } from "../../util/json.ts";
import type {
  KeptEntry,
  KeptLog,
  KeyFollower,
  LogEntry,
  LogFollower,
  LogHistory,
  LogStart,
  LogWindow,
} from "./log_history.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";

export interface EventLogOptions {
  readonly clock: Clock;
  readonly capacity: number;
  readonly capacityBytes: number;
  /** Keeps the entries for the next process; by default they end with this one. */
  readonly history?: LogHistory | undefined;
}

interface Appended {
  /** Whether the entry leaves the position where it is. */
  readonly isLate: boolean;
  readonly gapAfter?: string;
}

/**
 * Follows one informer, in the order in which its store changes, and keeps the last
 * entries of that history by their sequence numbers.
 *
 * Positions never decrease, except where a new history begins (a restored server). A late change - under an
 * older resourceVersion, or in a list at the same one - does not move the position. A watch that resumes from
 * there may have seen it or not, and receives it, a second time if necessary. If the position is a merged
 * resourceVersion, objects have the versions of their own servers, and a bookmark follows each change, or a
 * few of them, with the position behind them. An entry costs two references to objects in their held form.
 */
export class EventLog<T extends KubernetesObject> {
  readonly #informer: ServedInformer<T>;
  readonly #store: { readonly holding: Holding<T>; readonly held: ServedStore<Held<T>> };
  readonly #options: EventLogOptions;
  readonly #window = {
    entries: new Deque<LogEntry<T>>(),
    tail: 0,
    resourceVersion: "",
    layout: "",
    revision: 0,
    rewrites: 0,
  };
  readonly #waiters: VersionWaiters;
  readonly #unobserve: () => void;
  readonly #unlisten: (() => void) | undefined;
  #follower: LogFollower<T> | undefined;
  #keys: KeyFollower | undefined;
  #isStarted = false;
  #isSynced = false;
  #isClosed = false;
  /** Changes whose versions say nothing about the position: the next bookmark places them. */
  #unplaced: StoreChange<Held<T>>[] = [];
  /** The position right before the oldest entry. */
  #base = "";
  /** The position of the last late entry that was dropped. */
  #lastLateEvicted = "";
  #resumeFrom: LogStart = { position: "", sequence: 0 };
  #bytes = 0;
  /** Up to here each event has come; a proof by state moves the position alone. */
  #eventsThrough = "";
  /** The positions since then: the last ones that proofs by state have moved it to. */
  readonly #proven = new Set<string>();

  readonly window: LogWindow<T> = this.#window;
  /** The keys of what has changed since the follower of keys cleared them. */
  readonly changedKeys: Set<string> = new Set();
  /** Followers that read each entry soon after it has come, and before it is dropped, beside the watches. */
  readonly along: Set<{ grown(): void }> = new Set();

  constructor(
    informer: ServedInformer<T>,
    store: { readonly holding: Holding<T>; readonly held: ServedStore<Held<T>> },
    options: EventLogOptions,
  ) {
    this.#informer = informer;
    this.#store = store;
    this.#options = options;
    this.#waiters = newPartwiseWaiters(() => this.#window.resourceVersion, options);
    const observer = (event: StoreEvent<Held<T>>) => this.#observe(event);
    this.#unobserve = informer.observeHeld?.(observer) ?? informer.observe(observer);
    this.#unlisten = informer.onStatus?.((status) => this.#letGoIfStopped(status));
    this.#letGoIfStopped(informer.status());
    this.isReady();
  }

  follow(follower: LogFollower<T>): void {
    this.#follower = follower;
  }

  followKeys(keys: KeyFollower): void {
    this.#keys = keys;
  }

  /** Whether the informer has synced, or has the content of a snapshot: there is something to read. */
  isReady(): boolean {
    if (this.#isSynced) return true;
    this.#isSynced = this.#informer.hasSynced();
    if (!this.#isSynced && !this.#informer.isRestored?.()) return false;
    if (!this.#isStarted) this.#start("");
    return true;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get resourceVersion(): string {
    return this.#window.resourceVersion;
  }

  /**
   * Up to here each event has come, or a list in its place: what a bookmark may say. The content may be
   * proven to be that of a later version. If objects were created and deleted in between, their events
   * are on their way, and a gap takes their place.
   */
  get eventsThrough(): string {
    return this.#eventsThrough;
  }

  /** Whether a resourceVersion is in the middle of what only a proof by state has passed. */
  mayLackEvents(resourceVersion: string): boolean {
    return !this.#proven.has(resourceVersion) &&
      compareResourceVersions(resourceVersion, this.#eventsThrough) > 0 &&
      compareResourceVersions(resourceVersion, this.resourceVersion) < 0;
  }

  get head(): number {
    return this.#window.tail + this.#window.entries.length;
  }

  /** The oldest resourceVersion that a watch may start from. */
  get oldestResourceVersion(): string {
    const { position } = this.#resumeFrom;
    return compareResourceVersions(position, this.#base) < 0 ? this.#base : position;
  }

  /** The resourceVersion of the oldest state that the present one can be rolled back to. */
  get oldestState(): string {
    return this.#base;
  }

  /**
   * The sequence number at which a watch that has seen everything up to a resourceVersion resumes; the end
   * for one from the future; `undefined` if entries it has not seen were dropped, or if its version is before
   * or within a relist. At the present position, late entries may have been dropped unseen: a watch that was
   * refused there would have nowhere to resume.
   */
  resume(resourceVersion: string): number | undefined {
    if (compareResourceVersions(resourceVersion, this.oldestResourceVersion) < 0) return undefined;
    const isBehind = compareResourceVersions(resourceVersion, this.#window.resourceVersion) < 0;
    if (isBehind && compareResourceVersions(resourceVersion, this.#lastLateEvicted) <= 0) return undefined;
    if (!this.isOnTheWay(resourceVersion)) return undefined;
    return this.#firstUnseen(resourceVersion);
  }

  /** The first entry from one on whose position is after a resourceVersion; by bisection. */
  firstAfter(resourceVersion: string, from: number = this.#window.tail): number {
    const { tail, entries } = this.#window;
    const isAfter = (sequence: number) =>
      compareResourceVersions(entries.at(sequence - tail)?.position ?? "", resourceVersion) > 0;
    return firstIndex(this.head, isAfter, Math.max(from, tail));
  }

  /**
   * Whether the log was at a resourceVersion: a reader at it has seen everything before it, and nothing after
   * it. Each version of one server is such a place. A merged version may come from another copy, in which the
   * events of the sources came in another order: it must be between the position after one entry and the
   * position before the next one, for each source.
   *
   * @param oldest The position before the first entry.
   */
  isOnTheWay(version: string, oldest: string = this.oldestResourceVersion): boolean {
    const { layout } = this.#window;
    if (layout === "" || layoutOf(version) !== layout) return layoutOf(version) === layout;
    const { tail, entries } = this.#window;
    const next = this.firstAfter(version) - tail;
    const before = next === 0 ? oldest : entries.at(next - 1)!.position;
    const entry = entries.at(next);
    const after = entry === undefined ? this.#window.resourceVersion : entry.gapAfter ?? entry.position;
    return hasReached(version, before) && hasReached(after, version);
  }

  /** The first entry that a reader at a resourceVersion may not have seen: after it, or late. */
  #firstUnseen(resourceVersion: string): number {
    const { tail, entries } = this.#window;
    const start = this.#resumeFrom.sequence;
    let first = this.firstAfter(resourceVersion, start);
    const isUnseen = (entry?: LogEntry<T>) =>
      entry?.isLate === true && compareResourceVersions(entry.position, resourceVersion) === 0;
    while (first > start && isUnseen(entries.at(first - 1 - tail))) first--;
    return first;
  }

  /** Whether the content reaches a resourceVersion within a time; at once if it has, or never will. */
  async reaches(resourceVersion: string, options: VersionWaitOptions): Promise<boolean> {
    return await this.#waiters.wait(resourceVersion, options) === "reached";
  }

  /** Drops the oldest entries, where there are too many, but none from `keepFrom` on. */
  trim(keepFrom: number = Infinity): void {
    const window = this.#window;
    const { entries } = window;
    const { capacity, capacityBytes, history } = this.#options;
    const before = window.tail;
    while ((entries.length > capacity || this.#bytes > capacityBytes) && window.tail < keepFrom) {
      const evicted = entries.shift()!;
      window.tail++;
      this.#bytes -= evicted.bytes;
      if (evicted.views !== undefined) this.#follower?.forget(evicted);
      if (evicted.isLate) this.#lastLateEvicted = evicted.position;
      this.#base = evicted.position;
    }
    if (window.tail === before) return;
    history?.evicted(window.tail);
    if (this.#follower?.isSending) this.#follower.trimmed(window.tail);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unobserve();
    this.#unlisten?.();
    this.#follower?.end();
    this.#waiters.stop();
  }

  /** An informer that has stopped reaches no other version. */
  #letGoIfStopped({ phase }: { readonly phase: string }): void {
    if (phase === "stopped") this.#waiters.stop();
  }

  /** Starts the log with the content of the store, and with the kept entries if they lead to it. */
  #start(resourceVersion: string): void {
    this.#isStarted = true;
    const stored = this.#informer.indexer.lastStoreSyncResourceVersion();
    const position = compareResourceVersions(resourceVersion, stored) > 0 ? resourceVersion : stored;
    this.#window.revision++;
    this.#moveTo(position);
    this.#base = position;
    this.#resumeFrom = { position, sequence: this.head };
    const { history, capacity } = this.#options;
    const held = (key: string) => this.#store.held.getByKey(key);
    const kept = history?.restore<T>(position, { capacity, held });
    if (kept === undefined) history?.begin(this.#resumeFrom);
    else this.#restore(kept);
  }

  #restore({ tail, entries, base, lastLateEvicted, resumeFrom }: KeptLog<T>): void {
    this.#window.tail = tail;
    for (const entry of entries) this.#push(entry);
    this.#base = base;
    this.#lastLateEvicted = lastLateEvicted;
    this.#resumeFrom = resumeFrom;
    this.trim();
  }

  #observe(event: StoreEvent<Held<T>>): void {
    if (!this.#isStarted) {
      // The first list comes as one event, or object by object, of which nothing is known until the informer
      // has synced.
      if (event.type === "replaced") this.#start(event.resourceVersion);
      return;
    }
    if (event.type === "bookmark") this.#bookmark(event.resourceVersion, event.byState);
    else if (event.type === "replaced") this.#replaced(event.resourceVersion, event.changes);
    else this.#changed(event);
  }

  #changed(change: StoreChange<Held<T>>): void {
    const { object } = change;
    const deletedAt = change.type === "deleted" ? change.resourceVersion : undefined;
    const version = deletedAt ?? resourceVersionOf(object) ?? "";
    if (change.type === "updated" && isSameState(this.#store.holding, change.oldObject, object)) {
      return this.#noteKey(change.key); // the store has another copy of it
    }
    this.#note(change);
    if (this.#window.layout !== "" && layoutOf(version) !== this.#window.layout) {
      this.#unplaced.push(change);
      return;
    }
    const isLate = !this.#advance(version);
    this.#append(change, { isLate });
    this.#grown();
    if (!isLate && this.#waiters.waiting.size > 0) this.#waiters.moved();
  }

  /** Everything up to a resourceVersion is there: the changes since that have no place yet are one step. */
  #bookmark(resourceVersion: string, byState = false): void {
    const before = this.resourceVersion;
    const isLate = !this.#advance(resourceVersion, byState);
    this.#window.layout = layoutOf(this.resourceVersion);
    if (this.#unplaced.length > 0) this.#place({ isLate, ...(!isLate && { gapAfter: before }) });
    this.#follower?.heard();
    if (!isLate) this.#waiters.moved();
  }

  #place(at: Appended): void {
    const changes = this.#unplaced;
    this.#unplaced = [];
    for (const change of changes) this.#append(change, at);
    this.#grown();
  }

  #replaced(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    if (this.#unplaced.length > 0) this.#place({ isLate: true });
    // A server that went back in time: watches cannot go from the states that they have seen to the present
    // one, as the same resourceVersion may mean another state. They receive what came before, and have to
    // list again.
    const isNewHistory = compareResourceVersions(resourceVersion, this.resourceVersion) < 0;
    const after = this.#follower?.interrupted(isNewHistory);
    for (const change of changes) this.#note(change);
    this.#window.revision++;
    if (isNewHistory) this.#restart(resourceVersion);
    else this.#relist(resourceVersion, changes);
    after?.();
    this.#waiters.moved();
    if (!isNewHistory) this.#grown();
  }

  #relist(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const previous = this.resourceVersion;
    const gapAfter = this.#eventsThrough;
    // A watch that has read all of it is at the end; one that stops in its middle is before it and may not
    // resume.
    const isLate = resourceVersion === previous;
    const sequence = isLate ? this.#firstUnseen(resourceVersion) : undefined;
    this.#moveTo(resourceVersion);
    // A restored server has come to the same version of another history.
    if (isLate && changes.length > 0) this.#window.rewrites++;
    for (const change of inWatchOrder(changes)) {
      const version = resourceVersionOf(change.object) ?? "";
      if (!isLate && compareResourceVersions(version, previous) <= 0) this.#noteRewrite(change);
      this.#append(change, { isLate, gapAfter });
    }
    this.#keep({ ...BOOKMARK, position: resourceVersion, gapAfter, isLate });
    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };
    this.#options.history?.resumeFrom(this.#resumeFrom);
  }

  #restart(resourceVersion: string): void {
    this.#window.tail = this.head;
    this.#window.entries.clear();
    this.#window.rewrites++;
    this.#bytes = 0;
    this.#moveTo(resourceVersion);
    this.#base = resourceVersion;
    this.#lastLateEvicted = "";
    this.#resumeFrom = { position: resourceVersion, sequence: this.head };
    this.#options.history?.begin(this.#resumeFrom);
    this.#keys?.restarted();
  }

  /** Whether the position moves to a resourceVersion: not back, and not where it is. */
  #advance(resourceVersion: string, byState = false): boolean {
    const order = compareResourceVersions(resourceVersion, this.#window.resourceVersion);
    if (order >= 0 && !byState) this.#cameThrough(resourceVersion);
    if (order <= 0) return false;
    this.#window.resourceVersion = resourceVersion;
    if (byState) {
      this.#proven.add(resourceVersion);
      if (this.#proven.size > MOST_PROVEN) this.#proven.delete(this.#proven.keys().next().value!);
    }
    return true;
  }

  #moveTo(position: string): void {
    this.#window.resourceVersion = position;
    this.#cameThrough(position);
    this.#window.layout = layoutOf(position);
  }

  #cameThrough(position: string): void {
    this.#eventsThrough = position;
    this.#proven.clear();
  }

  #noteKey(key: string): void {
    this.changedKeys.add(key);
    if (this.changedKeys.size >= MOST_KEYS) this.#keys?.noted();
  }

  #note({ key }: StoreChange<Held<T>>): void {
    this.#window.revision++;
    this.#noteKey(key);
  }

  #append(change: StoreChange<Held<T>>, at: Appended): void {
    if (at.isLate) this.#noteRewrite(change);
    const { key, object } = change;
    const common = { gapAfter: undefined, ...at, position: this.resourceVersion, key, object };
    switch (change.type) {
      case "added":
        return this.#keep({ ...common, type: "ADDED", oldObject: undefined });
      case "updated":
        return this.#keep({ ...common, type: "MODIFIED", oldObject: change.oldObject });
      case "deleted":
        // The object was not there: sums over the entries would go wrong.
        if (change.oldObject === undefined) this.#window.rewrites++;
        return this.#keep({ ...common, type: "DELETED", oldObject: change.oldObject ?? object });
    }
  }

  #keep(entry: KeptEntry<T>): void {
    this.#options.history?.append(this.head, entry);
    this.#push(entry);
  }

  #push(entry: KeptEntry<T>): void {
    const bytes = entry.object === undefined ? 0 : memorySize(entry.object);
    this.#bytes += bytes;
    const atMs = monotonicNow(this.#options.clock);
    const isPlaced = this.#window.layout === "" ||
      layoutOf(resourceVersionOf(entry.object) ?? "") === this.#window.layout;
    this.#window.entries.push({ ...entry, bytes, atMs, isPlaced, views: undefined });
  }

  /**
   * An object comes with a resourceVersion that the log had reached before: it may have had another state
   * under it. Every other state is under a resourceVersion of its own, since which the content has not had an
   * older one.
   */
  #noteRewrite({ type }: StoreChange<Held<T>>): void {
    if (type !== "deleted") this.#window.rewrites++;
  }

  #grown(): void {
    for (const each of this.along) each.grown();
    if (this.#follower?.isSending) this.#follower.grown();
    else this.trim();
  }
}

// Taking so many keys into the blocks of a state takes some milliseconds.
const MOST_KEYS = 4_096;
// Reads prove a version ten times a second at most, until the bookmark of a minute.
const MOST_PROVEN = 1_000;

const BOOKMARK = { type: "BOOKMARK", key: "", object: undefined, oldObject: undefined } as const;

/**
 * Deletes first, as their objects carry old resourceVersions; then by ascending resourceVersion, so that only
 * the last can bring a reader to the relist's own.
 */
function inWatchOrder<T>(changes: readonly StoreChange<T>[]): StoreChange<T>[] {
  const deletes: StoreChange<T>[] = changes.filter((change) => change.type === "deleted");
  const others: StoreChange<T>[] = changes.filter((change) => change.type !== "deleted");
  const version = (change: StoreChange<T>) => resourceVersionOf(change.object) ?? "";
  others.sort((a, b) => compareResourceVersions(version(a), version(b)));
  return deletes.concat(others);
}
