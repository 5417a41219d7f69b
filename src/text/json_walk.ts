/**
 * Walking JSON text that is not parsed: as a string, or as UTF-8 bytes with the whole grammar checked.
 *
 * How it works. One byte after the other, each in a loop of one function, and strings four bytes at a time,
 * as a number: that is faster than to hop from quote to quote with `indexOf`, since JSON is full of short
 * strings, and checking the whole grammar costs a third more than to count brackets. The bytes must be
 * followed by a 0, where every walk ends.
 *
 * @module
 */

import { encodeUtf8 } from "../util/bytes.ts";

/** The characters that JSON's structure is made of. */
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
/** The highest white space: every character below it is white space, or invalid outside of strings. */
export const SPACE = 0x20;

/**
 * Writes JSON on one line, for the events of a watch: an indented text has line breaks between its parts, and
 * U+2028 and U+2029, which JSON permits in strings, end a line for Node's readline and others. Go escapes the
 * latter too: https://pkg.go.dev/encoding/json#Marshal
 */
export function onOneLine(json: string): string {
  if (json.includes("\n") || json.includes("\r")) json = json.replace(/[\n\r]/g, " ");
  return json.includes("\u2028") || json.includes("\u2029")
    ? json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")
    : json;
}

/** The end of the string that begins with the quote at `open`; -1 if there is none. */
export function closingQuote(text: string, open: number): number {
  for (let quote = open;;) {
    quote = text.indexOf('"', quote + 1);
    if (text.charCodeAt(quote - 1) !== BACKSLASH) return quote;
    let i = quote - 1;
    while (text.charCodeAt(i) === BACKSLASH) i--;
    // An even number of backslashes are escaped themselves.
    if ((quote - i) % 2 === 1) return quote;
  }
}

/** Whether a number or literal ends before this character. */
export function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || code <= SPACE;
}

/** A member of an object in JSON text. */
export interface TextMember {
  /** The key as it is written, between its quotes. */
  readonly key: string;
  /** Where the member's value begins and ends. */
  readonly start: number;
  readonly end: number;
}

/** The members of the object that begins at `open`, as far as the text is JSON; none of what is no object. */
export function* textMembers(json: string, open = 0): Generator<TextMember, void, undefined> {
  let i = afterSpace(json, open);
  if (json.charCodeAt(i) !== OPEN_BRACE) return;
  do {
    i = afterSpace(json, i + 1);
    const keyEnd = json.charCodeAt(i) === QUOTE ? closingQuote(json, i) : -1;
    if (keyEnd < 0) return;
    const key = json.slice(i + 1, keyEnd);
    i = afterSpace(json, keyEnd + 1);
    if (json.charCodeAt(i) !== COLON) return;
    const start = afterSpace(json, i + 1);
    const end = afterTextValue(json, start);
    if (end < 0) return;
    yield { key, start, end };
    i = afterSpace(json, end);
  } while (json.charCodeAt(i) === COMMA);
}

/** The member with this key, as it is written. */
export function textMember(json: string, open: number, key: string): TextMember | undefined {
  for (const member of textMembers(json, open)) if (member.key === key) return member;
  return undefined;
}

/** The next place, from here on, that is not white space. */
export function afterSpace(json: string, from: number): number {
  let i = from;
  while (json.charCodeAt(i) <= SPACE) i++;
  return i;
}

/** Behind the value that begins here; -1 if it does not end. */
export function afterTextValue(json: string, start: number): number {
  const first = json.charCodeAt(start);
  if (first === QUOTE) return closingQuote(json, start) + 1 || -1;
  let i = start;
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    while (i < json.length && !endsScalar(json.charCodeAt(i))) i++;
    return i === start ? -1 : i;
  }
  const { length } = json;
  for (let depth = 0; i < length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) {
      const quote = json.indexOf('"', i + 1);
      i = json.charCodeAt(quote - 1) === BACKSLASH ? closingQuote(json, i) : quote;
      if (i < 0) return -1;
    } else if ((code | 0x20) === OPEN_BRACE) depth++; // a bit more than the bracket
    else if ((code | 0x20) === CLOSE_BRACE && --depth === 0) return i + 1;
  }
  return -1;
}

