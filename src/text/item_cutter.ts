/**
 * Cutting the bytes of a list into items that are read, not parsed.
 * @module
 */

import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  endsScalar,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from "./json_text.ts";
import { ItemPlaces, ItemTooLargeError, newUnexpectedError } from "./item_places.ts";

/** Reads items out of bytes: one for several cutters, which take turns. */
export interface ItemReader {
  /** Where the item ended that was read last. */
  readonly itemEnd: number;
  /** A buffer of at least so many bytes. Its content is valid until the next call. */
  buffer(length: number): Uint8Array;
  /**
   * Reads the object that begins at `start`, before which there is room for what is put in front of it; `undefined` if
   * there is none that it understands.
   */
  readItemAt(bytes: Uint8Array, start: number): unknown;
  /** Reads the item of which this is the text. */
  readItem(text: string): unknown;
}

/** What a list's items are cut for. */
export interface ItemCutterOptions {
  /** Called with each item, in order. */
  readonly onItem: (item: unknown) => void;
  /** The longest item that is accepted, in bytes. */
  readonly maxItemBytes: number;
}

/**
 * Cuts the items of a list out of its bytes, wherever the chunks were split: {@linkcode ItemCutter.push} what follows the
 * bracket before the first item, chunk by chunk.
 *
 * How it works. Reading an item finds its end. An item that continues in the next chunk, or cannot be read in the bytes,
 * is walked by its strings and brackets; it is read when its end is there, so that an item of any size in any
 * number of chunks costs time in proportion to its length.
 */
export class ItemCutter {
  readonly #reader: ItemReader;
  readonly #room: number;
  readonly #options: ItemCutterOptions;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #places = new ItemPlaces();
  #items = 0;
  /** The beginning of an item that the chunks so far did not finish. */
  #rest: Uint8Array = NOTHING;
  #restLength = 0;
  // How far that item was walked.
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isScalar = false;

  /** @param room How many bytes the reader needs before an item. */
  constructor(reader: ItemReader, room: number, options: ItemCutterOptions) {
    this.#reader = reader;
    this.#room = room;
    this.#options = options;
  }

  /**
   * Takes the next chunk. Returns how many of its bytes come before the bracket that ends the items; its length if that is
   * not among them.
   *
   * @throws {SyntaxError} Something other than items and commas is there.
   * @throws {ItemTooLargeError} An item is over the limit, whole or not.
   * @throws What the callback throws.
   */
  push(chunk: Uint8Array): number {
    const before = this.#restLength;
    if (before > 0 && this.#afterItem(chunk, 0, chunk.length) < 0) {
      this.#keep(chunk);
      return chunk.length;
    }
    const start = this.#room;
    const end = start + before + chunk.length;
    const bytes = this.#reader.buffer(end + 1);
    if (before > 0) bytes.set(this.#takeRest(), start);
    bytes.set(chunk, start + before);
    bytes[end] = 0;
    let i = start;
    while (i < end) {
      // What was kept is the beginning of an item.
      const kind = i === start && before > 0 ? "item" : this.#places.kindOf(bytes[i]);
      if (kind === "end") return i - start - before;
      if (kind === "unexpected") {
        throw newUnexpectedError([...this.#decoder.decode(bytes.subarray(i, Math.min(i + 4, end)))][0]);
      }
      i = kind === "item" ? this.#item(bytes, i, end) : i + 1;
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
    if (itemEnd - start > this.#options.maxItemBytes) this.#refuse();
    item ??= reader.readItem(this.#decoder.decode(bytes.subarray(start, itemEnd)));
    this.#items++;
    this.#places.itemEnded();
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

  #takeRest(): Uint8Array {
    const rest = this.#rest.subarray(0, this.#restLength);
    this.#rest = NOTHING;
    this.#restLength = 0;
    return rest;
  }

  #keep(part: Uint8Array): void {
    const before = this.#restLength;
    this.#restLength += part.length;
    if (this.#restLength > this.#options.maxItemBytes) this.#refuse();
    if (this.#restLength > this.#rest.length) {
      const longer = new Uint8Array(before === 0 ? part.length : this.#restLength * 2);
      longer.set(this.#rest.subarray(0, before));
      this.#rest = longer;
    }
    this.#rest.set(part, before);
  }

  #refuse(): never {
    throw new ItemTooLargeError(`items[${this.#items}]`, this.#options.maxItemBytes);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);
const STRUCTURE: ReadonlySet<number> = new Set([QUOTE, OPEN_BRACE, OPEN_BRACKET]);
