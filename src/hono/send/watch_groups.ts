/** Groups of watches that send the same bytes, and the bytes of log entries, made once for all. */

import { compareResourceVersions, type KubernetesObject, resourceVersionOf } from "../../meta/object.ts";
import type { Held, Holding } from "../../store/holding.ts";
import type { FieldCut } from "../../text/field_cut.ts";
import { onOneLine } from "../../text/json_walk.ts";
import { AGE_ANNOTATION } from "../../meta/list_watch.ts";
import { concatenated, encodeUtf8 } from "../../util/bytes.ts";
import { jsonOf } from "../../util/json.ts";
import type { EntryForms, LogEntry, LogWindow } from "../content/log_history.ts";
import { OPEN_UNITS } from "../../util/turns.ts";
import type { Selection } from "../content/selection.ts";
import type { View } from "../request/requested_read.ts";
import { atVersion, formText, viewText } from "./view_text.ts";

export interface GroupKind {
  readonly view: View;
  readonly selection: Selection | undefined;
  /** Whether the end of a relist is sent as a bookmark. */
  readonly allowBookmarks: boolean;
}

/** The events of some entries of the log, as one piece of bytes that all watches of a group share. */
export interface Chunk {
  readonly from: number;
  readonly to: number;
  /** `undefined` if no event is selected. */
  readonly bytes: Uint8Array | undefined;
  /** The resourceVersion that a watch has reached with it; `""` if it stays where it is. */
  readonly resourceVersion: string;
  /** The changes of a relist in it are more than one watch receives at once. */
  readonly isTooLong: boolean;
  /** Whether further entries would not make the chunk longer. */
  readonly isFull: boolean;
  /** The work that it took, until it is counted. */
  units: number;
}

export interface ChunkOptions {
  /** The length from which a chunk is not continued. */
  readonly length: number;
  /** A watch from the future has seen everything up to this resourceVersion; `""`: nothing special. */
  readonly skipThrough: string;
}

/** The part of a content that groups read. */
export interface GroupContent<T> {
  readonly log: { readonly window: Pick<LogWindow<T>, "tail" | "entries"> };
  /** The time since the last contact with the API server; of several servers, the longest. */
  readonly ageMs: number;
}

// The most bytes that a relist may put into the stream of one watch at once.
const RELIST_BYTES = 4 * 1024 * 1024;

// Below that, a cache above takes the events for news of all sources.
const SHOWN_AGE_MS = 1_000;

// The most work on the selection of one chunk.
const MOST_UNITS = 40_000;

// The chunks that a group keeps: watches that keep up have one cursor, or a few while a pass gives way.
const KEPT_CHUNKS = 4;

export class WatchGroups<T extends KubernetesObject> {
  readonly content: GroupContent<T>;
  readonly views: EntryViews<T>;
  readonly #groups = new Map<string, WatchGroup<T>>();
  /** The groups that may keep chunks. */
  readonly used: Set<WatchGroup<T>> = new Set();

  /**
   * @param content The content whose entries are sent.
   * @param views The forms that are made of the entries.
   */
  constructor(content: GroupContent<T>, views: EntryViews<T>) {
    this.content = content;
    this.views = views;
  }

  get size(): number {
    return this.#groups.size;
  }

  join(kind: GroupKind): WatchGroup<T> {
    const name = nameOf(kind);
    const known = name === undefined ? undefined : this.#groups.get(name);
    const group = known ?? new WatchGroup(kind, this);
    if (name !== undefined) this.#groups.set(name, group);
    group.members++;
    return group;
  }

  leave(group: WatchGroup<T>): void {
    if (--group.members > 0) return;
    this.used.delete(group);
    const name = nameOf(group.kind);
    if (name !== undefined) this.#groups.delete(name);
  }

  clear(): void {
    for (const group of this.used) group.clear();
    this.used.clear();
  }
}

/** Watches with the same name send the same bytes; `undefined`: what it sends is its own. */
function nameOf({ view, selection, allowBookmarks }: GroupKind): string | undefined {
  return view.sharedAs && JSON.stringify([view.sharedAs, allowBookmarks, selection?.name ?? ""]);
}

