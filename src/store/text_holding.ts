/**
 * Stored objects as texts: whole ones, or short ones.
 *
 * 50,000 Pods of 4.6 KB take 466 MB as objects. Most of that is repetition: Pods have the same fields, and
 * many of them the same values. With `storage: shortTexts()` a store holds each object as a {@linkcode
 * TextObject}: its key, some of its metadata, and a string of one byte a character that holds all of it, a
 * seventh as long as the object's JSON text. That is 68 MB, indices included. A read decodes it. With
 * `texts()` the string is the JSON text.
 *
 * - **The text** is the one that the source had, if it hands texts on ({@linkcode TextHolding.holdText}):
 *   then the object is not parsed before it is read. Else it is `JSON.stringify`'s. A `TextCodec` shortens
 *   it, which learns from the first objects what they have in common. So decoding is `JSON.parse` and a third
 *   more (25 us a Pod), encoding `JSON.stringify`, a check and as much again (35 us). A string, rather than
 *   bytes in an array: it has 16 bytes of overhead instead of 150, and needs no owner that frees or compacts.
 * - **What stays live** is what is read without the object: its key, in the map and the indices; what a
 *   relist compares first, `metadata.uid` and `metadata.resourceVersion`; and what objects are selected by,
 *   `metadata.namespace` and `metadata.labels`. An object that did not change is kept as it is; that a relist
 *   finds out from its text, without parsing it. The indices know their values without asking; and a selector
 *   costs the decoding of what it selects.
 * - **Hot objects**, those that were written or looked up last, are kept decoded as well: two reads return
 *   the same object. Walks through the whole store use what is hot, but do not replace it.
 * - **Only plain JSON values are encoded**: objects made of objects, arrays, strings, finite numbers,
 *   booleans and null, as a server sends them. Anything else (a Date, a class, a function, a hole in an
 *   array, -0, more than 500 levels) and whatever holds it is stored as it is, so that nothing is changed.
 *   One thing is: a property that is `undefined` is left out, since setting fields to `undefined` is how
 *   transforms drop them. What is no enumerable property of an object (a symbol, a field of an array) is not
 *   looked for.
 * - **Early**: an informer encodes before the store does, so that a first list never stands in memory as
 *   objects. Each item of a list is encoded as it comes out of the decoder (or the stream), and its index
 *   values are worked out then; reflector, queue, store, mailboxes pass the encoded object on as if it were
 *   the object. They use its key and its live metadata. It is decoded for handlers, observers and readers.
 *   See informer/intake.ts.
 *
 * @module
 */

import { deletionHandlingMetaNamespaceKey, type KeyFunc, metaNamespaceKey } from "../meta/keys.ts";
import { type HoldText, ObjectTextReader } from "../text/object_text_reader.ts";
import { metaOf, type ObjectMeta, resourceVersionOf } from "../meta/object.ts";
import type { FieldTexts } from "../text/field_tree.ts";
import { closingQuote } from "../text/json_walk.ts";
import { isPlainJson, isSameJson } from "../util/json.ts";
import { fieldPathOf, type Indexers, type IndexFunc } from "./index_func.ts";
import { FieldReader, HeldFields } from "./field_reader.ts";
import {
  type Held,
  type HeldObject,
  type HeldTransform,
  type Holding,
  type HoldingOptions,
  type KeyedHead,
  newHead,
} from "./holding.ts";
import type { TransformFunc } from "./transform.ts";

/**
 * An object, encoded: immutable, and as good as the object wherever only its key and the metadata that is
 * live matter, in `metaOf` for one.
 */
