/**
 * Reading objects that stay text: checked, and read as far as their metadata and the fields of indices.
 *
 * How it works. The bytes of an object are walked once, as they came from the network: that is several times
 * as fast as a walk over the characters of a string. The walk checks the whole grammar of JSON, so what is
 * accepted here can be parsed later, and finds the type, the metadata and the fields. What is read of them
 * becomes strings: names, values and labels that many objects have are the same strings in all of them. Then
 * the object's bytes are decoded to one string.
 *
 * @module
 */

import { decodeUtf8, encodeUtf8 } from "../util/bytes.ts";
import { fieldText, type FieldTexts, NO_VALUES } from "./field_tree.ts";
import { afterPlainString, QUOTE } from "./json_walk.ts";
import { isRecord, isTextOrAbsent } from "../util/json.ts";
import { type Members, packedPlaces, Shapes } from "./object_shape.ts";
import type { Span } from "./object_walk.ts";
import {
  type ItemType,
  type ObjectHead,
  ObjectReader,
  type ReadAlong,
  ROOM,
  type UncheckedHead,
} from "./object_reader.ts";

/** An object as text, and what was read of it. */
export class ObjectText implements ReadAlong {
  /** The JSON text, without white space around it. A string of its own, that keeps no other text alive. */
  readonly text: string;
  readonly head: UncheckedHead;
  readonly key: string | undefined;
  readonly fields: FieldTexts;
  readonly members: Members | null;
  /**
   * Whether the head is that of an object that a cache can hold, as `isOrdinaryObject` of `schema/checks.ts`
   * says, and not of a Table. `false` leaves it to the validator.
   */
  readonly isOrdinary: boolean;

  constructor(
    text: string,
    head: UncheckedHead,
    key: string | undefined,
    fields: FieldTexts,
    members: Members | null,
  ) {
    this.text = text;
    this.head = head;
    this.key = key;
    this.fields = fields;
    this.members = members;
    const { kind, apiVersion } = head;
    this.isOrdinary = key !== undefined && isTextOrAbsent(kind) && isTextOrAbsent(apiVersion) &&
      kind !== "Table";
  }
}

/**
 * Reads objects out of texts and bytes, as {@linkcode ObjectText}. The texts must be well-formed (no lone
 * surrogates, which no decoder of UTF-8 returns).
 */
export class ObjectTextReader extends ObjectReader<ObjectText> {
  /** The type that was put in front of an item last, as bytes. */
  #prefix: Uint8Array = new Uint8Array(0);
  #prefixType: ItemType | undefined;
  /** The bytes of the object that is read. */
  #bytes: Uint8Array = new Uint8Array(0);
  // Strings that many objects share; they refer to no text.
  readonly #strings = new SharedStrings();
  readonly #shapes = new Shapes();
  readonly #key: Uint8Array = new Uint8Array(MAX_KEY);
  // The types of objects that come one after the other are mostly the same.
  readonly #lastKind: TypeText = { text: "null", value: null };
  readonly #lastApiVersion: TypeText = { text: "null", value: null };

  /**
   * The values of the fields in a JSON text, each once: what an index function of `fieldIndex` gives for the
   * parsed object, as strings of their own, which do not keep the text in memory.
   */
  fieldsOf(text: string): FieldTexts {
    const read = text.isWellFormed() ? this.read(text) : JSON.parse(text);
    return read instanceof ObjectText ? read.fields : this.fields.valuesOf(read);
  }

  /** Whether a value is what {@linkcode ObjectTextReader.read} returns for an object. */
  isText(value: unknown): value is ObjectText {
    return value instanceof ObjectText;
  }

