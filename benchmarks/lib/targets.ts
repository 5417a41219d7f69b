/**
 * What was aimed at: ratios between medians of one run, on Node.
 *
 * @module
 */

import { eventsPerSecond, heapPerObject, type Metric } from "./statistics.ts";

/** Whom ours is compared with. */
export type Reference = "client-node" | "client-go" | "bare-node";

/** All of them, in the order of the columns. */
export const REFERENCES: readonly Reference[] = ["client-node", "client-go", "bare-node"];

/** As in the tables. */
export const REFERENCE_LABELS: Record<Reference, string> = {
  "client-node": "client-node",
  "client-go": "client-go",
  "bare-node": "bare loop",
};

/** One row of the table of targets. */
export interface Target {
  readonly label: string;
  /** The variant of ours on Node. */
  readonly variant: "all" | "default" | "encoded" | "every" | "every-plain";
  readonly metric: Metric;
  /** Whether the ratio should be at most or at least the limit. */
  readonly sense: "at most" | "at least";
  readonly limits: Partial<Record<Reference, number>>;
}

/** How many objects the targets are about. */
export const TARGET_SIZE = 20_000;

/** The targets. */
export const TARGETS: readonly Target[] = [
  {
    label: "time to sync, all fields",
    variant: "all",
    metric: (run) => run.syncMs,
    sense: "at most",
    limits: { "client-node": 0.5, "client-go": 0.2, "bare-node": 1.15 },
  },
  {
    label: "time to sync, no managedFields",
    variant: "default",
    metric: (run) => run.syncMs,
    sense: "at most",
    limits: { "client-node": 0.5, "client-go": 0.15, "bare-node": 0.85 },
  },
  {
    label: "events per second, all fields",
    variant: "all",
    metric: eventsPerSecond,
    sense: "at least",
    limits: { "client-node": 1.5, "client-go": 6, "bare-node": 1.3 },
  },
  {
    label: "events per second, no managedFields",
    variant: "default",
    metric: eventsPerSecond,
    sense: "at least",
    limits: { "client-node": 1.9, "client-go": 8, "bare-node": 1.3 },
  },
  {
    label: "peak RSS while syncing, all fields",
    variant: "all",
    metric: (run) => run.syncRssBytes,
    sense: "at most",
    limits: { "client-node": 0.4, "client-go": 1.1, "bare-node": 1.1 },
  },
  {
    label: "peak RSS while syncing, no managedFields",
    variant: "default",
    metric: (run) => run.syncRssBytes,
    sense: "at most",
    limits: { "client-node": 0.4, "client-go": 1.1, "bare-node": 1.1 },
  },
  {
    label: "time to sync, no managedFields, short texts",
    variant: "encoded",
    metric: (run) => run.syncMs,
    sense: "at most",
    limits: { "client-node": 0.6 },
  },
  {
    label: "events per second, no managedFields, short texts",
    variant: "encoded",
    metric: eventsPerSecond,
    sense: "at least",
    limits: { "client-node": 0.9 },
  },
  {
    label: "settled heap per object, all fields",
    variant: "all",
    metric: heapPerObject,
    sense: "at most",
    limits: { "client-node": 0.6 },
  },
  // Peaks of whole runs differ more than those of the sync alone: the same limits for both.
  {
    label: "peak RSS, events included, all fields",
    variant: "all",
    metric: (run) => run.endRssBytes,
    sense: "at most",
    limits: { "client-node": 0.4, "client-go": 1.1, "bare-node": 1.1 },
  },
  {
    label: "peak RSS, events included, no managedFields",
    variant: "default",
    metric: (run) => run.endRssBytes,
    sense: "at most",
    limits: { "client-node": 0.4, "client-go": 1.1, "bare-node": 1.1 },
  },
  {
    label: "settled heap per object, no managedFields",
    variant: "default",
    metric: heapPerObject,
    sense: "at most",
    limits: { "client-node": 0.55, "client-go": 0.75 },
  },
  {
    label: "settled heap per object, no managedFields, short texts",
    variant: "encoded",
    metric: heapPerObject,
    sense: "at most",
    limits: { "client-node": 0.25, "client-go": 0.35 },
  },
  {
    label: "byIndex, objects/us",
    variant: "default",
    metric: (run) => run.nodeLookupsPerUs,
    sense: "at least",
    limits: { "client-node": 100, "client-go": 3 },
  },
];

/** Whether a ratio meets its limit. */
export function isMet(target: Pick<Target, "sense">, limit: number, ratio: number): boolean {
  return target.sense === "at most" ? ratio <= limit : ratio >= limit;
}
