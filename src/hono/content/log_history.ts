/** The entries of event logs, who follows them, and logs that outlive their process. */

import type { Held } from "../../store/holding.ts";
import type { Deque } from "../../util/collections.ts";

export interface LogEntry<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly key: string;
  /** The resourceVersion of the resource once this has happened; the same for all entries of a relist. */
  readonly position: string;
  /** Whether the entry left the position where it was: a reader at that position may have seen it, or not. */
  readonly isLate: boolean;
  /** The present state; the final state of a deleted object. `undefined` in a bookmark. */
  readonly object: Held<T> | undefined;
  readonly oldObject: Held<T> | undefined;
  /**
   * In the entries of a relist, and of a change whose object's version is not the position: the position
   * before it. The changes in between are not known, and a reader in the middle has no position.
   */
  readonly gapAfter: string | undefined;
  /** Whether the object's version says something about the position; else a bookmark has to follow it. */
  readonly isPlaced: boolean;
  readonly bytes: number;
  readonly atMs: number;
  /** The forms made of the entry for watches, while they are kept. */
  views: EntryForms<T> | undefined;
}

export interface EntryForms<T> {
  object?: T;
  oldObject?: T;
  /** The entry as bytes, by event type and view. */
  readonly encoded: Map<string, Uint8Array>;
  bytes: number;
}

export interface LogFollower<T> {
  /** A relist comes, or a new history, which no watch may continue with. Returns what to call after it. */
  interrupted(isNewHistory: boolean): () => void;
  readonly isSending: boolean;
  /** There are entries to send; it calls {@linkcode EventLog.trim} when it has sent them. */
  grown(): void;
  /** There was news of the API server. */
  heard(): void;
  forget(entry: LogEntry<T>): void;
  /** The entries before this one were dropped. */
  trimmed(tail: number): void;
  end(): void;
}

export interface KeyFollower {
  /** Many keys are noted: it clears them. */
  noted(): void;
  /** A new history begins, in which versions have other states. */
  restarted(): void;
}

/** The content of a log. Only the log changes it. */
export interface LogWindow<T> {
  /** The entries that are kept. Their positions do not decrease. */
  readonly entries: Pick<Deque<LogEntry<T>>, "length" | "at">;
  readonly tail: number;
  readonly resourceVersion: string;
  /** The layout of that version: `""` unless it is a merged one. */
  readonly layout: string;
  /** Differs whenever the objects have changed. */
  readonly revision: number;
  /**
   * How many times the content changed in a way that resourceVersions do not show: another state of it, or of
   * an object, may have had the same resourceVersion.
   */
  readonly rewrites: number;
}

export type KeptEntry<T> = Omit<LogEntry<T>, "bytes" | "atMs" | "isPlaced" | "views">;

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

export interface LogStart {
  readonly position: string;
  readonly sequence: number;
}

/**
 * Keeps the log of one resource, so that watches resume when its process has restarted. All calls are
 * synchronous, and come in the turn in which the informer's snapshot was saved: a storage that commits whole
 * turns keeps both together.
 */
export interface LogHistory {
  /** The last entries, at most `capacity`, if they lead to the content that the informer has restored. */
  restore<T>(
    position: string,
    options: { readonly capacity: number; readonly held: (key: string) => Held<T> | undefined },
  ): KeptLog<T> | undefined;
  /** A new history begins: earlier entries lead nowhere. */
  begin(start: LogStart): void;
  append<T>(sequence: number, entry: KeptEntry<T>): void;
  /** After a relist, watches may not start before it. */
  resumeFrom(start: LogStart): void;
  evicted(tail: number): void;
}