/** Whether the next entry belongs to the same relist, or the same step to another merged version. */
function isSameStep(entry: LogEntry<unknown>, next: LogEntry<unknown> | undefined): boolean {
  return entry.gapAfter !== undefined && next?.gapAfter === entry.gapAfter &&
    next.position === entry.position;
}

export class WatchGroup<T extends KubernetesObject> {
  readonly #all: WatchGroups<T>;
  readonly kind: GroupKind;
  members = 0;
  /** The last ones, the latest last. */
  #chunks: Chunk[] = [];
  #bookmark: { readonly resourceVersion: string; readonly bytes: Uint8Array } | undefined;

  constructor(kind: GroupKind, all: WatchGroups<T>) {
    this.kind = kind;
    this.#all = all;
  }

  /** The events from an entry on: up to the end of the log, or until the chunk is long enough. */
  chunk(from: number, options: ChunkOptions): Chunk {
    // The chunk of a watch from the future leaves out other entries than those of its group.
    if (options.skipThrough !== "") return this.#build(from, options);
    const { tail, entries } = this.#all.content.log.window;
    const i = this.#chunks.findLastIndex((chunk) => chunk.from === from);
    const known = this.#chunks[i];
    if (known?.isFull || known?.to === tail + entries.length) return known;
    const chunk = this.#build(from, options, known);
    if (known !== undefined) this.#chunks.splice(i, 1);
    else if (this.#chunks.length === KEPT_CHUNKS) this.#chunks.shift();
    this.#chunks.push(chunk);
    this.#all.used.add(this);
    return chunk;
  }

  bookmark(resourceVersion: string, annotations?: Readonly<Record<string, string>>): Uint8Array {
    const { view } = this.kind;
    const isShared = annotations === undefined && view.sharedAs !== undefined;
    if (isShared && this.#bookmark?.resourceVersion === resourceVersion) return this.#bookmark.bytes;
    const metadata = { resourceVersion, ...(annotations && { annotations }) };
    const bytes = encodeUtf8(eventText("BOOKMARK", view.bookmark(metadata)));
    if (isShared) this.#bookmark = { resourceVersion, bytes };
    return bytes;
  }

  /** A bookmark behind events whose objects do not show where they lead; with an age, if a source is away. */
  #place(resourceVersion: string): Uint8Array {
    const { ageMs } = this.#all.content;
    const annotations = ageMs < SHOWN_AGE_MS ? undefined : { [AGE_ANNOTATION]: String(ageMs) };
    return this.bookmark(resourceVersion, annotations);
  }

  clear(): void {
    this.#chunks = [];
  }

  #build(from: number, { length: most, skipThrough }: ChunkOptions, known?: Chunk): Chunk {
    const { view, selection, allowBookmarks } = this.kind;
    const { tail, entries } = this.#all.content.log.window;
    const head = tail + entries.length;
    const parts = known?.bytes === undefined ? [] : [known.bytes];
    let length = known?.bytes?.byteLength ?? 0;
    let resourceVersion = known?.resourceVersion ?? "";
    let to = known?.to ?? from;
    let units = 0;
    // Where the next delete of a step goes, or what leaves the selection in it.
    let deletes = 0;
    let isWithinStep = false;
    let isTooLong = false;
    // Whether the reader has the position from the last event, or by a bookmark.
    let hasPosition = true;
    // The changes of a relist go out together.
    while (to < head && (isWithinStep || (length < most && units < MOST_UNITS))) {
      const entry = entries.at(to++ - tail)!;
      const isBookmark = entry.type === "BOOKMARK";
      if (!isWithinStep) deletes = parts.length;
      isWithinStep = !isBookmark && isSameStep(entry, entries.at(to - tail));
      if (selection !== undefined) units += 2 * selection.units;
      const isSeen = skipThrough !== "" && compareResourceVersions(entry.position, skipThrough) <= 0;
      if (isSeen && (isBookmark || !entry.isLate)) continue;
      // In the middle of a relist a reader has no position.
      if (!isWithinStep && !isSeen) resourceVersion = entry.position;
      if (isBookmark && !allowBookmarks) continue;
      const change = isBookmark ? "BOOKMARK" : this.#change(entry, {
        // A reader that has come from elsewhere may have another state than the log before it.
        leavesOut: allowBookmarks && skipThrough === "",
        onOpen: () => units += OPEN_UNITS,
      });
      if (change === undefined) continue;
      const bytes = change === "BOOKMARK"
        ? this.bookmark(entry.position)
        : this.#all.views.bytes(entry, change, view, !allowBookmarks && !isWithinStep);
      // An object may have left the selection long before its version: a reader that resumes elsewhere from
      // the middle of a relist would keep it.
      const isFirst = entry.isPlaced && (change === "DELETED" || change === "LEFT");
      parts.splice(isFirst ? deletes++ : parts.length, 0, bytes);
      length += bytes.byteLength;
      hasPosition = isBookmark || entry.isPlaced;
      // A new list is cheaper for both sides, and waits for the reader.
      isTooLong = isWithinStep && length > RELIST_BYTES;
      if (isTooLong) break;
    }
    if (!hasPosition && allowBookmarks) {
      parts.push(this.#place(resourceVersion));
      length += parts.at(-1)!.byteLength;
    }
    const bytes = parts.length > 1 ? concatenated(parts, length) : parts[0];
    return { from, to, bytes, resourceVersion, isTooLong, isFull: to < head, units };
  }

  /** What the entry changes for this group: `undefined` if nothing. */
  #change(
    entry: LogEntry<T>,
    { leavesOut, onOpen }: {
      /** Whether an event that shows nothing new is left out: bookmarks show the position. */
      readonly leavesOut: boolean;
      readonly onOpen: () => void;
    },
  ): EntryChange | undefined {
    const { view, selection } = this.kind;
    if (selection?.mayHave(entry.key) === false) return undefined;
    const was = entry.oldObject !== undefined && this.#isSelected(entry, "oldObject", onOpen);
    const is = entry.type !== "DELETED" && this.#isSelected(entry, "object", onOpen);
    if (is && was && leavesOut && view.shown !== undefined) {
      onOpen();
      if (this.#all.views.showsNothingNew(entry, view.shown)) return undefined;
    }
    if (is) return was ? "MODIFIED" : "ADDED";
    if (!was) return undefined;
    return entry.type === "DELETED" ? "DELETED" : "LEFT";
  }

  #isSelected(entry: LogEntry<T>, which: "object" | "oldObject", onOpen: () => void): boolean {
    const { hasHead, hasFields } = this.kind.selection ?? {};
    if (hasHead?.(entry[which]) === false) return false;
    if (hasFields === undefined) return true;
    const object = this.#all.views.opened(entry, which);
    if (object !== entry[which]) onOpen();
    return hasFields(object);
  }
}

