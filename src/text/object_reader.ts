/** Reading objects out of bytes, for lists and watches. */

import { decodeUtf8 } from "../util/bytes.ts";
import { type FieldNode, type FieldTexts, FieldTree, type Projection, TextFields } from "./field_tree.ts";
import type { ObjectMeta } from "../meta/object.ts";
import { isRecord } from "../util/json.ts";
import { afterString, afterValue, CLOSE_BRACE, space } from "./json_walk.ts";
import type { LineReader } from "./line_cutter.ts";
import type { ItemReader } from "./list_cutter.ts";
import type { Members } from "./object_shape.ts";
import { type ObjectEventType, ObjectWalk } from "./object_walk.ts";

/**
 * The head of an object that is held as text: its type, and of its metadata at least name, namespace, uid,
 * resourceVersion, and labels if it is not noted where they are in the text.
 */
export interface ObjectHead {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

/** The part of an object that stays readable while it is held as text. */
export interface LiveMetadata {
  readonly apiVersion: string | undefined;
  readonly kind: string | undefined;
  readonly uid: string | undefined;
  /** The version as `resourceVersionOf` gives it: `undefined` for an object without metadata. */
  readonly resourceVersion: string | undefined;
  readonly namespace: string | undefined;
  /** May be those of another object that has the same. */
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** The head of an object before it was validated. */
export interface UncheckedHead {
  readonly apiVersion: unknown;
  readonly kind: unknown;
  readonly metadata: unknown;
}

/** The parts read of a text besides the object's head. */
export interface ReadAlong {
  /** The key that `metaNamespaceKey` returns for the object; absent if the metadata had to be parsed. */
  readonly key: string | undefined;
  /** The values of the fields that the reader was made for. */
  readonly fields: FieldTexts;
  /**
   * The object's members, and where their values are; `null` if the object is to be parsed whole, absent if
   * the text was not walked.
   */
  readonly members?: Members | null | undefined;
}

/** The type of a list's items, for items that do not name it. */
export interface ItemType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** An event of a watch that has an object. */
export interface ObjectEvent<O> {
  readonly type: ObjectEventType;
  readonly object: O;
}

/** Reads the events of a watch: a `LineReader`, and what else a frame may be. */
export interface EventReader<O> extends LineReader<ObjectEvent<O>> {
  /** Reads one event from its text: an {@linkcode ObjectEvent} if it is one; any other value is parsed. */
  readEvent(frame: string): unknown;
}

/**
 * Reads objects out of bytes: walks each once, and makes of it what the class that extends this says. It
 * reads one at a time, and may be used by several lists and watches, which take turns.
 *
 * What an object of an API server never has (a key of the first two levels that is written twice or with
 * escapes, more than a thousand levels) is left to `JSON.parse`, so that there is one meaning of such texts.
 */
export abstract class ObjectReader<O> {
  /** The object that was walked last. */
  protected readonly walk: ObjectWalk = new ObjectWalk();
  /** The fields whose values are read. */
  protected readonly fields: TextFields;
  readonly #encoder = new TextEncoder();
  /** The chunk that lists and watches read, and the buffer for a text that is read by itself. */
  #chunk: Uint8Array = new Uint8Array(0);
  #own: Uint8Array = new Uint8Array(ROOM + 16 * 1024);
  #ownEnd = ROOM;
  readonly #tree: FieldTree;
  readonly #readers: { readonly readWhole: boolean } | undefined;
  #arrived = 0;

  /**
   * @param fields The fields whose values are read; more may be added to them at any time.
   * @param readers Whether most objects are read whole: then most of those of watches are parsed as they
   * come. Looked at for each object.
   */
  constructor(fields?: TextFields, readers?: { readonly readWhole: boolean }) {
    this.fields = fields ?? new TextFields();
    this.#tree = new FieldTree(this.fields);
    this.#readers = readers;
  }

  /** Makes something of the object that was walked last. */
  protected abstract make(bytes: Uint8Array, start: number, end: number, type?: ItemType): O | undefined;

  /**
   * Makes something of the text of a JSON value that the walk left to the parser; nothing is cut out of it
   * any more.
   */
  protected abstract makeParsed(text: string, type?: ItemType): unknown;

  /** Reads one object; a value that is no object is parsed. */
  read(text: string, type?: ItemType): unknown {
    return this.#read(text, type, this.#tree);
  }

