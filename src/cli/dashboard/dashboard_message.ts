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
  /** The indices that have values. */
  readonly indices: readonly IndexCounts[];
  /** Changes in each of the last 60 seconds, the oldest first. */
  readonly changesPerSecond: readonly number[];
}

/** A message to a page: the state, and the lines of the feed that the page does not have. */
export interface DashboardMessage extends DashboardState {
  /** Oldest first. */
  readonly changes: readonly FeedEntry[];
}

/** The cluster that is shown. */
export interface ClusterInfo {
  /** The name for people, such as a context's name. */
  readonly name: string;
  readonly server: string;
  readonly version?: string;
  /** The only namespace that is reflected; all if absent. */
  readonly namespace?: string;
  /** Who may read, as text for people. */
  readonly readers?: string;
}

/** The state of one resource. */
export interface ResourceState extends Omit<InformerStatus, "resourceVersion" | "snapshot"> {
  readonly name: string;
  /** The path of its list. */
  readonly path: string;
  readonly objects: number;
  readonly synced: boolean;
  /** The resourceVersion of the store. */
  readonly resourceVersion: string;
  /** The number of open watches of readers. */
  readonly watches: number;
}

/** The size of one index. */
export interface IndexCounts {
  readonly resource: string;
  readonly index: string;
  /** The number of values. */
  readonly values: number;
  /** The value with the most objects, and their number. */
  readonly largest: { readonly value: string; readonly objects: number };
}

/** The number of objects in each namespace, by resource. */
export interface NamespaceCounts {
  /** The resources' names. */
  readonly columns: readonly string[];
  /** By name. */
  readonly rows: readonly { readonly name: string; readonly counts: readonly number[] }[];
  /** The sums of the namespaces that are not among the rows. */
  readonly others: { readonly namespaces: number; readonly counts: readonly number[] } | undefined;
}

/** The number of pods on each node. */
export interface NodeCounts {
  /** By name. */
  readonly rows: readonly NodeCount[];
  /** The number of nodes that are not among the rows. */
  readonly others: number;
  /** The number of pods without a node. */
  readonly unassigned: number;
  /** The number of all pods. */
  readonly pods: number;
  readonly ready: number;
}

/** One node's pods. */
export interface NodeCount {
  readonly name: string;
  readonly pods: number;
  readonly ready: number;
  /** The number of pods it has room for, if nodes are reflected. */
  readonly room?: number;
  /** Whether it is unschedulable. */
  readonly closed?: boolean;
}

/** One line of the feed. */
export interface FeedEntry {
  /** Consecutive numbers from 1. */
  readonly seq: number;
  readonly timeMs: number;
  /** `listed` is a list or relist; `key` is then the number of changes. */
  readonly type: "added" | "updated" | "deleted" | "listed";
  readonly resource: string;
  readonly key: string;
  /** A short description of the object's state. */
  readonly note?: string;
}

/** An object that was found. */
export interface FoundObject {
  /** The display name of its resource. */
  readonly resource: string;
  /** The path of the resource's list. */
  readonly path: string;
  /** Absent for objects without a namespace. */
  readonly namespace?: string;
  readonly name: string;
}

/** What `/dashboard/search` found. */
export interface SearchResult {
  /** The best first. */
  readonly objects: readonly FoundObject[];
  /** How many there are in all. */
  readonly total: number;
  /** Of a query with labels: what to read through the read API. `objects` is empty then. */
  readonly byLabels?: { readonly labelSelector: string; readonly lists: readonly SearchedList[] };
}

/** A list in which to search. */
export interface SearchedList extends Pick<FoundObject, "resource" | "path"> {
  /** The words that keys must have, in lower case. */
  readonly words: readonly string[];
}
