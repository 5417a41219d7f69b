/**
 * Objects on their way into an informer with encoded storage.
 * @module
 */

import { EncodedObject, type Held, type ObjectCodec } from "../store/object_codec.ts";
import type { Store, TransformFunc } from "../store/store.ts";
import { isSameVersion } from "./process_deltas.ts";

/** What an {@linkcode Intake} needs. */
export interface IntakeOptions<T> {
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
export class Intake<T> {
  readonly #options: IntakeOptions<T>;
  /** Of a list, transformed, but nothing that can be encoded. */
  readonly #transformed = new WeakSet<WeakKey>();

  constructor(options: IntakeOptions<T>) {
    this.#options = options;
  }

  /** Takes an object of a list in. One that has not changed is the one that the store holds. */
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

  /** The queue's transform: takes in what is not yet. */
  readonly queue: TransformFunc<Held<T>> = (object) => {
    const { codec, transform } = this.#options;
    if (object instanceof EncodedObject || this.#transformed.delete(object as WeakKey)) return object;
    return codec.encode(transform === undefined ? object : transform(object));
  };
}