export class TextObject implements HeldObject {
  /** What the key function gives for the object. */
  readonly key: string;
  readonly uid: string | undefined;
  /** As `resourceVersionOf` gives it: `undefined` for an object without metadata. */
  readonly resourceVersion: string | undefined;
  readonly namespace: string | undefined;
  /** May be those of another object that has the same. */
  readonly labels: Labels | undefined;
  readonly apiVersion: string | undefined;
  readonly kind: string | undefined;
  /**
   * What is live of the object's metadata: this object itself, so that `metaOf` reads it without a call;
   * `undefined` for an object without metadata.
   */
  readonly metadata: this | undefined;
  /** For the holding that made it. */
  readonly text: string;
  /** The values of its fields until the indices have them, if the source read them. */
  fields: FieldTexts | undefined;

  constructor(key: string, metadata: LiveMetadata, text: string) {
    this.key = key;
    this.uid = metadata.uid;
    this.resourceVersion = metadata.resourceVersion;
    this.namespace = metadata.namespace;
    this.labels = metadata.labels;
    this.apiVersion = metadata.apiVersion;
    this.kind = metadata.kind;
    this.metadata = metadata.resourceVersion === undefined ? undefined : this;
    this.text = text;
    this.fields = undefined;
  }
}

/** What stays readable of an object that is encoded. */
interface LiveMetadata {
  readonly apiVersion: string | undefined;
  readonly kind: string | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly namespace: string | undefined;
  readonly labels: Labels | undefined;
}

type Labels = Readonly<Record<string, string>>;

/**
 * Options of `texts` and `shortTexts`.
 *
 * @category Stores
 */
export interface TextsOptions {
  /** How many objects are kept decoded; 128 by default. */
  readonly hotObjects?: number;
}

/** Between an object's JSON text and what is held of it. */
export interface TextForm {
  /** `fields`: the values of the indexed fields in the order of their paths, if the source read them. */
  encode(json: string, fields?: FieldTexts): string;
  decode(text: string): string;
  /** The store has an index of a field. */
  fieldAdded?(path: string): void;
}

/** Encodes and decodes the objects of one store. */
export class TextHolding<T> implements Holding<T> {
  /** What is held of a text; the text itself if it is `undefined`. */
  readonly #form: TextForm | undefined;
  readonly #keyFunc: KeyFunc;
  readonly #readsMetadataOnly: boolean;
  readonly #options: TextsOptions & HoldingOptions;
  /** In the order they were used, the latest last. */
  readonly #hot = new Map<TextObject, T>();
  /** Texts as they came, the latest last, until they are parsed: what is held of them costs more to read. */
  readonly #came = new Map<TextObject, string>();
  #cameLength = 0;
  /** The index functions that run early. */
  readonly #early: Wrapper<T>[] = [];
  /** What {@linkcode Holding.heldIndex} made of which. */
  readonly #wrappers = new WeakMap<IndexFunc<Held<T>>, Wrapper<T>>();
  /** The one that the store calls last of those with a field. */
  #lastField: Wrapper<T> | undefined;
  /** What was decoded last for an index function: there may be several, and each reads it. */
  #indexed: { readonly held: TextObject; readonly object: T } | undefined;
  readonly #fields = new HeldFields<TextObject>();
  /** Reads names, where they are not in the keys. */
  #names: FieldReader | undefined;
  readonly #textOf = (held: TextObject): string => this.#text(held);
  /**
   * Of the object encoded last. Objects that were made alike come one after the other in a list, and have the
   * same.
   */
  #namespace: string | undefined;
  #labels: Labels | undefined;
  #apiVersion: string | undefined;
  #kind: string | undefined;
  /** What they gave when an object was encoded; `undefined` where they threw. */
  #indexValues = new WeakMap<TextObject, (readonly string[] | undefined)[]>();

  constructor(keyFunc: KeyFunc, form?: TextForm, options: TextsOptions & HoldingOptions = {}) {
    this.#form = form;
    this.#keyFunc = keyFunc;
    this.#readsMetadataOnly = READ_METADATA_ONLY.has(keyFunc);
    this.#options = options;
  }

  /** The key function, for objects that may be encoded. */
  readonly keyFunc: KeyFunc = (held) => held instanceof TextObject ? held.key : this.#keyFunc(held);

