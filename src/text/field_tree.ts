/** Fields of objects: which are read, and which are cut out. */

import { encodeUtf8 } from "../util/bytes.ts";
import { isRecord } from "../util/json.ts";
import { EACH, type FieldPathSegment, parseFieldPath } from "./field_path.ts";

/** The node of one value, with all that the paths say about it. */
export interface FieldNode {
  /** Fields by name, if the value is an object; the names as UTF-8 besides. */
  readonly names: string[];
  readonly keys: Uint8Array[];
  readonly nodes: FieldNode[];
  /** Every element, if it is an array. */
  each: FieldNode | undefined;
  /** The places of the indexed paths that end here. */
  readonly places: number[];
  /** Whether the value is cut out of its object. */
  isCut: boolean;
  /** Whether the fields without a node are cut out. */
  cutsOthers: boolean;
}

/** The values of fields: at the place of each path, each value once. */
export type FieldTexts = readonly (readonly string[])[];

/** The fields that are read out of every text, in one walk over it. */
export class TextFields {
  readonly #paths: (readonly FieldPathSegment[])[] = [];
  /** The places of those of which strings alone count. */
  readonly #texts = new Set<number>();
  /** The places of the fields of the type, which a reader may write into an object. */
  readonly placesOfType: { readonly kind: number[]; readonly apiVersion: number[] } = {
    kind: [],
    apiVersion: [],
  };

  /** How many paths were ever added. */
  size = 0;
  /** Rises with each change. */
  version = 0;

  /** Adds a path; returns its place. */
  add(path: string): number {
    return this.#add(parseFieldPath(path, { mayEndInElements: true }));
  }

  /** Adds a path of names, at which nothing but a string is a value; returns its place. */
  addText(names: readonly string[]): number {
    const place = this.#add(names);
    this.#texts.add(place);
    return place;
  }

  #add(segments: readonly FieldPathSegment[]): number {
    this.version++;
    const place = this.size++;
    this.#paths.push(segments);
    const [field] = segments;
    if (segments.length === 1 && (field === "kind" || field === "apiVersion")) {
      this.placesOfType[field].push(place);
    }
    return place;
  }

  /** Reads the field at a place no more: there are no values from now on. */
  remove(place: number): void {
    this.version++;
    this.#paths[place] = [];
    for (const places of Object.values(this.placesOfType)) {
      if (places.includes(place)) places.splice(places.indexOf(place), 1);
    }
  }

  /** Whether nothing but a string is a value at a place. */
  isText(place: number): boolean {
    return this.#texts.has(place);
  }

  /** The values of an object that was parsed. */
  valuesOf(object: unknown): FieldTexts {
    return this.#paths.map((segments, place) => fieldValues(object, segments, this.#texts.has(place)));
  }

  /** Adds the paths to a tree, as far as their fields are not cut out. */
  addTo(root: FieldNode): void {
    this.#paths.forEach((segments, place) => {
      if (segments.length === 0) return;
      let node: FieldNode | undefined = root;
      for (const segment of segments) node = node && readNode(node, segment);
      node?.places.push(place);
    });
  }
}

/** The tree of the fields that are read and of those that are cut out; fields may be added at any time. */
export class FieldTree {
  readonly #fields: TextFields;
  readonly #projection: Projection | undefined;
  root: FieldNode = newFieldNode();
  /** The version of the fields that are in it: see {@linkcode FieldTree.update}. */
  version = -1;

  constructor(fields: TextFields, projection?: Projection) {
    this.#fields = fields;
    this.#projection = projection;
  }

  /** Whether nothing is cut out. */
  get isWhole(): boolean {
    return this.#projection === undefined;
  }

  /** Makes the tree of the fields that there are now: before it is read, where they have changed. */
  update(): void {
    this.root = newFieldNode();
    this.#projection?.addTo(this.root);
    this.#fields.addTo(this.root);
    this.version = this.#fields.version;
  }
}

/** The node of a field that is to be read; `undefined` if it is cut out. */
function readNode(node: FieldNode, segment: FieldPathSegment): FieldNode | undefined {
  if (segment === EACH) return node.each ??= newFieldNode();
  const child = childOf(node, segment);
  if (child === undefined) return node.cutsOthers ? undefined : setChild(node, segment, newFieldNode());
  return child.isCut ? undefined : child;
}

/**
 * The fields of the objects that are left out. Paths are written as `spec.volumes`, `spec.containers[].env`
 * (of every element), `metadata.annotations["example.com/notes"]` (a key that is no name).
 *
 * If anything is left out, so is kubectl's annotation of the last applied configuration, which has the whole
 * object in it.
 */
export interface ProjectionOptions {
  /** The only fields that are kept, besides `apiVersion`, `kind` and `metadata`; everything by default. */
  readonly keep?: readonly string[];
  /** The fields that are left out, of what is kept. */
  readonly drop?: readonly string[];
}

