/**
 * Entries of the log of one resource, and their bytes, made once for all watches.
 * @module
 */

import { type KubernetesObject, resourceVersionOf } from "../meta/object.ts";
import { compareResourceVersions } from "../meta/resource_version.ts";
import type { Held, Holding } from "../store/holding.ts";
import type { View } from "./view.ts";

/** One entry of the log. */
export interface LogEntry<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly key: string;
  /** The resourceVersion of the resource once this has happened; the same for all entries of a relist. */
  readonly position: string;
  /** It did not move the position: a reader at that position may have seen it, or not. */
  readonly isLate: boolean;
  /** The present state; of a deleted object the final one. `undefined` in a bookmark. */
  readonly object: Held<T> | undefined;
  readonly oldObject: Held<T> | undefined;
  /** In the entries of a relist: the position before it. What happened in between is not known. */
  readonly gapAfter: string | undefined;
  /** For {@linkcode EntryViews}. */
  views: Views<T> | undefined;
}

/** What an entry is to a watch; `LEFT`: the object is not selected any more, and is shown as it was. */
export type EntryChange = "ADDED" | "MODIFIED" | "DELETED" | "LEFT";

/** What was made of an entry. */
interface Views<T> {
  object?: T;
  oldObject?: T;
  /** As bytes, by event type and view. */
  readonly encoded: Map<string, Uint8Array>;
}

// If objects are opened: enough for what several watches are about to read.
const KEPT_ENTRIES = 256;

/**
 * Makes the bytes and the opened objects of entries, once for all watches. They are kept as long as the entry; if the store
 * holds objects in a form of their own, to save memory, only those of the last few entries that were read.
 */
export class EntryViews<T extends KubernetesObject> {
  readonly #holding: Holding<T>;
  /** The entries with something kept beside an object that is held in a form of its own, the oldest first. */
  readonly #kept = new Set<LogEntry<T>>();
  #isBurst = false;

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
    if (this.#kept.size < KEPT_ENTRIES || !this.#isBurst) this.#viewsOf(entry)[which] = object;
    return object;
  }

  /** The event that a watch of a view sends about an entry, as bytes. Made once for all views of one name. */
  bytes(entry: LogEntry<T>, change: EntryChange, view: View): Uint8Array {
    if (view.sharedAs === undefined) return encode(this.#text(entry, change, view));
    const name = `${change} ${view.sharedAs}`;
    const known = entry.views?.encoded.get(name);
    if (known !== undefined) return known;
    const bytes = encode(this.#text(entry, change, view));
    this.#viewsOf(entry).encoded.set(name, bytes);
    return bytes;
  }

  #text(entry: LogEntry<T>, change: EntryChange, view: View): string {
    const resourceVersion = resourceVersionOf(entry.object) || entry.position;
    if (change === "LEFT") {
      return eventText(
        "DELETED",
        view.event(atVersion(this.opened(entry, "oldObject")!, resourceVersion)),
      );
    }
    // If only the fact of a delete was known, the object's version is an old one: with it, readers that resume from the
    // last event they have read would go back.
    const isOld = change === "DELETED" && entry.gapAfter === undefined &&
      compareResourceVersions(resourceVersion, entry.position) < 0;
    return isOld
      ? eventText(change, view.event(atVersion(this.opened(entry, "object")!, entry.position)))
      : heldEventText(change, entry.object!, { view, holding: this.#holding });
  }

  /** Wakes all watches, and keeps the bytes of all entries meanwhile: every watch reads the same ones. */
  burst(readers: Iterable<{ wake(): void }>): void {
    this.#isBurst = true;
    try {
      for (const reader of Array.from(readers)) reader.wake();
    } finally {
      this.#isBurst = false;
      this.#evict();
    }
  }

  #viewsOf(entry: LogEntry<T>): Views<T> {
    if (entry.views !== undefined) return entry.views;
    if (this.#holding.isHeld(entry.object)) {
      this.#kept.add(entry);
      if (!this.#isBurst) this.#evict();
    }
    return entry.views = { encoded: new Map() };
  }

  #evict(): void {
    let excess = this.#kept.size - KEPT_ENTRIES;
    if (excess <= 0) return;
    for (const entry of this.#kept) {
      if (excess-- <= 0) return;
      this.#kept.delete(entry);
      entry.views = undefined;
    }
  }
}

const encoder = new TextEncoder();

/** A line of a watch. */
export function eventText(type: string, object: unknown): string {
  return `{"type":"${type}","object":${JSON.stringify(object)}}\n`;
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
  return text ? `{"type":"${type}","object":${text}}\n` : eventText(type, view.event(holding.peek(held)));
}

/** Text as UTF-8. */
export function encode(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

function atVersion(object: KubernetesObject, resourceVersion: string): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}
