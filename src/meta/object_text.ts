/**
 * Objects as text: checked and read as far as their metadata, not parsed.
 *
 * How it works. The text is written into a buffer as UTF-8 and walked once, byte by byte: on V8 that is twice as fast as a
 * walk over the characters of a string, and faster than to hop from quote to quote with `indexOf`, since JSON is full of short
 * strings. The walk checks the whole grammar of JSON, which costs a few per cent more than to count brackets: what is
 * accepted here can be parsed later. Of the object itself it finds the type and the metadata; they are parsed, without the
 * managedFields, which are most of the metadata.
 *
 * What an object of an API server never has (a key of the first two levels that is written twice or with escapes, more
 * than a thousand levels) is left to `JSON.parse`, so that there is one meaning of such texts.
 *
 * @module
 */

import type { ObjectMeta } from "./object.ts";
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "../util/json_text.ts";

/**
 * What is parsed of an object that is held as text: its type, and its metadata without `managedFields`.
 *
 * @example
 * ```ts
 * import type { ObjectHead } from "@listwatch/cache/reflector";
 * const head: ObjectHead = { kind: "Pod", apiVersion: "v1", metadata: { namespace: "shop", name: "web-1" } };
 * ```
 *
 * @category Reflector
 */
export interface ObjectHead {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

/** The same as it was read, before it was validated. */
export interface UncheckedHead {
  readonly apiVersion: unknown;
  readonly kind: unknown;
  readonly metadata: unknown;
}

/** An object as text, and what was read of it. */
export class ObjectText {
  /** The JSON text, without white space around it. A string of its own, that keeps no other text alive. */
  readonly text: string;
  readonly head: UncheckedHead;

  constructor(text: string, head: UncheckedHead) {
    this.text = text;
    this.head = head;
  }
}

/** What the items of a list are, where they do not say so themselves. */
export interface ItemType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** An event of a watch with its object as text. */
export interface EventText {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ObjectText;
}

/**
 * Reads objects out of texts.
 *
 * @category Reflector
 */
export interface ObjectTextReader {
  /**
   * Reads one object: an `ObjectText`; a value that is no object is parsed.
   *
   * @param type Written into an object with metadata that has neither kind nor apiVersion.
   * @throws {SyntaxError} It is no JSON value.
   */
  read(text: string, type?: ItemType): unknown;
  /**
   * Reads one event of a watch: an {@linkcode EventText} if it is one; any other value is parsed.
   *
   * @throws {SyntaxError} It is no JSON value.
   */
  readEvent(frame: string): unknown;
  /** Whether a value is what {@linkcode ObjectTextReader.read} returns for an object. */
  isText(value: unknown): value is ObjectText;
}

/**
 * Makes a reader of texts. It reads one at a time and keeps a buffer as long as the longest of them. The texts must be
 * well-formed (no lone surrogates, which no decoder of UTF-8 returns).
 *
 * @example
 * ```ts
 * import { newObjectTextReader } from "@listwatch/cache/reflector";
 * const reader = newObjectTextReader();
 * const read = reader.read('{"metadata":{"name":"web-1"},"spec":{"replicas":9007199254740993}}');
 * if (reader.isText(read)) console.log(read.head.metadata); // { name: "web-1" }
 * ```
 *
 * @category Reflector
 */
export function newObjectTextReader(): ObjectTextReader {
  return new WalkingReader();
}

class WalkingReader implements ObjectTextReader {
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #walk = new Walk();
  /** The text that is read begins at `PREFIX`; before it is room for what is put in front of an object. */
  #bytes: Uint8Array = new Uint8Array(PREFIX + 16 * 1024);
  #end = PREFIX;
  /** What was put in front last, and for which type. */
  #prefix: Uint8Array = new Uint8Array(0);
  #prefixType: ItemType | undefined;
  // The types of objects that come one after the other are mostly the same.
  readonly #lastKind: TypeText = { text: "null", value: null };
  readonly #lastApiVersion: TypeText = { text: "null", value: null };

