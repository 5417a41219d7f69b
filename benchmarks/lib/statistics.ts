/**
 * Makes one measurement from several measurements of the same thing.
 *
 * @module
 */

import type { Measurement } from "./measurement.ts";

/**
 * The value in the middle; the mean of the two in the middle
 * where their number is even. `undefined` for none.
 */
export function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What is derived from one run, as a number. */
export type Metric = (run: Measurement) => number | undefined;

/** Events per second of the burst, counted from the first. */
export function eventsPerSecond({ burstMs, burstEvents }: Measurement): number | undefined {
  return burstMs === undefined || burstEvents === undefined ? undefined : (burstEvents - 1) / burstMs * 1000;
}

/** Bytes of settled heap for each object. */
export function heapPerObject({ settledBytes, stored }: Measurement): number | undefined {
  return settledBytes === undefined || stored === undefined ? undefined : settledBytes / stored;
}

/** The median of a metric over the runs that have it. */
export function medianOf(runs: readonly Measurement[], metric: Metric): number | undefined {
  const values: number[] = [];
  for (const run of runs) {
    const value = metric(run);
    if (value !== undefined && Number.isFinite(value)) values.push(value);
  }
  return median(values);
}

/** A number with about three digits that say something. */
export function digits(value: number): string {
  if (value === 0) return "0";
  const places = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 3;
  const [whole, rest] = value.toFixed(places).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}
