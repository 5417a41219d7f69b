/**
 * Stored objects as texts: as their source sent them, or short ones.
 *
 * - **The text** is the one that the source had: the object is not parsed before it is read, and what is read
 *   of it is parsed by itself (text/lazy_object.ts). Without a {@linkcode TextForm} a store holds such
 *   objects as {@linkcode LazyText}, and what else is put in as it is; with one, as the string that the form
 *   makes.
 * - **What stays live** is what is read without the object: its key; what a relist compares first, uid and
 *   resourceVersion; and what objects are selected by, namespace and labels.
 * - **With a form**, those that were written or looked up last are kept decoded as well: two reads return the
 *   same object. Only plain JSON values are encoded; anything else (a Date, a class, a hole in an array, -0,
 *   more than 500 levels) and whatever holds it is stored as it is. A property that is `undefined` is left
 *   out, since setting fields to `undefined` is how transforms drop them.
 * - **Early**: an informer holds an object as soon as it has come, so that a first list never stands in
 *   memory as objects; reflector, queue, store and mailboxes pass on what is held (`Intake`).
 * @module
 */

import {
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
  metaNamespaceKey,
  metaOf,
  type ObjectMeta,
} from "../meta/object.ts";
import { type HoldText, ObjectText, ObjectTextReader } from "../text/object_text_reader.ts";
import type { FieldCut } from "../text/field_cut.ts";
import { type FieldTexts, TextFields } from "../text/field_tree.ts";
import { closingQuote } from "../text/json_walk.ts";
import type { ObjectHead, ReadAlong } from "../text/object_reader.ts";
import { LazyOrigin, LazyText, type LiveMetadata, TextObject } from "../text/lazy_object.ts";
import { Recent } from "../util/collections.ts";
import { isPlainJson, isSameJson, isTextOrAbsent } from "../util/json.ts";
import { fieldPathOf, type Indexers, type IndexFunc } from "./index_func.ts";
import { LearntIndex } from "./learnt_index.ts";
import { checkedValues } from "./store_index.ts";
import {
  type Held,
  type HeldTransform,
  type Holding,
  type HoldingOptions,
  type KeyedHead,
  newHead,
} from "./holding.ts";
import type { TransformFunc } from "./transform.ts";

/** Options of `shortTexts`. */
export interface TextsOptions {
  /** How many objects are kept decoded at most, of those that were used last; 128 by default. */
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

/** What an object is while it is decoded. */
interface Opened {
  /** The JSON text as it came, if it is there. */
  readonly json: string | undefined;
  /** The object, for a user. */
  open(): object;
  /** What `reader` makes of the object, of which it keeps nothing. */
  read<R>(reader: (object: object) => R): R;
}

/** Holds the objects of one store as texts. */
export class TextHolding<T> implements Holding<T> {
  /** What is held of a text; the text itself if it is `undefined`. */
  readonly #form: TextForm | undefined;
  readonly #keyFunc: KeyFunc;
  readonly #readsMetadataOnly: boolean;
  /** The fields of indices, and their values in the object that was read last for one of them. */
  readonly #fields = new TextFields();
  #fieldsRead: { readonly held: TextObject; readonly values: FieldTexts } | undefined;
  /** What was opened last for an index function. */
  #indexed: { readonly held: TextObject; readonly opened: Opened } | undefined;
  readonly #reader: ObjectTextReader;
  /** What its lazy objects have in common. */
  readonly #origin: LazyOrigin;
  /** The same for those that are decoded: of old states that handlers receive, users read less. */
  readonly #decoded: LazyOrigin;
  /** Decoded objects that were used last. */
  readonly #hot: Recent<TextObject, Opened>;
  /** Objects as they came: what is held of them costs more to read. */
  readonly #came = new Recent<TextObject, LazyText>(KEPT_TEXT);
  /** The index functions that run early. */
  readonly #early: Wrapper<T>[] = [];
  /** What {@linkcode Holding.heldIndex} made of which. */
  readonly #wrappers = new WeakMap<IndexFunc<Held<T>>, Wrapper<T>>();
  /** The one that the store calls last. */
  #lastEarly: Wrapper<T> | undefined;
  /** Whether index functions are learnt: not where freezing what is read must throw, or fields are stored. */
  readonly #learns: boolean;
  /**
   * Of the object that was held last. Objects that were made alike come one after the other in a list, and
   * have the same.
   */
  #namespace: string | undefined;
  #labels: LiveMetadata["labels"];
  #apiVersion: string | undefined;
  #kind: string | undefined;
  /** The values of index functions of objects held early; `undefined` where they threw. */
  #indexValues = new WeakMap<TextObject, (readonly string[] | undefined)[]>();

