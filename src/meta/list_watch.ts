/**
 * Lists and watches: their options, and what an API server returns.
 * @module
 */

import type { ListMeta } from "./object.ts";
import type { ObjectHead, ObjectTextReader, ReadAlong } from "./object_text.ts";
import type { WatchEvent } from "./watch_event.ts";

/**
 * The options of a list or a watch, as Kubernetes names them; an absent or empty one is not sent.
 *
 * @category Reflector
 */
export interface ListOptions {
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: "NotOlderThan" | "Exact";
  /** The largest number of items in one page; 0 or absent: no limit. */
  readonly limit?: number;
  /** Where a page begins: the token that the previous page returned. */
  readonly continue?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** After how many seconds the server ends a watch. */
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
  /** Whether a watch begins with every present object as ADDED, and a bookmark after them. */
  readonly sendInitialEvents?: boolean;
  /** Only the objects of some ranges of hashes (KEP-5866); servers that do not know it send all objects. */
  readonly shardSelector?: string;
}

/**
 * Arguments of a list or a watch that are not sent.
 *
 * @category Reflector
 */
export interface ListWatchContext {
  /** Ends the request, and a watch's stream, at once. */
  readonly signal: AbortSignal;
  /** Called with the number of bytes of each chunk of the answer's body, by sources that count them. */
  readonly onBytes?: (bytes: number) => void;
  /**
   * Called with each item of a list as soon as it is decoded and accepted; what it returns replaces the item in the page.
   * For sources that decode items one by one, so that at most one of them is in memory in decoded form. A source that
   * reads the items of another source's pages must not pass this on.
   */
  readonly intake?: (item: unknown) => unknown;
  /**
   * Makes what a store holds of an object's JSON text; lists and watches return that instead of the parsed objects. For
   * sources that have the text; others ignore it.
   */
  readonly holdText?: HoldText;
}

/**
 * How a store holds objects that are read as text. One that holds texts hands it to its source.
 *
 * @category Reflector
 */
export interface HoldText {
  /** Reads objects out of texts: used by one after the other. */
  readonly reader: ObjectTextReader;
  /**
   * Makes what the store holds of an object's JSON text, which is a string of its own (no part of a longer one), and was
   * checked: it can be parsed, and its head was accepted.
   *
   * @param read What the reader read besides; absent where the text is not the one that was read.
   */
  readonly hold: (text: string, head: ObjectHead, read?: ReadAlong) => unknown;
  /**
   * What is stored for a key, if an item of a list that has the same uid and resourceVersion may be taken for the same
   * object. Then the list has the stored one in its place, and its text is not read.
   */
  readonly stored?: (key: string) => unknown;
  /** Holds objects whose texts are read when they are needed first; absent if it holds no such objects. */
  readonly late?: {
    /** `undefined`: not with this head. */
    readonly hold: (source: { readonly json: string }, head: ObjectHead, key: string) => unknown;
    /**
     * Reads the text of an object that may be held so.
     *
     * @throws What reading it fails with.
     */
    readonly read: (held: unknown) => void;
  };
}

/**
 * An object that could not be accepted, and why. It is skipped and reported; the others continue.
 *
 * @category Reflector
 */
export interface Quarantined {
  /** What is wrong with it. */
  readonly reason: string;
  /** The place of the fault: `object.metadata.name` in an event, `items[3].spec.replicas` in a list; may be empty. */
  readonly path: string;
  /** Its key, if that could be read. */
  readonly key?: string;
  /** Its resourceVersion, if that could be read. */
  readonly resourceVersion?: string;
  /** The type of its event; absent for an item of a list. */
  readonly eventType?: string;
}

/**
 * One page of a list.
 *
 * @category Reflector
 */
export interface ListPage<T> {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ListMeta;
  readonly items: T[];
  /** Items that could not be accepted; they are not in {@linkcode ListPage.items}. */
  readonly quarantined?: readonly Quarantined[];
}

/**
 * One item of a watch: an event, or the report of an event that could not be accepted.
 *
 * @category Reflector
 */
export type WatchItem<T> = WatchEvent<T> | {
  readonly type: "QUARANTINED";
  readonly quarantined: Quarantined;
};

/**
 * An open watch: batches of events in the order of arrival, one batch per chunk of bytes, so that a thousand events cost
 * one turn. The stream ends when the server ends the watch, and throws when the connection breaks. Leaving the loop
 * (`break`, `return`) closes the connection.
 *
 * @category Reflector
 */
export type WatchStream<T> = AsyncIterable<readonly WatchItem<T>[]>;
