/**
 * What is between the items of a list.
 * @module
 */

import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, SPACE } from "./json_text.ts";

/** An item, or what is around the items, is longer than it may be. */
export class ItemTooLargeError extends Error {
  /** Makes the error. */
  constructor(what: string, maxBytes: number) {
    super(`${what} is longer than ${maxBytes} bytes`);
    this.name = "ItemTooLargeError";
  }
}

/** Checks what is between the items of an array: commas and white space, and one item between two commas. */
export class ItemPlaces {
  #expected: "itemOrEnd" | "item" | "commaOrEnd" = "itemOrEnd";

  /** What a character is that comes between two items: the first of an item, the bracket at the end, or what is skipped. */
  kindOf(code: number): "skipped" | "item" | "end" | "unexpected" {
    if (code <= SPACE && (code === SPACE || code === 0x0a || code === 0x0d || code === 0x09)) {
      return "skipped";
    }
    const isCommaNext = this.#expected === "commaOrEnd";
    if (code === COMMA && isCommaNext) {
      this.#expected = "item";
      return "skipped";
    }
    if (code === CLOSE_BRACKET && this.#expected !== "item") return "end";
    return isCommaNext || code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE
      ? "unexpected"
      : "item";
  }

  /** An item has ended. */
  itemEnded(): void {
    this.#expected = "commaOrEnd";
  }
}

/** The error for what is unexpected there. */
export function newUnexpectedError(character: string): SyntaxError {
  return new SyntaxError(`unexpected ${JSON.stringify(character)} between items`);
}
