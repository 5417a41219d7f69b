/**
 * Objects as text: checked and read as far as their metadata and the fields of indices, not parsed.
 *
 * How it works. The bytes of an object are walked once, as they came from the network: that is several times as fast as a
 * walk over the characters of a string. The walk checks the whole grammar of JSON, so what is accepted here can be parsed
 * later, and finds the type, the metadata and the fields. What is read of them becomes strings: names, values and labels
 * that many objects have are the same strings in all of them. Then the object's bytes are decoded to one string.
 *
 * What an object of an API server never has (a key of the first two levels that is written twice or with escapes, more
 * than a thousand levels) is left to `JSON.parse`, so that there is one meaning of such texts.
 *
 * @module
 */

import { metaOf, type ObjectMeta } from "../meta/object.ts";
import { CLOSE_BRACE, QUOTE } from "./json_text.ts";
import { EventCutter, type EventReader } from "./event_cutter.ts";
import { ItemCutter, type ItemCutterOptions } from "./item_cutter.ts";
import { afterPlainString, afterString, afterValue, isAt, space } from "./json_walk.ts";
import { ObjectWalk } from "./object_walk.ts";
import { fieldText, type FieldTexts, NO_VALUES, TextFields } from "./text_fields.ts";

/**
 * What is read of an object that is held as text: its type, and of its metadata at least name, namespace, uid,
 * resourceVersion and labels. Labels may be those of another object that has the same.
 *
 * @category Reflector
 */
export interface ObjectHead {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

/** The same as it was read, before it was validated. */
export interface UncheckedHead {
  readonly apiVersion: unknown;
  readonly kind: unknown;
  readonly metadata: unknown;
}

/** What was read of a text besides the object's head. */
export interface ReadAlong {
  /** What `metaNamespaceKey` returns for the object; absent where the metadata had to be parsed. */
  readonly key: string | undefined;
  /** The values of the fields that the reader was made for. */
  readonly fields: FieldTexts;
}

/** An object as text, and what was read of it. */
export class ObjectText implements ReadAlong {
  /** The JSON text, without white space around it. A string of its own, that keeps no other text alive. */
  readonly text: string;
  readonly head: UncheckedHead;
  readonly key: string | undefined;
  readonly fields: FieldTexts;

  constructor(text: string, head: UncheckedHead, key: string | undefined, fields: FieldTexts) {
    this.text = text;
    this.head = head;
    this.key = key;
    this.fields = fields;
  }
}

/** What the items of a list are, where they do not say so themselves. */
export interface ItemType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Says what the items of a list are, for a cutter of them. */
export interface ItemSource {
  /** The type of the items, as for {@linkcode ObjectTextReader.read}. */
  readonly typeOf: () => ItemType | undefined;
  /** As `HoldText.stored`; of items without a type it is not used. */
  readonly stored: ((key: string) => unknown) | undefined;
}

/** An item of a list that was stored before; it was not read. */
export class StoredItem {
  readonly held: unknown;

