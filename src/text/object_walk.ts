/**
 * One walk over an object as JSON text finds its type, its metadata, the fields of indices, and the cuts.
 * @module
 */

import { decodeUtf8, encodeUtf8 } from "../util/bytes.ts";
import {
  afterPlainString,
  afterString,
  afterStrings,
  afterValue,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isAt,
  KnownShapes,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  space,
} from "./json_walk.ts";
import { type FieldNode, newFieldNode } from "./field_tree.ts";
import type { Level } from "./object_shape.ts";

/** How deep objects are that are walked; deeper than those of any API. */
const MAX_DEPTH = 1000;

/** The groups of members by their names, and the length up to which their values are remembered. */
const NAMES = 32;
const MAX_SHAPE = 4096;

/** The events of a watch that have an object. */
export type ObjectEventType = "ADDED" | "MODIFIED" | "DELETED";

/** A part of the text: where it begins, and where it ends; it begins at 0 if it is not there. */
export interface Span {
  start: number;
  end: number;
}

/** Notes where a part is; returns its end. */
function note(span: Span, start: number, end: number): number {
  span.start = start;
  return span.end = end;
}

/** The walked part: the object, its metadata, its labels or annotations, a member, or what is inside one. */
type Part = "object" | "metadata" | "strings" | "member" | "other";

/**
 * Where the parts of the object are that was walked last. Strings include their quotes.
 *
 * An API server's objects have no key of the first two levels twice, or with escapes, nor twice one that
 * leads to a field of an index, and are not that deep: such an object is left to `JSON.parse`, so that there
 * is one meaning of such texts.
 */
export class ObjectWalk {
  /** The type of a watch's line, and where its object begins. */
  eventType: ObjectEventType = "ADDED";
  objectStart = 0;
  readonly kind: Span = { start: 0, end: 0 };
  readonly apiVersion: Span = { start: 0, end: 0 };
  readonly metadata: Span = { start: 0, end: 0 };
  /**
   * Whether the metadata is as usual: name, namespace, uid and resourceVersion are strings without escapes,
   * labels and annotations objects of strings, times strings or null. Then it need not be parsed.
   */
  isUsual = false;
  readonly name: Span = { start: 0, end: 0 };
  readonly namespace: Span = { start: 0, end: 0 };
  readonly uid: Span = { start: 0, end: 0 };
  readonly version: Span = { start: 0, end: 0 };
  readonly labels: Span = { start: 0, end: 0 };
  /** The members of the metadata that are plain strings, by the lengths of their names. */
  readonly #strings: readonly ({ readonly key: Uint8Array; readonly span: Span } | undefined)[];
  /** How many values of fields were found; each is between `starts` and `ends`, for the paths of its node. */
  found = 0;
  readonly nodes: FieldNode[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** The cuts in their order: `cutCount` numbers, the first byte of a cut and the byte behind it by turns. */
  readonly cuts: number[] = [];
  cutCount = 0;
  /** The members of the object, and those of its metadata. */
  readonly noted: Record<Level, { readonly numbers: number[]; length: number }> = {
    object: { numbers: [], length: 0 },
    metadata: { numbers: [], length: 0 },
  };
  /** Where the keys inside members begin, such as those of `spec`; none if a key has escapes. */
  readonly inner: number[] = [];
  innerCount = 0;
  #hasPlainKeys = true;
  /** The length of all cuts so far. */
  #cutLength = 0;
  /** Shapes that the objects of a cluster share: of their managedFields, and of what is cut out. */
  readonly #shapes = new KnownShapes();
  /** Shapes of other members, by a hash of their names. */
  readonly #shapesByName: readonly KnownShapes[] = Array.from(
    { length: NAMES },
    () => new KnownShapes(MAX_SHAPE),
  );
  #maxDepth = MAX_DEPTH;

