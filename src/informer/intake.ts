/**
 * Objects on their way into an informer.
 * @module
 */

import type { KeyFunc } from "../meta/keys.ts";
import { metaOf, resourceVersionOf } from "../meta/object.ts";
import { isComparableResourceVersion } from "../meta/resource_version.ts";
import { EncodedObject, type Held, type ObjectCodec } from "../store/object_codec.ts";
import type { Store } from "../store/store.ts";
import type { TransformFunc } from "../store/transform.ts";
import type { IsSameState } from "./same_state.ts";

/** What becomes of objects before they are queued. */
export interface Intake<T> {
  /** Takes an object of a list in, as it is decoded. One with the content of the one that the store holds is that one. */
  readonly list: (item: unknown) => T;
  /**
   * Whether what became of the objects of a list stands, now that it is known how far the list has come. If not, it must
   * be listed again; nothing is believed then.
   */
  readonly accepts: (list: { readonly hasAdvanced: boolean }) => boolean;
  /** The queue's transform: takes in what is not yet. */
  readonly queue: TransformFunc<T> | undefined;
}

/**
 * Whether an object of a list is the stored one without a look at its content, which only a transform would show: where
 * the version says so, and it means something. That it does shows at the end of the list, whose own version must have
 * advanced: a server that was restored from a backup, or that makes its objects up, gives a version twice.
 */
class Belief {
  #mayBelieve = true;
  #believed = false;

  /** Whether it is believed to be the same. */
  isSame(known: unknown, object: unknown): boolean {
    if (!this.#mayBelieve || !isSameVersion(known, object)) return false;
    const left = metaOf(known);
    const right = metaOf(object);
    if (!left?.uid || left.uid !== right?.uid || !isComparableResourceVersion(left.resourceVersion ?? "")) {
      return false;
    }
    return this.#believed = true;
  }

  readonly accepts = ({ hasAdvanced }: { readonly hasAdvanced: boolean }): boolean => {
    const accepted = hasAdvanced || !this.#believed;
    this.#believed = false;
    if (hasAdvanced) this.#mayBelieve = true;
    else if (!accepted) this.#mayBelieve = false;
    return accepted;
  };
}

/** What a {@linkcode PlainIntake} needs. */
export interface PlainIntakeOptions<T> {
  readonly keyFunc: KeyFunc;
  readonly store: Pick<Store<T>, "getByKey">;
  readonly isSame: IsSameState<T>;
  /** Runs on every object that is new, or may have changed; leaves what it has made as it is. */
  readonly transform: TransformFunc<T> | undefined;
}

/**
 * Lets the objects of a list that are stored already be the stored ones, one by one, so that a list of what is known
 * needs no memory. Those that cannot be, as their version is another, are transformed when they are queued.
 */
export class PlainIntake<T> implements Intake<T> {
  readonly #options: PlainIntakeOptions<T>;
  readonly #belief = new Belief();
  readonly queue: TransformFunc<T> | undefined;
  readonly accepts: Intake<T>["accepts"] = this.#belief.accepts;

  constructor(options: PlainIntakeOptions<T>) {
    this.#options = options;
    const { transform } = options;
    this.queue = transform && ((object) => this.#stored(object) === object ? object : transform(object));
  }

  readonly list = (item: unknown): T => {
    const { isSame, transform } = this.#options;
    const object = item as T;
    const known = this.#stored(object);
    if (known === undefined || known === object || !isSameVersion(known, object)) return object;
    if (transform === undefined) return isSame(known, object) ? known : object;
    if (this.#belief.isSame(known, object)) return known;
    try {
      const taken = transform(object);
      if (isSame(known, taken)) return known;
      return typeof taken === "object" && taken !== null ? taken : object;
    } catch {
      return object; // it is transformed again when it is queued, and reported then
    }
  };

  #stored(object: T): T | undefined {
    try {
      return this.#options.store.getByKey(this.#options.keyFunc(object));
    } catch {
      return undefined; // that it has no key will show when it is stored
    }
  }
}

/** What an {@linkcode EncodingIntake} needs. */
export interface EncodingIntakeOptions<T> {
  readonly codec: ObjectCodec<T>;
  /** The store, as it holds objects. */
  readonly held: Pick<Store<Held<T>>, "getByKey">;
  readonly isSame: IsSameState<Held<T>>;
  /** Runs on every object that is new, or may have changed, before it is encoded; leaves what it has made as it is. */
  readonly transform: TransformFunc<T> | undefined;
}

/**
 * Transforms and encodes each object once: those of a list as they arrive, so that never more than one of them is there
 * as an object; all others when they are queued.
 */
export class EncodingIntake<T> implements Intake<Held<T>> {
  readonly #options: EncodingIntakeOptions<T>;
  readonly #belief = new Belief();
  readonly accepts: Intake<T>["accepts"] = this.#belief.accepts;

  constructor(options: EncodingIntakeOptions<T>) {
    this.#options = options;
  }

  readonly list = (item: unknown): Held<T> => {
    const { codec, held, isSame, transform } = this.#options;
    const object = item as Held<T>;
    if (object instanceof EncodedObject) return object;
    try {
      const known = held.getByKey(codec.keyFunc(object));
      if (known !== undefined && transform !== undefined && this.#belief.isSame(known, object)) return known;
      const plain = transform === undefined ? object : transform(object);
      if (known !== undefined && isSame(known, plain)) return known;
      const taken = codec.encodeEarly(plain);
      if (typeof taken === "object" && taken !== null) return taken;
    } catch {
      // whatever it is will show when the object is queued, and is reported then
    }
    return object;
  };

  readonly queue: TransformFunc<Held<T>> = (object) => {
    const { codec, transform } = this.#options;
    if (object instanceof EncodedObject) return object;
    return codec.encode(transform === undefined ? object : transform(object));
  };
}

/** Whether both have the same resourceVersion, if any: only then they may be the same state. */
function isSameVersion(a: unknown, b: unknown): boolean {
  return resourceVersionOf(a) === resourceVersionOf(b);
}
