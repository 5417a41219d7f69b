/**
 * Stored objects as texts in another form: short ones, or places on a disk.
 *
 * Those that were written or looked up last are kept decoded as well: two reads return the same object. Only
 * plain JSON values are encoded; anything else (a Date, a class, a hole in an array, -0, more than 500
 * levels) and whatever holds it is stored as it is. A property that is `undefined` is left out, since setting
 * fields to `undefined` is how transforms drop them.
 * @module
 */

import { type KeyFunc, metaOf } from "../meta/object.ts";
import type { FieldCut } from "../text/field_cut.ts";
import type { FieldTexts } from "../text/field_tree.ts";
import { LazyOrigin, LazyText, TextObject } from "../text/lazy_object.ts";
import { Recent } from "../util/collections.ts";
import { isPlainJson } from "../util/json.ts";
import type { Held, HeldTransform, HoldingOptions } from "./holding.ts";
import { fieldPathOf, type IndexFunc } from "./index_func.ts";
import { checkedValues } from "./store_index.ts";
import { type HeldIndex, knownValues, type Opened, TextHolding } from "./text_holding.ts";
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

/** A decoded object. */
interface Decoded extends Opened {
  /** The JSON text as it came, if it is there. */
  readonly json: string | undefined;
  /** The object, for a user. */
  open(): object;
}

/** Holds the objects of one store as encoded texts. */
export class EncodedHolding<T> extends TextHolding<T> {
  readonly #form: TextForm;
  /** The object that was opened last for an index function. */
  #indexed: { readonly held: TextObject; readonly opened: Decoded } | undefined;
  /** The origin of decoded objects: handlers receive old states, and read less of them. */
  readonly #decoded: LazyOrigin = new LazyOrigin(this.origin, true);
  /** Decoded objects that were used last. */
  readonly #hot: Recent<TextObject, Decoded>;
  /** Objects as they came: their held forms cost more to read. */
  readonly #came = new Recent<TextObject, LazyText>(KEPT_TEXT);
  /** The values of index functions of objects held early; `undefined` where they threw. */
  #earlyValues = new WeakMap<TextObject, (readonly string[] | undefined)[]>();

  constructor(keyFunc: KeyFunc, form: TextForm, options: TextsOptions & HoldingOptions = {}) {
    const storesFields = form.fieldAdded !== undefined;
    super(keyFunc, { ...options, storesFields, decode: (text) => form.decode(text) });
    this.#form = form;
    this.#hot = new Recent(Math.ceil((options.hotObjects ?? HOT_OBJECTS) / 2));
  }

  override isHeld(value: unknown): boolean {
    return value instanceof TextObject && !(value instanceof LazyText);
  }

  /**
   * Encodes an object; returns it as it is if it is held as text already, is no plain JSON value, or has no
   * key.
   * @param key The object's key, if it is not the key function's.
   */
  override hold(object: Held<T>, key?: string): Held<T> {
    if (object instanceof TextObject) return super.hold(object);
    if (typeof object !== "object" || object === null || !isPlainJson(object)) return object;
    const own = object as T & object;
    const live = this.liveMetadata(own, metaOf(own));
    if (live === undefined) return object;
    try {
      key ??= this.keyOfObject(object);
    } catch {
      return object; // whatever needs the key throws why there is none
    }
    const held = new TextObject(key, live, this.#form.encode(JSON.stringify(object)));
    this.#hot.set(held, { open: () => own, read: (reader) => reader(own), json: undefined });
    return held;
  }

  /** Asks the index functions, too, while the object is at hand. */
  override holdEarly(early: Held<T>): Held<T> {
    const held = super.holdEarly(early);
    if (!(held instanceof TextObject)) return held;
    if (this.added.some((index) => knownValues(held, index) === undefined)) {
      const values = this.added.map((index) => {
        try {
          if (knownValues(held, index) !== undefined) return undefined;
          return checkedValues(held === early ? this.valuesIn(index, held) : index.indexFunc(early as T));
        } catch {
          return undefined; // it runs again when the object is stored
        }
      });
      this.#earlyValues.set(held, values);
    }
    return held;
  }

  protected override holdLazy(lazy: LazyText, fields: FieldTexts | undefined): TextObject {
    const held = new TextObject(lazy.key, lazy, this.#form.encode(lazy.text, fields), lazy.shape);
    this.#came.set(held, lazy, lazy.text.length);
    return held;
  }

  override listStored(): void {
    super.listStored();
    this.#indexed = undefined;
    this.#came.clear();
    this.#earlyValues = new WeakMap();
  }

  /** The object, which is hot from then on. */
  override open(held: Held<T>): T {
    if (!this.isHeld(held)) return super.open(held);
    const opened = this.#opened(held as TextObject);
    this.#hot.set(held as TextObject, opened);
    return opened.open() as T;
  }

  /** The object, leaving what is hot. */
  override openListed(held: Held<T>): T {
    return held instanceof TextObject ? this.#opened(held).open() as T : held as T;
  }

  /** The object's JSON text as it came, or as `JSON.stringify` writes it. */
  override json(held: Held<T>, fields?: FieldCut): string | undefined {
    if (!this.isHeld(held)) return super.json(held, fields);
    const text = this.textOf(held as TextObject);
    return fields ? fields.text(text) : text;
  }

  override cut(held: Held<T>, fields: FieldCut): object | undefined {
    if (!this.isHeld(held)) return super.cut(held, fields);
    return fields.objectOf({ json: this.textOf(held as TextObject), members: undefined });
  }

  /** The object, to be read: the held value itself if it has the text. */
  #opened(held: TextObject): Decoded {
    if (held instanceof LazyText) return held;
    return this.#hot.get(held) ?? this.#came.get(held) ?? LazyText.encoded(held, this.#decoded);
  }

  /** There may be several index functions, and each reads the object. */
  protected override openedToIndex(held: TextObject): Opened {
    if (held instanceof LazyText) return held;
    if (this.#indexed?.held !== held) this.#indexed = { held, opened: this.#opened(held) };
    return this.#indexed.opened;
  }

  protected override textOf(held: TextObject): string {
    if (held instanceof LazyText) return super.textOf(held);
    return this.#came.get(held)?.json ?? this.#hot.get(held)?.json ?? this.#form.decode(held.text);
  }

  override heldTransform(transform: TransformFunc<T> | undefined): HeldTransform<T> | undefined {
    return super.heldTransform(transform ?? ((object) => object));
  }

  override heldIndex(indexFunc: IndexFunc<T>): IndexFunc<Held<T>> {
    const held = super.heldIndex(indexFunc);
    const path = fieldPathOf(indexFunc);
    if (path !== undefined) this.#form.fieldAdded?.(path);
    return held;
  }

  protected override valuesIn(index: HeldIndex<T>, held: TextObject): readonly string[] {
    const early = this.#earlyValues.get(held)?.[this.added.indexOf(index)];
    if (early !== undefined) return early;
    const hot = index.place === undefined ? undefined : this.#hot.get(held);
    if (hot === undefined) return super.valuesIn(index, held);
    return hot.read(index.indexFunc as unknown as (object: object) => readonly string[]);
  }
}

const HOT_OBJECTS = 128;
/** How many characters of texts are kept as they came: more than one chunk of a watch brings. */
const KEPT_TEXT = 1 << 18;
