/**
 * Stored objects as the texts that their source sent: an object is not parsed before it is read, and what is
 * read of it is parsed by itself (text/lazy_object.ts). Objects without a source text are held as they are.
 *
 * - **What stays live** is what is read without the object: its key; what a relist compares first, uid and
 *   resourceVersion; and what objects are selected by, namespace and labels.
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
import type { LiveMetadata, ObjectHead, ReadAlong } from "../text/object_reader.ts";
import { LazyOrigin, LazyText, TextObject } from "../text/lazy_object.ts";
import { isSameJson, isTextOrAbsent } from "../util/json.ts";
import { fieldPathOf, type Indexers, type IndexFunc } from "./index_func.ts";
import {
  type Held,
  type HeldTransform,
  type Holding,
  type HoldingOptions,
  type KeyedHead,
  newHead,
} from "./holding.ts";
import { LearntIndex } from "./store_index.ts";
import type { TransformFunc } from "./transform.ts";

/** An object that index functions read. */
export interface Opened {
  /** Returns what `reader` makes of the object; `reader` keeps nothing of it. */
  read<R>(reader: (object: object) => R): R;
}

/** Another form in which texts are held. */
interface Encoding {
  readonly decode?: (text: string) => string;
  /** Whether the form has the values of fields, too. */
  readonly storesFields?: boolean;
}

/** Holds the objects of one store as texts. */
export class TextHolding<T> implements Holding<T> {
  /** The key function of the objects themselves. */
  protected readonly keyOfObject: KeyFunc;
  readonly #readsMetadataOnly: boolean;
  /** The fields of indices, and their values in the object that was read last for one of them. */
  readonly #fields = new TextFields();
  #fieldsRead: { readonly held: TextObject; readonly values: FieldTexts } | undefined;
  readonly #reader: ObjectTextReader;
  /** The origin that the lazy objects of this store share. */
  readonly origin: LazyOrigin;
  /** The index functions of the store, in its order. */
  protected readonly added: HeldIndex<T>[] = [];
  /** Whether index functions are learnt: not where freezing what is read must throw, or fields are stored. */
  readonly #learns: boolean;
  /** The values of the object that was held last: neighbours in a list, made alike, share them. */
  #namespace: string | undefined;
  #labels: LiveMetadata["labels"];
  #apiVersion: string | undefined;
  #kind: string | undefined;

  constructor(keyFunc: KeyFunc, { freeze, decode, storesFields }: HoldingOptions & Encoding = {}) {
    this.keyOfObject = keyFunc;
    this.#readsMetadataOnly = READ_METADATA_ONLY.has(keyFunc);
    this.#learns = freeze === undefined && !storesFields;
    this.origin = new LazyOrigin({
      freeze,
      keysHaveNames: this.#readsMetadataOnly,
      membersOf: (text) => {
        const read = this.#read(text);
        return read !== undefined && read.text === text ? read.members : null;
      },
      decode,
    });
    const reader = this.#reader = new ObjectTextReader(this.#fields, this.origin);
    this.holdText = { reader, hold: (text, head, read) => this.#holdRead(text, head, read) };
  }

  /** The key function, for objects that may be held as text. */
  readonly keyFunc: KeyFunc = (held) => held instanceof TextObject ? held.key : this.keyOfObject(held);

  isHeld(value: unknown): boolean {
    return value instanceof LazyText;
  }

  /** Every object is held as it is. */
  hold(object: Held<T>, _key?: string): Held<T> {
    if (object instanceof LazyText) object.adopt(this.origin);
    return object;
  }

  /** A list is stored after all of it has come: index functions are looked at while it comes. */
  holdEarly(early: Held<T>): Held<T> {
    const held = this.hold(early);
    if (held instanceof LazyText) {
      for (const { learnt } of this.added) {
        if (learnt?.isCurious()) learnt.learn(held, held.fields);
      }
    }
    return held;
  }

  /** Holds the text that a source has; the object only if it cannot be held as text. */
  readonly holdText: HoldText;

  #holdRead(text: string, head: ObjectHead, read: ReadAlong | undefined): unknown {
    try {
      const live = this.liveMetadata(head, head.metadata);
      if (live === undefined) return JSON.parse(text);
      // Another key function may read what is not in the head.
      const key = this.#readsMetadataOnly
        ? read?.key ?? this.keyOfObject(head)
        : this.keyOfObject(JSON.parse(text));
      const held = this.holdLazy(new LazyText(key, live, text, this.origin, read?.members), read?.fields);
      if (this.added.length > 0 && read?.fields.length) held.fields = read.fields;
      return held;
    } catch {
      return JSON.parse(text); // whatever needs the key throws why there is none
    }
  }

  /** The held form of an object whose text has come. */
  protected holdLazy(lazy: LazyText, _fields: FieldTexts | undefined): TextObject {
    return lazy;
  }