  constructor(held: unknown) {
    this.held = held;
  }
}

/** An event of a watch with its object as text. */
export interface EventText {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: ObjectText;
}

/**
 * Reads objects out of texts.
 *
 * @category Reflector
 */
export interface ObjectTextReader {
  /**
   * Reads one object: an `ObjectText`; a value that is no object is parsed.
   *
   * @param type Written into an object with metadata that has neither kind nor apiVersion.
   * @throws {SyntaxError} It is no JSON value.
   */
  read(text: string, type?: ItemType): unknown;
  /**
   * Reads one event of a watch: an {@linkcode EventText} if it is one; any other value is parsed.
   *
   * @throws {SyntaxError} It is no JSON value.
   */
  readEvent(frame: string): unknown;
  /**
   * Makes a cutter of the bytes of a watch. It may read further while the reader is used for others.
   *
   * @param maxFrameBytes The longest frame accepted, without its newline.
   */
  newEventCutter(maxFrameBytes: number): EventCutter<EventText>;
  /**
   * Makes a cutter of the items of a list. It may read further while the reader is used for others.
   *
   * @param source What is known of the items.
   */
  newItemCutter(options: ItemCutterOptions, source: ItemSource): ItemCutter;
  /** Whether a value is what {@linkcode ObjectTextReader.read} returns for an object. */
  isText(value: unknown): value is ObjectText;
}

/**
 * Makes a reader of texts. It reads one at a time and keeps a buffer as long as the longest of them. The texts must be
 * well-formed (no lone surrogates, which no decoder of UTF-8 returns).
 *
 * @param fields The fields whose values are read along; more may be added to them at any time.
 */
export function newObjectTextReader(fields: TextFields = new TextFields()): ObjectTextReader {
  return new WalkingReader(fields);
}

class WalkingReader implements ObjectTextReader, EventReader<EventText> {
  readonly #fields: TextFields;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #walk = new ObjectWalk();
  /** The text that is read begins at `PREFIX`; before it is room for what is put in front of an object. */
  #own: Uint8Array = new Uint8Array(PREFIX + 16 * 1024);
  #end = PREFIX;
  /** What was put in front last, and for which type. */
  #prefix: Uint8Array = new Uint8Array(0);
  #prefixType: ItemType | undefined;
  /** What a cutter reads from. */
  #chunk: Uint8Array = new Uint8Array(0);
  eventEnd = 0;
  /** Of the object that is read: where it is, and its text. */
  #bytes: Uint8Array = this.#own;
  #text = "";
  /** Where the text begins in the bytes, if each of its characters is one byte; otherwise -1. */
  #origin = -1;
  // What many objects have is one string, and no part of any text.
  readonly #strings = new Shared<readonly string[]>();
  readonly #labels = new Shared<unknown>();
  readonly #key: Uint8Array = new Uint8Array(MAX_KEY);
  // The types of objects that come one after the other are mostly the same.
  readonly #lastKind: TypeText = { text: "null", value: null };
  readonly #lastApiVersion: TypeText = { text: "null", value: null };

  constructor(fields: TextFields) {
    this.#fields = fields;
  }

  read(text: string, type?: ItemType): unknown {
    this.#write(text);
    const bytes = this.#own;
    const start = space(bytes, PREFIX);
    const end = this.#walk.object(bytes, start, this.#fields.root);
    const isWalked = end > 0 && space(bytes, end) === this.#end;
    return isWalked && this.#hasRoomFor(type)
      ? this.#take(bytes, start, end, type)
      : this.#readParsed(text, type);
  }

  isText(value: unknown): value is ObjectText {
    return value instanceof ObjectText;
  }

  readEvent(frame: string): unknown {
    this.#write(frame);
    const event = this.#eventAt(this.#own, PREFIX, this.#end);
    return event ?? this.#readOtherEvent(frame);
  }

  newEventCutter(maxFrameBytes: number): EventCutter<EventText> {
    return new EventCutter(maxFrameBytes, this);
  }

