/**
 * Intervals of time, and their overlap.
 *
 * @module
 */

/** A time from one `performance.now()` to another. */
export interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

/** For how long some of both was under way; each is a list of intervals that do not overlap, in order. */
export function overlapOf(some: readonly Interval[], others: readonly Interval[]): number {
  let sum = 0;
  let i = 0;
  let j = 0;
  while (i < some.length && j < others.length) {
    const endMs = Math.min(some[i].endMs, others[j].endMs);
    sum += Math.max(0, endMs - Math.max(some[i].startMs, others[j].startMs));
    if (some[i].endMs === endMs) i++;
    else j++;
  }
  return sum;
}
