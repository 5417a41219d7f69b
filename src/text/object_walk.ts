/**
 * One walk over an object as JSON text: where its type, its metadata and the fields of indices are.
 * @module
 */

import { CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json_text.ts";
import { afterPlainString, afterStrings, afterValue, isAt, space } from "./json_walk.ts";
import { KnownShapes } from "./known_shapes.ts";
import type { FieldNode } from "./text_fields.ts";

/** How deep objects are that are walked; deeper than those of any API. */
const MAX_DEPTH = 1000;

/**
 * Where the parts are of the object that was walked last; 0 for what it has not. Strings are with their quotes.
 *
 * An API server's objects have no key of the first two levels twice, or with escapes, nor one that leads to a field of an
 * index, and are not that deep: such an object is left to `JSON.parse`, so that there is one meaning of such texts.
 */
export class ObjectWalk {
  kindStart = 0;
  kindEnd = 0;
  apiVersionStart = 0;
  apiVersionEnd = 0;
  metadataStart = 0;
  metadataEnd = 0;
  /** What to leave out of the metadata: managedFields, and a comma. */
  cutStart = 0;
  cutEnd = 0;
  /**
   * Whether the metadata is as usual: name, namespace, uid and resourceVersion are strings without escapes, labels and
   * annotations objects of strings, times strings or null. Then it need not be parsed.
   */
  isUsual = false;
  nameStart = 0;
  nameEnd = 0;
  namespaceStart = 0;
  namespaceEnd = 0;
  uidStart = 0;
  uidEnd = 0;
  versionStart = 0;
  versionEnd = 0;
  labelsStart = 0;
  labelsEnd = 0;
  /** How many values of fields were found; each is between `starts` and `ends`, for the paths of its node. */
  found = 0;
  readonly nodes: FieldNode[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly #managedFields = new KnownShapes();
  #annotationsStart = 0;
  /** Times that were seen: of creation, of deletion. */
  #times = 0;

  /** The end of the object that begins here; -1 if it is none, or one that is left to the parser. */
  object(bytes: Uint8Array, start: number, fields: FieldNode): number {
    this.kindStart =
      this.apiVersionStart =
      this.metadataStart =
      this.cutStart =
      this.found =
        0;
    this.isUsual = false;
    if (bytes[start] !== OPEN_BRACE) return -1;
    let seen = 0;
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
      const found = keyAt(fields.keys, bytes, key + 1, length);
      if (found >= 0) {
        const bit = 1 << found; // bits repeat: one of more than 32 may be taken for another
        if ((seen & bit) !== 0) return -1;
        seen |= bit;
      }
      if (length === 8 && isAt(bytes, key + 1, METADATA)) {
        if (this.metadataStart > 0) return -1;
        this.metadataStart = value;
        if (bytes[value] === OPEN_BRACE) {
          i = this.#metadata(bytes, value, found < 0 ? NO_FIELDS : fields.nodes[found]);
        } else {i = found < 0
            ? afterValue(bytes, value, MAX_DEPTH)
            : this.#value(bytes, value, fields.nodes[found]);}
        this.metadataEnd = i;
      } else {
        i = found < 0 ? afterValue(bytes, value, MAX_DEPTH) : this.#value(bytes, value, fields.nodes[found]);
        if (length === 4 && isAt(bytes, key + 1, KIND)) {
          if (this.kindStart > 0) return -1;
          this.kindStart = value;
          this.kindEnd = i;
        } else if (length === 10 && isAt(bytes, key + 1, API_VERSION)) {
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

  #metadata(bytes: Uint8Array, start: number, fields: FieldNode): number {
    this.isUsual = true;
    this.nameStart =
      this.namespaceStart =
      this.uidStart =
      this.versionStart =
      this.labelsStart =
      this.#annotationsStart =
      this.#times =
        0;
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    let seen = 0;
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
      const value = space(bytes, i + 1);
      i = this.#member(bytes, key + 1, length, value);
      if (i < 0) return -1;
      const found = keyAt(fields.keys, bytes, key + 1, length);
      if (found >= 0) {
        const bit = 1 << found;
        if ((seen & bit) !== 0 || this.#value(bytes, value, fields.nodes[found]) < 0) return -1;
        seen |= bit;
      }
      if (length === 13 && isAt(bytes, key + 1, MANAGED_FIELDS)) {
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

  /** Notes a member of the metadata; returns the end of its value. */
  #member(bytes: Uint8Array, key: number, length: number, value: number): number {
    let end = -1;
    switch (length) {
      case 3:
        if (!isAt(bytes, key, UID)) break;
        end = this.#plain(bytes, value, this.uidStart);
        this.uidStart = value;
        this.uidEnd = end;
        break;
      case 4:
        if (!isAt(bytes, key, NAME)) break;
        end = this.#plain(bytes, value, this.nameStart);
        this.nameStart = value;
        this.nameEnd = end;
        break;
      case 6:
        if (!isAt(bytes, key, LABELS)) break;
        end = this.#strings(bytes, value, this.labelsStart);
        this.labelsStart = value;
        this.labelsEnd = end;
        break;
      case 9:
        if (!isAt(bytes, key, NAMESPACE)) break;
        end = this.#plain(bytes, value, this.namespaceStart);
        this.namespaceStart = value;
        this.namespaceEnd = end;
        break;
      case 11:
        if (!isAt(bytes, key, ANNOTATIONS)) break;
        end = this.#strings(bytes, value, this.#annotationsStart);
        this.#annotationsStart = value;
        break;
      case 13:
        if (isAt(bytes, key, MANAGED_FIELDS)) return this.#managedFields.afterValue(bytes, value, MAX_DEPTH);
        break;
      case 15:
        if (!isAt(bytes, key, RESOURCE_VERSION)) break;
        end = this.#plain(bytes, value, this.versionStart);
        this.versionStart = value;
        this.versionEnd = end;
        break;
      case 17: {
        const time = isAt(bytes, key, CREATION_TIMESTAMP) ? 1 : isAt(bytes, key, DELETION_TIMESTAMP) ? 2 : 0;
        const isTime = bytes[value] === QUOTE || bytes[value] === 0x6e; // null
        if (time > 0 && (!isTime || (this.#times & time) !== 0)) this.isUsual = false;
        this.#times |= time;
      }
    }
    return end < 0 ? afterValue(bytes, value, MAX_DEPTH) : end;
  }

  /** The end of a string without escapes that its object has once. */
  #plain(bytes: Uint8Array, value: number, before: number): number {
    const end = bytes[value] === QUOTE && before === 0 ? afterPlainString(bytes, value + 1) : -1;
    if (end < 0) this.isUsual = false;
    return end;
  }

  /** The end of an object of strings that its object has once. */
  #strings(bytes: Uint8Array, value: number, before: number): number {
    const end = before === 0 ? afterStrings(bytes, value) : -1;
    if (end < 0) this.isUsual = false;
    return end;
  }

  /** The end of a value in which there are fields of indices. */
  #value(bytes: Uint8Array, start: number, node: FieldNode): number {
    const code = bytes[start];
    if (code === OPEN_BRACE && node.keys.length > 0) return this.#object(bytes, start, node);
    if (code === OPEN_BRACKET && node.each !== undefined) return this.#array(bytes, start, node.each);
    const end = afterValue(bytes, start, MAX_DEPTH);
    if (node.places.length > 0 && code !== OPEN_BRACE && code !== OPEN_BRACKET) {
      this.nodes[this.found] = node;
      this.starts[this.found] = start;
      this.ends[this.found++] = end;
    }
    return end;
  }

  #object(bytes: Uint8Array, start: number, { keys, nodes }: FieldNode): number {
    let seen = 0;
    let i = space(bytes, start + 1);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    for (;;) {
      const key = i + 1;
      if (bytes[i] !== QUOTE || (i = afterPlainString(bytes, key)) < 0) return -1;
      const found = keyAt(keys, bytes, key, i - key - 1);
      i = space(bytes, i);
      if (bytes[i] !== COLON) return -1;
      i = space(bytes, i + 1);
      if (found < 0) {
        i = afterValue(bytes, i, MAX_DEPTH);
      } else {
        const bit = 1 << found;
        if ((seen & bit) !== 0) return -1;
        seen |= bit;
        i = this.#value(bytes, i, nodes[found]);
      }
      if (i < 0) return -1;
      i = space(bytes, i);
      const code = bytes[i++];
      if (code === CLOSE_BRACE) return i;
      if (code !== COMMA) return -1;
      i = space(bytes, i);
    }
  }

  #array(bytes: Uint8Array, start: number, each: FieldNode): number {
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

const NO_FIELDS: FieldNode = { names: [], keys: [], nodes: [], each: undefined, places: [] };

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
] = [
  "kind",
  "apiVersion",
  "metadata",
  "managedFields",
  "uid",
  "name",
  "labels",
  "namespace",
  "annotations",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
].map((name) => new TextEncoder().encode(name));

/** Which of the keys is at `start`; -1 if none. */
function keyAt(keys: readonly Uint8Array[], bytes: Uint8Array, start: number, length: number): number {
  for (let i = 0; i < keys.length; i++) {
    if (keys[i].length === length && isAt(bytes, start, keys[i])) return i;
  }
  return -1;
}
