/**
 * The events of a watch.
 * @module
 */

import type { KubernetesObject, ObjectMeta } from "./object.ts";
import type { Status } from "./status.ts";

/** The annotation on the bookmark that ends the initial events of a streamed list. */
export const INITIAL_EVENTS_END_ANNOTATION = "k8s.io/initial-events-end";

/**
 * The annotation on bookmarks of a cache above which there is another one: how many milliseconds ago it had
 * the last contact with the API server. Without it, each cache of a chain would take the heartbeats of the
 * one below for news.
 */
export const AGE_ANNOTATION = "listwatch.cache/age-ms";

/**
 * The object of a bookmark: of the watched kind, with metadata only.
 *
 * @category Reflector
 */
export interface BookmarkObject extends KubernetesObject {
  readonly metadata: ObjectMeta;
}

/**
 * One event of a watch, as the API server sends it.
 *
 * @category Reflector
 */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: BookmarkObject }
  | { readonly type: "ERROR"; readonly object: Status };

/** Whether a bookmark ends the initial events: its annotation says the string `"true"`. */
export function isInitialEventsEnd(bookmark: BookmarkObject): boolean {
  return bookmark.metadata.annotations?.[INITIAL_EVENTS_END_ANNOTATION] === "true";
}

/**
 * How many milliseconds ago the server of a bookmark, which may be a cache, had the last contact with its
 * own.
 */
export function ageMsOf(bookmark: BookmarkObject): number {
  const ageMs = Number(bookmark.metadata.annotations?.[AGE_ANNOTATION]);
  return ageMs > 0 && ageMs < Infinity ? ageMs : 0;
}
