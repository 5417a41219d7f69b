/**
 * The places of watches in the entries of an event log, and the order of a relist's entries.
 * @module
 */

import type { StoreChange } from "../../informer/events.ts";
import { compareResourceVersions, layoutOf, resourceVersionOf } from "../../meta/object.ts";
import { hasReached } from "../../meta/merged_version.ts";
import type { Deque } from "../../util/collections.ts";
import type { LogEntry } from "../send/encoding.ts";

/**
 * The entries that a log keeps, by their sequence numbers from `tail` on. Their positions do not decrease.
 */
export interface LogWindow<T> {
  readonly tail: number;
  readonly entries: Pick<Deque<LogEntry<T>>, "length" | "at">;
}

/** The first entry from `from` on whose position is after a resourceVersion; by bisection. */
export function firstAfter<T>(
  { tail, entries }: LogWindow<T>,
  resourceVersion: string,
  from: number,
): number {
  let low = Math.max(from, tail);
  let high = tail + entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const position = entries.at(middle - tail)?.position ?? "";
    if (compareResourceVersions(position, resourceVersion) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Whether the log was at a resourceVersion: a reader at it has seen what comes before it, and nothing of what
 * comes after. Each version of one server is such a place. A merged version may come from another copy, in
 * which the events of the sources came in another order: it must be between the position after one entry and
 * the position before the next one, for each source.
 */
export function isOnTheWay<T>(
  window: LogWindow<T>,
  version: string,
  { oldestResourceVersion, resourceVersion }: {
    readonly oldestResourceVersion: string;
    readonly resourceVersion: string;
  },
): boolean {
  const layout = layoutOf(resourceVersion);
  if (layout === "" || layoutOf(version) !== layout) return layoutOf(version) === layout;
  const next = firstAfter(window, version, window.tail) - window.tail;
  const before = next === 0 ? oldestResourceVersion : window.entries.at(next - 1)!.position;
  const entry = window.entries.at(next);
  const after = entry === undefined ? resourceVersion : entry.gapAfter ?? entry.position;
  return hasReached(version, before) && hasReached(after, version);
}

/** The first entry from `from` on that a reader at a resourceVersion may not have seen: after it, or late. */
export function firstUnseen<T>(window: LogWindow<T>, resourceVersion: string, from: number): number {
  const { tail, entries } = window;
  const start = Math.max(from, tail);
  let first = firstAfter(window, resourceVersion, start);
  const isUnseen = (entry?: LogEntry<T>) =>
    entry?.isLate === true && compareResourceVersions(entry.position, resourceVersion) === 0;
  while (first > start && isUnseen(entries.at(first - 1 - tail))) first--;
  return first;
}

/**
 * Deletes first, as their objects carry old resourceVersions; then by ascending resourceVersion, so that only
 * the last can bring a reader to the relist's own.
 */
export function inWatchOrder<T>(changes: readonly StoreChange<T>[]): StoreChange<T>[] {
  const deletes: StoreChange<T>[] = changes.filter((change) => change.type === "deleted");
  const others: StoreChange<T>[] = changes.filter((change) => change.type !== "deleted");
  const version = (change: StoreChange<T>) => resourceVersionOf(change.object) ?? "";
  others.sort((a, b) => compareResourceVersions(version(a), version(b)));
  return deletes.concat(others);
}
