/** Groups of watches that send the same bytes. */

import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import { AGE_ANNOTATION } from "../../meta/list_watch.ts";
import { concatenated } from "../../util/bytes.ts";
import type { EventLog } from "../content/event_log.ts";
import type { LogEntry } from "../content/log_history.ts";
import { encode, type EntryViews, eventText } from "./encoding.ts";
import { OPEN_UNITS } from "../../util/turns.ts";
import type { Selection } from "../content/selection.ts";
import type { View } from "../request/view.ts";

/** What the watches of a group have in common. */
export interface GroupKind {
  readonly view: View;
  /** Which objects; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** Whether the end of a relist is sent as a bookmark. */
  readonly allowBookmarks: boolean;
}

/** The events of some entries of the log, as one piece of bytes that all watches of a group share. */
export interface Chunk {
  /** The first entry. */
  readonly from: number;
  /** The one after the last. */
  readonly to: number;
  /** `undefined` if no event is selected. */
  readonly bytes: Uint8Array | undefined;
  /** The resourceVersion that a watch has reached with it; `""` if it stays where it is. */
  readonly resourceVersion: string;
  /** The changes of a relist in it are more than one watch receives at once. */
  readonly isTooLong: boolean;
  /** More entries would not make it longer. */
  readonly isFull: boolean;
  /** The work that it took, until it is counted. */
  units: number;
}

/** How a chunk is made. */
export interface ChunkOptions {
  /** The length from which a chunk is not continued. */
  readonly length: number;
  /** A watch from the future has seen everything up to this resourceVersion; `""`: nothing special. */
  readonly skipThrough: string;
}

/** The part of a content that groups read. */
export interface GroupContent<T> {
  readonly log: Pick<EventLog<T>, "tail" | "entries">;
  /**
   * The time since the last contact with the API server, or with the one of several that was silent the
   * longest.
   */
  readonly ageMs: number;
}

// What a relist may put into the stream of one watch at once.
const RELIST_BYTES = 4 * 1024 * 1024;

// Below that, a cache above takes the events for news of all sources.
const SHOWN_AGE_MS = 1_000;

// What the selection of one chunk may cost.
const MOST_UNITS = 40_000;

// Of each group: the watches that keep up have one cursor, or a few while a pass gives way to new entries.
const KEPT_CHUNKS = 4;

/** The groups of one log. */
export class WatchGroups<T extends KubernetesObject> {
  readonly #content: GroupContent<T>;
  readonly #views: EntryViews<T>;
  readonly #groups = new Map<string, WatchGroup<T>>();
  /** Those that may keep chunks. */
  readonly #used = new Set<WatchGroup<T>>();

  /**
   * @param content Whose entries are sent.
   * @param views What is made of them.
   */
  constructor(content: GroupContent<T>, views: EntryViews<T>) {
    this.#content = content;
    this.#views = views;
  }

  /** The number of groups that further watches may join. */
  get size(): number {
    return this.#groups.size;
  }

