/**
 * The task of a contestant, and its measurements. The programs in Go and Rust print the same fields.
 *
 * @module
 */

/**
 * What one process of a contestant does, in this order. `sync` always
 * comes first; `profile` goes with all of them.
 */
export type Phase = "sync" | "heap" | "index" | "relist" | "burst" | "profile";

/** The arguments of a contestant, as `--name value`. */
export interface Task {
  /** The server's URL. */
  readonly server: string;
  readonly objects: number;
  readonly events: number;
  /** The resourceVersion of the last event. */
  readonly lastResourceVersion: string;
  readonly variant: string;
  readonly phases: readonly Phase[];
  /** Event handlers; 1 unless the growth with their number is measured. */
  readonly handlers: number;
  /** Indices; 2 unless the growth with their number is measured. */
  readonly indices: number;
}

/** Where the time of a part of a run went. */
export interface TimeSpent {
  readonly wallMs: number;
  /** In `JSON.parse`, but for the collector's pauses. */
  readonly parseMs: number;
  /** In pauses of the garbage collector. */
  readonly pausesMs: number;
  /** Waiting for something to arrive. */
  readonly idleMs: number;
}

/** What one process of a contestant measured; what it did not is absent. */
export interface Measurement {
  /** Version of the runtime, or of the library where it is not ours. */
  readonly version?: string;
  /** Objects in the store in the end. */
  readonly stored?: number;
  /** The time from `run` to synced. */
  readonly syncMs?: number;
  /** The time from `run` to when the handlers were notified of the last object. */
  readonly handledMs?: number;
  /** The peak of resident memory before `run`, with everything loaded. */
  readonly startRssBytes?: number;
  /** The peak when it was synced. */
  readonly syncRssBytes?: number;
  /** The peak in the end. */
  readonly endRssBytes?: number;
  /** The longest turn of the event loop while it synced. */
  readonly longestTaskMs?: number;
  /** As the figure before, for 99.9 % of the samples. */
  readonly p999TaskMs?: number;
  /** The longest pause of the garbage collector meanwhile; on Node. */
  readonly longestPauseMs?: number;
  /** The longest turn less such pauses in it; on Node. */
  readonly longestOwnTaskMs?: number;
  /** Heap and buffers after a garbage collection, less the same before `run`, when it was synced. */
  readonly settledBytes?: number;
  /** Objects returned per microsecond when every node is looked up. */
  readonly nodeLookupsPerUs?: number;
  /** As the lookups by node, for every namespace. */
  readonly namespaceLookupsPerUs?: number;
  /** The time from the first to the last event that a handler saw. */
  readonly burstMs?: number;
  /** How many events that were. */
  readonly burstEvents?: number;
  /** Updates that handlers received in a relist without changes. */
  readonly relistUpdates?: number;
  /** The highest heap while it listed again, sampled after collections, less the same before `run`. */
  readonly relistPeakBytes?: number;
  /** How many samples that were. */
  readonly relistSamples?: number;
  /** Whether the objects are still the same ones. */
  readonly relistKeepsIdentity?: boolean;
  /** Where the time went until all handlers were notified. */
  readonly syncTime?: TimeSpent | undefined;
  /** As `syncTime`, for the events. */
  readonly burstTime?: TimeSpent | undefined;
  /** Why it did not take part. */
  readonly skipped?: string;
}

/** A contestant's line on standard output starts with this; the rest is a measurement as JSON. */
export const MEASUREMENT_MARK = "MEASUREMENT ";
