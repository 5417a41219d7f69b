/**
 * The members of objects, by their names and order: found once for all objects that have the same, so that an
 * object which stays text needs to note only where its values are.
 * @module
 */

import { decodeUtf8, encodeUtf8 } from "../util/bytes.ts";

/** The object itself, or its metadata: the two levels whose members are noted. */
export type Level = "object" | "metadata";

/** Members whose values are held beside the text, or have members that are noted themselves. */
const UNPLACED: Readonly<Record<Level, ReadonlySet<string>>> = {
  object: new Set(["kind", "apiVersion", "metadata"]),
  metadata: new Set(["namespace", "uid", "resourceVersion"]),
};

/** How many sequences of names, and combinations of two, one reader remembers; a cluster has far fewer. */
const MAX_KNOWN = 2048;
const MAX_NAME = 256;
/** The name before the first one. */
const NO_NAME: Uint8Array = new Uint8Array(0);

/** How much one reader remembers. */
interface Known {
  nodes: number;
  shapes: number;
}

/** The names of the members from the first to this one, in one level of an object. */
class MemberNode {
  readonly name: string;
  /** Whether the place of the value is noted. */
  readonly isPlaced: boolean;
  readonly #level: Level;
  readonly #parent: MemberNode | undefined;
  readonly #key: Uint8Array;
  readonly #known: Known;
  readonly #children: MemberNode[] = [];
  #last: MemberNode | undefined;
  readonly #shapes = new Map<MemberNode, ObjectShape>();
  #typed: MemberNode | undefined;

  constructor(
    level: Level,
    known: Known,
    name: string,
    key: Uint8Array,
    parent: MemberNode | undefined,
  ) {
    this.#level = level;
    this.#known = known;
    this.name = name;
    this.#key = key;
    this.#parent = parent;
    this.isPlaced = !UNPLACED[level].has(name);
  }

  /**
   * The names with one more, which is at `start`, without escapes. `undefined` if such an object is to be
   * parsed whole: a name means more to JavaScript than to JSON, or too many are known. The last value of a
   * repeated name counts, as in a parser.
   */
  child(bytes: Uint8Array, start: number, length: number): MemberNode | undefined {
    if (this.#last !== undefined && this.#last.#isAt(bytes, start, length)) return this.#last;
    for (const child of this.#children) if (child.#isAt(bytes, start, length)) return this.#last = child;
    if (length > MAX_NAME) return undefined;
    return this.#last = this.#newChild(bytes.slice(start, start + length));
  }

  #isAt(bytes: Uint8Array, start: number, length: number): boolean {
    const key = this.#key;
    if (key.length !== length) return false;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== key[i]) return false;
    return true;
  }