  /** The group of a watch. */
  join(kind: GroupKind): WatchGroup<T> {
    const name = nameOf(kind);
    const known = name === undefined ? undefined : this.#groups.get(name);
    const group = known ??
      new WatchGroup(kind, { content: this.#content, views: this.#views, used: this.#used });
    if (name !== undefined) this.#groups.set(name, group);
    group.members++;
    return group;
  }

  /** A watch has ended. */
  leave(group: WatchGroup<T>): void {
    if (--group.members > 0) return;
    this.#used.delete(group);
    const name = nameOf(group.kind);
    if (name !== undefined) this.#groups.delete(name);
  }

  /** Drops all chunks. */
  clear(): void {
    for (const group of this.#used) group.clear();
    this.#used.clear();
  }
}

/** Watches with the same name send the same bytes; `undefined`: what it sends is its own. */
function nameOf({ view, selection, allowBookmarks }: GroupKind): string | undefined {
  const selected = selection === undefined ? "" : selection.sharedAs;
  if (view.sharedAs === undefined || selected === undefined) return undefined;
  return JSON.stringify([view.sharedAs, allowBookmarks, selected]);
}

/**
 * Whether the next entry belongs to the same relist, or to the same step from one merged version to another.
 */
function isSameStep(entry: LogEntry<unknown>, next: LogEntry<unknown> | undefined): boolean {
  return entry.gapAfter !== undefined && next?.gapAfter === entry.gapAfter &&
    next.position === entry.position;
}

/** Watches of one view and one selection. */
export class WatchGroup<T extends KubernetesObject> {
  readonly #content: GroupContent<T>;
  readonly #views: EntryViews<T>;
  readonly kind: GroupKind;
  /** How many watches it has. */
  members = 0;
  readonly #used: Set<WatchGroup<T>>;
  /** The last ones, the latest last. */
  #chunks: Chunk[] = [];
  #bookmark: { readonly resourceVersion: string; readonly bytes: Uint8Array } | undefined;

  /** Made by {@linkcode WatchGroups.join}. */
  constructor(
    kind: GroupKind,
    { content, views, used }: {
      readonly content: GroupContent<T>;
      readonly views: EntryViews<T>;
      readonly used: Set<WatchGroup<T>>;
    },
  ) {
    this.kind = kind;
    this.#content = content;
    this.#views = views;
    this.#used = used;
  }

  /** The events from an entry on: up to the end of the log, or until the chunk is long enough. */
  chunk(from: number, options: ChunkOptions): Chunk {
    // What the chunk of a watch from the future leaves out is its own.
    if (options.skipThrough !== "") return this.#build(from, options);
    const { tail, entries } = this.#content.log;
    const i = this.#chunks.findLastIndex((chunk) => chunk.from === from);
    const known = this.#chunks[i];
    if (known?.isFull || known?.to === tail + entries.length) return known;
    const chunk = this.#build(from, options, known);
    if (known !== undefined) this.#chunks.splice(i, 1);
    else if (this.#chunks.length === KEPT_CHUNKS) this.#chunks.shift();
    this.#chunks.push(chunk);
    this.#used.add(this);
    return chunk;
  }

  /** A bookmark of this view. */
  bookmark(resourceVersion: string): Uint8Array {
    const { view } = this.kind;
    if (this.#bookmark?.resourceVersion === resourceVersion && view.sharedAs !== undefined) {
      return this.#bookmark.bytes;
    }
    const bytes = encode(eventText("BOOKMARK", view.bookmark({ resourceVersion })));
    this.#bookmark = { resourceVersion, bytes };
    return bytes;
  }

  /**
   * A bookmark behind events whose objects do not show where they lead; says how old the whole is, if a
   * source is away.
   */
  #place(resourceVersion: string): Uint8Array {
    const { ageMs } = this.#content;
    if (ageMs < SHOWN_AGE_MS) return this.bookmark(resourceVersion);
    const annotations = { [AGE_ANNOTATION]: String(ageMs) };
    return encode(eventText("BOOKMARK", this.kind.view.bookmark({ resourceVersion, annotations })));
  }

  /** Drops the chunks. */
  clear(): void {
    this.#chunks = [];
  }

  #build(from: number, { length: most, skipThrough }: ChunkOptions, known?: Chunk): Chunk {
    const { selection, allowBookmarks } = this.kind;
    const { tail, entries } = this.#content.log;
    const head = tail + entries.length;
    const parts = known?.bytes === undefined ? [] : [known.bytes];
    let length = known?.bytes?.byteLength ?? 0;
    let resourceVersion = known?.resourceVersion ?? "";
    let to = known?.to ?? from;
    let units = 0;
    let isWithinStep = false;
    let isTooLong = false;
    // Whether the reader has the position from the last event, or by a bookmark.
    let hasPosition = true;
    // The changes of a relist go out together.
    while (to < head && (isWithinStep || (length < most && units < MOST_UNITS))) {
      const entry = entries.at(to++ - tail);
      if (entry === undefined) continue;
      const isBookmark = entry.type === "BOOKMARK";
      isWithinStep = !isBookmark && isSameStep(entry, entries.at(to - tail));
      if (selection !== undefined) units += 2 * selection.units;
      const isSeen = skipThrough !== "" && compareResourceVersions(entry.position, skipThrough) <= 0;
      if (isSeen && (isBookmark || !entry.isLate)) continue;
      // In the middle of a relist a reader has no position.
      if (!isWithinStep && !isSeen) resourceVersion = entry.position;
      if (isBookmark && !allowBookmarks) continue;
      const bytes = isBookmark ? this.bookmark(entry.position) : this.#bytes(entry, {
        showsPosition: !allowBookmarks && !isWithinStep,
        onOpen: () => units += OPEN_UNITS,
      });
      if (bytes === undefined) continue;
      parts.push(bytes);
      length += bytes.byteLength;
      hasPosition = isBookmark || entry.isPlaced;
      // It is cheaper for both to list again, which waits for the reader.
      isTooLong = isWithinStep && length > RELIST_BYTES;
      if (isTooLong) break;
    }
    if (!hasPosition && allowBookmarks && !isWithinStep) {
      parts.push(this.#place(resourceVersion));
      length += parts.at(-1)!.byteLength;
    }
    const isFull = isTooLong || to < head;
    const bytes = parts.length > 1 ? concatenated(parts, length) : parts[0];
    return { from, to, bytes, resourceVersion, isTooLong, isFull, units };
  }

  /** The entry as this group sees it: `undefined` where it sees nothing. */
  #bytes(
    entry: LogEntry<T>,
    { showsPosition, onOpen }: { readonly showsPosition: boolean; readonly onOpen: () => void },
  ): Uint8Array | undefined {
    const { view, selection } = this.kind;
    if (selection?.mayHave(entry.key) === false) return undefined;
    const was = entry.oldObject !== undefined && this.#isSelected(entry, "oldObject", onOpen);
    const is = entry.type !== "DELETED" && this.#isSelected(entry, "object", onOpen);
    const views = this.#views;
    if (is) return views.bytes(entry, was ? "MODIFIED" : "ADDED", view, showsPosition);
    if (!was) return undefined;
    return views.bytes(entry, entry.type === "DELETED" ? "DELETED" : "LEFT", view, showsPosition);
  }

  #isSelected(entry: LogEntry<T>, which: "object" | "oldObject", onOpen: () => void): boolean {
    const { hasLabels, hasFields } = this.kind.selection ?? {};
    if (hasLabels?.(entry[which]) === false) return false;
    if (hasFields === undefined) return true;
    const object = this.#views.opened(entry, which)!;
    if (object !== entry[which]) onOpen();
    return hasFields(object);
  }
}
