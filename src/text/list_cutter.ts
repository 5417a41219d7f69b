/**
 * Splits a list into items while its text arrives.
 *
 * How it works. A list is one JSON object with an array `items` in it. What is inside the array is handed out item by
 * item, as soon as an item's last character is there; everything else is the envelope, which is small and parsed at the
 * end with an empty array in the items' place. There are two ways to an item's end:
 *
 * - By guess. API servers write the items of a list alike: what the first item begins with (`{"metadata":{`), every
 *   item begins with. So where that comes after a `}` and a comma, the item before probably ends, and finding it is a
 *   plain text search. The guess is right just if the JSON parser takes what is before it for one value: a JSON object
 *   has one end only. If it does not, the item is walked.
 * - By walking over its characters, knowing no more of JSON than strings and brackets.
 *
 * Whether items and envelope are well-formed is left to the JSON parser, which sees every character of them; what is
 * between the items is checked here. So the whole is accepted just if a JSON parser would accept it.
 *
 * @module
 */

import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  endsScalar,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "./json_text.ts";
import { ItemPlaces, ItemTooLargeError, newUnexpectedError } from "./item_places.ts";

/** What a list is cut for. */
export interface ListCutterOptions<T> {
  /** Reads one item out of a text. A `SyntaxError` says that it is no JSON value. */
  readonly parse: (text: string, start: number, end: number) => T;
  /** Called with each item, in order. */
  readonly onItem: (item: T) => void;
  /**
   * The longest item, and the longest envelope, that are read on: in characters, of which each is a byte or more. Without
   * a limit by default.
   */
  readonly maxItemLength?: number;
  /** Called once, before the first item, with the envelope's text so far, up to the key of the items. */
  readonly onItems: (prefix: string) => void;
}

/** Cuts a list: {@linkcode ListCutter.push} its text, then read {@linkcode ListCutter.envelope}. */
export class ListCutter<T> {
  readonly #options: ListCutterOptions<T>;
  readonly #maxItemLength: number;
  #envelope = "";
  /** The beginning of an item that the text so far did not finish. */
  #rest: string[] = [];
  #restLength = 0;
  #place: "envelope" | "items" | "item" = "envelope";
  readonly #places = new ItemPlaces();
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Of an item that is a number or a literal: it ends where something else begins. */
  #isScalar = false;
  // In the envelope: the last string at depth 1, where it began, and whether it was the key that counts.
  #string = "";
  #stringStart = 0;
  #isItemsKey = false;
  #wasCut = false;
  /** What is between two items, as far as the guess goes; `""` while it is not known, or was wrong too often. */
  #separator = "";
  #items = 0;
  #wrongGuesses = 0;

  constructor(options: ListCutterOptions<T>) {
    this.#options = options;
    this.#maxItemLength = options.maxItemLength ?? Infinity;
  }

  /** Whether the items have started, and are not over. */
  get isInItems(): boolean {
    return this.#place !== "envelope";
  }

  /** The envelope, with nothing between the brackets of `items`. */
  get envelope(): string {
    return this.#envelope;
  }

