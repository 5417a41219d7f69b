/** Views of nothing but some fields of objects, and what was cut out for them, kept for the next readers. */

import type { KubernetesObject } from "../../meta/object.ts";
import { groupVersion, type GroupVersionResource } from "../../meta/resource.ts";
import type { ScreenFieldPath } from "../../protocol/screen_query.ts";
import { FieldCut, type HeldText } from "../../text/field_cut.ts";
import type { FieldPathSegment } from "../../text/field_path.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import type { Keeper, Readers } from "./readers.ts";
import type { View } from "./requested_read.ts";

// The bytes of one view, with those of objects that have changed since; beyond them it begins again.
const MOST_BYTES = 16 * 1024 * 1024;
// The bytes that are counted at once.
const BLOCK_BYTES = 64 * 1024;
// The bytes of an entry besides its characters: its place in a map, and the string itself.
const ENTRY_BYTES = 64;
const MOST_VIEWS = 8;
const IDLE_MS = 60_000;

/**
 * Views of fields whose cut texts are kept while lists of them are read, and for a minute more, so that a
 * list after a change cuts only what has changed. They take bytes of readers that nothing else needs, and are
 * the first to give them back.
 */
export class KeptViews implements Keeper {
  readonly #readers: Readers;
  readonly #clock: Clock;
  /** The least recently used first. */
  readonly kept: Map<string, { readonly view: View; readonly cut: KeptCut; usedMs: number }> = new Map();

  constructor({ readers, clock }: { readonly readers: Readers; readonly clock: Clock }) {
    this.#readers = readers;
    this.#clock = clock;
    readers.addKeeper(this);
  }

  get(of: GroupVersionResource, whole: View, fields: readonly ScreenFieldPath[]): View {
    const name = JSON.stringify([groupVersion(of), of.resource, ...fields.map(({ text }) => text)]);
    let kept = this.kept.get(name);
    if (kept === undefined) {
      let cut: KeptCut | undefined;
      const view = newFieldsView(whole, fields, (paths) => cut = new KeptCut(paths, this.#readers));
      kept = { view, cut: cut!, usedMs: 0 };
      if (this.kept.size === MOST_VIEWS) this.#drop(this.kept.keys().next().value!);
    }
    kept.usedMs = monotonicNow(this.#clock);
    this.kept.delete(name);
    this.kept.set(name, kept);
    return kept.view;
  }

  dropUnused(): void {
    const idleSinceMs = monotonicNow(this.#clock) - IDLE_MS;
    for (const [name, { usedMs }] of this.kept) if (usedMs <= idleSinceMs) this.#drop(name);
  }

  dropSome(): boolean {
    for (const { cut } of this.kept.values()) if (cut.clear()) return true;
    return false;
  }

  #drop(name: string): void {
    this.kept.get(name)!.cut.end();
    this.kept.delete(name);
  }
}

/** Cuts each object once, as long as there is room for what stays. */
class KeptCut extends FieldCut {
  readonly #readers: Readers;
  #texts = new WeakMap<HeldText, string>();
  #bytes = 0;
  /** Bytes that were counted and are not used yet. */
  #spare = 0;
  #isEnded = false;

  constructor(paths: readonly (readonly FieldPathSegment[])[], readers: Readers) {
    super(paths);
    this.#readers = readers;
  }

  override textOf(held: HeldText): string | undefined {
    const known = this.#texts.get(held);
    if (known !== undefined) return known;
    const text = super.textOf(held);
    if (text !== undefined && !this.#isEnded && this.#take(text.length + ENTRY_BYTES)) {
      this.#texts.set(held, text);
    }
    return text;
  }

  #take(bytes: number): boolean {
    if (this.#spare < bytes) {
      if (this.#bytes >= MOST_BYTES) this.clear();
      const more = Math.max(BLOCK_BYTES, bytes);
      if (!this.#readers.keepSpare(more)) return false;
      this.#bytes += more;
      this.#spare += more;
    }
    this.#spare -= bytes;
    return true;
  }

  /** Forgets everything; returns whether there was something. */
  clear(): boolean {
    if (this.#bytes === 0) return false;
    this.#readers.unkeep(this.#bytes);
    this.#bytes = this.#spare = 0;
    this.#texts = new WeakMap();
    return true;
  }

  /** Keeps nothing from now on: watches may use it longer. */
  end(): void {
    this.#isEnded = true;
    this.clear();
  }
}

/** The fields that identify an object and its state: without them no reader could apply an event. */
const IDENTITY = ["name", "namespace", "uid", "resourceVersion"];

/** Cuts the objects in the rows of Tables: nothing of it is kept, as rows have ages. */
export function newRowCut(fields: readonly ScreenFieldPath[]): FieldCut {
  const { besides, paths } = shownPaths(fields);
  return new FieldCut([...besides, ...paths]);
}

function shownPaths(fields: readonly ScreenFieldPath[]) {
  const hasMetadata = fields.some(({ text }) => text === "metadata");
  const identity = hasMetadata ? [] : IDENTITY.map((name) => ["metadata", name]);
  return { besides: [["apiVersion"], ["kind"], ...identity], paths: fields.map(({ segments }) => segments) };
}

/** Shows some fields of what a view of whole objects shows, and the type and identity of each object. */
export function newFieldsView(
  view: View,
  fields: readonly ScreenFieldPath[],
  newCut: (paths: readonly (readonly FieldPathSegment[])[]) => FieldCut,
): View {
  const { besides, paths } = shownPaths(fields);
  const cut = newCut([...besides, ...paths]);
  const cutObject = (object: KubernetesObject) => cut.object(object) as KubernetesObject;
  const sharedAs = JSON.stringify([view.sharedAs, ...fields.map(({ text }) => text)]);
  return {
    ...view,
    sharedAs,
    itemsSharedAs: sharedAs,
    one: (object) => view.one(cutObject(object)),
    item: (object) => view.item(cutObject(object)),
    event: (object) => view.event(cutObject(object)),
    cut,
    // Each event has another resourceVersion.
    shown: new FieldCut([...besides.filter((path) => path.at(-1) !== "resourceVersion"), ...paths]),
  };
}
