/**
 * Objects that are parsed where they are read.
 *
 * A store holds an object as a {@linkcode TextObject}: its text, and what is needed without the object.
 * Readers receive a {@linkcode LazyText} as an ordinary object: its members are its own, enumerable,
 * configurable, writable, in the server's order. Members that were not read are accessors, which parse their
 * part of the text at first use, and are plain values from then on. So is its metadata.
 *
 * - **What is kept.** A value that a user read is kept: a second read returns the same, and a change is not
 *   lost. The text is dropped once more than half of it was parsed, and the rest is parsed then: text and
 *   values never take more than the parsed object. Where the text is served (`keepsTexts`), it stays.
 * - **Aside.** Index functions, selectors and the like read an object aside ({@linkcode LazyText.read}): what
 *   they parse is kept a short while, for handlers that read the same, and is dropped then.
 * - **Ordinary everywhere else**: for `Object.keys`, spread, `structuredClone`, `console.log`, a `Proxy`.
 *
 * @module
 */

import { HeldObject, metaOf } from "../meta/object.ts";
import { decodeUtf8, encodeUtf8 } from "../util/bytes.ts";
import { Recent } from "../util/collections.ts";
import { INSPECT, isRecord } from "../util/json.ts";
import type { FieldTexts } from "./field_tree.ts";
import type { LiveMetadata } from "./object_reader.ts";
import { type Level, type Members, type ObjectShape, placeAt, type Places } from "./object_shape.ts";

/**
 * An object, held as text: immutable, and as good as the object wherever only its key and the metadata that
 * is live matter, in `metaOf` for one.
 */
export class TextObject extends HeldObject implements LiveMetadata {
  readonly key: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly namespace: string | undefined;
  readonly apiVersion: string | undefined;
  readonly kind: string | undefined;
  /** The labels, if they were read. */
  protected readLabels: LiveMetadata["labels"];
  /**
   * The live part of the object's metadata: this object itself, so that `metaOf` reads it without a call;
   * `undefined` for an object without metadata.
   */
  readonly metadata: this | undefined;
  /** The text, in the form of the holding that made it. */
  text: string;
  /** The values of its fields until the indices have them, if the source read them. */
  fields: FieldTexts | undefined = undefined;
  /** The object's members; `undefined` before its text was walked, `null` if it is to be parsed whole. */
  shape: ObjectShape | null | undefined;

  constructor(key: string, live: LiveMetadata, text: string, shape?: ObjectShape | null) {
    super();
    this.key = key;
    this.uid = live.uid;
    this.resourceVersion = live.resourceVersion;
    this.namespace = live.namespace;
    this.readLabels = live.labels;
    this.apiVersion = live.apiVersion;
    this.kind = live.kind;
    this.metadata = live.resourceVersion === undefined ? undefined : this;
    this.text = text;
    this.shape = shape;
  }

  get labels(): LiveMetadata["labels"] {
    return this.readLabels;
  }

  /** The object's name, if the key function is `metaNamespaceKey`. */
  get nameInKey(): string {
    return this.namespace ? this.key.slice(this.namespace.length + 1) : this.key;
  }
}

/** The shared state of one store's lazy objects. */
export class LazyOrigin {
  /** Whether objects are to be parsed as they come: users read most of each, and none has to stay text. */
  readWhole = false;
  /** Whether texts stay, however much of them was parsed. */
  keepsTexts: boolean;
  /** Freezes what is parsed, and everything in it. */
  readonly freeze: (<V>(value: V) => V) | undefined;
  /** Whether a key is the namespace, if there is one, and the name. */
  readonly keysHaveNames: boolean;
  /** The members of an object's text; `null` if it is to be parsed whole. */
  readonly membersOf: (text: string) => Members | null;
  /** The JSON text of an encoded one; absent where texts are JSON. */
  readonly decode: ((text: string) => string) | undefined;
  /** Receives each object whose text was dropped. */
  onReleased: ((text: LazyText, object: object) => void) | undefined;
  /** Labels that many objects have, by their text. */
  readonly #labels = new Recent<string, LiveMetadata["labels"]>(KNOWN_LABELS);
  /** Objects that were read aside last: a ring. */
  readonly #aside: LazyText[] = [];
  #asideNext = 0;
  /** Rises while users read most of what they receive, falls while they do not. */
  #appetite = 0;
  #opened = 0;
  #scratch: LazyOrigin | undefined;

