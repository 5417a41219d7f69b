/**
 * A holding of a user's own, made of what the package exports: objects as bytes, with nothing kept opened.
 * @module
 */

import assert from "node:assert/strict";
import type { KeyFunc } from "@listwatch/cache";
import type { KeyedHead } from "@listwatch/cache/informer";
import type { Held, HeldObject, Holding, HoldingOptions, NewHolding } from "../src/store/holding.ts";

/** An object, as bytes. */
export class Bytes implements HeldObject {
  readonly head: KeyedHead;
  readonly metadata: HeldObject["metadata"];
  readonly bytes: Uint8Array;

  constructor(head: KeyedHead, metadata: HeldObject["metadata"], bytes: Uint8Array) {
    this.head = head;
    this.metadata = metadata;
    this.bytes = bytes;
  }

  get key(): string {
    return this.head.key;
  }
}

interface Named {
  readonly metadata?: Partial<KeyedHead["metadata"]>;
}

/** Holds the objects of stores and informers as bytes. Counts in `opened` how many were read. */
export function newBytesHolding(counts: { opened: number } = { opened: 0 }): NewHolding {
  return <T>(keyOf: KeyFunc, { onOpened }: HoldingOptions = {}): Holding<T> => {
    /** The last few objects that were opened. */
    const opened = new Map<Bytes, T>();
    const keyFunc: KeyFunc = (object) => object instanceof Bytes ? object.key : keyOf(object);
    const hold = (object: Held<T>, key?: string): Held<T> => {
      if (object instanceof Bytes) return object;
      if (typeof object !== "object" || !isJson(object)) return object;
      try {
        const head = headOf(key ?? keyOf(object), object as Named);
        const { metadata } = object as Named;
        const live = metadata && {
          uid: metadata.uid,
          resourceVersion: metadata.resourceVersion ?? "",
          namespace: metadata.namespace,
          labels: metadata.labels,
        };
        return new Bytes(head, live, new TextEncoder().encode(JSON.stringify(object)));
      } catch {
        return object; // whatever needs the key throws why there is none
      }
    };
    const json = (held: Held<T>) => held instanceof Bytes ? new TextDecoder().decode(held.bytes) : undefined;
    const peek = (held: Held<T>): T => {
      if (!(held instanceof Bytes)) return held as T;
      const known = opened.get(held);
      if (known !== undefined) return known;
      counts.opened++;
      const object = JSON.parse(json(held)!);
      onOpened?.(object);
      return object;
    };
    const open = (held: Held<T>): T => {
      const object = peek(held);
      if (held instanceof Bytes) opened.set(held, object);
      if (opened.size > 16) opened.clear();
      return object;
    };
    return {
      keyFunc,
      isHeld: (value) => value instanceof Bytes,
      hold,
      holdEarly: (object) => hold(object),
      listStored() {},
      head: (held) => held instanceof Bytes ? held.head : headOf(keyOf(held), held as Named),
      open,
      peek,
      convert: (whole, conversion) => conversion(whole),
      json,
      isSameContent: (a, b) => isSame(peek(a), peek(b)),
      heldTransform: (transform) => (object, key) =>
        object instanceof Bytes
          ? object
          : hold(transform === undefined ? object : transform(object as T), key),
      heldIndex: (indexFunc) => (held) => indexFunc(peek(held)),
      indexersAdded() {},
    };
  };
}

function headOf(key: string, { metadata }: Named): KeyedHead {
  const { name = "", namespace, uid, resourceVersion = "", labels } = metadata ?? {};
  return { key, metadata: { name, namespace, uid, resourceVersion, labels } };
}

/** Whether a value is the same after it was written as JSON and read. */
function isJson(value: unknown, depth = 0): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object" || value === null) return value === null || /^[sb]/.test(typeof value);
  const isList = Array.isArray(value);
  if (depth > 500 || !(isList || Object.getPrototypeOf(value) === Object.prototype)) return false;
  const parts = isList ? Array.from(value) : Object.values(value);
  return parts.every((part) => isJson(part, depth + 1));
}

function isSame(a: unknown, b: unknown): boolean {
  try {
    assert.deepStrictEqual(a, b);
    return true;
  } catch {
    return false;
  }
}
