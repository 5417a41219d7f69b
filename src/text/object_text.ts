/**
 * Objects as text, and what is read of them.
 * @module
 */

import type { FieldTexts } from "./field_tree.ts";
import type { ObjectMeta } from "../meta/object.ts";

/**
 * What is read of an object that is held as text: its type, and of its metadata at least name, namespace,
 * uid, resourceVersion and labels. Labels may be those of another object that has the same.
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

/** An item of a list that was stored before; it was not read. */
export class StoredItem {
  readonly held: unknown;

  constructor(held: unknown) {
    this.held = held;
  }
}