  newItemCutter(options: ItemCutterOptions, { typeOf, stored }: ItemSource): ItemCutter {
    const items = {
      itemEnd: 0,
      buffer: (length: number) => this.buffer(length),
      readItemAt: (bytes: Uint8Array, start: number) => {
        const type = typeOf();
        const end = this.#walk.object(bytes, start, this.#fields.root);
        if (end < 0 || !this.#hasRoomFor(type)) return undefined;
        items.itemEnd = end;
        const known = stored && type && this.#sameAs(bytes, stored);
        return known ?? this.#take(bytes, start, end, type);
      },
      readItem: (text: string) => this.read(text, typeOf()),
    };
    return new ItemCutter(items, PREFIX, options);
  }

  /** What is stored of the object that was walked last, if uid and resourceVersion are the same. */
  #sameAs(bytes: Uint8Array, stored: (key: string) => unknown): StoredItem | undefined {
    const { isUsual, nameStart, uidStart, uidEnd, versionStart, versionEnd } = this.#walk;
    if (!isUsual || nameStart === 0 || uidStart === 0 || versionStart === 0) return undefined;
    this.#bytes = bytes;
    const held = stored(this.#keyText());
    const metadata = metaOf(held);
    const isSame = metadata?.uid && isTextAt(bytes, uidStart + 1, uidEnd - 1, metadata.uid) &&
      isTextAt(bytes, versionStart + 1, versionEnd - 1, metadata.resourceVersion ?? "");
    return isSame ? new StoredItem(held) : undefined;
  }

  buffer(length: number): Uint8Array {
    if (length > MAX_KEPT) return new Uint8Array(length);
    if (length > this.#chunk.length) this.#chunk = new Uint8Array(Math.max(length, MIN_CHUNK));
    return this.#chunk;
  }

  readEventAt(bytes: Uint8Array, start: number): EventText | undefined {
    return this.#eventAt(bytes, start, -1);
  }

  /**
   * The event that begins here as API servers write it, and ends at `frameEnd`, or with a newline where that is -1.
   * `undefined` if there is none such.
   */
  #eventAt(bytes: Uint8Array, frameStart: number, frameEnd: number): EventText | undefined {
    // The letter after `{"type":"`.
    const kind = EVENTS.get(bytes[frameStart + 9]);
    if (kind === undefined || !isAt(bytes, frameStart, kind.beginning)) return undefined;
    const start = frameStart + kind.beginning.length;
    const end = this.#walk.object(bytes, start, this.#fields.root);
    if (end < 0 || bytes[end] !== CLOSE_BRACE) return undefined;
    if (frameEnd < 0 ? bytes[end + 1] !== 0x0a : space(bytes, end + 1) !== frameEnd) return undefined;
    this.eventEnd = end + 1;
    return { type: kind.type, object: this.#take(bytes, start, end) };
  }

  /** An event that is written in another way. */
  #readOtherEvent(frame: string): unknown {
    const event = JSON.parse(frame);
    const { type, object } = (event ?? {}) as { readonly type?: unknown; readonly object?: unknown };
    if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED" || !isObject(object)) return event;
    this.#write(frame);
    const [start, end] = this.#lastMember("object");
    const text = this.#decoder.decode(this.#own.subarray(start, end));
    return { type, object: this.read(text) } satisfies Record<keyof EventText, unknown>;
  }

  /** Where the value is of a key of the object that was written, which is valid JSON: of the last one, as of a parser. */
  #lastMember(name: string): [start: number, end: number] {
    const bytes = this.#own;
    const range: [number, number] = [0, 0];
    let i = space(bytes, PREFIX);
    while (bytes[i] !== CLOSE_BRACE) {
      const key = space(bytes, i + 1); // behind the bracket or the comma
      const afterKey = afterString(bytes, key + 1);
      const start = space(bytes, space(bytes, afterKey) + 1);
      const end = afterValue(bytes, start, Infinity);
      if (JSON.parse(this.#decoder.decode(bytes.subarray(key, afterKey))) === name) {
        range[0] = start;
        range[1] = end;
      }
      i = space(bytes, end);
    }
    return range;
  }

  #write(text: string): void {
    // The last byte stays free for the end mark.
    let { read, written } = this.#encoder.encodeInto(text, this.#own.subarray(PREFIX, -1));
    if (read < text.length) {
      this.#own = new Uint8Array(PREFIX + text.length * 3 + 1);
      ({ read, written } = this.#encoder.encodeInto(text, this.#own.subarray(PREFIX, -1)));
    }
    this.#end = PREFIX + written;
    this.#own[this.#end] = 0; // what an earlier text left behind is no part of this one
  }

  /** The object that was walked last. What is before it may be overwritten if it has a type given. */
  #take(bytes: Uint8Array, start: number, end: number, type?: ItemType): ObjectText {
    const walk = this.#walk;
    const { kindStart, apiVersionStart, metadataStart } = walk;
    const isTyped = type !== undefined && kindStart === 0 && apiVersionStart === 0 && metadataStart > 0;
    const from = isTyped ? start + 1 - this.#prefix.length : start;
    if (isTyped) bytes.set(this.#prefix, from);
    const text = this.#decoder.decode(bytes.subarray(from, end));
    this.#bytes = bytes;
    this.#text = text;
    this.#origin = text.length === end - from ? from : -1;
    let kind: unknown;
    let apiVersion: unknown;
    let metadata: unknown;
    let key: string | undefined;
    if (isTyped) ({ kind, apiVersion } = type);
    if (kindStart > 0) kind = parsedType(this.#lastKind, this.#part(kindStart, walk.kindEnd));
    if (apiVersionStart > 0) {
      apiVersion = parsedType(this.#lastApiVersion, this.#part(apiVersionStart, walk.apiVersionEnd));
    }
    if (walk.isUsual && walk.nameStart > 0) {
      const namespace = walk.namespaceStart === 0
        ? undefined
        : this.#string(walk.namespaceStart + 1, walk.namespaceEnd - 1)[0];
      key = this.#keyText();
      metadata = {
        name: namespace ? key.slice(namespace.length + 1) : key,
        namespace,
        uid: walk.uidStart === 0 ? undefined : this.#decoded(walk.uidStart + 1, walk.uidEnd - 1),
        resourceVersion: walk.versionStart === 0
          ? undefined
          : this.#decoded(walk.versionStart + 1, walk.versionEnd - 1),
        labels: walk.labelsStart === 0 ? undefined : this.#labelsOf(walk.labelsStart, walk.labelsEnd),
      };
    } else if (metadataStart > 0) {
      const { metadataEnd, cutStart, cutEnd } = walk;
      metadata = JSON.parse(
        cutStart === 0
          ? this.#part(metadataStart, metadataEnd)
          : this.#part(metadataStart, cutStart) + this.#part(cutEnd, metadataEnd),
      );
    }
    const fields = this.#fieldTexts(isTyped ? type : undefined);
    const read = new ObjectText(text, { kind, apiVersion, metadata }, key, fields);
    this.#text = "";
    return read;
  }

  /** A part of the text, which may keep the whole text alive. */
  #part(start: number, end: number): string {
    const origin = this.#origin;
    return origin < 0 ? this.#decoded(start, end) : this.#text.slice(start - origin, end - origin);
  }

  /** The same as a string of its own. */
  #decoded(start: number, end: number): string {
    return this.#decoder.decode(this.#bytes.subarray(start, end));
  }

  /** The same in an array, that other objects with the same have. */
  #string(start: number, end: number): readonly string[] {
    const known = this.#strings.get(this.#bytes, start, end);
    if (known !== undefined) return known;
    const own = [this.#decoded(start, end)];
    if (end - start <= MAX_SHARED) this.#strings.set(own[0], end - start, own);
    return own;
  }

  #labelsOf(start: number, end: number): unknown {
    const known = this.#labels.get(this.#bytes, start, end);
    if (known !== undefined) return known;
    const own = this.#decoded(start, end);
    const labels = JSON.parse(own);
    if (end - start <= MAX_SHARED) this.#labels.set(own, end - start, labels);
    return labels;
  }

