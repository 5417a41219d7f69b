/** Lists and watches: their options, and what an API server returns. */

import type { KubernetesObject, ListMeta, ObjectMeta } from "./object.ts";
import type { Status } from "./status.ts";
import type { Moment } from "../util/clock.ts";

/** The annotation on the bookmark that ends the initial events of a streamed list. */
export const INITIAL_EVENTS_END_ANNOTATION = "k8s.io/initial-events-end";

/**
 * The annotation on bookmarks of a cache: how many milliseconds ago it had the last contact with the API
 * server. Without it, a cache above would take the heartbeats of the one below for news.
 */
export const AGE_ANNOTATION = "listwatch.cache/age-ms";

/** The object of a bookmark: an object of the watched kind with metadata only. */
export interface BookmarkObject extends KubernetesObject {
  readonly metadata: ObjectMeta;
}

/** One event of a watch, as the API server sends it. */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: BookmarkObject }
  | { readonly type: "ERROR"; readonly object: Status };

/** Whether a bookmark ends the initial events: its annotation says the string `"true"`. */
export function isInitialEventsEnd(bookmark: BookmarkObject): boolean {
  return bookmark.metadata.annotations?.[INITIAL_EVENTS_END_ANNOTATION] === "true";
}

/** How many milliseconds ago the sender of a bookmark, if it is a cache, had contact with its own server. */
export function ageMsOf(bookmark: BookmarkObject): number {
  return sentAgeMs(bookmark.metadata.annotations?.[AGE_ANNOTATION], 1);
}

/** An age that was sent as a number of such units; 0 where there is none. */
export function sentAgeMs(sent: string | null | undefined, unitMs: number): number {
  const ageMs = Number(sent) * unitMs;
  return ageMs > 0 && ageMs < Infinity ? ageMs : 0;
}

/** The names of namespaces, which may change: a `NamespaceSet`. */
export interface NamespaceNames {
  /** The namespaces, each once. */
  readonly names: readonly string[];
  /** Whether a namespace is among them. */
  has(name: string): boolean;
  /** Calls a listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /**
   * Makes one list of a list of each namespace.
   * @internal
   */
  listEach<T>(list: (namespace: string) => Promise<ListPage<T>>): Promise<ListPage<T>>;
}

/** The options of a list or a watch, as Kubernetes names them; an absent or empty one is not sent. */
export interface ListOptions {
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: "NotOlderThan" | "Exact";
  /** The largest number of items in one page; 0 or absent: no limit. */
  readonly limit?: number;
  /** The beginning of a page: the token that the previous page returned. */
  readonly continue?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** After how many seconds the server ends a watch. */
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
  /** Whether a watch begins with every present object as ADDED, and a bookmark after them. */
  readonly sendInitialEvents?: boolean;
  /** Only the objects of some ranges of hashes (KEP-5866); API servers before 1.38 send all objects. */
  readonly shardSelector?: string;
}

/** An object that could not be accepted, and why. It is skipped and reported; the others continue. */
export interface Quarantined {
  readonly reason: string;
  /** The place of the fault: `object.metadata.name`, `items[3].spec.replicas` in a list; may be empty. */
  readonly path: string;
  /** The object's key, if it could be read. */
  readonly key?: string;
  /** The object's resourceVersion, if it could be read. */
  readonly resourceVersion?: string;
  /** The type of its event; absent for an item of a list. */
  readonly eventType?: string;
}

/** One page of a list. */
export interface ListPage<T> {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ListMeta;
  readonly items: T[];
  /** Items that could not be accepted; they are not in {@linkcode ListPage.items}. */
  readonly quarantined?: readonly Quarantined[];
  /** How many milliseconds ago a cache that sent it had contact with its own server (the header `Age`). */
  readonly ageMs?: number;
}

/** One item of a watch: an event, or the report of an event that could not be accepted. */
export type WatchItem<T> = WatchEvent<T> | {
  readonly type: "QUARANTINED";
  readonly quarantined: Quarantined;
};

/**
 * An open watch: batches of events in the order of arrival, one batch per chunk of
 * bytes. The stream ends when the server ends the watch, and throws when the connection
 * breaks. Leaving the loop closes the connection.
 */
export type WatchStream<T> = AsyncIterable<readonly WatchItem<T>[]>;

/** Proof by a server that the objects are the same at two versions. */
export interface VersionProof {
  /** The version of the last change. */
  readonly after: string;
  readonly through: string;
  /** When the server was asked: it may have shown that while the program was suspended. */
  readonly asked: Moment;
  /**
   * Whether the state of all objects was the proof: events of objects that were created and deleted in
   * between may still arrive.
   */
  readonly byState?: boolean;
}
