/**
 * Which fields are read out of JSON texts, as a tree of their names.
 * @module
 */

import { EACH, type FieldPathSegment, parseFieldPath } from "./field_path.ts";

/** What the paths say about one value. */
export interface FieldNode {
  /** Fields by name, if the value is an object; the names as UTF-8 besides. */
  readonly names: string[];
  readonly keys: Uint8Array[];
  readonly nodes: FieldNode[];
  /** Every element, if it is an array. */
  each: FieldNode | undefined;
  /** The places of the paths that end here. */
  readonly places: number[];
}

/** The values of fields: at the place of each path, each value once. */
export type FieldTexts = readonly (readonly string[])[];

/** The fields that are read out of every text, in one walk over it. */
export class TextFields {
  readonly root: FieldNode = newNode();
  readonly #paths: FieldPathSegment[][] = [];

  /** How many paths there are. */
  get size(): number {
    return this.#paths.length;
  }

  /**
   * Adds a path; returns its place.
   *
   * @throws {TypeError} The path cannot be read.
   */
  add(path: string): number {
    const segments = parseFieldPath(path, { mayEndInElements: true });
    let node = this.root;
    for (const segment of segments) node = childOf(node, segment);
    const place = this.#paths.push(segments) - 1;
    node.places.push(place);
    return place;
  }

  /** The values of an object that was parsed. */
  valuesOf(object: unknown): FieldTexts {
    return this.#paths.map((segments) => fieldValues(object, segments));
  }
}

const encoder = new TextEncoder();
const NO_KEY = Uint8Array.of(0);

function newNode(): FieldNode {
  return { names: [], keys: [], nodes: [], each: undefined, places: [] };
}

function childOf(node: FieldNode, segment: FieldPathSegment): FieldNode {
  if (segment === EACH) return node.each ??= newNode();
  const at = node.names.indexOf(segment);
  if (at >= 0) return node.nodes[at];
  node.names.push(segment);
  // What UTF-8 cannot carry stands in no text but as an escape.
  node.keys.push(segment.isWellFormed() ? encoder.encode(segment) : NO_KEY);
  return node.nodes[node.nodes.push(newNode()) - 1];
}

/** The values at a path, each once. */
export function fieldValues(object: unknown, segments: readonly FieldPathSegment[]): readonly string[] {
  let value = object;
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i];
    if (segment === EACH) return elementValues(value, segments, i + 1);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return NO_VALUES;
    if (!Object.hasOwn(value, segment)) return NO_VALUES;
    value = (value as Record<string, unknown>)[segment];
  }
  const text = fieldText(value);
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

export const NO_VALUES: readonly string[] = [];