  /** What `metaNamespaceKey` returns, as one flat string: a map would have to flatten what is put together of two. */
  #keyText(): string {
    const { namespaceStart, namespaceEnd, nameStart, nameEnd } = this.#walk;
    const bytes = this.#bytes;
    const slash = namespaceStart === 0 ? 0 : namespaceEnd - namespaceStart - 2;
    if (slash === 0) return this.#decoded(nameStart + 1, nameEnd - 1);
    const length = slash + nameEnd - nameStart - 1;
    const key = length > MAX_KEY ? new Uint8Array(length) : this.#key;
    for (let i = 0; i < slash; i++) key[i] = bytes[namespaceStart + 1 + i];
    key[slash] = 0x2f;
    for (let i = slash + 1; i < length; i++) key[i] = bytes[nameStart - slash + i];
    return this.#decoder.decode(key.subarray(0, length));
  }

  /** The values that the walk found, and the type that was put in front of the object. */
  #fieldTexts(type: ItemType | undefined): FieldTexts {
    const { size } = this.#fields;
    if (size === 0) return NO_FIELDS;
    const { found, nodes, starts, ends } = this.#walk;
    const fields: (readonly string[])[] = new Array(size);
    for (let i = 0; i < size; i++) fields[i] = NO_VALUES;
    if (type !== undefined) {
      const { names, nodes } = this.#fields.root;
      for (const [i, name] of names.entries()) {
        if (name !== "kind" && name !== "apiVersion") continue;
        for (const place of nodes[i].places) fields[place] = [type[name]];
      }
    }
    let hasLists = false;
    for (let i = 0; i < found; i++) {
      const value = this.#fieldValue(starts[i], ends[i]);
      if (value === undefined) continue;
      for (const place of nodes[i].places) {
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
      if (afterPlainString(this.#bytes, start + 1) === end) return this.#string(start + 1, end - 1);
    }
    const value = fieldText(JSON.parse(this.#part(start, end)));
    return value === undefined ? undefined : [value];
  }

  /** Whether this type can be written in front of an object, by the prefix that is made for it here. */
  #hasRoomFor(type: ItemType | undefined): boolean {
    if (type !== undefined && type !== this.#prefixType) {
      this.#prefix = this.#encoder.encode(typePrefix(type));
      this.#prefixType = type;
    }
    return type === undefined || this.#prefix.length <= PREFIX;
  }

  /** An object whose text the walk did not accept. */
  #readParsed(text: string, type: ItemType | undefined): unknown {
    const value = JSON.parse(text);
    if (!isObject(value)) return value;
    let { kind, apiVersion, metadata } = value;
    let whole = text.trim();
    if (type !== undefined && kind === undefined && apiVersion === undefined && metadata !== undefined) {
      ({ kind, apiVersion } = type);
      whole = typePrefix(type) + whole.slice(1);
    }
    if (isObject(metadata)) {
      const { managedFields: _, ...rest } = metadata;
      metadata = rest;
    }
    this.#write(whole);
    whole = this.#decoder.decode(this.#own.subarray(PREFIX, this.#end));
    const fields = this.#fields.valuesOf({ ...value, kind, apiVersion });
    return new ObjectText(whole, { kind, apiVersion, metadata }, undefined, fields);
  }
}

/** How API servers write the events of a watch, by the first letter of the type. */
const EVENTS: ReadonlyMap<number, { readonly type: EventText["type"]; readonly beginning: Uint8Array }> =
  new Map(
    (["MODIFIED", "ADDED", "DELETED"] as const).map((type) => [
      type.charCodeAt(0),
      { type, beginning: new TextEncoder().encode(`{"type":"${type}","object":`) },
    ]),
  );

const NO_FIELDS: FieldTexts = [];

/** What was read lately, by its bytes: a table in which one takes the place of another. */
class Shared<V> {
  #texts: (string | undefined)[] = [];
  #values: (V | undefined)[] = [];
  #slot = 0;

  /** What was set for these bytes; `undefined` if nothing was, or it is there no more. */
  get(bytes: Uint8Array, start: number, end: number): V | undefined {
    const slot = this.#slot = hashOf(bytes, start, end) % SHARED;
    const text = this.#texts[slot];
    return text !== undefined && isTextAt(bytes, start, end, text) ? this.#values[slot] : undefined;
  }

  /** Sets it for the bytes that were looked up last, of which this is the text; only if each is a character. */
  set(text: string, length: number, value: V): void {
    if (text.length !== length) return;
    if (this.#texts.length === 0) {
      this.#texts = new Array(SHARED);
      this.#values = new Array(SHARED);
    }
    this.#texts[this.#slot] = text;
    this.#values[this.#slot] = value;
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

/** A kind or an apiVersion, as it was read last. */
interface TypeText {
  text: string;
  value: unknown;
}

function parsedType(last: TypeText, text: string): unknown {
  if (last.text !== text) {
    last.value = JSON.parse(text);
    last.text = text;
  }
  return last.value;
}

/** As an API server begins a single object. */
function typePrefix({ kind, apiVersion }: ItemType): string {
  return `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Room for the type of an item: kinds have 63 characters at most, groups 253, versions 63. */
const PREFIX = 512;
/** The longest key for which there is room beforehand. */
const MAX_KEY = 512;
/** The first buffer for chunks: what they have at most, as a rule, and a frame; and the longest that is kept. */
const MIN_CHUNK = 80 * 1024;
const MAX_KEPT = 1024 * 1024;
/** How many strings, and how many labels, are remembered; and how long these may be, in bytes. */
const SHARED = 8192;
const MAX_SHARED = 512;