  constructor() {
    const strings = [];
    strings[UID.length] = { key: UID, span: this.uid };
    strings[NAME.length] = { key: NAME, span: this.name };
    strings[NAMESPACE.length] = { key: NAMESPACE, span: this.namespace };
    strings[RESOURCE_VERSION.length] = { key: RESOURCE_VERSION, span: this.version };
    this.#strings = strings;
  }

  /**
   * The newline of the line of a watch that begins here, if it is an event of an object as API servers write
   * them; otherwise -1.
   */
  event(bytes: Uint8Array, start: number, root: FieldNode): number {
    // The letter after `{"type":"`.
    const event = EVENTS.get(bytes[start + 9]);
    if (event === undefined || !isAt(bytes, start, event.beginning)) return -1;
    this.eventType = event.type;
    this.objectStart = start + event.beginning.length;
    const end = this.object(bytes, this.objectStart, root);
    return end > 0 && bytes[end] === CLOSE_BRACE && bytes[end + 1] === NEWLINE ? end + 1 : -1;
  }

  /** The end of the object that begins here; -1 if it is none, or one that is left to the parser. */
  object(bytes: Uint8Array, start: number, root: FieldNode): number {
    this.kind.start =
      this.apiVersion.start =
      this.metadata.start =
      this.found =
      this.cutCount =
        0;
    this.isUsual = false;
    this.noted.object.length = this.noted.metadata.length = this.innerCount = 0;
    this.#hasPlainKeys = true;
    this.#cutLength = 0;
    this.#maxDepth = MAX_DEPTH;
    const end = bytes[start] === OPEN_BRACE ? this.#members(bytes, start, root, "object") : -1;
    if (!this.#hasPlainKeys) this.innerCount = 0;
    return end;
  }

  /** The end of the JSON value that begins here, of which nothing but the cuts is noted; -1 if it is none. */
  cut(bytes: Uint8Array, start: number, root: FieldNode): number {
    this.found = this.cutCount = 0;
    this.#maxDepth = Infinity;
    return this.#value(bytes, start, root);
  }

  #members(bytes: Uint8Array, start: number, node: FieldNode, part: Part): number {
    if (part === "metadata") this.#beginMetadata();
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    let seen = 0;
    /** Where the current cut begins, and where the last member that stays ends; -1 if there is none. */
    let cutStart = -1;
    let keptEnd = -1;
    for (;;) {
      const key = i;
      if (bytes[key] !== QUOTE) return -1;
      i = afterPlainString(bytes, key + 1);
      let found: number;
      if (i >= 0) {
        found = keyAt(node.keys, bytes, key + 1, i - key - 2);
      } else {
        if (part === "object" || part === "metadata" || (i = afterString(bytes, key + 1)) < 0) return -1;
        if (part === "member") this.#hasPlainKeys = false;
        found = node.names.indexOf(JSON.parse(decodeUtf8(bytes.subarray(key, i))));
      }
      const length = i - key - 2;
      i = space(bytes, i);
      if (bytes[i] !== COLON) return -1;
      const value = space(bytes, i + 1);
      let child: FieldNode | undefined;
      if (found >= 0) {
        child = node.nodes[found];
        const bit = 1 << found; // bits repeat: one of more than 32 may be taken for another
        if ((seen & bit) !== 0 && this.#maxDepth === MAX_DEPTH) return -1;
        seen |= bit;
      }
      if (child === undefined ? node.cutsOthers : child.isCut) {
        i = this.#afterCut(bytes, value);
        if (cutStart < 0) cutStart = key;
      } else {
        if (cutStart >= 0) this.#addCut(cutStart, key);
        cutStart = -1;
        const noted = part === "object" || part === "metadata" ? this.noted[part] : undefined;
        const place = noted === undefined ? 0 : noted.length;
        if (noted !== undefined) {
          const { numbers } = noted;
          numbers[place] = key + 1;
          numbers[place + 1] = length;
          numbers[place + 2] = value - this.#cutLength;
          numbers[place + 3] = 0;
          noted.length = place + 4;
        }
        if (part === "member") this.inner[this.innerCount++] = key - this.#cutLength;
        i = part === "object"
          ? this.#objectMember(bytes, key + 1, length, value, child)
          : part === "metadata"
          ? this.#metadataMember(bytes, key + 1, length, value, child)
          : child === undefined
          ? this.#afterLike(bytes, key + 1, length, value)
          : this.#value(bytes, value, child);
        if (noted !== undefined) noted.numbers[place + 3] = i - this.#cutLength;
        if (part === "strings" && bytes[value] !== QUOTE) this.isUsual = false;
        keptEnd = i;
      }
      if (i < 0) return -1;
      i = space(bytes, i);
      const code = bytes[i];
      if (code === CLOSE_BRACE) {
        // The object ends with a cut: the comma before it goes, too.
        if (cutStart >= 0) this.#addCut(keptEnd < 0 ? cutStart : keptEnd, i);
        return i + 1;
      }
      if (code !== COMMA) return -1;
      i = space(bytes, i + 1);
    }
  }

