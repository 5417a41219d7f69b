/**
 * The values of fields, read from JSON text.
 * @module
 */

import { EACH, type FieldPathSegment, parseFieldPath } from "../meta/field_path.ts";
import {
  asciiJson,
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
} from "../util/json_text.ts";
import { fieldText, fieldValues } from "./field_index.ts";

/** What the paths say about one value. */
interface FieldNode {
  /** Fields by name, if the value is an object. */
  readonly names: string[];
  readonly nodes: FieldNode[];
  /** Every element, if it is an array. */
  each: FieldNode | undefined;
  /** The paths that end here. */
  readonly paths: number[];
}

/**
 * Reads the values of fields out of JSON texts, all of them in one walk over the text: the same values as an index
 * function of `fieldIndex` gives for the parsed object.
 *
 * How it works. The paths make a tree. The text, as bytes in an array that is used again, is walked along that tree; the
 * rest is skipped by its quotes and brackets, which takes a third of the time that parsing takes. What the walk does not
 * understand (a field that occurs twice, escapes in a field's name, text that is no JSON) is left to `JSON.parse`.
 */
export class FieldReader {
  readonly #encoder = new TextEncoder();
  readonly #root: FieldNode = newNode();
  readonly #paths: FieldPathSegment[][] = [];
  #bytes = new Uint8Array(MIN_BYTES);
  #text = "";
  /** Where the text ends. Two quotes follow in `#bytes`, where a string without an end ends. */
  #end = 0;
  #at = 0;
  #values: string[][] = [];

  /** Adds a path; returns its place in what {@linkcode FieldReader.read} returns. */
  add(path: string): number {
    const segments = parseFieldPath(path, { mayEndInElements: true });
    let node = this.#root;
    for (const segment of segments) node = childOf(node, segment);
    const place = this.#paths.push(segments) - 1;
    node.paths.push(place);
    return place;
  }

  /**
   * The values at each path, each value once. Strings of their own, which do not keep the text in memory.
   *
   * The text must be JSON that was checked before: a fault in a value that no path leads to may not be noticed.
   *
   * @throws {SyntaxError} It is no JSON.
   */
  read(text: string): readonly (readonly string[])[] {
    const values: string[][] = new Array(this.#paths.length);
    for (let i = 0; i < values.length; i++) values[i] = [];
    this.#values = values;
    this.#load(text);
    this.#at = this.#space(0);
    const isRead = this.#walk(this.#root) && this.#space(this.#at) === this.#end;
    this.#text = "";
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = new Uint8Array(MIN_BYTES);
    if (!isRead) {
      const object = JSON.parse(text);
      return this.#paths.map((segments) => fieldValues(object, segments));
    }
    for (let i = 0; i < values.length; i++) if (values[i].length > 1) values[i] = [...new Set(values[i])];
    return values;
  }

  #load(text: string): void {
    const { length } = text;
    if (this.#bytes.length < length + 2) this.#bytes = new Uint8Array(length * 2);
    const { read, written } = this.#encoder.encodeInto(text, this.#bytes);
    // Escaped, a character has the same place in the text and in the bytes.
    if (read !== length || written !== length) return this.#load(asciiJson(text));
    this.#text = text;
    this.#end = length;
    this.#bytes[length] = this.#bytes[length + 1] = QUOTE;
  }

  /** Walks the value at `#at`, which is behind it then. False: it is not understood. */
  #walk(node: FieldNode): boolean {
    const code = this.#bytes[this.#at];
    if (code === OPEN_BRACE) return node.names.length > 0 ? this.#walkObject(node) : this.#skip();
    if (code === OPEN_BRACKET) return node.each !== undefined ? this.#walkArray(node.each) : this.#skip();
    const start = this.#at;
    if (!this.#skip()) return false;
    if (node.paths.length > 0) this.#add(node.paths, JSON.parse(this.#text.slice(start, this.#at)));
    return true;
  }

  #walkObject({ names, nodes }: FieldNode): boolean {
    const bytes = this.#bytes;
    let seen = 0;
    let i = this.#space(this.#at + 1);
    if (bytes[i] === CLOSE_BRACE) {
      this.#at = i + 1;
      return true;
    }
    for (;;) {
      if (bytes[i] !== QUOTE) return false;
      const start = ++i;
      for (let code = bytes[i]; code !== QUOTE; code = bytes[++i]) if (code === BACKSLASH) return false;
      if (i >= this.#end) return false;
      const found = this.#indexOf(names, start, i);
      i = this.#space(i + 1);
      if (bytes[i] !== COLON) return false;
      this.#at = this.#space(i + 1);
      if (found < 0) {
        if (!this.#skip()) return false;
      } else {
        // Of a field that occurs twice the last counts. Bits repeat: one of more than 32 may be taken for another.
        const bit = 1 << found;
        if ((seen & bit) !== 0 || !this.#walk(nodes[found])) return false;
        seen |= bit;
      }
      i = this.#space(this.#at);
      const code = bytes[i];
      if (code === CLOSE_BRACE) {
        this.#at = i + 1;
        return true;
      }
      if (code !== COMMA) return false;
      i = this.#space(i + 1);
    }
  }

  #walkArray(each: FieldNode): boolean {
    const bytes = this.#bytes;
    let i = this.#space(this.#at + 1);
    if (bytes[i] === CLOSE_BRACKET) {
      this.#at = i + 1;
      return true;
    }
    for (;;) {
      this.#at = i;
      if (!this.#walk(each)) return false;
      i = this.#space(this.#at);
      const code = bytes[i];
      if (code === CLOSE_BRACKET) {
        this.#at = i + 1;
        return true;
      }
      if (code !== COMMA) return false;
      i = this.#space(i + 1);
    }
  }

  /** Which of the names is between two places; -1 if none. */
  #indexOf(names: readonly string[], start: number, end: number): number {
    const bytes = this.#bytes;
    const length = end - start;
    next: for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (name.length !== length) continue;
      for (let j = 0; j < length; j++) if (name.charCodeAt(j) !== bytes[start + j]) continue next;
      return i;
    }
    return -1;
  }

  /** Where the next character is that is no white space. */
  #space(i: number): number {
    const bytes = this.#bytes;
    while (bytes[i] <= SPACE) i++;
    return i;
  }

