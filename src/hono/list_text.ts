/**
 * The JSON text of a list, piece by piece.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import type { Held, Holding } from "../store/holding.ts";
import type { Page } from "./list_page.ts";
import type { View } from "./view.ts";

/** The form of a list. */
export interface ListShape {
  readonly view: View;
  readonly pretty: boolean;
  /** How the page's objects are held. */
  readonly holding: Holding<KubernetesObject>;
}

/** Writes a page as JSON text, in pieces that end after an item, so that it never is in memory as a whole. */
export class ListText {
  readonly #page: Page<KubernetesObject>;
  readonly #shape: ListShape;
  /** The list without items, around them. */
  readonly #head: string;
  readonly #tail: string;
  #next: number;
  #isDone = false;

  /** @param from The first item to write; what comes before it was written by another one. */
  constructor(page: Page<KubernetesObject>, shape: ListShape, from?: number) {
    const { view, pretty } = shape;
    const json = JSON.stringify(
      { ...view.list(page.metadata), [view.itemsField]: [] },
      null,
      pretty ? 2 : undefined,
    );
    const end = json.lastIndexOf("]");
    this.#page = page;
    this.#shape = shape;
    this.#head = from === undefined ? json.slice(0, end) : "";
    this.#tail = (pretty && page.to > page.from ? "\n  " : "") + json.slice(end) + "\n";
    this.#next = from ?? page.from;
  }

  /** Whether everything is written. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** The part of the items that is written: from 0 to 1. */
  get progress(): number {
    const { from, to } = this.#page;
    return to === from ? 1 : (this.#next - from) / (to - from);
  }

  /** The next piece, of at least this many characters unless it is the last one; `undefined` at the end. */
  piece(length: number): string | undefined {
    if (this.#isDone) return undefined;
    const { objects, from, to } = this.#page;
    const separator = this.#shape.pretty ? "\n    " : "";
    let text = this.#next === from ? this.#head : "";
    while (this.#next < to) {
      if (this.#next > from) text += ",";
      text += separator + itemText(objects[this.#next++], this.#shape);
      if (text.length >= length) return text;
    }
    this.#isDone = true;
    return text + this.#tail;
  }

  /** The same from here on, for another reader. */
  rest(): ListText {
    const rest = new ListText(this.#page, this.#shape, this.#next);
    rest.#isDone = this.#isDone;
    return rest;
  }
}

function itemText(held: Held<KubernetesObject>, { view, pretty, holding }: ListShape): string {
  // JSON has no line breaks within its strings.
  if (pretty) return JSON.stringify(view.item(holding.peek(held)), null, 2).replaceAll("\n", "\n    ");
  const json = view.itemText && holding.json(held);
  return (json && view.itemText?.(json)) ?? JSON.stringify(view.item(holding.peek(held)));
}
