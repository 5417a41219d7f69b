/**
 * Splits a list into items that are held as text, while its bytes arrive.
 * @module
 */

import type { ItemCutter } from "./item_cutter.ts";
import { OPEN_BRACKET } from "./json_text.ts";
import { Utf8Stream } from "../util/utf8_stream.ts";
import type { ListCutter } from "./list_cutter.ts";

/**
 * Cuts the items in the bytes, and what is around them as text: {@linkcode TextListCutter.push} the list's bytes, then
 * call {@linkcode TextListCutter.end}.
 */
export class TextListCutter {
  readonly #around: ListCutter<unknown>;
  readonly #items: ItemCutter;
  readonly #decoder = new Utf8Stream();
  #isBehindItems = false;

  /** @param around Receives the list without its items. */
  constructor(around: ListCutter<unknown>, items: ItemCutter) {
    this.#around = around;
    this.#items = items;
  }

  /**
   * Takes the next chunk of the list.
   *
   * @throws What the two cutters throw.
   */
  push(chunk: Uint8Array): void {
    let i = 0;
    while (i < chunk.length) {
      const rest = chunk.subarray(i);
      if (this.#around.isInItems) {
        const length = this.#items.push(rest);
        i += length;
        if (length === rest.length) continue;
        this.#isBehindItems = true;
        this.#around.push("]");
        i++;
      } else {
        // The items begin at a bracket.
        const end = this.#isBehindItems ? rest.length : rest.indexOf(OPEN_BRACKET) + 1 || rest.length;
        this.#around.push(this.#decoder.decode(rest.subarray(0, end)));
        i += end;
      }
    }
  }

  /** The list is complete. */
  end(): void {
    this.#around.push(this.#decoder.end());
  }
}
