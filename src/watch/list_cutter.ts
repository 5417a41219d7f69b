/**
 * Cutting the items out of a list while its bytes arrive.
 *
 * How it works. A list is one JSON object with an array `items` in it. The cutter walks over the bytes, knowing no more
 * of JSON than strings and brackets: what is inside the array is handed out item by item, as soon as an item's last
 * byte is there; everything else is the envelope, which is small and parsed at the end with an empty array in the
 * items' place. Whether items and envelope are well-formed is left to the JSON parser, which sees every byte of them;
 * what is between the items is checked here. So the whole is accepted just if a JSON parser would accept it.
 *
 * @module
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const ITEMS = new TextEncoder().encode("items");

/** Grows by doubling, so that appending costs time in proportion to the bytes. */
class Bytes {
  #bytes = new Uint8Array(0);
  length = 0;

  append(part: Uint8Array): void {
    const length = this.length + part.length;
    if (length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2, 4096));
      grown.set(this.#bytes.subarray(0, this.length));
      this.#bytes = grown;
    }
    this.#bytes.set(part, this.length);
    this.length = length;
  }

  /** A view, valid until the next call of any method. */
  view(start = 0): Uint8Array {
    return this.#bytes.subarray(start, this.length);
  }

  clear(): void {
    this.length = 0;
    if (this.#bytes.length > 1024 * 1024) this.#bytes = new Uint8Array(0);
  }
}

/** What may come next between the items. */
type Expected = "itemOrEnd" | "item" | "commaOrEnd";

/** Cuts a list: {@linkcode ListCutter.push} its chunks, then read {@linkcode ListCutter.envelope}. */
export class ListCutter {
  readonly #onItem: (bytes: Uint8Array) => void;
  readonly #onItems: (prefix: Uint8Array) => void;
  readonly #envelope = new Bytes();
  /** The beginning of an item that the chunks so far did not finish. */
  readonly #rest = new Bytes();
  #place: "envelope" | "items" | "item" = "envelope";
  #expected: Expected = "itemOrEnd";
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Of an item that is a number or a literal: it ends where something else begins. */
  #isScalar = false;
  // In the envelope: the bytes of the last string at depth 1, and the key that it was if a colon followed.
  #string = new Bytes();
  #isItemsKey = false;
  #wasCut = false;

  /**
   * @param onItem Called with the bytes of each item, in order; they are valid during the call.
   * @param onItems Called once, before the first item, with the envelope's bytes so far, up to the `[`.
   */
  constructor(onItem: (bytes: Uint8Array) => void, onItems: (prefix: Uint8Array) => void) {
    this.#onItem = onItem;
    this.#onItems = onItems;
  }

  /** The envelope's bytes, with nothing between the brackets of `items`. */
  get envelope(): Uint8Array {
    return this.#envelope.view();
  }

  /**
   * Takes the next chunk.
   *
   * @throws {SyntaxError} Something other than items and commas is between the brackets.
   * @throws What the callbacks throw.
   */
  push(chunk: Uint8Array): void {
    let i = 0;
    while (i < chunk.length) {
      if (this.#place === "envelope") i = this.#inEnvelope(chunk, i);
      else if (this.#place === "items") i = this.#betweenItems(chunk, i);
      else i = this.#inItem(chunk, i);
    }
  }

  #inEnvelope(chunk: Uint8Array, start: number): number {
    let i = start;
    for (; i < chunk.length; i++) {
      const byte = chunk[i];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) this.#inString = false;
        if (this.#depth === 1 && this.#inString) this.#string.append(chunk.subarray(i, i + 1));
        continue;
      }
      switch (byte) {
        case QUOTE:
          this.#inString = true;
          if (this.#depth === 1) this.#string.clear();
          break;
        case COLON:
          if (this.#depth === 1) this.#isItemsKey = isSame(this.#string.view(), ITEMS);
          break;
        case COMMA:
          if (this.#depth === 1) this.#isItemsKey = false;
          break;
        case OPEN_BRACKET:
          if (this.#depth === 1 && this.#isItemsKey && !this.#wasCut) {
            this.#envelope.append(chunk.subarray(start, i));
            this.#onItems(this.#envelope.view());
            this.#envelope.append(chunk.subarray(i, i + 1));
            this.#place = "items";
            this.#expected = "itemOrEnd";
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
    this.#envelope.append(chunk.subarray(start, i));
    return i;
  }

  #betweenItems(chunk: Uint8Array, start: number): number {
    for (let i = start; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
      if (byte === COMMA && this.#expected === "commaOrEnd") {
        this.#expected = "item";
      } else if (byte === CLOSE_BRACKET && this.#expected !== "item") {
        this.#envelope.append(chunk.subarray(i, i + 1));
        this.#place = "envelope";
        this.#isItemsKey = false;
        return i + 1;
      } else if (
        this.#expected !== "commaOrEnd" && byte !== COMMA && byte !== CLOSE_BRACKET && byte !== CLOSE_BRACE
      ) {
        this.#place = "item";
        this.#inString = byte === QUOTE;
        this.#isScalar = byte !== QUOTE && byte !== OPEN_BRACE && byte !== OPEN_BRACKET;
        this.#depth = 0;
        return i;
      } else {
        throw new SyntaxError(`unexpected ${JSON.stringify(String.fromCharCode(byte))} between items`);
      }
    }
    return chunk.length;
  }

  // The hot loop: every byte of every item passes here once.
  #inItem(chunk: Uint8Array, start: number): number {
    const length = chunk.length;
    let i = start;
    if (this.#isScalar) {
      while (i < length && !endsScalar(chunk[i])) i++;
      if (i === length) this.#rest.append(chunk.subarray(start));
      else this.#endItem(chunk, start, i);
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
      const byte = chunk[i++];
      if (inString) {
        if (byte === QUOTE) {
          inString = false;
          if (depth === 0) {
            this.#endItem(chunk, start, i);
            return i;
          }
        } else if (byte === BACKSLASH) {
          if (i === length) this.#escaped = true;
          i++;
        }
      } else if (byte === QUOTE) {
        inString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (--depth === 0) {
          this.#endItem(chunk, start, i);
          return i;
        }
      }
    }
    this.#depth = depth;
    this.#inString = inString;
    this.#rest.append(chunk.subarray(start));
    return length;
  }

  #endItem(chunk: Uint8Array, start: number, end: number): void {
    this.#place = "items";
    this.#expected = "commaOrEnd";
    // Back to where the envelope stands, for when the last item is through.
    this.#depth = 1;
    this.#inString = false;
    if (this.#rest.length === 0) {
      this.#onItem(chunk.subarray(start, end));
      return;
    }
    this.#rest.append(chunk.subarray(start, end));
    this.#onItem(this.#rest.view());
    this.#rest.clear();
  }
}

function endsScalar(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_BRACKET || byte === CLOSE_BRACE || byte <= 0x20;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