  read(text: string, type?: ItemType): unknown {
    this.#write(text);
    const start = space(this.#bytes, PREFIX);
    const end = this.#walk.object(this.#bytes, start);
    const isWalked = end > 0 && space(this.#bytes, end) === this.#end;
    return isWalked && this.#hasRoomFor(type) ? this.#take(start, end, type) : this.#readParsed(text, type);
  }

  isText(value: unknown): value is ObjectText {
    return value instanceof ObjectText;
  }

  readEvent(frame: string): unknown {
    for (const { type, beginning } of EVENTS) {
      if (!frame.startsWith(beginning)) continue;
      this.#write(frame);
      const start = PREFIX + beginning.length;
      const end = this.#walk.object(this.#bytes, start);
      if (end < 0 || this.#bytes[end] !== CLOSE_BRACE) break;
      if (space(this.#bytes, end + 1) !== this.#end) break;
      return { type, object: this.#take(start, end) } satisfies EventText;
    }
    return this.#readOtherEvent(frame);
  }

  /** An event that is written in another way. */
  #readOtherEvent(frame: string): unknown {
    const event = JSON.parse(frame);
    const { type, object } = (event ?? {}) as { readonly type?: unknown; readonly object?: unknown };
    if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED" || !isObject(object)) return event;
    this.#write(frame);
    const [start, end] = this.#lastMember("object");
    return { type, object: this.read(this.#text(start, end)) } satisfies Record<keyof EventText, unknown>;
  }

  /** Where the value is of a key of the object that was written, which is valid JSON: of the last one, as of a parser. */
  #lastMember(name: string): [start: number, end: number] {
    const bytes = this.#bytes;
    const range: [number, number] = [0, 0];
    let i = space(bytes, PREFIX);
    while (bytes[i] !== CLOSE_BRACE) {
      const key = space(bytes, i + 1); // behind the bracket or the comma
      const colon = space(bytes, afterString(bytes, key + 1));
      const start = space(bytes, colon + 1);
      const end = afterValue(bytes, start, Infinity);
      if (JSON.parse(this.#text(key, afterString(bytes, key + 1))) === name) {
        range[0] = start;
        range[1] = end;
      }
      i = space(bytes, end);
    }
    return range;
  }

  #write(text: string): void {
    // The last byte stays free for the end mark.
    let { read, written } = this.#encoder.encodeInto(text, this.#bytes.subarray(PREFIX, -1));
    if (read < text.length) {
      this.#bytes = new Uint8Array(PREFIX + text.length * 3 + 1);
      ({ read, written } = this.#encoder.encodeInto(text, this.#bytes.subarray(PREFIX, -1)));
    }
    this.#end = PREFIX + written;
    this.#bytes[this.#end] = 0; // what an earlier text left behind is no part of this one
  }

  #text(start: number, end: number): string {
    return this.#decoder.decode(this.#bytes.subarray(start, end));
  }

  /** The object that was walked last. */
  #take(start: number, end: number, type?: ItemType): ObjectText {
    const {
      kindStart,
      kindEnd,
      apiVersionStart,
      apiVersionEnd,
      metadataStart,
      metadataEnd,
      cutStart,
      cutEnd,
    } = this.#walk;
    const isTyped = type !== undefined && kindStart === 0 && apiVersionStart === 0 && metadataStart > 0;
    const from = isTyped ? start + 1 - this.#prefix.length : start;
    if (isTyped) this.#bytes.set(this.#prefix, from);
    const text = this.#text(from, end);
    const isAscii = text.length === end - from;
    const piece = (first: number, last: number): string =>
      isAscii ? text.slice(first - from, last - from) : this.#text(first, last);
    let kind: unknown;
    let apiVersion: unknown;
    let metadata: unknown;
    if (isTyped) ({ kind, apiVersion } = type);
    if (kindStart > 0) kind = parsedType(this.#lastKind, piece(kindStart, kindEnd));
    if (apiVersionStart > 0) {
      apiVersion = parsedType(this.#lastApiVersion, piece(apiVersionStart, apiVersionEnd));
    }
    if (metadataStart > 0) {
      metadata = JSON.parse(
        cutStart === 0
          ? piece(metadataStart, metadataEnd)
          : piece(metadataStart, cutStart) + piece(cutEnd, metadataEnd),
      );
    }
    return new ObjectText(text, { kind, apiVersion, metadata });
  }

  /** Whether this type can be written in front of an object, by the prefix that is made for it here. */
  #hasRoomFor(type: ItemType | undefined): boolean {
    if (type !== undefined && type !== this.#prefixType) {
      this.#prefix = this.#encoder.encode(typePrefix(type));
      this.#prefixType = type;
    }
    return type === undefined || this.#prefix.length <= PREFIX;
  }

  /** An object whose text the walk did not accept. */
  #readParsed(text: string, type: ItemType | undefined): unknown {
    const value = JSON.parse(text);
    if (!isObject(value)) return value;
    let { kind, apiVersion, metadata } = value;
    let whole = text.trim();
    if (type !== undefined && kind === undefined && apiVersion === undefined && metadata !== undefined) {
      ({ kind, apiVersion } = type);
      whole = typePrefix(type) + whole.slice(1);
    }
    if (isObject(metadata)) {
      const { managedFields: _, ...rest } = metadata;
      metadata = rest;
    }
    this.#write(whole);
    return new ObjectText(this.#text(PREFIX, this.#end), { kind, apiVersion, metadata });
  }
}

/** How API servers write the events of a watch. */
const EVENTS = (["MODIFIED", "ADDED", "DELETED"] as const).map((type) => ({
  type,
  beginning: `{"type":"${type}","object":`,
}));

/** A kind or an apiVersion, as it was read last. */
interface TypeText {
  text: string;
  value: unknown;
}

function parsedType(last: TypeText, text: string): unknown {
  if (last.text !== text) {
    last.value = JSON.parse(text);
    last.text = text;
  }
  return last.value;
}

/** As an API server begins a single object. */
function typePrefix({ kind, apiVersion }: ItemType): string {
  return `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Room for the type of an item: kinds have 63 characters at most, groups 253, versions 63. */
const PREFIX = 512;
/** How deep objects are that are walked; deeper than those of any API. */
const MAX_DEPTH = 1000;

/** Where the parts are of the object that was walked last; 0 for what it has not. */
class Walk {
  kindStart = 0;
  kindEnd = 0;
  apiVersionStart = 0;
  apiVersionEnd = 0;
  metadataStart = 0;
  metadataEnd = 0;
  /** What to leave out of the metadata: managedFields, and a comma. */
  cutStart = 0;
  cutEnd = 0;

  /** The end of the object that begins here; -1 if it is none, or one that is left to the parser. */
  object(bytes: Uint8Array, start: number): number {
    this.kindStart =
      this.apiVersionStart =
      this.metadataStart =
      this.cutStart =
        0;
    if (bytes[start] !== OPEN_BRACE) return -1;
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      const key = i;
      if (bytes[key] !== QUOTE) return -1;
      i = afterPlainString(bytes, key + 1);
      if (i < 0) return -1;
      const length = i - key - 2;
      i = space(bytes, i);
      if (bytes[i] !== COLON) return -1;
      const value = space(bytes, i + 1);
      if (length === 8 && isKey(bytes, key, METADATA)) {
        if (this.metadataStart > 0) return -1;
        this.metadataStart = value;
        i = this.metadataEnd = bytes[value] === OPEN_BRACE
          ? this.#metadata(bytes, value)
          : afterValue(bytes, value, MAX_DEPTH);
      } else {
        i = afterValue(bytes, value, MAX_DEPTH);
        if (length === 4 && isKey(bytes, key, KIND)) {
          if (this.kindStart > 0) return -1;
          this.kindStart = value;
          this.kindEnd = i;
        } else if (length === 10 && isKey(bytes, key, API_VERSION)) {
          if (this.apiVersionStart > 0) return -1;
          this.apiVersionStart = value;
          this.apiVersionEnd = i;
        }
      }
      if (i < 0) return -1;
      i = space(bytes, i);
      const code = bytes[i++];
      if (code === CLOSE_BRACE) return i;
      if (code !== COMMA) return -1;
      i = space(bytes, i);
    }
  }

  #metadata(bytes: Uint8Array, start: number): number {
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    /** Behind the member before. */
    let last = -1;
    let cutsNextComma = false;
    for (;;) {
      const key = i;
      if (bytes[key] !== QUOTE) return -1;
      i = afterPlainString(bytes, key + 1);
      if (i < 0) return -1;
      const length = i - key - 2;
      i = space(bytes, i);
      if (bytes[i] !== COLON) return -1;
      i = afterValue(bytes, space(bytes, i + 1), MAX_DEPTH);
      if (i < 0) return -1;
      if (length === 13 && isKey(bytes, key, MANAGED_FIELDS)) {
        if (this.cutStart > 0) return -1;
        this.cutStart = last < 0 ? key : last;
        this.cutEnd = i;
        cutsNextComma = last < 0;
      }
      last = i;
      i = space(bytes, i);
      const code = bytes[i++];
      if (code === CLOSE_BRACE) return i;
      if (code !== COMMA) return -1;
      if (cutsNextComma) {
        this.cutEnd = i;
        cutsNextComma = false;
      }
      i = space(bytes, i);
    }
  }
}

const [KIND, API_VERSION, METADATA, MANAGED_FIELDS] = ["kind", "apiVersion", "metadata", "managedFields"].map(
  (name) => new TextEncoder().encode(name),
);

function isKey(bytes: Uint8Array, quote: number, name: Uint8Array): boolean {
  for (let i = 0; i < name.length; i++) {
    if (bytes[quote + 1 + i] !== name[i]) return false;
  }
  return true;
}

/** Where something other than white space comes, from here on. */
function space(bytes: Uint8Array, start: number): number {
  let i = start;
  let code = bytes[i];
  while (code <= SPACE && (code === SPACE || code === 0x0a || code === 0x0d || code === 0x09)) {
    code = bytes[++i];
  }
  return i;
}

/** Behind the closing quote of the string whose first character is at `start`; -1 if it is none. */
function afterString(bytes: Uint8Array, start: number): number {
  for (let i = start;;) {
    const code = bytes[i++];
    if (code === QUOTE) return i;
    if (code < SPACE) return -1;
    if (code !== BACKSLASH) continue;
    const escape = bytes[i++];
    if (escape === 0x75) { // u
      for (const end = i + 4; i < end; i++) if (!isHex(bytes[i])) return -1;
    } else if (!isEscape(escape)) {
      return -1;
    }
  }
}

/** The same for a string without escapes: -1 if it has some. */
function afterPlainString(bytes: Uint8Array, start: number): number {
  for (let i = start;;) {
    const code = bytes[i++];
    if (code === QUOTE) return i;
    if (code < SPACE || code === BACKSLASH) return -1;
  }
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

/** Which of the brackets that are open are of objects; one walk at a time uses it. */
let openBrackets: Uint8Array = new Uint8Array(MAX_DEPTH + 1);

/** Behind the value that begins here; -1 if it is none. */
function afterValue(bytes: Uint8Array, start: number, maxDepth: number): number {
  let i = start;
  let depth = 0;
  let inObject = false;
  let open = openBrackets;
  for (;;) {
    // A value is next.
    const code = bytes[i];
    if (code === QUOTE) {
      i = afterString(bytes, i + 1);
      if (i < 0) return -1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (depth > maxDepth) return -1;
      if (depth === open.length) open = openBrackets = doubled(open);
      open[depth++] = inObject ? 1 : 0;
      inObject = code === OPEN_BRACE;
      i = space(bytes, i + 1);
      if (bytes[i] === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
        i++;
        inObject = open[--depth] === 1;
      } else if (inObject) {
        i = afterKey(bytes, i);
        if (i < 0) return -1;
        continue;
      } else {
        continue;
      }
    } else {
      i = afterScalar(bytes, i);
      if (i < 0) return -1;
    }
    // A value is complete.
    for (;;) {
      if (depth === 0) return i;
      let code = bytes[i];
      if (code <= SPACE) code = bytes[i = space(bytes, i)];
      if (code === COMMA) {
        i = space(bytes, i + 1);
        if (inObject) {
          i = afterKey(bytes, i);
          if (i < 0) return -1;
        }
        break;
      }
      if (code !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return -1;
      i++;
      inObject = open[--depth] === 1;
    }
  }
}

/** Where the value of the key begins that begins here; -1 if none does. */
function afterKey(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) return -1;
  let i = afterString(bytes, start + 1);
  if (i < 0) return -1;
  if (bytes[i] <= SPACE) i = space(bytes, i);
  if (bytes[i] !== COLON) return -1;
  return bytes[++i] <= SPACE ? space(bytes, i) : i;
}

function afterScalar(bytes: Uint8Array, start: number): number {
  let i = start;
  let code = bytes[i];
  if (code === 0x74) return isKey(bytes, i, RUE) ? i + 4 : -1;
  if (code === 0x66) return isKey(bytes, i, ALSE) ? i + 5 : -1;
  if (code === 0x6e) return isKey(bytes, i, ULL) ? i + 4 : -1;
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

const [RUE, ALSE, ULL] = ["rue", "alse", "ull"].map((rest) => new TextEncoder().encode(rest));

function doubled(bytes: Uint8Array): Uint8Array {
  const longer = new Uint8Array(bytes.length * 2);
  longer.set(bytes);
  return longer;
}
