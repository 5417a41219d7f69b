/**
 * What is asked of an API server in a list or a watch, and what comes back.
 * @module
 */

import type { ListMeta } from "./object.ts";
import type { WatchEvent } from "./watch_event.ts";

/**
 * The options of a list or a watch, as Kubernetes names them; an absent or empty one is not sent.
 *
 * @example
 * ```ts
 * import type { ListOptions } from "@listwatch/cache/reflector";
 * const options: ListOptions = { limit: 500, resourceVersion: "0", labelSelector: "app=web" };
 * ```
 */
export interface ListOptions {
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: "NotOlderThan" | "Exact";
  /** The largest number of items in one page; 0 or absent: no limit. */
  readonly limit?: number;
  /** Where a page begins: what the page before it returned. */
  readonly continue?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** After how many seconds the server ends a watch. */
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
  /** Ask a watch to begin with every present object as ADDED, and a bookmark at their end. */
  readonly sendInitialEvents?: boolean;
}

/**
 * What goes along with a list or a watch without being sent.
 *
 * @example
 * ```ts
 * import type { ListWatchContext } from "@listwatch/cache/reflector";
 * const context: ListWatchContext = { signal: AbortSignal.timeout(30_000) };
 * ```
 */
export interface ListWatchContext {
  /** Ends the request, and a watch's stream, at once. */
  readonly signal: AbortSignal;
  /** Told how many bytes of the answer's body have arrived, chunk by chunk, by sources that know. */
  readonly onBytes?: (bytes: number) => void;
  /**
   * Given each item of a list as soon as it is decoded and accepted; what it returns takes its place in the page. For
   * sources that decode items one by one: then never more than one of them is there in its own form. A source that
   * looks into the items of another one's pages must not pass this on to it.
   */
  readonly intake?: (item: unknown) => unknown;
}

/**
 * An object that could not be accepted, and why. It is set aside; everything else goes on.
 *
 * @example
 * ```ts
 * import type { Quarantined } from "@listwatch/cache/reflector";
 * function line({ key = "an object", path, reason }: Quarantined): string {
 *   return `${key}: ${path} ${reason}`; // shop/web-1: items[3].metadata.labels must be an object
 * }
 * ```
 */
export interface Quarantined {
  /** What is wrong with it, in words. */
  readonly reason: string;
  /** Where in what was received: `object.metadata.name` of an event, `items[3].spec.replicas` of a list; may be empty. */
  readonly path: string;
  /** Its key, where that could be read. */
  readonly key?: string;
  /** Its resourceVersion, where that could be read. */
  readonly resourceVersion?: string;
  /** The type of the event that brought it; absent for an item of a list. */
  readonly eventType?: string;
}

/**
 * One page of a list.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { ListPage } from "@listwatch/cache/reflector";
 * const page: ListPage<KubernetesObject> = {
 *   kind: "PodList",
 *   apiVersion: "v1",
 *   metadata: { resourceVersion: "42", continue: "" },
 *   items: [{ metadata: { namespace: "shop", name: "web-1" } }],
 * };
 * ```
 */
export interface ListPage<T> {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ListMeta;
  readonly items: T[];
  /** Items that were not accepted, and are not in {@linkcode ListPage.items}. */
  readonly quarantined?: readonly Quarantined[];
}

/**
 * One thing that came out of a watch: an event, or the report of one that was not accepted.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { WatchItem } from "@listwatch/cache/reflector";
 * function line(item: WatchItem<KubernetesObject>): string {
 *   return item.type === "INVALID" ? item.quarantined.reason : item.type;
 * }
 * ```
 */
export type WatchItem<T> = WatchEvent<T> | { readonly type: "INVALID"; readonly quarantined: Quarantined };

/**
 * An open watch: batches of events in the order they came, one batch for what one chunk of bytes held, so that a
 * thousand events cost one turn. It ends when the server ends it, and throws when the connection breaks. Leaving the
 * loop (`break`, `return`) closes the connection.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import type { WatchStream } from "@listwatch/cache/reflector";
 * async function count(stream: WatchStream<KubernetesObject>): Promise<number> {
 *   let items = 0;
 *   for await (const batch of stream) items += batch.length;
 *   return items;
 * }
 * ```
 */
export type WatchStream<T> = AsyncIterable<readonly WatchItem<T>[]>;