/** The next place, from here on, that is not white space. */
export function space(bytes: Uint8Array, start: number): number {
  let i = start;
  let code = bytes[i];
  while (code <= SPACE && (code === SPACE || code === 0x0a || code === 0x0d || code === 0x09)) {
    code = bytes[++i];
  }
  return i;
}

/** Behind the closing quote of the string whose first character is at `start`; -1 if it is none. */
export function afterString(bytes: Uint8Array, start: number): number {
  const words = wordsOf(bytes);
  for (let i = start;;) {
    i = afterLetters(bytes, words, i);
    const code = bytes[i++];
    if (code === QUOTE) return i;
    if (code !== BACKSLASH || (i = afterEscape(bytes, i)) < 0) return -1;
  }
}

/** The byte after the string whose letters begin at `start`; -1 if the string has escapes. */
export function afterPlainString(bytes: Uint8Array, start: number): number {
  const i = afterLetters(bytes, wordsOf(bytes), start);
  return bytes[i] === QUOTE ? i + 1 : -1;
}

/** The bytes that were walked last, for a look at several of them as one number. */
let walked: Uint8Array = new Uint8Array(0);
let words: DataView = new DataView(walked.buffer);

/** The bytes, for a look at several of them as one number. */
export function wordsOf(bytes: Uint8Array): DataView {
  if (bytes === walked) return words;
  walked = bytes;
  return words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** The next quote, backslash or control character, from here on. */
function afterLetters(bytes: Uint8Array, words: DataView, start: number): number {
  let i = start;
  for (const last = bytes.length - 4; i <= last; i += 4) {
    const word = words.getInt32(i, true);
    const quotes = word ^ 0x22222222;
    const backslashes = word ^ 0x5c5c5c5c;
    // The highest bit is set of a byte that is sought; behind the first one a carry may set others.
    const found = ((quotes - 0x01010101) & ~quotes | (backslashes - 0x01010101) & ~backslashes |
      (word - 0x20202020) & ~word) & 0x80808080;
    if (found !== 0) return i + (31 - Math.clz32(found & -found) >> 3);
  }
  while (bytes[i] >= SPACE && bytes[i] !== QUOTE && bytes[i] !== BACKSLASH) i++;
  return i;
}

/** Behind an escape, of which this is what follows the backslash; -1 if it is none. */
function afterEscape(bytes: Uint8Array, start: number): number {
  const code = bytes[start];
  if (code !== 0x75) return isEscape(code) ? start + 1 : -1; // u
  for (let i = start + 1; i < start + 5; i++) if (!isHex(bytes[i])) return -1;
  return start + 5;
}

function isHex(code: number): boolean {
  return isDigit(code) || code >= 0x41 && code <= 0x46 || code >= 0x61 && code <= 0x66;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** " \ / b f n r t */
function isEscape(code: number): boolean {
  return code === QUOTE || code === BACKSLASH || code === 0x2f || code === 0x62 || code === 0x66 ||
    code === 0x6e ||
    code === 0x72 || code === 0x74;
}

/** Which of the open brackets are of objects; one walk at a time uses it. */
let openBrackets: Uint8Array = new Uint8Array(1024);

/** Behind the value that begins here; -1 if it is none, or is nested deeper. */
export function afterValue(bytes: Uint8Array, start: number, maxDepth: number): number {
  let i = start;
  let depth = 0;
  let inObject = false;
  let open = openBrackets;
  for (;;) {
    // A value is next; in an object, its key.
    let code = bytes[i];
    if (inObject) {
      if (code !== QUOTE) return -1;
      i = afterString(bytes, i + 1);
      if (i < 0) return -1;
      if (bytes[i] !== COLON && bytes[i = space(bytes, i)] !== COLON) return -1;
      code = bytes[++i];
      if (code <= SPACE) code = bytes[i = space(bytes, i)];
    }
    if (code === QUOTE) {
      i = afterString(bytes, i + 1);
      if (i < 0) return -1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const close = code + 2;
      code = bytes[++i];
      if (code <= SPACE) code = bytes[i = space(bytes, i)];
      if (code !== close) {
        if (depth > maxDepth) return -1;
        if (depth === open.length) open = openBrackets = doubled(open);
        open[depth++] = inObject ? 1 : 0;
        inObject = close === CLOSE_BRACE;
        continue;
      }
      i++;
    } else {
      i = afterScalar(bytes, i);
      if (i < 0) return -1;
    }
    // A value is complete.
    for (;;) {
      if (depth === 0) return i;
      code = bytes[i];
      if (code <= SPACE) code = bytes[i = space(bytes, i)];
      i++;
      if (code === COMMA) {
        if (bytes[i] <= SPACE) i = space(bytes, i);
        break;
      }
      if (code !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return -1;
      inObject = open[--depth] === 1;
    }
  }
}

/** Behind the object that begins here, if all its values are strings; otherwise -1. */
export function afterStrings(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== OPEN_BRACE) return -1;
  let i = space(bytes, start + 1);
  if (bytes[i] === CLOSE_BRACE) return i + 1;
  for (;;) {
    if (bytes[i] !== QUOTE || (i = afterString(bytes, i + 1)) < 0) return -1;
    i = space(bytes, i);
    if (bytes[i] !== COLON) return -1;
    i = space(bytes, i + 1);
    if (bytes[i] !== QUOTE || (i = afterString(bytes, i + 1)) < 0) return -1;
    i = space(bytes, i);
    const code = bytes[i++];
    if (code === CLOSE_BRACE) return i;
    if (code !== COMMA) return -1;
    i = space(bytes, i);
  }
}

function afterScalar(bytes: Uint8Array, start: number): number {
  let i = start;
  let code = bytes[i];
  if (code === 0x74) return isAt(bytes, i + 1, RUE) ? i + 4 : -1;
  if (code === 0x66) return isAt(bytes, i + 1, ALSE) ? i + 5 : -1;
  if (code === 0x6e) return isAt(bytes, i + 1, ULL) ? i + 4 : -1;
  if (code === 0x2d) code = bytes[++i];
  if (!isDigit(code)) return -1;
  i = code === 0x30 ? i + 1 : afterDigits(bytes, i);
  if (bytes[i] === 0x2e) {
    if (!isDigit(bytes[++i])) return -1;
    i = afterDigits(bytes, i);
  }
  if ((bytes[i] | 0x20) === 0x65) {
    code = bytes[++i];
    if (code === 0x2b || code === 0x2d) i++;
    if (!isDigit(bytes[i])) return -1;
    i = afterDigits(bytes, i);
  }
  return i;
}

function afterDigits(bytes: Uint8Array, start: number): number {
  let i = start;
  while (isDigit(bytes[i])) i++;
  return i;
}

/** Whether the bytes have this part at `start`. */
export function isAt(bytes: Uint8Array, start: number, part: Uint8Array): boolean {
  for (let i = 0; i < part.length; i++) if (bytes[start + i] !== part[i]) return false;
  return true;
}

const [RUE, ALSE, ULL] = ["rue", "alse", "ull"].map(encodeUtf8);

function doubled(bytes: Uint8Array): Uint8Array {
  const longer = new Uint8Array(bytes.length * 2);
  longer.set(bytes);
  return longer;
}

/**
 * Walks values that mostly differ from one another in their strings only, as the managedFields of objects
 * that were made alike do: three times as fast as a walk over each byte.
 *
 * How it works. A value is compared with some that were walked before, eight bytes at a time, as a number. If
 * they differ inside a string, the string is walked, and the comparison continues behind it. So what is
 * between the strings is the same, and the value is as valid as the one before. One that differs elsewhere is
 * walked as any other, and remembered.
 */
export class KnownShapes {
  readonly #shapes: Shape[] = [];
  /** The place of the shape that was found last, and of the one that is replaced next. */
  #last = 0;
  #next = 0;
  /** Rises with each value that is like one before it, and falls with each that is not. */
  #luck = 0;
  #unlucky = 0;

  readonly #maxLength: number;

  /** @param maxLength The longest value that is remembered: a shape takes five times its length. */
  constructor(maxLength: number = MAX_LENGTH) {
    this.#maxLength = maxLength;
  }

  /** The end of a value, as the function `afterValue` finds it. */
  afterValue(bytes: Uint8Array, start: number, maxDepth: number): number {
    // Where many values are new, few are compared: several in a row, as values made alike come together.
    if (this.#luck < 0 && this.#unlucky++ % 32 >= 4) return afterValue(bytes, start, maxDepth);
    const shapes = this.#shapes;
    for (let i = 0; i < shapes.length; i++) {
      const place = (this.#last + i) % shapes.length;
      const end = afterLike(shapes[place], bytes, wordsOf(bytes), start);
      if (end < 0) continue;
      this.#luck = Math.min(this.#luck + 1, MOST_LUCK);
      this.#last = place;
      return end;
    }
    const end = afterValue(bytes, start, maxDepth);
    const length = end - start;
    if (length >= MIN_LENGTH && length <= this.#maxLength) {
      this.#luck = Math.max(this.#luck - NEW_COST, -MOST_LUCK);
      this.#last = this.#next;
      shapes[this.#next] = newShape(bytes.slice(start, end));
      this.#next = (this.#next + 1) % SHAPES;
    }
    return end;
  }
}

/** A value that is valid JSON. */
interface Shape {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /**
   * For each byte in a string, or of its closing quote, where a string that differs there is walked on: this
   * byte, or the backslash of its escape; otherwise 0.
   */
  readonly resumes: Uint16Array;
  /** The end of the string, behind its quote, for the same. */
  readonly ends: Uint16Array;
}

function newShape(bytes: Uint8Array): Shape {
  const resumes = new Uint16Array(bytes.length);
  const ends = new Uint16Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== QUOTE) continue;
    const begin = ++i;
    while (bytes[i] !== QUOTE) {
      const at = i;
      i = bytes[i] === BACKSLASH ? afterEscape(bytes, i + 1) : i + 1;
      resumes.fill(at, at, i);
    }
    resumes[i] = i;
    ends.fill(i + 1, begin, i + 1);
  }
  return { bytes, view: viewOf(bytes), resumes, ends };
}

/**
 * Behind the value that begins here, if it differs from that of the shape in its strings only; otherwise -1.
 */
function afterLike(shape: Shape, bytes: Uint8Array, view: DataView, start: number): number {
  const { bytes: known, view: knownView } = shape;
  const { length } = known;
  // Up to here eight bytes are compared at once, as numbers: no JSON text makes numbers that are equal and
  // not the same, as 0 and -0 are.
  const wordsEnd = length - 7;
  let i = start;
  let k = 0;
  for (;;) {
    const end = Math.min(wordsEnd, bytes.length - 7 - i + k);
    while (k < end && view.getFloat64(i, true) === knownView.getFloat64(k, true)) {
      i += 8;
      k += 8;
    }
    if (k < end && view.getInt32(i, true) === knownView.getInt32(k, true)) {
      i += 4;
      k += 4;
    }
    while (k < length && bytes[i] === known[k]) {
      i++;
      k++;
    }
    if (k === length) return i;
    const resume = shape.resumes[k];
    if (resume === 0) return -1;
    i = afterString(bytes, i - (k - resume));
    if (i < 0) return -1;
    k = shape.ends[k];
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** How many shapes are remembered, and of which length. */
const SHAPES = 8;
const MIN_LENGTH = 128;
const MAX_LENGTH = 0xffff;
/** The bound of `#luck`, and how many values alike save what one new value costs. */
const MOST_LUCK = 32;
const NEW_COST = 8;