  #newChild(key: Uint8Array): MemberNode | undefined {
    const name = decodeUtf8(key);
    // Objects have names that are numbers first, whatever the text's order is.
    if (name === "__proto__" || /^\d/.test(name)) return undefined;
    if (this.#known.nodes === MAX_KNOWN) return undefined;
    this.#known.nodes++;
    const child = new MemberNode(this.#level, this.#known, name, key, this);
    this.#children.push(child);
    return child;
  }

  /** The same sequence behind `kind` and `apiVersion`, which are written in front of a list's items. */
  typed(): MemberNode | undefined {
    if (this.#typed !== undefined) return this.#typed;
    let node: MemberNode | undefined = this.#root;
    for (const name of ["kind", "apiVersion", ...this.#names()]) {
      const key: Uint8Array = encodeUtf8(name);
      node = node?.child(key, 0, key.length);
    }
    return this.#typed = node;
  }

  get #root(): MemberNode {
    return this.#parent === undefined ? this : this.#parent.#root;
  }

  /** The names from the first to this one. */
  #names(): string[] {
    return this.#parent === undefined ? [] : [...this.#parent.#names(), this.name];
  }

  /**
   * The shape of an object with these members, whose metadata has those; `undefined` if too many are known.
   */
  shapeWith(metadata: MemberNode): ObjectShape | undefined {
    let shape = this.#shapes.get(metadata);
    if (shape === undefined && this.#known.shapes < MAX_KNOWN) {
      this.#known.shapes++;
      shape = new ObjectShape(this.#names(), metadata.#names());
      this.#shapes.set(metadata, shape);
    }
    return shape;
  }
}

/** A member of an object of some shape. */
export interface ShapeMember {
  readonly name: string;
  /** The place of the member's value among the shape's values; -1 for a value without one. */
  readonly place: number;
}

/** The shape of objects that have the same members in the same order, in their metadata as well. */
export class ObjectShape {
  readonly object: readonly ShapeMember[];
  readonly metadata: readonly ShapeMember[];
  /** How many values have a place. */
  readonly size: number;
  readonly #places: Readonly<Record<Level, ReadonlyMap<string, number>>>;

  constructor(object: readonly string[], metadata: readonly string[]) {
    let size = 0;
    const members = (level: Level, names: readonly string[]): ShapeMember[] =>
      names.map((name) => ({ name, place: UNPLACED[level].has(name) ? -1 : size++ }));
    const at = object.indexOf("metadata") + 1;
    const before = members("object", object.slice(0, at));
    this.metadata = members("metadata", metadata);
    this.object = [...before, ...members("object", object.slice(at))];
    this.size = size;
    const placesOf = (members: readonly ShapeMember[]) =>
      new Map(members.map(({ name, place }) => [name, place]));
    this.#places = {
      object: placesOf(this.object).set("metadata", size),
      metadata: placesOf(this.metadata),
    };
  }

  /**
   * The place of a member's value; the last one if the name is repeated, -1 if there is none. The metadata
   * itself comes behind all values.
   */
  placeOf(level: Level, name: string): number {
    return this.#places[level].get(name) ?? -1;
  }
}

/**
 * The places of an object's values in its text: start and end of each by turns, then the starts of the keys
 * inside these values, such as those of `spec` (none at all if a key is written with escapes). They are
 * characters of a string, which takes an eighth of an array's memory, if the text is short enough.
 */
export type Places = string | readonly number[];

/** The members of an object as text. */
export interface Members {
  readonly shape: ObjectShape;
  readonly places: Places;
}

/** Packs places in a text of some length. */
export function packedPlaces(places: readonly number[], length: number): Places {
  return length <= 0xffff ? String.fromCharCode.apply(null, places as number[]) : [...places];
}

/** One number of packed places. */
export function placeAt(places: Places, at: number): number {
  return typeof places === "string" ? places.charCodeAt(at) : places[at];
}

/** The members of one level of an object, as a walk has noted them. */
export interface NotedMembers {
  /**
   * Four numbers for each member: start and length of the name, start and end of the value once the cuts are
   * removed. Numbers from `length` on are left from an object before.
   */
  readonly numbers: readonly number[];
  readonly length: number;
}

/** The shapes that one reader has seen. */
export class Shapes {
  readonly #known: Known = { nodes: 0, shapes: 0 };
  readonly #object = new MemberNode("object", this.#known, "", NO_NAME, undefined);
  readonly #metadata = new MemberNode("metadata", this.#known, "", NO_NAME, undefined);
  /** The start and end of each value of the last object that has a place, in the order of the text. */
  readonly places: number[] = [];
  /** How many numbers are in `places`; those behind them are left from an object before. */
  placeCount = 0;

  /** The shape of an object; `undefined` if it is to be parsed whole. */
  shapeOf(
    bytes: Uint8Array,
    { object, metadata }: Readonly<Record<Level, NotedMembers>>,
    isTyped: boolean,
  ): ObjectShape | undefined {
    const { places } = this;
    let placed = 0;
    let inMetadata: MemberNode | undefined;
    let node: MemberNode | undefined = this.#object;
    for (let i = 0; i < object.length; i += 4) {
      node = node.child(bytes, object.numbers[i], object.numbers[i + 1]);
      if (node === undefined) return undefined;
      if (node.name === "metadata") {
        inMetadata = this.#metadata;
        for (let k = 0; k < metadata.length; k += 4) {
          inMetadata = inMetadata.child(bytes, metadata.numbers[k], metadata.numbers[k + 1]);
          if (inMetadata === undefined) return undefined;
          if (!inMetadata.isPlaced) continue;
          places[placed++] = metadata.numbers[k + 2];
          places[placed++] = metadata.numbers[k + 3];
        }
      } else if (node.isPlaced) {
        places[placed++] = object.numbers[i + 2];
        places[placed++] = object.numbers[i + 3];
      }
    }
    this.placeCount = placed;
    return inMetadata && (isTyped ? node.typed() : node)?.shapeWith(inMetadata);
  }
}
