/**
 * Objects on their way into an informer.
 * @module
 */

import type { KeyFunc } from "../meta/keys.ts";
import { EncodedObject, type Held, type ObjectCodec } from "../store/object_codec.ts";
import type { Store } from "../store/store.ts";
import type { TransformFunc } from "../store/transform.ts";
import { isSameVersion } from "./same_version.ts";

/** What becomes of objects before they are queued. */
export interface Intake<T> {
  /** Takes an object of a list in, as it is decoded. One that has not changed is the one that the store holds. */
  readonly list: (item: unknown) => T;
  /** The queue's transform: takes in what is not yet. */
  readonly queue: TransformFunc<T> | undefined;
}

/**
 * Lets the objects of a list that are stored already be the stored ones, one by one, so that a list of what is known
 * needs no memory; all others are transformed when they are queued.
 */
export function newPlainIntake<T>(
  keyFunc: KeyFunc,
  store: Pick<Store<T>, "getByKey">,
  transform: TransformFunc<T> | undefined,
): Intake<T> {
  const stored = (object: T): T | undefined => {
    try {
      return store.getByKey(keyFunc(object));
    } catch {
      return undefined; // that it has no key will show when it is stored
    }
  };
  return {
    list: (item) => {
      const known = stored(item as T);
      return known !== undefined && isSameVersion(known, item) ? known : item as T;
    },
    queue: transform && ((object) => stored(object) === object ? object : transform(object)),
  };
}

/** What an {@linkcode EncodingIntake} needs. */
export interface EncodingIntakeOptions<T> {
  readonly codec: ObjectCodec<T>;
  /** The store, as it holds objects. */
  readonly held: Pick<Store<Held<T>>, "getByKey">;
  /** Runs once on every object, before it is encoded. */
  readonly transform: TransformFunc<T> | undefined;
}

/**
 * Transforms and encodes each object once: those of a list as they arrive, so that never more than one of them is there
 * as an object; all others when they are queued.
 */
export class EncodingIntake<T> implements Intake<Held<T>> {
  readonly #options: EncodingIntakeOptions<T>;
  /** Of a list, transformed, but nothing that can be encoded. */
  readonly #transformed = new WeakSet<WeakKey>();

  constructor(options: EncodingIntakeOptions<T>) {
    this.#options = options;
  }

  readonly list = (item: unknown): Held<T> => {
    const { codec, held, transform } = this.#options;
    const object = item as Held<T>;
    if (object instanceof EncodedObject) return object;
    try {
      const known = held.getByKey(codec.keyFunc(object));
      if (known instanceof EncodedObject && isSameVersion(known, object)) return known;
      const taken = codec.encodeEarly(transform === undefined ? object : transform(object));
      if (taken instanceof EncodedObject) return taken;
      if (typeof taken === "object" && taken !== null) {
        this.#transformed.add(taken);
        return taken;
      }
    } catch {
      // whatever it is will show when the object is queued, and is reported then
    }
    return object;
  };

  readonly queue: TransformFunc<Held<T>> = (object) => {
    const { codec, transform } = this.#options;
    if (object instanceof EncodedObject || this.#transformed.delete(object as WeakKey)) return object;
    return codec.encode(transform === undefined ? object : transform(object));
  };
}