  protected override make(
    bytes: Uint8Array,
    start: number,
    end: number,
    type?: ItemType,
  ): ObjectText | undefined {
    const { walk } = this;
    this.#bytes = bytes;
    let kind: unknown;
    let apiVersion: unknown;
    let from = start;
    if (
      type !== undefined && walk.kind.start === 0 && walk.apiVersion.start === 0 && walk.metadata.start > 0
    ) {
      const prefix = this.#prefixOf(type);
      if (prefix.length > ROOM) return undefined;
      from = start + 1 - prefix.length;
      bytes.set(prefix, from);
      ({ kind, apiVersion } = type);
    }
    if (walk.kind.start > 0) kind = this.#typeText(this.#lastKind, walk.kind);
    if (walk.apiVersion.start > 0) apiVersion = this.#typeText(this.#lastApiVersion, walk.apiVersion);
    const { isUsual, name } = walk;
    const key = isUsual && name.start > 0 && name.end - name.start > 2 ? this.#keyText() : undefined;
    const shape = key && this.#shapes.shapeOf(bytes, walk.noted, from !== start);
    const head = { kind, apiVersion, metadata: this.#metadata(key, !shape) };
    const fields = this.#fieldTexts(from === start ? undefined : type);
    const textEnd = walk.cutCount === 0 ? end : this.compact(bytes, end);
    const text = decodeUtf8(bytes.subarray(from, textEnd));
    if (!shape) return new ObjectText(text, head, key, fields, null);
    const { places } = this.#shapes;
    const { inner, innerCount } = this.walk;
    const isAscii = text.length === textEnd - from;
    let count = this.#shapes.placeCount;
    if (!isAscii) {
      places.length = count;
      inner.length = innerCount;
      toCharacters(bytes, from, textEnd, places);
      toCharacters(bytes, from, textEnd, inner);
    }
    if (innerCount <= MOST_INNER) { for (let i = 0; i < innerCount; i++) places[count++] = inner[i]; }
    if (places.length > count) places.length = count;
    if (isAscii) { for (let i = 0; i < places.length; i++) places[i] -= from; }
    return new ObjectText(text, head, key, fields, { shape, places: packedPlaces(places, text.length) });
  }

  protected override makeParsed(text: string, type?: ItemType): unknown {
    const value = JSON.parse(text);
    if (!isRecord(value)) return value;
    let { kind, apiVersion, metadata } = value;
    let whole = text.trim();
    if (type !== undefined && kind === undefined && apiVersion === undefined && metadata !== undefined) {
      ({ kind, apiVersion } = type);
      whole = typePrefix(type) + whole.slice(1);
    }
    if (isRecord(metadata)) metadata = withoutManagedFields(metadata);
    // A string of its own.
    whole = decodeUtf8(encodeUtf8(whole));
    const fields = this.fields.valuesOf({ ...value, kind, apiVersion });
    return new ObjectText(whole, { kind, apiVersion, metadata }, undefined, fields, null);
  }

  /**
   * @param key The object's key, if its metadata is as usual.
   * @param readsLabels Whether labels are read: their place in the text is not noted.
   */
  #metadata(key: string | undefined, readsLabels: boolean): unknown {
    const { walk } = this;
    if (key === undefined) {
      if (walk.metadata.start === 0) return undefined;
      const metadata = JSON.parse(this.#decoded(walk.metadata.start, walk.metadata.end));
      return isRecord(metadata) ? withoutManagedFields(metadata) : metadata;
    }
    const namespace = walk.namespace.start === 0
      ? undefined
      : this.#strings.at(this.#bytes, walk.namespace.start + 1, walk.namespace.end - 1)[0];
    return {
      name: namespace ? key.slice(namespace.length + 1) : key,
      namespace,
      uid: this.#string(walk.uid),
      resourceVersion: this.#string(walk.version),
      labels: readsLabels && walk.labels.start > 0
        ? JSON.parse(this.#decoded(walk.labels.start, walk.labels.end))
        : undefined,
    };
  }

  /** A part of the object, as a string of its own. */
  #decoded(start: number, end: number): string {
    return decodeUtf8(this.#bytes.subarray(start, end));
  }

  /** A string without escapes, if it is there. */
  #string({ start, end }: Span): string | undefined {
    return start === 0 ? undefined : this.#decoded(start + 1, end - 1);
  }

  #typeText(last: TypeText, { start, end }: Span): unknown {
    if (!isTextAt(this.#bytes, start, end, last.text)) {
      last.text = this.#decoded(start, end);
      last.value = JSON.parse(last.text);
    }
    return last.value;
  }

  /**
   * The key as `metaNamespaceKey` returns it, as one flat string: a map would have to flatten a string that
   * was joined of two.
   */
  #keyText(): string {
    const { namespace, name } = this.walk;
    const bytes = this.#bytes;
    const slash = namespace.start === 0 ? 0 : namespace.end - namespace.start - 2;
    if (slash === 0) return this.#decoded(name.start + 1, name.end - 1);
    const length = slash + name.end - name.start - 1;
    const namespaceAt = namespace.start + 1;
    const nameAt = name.start - slash;
    const key = length > MAX_KEY ? new Uint8Array(length) : this.#key;
    for (let i = 0; i < slash; i++) key[i] = bytes[namespaceAt + i];
    key[slash] = 0x2f;
    for (let i = slash + 1; i < length; i++) key[i] = bytes[nameAt + i];
    return decodeUtf8(key.subarray(0, length));
  }

