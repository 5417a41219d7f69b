/** The bytes of entries of an event log, made once for all watches. */

import { compareResourceVersions, type KubernetesObject, resourceVersionOf } from "../../meta/object.ts";
import type { Held, Holding } from "../../store/holding.ts";
import { onOneLine } from "../../text/json_walk.ts";
import type { EntryForms, LogEntry } from "../content/log_history.ts";
import type { View } from "../request/view.ts";

/** What an entry is to a watch; `LEFT`: the object is not selected any more, and is shown as it was. */
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

  /** @param holding How the entries' objects are held. */
  constructor(holding: Holding<T>) {
    this.#holding = holding;
  }

  /** An object of an entry, opened. */
  opened(entry: LogEntry<T>, which: "object" | "oldObject"): T | undefined {
    const held = entry[which];
    if (held === undefined) return undefined;
    const known = entry.views?.[which];
    if (known !== undefined) return known;
    const object = this.#holding.peek(held);
    if (object === held) return object; // it was not opened
    if (this.#kept.size < KEPT_ENTRIES || !this.isPass) this.#viewsOf(entry)[which] = object;
    return object;
  }

  /**
   * The event that a watch of a view sends about an entry, as bytes. Made once for all views of one name.
   *
   * @param showsPosition Whether the object has the entry's position in place of a version of another layout: for readers
   * without bookmarks, which resume at the version of the last object.
   */
  bytes(entry: LogEntry<T>, change: EntryChange, view: View, showsPosition = false): Uint8Array {
    if (view.sharedAs === undefined) return encode(this.#text(entry, change, view, showsPosition));
    const name = `${change} ${view.sharedAs}${showsPosition ? " at its position" : ""}`;
    const known = entry.views?.encoded.get(name);
    if (known !== undefined) return known;
    const bytes = encode(this.#text(entry, change, view, showsPosition));
    const views = this.#viewsOf(entry);
    views.encoded.set(name, bytes);
    views.bytes += bytes.byteLength;
    this.#keptBytes += bytes.byteLength;
    this.#evict();
    return bytes;
  }

  #text(entry: LogEntry<T>, change: EntryChange, view: View, showsPosition: boolean): string {
    const { position, gapAfter } = entry;
    const resourceVersion = resourceVersionOf(entry.object) || position;
    const shown = showsPosition && !entry.isPlaced ? position : resourceVersion;
    if (change === "LEFT") {
      return eventText("DELETED", view.event(atVersion(this.opened(entry, "oldObject")!, shown)));
    }
    // If only the fact of a delete was known, the object's version is an old one: with it, readers that
    // resume from the last event they have read would go back. Of a relist nothing is known but that its
    // deletes came after the position before it; a reader that resumes there has to list again.
    const least = gapAfter ?? position;
    const isOld = change === "DELETED" && entry.isPlaced &&
      compareResourceVersions(resourceVersion, least) < 0;
    return isOld || shown !== resourceVersion
      ? eventText(change, view.event(atVersion(this.opened(entry, "object")!, isOld ? least : shown)))
      : heldEventText(change, entry.object!, { view, holding: this.#holding });
  }

  /** Keeps only the last few. */
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
      const isLast = this.#kept.size === 1;
      if (isLast || (this.#keptBytes <= KEPT_BYTES && (this.isPass || this.#kept.size <= KEPT_ENTRIES))) {
        return;
      }
      this.forget(entry);
    }
  }

  /** Drops what was made of an entry. */
  forget(entry: LogEntry<T>): void {
    if (!this.#kept.delete(entry)) return;
    this.#keptBytes -= entry.views?.bytes ?? 0;
    entry.views = undefined;
  }
}

const encoder = new TextEncoder();

/** A line of a watch. */
export function eventText(type: string, object: unknown): string {
  return eventLine(type, JSON.stringify(object));
}

/** A line of a watch, for an object in its held form. */
export function heldEventText<T extends KubernetesObject>(
  type: string,
  held: Held<T>,
  from: { readonly view: View; readonly holding: Holding<T> },
): string {
  const { view, holding } = from;
  const json = view.eventText && holding.json(held);
  const text = json && view.eventText?.(json);
  return text ? eventLine(type, text) : eventText(type, view.event(holding.peek(held)));
}

function eventLine(type: string, json: string): string {
  return `{"type":"${type}","object":${onOneLine(json)}}\n`;
}

/** Text as UTF-8. */
export function encode(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

function atVersion(object: KubernetesObject, resourceVersion: string): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}
