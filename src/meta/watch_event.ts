/**
 * The events of a watch.
 * @module
 */

import type { KubernetesObject, ObjectMeta } from "./object.ts";
import type { Status } from "./status.ts";

/** The annotation on the bookmark that ends the initial events of a streamed list. */
export const INITIAL_EVENTS_END_ANNOTATION = "k8s.io/initial-events-end";

/**
 * The object of a bookmark: of the watched kind, with metadata only.
 *
 * @example
 * ```ts
 * import type { BookmarkObject } from "@listwatch/cache/reflector";
 * const bookmark: BookmarkObject = { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "42" } };
 * ```
 *
 * @category Reflector
 */
export interface BookmarkObject extends KubernetesObject {
  readonly metadata: ObjectMeta;
}

/**
 * One event of a watch, as the API server sends it.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { WatchEvent } from "@listwatch/cache/reflector";
 * function resourceVersion(event: WatchEvent<KubernetesObject>): string | undefined {
 *   return event.type === "ERROR" ? undefined : event.object.metadata?.resourceVersion;
 * }
 * ```
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
