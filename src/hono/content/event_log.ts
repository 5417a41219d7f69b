/** The recent events of one resource, which watches replay, and which earlier states are computed from. */

import type { StoreChange } from "../../informer/events.ts";
import { compareResourceVersions, layoutOf, resourceVersionOf } from "../../meta/object.ts";
import { hasReached } from "../../meta/merged_version.ts";
import type { Held } from "../../store/holding.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import { memorySize } from "../../util/json.ts";
import type { KeptEntry, KeptLog, LogEntry, LogHistory, LogStart } from "./log_history.ts";

/** Options of {@linkcode EventLog}. */
export interface EventLogOptions {
  readonly clock: Clock;
  /** How many entries are kept. */
  readonly capacity: number;
  /** How many bytes the objects of the kept entries may take. */
  readonly capacityBytes: number;
  /** Keeps the entries for the next process; by default they end with this one. */
  readonly history?: LogHistory | undefined;
}

/** How a change comes into the log. */
export interface Appended {
  /** It does not move the position. */
  readonly isLate: boolean;
  /** See {@linkcode LogEntry.gapAfter}. */
  readonly gapAfter?: string;
}

/**
 * Keeps the last entries of a resource's history, by their sequence numbers.
 *
 * Positions never decrease, except where a new history begins (a restored server). A late change - under an
 * older resourceVersion, or in a list at the same one - does not move the position. A watch that resumes from
 * there may have seen it or not, and receives it, a second time if necessary. Where the position is a merged
 * resourceVersion, objects have the versions of their own servers, and a bookmark follows each change, or a
 * few of them, with the position behind them. An entry costs two references to objects in their held form.
 */
export class EventLog<T> {
  readonly #options: EventLogOptions;
  readonly #entries = new Deque<LogEntry<T>>();
  #tail = 0;
  #position = "";
  /** The position right before the oldest entry whose past is known. */
  #base = "";
  /** The oldest entry that states may be rolled back to. */
  #historyFrom = 0;
  /** The position of the last late entry that was dropped. */
  #lastLateEvicted = "";
  /** Watches may not start before this. */
  #resumeFrom: LogStart = { position: "", sequence: 0 };
  /** What the objects of the entries take. */
  #bytes = 0;
  /** Of the position: `""` unless it is a merged resourceVersion. */
  #layout = "";
  #rewrites = 0;

  constructor(options: EventLogOptions) {
    this.#options = options;
  }

  /** The entries that are kept, from {@linkcode EventLog.tail} on. Their positions do not decrease. */
  get entries(): Pick<Deque<LogEntry<T>>, "length" | "at"> {
    return this.#entries;
  }

  /** The sequence number of the first entry. */
  get tail(): number {
    return this.#tail;
  }

  /** The sequence number of the next entry. */
  get head(): number {
    return this.#tail + this.#entries.length;
  }

  /** The resourceVersion that the content has reached. */
  get resourceVersion(): string {
    return this.#position;
  }

  /**
   * How often the content changed in a way that resourceVersions do not show: a state of an object may have
   * replaced another one of the same resourceVersion.
   */
  get rewrites(): number {
    return this.#rewrites;
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
    if (!this.isOnTheWay(resourceVersion)) return undefined;
    return this.#firstUnseen(resourceVersion);
  }