  #read(text: string, type: ItemType | undefined, tree: FieldTree): unknown {
    const bytes = this.#write(text);
    const start = space(bytes, ROOM);
    const end = this.walk.object(bytes, start, this.#rootOf(tree));
    const isObject = end > 0 && space(bytes, end) === this.#ownEnd;
    const object = isObject ? this.make(bytes, start, end, type) : undefined;
    return object ?? this.makeParsed(tree.isWhole ? text : this.#withoutCuts(text, tree), type);
  }

  /** A reader of the events of a watch. */
  events(projection?: Projection): EventReader<O> {
    const tree = new FieldTree(this.fields, projection);
    let isParsed = false;
    const reader = {
      lineEnd: 0,
      buffer: (length: number) => this.buffer(length),
      readLineAt: (bytes: Uint8Array, lineStart: number): ObjectEvent<O> | undefined => {
        isParsed = this.#readers?.readWhole === true && projection === undefined &&
          ++this.#arrived % PROBE_ARRIVED !== 0;
        if (isParsed) return undefined;
        const lineEnd = this.walk.event(bytes, lineStart, this.#rootOf(tree));
        if (lineEnd < 0) return undefined;
        reader.lineEnd = lineEnd;
        const { eventType: type, objectStart } = this.walk;
        const object = this.make(bytes, objectStart, lineEnd - 1);
        return object && { type, object };
      },
      readEvent: (frame: string): unknown => isParsed ? JSON.parse(frame) : this.#readEvent(frame, tree),
    };
    return reader;
  }

  /**
   * A reader of the items of a list.
   * @param typeOf The type of items that do not name it themselves; it is written into their texts.
   */
  items(typeOf: () => ItemType | undefined, projection?: Projection): ItemReader {
    const tree = new FieldTree(this.fields, projection);
    const reader = {
      room: ROOM,
      itemEnd: 0,
      buffer: (length: number) => this.buffer(length),
      readItemAt: (bytes: Uint8Array, start: number): unknown => {
        const type = typeOf();
        const end = reader.itemEnd = this.walk.object(bytes, start, this.#rootOf(tree));
        if (end < 0) return undefined;
        return this.make(bytes, start, end, type);
      },
      readItem: (text: string) => this.#read(text, typeOf(), tree),
    };
    return reader;
  }

  #readEvent(frame: string, tree: FieldTree): unknown {
    const event = JSON.parse(frame);
    const { type, object } = (event ?? {}) as { readonly type?: unknown; readonly object?: unknown };
    const isOne = (type === "ADDED" || type === "MODIFIED" || type === "DELETED") && isRecord(object);
    if (!isOne) return event;
    return { type, object: this.#read(this.#lastMember(frame, "object"), undefined, tree) };
  }

  /** The text of a member of an object that is valid JSON; of the last one of that name, as in a parser. */
  #lastMember(object: string, name: string): string {
    const bytes = this.#write(object);
    let member: Uint8Array = bytes.subarray(0, 0);
    let i = space(bytes, ROOM);
    while (bytes[i] !== CLOSE_BRACE) {
      const key = space(bytes, i + 1); // behind the bracket or the comma
      const keyEnd = afterString(bytes, key + 1);
      const start = space(bytes, space(bytes, keyEnd) + 1);
      const end = afterValue(bytes, start, Infinity);
      if (JSON.parse(decodeUtf8(bytes.subarray(key, keyEnd))) === name) {
        member = bytes.subarray(start, end);
      }
      i = space(bytes, end);
    }
    return decodeUtf8(member);
  }

  /** A JSON value without what is cut out of it; the text as it is if that is no JSON. */
  #withoutCuts(text: string, tree: FieldTree): string {
    const bytes = this.#write(text);
    const start = space(bytes, ROOM);
    const end = this.walk.cut(bytes, start, this.#rootOf(tree));
    if (end < 0 || space(bytes, end) !== this.#ownEnd) return text;
    return decodeUtf8(bytes.subarray(start, this.compact(bytes, end)));
  }

  /** The root of a tree, in which the fields are that were added since the last object. */
  #rootOf(tree: FieldTree): FieldNode {
    if (tree.version !== this.fields.version) tree.update();
    return tree.root;
  }

  /** Removes what is cut out of the object that was walked last. Returns where it ends then. */
  protected compact(bytes: Uint8Array, end: number): number {
    const { cuts, cutCount } = this.walk;
    if (cutCount === 0) return end;
    let to = cuts[0];
    for (let i = 1; i < cutCount; i += 2) {
      const keptEnd = i + 1 < cutCount ? cuts[i + 1] : end;
      bytes.copyWithin(to, cuts[i], keptEnd);
      to += keptEnd - cuts[i];
    }
    return to;
  }

  protected buffer(length: number): Uint8Array {
    if (length > MAX_KEPT) return new Uint8Array(length);
    if (length > this.#chunk.length) this.#chunk = new Uint8Array(Math.max(length, MIN_CHUNK));
    return this.#chunk;
  }

  /** Writes a text behind some room, and a 0 behind it. */
  #write(text: string): Uint8Array {
    let bytes = this.#own;
    // The last byte stays free for the end mark.
    let { read, written } = this.#encoder.encodeInto(text, bytes.subarray(ROOM, -1));
    if (read < text.length) {
      bytes = new Uint8Array(ROOM + text.length * 3 + 1);
      ({ read, written } = this.#encoder.encodeInto(text, bytes.subarray(ROOM, -1)));
      if (bytes.length <= MAX_KEPT) this.#own = bytes;
    }
    this.#ownEnd = ROOM + written;
    bytes[this.#ownEnd] = 0; // what an earlier text left behind is no part of this one
    return bytes;
  }
}

/** Reads objects as JSON values. */
export class ObjectParser extends ObjectReader<unknown> {
  override events(projection?: Projection): EventReader<unknown> {
    if (projection !== undefined) return super.events(projection);
    // Searching for newlines is faster than walking.
    return {
      lineEnd: 0,
      buffer: (length: number) => this.buffer(length),
      readEvent: (frame: string) => JSON.parse(frame),
    };
  }

  protected override make(bytes: Uint8Array, start: number, end: number): unknown {
    return JSON.parse(decodeUtf8(bytes.subarray(start, this.compact(bytes, end))));
  }

  protected override makeParsed(text: string): unknown {
    return JSON.parse(text);
  }
}

/** The probes: one in so many objects of a watch stays text, which shows how much of it is read. */
const PROBE_ARRIVED = 16;
/** Room for the type of an item: kinds have 63 characters at most, groups 253, versions 63. */
export const ROOM = 512;
/**
 * The first buffer for chunks: what they have at most, as a rule, and a frame; and the longest that is kept.
 */
const MIN_CHUNK = 80 * 1024;
const MAX_KEPT = 1024 * 1024;
