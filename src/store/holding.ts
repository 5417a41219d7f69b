/** How a store holds objects. */

import { type HeldObject, type KeyFunc, metaNamespaceKey, metaOf, type ObjectMeta } from "../meta/object.ts";
import type { FieldCut } from "../text/field_cut.ts";
import type { LazyOrigin } from "../text/lazy_object.ts";
import type { HoldText } from "../text/object_text_reader.ts";
import { isSameJson } from "../util/json.ts";
import type { Indexers, IndexFunc } from "./index_func.ts";
import type { TransformFunc } from "./transform.ts";

/** An object's key, and the part of its metadata that can be read without opening the object. */
export interface KeyedHead {
  /** The object's key, as the key function returns it. */
  readonly key: string;
  /** The object's metadata: always the same fields, `undefined` where the object has none. */
  readonly metadata: {
    /** Empty if it has none. */
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    /** Empty if it has none. */
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

export type Held<T> = T | HeldObject;

/**
 * How one store holds its objects: their form, and everything that depends on it. Made by a {@linkcode
 * NewHolding}, and handed from the store to all that pass its objects on (queue, handlers' mailboxes, the
 * read API). All calls are synchronous. A value without such a form is held as it is: every method takes it,
 * too.
 */
export interface Holding<T> {
  /** The key function, for objects in either form. */
  readonly keyFunc: KeyFunc;
  /** How the store holds objects of which a source has the text; absent if it holds no texts. */
  readonly holdText?: HoldText;
  /** Whether a value is in a held form that is not the object itself. */
  isHeld(value: unknown): boolean;
  /** The held form of an object; the argument itself if it is held already, or has no such form. */
  hold(object: Held<T>, key?: string): Held<T>;
  /**
   * As {@linkcode Holding.hold}, for an object that is stored much later, with the rest of its list: its
   * index values may be computed now.
   */
  holdEarly(object: Held<T>): Held<T>;
  /** The list is stored: forget the index values computed early. */
  listStored(): void;
  /** The key and metadata of a held object, which is not opened for them. */
  head(held: Held<T>): KeyedHead;
  /** The object, for a user: opening it again soon returns the same one. */
  open(held: Held<T>): T;
  /** The object, for a user who has asked for many: it is not remembered longer than it has to be. */
  openListed(held: Held<T>): T;
  /** The object, for code of the library that only reads it: nothing is remembered. */
  peek(held: Held<T>): T;
  /** What the lazy objects of the store share, if it has any. */
  readonly origin?: LazyOrigin;
  /** Keeps texts from now on, as they are served: reading an object does not replace its text. */
  keepTexts(): void;
  /** The object's JSON text as it came, or cut to some fields, if it is there; otherwise `undefined`. */
  json(held: Held<T>, fields?: FieldCut): string | undefined;
  /** A new object of some of its fields, if its text is there; otherwise `undefined`. */
  cut(held: Held<T>, fields: FieldCut): object | undefined;
  /** Whether two objects have the same content. */
  isSameContent(a: Held<T>, b: Held<T>): boolean;
  /**
   * The function through which an object passes before it is stored: the transform, unless it is held
   * already; then {@linkcode Holding.hold}. `undefined` if there is nothing to do.
   */
  heldTransform(transform: TransformFunc<T> | undefined): HeldTransform<T> | undefined;
  /** An index function for the held form, with the values that the index function has for the object. */
  heldIndex(indexFunc: IndexFunc<T>): IndexFunc<Held<T>>;
  /** The store has these index functions, made by {@linkcode Holding.heldIndex}, from now on. */
  indexersAdded(held: Indexers<Held<T>>): void;
}

export type HeldTransform<T> = (object: Held<T>, key?: string) => Held<T>;

export interface HoldingOptions {
  /** Freezes what is parsed, and everything in it, before anyone has it. */
  readonly freeze?: (<V>(value: V) => V) | undefined;
}

/** Makes the holding of one store, whose objects have the keys that `keyFunc` returns. */
export type NewHolding = <T>(keyFunc: KeyFunc, options?: HoldingOptions) => Holding<T>;

/** Objects held as they are. */
export class ObjectHolding<T> implements Holding<T> {
  readonly keyFunc: KeyFunc;

  constructor(keyFunc: KeyFunc) {
    this.keyFunc = keyFunc;
  }

  isHeld(_value: unknown): boolean {
    return false;
  }

  hold(object: Held<T>): Held<T> {
    return object;
  }

  holdEarly(object: Held<T>): Held<T> {
    return object;
  }

  listStored(): void {}

  head(held: Held<T>): KeyedHead {
    return newHead(this.keyFunc(held), metaOf(held));
  }

  open(held: Held<T>): T {
    return held as T;
  }

  peek(held: Held<T>): T {
    return held as T;
  }

  openListed(held: Held<T>): T {
    return this.open(held);
  }

  keepTexts(): void {}

  json(_held: Held<T>, _fields?: FieldCut): string | undefined {
    return undefined;
  }

  cut(_held: Held<T>, _fields: FieldCut): object | undefined {
    return undefined;
  }

  isSameContent(a: Held<T>, b: Held<T>): boolean {
    return isSameJson(a, b);
  }

  heldTransform(transform: TransformFunc<T> | undefined): HeldTransform<T> | undefined {
    return transform as HeldTransform<T> | undefined;
  }

  heldIndex(indexFunc: IndexFunc<T>): IndexFunc<Held<T>> {
    return indexFunc as IndexFunc<Held<T>>;
  }

  indexersAdded(_held: Indexers<Held<T>>): void {}
}

/** Makes a head: the same properties in the same order, always. */
export function newHead(
  key: string,
  metadata: ObjectMeta | undefined,
  name: string | undefined = metadata?.name,
): KeyedHead {
  return {
    key,
    metadata: {
      name: name ?? "",
      namespace: metadata?.namespace,
      uid: metadata?.uid,
      resourceVersion: metadata?.resourceVersion ?? "",
      labels: metadata?.labels,
    },
  };
}

/**
 * A store with its objects in their held form, to be read: as `newStore` and `newIndexer` make it, or any
 * other with the default keys, which holds objects as they are.
 */
export function heldStoreOf<T, S extends object>(
  store: S,
): { readonly holding: Holding<T>; readonly held: S } {
  if ("holding" in store && "held" in store) return store as unknown as { holding: Holding<T>; held: S };
  return { holding: new ObjectHolding<T>(metaNamespaceKey), held: store };
}
