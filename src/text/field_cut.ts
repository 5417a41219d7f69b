/** Objects cut to some of their fields, without parsing their texts. */

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

/** The fields of a value that stay: the whole value where there are none. */
interface CutNode {
  /** The fields of an object that stay. */
  readonly names: string[];
  /** The names as they are in a text. */
  readonly written: string[];
  readonly nodes: CutNode[];
  /** What stays of each element of an array. */
  each: CutNode | undefined;
}

/** What is known of an object besides its text: its type, and these fields of its metadata. */
type LiveFields = Readonly<
  Partial<Record<"apiVersion" | "kind" | "uid" | "resourceVersion" | "namespace", string | undefined>>
>;

/** An object that is held as text. */
export interface HeldText extends LiveFields {
  readonly json: string | undefined;
  readonly members: Members | null | undefined;
}

/** A member that stays, of the objects of one shape. */
interface Step {
  readonly name: string;
  /** The name, as the text writes it. */
  readonly key: string;
  /** The place of the member's value; -1 where the value is live, or has members with places. */
  readonly place: number;
  readonly node: CutNode;
  readonly metadata: readonly Step[] | undefined;
}

/**
 * Cuts objects to the fields at some paths. A value of another type than its path expects stays as it is: a
 * text where fields of an object are wanted, an array where the path has no `[]`.
 */
export class FieldCut {
  readonly #root: CutNode = newNode();
  /** The members that stay, by the shape of the objects; `undefined` for a shape whose texts are walked. */
  readonly #steps = new WeakMap<ObjectShape, readonly Step[]>();

  /** @param paths At least one; none ends in `[]`, or is below another one. */
  constructor(paths: readonly (readonly FieldPathSegment[])[]) {
    for (const path of paths) {
      let node = this.#root;
      for (const segment of path) node = segment === EACH ? node.each ??= newNode() : childOf(node, segment);
    }
  }

  /** Cuts an object: the result shares the values that stay. */
  object(object: unknown): unknown {
    return cutValue(object, this.#root);
  }