  /** The end of a member's value in which nothing is noted; mostly it is like that of other objects. */
  #afterLike(bytes: Uint8Array, key: number, length: number, value: number): number {
    const isNested = bytes[value] === OPEN_BRACE || bytes[value] === OPEN_BRACKET;
    if (!isNested || this.#maxDepth !== MAX_DEPTH) return afterValue(bytes, value, this.#maxDepth);
    const name = (bytes[key] + bytes[key + (length >> 1)] ^ length) % NAMES;
    return this.#shapesByName[name].afterValue(bytes, value, MAX_DEPTH);
  }

  #afterCut(bytes: Uint8Array, value: number): number {
    const isNested = bytes[value] === OPEN_BRACE || bytes[value] === OPEN_BRACKET;
    return isNested
      ? this.#shapes.afterValue(bytes, value, this.#maxDepth)
      : afterValue(bytes, value, this.#maxDepth);
  }

  #addCut(start: number, end: number): void {
    this.cuts[this.cutCount++] = start;
    this.cuts[this.cutCount++] = end;
    this.#cutLength += end - start;
  }

  /** Notes a member of the whole object; returns the end of its value. */
  #objectMember(
    bytes: Uint8Array,
    key: number,
    length: number,
    value: number,
    child: FieldNode | undefined,
  ): number {
    if (length === 8 && isAt(bytes, key, METADATA)) {
      if (this.metadata.start > 0) return -1;
      const end = bytes[value] === OPEN_BRACE
        ? this.#members(bytes, value, child ?? NOTHING, "metadata")
        : this.#value(bytes, value, child);
      return note(this.metadata, value, end);
    }
    const end = bytes[value] === OPEN_BRACE
      ? this.#members(
        bytes,
        value,
        child === undefined || child.keys.length === 0 ? NOTHING : child,
        "member",
      )
      : this.#value(bytes, value, child);
    if (length === 4 && isAt(bytes, key, KIND)) {
      if (this.kind.start > 0) return -1;
      note(this.kind, value, end);
    } else if (length === 10 && isAt(bytes, key, API_VERSION)) {
      if (this.apiVersion.start > 0) return -1;
      note(this.apiVersion, value, end);
    }
    return end;
  }

  #beginMetadata(): void {
    this.isUsual = true;
    this.name.start =
      this.namespace.start =
      this.uid.start =
      this.version.start =
      this.labels.start =
        0;
  }

  /** Notes a member of the metadata; returns the end of its value. */
  #metadataMember(
    bytes: Uint8Array,
    key: number,
    length: number,
    value: number,
    child: FieldNode | undefined,
  ): number {
    let end = -1;
    const string = this.#strings[length];
    if (string !== undefined) {
      if (isAt(bytes, key, string.key)) end = note(string.span, value, this.#plain(bytes, value));
    } else if (length === 6) {
      if (isAt(bytes, key, LABELS)) end = note(this.labels, value, this.#texts(bytes, value, child));
      if (end >= 0) return end;
    } else if (length === 11) {
      if (isAt(bytes, key, ANNOTATIONS)) end = this.#texts(bytes, value, child);
      if (end >= 0) return end;
    } else if (length === 13) {
      if (child === undefined && isAt(bytes, key, MANAGED_FIELDS)) {
        return this.#shapes.afterValue(bytes, value, MAX_DEPTH);
      }
    } else if (length === 17) {
      const isTime = bytes[value] === QUOTE || bytes[value] === 0x6e; // null
      if (!isTime && (isAt(bytes, key, CREATION_TIMESTAMP) || isAt(bytes, key, DELETION_TIMESTAMP))) {
        this.isUsual = false;
      }
    }
    return end < 0 || child !== undefined ? this.#value(bytes, value, child) : end;
  }

  /** The end of a string without escapes; of several under one key, the last one counts. */
  #plain(bytes: Uint8Array, value: number): number {
    const end = bytes[value] === QUOTE ? afterPlainString(bytes, value + 1) : -1;
    if (end < 0) this.isUsual = false;
    return end;
  }

  /** The end of an object of strings; of several under one key, the last one counts. */
  #texts(bytes: Uint8Array, value: number, child: FieldNode | undefined): number {
    const isObject = bytes[value] === OPEN_BRACE;
    if (isObject && child !== undefined) return this.#members(bytes, value, child, "strings");
    const end = isObject ? afterStrings(bytes, value) : -1;
    if (end < 0) this.isUsual = false;
    return end;
  }

  /** The end of a value in which there may be fields of indices, and cuts. */
  #value(bytes: Uint8Array, start: number, node: FieldNode | undefined): number {
    if (node === undefined) return afterValue(bytes, start, this.#maxDepth);
    const code = bytes[start];
    if (code === OPEN_BRACE && node.keys.length > 0) return this.#members(bytes, start, node, "other");
    if (code === OPEN_BRACKET && node.each !== undefined) return this.#elements(bytes, start, node.each);
    const end = afterValue(bytes, start, this.#maxDepth);
    if (node.places.length > 0 && code !== OPEN_BRACE && code !== OPEN_BRACKET) {
      this.nodes[this.found] = node;
      this.starts[this.found] = start;
      this.ends[this.found++] = end;
    }
    return end;
  }

  #elements(bytes: Uint8Array, start: number, each: FieldNode): number {
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    for (;;) {
      i = this.#value(bytes, i, each);
      if (i < 0) return -1;
      i = space(bytes, i);
      const code = bytes[i++];
      if (code === CLOSE_BRACKET) return i;
      if (code !== COMMA) return -1;
      i = space(bytes, i);
    }
  }
}

