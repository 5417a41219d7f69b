/**
 * Event logs that outlive their process.
 * @module
 */

import type { Held } from "../../store/holding.ts";
import type { LogEntry } from "../send/encoding.ts";

/**
 * An entry of the log of one resource, as it is kept.
 *
 * @category HTTP adapter
 */
export type KeptEntry<T> = Omit<LogEntry<T>, "bytes" | "atMs" | "isPlaced" | "views">;

/**
 * What was kept of a log.
 *
 * @category HTTP adapter
 */
export interface KeptLog<T> {
  /** The sequence number of the first entry; they follow each other. */
  readonly tail: number;
  readonly entries: readonly KeptEntry<T>[];
  /** The position right before the first entry. */
  readonly base: string;
  /** The position of the last late entry before the first one; may be empty. */
  readonly lastLateEvicted: string;
  /** Watches may not start before this. */
  readonly resumeFrom: LogStart;
}

/**
 * Where a log begins, for watches.
 *
 * @category HTTP adapter
 */
export interface LogStart {
  readonly position: string;
  readonly sequence: number;
}

/**
 * Keeps the log of one resource, so that watches resume when its process has restarted. All calls are
 * synchronous, and come in the turn in which the informer's snapshot was saved: a storage that commits whole
 * turns keeps both together.
 *
 * @category HTTP adapter
 */
export interface LogHistory {
  /**
   * The last entries, if they lead to the content that the informer has restored; at most `capacity` of them.
   *
   * @param position The content's resourceVersion.
   * @param held What the store holds for a key.
   */
  restore<T>(
    position: string,
    options: { readonly capacity: number; readonly held: (key: string) => Held<T> | undefined },
  ): KeptLog<T> | undefined;
  /** A new history begins: what came before leads nowhere. */
  begin(start: LogStart): void;
  /** One more entry. */
  append<T>(sequence: number, entry: KeptEntry<T>): void;
  /** After a relist, watches may not start before it. */
  resumeFrom(start: LogStart): void;
  /** The entries before this one are not read any more. */
  evicted(tail: number): void;
}