  isHeld(value: unknown): boolean {
    return value instanceof TextObject;
  }

  /**
   * Encodes an object; returns it as it is if it is encoded already, is no plain JSON value, or has no key.
   *
   * @param key Its key, where that is not what the key function gives.
   */
  hold(object: Held<T>, key?: string): Held<T> {
    if (object instanceof TextObject || typeof object !== "object" || !isPlainJson(object)) return object;
    const own = object as T;
    const live = this.#liveMetadata(own);
    if (live === undefined) return object;
    try {
      key ??= this.#keyFunc(object);
    } catch {
      return object; // whatever needs the key throws why there is none
    }
    const encoded = new TextObject(key, live, this.#encoded(JSON.stringify(object)));
    this.#heat(encoded, own);
    return encoded;
  }

  /**
   * Encodes an object that will be stored much later, with others: asks the index functions now, while it is
   * at hand. To be followed by {@linkcode TextHolding.listStored}.
   */
  holdEarly(early: Held<T>): Held<T> {
    const held = this.hold(early);
    if (held instanceof TextObject && this.#early.some(({ place }) => !hasField(held, place))) {
      const values = this.#early.map((wrapper) => {
        try {
          if (hasField(held, wrapper.place)) return undefined;
          return held === early ? this.#valuesIn(wrapper, held) : wrapper.indexFunc(early as T);
        } catch {
          return undefined; // it runs again when the object is stored
        }
      });
      this.#indexValues.set(held, values);
    }
    return held;
  }

  /** Holds the text that a source has; the object only if it cannot be held as text. */
  readonly holdText: HoldText = {
    reader: new ObjectTextReader(this.#fields.fields),
    hold: (text, head, read) => {
      try {
        const live = this.#liveMetadata(head as T, read?.key !== undefined);
        if (live === undefined) return JSON.parse(text);
        // Another key function may read what is not in the head.
        const key = this.#readsMetadataOnly
          ? read?.key ?? this.#keyFunc(head)
          : this.#keyFunc(JSON.parse(text));
        const held = new TextObject(key, live, this.#encoded(text, read?.fields));
        if (this.#lastField !== undefined) held.fields = read?.fields;
        if (held.text !== text) this.#keepText(held, text);
        return held;
      } catch {
        return JSON.parse(text); // whatever needs the key throws why there is none
      }
    },
  };

  /** What was encoded early has been stored. */
  listStored(): void {
    this.#indexed = undefined;
    this.#came.clear();
    this.#cameLength = 0;
    this.#fields.forget();
    this.#indexValues = new WeakMap();
  }

  /** Its key and metadata. Its name is in its key; with another key function, it is read from the text. */
  head(held: Held<T>): KeyedHead {
    if (!(held instanceof TextObject)) return newHead(this.#keyFunc(held), metaOf(held));
    return newHead(held.key, held as ObjectMeta, this.#nameOf(held));
  }

  #nameOf(held: TextObject): string {
    if (this.#readsMetadataOnly) {
      return held.namespace ? held.key.slice(held.namespace.length + 1) : held.key;
    }
    this.#names ??= newNameReader();
    return this.#names.read(this.#text(held))[0][0] ?? "";
  }

  /** The object, which is hot from then on. */
  open(held: Held<T>): T {
    if (!(held instanceof TextObject)) return held as T;
    const object = this.peek(held);
    this.#heat(held, object);
    return object;
  }

  /** The object, leaving what is hot. */
  peek(held: Held<T>): T {
    if (!(held instanceof TextObject)) return held as T;
    if (this.#indexed?.held === held) return this.#indexed.object;
    const hot = this.#hot.get(held);
    if (hot !== undefined) return hot;
    const object = JSON.parse(this.#text(held));
    this.#options.onOpened?.(object);
    return object;
  }

  /** The object's JSON text, as it came or as `JSON.stringify` writes it. */
  json(held: Held<T>): string | undefined {
    return held instanceof TextObject ? this.#text(held) : undefined;
  }

  #encoded(json: string, fields?: FieldTexts): string {
    return this.#form === undefined ? json : this.#form.encode(json, fields);
  }

  #text(held: TextObject): string {
    return this.#form === undefined ? held.text : this.#came.get(held) ?? this.#form.decode(held.text);
  }

  #keepText(held: TextObject, text: string): void {
    this.#came.set(held, text);
    this.#cameLength += text.length;
    if (this.#cameLength <= KEPT_TEXT) return;
    for (const [oldest, { length }] of this.#came) {
      this.#came.delete(oldest);
      this.#cameLength -= length;
      if (this.#cameLength <= KEPT_TEXT) return;
    }
  }

  #dropText(held: TextObject): void {
    const { length } = this.#came.get(held) ?? "";
    if (this.#came.delete(held)) this.#cameLength -= length;
  }

  /**
   * Whether two objects have the same content. Neither becomes hot. Mostly the texts are the same letter for
   * letter. If not, they are parsed; a number with more digits than JavaScript's numbers have is not the same
   * as one that is written otherwise.
   */
  isSameContent(a: Held<T>, b: Held<T>): boolean {
    if (!(a instanceof TextObject)) {
      return b instanceof TextObject ? this.#isSameAsText(a, b) : isSameJson(a, b);
    }
    if (!(b instanceof TextObject)) return this.#isSameAsText(b, a);
    if (a.text === b.text) return true;
    try {
      const [left, right] = [this.#text(a), this.#text(b)];
      return left === right ||
        (isSameJson(this.peek(a), this.peek(b)) && !mayLoseDigits(left) && !mayLoseDigits(right));
    } catch {
      return false; // an earlier state was deleted from the disk
    }
  }

  #isSameAsText(object: Held<T>, held: TextObject): boolean {
    try {
      const json = this.#text(held);
      return JSON.stringify(object) === json || (isSameJson(object, this.peek(held)) && !mayLoseDigits(json));
    } catch {
      return false; // the object holds itself, say, as nothing that was encoded does; or its text was deleted
    }
  }

  convert<From, To>(whole: From, conversion: (whole: From) => To): To {
    return conversion(whole);
  }

  heldTransform(transform: TransformFunc<T> | undefined): HeldTransform<T> {
    return (object, key) =>
      object instanceof TextObject
        ? object
        : this.hold(transform === undefined ? object : transform(object as T), key);
  }

  /**
   * An index function for objects that may be encoded. One of
   * `fieldIndex` reads the text of an object that is not decoded.
   */
  heldIndex(indexFunc: IndexFunc<T>): IndexFunc<Held<T>> {
    const path = fieldPathOf(indexFunc);
    const place = path === undefined ? undefined : this.#fields.add(path);
    if (path !== undefined) this.#form?.fieldAdded?.(path);
    const wrapper: Wrapper<T> = { indexFunc, place, early: undefined };
    const wrapped: IndexFunc<Held<T>> = (held) => {
      if (!(held instanceof TextObject)) return indexFunc(held as T);
      const { fields } = held;
      if (wrapper === this.#lastField) held.fields = undefined;
      if (fields !== undefined && place !== undefined && place < fields.length) return fields[place];
      if (wrapper.early === undefined) return this.#valuesIn(wrapper, held);
      return this.#indexValues.get(held)?.[wrapper.early] ?? this.#valuesIn(wrapper, held);
    };
    this.#wrappers.set(wrapped, wrapper);
    return wrapped;
  }

  /** From now on these wrapped index functions run when an object is encoded early. */
  indexersAdded(wrapped: Indexers<Held<T>>): void {
    for (const one of Object.values(wrapped)) {
      const wrapper = this.#wrappers.get(one);
      if (wrapper === undefined) continue;
      wrapper.early = this.#early.push(wrapper) - 1;
      if (wrapper.place !== undefined) this.#lastField = wrapper;
    }
  }

  #valuesIn({ indexFunc, place, early }: Wrapper<T>, held: TextObject): readonly string[] {
    if (place === undefined) {
      const object = this.#decodedToIndex(held);
      // It was written just now, and handlers may want it next. The others are what a new index walks
      // through.
      if (early !== undefined) this.#heat(held, object);
      return indexFunc(object);
    }
    const decoded = this.#indexed?.held === held ? this.#indexed.object : this.#hot.get(held);
    return decoded === undefined ? this.#fields.values(held, place, this.#textOf) : indexFunc(decoded);
  }

  #decodedToIndex(held: TextObject): T {
    if (this.#indexed?.held !== held) this.#indexed = { held, object: this.peek(held) };
    return this.#indexed.object;
  }

  /** What stays readable of an object; `undefined` if that is not what it should be. */
  #liveMetadata(object: T, sharesLabels = false): LiveMetadata | undefined {
    const metadata = metaOf(object);
    const resourceVersion = resourceVersionOf(object) as unknown;
    const uid = metadata?.uid as unknown;
    const namespace = metadata?.namespace as unknown;
    if (!isTextOrAbsent(uid) || !isTextOrAbsent(resourceVersion) || !isTextOrAbsent(namespace)) {
      return undefined;
    }
    if (namespace !== this.#namespace) this.#namespace = namespace;
    if (sharesLabels || !isSame(metadata?.labels, this.#labels)) this.#labels = metadata?.labels;
    const { apiVersion, kind } = (object ?? {}) as { apiVersion?: unknown; kind?: unknown };
    if (!isTextOrAbsent(apiVersion) || !isTextOrAbsent(kind)) return undefined;
    if (apiVersion !== this.#apiVersion) this.#apiVersion = apiVersion;
    if (kind !== this.#kind) this.#kind = kind;
    return {
      apiVersion: this.#apiVersion,
      kind: this.#kind,
      uid,
      resourceVersion,
      namespace: this.#namespace,
      labels: this.#labels,
    };
  }

  #heat(encoded: TextObject, object: T): void {
    const hot = this.#hot;
    this.#dropText(encoded);
    hot.delete(encoded);
    hot.set(encoded, object);
    if (hot.size <= (this.#options.hotObjects ?? HOT_OBJECTS)) return;
    for (const coldest of hot.keys()) {
      hot.delete(coldest);
      return;
    }
  }
}

/** Whether the values of the field at this place are known. */
function hasField({ fields }: TextObject, place: number | undefined): boolean {
  return place !== undefined && fields !== undefined && place < fields.length;
}

/** An index function, and its place among those that run early. */
interface Wrapper<T> {
  readonly indexFunc: IndexFunc<T>;
  /** That of its field, if it reads one. */
  readonly place: number | undefined;
  early: number | undefined;
}

const HOT_OBJECTS = 128;
/** How many characters of texts are kept as they came: more than one chunk of a watch brings. */
const KEPT_TEXT = 1 << 18;
const READ_METADATA_ONLY: ReadonlySet<KeyFunc> = new Set([
  metaNamespaceKey,
  deletionHandlingMetaNamespaceKey,
]);

function newNameReader(): FieldReader {
  const reader = new FieldReader();
  reader.add("metadata.name");
  return reader;
}

function isTextOrAbsent(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

/** Whether a JSON text may have a number of which JavaScript's has not all digits. */
function mayLoseDigits(json: string): boolean {
  for (let at = 0;;) {
    const open = json.indexOf('"', at);
    if (LONG_NUMBER.test(open < 0 ? json.slice(at) : json.slice(at, open))) return true;
    at = open < 0 ? 0 : closingQuote(json, open) + 1;
    if (at === 0) return false;
  }
}

// Fewer digits than 16, and exponents of two, survive.
const LONG_NUMBER = /[\d.]{16}|\d[eE][+-]?\d{3}/;

/** Whether both are the same labels. */
function isSame(a: Labels | undefined, b: Labels | undefined): boolean {
  if (!a || !b) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