  constructor(
    options: Pick<LazyOrigin, "freeze" | "keysHaveNames" | "membersOf" | "decode">,
    keepsTexts: boolean = options.decode !== undefined,
  ) {
    this.keepsTexts = keepsTexts;
    this.freeze = options.freeze;
    this.keysHaveNames = options.keysHaveNames;
    this.membersOf = options.membersOf;
    this.decode = options.decode;
  }

  /** The origin of objects that the library reads and drops: reading them says nothing about users. */
  get scratch(): LazyOrigin {
    return this.#scratch ??= new LazyOrigin(this, true);
  }

  /** Texts stay from now on. */
  keepTexts(): void {
    this.keepsTexts = true;
    this.readWhole = false;
  }

  /** The labels of a JSON text: those of other objects that have the same. */
  labelsOf(text: string): LiveMetadata["labels"] {
    let labels = this.#labels.get(text);
    if (labels === undefined) {
      labels = JSON.parse(text);
      // A string of its own: a part of a text would keep all of it.
      this.#labels.set(decodeUtf8(encodeUtf8(text)), labels, text.length);
    }
    return labels;
  }

  /** Users have read most of some object, or have received one of which they have read nothing. */
  changeAppetite(by: number): void {
    this.#appetite = Math.max(0, Math.min(this.#appetite + by, GREEDY + 2));
    this.readWhole = this.#appetite >= GREEDY && !this.keepsTexts;
  }

  /**
   * Whether an object that is opened now is to be parsed at once: members one by one cost twice as much where
   * all of them are read. One of some objects is opened lazily, to find out whether that is still so.
   */
  isReadWhole(): boolean {
    return this.#appetite >= GREEDY && ++this.#opened % PROBE_EVERY !== 0;
  }

  /** An object was read aside: its parsed values are kept a short while. */
  readAside(text: LazyText): void {
    if (this.decode !== undefined) return; // it is dropped as a whole
    this.#aside[this.#asideNext]?.forgetAside();
    this.#aside[this.#asideNext] = text;
    this.#asideNext = (this.#asideNext + 1) % ASIDE;
  }
}

/** The appetite from which objects are parsed whole: more than half of that many in a row was read. */
const GREEDY = 32;
/** One in so many opened objects is read lazily nevertheless. */
const PROBE_EVERY = 32;
/** How many objects that were read aside are kept. */
const ASIDE = 128;
/** How many characters of labels are remembered at least. */
const KNOWN_LABELS = 512 * 1024;

/** An object held as its JSON text, and its lazy object once it was opened. */
export class LazyText extends TextObject {
  #origin: LazyOrigin;
  #places: Places;
  #object: object | undefined;
  /**
   * Parsed values that are no plain values of the object: they were read aside, or the object cannot change.
   * The last one is the metadata.
   */
  #values: unknown[] | undefined;
  /** How much of the text was parsed and is kept; {@linkcode RELEASED} once the text was dropped. */
  #parsed = 0;
  #marks = 0;

  constructor(key: string, live: LiveMetadata, text: string, origin: LazyOrigin, members?: Members | null) {
    super(key, live, text, members && members.shape);
    this.#origin = origin;
    this.#places = members?.places ?? "";
  }