  /** The values that the walk found, and the type that was put in front of the object. */
  #fieldTexts(type: ItemType | undefined): FieldTexts {
    const { size, placesOfType } = this.fields;
    if (size === 0) return NO_FIELDS;
    const { found, nodes, starts, ends } = this.walk;
    const fields: (readonly string[])[] = new Array(size);
    for (let i = 0; i < size; i++) fields[i] = NO_VALUES;
    if (type !== undefined) {
      for (const place of placesOfType.kind) fields[place] = [type.kind];
      for (const place of placesOfType.apiVersion) fields[place] = [type.apiVersion];
    }
    let hasLists = false;
    for (let i = 0; i < found; i++) {
      const value = this.#fieldValue(starts[i], ends[i]);
      if (value === undefined) continue;
      const isText = this.#bytes[starts[i]] === QUOTE;
      for (const place of nodes[i].places) {
        if (!isText && this.fields.isText(place)) continue;
        const before = fields[place];
        if (before.length === 0) fields[place] = value;
        else if (before.length === 1) fields[place] = [before[0], value[0]];
        else (before as string[]).push(value[0]);
        hasLists ||= before.length > 0;
      }
    }
    if (hasLists) {
      for (let i = 0; i < size; i++) if (fields[i].length > 1) fields[i] = [...new Set(fields[i])];
    }
    return fields;
  }

  #fieldValue(start: number, end: number): readonly string[] | undefined {
    if (this.#bytes[start] === QUOTE) {
      if (afterPlainString(this.#bytes, start + 1) === end) {
        return this.#strings.at(this.#bytes, start + 1, end - 1);
      }
    }
    const value = fieldText(JSON.parse(this.#decoded(start, end)));
    return value === undefined ? undefined : [value];
  }

  #prefixOf(type: ItemType): Uint8Array {
    if (type !== this.#prefixType) {
      this.#prefix = encodeUtf8(typePrefix(type));
      this.#prefixType = type;
    }
    return this.#prefix;
  }
}

/**
 * Makes characters of the string that is decoded of bytes, out of the places of these bytes, which ascend:
 * beyond ASCII a character has several bytes, and one of four bytes is two characters.
 */
function toCharacters(bytes: Uint8Array, from: number, end: number, places: number[]): void {
  let characters = 0;
  let next = 0;
  for (let at = from; at <= end && next < places.length; at++) {
    while (next < places.length && places[next] === at) places[next++] = characters;
    if ((bytes[at] & 0xc0) !== 0x80) characters += bytes[at] >= 0xf0 ? 2 : 1;
  }
}

const NO_FIELDS: FieldTexts = [];

/** The most keys inside members whose places are noted: every engine takes so many arguments. */
const MOST_INNER = 4_096;

/** A kind or an apiVersion, as it was read last. */
interface TypeText {
  text: string;
  value: unknown;
}

/** The beginning of a single object, as an API server writes it. */
function typePrefix({ kind, apiVersion }: ItemType): string {
  return `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
}

function withoutManagedFields({ managedFields: _, ...rest }: Record<string, unknown>): unknown {
  return rest;
}

/** The longest key for which there is room beforehand. */
const MAX_KEY = 512;

/** Strings that were read lately, by their bytes: a table in which a new one replaces an old one. */
class SharedStrings {
  readonly #known: (readonly [string] | undefined)[] = new Array(SLOTS);

  /** The string of these bytes, in an array that objects with the same string share. */
  at(bytes: Uint8Array, start: number, end: number): readonly [string] {
    const slot = hashOf(bytes, start, end) % SLOTS;
    const known = this.#known[slot];
    if (known !== undefined && isTextAt(bytes, start, end, known[0])) return known;
    const own = [decodeUtf8(bytes.subarray(start, end))] as const;
    // Each byte is a character, and they are few.
    if (own[0].length === end - start && end - start <= MAX_LENGTH) this.#known[slot] = own;
    return own;
  }
}

/** Whether the bytes are those of this text; not if it has other characters than ASCII's. */
function isTextAt(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

/** A hash of bytes, of a long part not of all: what follows compares them. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (; i < end - 24; i += 8) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  for (i = Math.max(start, end - 24); i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return (hash ^ hash >>> 15) >>> 0;
}

const SLOTS = 1024;
const MAX_LENGTH = 512;

/** Arguments of a list or a watch that are not sent. */
export interface ListWatchContext {
  /** Ends the request, and a watch's stream, at once. */
  readonly signal: AbortSignal;
  /** Called with the number of bytes of each chunk of the answer's body, by sources that count them. */
  readonly onBytes?: (bytes: number) => void;
  /**
   * Called with each item of a list as soon as it is decoded and accepted; what it returns replaces the item
   * in the page. For sources that decode items one by one, so that at most one of them is in memory in
   * decoded form. A source that reads the items of another source's pages must not pass this on.
   */
  readonly intake?: (item: unknown) => unknown;
  /**
   * Makes what a store holds of an object's JSON text; lists and watches return that instead of the parsed
   * objects. For sources that have the text; others ignore it.
   */
  readonly holdText?: HoldText;
}

/** How a store holds objects that are read as text. One that holds texts hands it to its source. */
export interface HoldText {
  /** Reads objects out of texts: used by one after the other. */
  readonly reader: ObjectTextReader;
  /**
   * Makes what the store holds of an object's JSON text, which is a string of its own (no part of a longer
   * one), and was checked: it can be parsed, and its head was accepted.
   */
  readonly hold: (text: string, head: ObjectHead, read?: ReadAlong) => unknown;
}

/** How a list or a watch hands out objects that are not parsed. */
export interface ObjectsAsText extends HoldText {
  /** Whether an object with an ordinary head is accepted whatever else is in it. */
  readonly acceptsOrdinary: boolean;
}