  /** Skips the value at `#at`. False: it has no end. */
  #skip(): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    let depth = 0;
    let i = this.#at;
    do {
      let code = bytes[i++];
      if (code === QUOTE) {
        for (code = bytes[i++]; code !== QUOTE; code = bytes[i++]) if (code === BACKSLASH) i++;
      } else if (code >= OPEN_BRACKET) {
        if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
        else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
        else if (depth === 0) { while (i < end && !endsScalar(bytes[i])) i++; // a literal
         }
      } else if (depth === 0) {
        while (i < end && !endsScalar(bytes[i])) i++; // a number
      }
    } while (depth > 0 && i < end);
    this.#at = i;
    return depth === 0 && i <= end;
  }

  #add(paths: readonly number[], value: unknown): void {
    const text = fieldText(value);
    if (text === undefined) return;
    for (let i = 0; i < paths.length; i++) this.#values[paths[i]].push(text);
  }
}

const MIN_BYTES = 8192;
/** An array that a larger text needed is not kept for the next. */
const MAX_KEPT_BYTES = 1 << 18;

function newNode(): FieldNode {
  return { names: [], nodes: [], each: undefined, paths: [] };
}

function childOf(node: FieldNode, segment: FieldPathSegment): FieldNode {
  if (segment === EACH) return node.each ??= newNode();
  const at = node.names.indexOf(segment);
  if (at >= 0) return node.nodes[at];
  node.names.push(segment);
  return node.nodes[node.nodes.push(newNode()) - 1];
}

/**
 * The field indices of a store whose objects are held as text: computes the values of an object in all of them at once,
 * when the first asks, and remembers those of one object.
 */
export class HeldFields<H extends object> {
  readonly #reader = new FieldReader();
  #held: H | undefined;
  #values: readonly (readonly string[])[] = [];

  /** Adds the path of an index; returns its place. */
  add(path: string): number {
    this.#held = undefined;
    return this.#reader.add(path);
  }

  /**
   * The values of an object in one of the indices.
   *
   * @param text Gives the object's JSON text.
   */
  values(held: H, place: number, text: (held: H) => string): readonly string[] {
    if (this.#held !== held) {
      this.#values = this.#reader.read(text(held));
      this.#held = held;
    }
    return this.#values[place];
  }

  /** Forgets the object whose values it remembers. */
  forget(): void {
    this.#held = undefined;
  }
}
