/** Objects cut to some of their fields: of their texts nothing is parsed. */

import { EACH, type FieldPathSegment } from "./field_path.ts";
import {
  afterSpace,
  afterTextValue,
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  closingQuote,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "./json_walk.ts";
import {
  type Level,
  type Members,
  type ObjectShape,
  placeAt,
  type Places,
  type ShapeMember,
} from "./object_shape.ts";

/** What stays of a value: all of it, if nothing is said about what is in it. */
interface CutNode {
  /** Of an object nothing but these fields. */
  readonly names: string[];
  /** The names as they are in a text. */
  readonly written: string[];
  readonly nodes: CutNode[];
  /** Of the elements of an array. */
  each: CutNode | undefined;
}

/** What is known of an object besides its text: its type, and that part of its metadata. */
type LiveFields = Readonly<
  Partial<Record<"apiVersion" | "kind" | "uid" | "resourceVersion" | "namespace", string | undefined>>
>;

/** An object that is held as text. */
export interface HeldText extends LiveFields {
  readonly json: string | undefined;
  readonly members: Members | null | undefined;
}

/** One member of the objects of one shape that stays. */
interface Step {
  /** The key, as it is written, with a colon. */
  readonly key: string;
  /** Where its value is; -1 where that is live, or has members with places. */
  readonly place: number;
  readonly live: keyof LiveFields;
  readonly node: CutNode;
  readonly metadata: readonly Step[] | undefined;
}

/**
 * Cuts objects to the fields at some paths. A value of another type than its path expects stays as it is: a
 * text where fields of an object are wanted, an array where the path has no `[]`.
 */
export class FieldCut {
  readonly #root: CutNode = newNode();
  /** What stays of the objects of a shape; `undefined` for a shape whose texts are walked. */
  readonly #steps = new WeakMap<ObjectShape, readonly Step[]>();

  /** @param paths At least one; none ends in `[]`, or is below another one. */
  constructor(paths: readonly (readonly FieldPathSegment[])[]) {
    for (const path of paths) {
      let node = this.#root;
      for (const segment of path) node = segment === EACH ? node.each ??= newNode() : childOf(node, segment);
    }
  }

  /** Cuts an object. What stays is that of the object itself. */
  object(object: unknown): unknown {
    return cutValue(object, this.#root);
  }

  /** Cuts the JSON text of an object; a value that stays is not changed by a digit. */
  text(json: string): string | undefined {
    const cutter = new TextCutter(json);
    return cutter.value(afterSpace(json, 0), this.#root) < 0 ? undefined : cutter.text;
  }

  /**
   * The same of an object that is held as text, if the text is there: where its members are known already,
   * what is between those that stay is not walked.
   */
  textOf(held: HeldText): string | undefined {
    const { json, members } = held;
    if (json === undefined) return undefined;
    if (!members || members.places === "" || this.#keepsMetadata) return this.text(json);
    const { shape, places } = members;
    let whole = this.#steps.get(shape);
    if (whole === undefined) this.#steps.set(shape, whole = stepsOf(shape, "object", this.#root));
    const inner = 2 * shape.size;
    let text = "";
    const write = (steps: readonly Step[]): boolean => {
      let before = "{";
      for (const { key, place, live, node, metadata } of steps) {
        text += before + key;
        before = ",";
        if (metadata !== undefined) {
          if (!write(metadata)) return false;
          continue;
        }
        let value: string | undefined;
        if (place < 0) value = JSON.stringify(held[live]);
        else {
          const start = placeAt(places, 2 * place);
          const end = placeAt(places, 2 * place + 1);
          const isFound = steps === whole && places.length > inner && node.names.length > 0 &&
            json.charCodeAt(start) === OPEN_BRACE;
          value = isFound
            ? cutMembers({ json, places, inner }, { start, end }, node)
            : cutPart(json.slice(start, end), node);
        }
        if (value === undefined) return false;
        text += value;
      }
      text += before === "{" ? "{}" : "}";
      return true;
    };
    return write(whole) ? text : this.text(json);
  }

  /** Whether the whole metadata stays, parts of which are not in places. */
  get #keepsMetadata(): boolean {
    const at = this.#root.names.indexOf("metadata");
    return at >= 0 && isWhole(this.#root.nodes[at]);
  }
}

function newNode(): CutNode {
  return { names: [], written: [], nodes: [], each: undefined };
}

function isWhole({ names, each }: CutNode): boolean {
  return names.length === 0 && each === undefined;
}

function childOf(node: CutNode, name: string): CutNode {
  const at = node.names.indexOf(name);
  if (at >= 0) return node.nodes[at];
  const child = newNode();
  node.names.push(name);
  node.written.push(JSON.stringify(name));
  node.nodes.push(child);
  return child;
}

function stepsOf(shape: ObjectShape, level: Level, node: CutNode): Step[] {
  const steps: Step[] = [];
  for (const { name, place } of shape[level] as readonly ShapeMember[]) {
    const at = node.names.indexOf(name);
    if (at < 0) continue;
    const child = node.nodes[at];
    const isMetadata = level === "object" && name === "metadata";
    const metadata = isMetadata ? stepsOf(shape, "metadata", child) : undefined;
    const live = name as keyof LiveFields;
    steps.push({ key: `${JSON.stringify(name)}:`, place, live, node: child, metadata });
  }
  return steps;
}

function cutValue(value: unknown, node: CutNode): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { names, nodes, each } = node;
  if (Array.isArray(value)) return each === undefined ? value : value.map((one) => cutValue(one, each));
  if (names.length === 0) return value;
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const at = names.indexOf(name);
    if (at < 0) continue;
    const field = cutValue((value as Record<string, unknown>)[name], nodes[at]);
    // Any name may be that of a field, `__proto__` too.
    Object.defineProperty(kept, name, { value: field, writable: true, enumerable: true, configurable: true });
  }
  return kept;
}

/** What stays of a member that is an object, the keys of which are known from a place on: nothing is walked. */
function cutMembers(
  { json, places, inner }: { readonly json: string; readonly places: Places; readonly inner: number },
  { start, end }: { readonly start: number; readonly end: number },
  { written, nodes }: CutNode,
): string | undefined {
  let text = "{";
  for (let at = inner; at < places.length; at++) {
    const key = placeAt(places, at);
    if (key < start) continue;
    if (key > end) break;
    const first = json.charCodeAt(key + 1);
    for (let i = 0; i < written.length; i++) {
      if (written[i].charCodeAt(1) !== first || !json.startsWith(written[i], key)) continue;
      const next = at + 1 < places.length ? placeAt(places, at + 1) : end;
      const isLast = next >= end;
      // Up to the brace of the end, or to the comma before the next key.
      const close = isLast ? end - 1 : json.lastIndexOf(",", next);
      const colon = afterSpace(json, key + written[i].length);
      const value = cutPart(json.slice(afterSpace(json, colon + 1), beforeSpace(json, close)), nodes[i]);
      if (value === undefined) return undefined;
      text += `${text === "{" ? "" : ","}${written[i]}:${value}`;
    }
  }
  return `${text}}`;
}

/** Where white space begins that ends here. */
function beforeSpace(json: string, end: number): number {
  let i = end;
  while (json.charCodeAt(i - 1) <= SPACE) i--;
  return i;
}

/** What stays of the text of one value. */
function cutPart(json: string, node: CutNode): string | undefined {
  if (isWhole(node)) return json;
  const cutter = new TextCutter(json, node);
  return cutter.value(0, node) < 0 ? undefined : cutter.text;
}

/** Writes what stays of one text. */
class TextCutter {
  readonly #json: string;
  readonly #hasEscapes: boolean;
  /** The node of the whole text, of which it reads no more than can stay: the text is known to be JSON. */
  readonly #part: CutNode | undefined;
  text = "";

  constructor(json: string, part?: CutNode) {
    this.#json = json;
    this.#part = part;
    this.#hasEscapes = json.includes("\\");
  }

  /** Writes what stays of the value that begins here; returns its end, -1 if it is no JSON. */
  value(start: number, node: CutNode): number {
    const code = this.#json.charCodeAt(start);
    if (code === OPEN_BRACE && node.names.length > 0) return this.#members(start, node);
    if (code === OPEN_BRACKET && node.each !== undefined) return this.#elements(start, node.each);
    const end = afterTextValue(this.#json, start);
    if (end >= 0) this.text += this.#json.slice(start, end);
    return end;
  }

  #members(open: number, node: CutNode): number {
    const json = this.#json;
    let before = "{";
    let missing = 0;
    if (node === this.#part) {
      for (const name of node.written) if (this.#hasEscapes || json.includes(name)) missing++;
      if (missing === 0) {
        this.text += "{}";
        return json.length;
      }
    }
    let i = afterSpace(json, open + 1);
    if (json.charCodeAt(i) !== CLOSE_BRACE) {
      for (;;) {
        const key = i;
        const keyEnd = json.charCodeAt(key) === QUOTE ? closingQuote(json, key) + 1 : 0;
        if (keyEnd === 0) return -1;
        const found = this.#fieldAt(key, keyEnd, node);
        i = afterSpace(json, keyEnd);
        if (json.charCodeAt(i) !== COLON) return -1;
        const start = afterSpace(json, i + 1);
        if (found < 0) {
          i = afterTextValue(json, start);
        } else {
          this.text += `${before}${json.slice(key, keyEnd)}:`;
          before = ",";
          i = this.value(start, node.nodes[found]);
          if (--missing === 0 && i > 0 && !this.#mayHave(node, i)) break;
        }
        if (i < 0) return -1;
        i = afterSpace(json, i);
        if (json.charCodeAt(i) !== COMMA) break;
        i = afterSpace(json, i + 1);
      }
      if (json.charCodeAt(i) !== CLOSE_BRACE && missing !== 0) return -1;
    }
    this.text += before === "{" ? "{}" : "}";
    return i + 1;
  }

  /** Whether one of the fields may come from here on: of a key that comes twice the last value counts. */
  #mayHave({ written }: CutNode, from: number): boolean {
    if (this.#hasEscapes) return true;
    return written.some((name) => this.#json.indexOf(name, from) >= 0);
  }

  /** Which of the fields has this key; -1 if none. */
  #fieldAt(key: number, keyEnd: number, { names, written }: CutNode): number {
    const json = this.#json;
    for (let i = 0; i < written.length; i++) {
      if (written[i].length === keyEnd - key && json.startsWith(written[i], key)) return i;
    }
    if (!this.#hasEscapes) return -1;
    // A letter may be written as an escape, too.
    for (let i = key; i < keyEnd; i++) {
      if (json.charCodeAt(i) === BACKSLASH) return names.indexOf(JSON.parse(json.slice(key, keyEnd)));
    }
    return -1;
  }

  #elements(open: number, each: CutNode): number {
    const json = this.#json;
    this.text += "[";
    let i = afterSpace(json, open + 1);
    if (json.charCodeAt(i) !== CLOSE_BRACKET) {
      for (;;) {
        i = this.value(i, each);
        if (i < 0) return -1;
        i = afterSpace(json, i);
        if (json.charCodeAt(i) !== COMMA) break;
        this.text += ",";
        i = afterSpace(json, i + 1);
      }
      if (json.charCodeAt(i) !== CLOSE_BRACKET) return -1;
    }
    this.text += "]";
    return i + 1;
  }
}
