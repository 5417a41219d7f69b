/** Cutting the bytes of a list into its items and what is around them. */

import { decodeUtf8 } from "../util/bytes.ts";
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
  SPACE,
} from "./json_walk.ts";
import { PiecedBytes } from "./line_cutter.ts";

/** An item, or what is around the items, is longer than it may be. */
export class ItemTooLargeError extends Error {
  constructor(what: string, maxBytes: number) {
    super(`${what} is longer than ${maxBytes} bytes`);
    this.name = "ItemTooLargeError";
  }
}

/** Reads items out of bytes: one for several cutters, which take turns. */
export interface ItemReader {
  /** How many bytes the reader needs before an item. */
  readonly room: number;
  /** The end of the item that was read last. */
  readonly itemEnd: number;
  /** A buffer of at least so many bytes. Its content is valid until the next call. */
  buffer(length: number): Uint8Array;
  /** Reads the object that begins at `start`; `undefined` if there is none that it understands. */
  readItemAt(bytes: Uint8Array, start: number): unknown;
  /** Reads the item of which this is the text. */
  readItem(text: string): unknown;
}

/** Options of a {@linkcode ListCutter}. */
export interface ListCutterOptions {
  /** The longest item that is accepted, in bytes; so long may be what is around the items, too. */
  readonly maxItemBytes: number;
  /** Called once, before the first item, with the text before the key of the items. */
  readonly onItems: (prefix: string) => void;
  /** Called with each item, in order. */
  readonly onItem: (item: unknown) => void;
}

/**
 * Cuts a list, wherever its chunks were split: {@linkcode ListCutter.push} its bytes, then take its
 * {@linkcode ListCutter.envelope}.
 *
 * How it works. A list is one JSON object with an array `items` in it. What is inside the array is handed out
 * item by item; everything else is the envelope, which is small and parsed at the end with an empty array in
 * the items' place. Reading an item finds its end. An item that continues in the next chunk, or cannot be
 * read in the bytes, is walked by its strings and brackets; it is read when its end is there, so that an item
 * of any size in any number of chunks costs time in proportion to its length.
 *
 * Items are checked by their reader, and the envelope by its parser; the text between the items is checked
 * here. So the whole is accepted just if a JSON parser would accept it.
 */
export class ListCutter {
  readonly #reader: ItemReader;
  readonly #options: ListCutterOptions;
  readonly #envelope = new PiecedBytes();
  #isInItems = false;
  #wasCut = false;
  /** The last string at depth 1 of the envelope, where it began, and whether it was the key of the items. */
  #string = "";
  #stringStart = 0;
  #isItemsKey = false;
  #items = 0;
  #expected: "itemOrEnd" | "item" | "commaOrEnd" = "itemOrEnd";
  /** The beginning of an item that the chunks so far did not finish. */
  readonly #rest = new PiecedBytes();
  // The state of the walk through the envelope, or through the unfinished item.
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isScalar = false;

