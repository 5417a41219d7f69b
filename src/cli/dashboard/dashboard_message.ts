/** What the server sends to the page. */

import type { InformerStatus } from "../../informer/snapshot/storage.ts";

/** Everything the page shows, at one moment. */
export interface DashboardState {
  /** The time of the state; every time here is by this server's clock. */
  readonly nowMs: number;
  /** When this server started: it identifies the server and its feed. */
  readonly startedMs: number;
  readonly cluster: ClusterInfo;
  readonly resources: readonly ResourceState[];
  /** `undefined` when no reflected resource has namespaces. */
  readonly namespaces: NamespaceCounts | undefined;
  /** `undefined` when pods are not reflected. */
  readonly nodes: NodeCounts | undefined;
  readonly indices: readonly IndexCounts[];
  /** Changes in each of the last 60 seconds, the oldest first. */
  readonly changesPerSecond: readonly number[];
}

/** A message to a page: the state, and the lines of the feed that the page does not have. */
export interface DashboardMessage extends DashboardState {
  /** Oldest first. */
  readonly changes: readonly FeedEntry[];
}

export interface ClusterInfo {
  readonly name: string;
  readonly server: string;
  readonly version?: string;
  /** The only namespace that is reflected; all if absent. */
  readonly namespace?: string;
  readonly readers?: string;
}

export interface ResourceState extends Omit<InformerStatus, "resourceVersion" | "snapshot"> {
  readonly name: string;
  readonly path: string;
  readonly objects: number;
  readonly synced: boolean;
  readonly resourceVersion: string;
  readonly watches: number;
}

export interface IndexCounts {
  readonly resource: string;
  readonly index: string;
  readonly values: number;
  /** The value with the most objects, and their number. */
  readonly largest: { readonly value: string; readonly objects: number };
}

/** The number of objects in each namespace, by resource. */
export interface NamespaceCounts {
  readonly columns: readonly string[];
  readonly rows: readonly { readonly name: string; readonly counts: readonly number[] }[];
  /** The sums of the namespaces that are not among the rows. */
  readonly others: { readonly namespaces: number; readonly counts: readonly number[] } | undefined;
}

/** The number of pods on each node. */
export interface NodeCounts {
  readonly rows: readonly NodeCount[];
  /** The number of nodes that are not among the rows. */
  readonly others: number;
  readonly unassigned: number;
  readonly pods: number;
  readonly ready: number;
}

export interface NodeCount {
  readonly name: string;
  readonly pods: number;
  readonly ready: number;
  /** The number of pods it has room for, if nodes are reflected. */
  readonly room?: number;
  readonly closed?: boolean;
}

export interface FeedEntry {
  /** Consecutive numbers from 1. */
  readonly seq: number;
  readonly timeMs: number;
  /** `listed` is a list or relist; `key` is then the number of changes. */
  readonly type: "added" | "updated" | "deleted" | "listed";
  readonly resource: string;
  readonly key: string;
  readonly note?: string;
}

export interface FoundObject {
  readonly resource: string;
  readonly path: string;
  /** Absent for objects without a namespace. */
  readonly namespace?: string;
  readonly name: string;
}

/** What `/dashboard/search` found. */
export interface SearchResult {
  readonly objects: readonly FoundObject[];
  readonly total: number;
  /** Of a query with labels: what to read through the read API. `objects` is empty then. */
  readonly byLabels?: { readonly labelSelector: string; readonly lists: readonly SearchedList[] };
}

export interface SearchedList extends Pick<FoundObject, "resource" | "path"> {
  /** The words that keys must have, in lower case. */
  readonly words: readonly string[];
}