  /** The labels, parsed when they are first asked for; once the text was dropped, those of the object. */
  override get labels(): LiveMetadata["labels"] {
    if (this.readLabels !== undefined) return this.readLabels;
    if (this.#parsed === RELEASED) return metaOf(this.#object)?.labels;
    if (!this.shape) return undefined;
    const at = this.shape.placeOf("metadata", "labels");
    return at < 0 ? undefined : this.readLabels = this.#origin.labelsOf(this.#textAt(at));
  }

  /** Moves the object to another store. */
  adopt(origin: LazyOrigin): void {
    this.#origin = origin;
  }

  /** A lazy object for an encoded text, which is decoded when the first member is read. */
  static encoded(held: TextObject, origin: LazyOrigin): LazyText {
    const lazy = new LazyText(held.key, held, held.text, origin);
    lazy.shape = held.shape ?? null;
    lazy.#parsed = ENCODED;
    return lazy;
  }

  /** The JSON text as it came; `undefined` once it was dropped. */
  get json(): string | undefined {
    if (this.#parsed === RELEASED) return undefined;
    if (this.#parsed === ENCODED) {
      this.text = this.#origin.decode!(this.text);
      this.#parsed = 0;
    }
    return this.text;
  }

  /** The object's members, and their places in the text; no places if the text was not decoded yet. */
  get members(): Members | null | undefined {
    return this.shape && { shape: this.shape, places: this.#places };
  }

  /** The object, for a user: the same one at each call. */
  open(): object {
    const object = this.#objectOf();
    if (this.shape === null) this.#keep(this.text.length);
    else if ((this.#marks & IS_HANDED_OUT) === 0) this.#origin.changeAppetite(-1);
    this.#marks |= IS_HANDED_OUT;
    return object;
  }

  /** The object, for code that only reads it: another of the same text, as long as that is there. */
  peek(): object {
    if (this.#parsed === RELEASED) return this.#object!;
    if (this.shape === undefined) this.#walk();
    return new LazyText(this.key, this, this.text, this.#origin.scratch, this.members).open();
  }

  /** Returns what `reader` makes of the object; `reader` keeps nothing of it. */
  read<R>(reader: (object: object) => R): R {
    const before = isAside;
    isAside = true;
    try {
      const object = this.#objectOf();
      if (this.shape === null && this.#parsed !== RELEASED) this.#noteAside();
      return reader(object);
    } finally {
      isAside = before;
    }
  }

  /** The object's content, for a comparison: not the object that users have, unless that costs nothing. */
  get content(): unknown {
    return this.#parsed === RELEASED ? this.#object : JSON.parse(this.json!);
  }

  /** Drops what was read aside, and the object if no user has it. */
  forgetAside(): void {
    this.#marks &= ~IS_ASIDE;
    if ((this.#marks & HAS_FIXED_VALUES) === 0) this.#values = undefined;
    if ((this.#marks & IS_HANDED_OUT) === 0) this.#object = undefined;
  }

  #objectOf(): object {
    if (this.#object !== undefined) return this.#object;
    const origin = this.#origin;
    if (this.shape === undefined) this.#walk();
    if (this.shape && !origin.isReadWhole()) return this.#object = this.#newObject("object");
    const object = this.#object = JSON.parse(this.json!);
    const { namespace } = this; // all objects of one share its string
    if (namespace && object.metadata?.namespace === namespace) object.metadata.namespace = namespace;
    origin.freeze?.(object);
    if (this.shape) {
      if (origin.keepsTexts) void this.labels; // their place is dropped
      // A user is about to read most of it: it is kept, even if an index function reads it first.
      this.shape = null;
      this.#marks |= IS_HANDED_OUT;
      this.#keep(this.text.length);
    }
    return object;
  }

  #walk(): void {
    const members = this.#origin.membersOf(this.json!);
    this.shape = members?.shape ?? null;
    this.#places = members?.places ?? "";
  }

  /** Makes an object with these members. */
  #newObject(level: Level): object {
    const object: Record<string, unknown> = {};
    for (const { name, place } of this.shape![level]) {
      if (name === "name" && this.#origin.keysHaveNames && level === "metadata") {
        object["name"] = this.nameInKey;
      } else if (place >= 0 || (name === "metadata" && isAside)) {
        Object.defineProperty(object, name, accessors[level][name] ??= newAccessor(name, level));
      } // Users mostly read some of it; to replace an accessor costs as much as what is in it.
      else if (name === "metadata") object[name] = this.#newObject("metadata");
      else object[name] = this[name as keyof LiveMetadata];
    }
    Object.defineProperty(object, INSPECT, INSPECTED);
    Object.defineProperty(object, SELF, { value: new Self(object) });
    new Stamped(object, this);
    if (this.#origin.freeze) Object.freeze(object);
    return object;
  }

  /** The value of a member of `owner`, which is the object or its metadata. */
  member(owner: object, name: string, level: Level): unknown {
    const isMetadata = level === "object" && name === "metadata";
    // An encoded text has no places before it is decoded; the metadata's live part needs none.
    if (this.#places === "" && !isMetadata) this.#walk();
    const at = this.shape ? this.shape.placeOf(level, name) : 0;
    let value = this.shape && this.#values ? this.#values[at] : UNREAD;
    if (value === UNREAD) {
      if (!this.shape || this.#parsed === RELEASED) { // a reader aside has kept what it should not have
        const object = this.#object as Record<string, Record<string, unknown>>;
        return level === "metadata" ? object["metadata"]?.[name] : object[name];
      }
      value = isMetadata ? this.#newObject("metadata") : this.#parse(at);
      if (isAside) {
        this.#setValue(at, value);
        this.#noteAside();
        return value;
      }
    } else if (isAside || (this.#marks & HAS_FIXED_VALUES) !== 0) {
      return value;
    }
    this.#marks |= IS_HANDED_OUT;
    // As enumerable and configurable as the accessor is, which a user may have changed.
    const isSet = Object.isExtensible(owner) &&
      Reflect.defineProperty(owner, name, { value, writable: true });
    if (!isSet) this.setMember(name, level, value);
    if (!isMetadata) this.#keep(placeAt(this.#places, 2 * at + 1) - placeAt(this.#places, 2 * at));
    return value;
  }

  #parse(place: number): unknown {
    const value = JSON.parse(this.#textAt(place));
    this.#origin.freeze?.(value);
    return value;
  }

  #textAt(place: number): string {
    return this.text.slice(placeAt(this.#places, 2 * place), placeAt(this.#places, 2 * place + 1));
  }

  #setValue(at: number, value: unknown): void {
    this.#values ??= new Array(this.shape!.size + 1).fill(UNREAD);
    this.#values[at] = value;
  }

  /** Keeps the value of a member for users, of an object whose properties cannot be defined any more. */
  setMember(name: string, level: Level, value: unknown): void {
    this.#setValue(this.shape!.placeOf(level, name), value);
    this.#marks |= HAS_FIXED_VALUES | IS_HANDED_OUT;
  }

  #noteAside(): void {
    if ((this.#marks & IS_ASIDE) !== 0) return;
    this.#marks |= IS_ASIDE;
    this.#origin.readAside(this);
  }

  /** Counts text that was parsed for a user; once it is more than half of it, the rest is parsed. */
  #keep(length: number): void {
    const half = this.text.length / 2;
    if (this.#parsed > half || (this.#parsed += length) <= half) return;
    if (this.shape) this.#origin.changeAppetite(2);
    if (this.#origin.keepsTexts) return;
    if (!this.shape || this.#readAll(this.shape)) {
      this.#parsed = RELEASED;
      this.text = "";
      this.#origin.onReleased?.(this, this.#object!);
    }
  }

  /** Reads what was not read yet; `false` if a user has put other metadata into the object. */
  #readAll({ object: members, metadata: metadataMembers }: ObjectShape): boolean {
    // Parsing the rest must not begin it again.
    this.#parsed = -RELEASED;
    const object = this.#object as Record<string, unknown>;
    const metadata = object["metadata"];
    if (!isRecord(metadata) || Stamped.textOf(metadata) !== this) return false;
    for (const { name } of members) void object[name];
    for (const { name } of metadataMembers) void metadata[name];
    return true;
  }
}

/** Shows a lazy object's values. */
const INSPECTED: PropertyDescriptor = {
  value(this: object) {
    // Without symbols: a copy of all properties may have made this one enumerable, and is shown by it, too.
    return Object.fromEntries(Object.entries(this));
  },
  configurable: true,
  writable: true,
};

/** The symbol under which a lazy object has itself: a `Proxy` or a copy of its descriptors has no stamp. */
const SELF = Symbol();

/**
 * A lazy object, in an instance of a class that has a tag of its own: what wraps or copies plain objects
 * leaves it as it is. It has no properties: what follows every key, to freeze all of an object, ends here.
 */
class Self {
  readonly #object: object;

  constructor(object: object) {
    this.#object = object;
  }

  get object(): object {
    return this.#object;
  }

  get [Symbol.toStringTag](): string {
    return "Self";
  }
}

/** The place holder of a value that was not read. */
const UNREAD = Symbol();
/** Whether what is read now is read aside. */
let isAside = false;
/** Marks: a user has the object; it waits to be dropped; its properties are fixed. */
const IS_HANDED_OUT = 1;
const IS_ASIDE = 2;
const HAS_FIXED_VALUES = 4;
/** Values of `#parsed` for a text that was dropped (more than any text has), or not decoded yet. */
const RELEASED = 1e9;
const ENCODED = -1;

/** Returns the object that it is called with, so that a class can add a private field to that. */
class Returning {
  constructor(object: object) {
    return object;
  }
}

/** A lazy object, which knows its text. */
class Stamped extends Returning {
  readonly #text: LazyText;

  constructor(object: object, text: LazyText) {
    super(object);
    this.#text = text;
  }

  /** The text of a lazy object, or of lazy metadata; `undefined` for another object. */
  static textOf(object: object): LazyText | undefined {
    return #text in object ? object.#text : undefined;
  }
}

/**
 * The accessors by name: one for the objects of all shapes, as V8 makes an object a dictionary that gets
 * another accessor than the first object with the same members before it.
 */
const accessors: Readonly<Record<Level, Record<string, PropertyDescriptor>>> = {
  object: Object.create(null),
  metadata: Object.create(null),
};

/** The lazy object that has the accessor: itself, what it inherits from, what it is a Proxy or a copy of. */
function ownerOf(object: object, name: string): object {
  if (Stamped.textOf(object) !== undefined) return object;
  // A Proxy may wrap what is read of it, but not what its descriptors have; MobX makes those accessors.
  const self: unknown = Object.getOwnPropertyDescriptor(object, SELF)?.value ?? Reflect.get(object, SELF);
  if (self instanceof Self) return self.object;
  throw new TypeError(`Cannot read ${name} of another object`);
}

function newAccessor(name: string, level: Level): PropertyDescriptor {
  return {
    get(this: object) {
      const owner = ownerOf(this, name);
      return Stamped.textOf(owner)!.member(owner, name, level);
    },
    set(this: object, value: unknown) {
      const owner = ownerOf(this, name);
      // As for any property that cannot be written, of the object or of one that inherits it.
      if (Object.isFrozen(owner)) {
        throw new TypeError(
          `Cannot write ${name}: it is shared and frozen; copy it first: structuredClone`,
        );
      }
      if (!Object.hasOwn(this, SELF)) { // it inherits the accessor
        Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
      } else if (!Reflect.defineProperty(this, name, { value, writable: true })) {
        Stamped.textOf(owner)!.setMember(name, level, value);
      }
    },
    enumerable: true,
    configurable: true,
  };
}