  constructor(reader: ItemReader, options: ListCutterOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  /** The text around the items so far, with nothing between the brackets of `items`. */
  get envelope(): string {
    return decodeUtf8(this.#envelope.all);
  }

  /** Takes the next chunk of the list. */
  push(chunk: Uint8Array): void {
    for (let rest = chunk; rest.length > 0;) {
      rest = rest.subarray(this.#isInItems ? this.#pushItems(rest) : this.#pushEnvelope(rest));
    }
  }

  /** Returns how many bytes belong to the envelope. */
  #pushEnvelope(bytes: Uint8Array): number {
    const before = this.#envelope.length;
    for (let i = 0; i < bytes.length; i++) {
      const code = bytes[i];
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) this.#inString = false;
        // As much of it as shows whether it is "items", each letter of which may be written with six.
        if (this.#depth === 1 && this.#inString && this.#string.length <= 30) {
          this.#string += String.fromCharCode(code);
        }
      } else if (code === QUOTE) {
        this.#inString = true;
        if (this.#depth === 1) {
          this.#string = "";
          this.#stringStart = before + i;
        }
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        if (code === OPEN_BRACKET && this.#depth === 1 && this.#isItemsKey && !this.#wasCut) {
          this.#envelope.add(bytes.subarray(0, i + 1));
          this.#options.onItems(decodeUtf8(this.#envelope.all.subarray(0, this.#stringStart)));
          this.#isInItems = this.#wasCut = true;
          return i + 1;
        }
        this.#depth++;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        this.#depth--;
      } else if (this.#depth === 1) {
        if (code === COLON) this.#isItemsKey = unescaped(this.#string) === "items";
        else if (code === COMMA) this.#isItemsKey = false;
      }
    }
    this.#envelope.add(bytes);
    if (this.#envelope.length > this.#options.maxItemBytes) this.#refuse("what is around its items");
    return bytes.length;
  }

  /**
   * Returns how many bytes come before the bracket that ends the items; all of them if that is not among
   * them.
   */
  #pushItems(chunk: Uint8Array): number {
    const before = this.#rest.length;
    if (before > 0 && this.#afterItem(chunk, 0, chunk.length) < 0) {
      this.#keep(chunk);
      return chunk.length;
    }
    const start = this.#reader.room;
    const end = start + before + chunk.length;
    const bytes = this.#reader.buffer(end + 1);
    if (before > 0) bytes.set(this.#rest.take(), start);
    bytes.set(chunk, start + before);
    bytes[end] = 0;
    let i = start;
    while (i < end) {
      const code = bytes[i];
      if (isSpace(code)) {
        i++;
      } else if (this.#expected === "commaOrEnd" && code === COMMA) {
        this.#expected = "item";
        i++;
      } else if (this.#expected !== "item" && code === CLOSE_BRACKET) {
        this.#isInItems =
          this.#isItemsKey =
          this.#inString =
          this.#isEscaped =
            false;
        this.#depth = 2; // the bracket is the envelope's
        return i - start - before;
      } else if (this.#expected === "commaOrEnd" || ENDS.has(code)) {
        const [character] = decodeUtf8(bytes.subarray(i, Math.min(i + 4, end)));
        throw new SyntaxError(`unexpected ${JSON.stringify(character)} between items`);
      } else {
        i = this.#item(bytes, i, end);
      }
    }
    return chunk.length;
  }

  /** Reads the item that begins here. Returns where it ends, or `end` if it continues. */
  #item(bytes: Uint8Array, start: number, end: number): number {
    const reader = this.#reader;
    let item = bytes[start] === OPEN_BRACE ? reader.readItemAt(bytes, start) : undefined;
    let itemEnd = reader.itemEnd;
    if (item === undefined) {
      this.#depth = 0;
      this.#inString = this.#isEscaped = false;
      this.#isScalar = !STRUCTURE.has(bytes[start]);
      itemEnd = this.#afterItem(bytes, start, end);
      if (itemEnd < 0) {
        this.#keep(bytes.subarray(start, end));
        return end;
      }
    }
    if (itemEnd - start > this.#options.maxItemBytes) this.#refuse(`items[${this.#items}]`);
    item ??= reader.readItem(decodeUtf8(bytes.subarray(start, itemEnd)));
    this.#items++;
    this.#expected = "commaOrEnd";
    this.#options.onItem(item);
    return itemEnd;
  }

  /** Behind the item that began here, or in a chunk before; -1 if it continues. */
  #afterItem(bytes: Uint8Array, start: number, end: number): number {
    let i = start;
    if (this.#isScalar) {
      while (i < end && !endsScalar(bytes[i])) i++;
      return i === end ? -1 : i;
    }
    let depth = this.#depth;
    let inString = this.#inString;
    if (this.#isEscaped && i < end) {
      this.#isEscaped = false;
      i++;
    }
    while (i < end) {
      const code = bytes[i++];
      if (inString) {
        if (code === QUOTE) {
          inString = false;
          if (depth === 0) return i;
        } else if (code === BACKSLASH) {
          if (i === end) this.#isEscaped = true;
          i++;
        }
      } else if (code === QUOTE) {
        inString = true;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth++;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (--depth === 0) return i;
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    return -1;
  }

  /** Keeps the beginning of an item that continues in the next chunk. */
  #keep(part: Uint8Array): void {
    this.#rest.add(part);
    if (this.#rest.length > this.#options.maxItemBytes) this.#refuse(`items[${this.#items}]`);
  }

  #refuse(what: string): never {
    throw new ItemTooLargeError(what, this.#options.maxItemBytes);
  }
}

const STRUCTURE: ReadonlySet<number> = new Set([QUOTE, OPEN_BRACE, OPEN_BRACKET]);
const ENDS: ReadonlySet<number> = new Set([COMMA, CLOSE_BRACKET, CLOSE_BRACE]);

function isSpace(code: number): boolean {
  return code === SPACE || code === 0x0a || code === 0x0d || code === 0x09;
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