/**
 * The fields that are cut out of objects before they are parsed, by {@linkcode decodeList} and {@linkcode
 * decodeWatch}.
 *
 * @example
 * ```ts
 * import { decodeWatch, newEventValidator, Projection } from "@listwatch/cache/client";
 * const projection = new Projection({ drop: ["metadata.managedFields"] });
 * const frame = '{"type":"ADDED","object":{"metadata":{"name":"web-1","managedFields":[]}}}';
 * const validate = newEventValidator();
 * for await (const [event] of decodeWatch(new Response(frame).body!, { validate, projection })) {
 *   console.log(event); // { type: "ADDED", object: { metadata: { name: "web-1" } } }
 * }
 * ```
 */
export class Projection {
  readonly #keep: readonly FieldPathSegment[][] | undefined;
  readonly #drop: readonly FieldPathSegment[][];

  /**
   * Takes the paths in.
   * @throws {TypeError} A path cannot be read, or is of what no object can be without.
   */
  constructor({ keep, drop = [] }: ProjectionOptions) {
    this.#keep = keep && [...TYPE_AND_METADATA, ...keep].map((path) => parseFieldPath(path));
    const isWhole = keep === undefined && drop.length === 0;
    this.#drop = (isWhole ? [] : [...drop, LAST_APPLIED]).map(parseDropped);
  }

  /** Adds the paths to an empty tree. */
  addTo(root: FieldNode): void {
    const whole = new Set<FieldNode>();
    for (const path of this.#keep ?? []) keepPath(root, path, whole);
    for (const path of this.#drop) dropPath(root, path);
  }
}

/** kubectl's annotation of the object as it was last applied. */
const LAST_APPLIED = 'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]';
const TYPE_AND_METADATA = ["apiVersion", "kind", "metadata"];

/** The fields that every object needs: a cache distinguishes objects and versions by them. */
const NEEDED = [
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
];

function parseDropped(path: string): FieldPathSegment[] {
  for (const needed of NEEDED) {
    if (needed !== path && !needed.startsWith(`${path}.`)) continue;
    throw new TypeError(
      `Cannot drop ${JSON.stringify(path)}: a cache needs ${needed} to distinguish objects`,
    );
  }
  return parseFieldPath(path);
}

/** @param whole The nodes of what stays whole. */
function keepPath(root: FieldNode, path: readonly FieldPathSegment[], whole: Set<FieldNode>): void {
  let node = root;
  path.forEach((segment, i) => {
    if (whole.has(node)) return; // a shorter path keeps it already
    if (segment === EACH) {
      node = node.each ??= newFieldNode();
      return;
    }
    node.cutsOthers = true;
    const isLast = i === path.length - 1;
    node = isLast ? setChild(node, segment, newFieldNode()) : childOrNew(node, segment);
    if (isLast) whole.add(node);
  });
}

function dropPath(root: FieldNode, path: readonly FieldPathSegment[]): void {
  let node = root;
  for (const segment of path) {
    if (segment === EACH) {
      node = node.each ??= newFieldNode();
      continue;
    }
    if (node.isCut || node.cutsOthers && childOf(node, segment) === undefined) return; // it is cut out already
    node = childOrNew(node, segment);
  }
  node.isCut = true;
}

/** Makes a node that says nothing. */
export function newFieldNode(): FieldNode {
  return { names: [], keys: [], nodes: [], each: undefined, places: [], isCut: false, cutsOthers: false };
}

function childOf(node: FieldNode, name: string): FieldNode | undefined {
  return node.nodes[node.names.indexOf(name)];
}

function childOrNew(node: FieldNode, name: string): FieldNode {
  return childOf(node, name) ?? setChild(node, name, newFieldNode());
}

function setChild(node: FieldNode, name: string, child: FieldNode): FieldNode {
  let at = node.names.indexOf(name);
  if (at < 0) {
    at = node.names.push(name) - 1;
    // UTF-8 cannot carry such a name: a text has it only as an escape.
    node.keys.push(name.isWellFormed() ? encodeUtf8(name) : NO_KEY);
  }
  return node.nodes[at] = child;
}

const NO_KEY = Uint8Array.of(0);

/** The values at a path, each once. */
export function fieldValues(
  object: unknown,
  segments: readonly FieldPathSegment[],
  isText = false,
): readonly string[] {
  let value = object;
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i];
    if (segment === EACH) return elementValues(value, segments, i + 1);
    if (!isRecord(value) || !Object.hasOwn(value, segment)) return NO_VALUES;
    value = value[segment];
  }
  const text = isText && typeof value !== "string" ? undefined : fieldText(value);
  return text === undefined ? NO_VALUES : [text];
}

/** A field's value as a text; `undefined` if it has none. */
export function fieldText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

function elementValues(
  array: unknown,
  segments: readonly FieldPathSegment[],
  start: number,
): readonly string[] {
  if (!Array.isArray(array)) return NO_VALUES;
  const rest = segments.slice(start);
  if (array.length === 1) return fieldValues(array[0], rest);
  const values = new Set<string>();
  for (const element of array) for (const value of fieldValues(element, rest)) values.add(value);
  return [...values];
}

/** The values of a field that an object does not have. */
export const NO_VALUES: readonly string[] = [];