  /** The first entry from one on whose position is after a resourceVersion; by bisection. */
  firstAfter(resourceVersion: string, from: number = this.#tail): number {
    let low = Math.max(from, this.#tail);
    let high = this.head;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const position = this.#entries.at(middle - this.#tail)?.position ?? "";
      if (compareResourceVersions(position, resourceVersion) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Whether the log was at a resourceVersion: a reader at it has seen what comes before it, and nothing of
   * what comes after. Each version of one server is such a place. A merged version may come from another
   * copy, in which the events of the sources came in another order: it must be between the position after one
   * entry and the position before the next one, for each source.
   *
   * @param oldest The position before the first entry.
   */
  isOnTheWay(version: string, oldest: string = this.oldestResourceVersion): boolean {
    const layout = layoutOf(this.#position);
    if (layout === "" || layoutOf(version) !== layout) return layoutOf(version) === layout;
    const next = this.firstAfter(version) - this.#tail;
    const before = next === 0 ? oldest : this.#entries.at(next - 1)!.position;
    const entry = this.#entries.at(next);
    const after = entry === undefined ? this.#position : entry.gapAfter ?? entry.position;
    return hasReached(version, before) && hasReached(after, version);
  }

  /** The first entry that a reader at a resourceVersion may not have seen: after it, or late. */
  #firstUnseen(resourceVersion: string): number {
    const start = Math.max(this.#resumeFrom.sequence, this.#tail);
    let first = this.firstAfter(resourceVersion, start);
    const isUnseen = (entry?: LogEntry<T>) =>
      entry?.isLate === true && compareResourceVersions(entry.position, resourceVersion) === 0;
    while (first > start && isUnseen(this.#entries.at(first - 1 - this.#tail))) first--;
    return first;
  }

  /**
   * The log begins, with what was kept of it if that leads here.
   *
   * @param held What the store holds for a key.
   */
  begin(position: string, held: (key: string) => Held<T> | undefined): void {
    this.#moveTo(position);
    this.#base = position;
    this.#resumeFrom = { position, sequence: this.head };
    const { history, capacity } = this.#options;
    const kept = history?.restore<T>(position, { capacity, held });
    if (kept === undefined) history?.begin(this.#resumeFrom);
    else this.#restore(kept);
  }

  #restore({ tail, entries, base, lastLateEvicted, resumeFrom }: KeptLog<T>): void {
    this.#tail = tail;
    for (const entry of entries) this.#push(entry);
    this.#base = base;
    this.#historyFrom = tail;
    this.#lastLateEvicted = lastLateEvicted;
    this.#resumeFrom = resumeFrom;
    this.trim();
  }

  /**
   * Whether the position moves to a resourceVersion: not back, and not where it is.
   *
   * @param isOfAll Whether it is the version of the resource, and not that of an object.
   */
  advance(resourceVersion: string, isOfAll: boolean): boolean {
    const isMoved = compareResourceVersions(resourceVersion, this.#position) > 0;
    if (isMoved) this.#position = resourceVersion;
    if (isOfAll) this.#layout = layoutOf(this.#position);
    return isMoved;
  }

  #moveTo(position: string): void {
    this.#position = position;
    this.#layout = layoutOf(position);
  }

  /** Whether the version of an object says something about the position. */
  places(version: string): boolean {
    return this.#layout === "" || layoutOf(version) === this.#layout;
  }

  /** A change of the content, which leads to the position. */
  append(change: StoreChange<Held<T>>, at: Appended): void {
    if (at.isLate) this.#noteRewrite(change);
    const { key, object } = change;
    const common = { gapAfter: undefined, ...at, position: this.#position, key, object };
    switch (change.type) {
      case "added":
        return this.#keep({ ...common, type: "ADDED", oldObject: undefined });
      case "updated":
        return this.#keep({ ...common, type: "MODIFIED", oldObject: change.oldObject });
      case "deleted":
        // It was not there: what sums up the entries would go wrong.
        if (change.oldObject === undefined) this.#rewrites++;
        return this.#keep({ ...common, type: "DELETED", oldObject: change.oldObject ?? object });
    }
  }

  /** The changes of a relist, which is not older than the position. */
  relist(resourceVersion: string, changes: readonly StoreChange<Held<T>>[]): void {
    const previous = this.#position;
    // A watch that has read all of it is at the end; one that stops in its middle is before it and may not
    // resume.
    const isLate = resourceVersion === previous;
    const sequence = isLate ? this.#firstUnseen(resourceVersion) : undefined;
    this.#moveTo(resourceVersion);
    for (const change of inWatchOrder(changes)) {
      const version = resourceVersionOf(change.object) ?? "";
      if (!isLate && compareResourceVersions(version, previous) <= 0) this.#noteRewrite(change);
      this.append(change, { isLate, gapAfter: previous });
    }
    this.#keep({ ...BOOKMARK, position: resourceVersion, gapAfter: previous, isLate });
    this.#resumeFrom = { position: resourceVersion, sequence: sequence ?? this.head };
    this.#options.history?.resumeFrom(this.#resumeFrom);
  }

  /** The server went back in time: a new history begins, to which no way leads. */
  restart(resourceVersion: string): void {
    this.#tail = this.head;
    this.#entries.clear();
    this.#bytes = 0;
    this.#rewrites++;
    this.#moveTo(resourceVersion);
    this.#base = resourceVersion;
    this.#lastLateEvicted = "";
    this.#historyFrom = this.head;
    this.#resumeFrom = { position: resourceVersion, sequence: this.head };
    this.#options.history?.begin(this.#resumeFrom);
  }

  /** Drops the oldest entries, where there are too many, but none from `keepFrom` on. */
  trim(
    { keepFrom = Infinity, onDropped }: {
      readonly keepFrom?: number;
      readonly onDropped?: (entry: LogEntry<T>) => void;
    } = {},
  ): void {
    const { capacity, capacityBytes, history } = this.#options;
    const before = this.#tail;
    while (
      (this.#entries.length > capacity || this.#bytes > capacityBytes) && this.#entries.length > 0 &&
      this.#tail < keepFrom
    ) {
      const evicted = this.#entries.shift()!;
      this.#tail++;
      this.#bytes -= evicted.bytes;
      onDropped?.(evicted);
      if (evicted.isLate) this.#lastLateEvicted = evicted.position;
      if (this.#tail > this.#historyFrom) this.#base = evicted.position;
    }
    if (this.#tail === before) return;
    history?.evicted(this.#tail);
    if (this.#historyFrom < this.#tail) this.#historyFrom = this.#tail;
  }

  #keep(entry: KeptEntry<T>): void {
    this.#options.history?.append(this.head, entry);
    this.#push(entry);
  }

  #push(entry: KeptEntry<T>): void {
    const bytes = entry.object === undefined ? 0 : memorySize(entry.object);
    this.#bytes += bytes;
    const atMs = monotonicNow(this.#options.clock);
    const isPlaced = this.places(resourceVersionOf(entry.object) ?? "");
    this.#entries.push({ ...entry, bytes, atMs, isPlaced, views: undefined });
  }

  /**
   * An object comes with a resourceVersion that the log had reached before: it may have had another state
   * under it. Every other state is under a resourceVersion of its own, since which the content has not had an
   * older one.
   */
  #noteRewrite({ type }: StoreChange<Held<T>>): void {
    if (type !== "deleted") this.#rewrites++;
  }
}

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
