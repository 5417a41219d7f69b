/** The text of a list, written piece by piece. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import { indentedText, jsonText } from "../../protocol/representations.ts";
import type { Held, Holding } from "../../store/holding.ts";
import type { Page } from "../content/selection.ts";
import { formText, type View } from "../request/requested_read.ts";
import type { YamlWriter } from "./yaml.ts";

export interface ListShape {
  readonly view: View;
  readonly pretty: boolean;
  /** Writes it as YAML; as JSON without. */
  readonly yaml: YamlWriter | undefined;
  readonly holding: Holding<KubernetesObject>;
}

// The library makes a node of each value.
const YAML_WEIGHT = 64;
// A screen shows about a twentieth of what is walked.
const CUT_WEIGHT = 8;
const TEXT_BYTES = 2 * 1024;

/**
 * Writes a page as text, in pieces that end after an item, so that it never is in memory as a whole: first
 * the head, then the pieces, of which the last one has the end.
 */
export class ListText {
  readonly #page: Page<KubernetesObject>;
  readonly #shape: ListShape;
  readonly #frame: Frame;
  readonly resourceVersion: string;
  /** Whether only the head has the list's version: the pieces are the same while the content is. */
  readonly isLasting: boolean;
  /** What a character takes, against one of JSON. */
  readonly weight: number;
  /** About how many bytes it takes itself, with a body that is made of it, even of a list of nothing. */
  readonly ownBytes: number;
  next: number;
  isDone = false;
  /** The part of the items that is written: from 0 to 1. */
  progress = 0;

  /** @param from The first item to write; what comes before it was written by another one. */
  constructor(page: Page<KubernetesObject>, shape: ListShape, from?: number) {
    this.#page = page;
    this.#shape = shape;
    this.#frame = frame(page, shape, page.resourceVersion);
    this.next = from ?? page.from;
    this.resourceVersion = page.resourceVersion;
    this.isLasting = shape.yaml === undefined;
    this.weight = shape.yaml !== undefined ? YAML_WEIGHT : shape.view.cut !== undefined ? CUT_WEIGHT : 1;
    this.ownBytes = TEXT_BYTES + page.bytes;
  }

  /** What comes before the first piece, at a version of the same content. */
  head(resourceVersion: string): string {
    const isOwn = resourceVersion === this.resourceVersion;
    return (isOwn ? this.#frame : frame(this.#page, this.#shape, resourceVersion)).head;
  }

  /**
   * The next piece, of at least this many characters of JSON, or fewer of what takes longer, unless it is the
   * last one; `undefined` at the end.
   */
  piece(length: number): string | undefined {
    if (this.isDone) return undefined;
    const { from, to } = this.#page;
    const least = length / this.weight;
    let text = "";
    // After an item that cannot be read, the piece is made again.
    for (let next = this.next; next < to;) {
      text += itemText(this.#page.object(next), this.#shape, { isFirst: next === from });
      next++;
      if (text.length < least) continue;
      this.next = next;
      this.progress = (next - from) / (to - from);
      return text;
    }
    this.next = to;
    this.isDone = true;
    this.progress = 1;
    return text + this.#frame.tail;
  }

  /** The same from an item on, for another reader; from here on without one. */
  rest(from?: number): ListText {
    const rest = new ListText(this.#page, this.#shape, from ?? this.next);
    rest.isDone = from === undefined && this.isDone;
    return rest;
  }
}

interface Frame {
  readonly head: string;
  readonly tail: string;
}

function frame(page: Page<KubernetesObject>, shape: ListShape, resourceVersion: string): Frame {
  const metadata = { resourceVersion, ...page.next?.(resourceVersion) };
  return shape.yaml === undefined ? jsonFrame(page, shape, metadata) : yamlFrame(page, shape, metadata);
}

function headOf({ window }: Page<KubernetesObject>, view: View, metadata: ListMeta): Record<string, unknown> {
  return window === undefined ? view.list(metadata) : { ...view.list(metadata), window };
}

/** What kube-apiserver writes where there are no items. */
function emptyItems({ from, to }: Page<KubernetesObject>, { isNullIfEmpty }: View): [] | null {
  return isNullIfEmpty && from === to ? null : [];
}

function jsonFrame(page: Page<KubernetesObject>, { view, pretty }: ListShape, metadata: ListMeta): Frame {
  const none = emptyItems(page, view);
  const json = jsonText({ ...headOf(page, view, metadata), [view.itemsField]: none }, { pretty });
  const end = json.lastIndexOf(none === null ? "null" : "]");
  const lineBreak = pretty && page.to > page.from ? "\n  " : "";
  return { head: json.slice(0, end), tail: lineBreak + json.slice(end) };
}

function yamlFrame(page: Page<KubernetesObject>, { view, yaml }: ListShape, metadata: ListMeta): Frame {
  const { itemsField } = view;
  const fields = Object.entries(headOf(page, view, metadata));
  const write = (isWithin: (field: string) => boolean): string => {
    const selected = fields.filter(([field]) => isWithin(field));
    return selected.length === 0 ? "" : yaml!.document(JSON.stringify(Object.fromEntries(selected)));
  };
  const items = page.to > page.from
    ? `${itemsField}:\n`
    : `${itemsField}: ${JSON.stringify(emptyItems(page, view))}\n`;
  return { head: write((field) => field < itemsField) + items, tail: write((field) => field > itemsField) };
}

function itemText(
  held: Held<KubernetesObject>,
  shape: ListShape,
  { isFirst }: { readonly isFirst: boolean },
): string {
  const { pretty, yaml } = shape;
  if (yaml !== undefined) return yaml.item(itemJson(held, shape));
  const comma = isFirst ? "" : ",";
  if (!pretty) return comma + itemJson(held, shape);
  // JSON has no line breaks within its strings.
  const text = indentedText(itemJson(held, shape)).replaceAll("\n", "\n    ");
  return `${comma}\n    ${text}`;
}

export function itemJson(
  held: Held<KubernetesObject>,
  { view, holding }: Pick<ListShape, "view" | "holding">,
): string {
  return formText(held, { view, holding, form: "item" });
}