/** How a watch sees an entry; `LEFT`: the object is not selected any more, and is shown as it was. */
export type EntryChange = "ADDED" | "MODIFIED" | "DELETED" | "LEFT";

// Enough for what several watches are about to read.
const KEPT_ENTRIES = 256;
const KEPT_BYTES = 8 * 1024 * 1024;

/**
 * Makes the bytes and the opened objects of entries, once for all watches. They are kept for the last few
 * entries that were read, and for more of them during a pass over all watches.
 */
export class EntryViews<T extends KubernetesObject> {
  readonly #holding: Holding<T>;
  /** The entries with something kept, the oldest first. */
  readonly #kept = new Set<LogEntry<T>>();
  #keptBytes = 0;
  /**
   * Many watches read the same entries now: what is made of them is kept up to {@linkcode
   * EntryViews.passEnds}.
   */
  isPass = false;

  constructor(holding: Holding<T>) {
    this.#holding = holding;
  }

  /** An object of an entry that has it, for a look at it. */
  opened(entry: LogEntry<T>, which: "object" | "oldObject"): T {
    const held = entry[which]!;
    const known = entry.views?.[which];
    if (known !== undefined) return known;
    const object = this.#holding.peek(held);
    if (object === held) return object; // it was not opened
    if (this.#kept.size < KEPT_ENTRIES || !this.isPass) this.#viewsOf(entry)[which] = object;
    return object;
  }

  /** Whether both states of an entry differ in none of the fields. Texts that differ say that they do. */
  showsNothingNew({ object, oldObject }: LogEntry<T>, fields: FieldCut): boolean {
    const [now, before] = [object!, oldObject!].map((held) =>
      this.#holding.json(held, fields) ?? jsonOf(fields.object(this.#holding.peek(held)))
    );
    return now === before;
  }

  /** The event that a watch of a view sends about an entry, as bytes. */
  bytes(entry: LogEntry<T>, change: EntryChange, view: View, showsPosition = false): Uint8Array {
    if (view.sharedAs === undefined) return encodeUtf8(this.#text(entry, change, view, showsPosition));
    const name = `${change} ${view.sharedAs}${showsPosition ? " at its position" : ""}`;
    const known = entry.views?.encoded.get(name);
    if (known !== undefined) return known;
    const bytes = encodeUtf8(this.#text(entry, change, view, showsPosition));
    const views = this.#viewsOf(entry);
    views.encoded.set(name, bytes);
    views.bytes += bytes.byteLength;
    this.#keptBytes += bytes.byteLength;
    this.#evict();
    return bytes;
  }

  #text(entry: LogEntry<T>, change: EntryChange, view: View, showsPosition: boolean): string {
    if (change !== "LEFT" && change !== "DELETED" && (entry.isPlaced || !showsPosition)) {
      return heldEventText(change, entry.object!, { view, holding: this.#holding });
    }
    const { position, gapAfter, isLate } = entry;
    const resourceVersion = resourceVersionOf(entry.object) || position;
    // A delete has an old version where only the fact was known, and where an object has left the selection
    // with a state of another history: readers that resume from the last event they have read would go back.
    // Deletes of a relist are only known to come after the position before it, which is unchanged if the
    // relist did not move it; a reader that resumes there has to list again.
    const least = isLate ? position : gapAfter ?? position;
    const isOld = entry.isPlaced &&
      (gapAfter !== undefined || compareResourceVersions(resourceVersion, least) < 0);
    const shown = isOld ? least : showsPosition && !entry.isPlaced ? position : resourceVersion;
    if (change !== "LEFT" && shown === resourceVersion) {
      return heldEventText(change, entry.object!, { view, holding: this.#holding });
    }
    const which = change === "LEFT" ? "oldObject" : "object";
    const type = change === "LEFT" ? "DELETED" : change;
    const from = { view, holding: this.#holding, form: "event", resourceVersion: shown } as const;
    const text = viewText(entry[which]!, from);
    if (text !== undefined) return eventLine(type, text);
    return eventText(type, view.event(atVersion(this.opened(entry, which), shown)));
  }

  passEnds(): void {
    this.isPass = false;
    this.#evict();
  }

  #viewsOf(entry: LogEntry<T>): EntryForms<T> {
    if (entry.views !== undefined) return entry.views;
    this.#kept.add(entry);
    entry.views = { encoded: new Map(), bytes: 0 };
    this.#evict();
    return entry.views;
  }

  #evict(): void {
    for (const entry of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES && (this.isPass || this.#kept.size <= KEPT_ENTRIES)) return;
      this.forget(entry);
    }
  }

  forget(entry: LogEntry<T>): void {
    this.#kept.delete(entry);
    this.#keptBytes -= entry.views?.bytes ?? 0;
    entry.views = undefined;
  }
}

export function eventText(type: string, object: unknown): string {
  return eventLine(type, jsonOf(object));
}

export function heldEventText<T extends KubernetesObject>(
  type: string,
  held: Held<T>,
  from: { readonly view: View; readonly holding: Holding<T> },
): string {
  return eventLine(type, formText(held, { ...from, form: "event" }));
}

function eventLine(type: string, json: string): string {
  return `{"type":"${type}","object":${onOneLine(json)}}\n`;
}