  constructor(keyFunc: KeyFunc, form?: TextForm, options: TextsOptions & HoldingOptions = {}) {
    this.#form = form;
    this.#keyFunc = keyFunc;
    this.#readsMetadataOnly = READ_METADATA_ONLY.has(keyFunc);
    this.#hot = new Recent(Math.ceil((options.hotObjects ?? HOT_OBJECTS) / 2));
    this.#learns = options.freeze === undefined && form?.fieldAdded === undefined;
    this.#origin = new LazyOrigin({
      freeze: options.freeze,
      keysHaveNames: this.#readsMetadataOnly,
      membersOf: (text) => {
        const read = this.#read(text);
        return read !== undefined && read.text === text ? read.members : null;
      },
      decode: form && ((text) => form.decode(text)),
    });
    this.#decoded = new LazyOrigin(this.#origin, true);
    const reader = this.#reader = new ObjectTextReader(this.#fields, this.#origin);
    this.holdText = { reader, hold: (text, head, read) => this.#holdRead(text, head, read) };
  }

  /** The key function, for objects that may be encoded. */
  readonly keyFunc: KeyFunc = (held) => held instanceof TextObject ? held.key : this.#keyFunc(held);

  isHeld(value: unknown): boolean {
    return value instanceof TextObject && value instanceof LazyText === (this.#form === undefined);
  }

  /**
   * With a form: encodes an object; returns it as it is if it is encoded already, is no plain JSON value, or
   * has no key. Without one every object is held as it is.
   * @param key Its key, where that is not what the key function gives.
   */
  hold(object: Held<T>, key?: string): Held<T> {
    if (object instanceof LazyText) object.adopt(this.#origin);
    if (this.#form === undefined || object instanceof TextObject) return object;
    if (typeof object !== "object" || !isPlainJson(object)) return object;
    const own = object as T & object;
    const live = this.#liveMetadata(own, metaOf(own));
    if (live === undefined) return object;
    try {
      key ??= this.#keyFunc(object);
    } catch {
      return object; // whatever needs the key throws why there is none
    }
    const held = new TextObject(key, live, this.#form.encode(JSON.stringify(object)));
    this.#hot.set(held, { open: () => own, read: (reader) => reader(own), json: undefined });
    return held;
  }

  /**
   * Holds an object that will be stored much later, with others. With a form it asks the index functions now,
   * while the object is at hand. To be followed by {@linkcode TextHolding.listStored}.
   */
  holdEarly(early: Held<T>): Held<T> {
    const held = this.hold(early);
    if (held instanceof LazyText) this.#learnFrom(held);
    if (this.#form === undefined || !(held instanceof TextObject)) return held;
    if (this.#early.some((wrapper) => knownValues(held, wrapper) === undefined)) {
      const values = this.#early.map((wrapper) => {
        try {
          if (knownValues(held, wrapper) !== undefined) return undefined;
          return checkedValues(
            held === early ? this.#valuesIn(wrapper, held) : wrapper.indexFunc(early as T),
          );
        } catch {
          return undefined; // it runs again when the object is stored
        }
      });
      this.#indexValues.set(held, values);
    }
    return held;
  }

  /** A list is stored after all of it has come: index functions are looked at while it comes. */
  #learnFrom(held: LazyText): void {
    for (const { learnt } of this.#early) {
      if (learnt?.isCurious()) learnt.learn(held, held.fields);
    }
  }

  /** Holds the text that a source has; the object only if it cannot be held as text. */
  readonly holdText: HoldText;

  #holdRead(text: string, head: ObjectHead, read: ReadAlong | undefined): unknown {
    try {
      const live = this.#liveMetadata(head, head.metadata, read?.key !== undefined);
      if (live === undefined) return JSON.parse(text);
      // Another key function may read what is not in the head.
      const key = this.#readsMetadataOnly
        ? read?.key ?? this.#keyFunc(head)
        : this.#keyFunc(JSON.parse(text));
      const lazy = new LazyText(key, live, text, this.#origin, read?.members);
      const held = this.#form === undefined
        ? lazy
        : new TextObject(key, live, this.#form.encode(text, read?.fields), lazy.shape);
      if (this.#lastEarly !== undefined && read?.fields.length) held.fields = read.fields;
      if (held !== lazy) this.#came.set(held, lazy, text.length);
      return held;
    } catch {
      return JSON.parse(text); // whatever needs the key throws why there is none
    }
  }

  /** What was held early has been stored. */
  listStored(): void {
    this.#indexed = undefined;
    this.#came.clear();
    this.#fieldsRead = undefined;
    this.#indexValues = new WeakMap();
  }

  /** Its key and metadata. Its name is in its key; with another key function, it is read from the text. */
  head(held: Held<T>): KeyedHead {
    if (!(held instanceof TextObject)) return newHead(this.#keyFunc(held), metaOf(held));
    return newHead(held.key, held as ObjectMeta, this.#nameOf(held));
  }

  #nameOf(held: TextObject): string {
    if (this.#readsMetadataOnly) return held.nameInKey;
    const text = this.#text(held);
    const { metadata } = this.#read(text)?.head ?? JSON.parse(text);
    return (metadata as ObjectMeta | undefined)?.name ?? "";
  }

  /** What is read of a text, if it need not be parsed. */
  #read(text: string): ObjectText | undefined {
    const read = text.isWellFormed() ? this.#reader.read(text) : undefined;
    return read instanceof ObjectText ? read : undefined;
  }

  /** The object; with a form it is hot from then on. */
  open(held: Held<T>): T {
    if (!(held instanceof TextObject)) return held as T;
    const opened = this.#opened(held);
    if (!(held instanceof LazyText)) this.#hot.set(held, opened);
    return opened.open() as T;
  }

  /** The object, leaving what is hot. */
  openListed(held: Held<T>): T {
    return held instanceof TextObject ? this.#opened(held).open() as T : held as T;
  }

  /** The object, or another of the same text. */
  peek(held: Held<T>): T {
    return held instanceof LazyText ? held.peek() as T : this.openListed(held);
  }

  /** Without a form texts are dropped once most of them was parsed, if they are not served. */
  keepTexts(): void {
    this.#origin.keepTexts();
  }

  /** The object's JSON text as it came, or as `JSON.stringify` writes it for a form. */
  json(held: Held<T>, fields?: FieldCut): string | undefined {
    if (held instanceof LazyText) return fields ? fields.textOf(held) : held.json;
    if (!(held instanceof TextObject)) return undefined;
    return fields ? fields.text(this.#text(held)) : this.#text(held);
  }

  /** A new object of some of its fields. */
  cut(held: Held<T>, fields: FieldCut): object | undefined {
    if (!(held instanceof TextObject)) return undefined;
    return fields.objectOf(held instanceof LazyText ? held : { json: this.#text(held), members: undefined });
  }

  /** What reads the object: what is held itself, if that has the text. */
  #opened(held: TextObject): Opened {
    if (held instanceof LazyText) return held;
    const opened = this.#hot.get(held) ?? this.#came.get(held);
    if (opened !== undefined) return opened;
    return LazyText.encoded(held, this.#decoded);
  }

  /** There may be several index functions, and each reads the object. */
  #openedToIndex(held: TextObject): Opened {
    if (held instanceof LazyText) return held;
    if (this.#indexed?.held !== held) this.#indexed = { held, opened: this.#opened(held) };
    return this.#indexed.opened;
  }

  /** The JSON text, made if it is not there. */
  #text(held: TextObject): string {
    if (held instanceof LazyText) return held.json ?? JSON.stringify(held.content);
    return this.#came.get(held)?.json ?? this.#hot.get(held)?.json ?? this.#form!.decode(held.text);
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
    if (a.text === b.text && a.text !== "") return true;
    try {
      const [left, right] = [this.json(a as Held<T>), this.json(b as Held<T>)];
      if (left !== undefined && left === right) return true;
      return isSameJson(this.#contentOf(a), this.#contentOf(b)) && !mayLoseDigits(left) &&
        !mayLoseDigits(right);
    } catch {
      return false; // an earlier state was deleted from the disk
    }
  }

  #isSameAsText(object: Held<T>, held: TextObject): boolean {
    try {
      const json = this.json(held as Held<T>);
      return JSON.stringify(object) === json ||
        (isSameJson(object, this.#contentOf(held)) && !mayLoseDigits(json));
    } catch {
      return false; // the object holds itself, say, as nothing that was encoded does; or its text was deleted
    }
  }

  #contentOf(held: TextObject): unknown {
    return held instanceof LazyText ? held.content : this.peek(held as Held<T>);
  }

  heldTransform(transform: TransformFunc<T> | undefined): HeldTransform<T> | undefined {
    if (this.#form === undefined && transform === undefined) return undefined;
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
    this.#fieldsRead = undefined;
    if (path !== undefined) this.#form?.fieldAdded?.(path);
    const learnt = this.#learns && path === undefined ? new LearntIndex(indexFunc, this.#fields) : undefined;
    const wrapper: Wrapper<T> = { indexFunc, place, learnt, early: undefined };
    const wrapped: IndexFunc<Held<T>> = (held) => {
      if (!(held instanceof TextObject)) return indexFunc(held as T);
      const values = knownValues(held, wrapper) ??
        (wrapper.early === undefined ? undefined : this.#indexValues.get(held)?.[wrapper.early]) ??
        this.#valuesIn(wrapper, held);
      if (wrapper === this.#lastEarly) held.fields = undefined;
      return values;
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
      this.#lastEarly = wrapper;
    }
  }

  #valuesIn({ indexFunc, place, learnt }: Wrapper<T>, held: TextObject): readonly string[] {
    const read = indexFunc as unknown as (object: object) => readonly string[];
    if (place === undefined) {
      const opened = this.#openedToIndex(held);
      const values = opened.read(read);
      learnt?.learn(opened, held.fields, values);
      return values;
    }
    const opened = held instanceof LazyText ? undefined : this.#hot.get(held);
    if (opened !== undefined) return opened.read(read);
    if (this.#fieldsRead?.held !== held) {
      this.#fieldsRead = { values: this.#reader.fieldsOf(this.#text(held)), held };
    }
    return this.#fieldsRead.values[place];
  }

  /** What stays readable of an object; `undefined` if that is not what it should be. */
  #liveMetadata(
    { apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown },
    metadata: ObjectMeta | undefined,
    sharesLabels = false,
  ): LiveMetadata | undefined {
    const resourceVersion: unknown = metadata && (metadata.resourceVersion ?? "");
    const uid: unknown = metadata?.uid;
    const namespace: unknown = metadata?.namespace;
    if (
      !isTextOrAbsent(uid) || !isTextOrAbsent(resourceVersion) || !isTextOrAbsent(namespace) ||
      !isTextOrAbsent(apiVersion) || !isTextOrAbsent(kind)
    ) {
      return undefined;
    }
    if (namespace !== this.#namespace) this.#namespace = namespace;
    if (sharesLabels || !isSame(metadata?.labels, this.#labels)) this.#labels = metadata?.labels;
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
}

/** The values of an object in an index, if they are known without the object. */
function knownValues<T>(
  { fields }: TextObject,
  { place, learnt }: Wrapper<T>,
): readonly string[] | undefined {
  if (fields === undefined) return undefined;
  return place === undefined ? learnt?.values(fields) : fields[place];
}

/** An index function, and its place among those that run early. */
interface Wrapper<T> {
  readonly indexFunc: IndexFunc<T>;
  /** The place of its field, if it reads one. */
  readonly place: number | undefined;
  /** What it reads otherwise. */
  readonly learnt: LearntIndex | undefined;
  early: number | undefined;
}

const HOT_OBJECTS = 128;
/** How many characters of texts are kept as they came: more than one chunk of a watch brings. */
const KEPT_TEXT = 1 << 18;
const READ_METADATA_ONLY: ReadonlySet<KeyFunc> = new Set([
  metaNamespaceKey,
  deletionHandlingMetaNamespaceKey,
]);

/** Whether a JSON text, if there is one, may have a number of which JavaScript's has not all digits. */
function mayLoseDigits(json: string | undefined): boolean {
  if (json === undefined) return false; // what is compared is a plain object
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
function isSame(a: LiveMetadata["labels"], b: LiveMetadata["labels"]): boolean {
  if (!a || !b) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