/** The beginnings of a watch's lines as API servers write them, by the first letter of the type. */
const EVENTS: ReadonlyMap<
  number,
  { readonly type: ObjectEventType; readonly beginning: Uint8Array }
> = new Map(
  (["MODIFIED", "ADDED", "DELETED"] as const).map((type) => [
    type.charCodeAt(0),
    { type, beginning: encodeUtf8(`{"type":"${type}","object":`) },
  ]),
);

const NEWLINE = 0x0a;
const NOTHING: FieldNode = newFieldNode();

const [
  KIND,
  API_VERSION,
  METADATA,
  MANAGED_FIELDS,
  UID,
  NAME,
  LABELS,
  NAMESPACE,
  ANNOTATIONS,
  RESOURCE_VERSION,
  CREATION_TIMESTAMP,
  DELETION_TIMESTAMP,
] = (
  "kind apiVersion metadata managedFields uid name labels namespace annotations resourceVersion " +
  "creationTimestamp deletionTimestamp"
).split(" ").map(encodeUtf8);

/** The index of the key at `start`; -1 if there is none. */
function keyAt(keys: readonly Uint8Array[], bytes: Uint8Array, start: number, length: number): number {
  for (let i = 0; i < keys.length; i++) {
    if (keys[i].length === length && isAt(bytes, start, keys[i])) return i;
  }
  return -1;
}
