/**
 * Removes fields from objects before they are parsed.
 *
 * How it works. The paths make a tree. The text of an object is walked along that tree: a member that is dropped is cut
 * out of the text, one that nothing below is dropped from is skipped, and when every path was found the rest is
 * not looked at. What remains goes to the JSON parser. Skipping text is two to four times as fast as parsing it, and
 * what was never parsed is no garbage.
 *
 * The end of one array that is dropped is guessed: the first `]`, if there is no second `[` before it. The guess is wrong
 * just if that `]` is inside a string; then what remains has an odd number of quotes, the parser refuses it, and the
 * object is walked again without guessing.
 *
 * @module
 */

import {
  afterBrackets,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  closingQuote,
  COLON,
  COMMA,
  endsScalar,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "./json_text.ts";
import { type Branch, type FieldNode, fieldTree, WHOLE } from "./field_tree.ts";

// What is skipped is never parsed: half a value, of a frame that lost bytes, must not pass for a whole one.
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/;

/** kubectl's annotation of the object as it was last applied. */
const LAST_APPLIED = 'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]';

/**
 * Which fields of the objects are left out. Paths are written as `spec.volumes`, `spec.containers[].env` (of every
 * element), `metadata.annotations["example.com/notes"]` (a key that is no name).
 *
 * Where anything is left out, so is kubectl's annotation of the last applied configuration: it has the whole object in it.
 *
 * @category Decoding
 */
export interface ProjectionOptions {
  /** The only fields that are kept, besides `apiVersion`, `kind` and `metadata`; everything by default. */
  readonly keep?: readonly string[];
  /** The fields that are left out, of what is kept. */
  readonly drop?: readonly string[];
}

/**
 * Parses objects without the unwanted fields. Of a key that an object has twice, which API servers do not send,
 * the second may be kept.
 *
 * @example
 * ```ts
 * import { Projection } from "@listwatch/cache/client";
 * const projection = new Projection({ drop: ["metadata.managedFields"] });
 * const text = '{"metadata":{"name":"web-1","managedFields":[]}}';
 * console.log(projection.parse(text, 0, text.length)); // { metadata: { name: "web-1" } }
 * ```
 *
 * @category Decoding
 */
export class Projection {
  readonly #root: Branch;
  readonly #event: Branch;

  /**
   * Takes the paths in.
   *
   * @throws {TypeError} A path cannot be read, or is of what no object can be without.
   */
  constructor({ keep, drop = [] }: ProjectionOptions) {
    const isWhole = keep === undefined && drop.length === 0;
    this.#root = fieldTree(keep, isWhole ? [] : [...drop, LAST_APPLIED]);
    this.#event = { names: ["object"], nodes: [this.#root], keepsOthers: true };
  }

  /**
   * Parses one object.
   *
   * @param parse Takes the place of `JSON.parse`, and must refuse the same texts.
   * @throws {SyntaxError} It is no JSON value.
   */
  parse(text: string, start: number, end: number, parse: Parse = JSON.parse): unknown {
    return parseWithout(text, start, end, this.#root, parse);
  }

  /**
   * Parses one watch event; what a BOOKMARK or an ERROR holds is left whole.
   *
   * @param parse Takes the place of `JSON.parse`, and must refuse the same texts.
   * @throws {SyntaxError} It is no JSON value.
   */
  parseEvent(frame: string, parse: Parse = JSON.parse): unknown {
    const event = parseWithout(frame, 0, frame.length, this.#event, parse);
    const type = (event as { type?: unknown } | null)?.type;
    return type === "BOOKMARK" || type === "ERROR" ? parse(frame) : event;
  }
}

type Parse = (text: string) => unknown;

function parseWithout(text: string, start: number, end: number, root: Branch, parse: Parse): unknown {
  for (const isGuessing of [true, false]) {
    const rest = new Walk(text, start, end, isGuessing).rest(root);
    if (rest === undefined) continue;
    try {
      return parse(rest);
    } catch {
      // The guess was wrong, or it is no JSON.
    }
  }
  return parse(text.slice(start, end));
}

/** One walk over the text of an object. */
class Walk {
  readonly #text: string;
  readonly #start: number;
  readonly #end: number;
  readonly #isGuessing: boolean;
  #position: number;
  /** What is kept so far, up to `#copied`. */
  #kept = "";
  #copied: number;
  #hasGuessed = false;
  /** Every path was found; the rest stays as it is. */
  #isDone = false;

  constructor(text: string, start: number, end: number, isGuessing: boolean) {
    this.#text = text;
    this.#start = this.#position = this.#copied = start;
    this.#end = end;
    this.#isGuessing = isGuessing;
  }

  /** The text without what is dropped; `undefined` if it is no JSON as far as can be seen. */
  rest(root: Branch): string | undefined {
    this.#skipSpace();
    if (!this.#walk(root, true)) return undefined;
    if (this.#copied === this.#start) return this.#text.slice(this.#start, this.#end);
    return this.#kept + this.#text.slice(this.#copied, this.#end);
  }

  /**
   * Walks one value. False: something is wrong with it.
   *
   * @param isLast Whether no path leads elsewhere: the walk ends when all paths in here were found.
   */
  #walk(branch: Branch, isLast: boolean): boolean {
    const code = this.#text.charCodeAt(this.#position);
    if (code === OPEN_BRACE && (branch.each === undefined || branch.names.length > 0)) {
      return this.#walkObject(branch, isLast);
    }
    if (code === OPEN_BRACKET && branch.each !== undefined) return this.#walkArray(branch.each);
    return this.#skipValue();
  }

  #walkArray(each: Branch): boolean {
    const text = this.#text;
    this.#position++;
    this.#skipSpace();
    if (text.charCodeAt(this.#position) === CLOSE_BRACKET) {
      this.#position++;
      return true;
    }
    for (;;) {
      if (!this.#walk(each, false)) return false;
      this.#skipSpace();
      const code = text.charCodeAt(this.#position++);
      if (code === CLOSE_BRACKET) return true;
      if (code !== COMMA) return false;
      this.#skipSpace();
    }
  }

  #walkObject(branch: Branch, isLast: boolean): boolean {
    const text = this.#text;
    // How many fields were not found yet.
    let open = branch.keepsOthers ? branch.names.length : Infinity;
    let keptEnd = -1;
    // Where text is being dropped from; -1 if the member before was kept.
    let dropFrom = -1;
    this.#position++;
    this.#skipSpace();
    if (text.charCodeAt(this.#position) === CLOSE_BRACE) {
      this.#position++;
      return true;
    }
    for (;;) {
      const start = this.#position;
      if (text.charCodeAt(start) !== QUOTE || !this.#skipString()) return false;
      const node = nodeOf(branch, text, start, this.#position);
      if (node !== WHOLE && node !== "drop" || node === "drop" && branch.keepsOthers) open--;
      this.#skipSpace();
      if (text.charCodeAt(this.#position++) !== COLON) return false;
      this.#skipSpace();
      if (node === "drop") {
        // A second drop could hide a wrong guess before it.
        if (this.#hasGuessed) return false;
        if (dropFrom < 0) dropFrom = start;
        if (!(this.#isGuessing && this.#skipFlatArray() || this.#skipValue())) return false;
      } else {
        if (dropFrom >= 0) {
          this.#drop(dropFrom, start);
          dropFrom = -1;
        }
        if (!(node === WHOLE ? this.#skipValue() : this.#walk(node, isLast && open === 0))) return false;
        if (this.#isDone) return true;
        keptEnd = this.#position;
      }
      this.#skipSpace();
      const code = text.charCodeAt(this.#position);
      if (code === CLOSE_BRACE) {
        // Nothing follows: the comma before what is dropped goes with it.
        if (dropFrom >= 0) this.#drop(keptEnd < 0 ? dropFrom : keptEnd, this.#position);
        this.#position++;
        return true;
      }
      if (code !== COMMA) return false;
      this.#position++;
      this.#skipSpace();
      if (isLast && open === 0) {
        if (dropFrom >= 0) this.#drop(dropFrom, this.#position);
        this.#isDone = true;
        return true;
      }
    }
  }

  #drop(from: number, to: number): void {
    this.#kept += this.#text.slice(this.#copied, from);
    this.#copied = to;
  }

  #skipSpace(): void {
    const text = this.#text;
    let i = this.#position;
    // Nearly always there is none.
    while (text.charCodeAt(i) <= SPACE) i++;
    this.#position = i;
  }

  #skipValue(): boolean {
    const text = this.#text;
    const code = text.charCodeAt(this.#position);
    if (code === QUOTE) return this.#skipString();
    if (code === OPEN_BRACE || code === OPEN_BRACKET) return this.#skipNested();
    let i = this.#position;
    while (i < this.#end && !endsScalar(text.charCodeAt(i))) i++;
    const isScalar = SCALAR.test(text.slice(this.#position, i));
    this.#position = i;
    return isScalar;
  }

  #skipString(): boolean {
    const quote = closingQuote(this.#text, this.#position);
    if (quote < 0 || quote >= this.#end) return false;
    this.#position = quote + 1;
    return true;
  }

  #skipNested(): boolean {
    const after = afterBrackets(this.#text, this.#position, this.#end);
    if (after < 0) return false;
    this.#position = after;
    return true;
  }

  #skipFlatArray(): boolean {
    if (this.#text.charCodeAt(this.#position) !== OPEN_BRACKET) return false;
    const from = this.#position + 1;
    const close = this.#text.indexOf("]", from);
    if (close < 0 || close >= this.#end || this.#text.slice(from, close).includes("[")) return false;
    this.#position = close + 1;
    this.#hasGuessed = true;
    return true;
  }
}

/** How a member is handled, by the key between two quotes. */
function nodeOf(branch: Branch, text: string, open: number, end: number): FieldNode {
  const { names, nodes } = branch;
  const length = end - open - 2;
  let isLonger = false;
  for (let i = 0; i < names.length; i++) {
    if (names[i].length === length && text.startsWith(names[i], open + 1)) {
      if (!names[i].includes("\\")) return nodes[i];
      isLonger = true; // what is written like this name is another one: its backslash is an escape
    }
    if (names[i].length < length) isLonger = true;
  }
  // A key that is written with escapes, which make it longer, may be one of them: it is parsed to see.
  const key = isLonger ? text.slice(open, end) : "";
  if (key.includes("\\")) {
    const i = names.indexOf(JSON.parse(key));
    if (i >= 0) return nodes[i];
  }
  return branch.keepsOthers ? WHOLE : "drop";
}