  /** Forgets the values of objects that were held early: they are stored. */
  listStored(): void {
    this.#fieldsRead = undefined;
  }

  /** The key and metadata of a held object; the name comes from its key, or else from the text. */
  head(held: Held<T>): KeyedHead {
    if (!(held instanceof TextObject)) return newHead(this.keyOfObject(held), metaOf(held));
    return newHead(held.key, held as ObjectMeta, this.#nameOf(held));
  }

  #nameOf(held: TextObject): string {
    if (this.#readsMetadataOnly) return held.nameInKey;
    const text = this.textOf(held);
    const { metadata } = this.#read(text)?.head ?? JSON.parse(text);
    return (metadata as ObjectMeta | undefined)?.name ?? "";
  }

  /** Reads a text that need not be parsed. */
  #read(text: string): ObjectText | undefined {
    const read = text.isWellFormed() ? this.#reader.read(text) : undefined;
    return read instanceof ObjectText ? read : undefined;
  }

  open(held: Held<T>): T {
    return held instanceof LazyText ? held.open() as T : held as T;
  }

  openListed(held: Held<T>): T {
    return this.open(held);
  }

  /** The object, or another of the same text. */
  peek(held: Held<T>): T {
    return held instanceof LazyText ? held.peek() as T : this.openListed(held);
  }

  /** Texts are dropped once most of them was parsed, if they are not served. */
  keepTexts(): void {
    this.origin.keepTexts();
  }

  json(held: Held<T>, fields?: FieldCut): string | undefined {
    if (!(held instanceof LazyText)) return undefined;
    return fields ? fields.textOf(held) : held.text || undefined; // empty once it was dropped
  }

  cut(held: Held<T>, fields: FieldCut): object | undefined {
    return held instanceof LazyText ? fields.objectOf(held) : undefined;
  }

  /** The JSON text, made if it is not there. */
  protected textOf(held: TextObject): string {
    return (held as LazyText).json ?? JSON.stringify((held as LazyText).content);
  }

  /**
   * Whether two objects have the same content. Mostly the texts are the same letter for
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
    return transform &&
      ((object, key) => object instanceof TextObject ? object : this.hold(transform(object as T), key));
  }

  /** An index function for objects that may be held as text. One of `fieldIndex` reads the text. */
  heldIndex(indexFunc: IndexFunc<T>): IndexFunc<Held<T>> {
    const path = fieldPathOf(indexFunc);
    const place = path === undefined ? undefined : this.#fields.add(path);
    this.#fieldsRead = undefined;
    const learnt = this.#learns && path === undefined ? new LearntIndex(indexFunc, this.#fields) : undefined;
    const wrapped = (held: Held<T>) => {
      if (!(held instanceof TextObject)) return indexFunc(held as T);
      const values = knownValues(held, index) ?? this.valuesIn(index, held);
      if (index === this.added[this.added.length - 1]) held.fields = undefined; // it is called last
      return values;
    };
    const fieldPath = path === undefined ? undefined : { fieldPath: path };
    const index: HeldIndex<T> = Object.assign(wrapped, { indexFunc, place, learnt }, fieldPath);
    return index;
  }

  indexersAdded(wrapped: Indexers<Held<T>>): void {
    for (const one of Object.values(wrapped)) if ("indexFunc" in one) this.added.push(one as HeldIndex<T>);
  }

  /** The values of an object in an index, of which they are not known. */
  protected valuesIn({ indexFunc, place, learnt }: HeldIndex<T>, held: TextObject): readonly string[] {
    if (place === undefined) {
      const opened = this.openedToIndex(held);
      const values = opened.read(indexFunc as unknown as (object: object) => readonly string[]);
      learnt?.learn(opened, held.fields, values);
      return values;
    }
    if (this.#fieldsRead?.held !== held) {
      this.#fieldsRead = { values: this.#reader.fieldsOf(this.textOf(held)), held };
    }
    return this.#fieldsRead.values[place];
  }

  protected openedToIndex(held: TextObject): Opened {
    return held as LazyText;
  }

  /** The metadata that stays readable; `undefined` if it is malformed. */
  protected liveMetadata(
    { apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown },
    metadata: ObjectMeta | undefined,
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
    if (!isSameJson(metadata?.labels, this.#labels)) this.#labels = metadata?.labels;
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
export function knownValues<T>(
  { fields }: TextObject,
  { place, learnt }: HeldIndex<T>,
): readonly string[] | undefined {
  if (fields === undefined) return undefined;
  return place === undefined ? learnt?.values(fields) : fields[place];
}

/** An index function for objects that are held as text. */
export interface HeldIndex<T> extends IndexFunc<Held<T>> {
  readonly indexFunc: IndexFunc<T>;
  /** The place of its field, if it reads one. */
  readonly place: number | undefined;
  /** The learnt fields of an index function that reads others. */
  readonly learnt: LearntIndex | undefined;
}

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