  /**
   * Takes the next piece of the list's text.
   *
   * @throws {SyntaxError} Something other than items and commas is between the brackets.
   * @throws What the callbacks throw.
   */
  push(text: string): void {
    let i = 0;
    // Up to where the rest of this text holds no separator.
    let isGuessing = true;
    while (i < text.length) {
      if (this.#place === "envelope") {
        i = this.#inEnvelope(text, i);
      } else if (this.#place === "items") {
        i = this.#betweenItems(text, i);
      } else {
        if (isGuessing && this.#separator !== "" && this.#isAtStart(text, i)) {
          const end = text.indexOf(this.#separator, i) + 1;
          if (end === 0) isGuessing = false;
          else if (this.#guess(text, i, end)) {
            i = end + 1;
            continue;
          }
        }
        i = this.#inItem(text, i);
      }
    }
  }

  #inEnvelope(text: string, start: number): number {
    let i = start;
    for (; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (code === BACKSLASH) this.#escaped = true;
        else if (code === QUOTE) this.#inString = false;
        // As much of it as shows whether it is "items", each letter of which may be written with six.
        if (this.#depth === 1 && this.#inString && this.#string.length <= 30) this.#string += text[i];
        continue;
      }
      switch (code) {
        case QUOTE:
          this.#inString = true;
          if (this.#depth === 1) {
            this.#string = "";
            this.#stringStart = this.#envelope.length + i - start;
          }
          break;
        case COLON:
          if (this.#depth === 1) this.#isItemsKey = unescaped(this.#string) === "items";
          break;
        case COMMA:
          if (this.#depth === 1) this.#isItemsKey = false;
          break;
        case OPEN_BRACKET:
          if (this.#depth === 1 && this.#isItemsKey && !this.#wasCut) {
            this.#envelope += text.slice(start, i);
            this.#options.onItems(this.#envelope.slice(0, this.#stringStart));
            this.#envelope += "[";
            this.#place = "items";
            this.#wasCut = true;
            return i + 1;
          }
          this.#depth++;
          break;
        case OPEN_BRACE:
          this.#depth++;
          break;
        case CLOSE_BRACKET:
        case CLOSE_BRACE:
          this.#depth--;
      }
    }
    this.#envelope += text.slice(start, i);
    if (this.#envelope.length > this.#maxItemLength) this.#refuse("what is around its items");
    return i;
  }

  #refuse(what: string): never {
    throw new ItemTooLargeError(what, this.#maxItemLength);
  }

  /** What there is of an item so far. */
  #keep(text: string): void {
    this.#rest.push(text);
    this.#restLength += text.length;
    if (this.#restLength > this.#maxItemLength) this.#refuse(`items[${this.#items}]`);
  }

  #betweenItems(text: string, start: number): number {
    for (let i = start; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const kind = this.#places.kindOf(code);
      if (kind === "skipped") continue;
      if (kind === "unexpected") throw newUnexpectedError(text[i]);
      if (kind === "end") {
        this.#envelope += "]";
        this.#place = "envelope";
        this.#isItemsKey = false;
        return i + 1;
      }
      this.#place = "item";
      this.#inString = code === QUOTE;
      this.#isScalar = code !== QUOTE && code !== OPEN_BRACE && code !== OPEN_BRACKET;
      this.#depth = 0;
      return i;
    }
    return text.length;
  }

  #isAtStart(text: string, i: number): boolean {
    return this.#depth === 0 && this.#rest.length === 0 && text.charCodeAt(i) === OPEN_BRACE;
  }

  /** Whether the text up to `end` is an item. If so, the next one begins one character later. */
  #guess(text: string, start: number, end: number): boolean {
    if (end - start > this.#maxItemLength) return false; // the walk says what is wrong
    let item: T;
    try {
      item = this.#options.parse(text, start, end);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      // A wrong guess costs more than many right ones save.
      this.#wrongGuesses++;
      if (this.#wrongGuesses > 4 + this.#items / 16) this.#separator = "";
      return false;
    }
    this.#items++;
    this.#options.onItem(item);
    return true;
  }

  #inItem(text: string, start: number): number {
    const { length } = text;
    let i = start;
    if (this.#isScalar) {
      while (i < length && !endsScalar(text.charCodeAt(i))) i++;
      if (i === length) this.#keep(text.slice(start));
      else this.#endItem(text, start, i);
      return i;
    }
    let depth = this.#depth;
    let inString = this.#inString;
    // The opening quote of an item that is a string is not its end.
    if (inString && this.#rest.length === 0) i++;
    if (this.#escaped && i < length) {
      this.#escaped = false;
      i++;
    }
    while (i < length) {
      const code = text.charCodeAt(i++);
      if (inString) {
        if (code === QUOTE) {
          inString = false;
          if (depth === 0) {
            this.#endItem(text, start, i);
            return i;
          }
        } else if (code === BACKSLASH) {
          if (i === length) this.#escaped = true;
          i++;
        }
      } else if (code === QUOTE) {
        inString = true;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth++;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (--depth === 0) {
          this.#endItem(text, start, i);
          return i;
        }
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#keep(text.slice(start));
    return length;
  }

  #endItem(text: string, start: number, end: number): void {
    this.#place = "items";
    this.#places.itemEnded();
    // Back to the state of the envelope, for when the last item is through.
    this.#depth = 1;
    this.#inString = false;
    if (this.#rest.length > 0) {
      this.#keep(text.slice(start, end));
      text = this.#rest.join("");
      this.#rest = [];
      this.#restLength = 0;
      start = 0;
      end = text.length;
    }
    if (end - start > this.#maxItemLength) this.#refuse(`items[${this.#items}]`);
    const item = this.#options.parse(text, start, end);
    if (this.#items++ === 0) this.#separator = separatorAfter(text, start, end);
    this.#options.onItem(item);
  }
}

/** A key as it is meant: any character of it may be written as an escape. */
function unescaped(key: string): string {
  if (!key.includes("\\")) return key;
  try {
    return JSON.parse(`"${key}"`);
  } catch {
    return key; // the parser of the envelope will complain
  }
}

/** How far into the first item to look for what all items begin with. */
const BEGINNING = 400;

/** What is probably between items that begin as this one does; `""` if it is nothing to go by. */
function separatorAfter(text: string, start: number, end: number): string {
  const beginning = text.slice(start, Math.min(end, start + BEGINNING));
  const metadata = beginning.indexOf('"metadata":{');
  // Copied letter by letter: a slice would keep the whole text.
  return metadata < 0 ? "" : `},${[...beginning.slice(0, metadata + 12)].join("")}`;
}