  /** Cuts the JSON text of an object; a value that stays is not changed by a digit. */
  text(json: string): string | undefined {
    return new Cutter(TEXT, json).value(afterSpace(json, 0), this.#root);
  }

  /**
   * Cuts an object that is held as text, if the text is there. Where the places of its members are known,
   * only those that stay are walked.
   */
  textOf(held: HeldText): string | undefined {
    return this.#cut(held, TEXT);
  }

  /** Cuts an object that is held as text; returns an object. */
  objectOf(held: HeldText): object | undefined {
    return this.#cut(held, VALUE) as object | undefined;
  }

  #cut<V>(held: HeldText, form: Form<V>): V | undefined {
    const { json, members } = held;
    if (json === undefined) return undefined;
    if (members && members.places !== "" && !this.#keepsMetadata) {
      const { shape, places } = members;
      let steps = this.#steps.get(shape);
      if (steps === undefined) this.#steps.set(shape, steps = stepsOf(shape, "object", this.#root));
      const value = cutSteps(form, { held, json, places, inner: 2 * shape.size }, steps, false);
      if (value !== undefined) return value;
    }
    const text = this.text(json);
    return text === undefined ? undefined : form.whole(text);
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
    steps.push({ name, key: node.written[at], place, node: child, metadata });
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

/** The form of a cut: a text, or an object. */
interface Form<V> {
  /** A value that stays as it is written. */
  whole(json: string): V;
  /** `undefined` if the text has to say what it is. */
  live(value: string | undefined): V | undefined;
  open(): V;
  /** The object with one more member. */
  with(object: V, name: string, key: string, value: V): V;
  close(object: V): V;
  array(elements: readonly V[]): V;
}

const TEXT: Form<string> = {
  whole: (json) => json,
  live: (value) => JSON.stringify(value),
  open: () => "{",
  with: (text, _name, key, value) => `${text}${text === "{" ? "" : ","}${key}:${value}`,
  close: (text) => `${text}}`,
  array: (elements) => `[${elements.join(",")}]`,
};

const VALUE: Form<unknown> = {
  whole(json) {
    const code = json.charCodeAt(0);
    if (code === QUOTE && !json.includes("\\")) return json.slice(1, -1);
    return code <= NINE && code !== QUOTE ? Number(json) : JSON.parse(json);
  },
  live: (value) => value,
  open: () => ({}),
  with: (object, name, _key, value) => {
    if (name !== "__proto__") (object as Record<string, unknown>)[name] = value;
    else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
    return object;
  },
  close: (object) => object,
  array: (elements) => elements,
};

const NINE = 0x39;

/** An object as text, with the places of its members, and from one of them on the keys of theirs. */
interface PlacedText {
  readonly held: HeldText;
  readonly json: string;
  readonly places: Places;
  readonly inner: number;
}

/** The members that stay of an object, or of its metadata, whose members have no keys with places. */
function cutSteps<V>(
  form: Form<V>,
  of: PlacedText,
  steps: readonly Step[],
  isMetadata: boolean,
): V | undefined {
  const { held, json, places, inner } = of;
  let object = form.open();
  for (const { name, key, place, node, metadata } of steps) {
    let value: V | undefined;
    if (metadata !== undefined) value = cutSteps(form, of, metadata, true);
    else if (place < 0) value = form.live(held[name as keyof LiveFields]);
    else {
      const start = placeAt(places, 2 * place);
      const end = placeAt(places, 2 * place + 1);
      const hasPlaces = !isMetadata && places.length > inner && node.names.length > 0 &&
        json.charCodeAt(start) === OPEN_BRACE;
      value = hasPlaces
        ? cutMembers(form, of, { start, end, node })
        : cutPart(form, json.slice(start, end), node);
    }
    if (value === undefined) return undefined;
    object = form.with(object, name, key, value);
  }
  return form.close(object);
}

/** The part that stays of a member that is an object, the keys of which have places. */
function cutMembers<V>(
  form: Form<V>,
  { json, places, inner }: PlacedText,
  { start, end, node }: { readonly start: number; readonly end: number; readonly node: CutNode },
): V | undefined {
  const { names, written, nodes } = node;
  let object = form.open();
  for (let at = inner; at < places.length; at++) {
    const key = placeAt(places, at);
    if (key < start) continue;
    if (key > end) break;
    const first = json.charCodeAt(key + 1);
    for (let i = 0; i < written.length; i++) {
      if (written[i].charCodeAt(1) !== first || !json.startsWith(written[i], key)) continue;
      const next = at + 1 < places.length ? placeAt(places, at + 1) : end;
      // Up to the comma before the next key, or to the brace of the end.
      const close = next < end ? json.lastIndexOf(",", next) : end - 1;
      const colon = afterSpace(json, key + written[i].length);
      const part = json.slice(afterSpace(json, colon + 1), beforeSpace(json, close));
      const value = cutPart(form, part, nodes[i]);
      if (value === undefined) return undefined;
      object = form.with(object, names[i], written[i], value);
    }
  }
  return form.close(object);
}

/** The beginning of the white space that ends here. */
function beforeSpace(json: string, end: number): number {
  let i = end;
  while (json.charCodeAt(i - 1) <= SPACE) i--;
  return i;
}

/** The part of one value's text that stays. */
function cutPart<V>(form: Form<V>, json: string, node: CutNode): V | undefined {
  return isWhole(node) ? form.whole(json) : new Cutter(form, json, node).value(0, node);
}

/** Makes what stays of one text. */
class Cutter<V> {
  readonly #form: Form<V>;
  readonly #json: string;
  readonly #hasEscapes: boolean;
  /** The node of the whole text, of which it reads no more than can stay: the text is known to be JSON. */
  readonly #part: CutNode | undefined;
  /** The end of the last value; -1 if it is no JSON. */
  #end = -1;

  constructor(form: Form<V>, json: string, part?: CutNode) {
    this.#form = form;
    this.#json = json;
    this.#part = part;
    this.#hasEscapes = json.includes("\\");
  }

  /** The part that stays of the value that begins here; `undefined` if it is no JSON. */
  value(start: number, node: CutNode): V | undefined {
    const code = this.#json.charCodeAt(start);
    if (code === OPEN_BRACE && node.names.length > 0) return this.#members(start, node);
    if (code === OPEN_BRACKET && node.each !== undefined) return this.#elements(start, node.each);
    const end = this.#end = afterTextValue(this.#json, start);
    return end < 0 ? undefined : this.#form.whole(this.#json.slice(start, end));
  }

  #members(open: number, node: CutNode): V | undefined {
    const json = this.#json;
    const form = this.#form;
    let object = form.open();
    let missing = 0;
    if (node === this.#part) {
      for (const name of node.written) if (this.#hasEscapes || json.includes(name)) missing++;
      if (missing === 0) {
        this.#end = json.length;
        return form.close(object);
      }
    }
    let i = afterSpace(json, open + 1);
    if (json.charCodeAt(i) !== CLOSE_BRACE) {
      for (;;) {
        const key = i;
        const keyEnd = json.charCodeAt(key) === QUOTE ? closingQuote(json, key) + 1 : 0;
        if (keyEnd === 0) return undefined;
        const found = this.#fieldAt(key, keyEnd, node);
        i = afterSpace(json, keyEnd);
        if (json.charCodeAt(i) !== COLON) return undefined;
        const start = afterSpace(json, i + 1);
        if (found < 0) {
          i = afterTextValue(json, start);
          if (i < 0) return undefined;
        } else {
          const value = this.value(start, node.nodes[found]);
          if (value === undefined) return undefined;
          const written = this.#hasEscapes ? json.slice(key, keyEnd) : node.written[found];
          object = form.with(object, node.names[found], written, value);
          i = this.#end;
          if (--missing === 0 && !this.#mayHave(node, i)) break;
        }
        i = afterSpace(json, i);
        if (json.charCodeAt(i) !== COMMA) break;
        i = afterSpace(json, i + 1);
      }
      if (json.charCodeAt(i) !== CLOSE_BRACE && missing !== 0) return undefined;
    }
    this.#end = i + 1;
    return form.close(object);
  }

  /** Whether one of the fields may come from here on: the last value of a repeated key counts. */
  #mayHave({ written }: CutNode, from: number): boolean {
    if (this.#hasEscapes) return true;
    return written.some((name) => this.#json.indexOf(name, from) >= 0);
  }

  /** The index of the field with this key; -1 if there is none. */
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

  #elements(open: number, each: CutNode): V | undefined {
    const json = this.#json;
    const elements: V[] = [];
    let i = afterSpace(json, open + 1);
    if (json.charCodeAt(i) !== CLOSE_BRACKET) {
      for (;;) {
        const element = this.value(i, each);
        if (element === undefined) return undefined;
        elements.push(element);
        i = afterSpace(json, this.#end);
        if (json.charCodeAt(i) !== COMMA) break;
        i = afterSpace(json, i + 1);
      }
      if (json.charCodeAt(i) !== CLOSE_BRACKET) return undefined;
    }
    this.#end = i + 1;
    return this.#form.array(elements);
  }
}
