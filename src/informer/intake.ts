/** The intake of an informer: encoding, transform and quarantine of decoded objects. */

import type { HoldText } from "../text/object_text_reader.ts";
import {
  compareResourceVersions,
  isComparableResourceVersion,
  metaOf,
  resourceVersionOf,
} from "../meta/object.ts";
import type { Cache } from "../store/cache.ts";
import { type Held, isSameState } from "../store/holding.ts";
import type { TransformFunc } from "../store/transform.ts";

/**
 * Takes objects in before they are queued: transforms and holds each once. An object of a list that has the
 * content of the stored one becomes the stored one, so that a list of known objects needs no memory.
 *
 * Objects in a form of their own are held as they arrive, so that never more than one of a list is in memory
 * as an object; objects held as they are, when they are queued.
 */
export class Intake<T> {
  readonly #store: Pick<Cache<T, never>, "held" | "holding">;
  readonly #transform: TransformFunc<T> | undefined;
  readonly #belief = new Belief();
  /** What the source may put in an item's place. */
  #offered: Held<T> | undefined;
  /** How objects are held of which the source has the text: a transform needs the objects. */
  readonly holdText: HoldText | undefined;
  /** The queue's transform, if it has anything to do. */
  readonly queue: TransformFunc<Held<T>> | undefined;
  /**
   * Whether the results for a list's objects count, now that it is known how far the list has come. If not,
   * list again: nothing is believed then.
   */
  readonly accepts: (list: { readonly hasAdvanced: boolean }) => boolean = this.#belief.accepts;

  /**
   * @param transform Runs on every object that is new, or may have changed, before it is held; returns what
   * it has returned before as it is.
   */
  constructor(store: Pick<Cache<T, never>, "held" | "holding">, transform: TransformFunc<T> | undefined) {
    this.#store = store;
    this.#transform = transform;
    const { holding } = store;
    this.holdText = transform === undefined && holding.holdText
      ? { ...holding.holdText, stored: this.#offer }
      : undefined;
    const take = holding.heldTransform(transform);
    if (take === undefined) return;
    this.queue = transform === undefined
      ? take
      : (object) => this.#stored(object) === object ? object : take(object);
  }

  /** Takes in an object of a list, as it was decoded. */
  readonly list = (item: unknown): Held<T> => {
    const { holding } = this.#store;
    const transform = this.#transform;
    const object = item as T;
    if (this.#offered !== undefined && this.#offered === object) {
      this.#belief.believed();
      return object;
    }
    const known = this.#stored(object);
    if (known === object) return object;
    if (holding.isHeld(object)) {
      return known !== undefined && isSameState(holding, known, object) ? known : holding.holdEarly(object);
    }
    if (transform !== undefined && known !== undefined && this.#belief.isSame(known, object)) return known;
    try {
      const taken = transform === undefined ? object : transform(object);
      if (known !== undefined && isSameState(holding, known, taken)) return known;
      const held = holding.holdEarly(taken);
      if (typeof held === "object" && held !== null) return held;
    } catch {
      // It is transformed again when it is queued, and reported then.
    }
    return object;
  };

  readonly #offer = (key: string, listVersion: string): Held<T> | undefined => {
    const { held } = this.#store;
    // A list that has not advanced would be no proof: it would have to be listed again.
    const isProof = compareResourceVersions(listVersion, held.lastStoreSyncResourceVersion()) > 0;
    const known = isProof && this.#belief.allows ? held.getByKey(key) : undefined;
    return this.#offered = isComparableResourceVersion(resourceVersionOf(known) ?? "") ? known : undefined;
  };

  #stored(object: Held<T>): Held<T> | undefined {
    try {
      return this.#store.held.getByKey(this.#store.holding.keyFunc(object));
    } catch {
      return undefined; // It has no key: the store reports that.
    }
  }
}

/**
 * Whether an object of a list is the stored one without a look at its content, which would cost a transform,
 * or a text of its own: where the version says so, and it means something. That it does shows at the end of
 * the list, whose own version must have advanced: a server that was restored from a backup, or that makes its
 * objects up, gives a version twice.
 */
class Belief {
  #mayBelieve = true;
  #believed = false;

  get allows(): boolean {
    return this.#mayBelieve;
  }

  /** An object was believed to be the same. */
  believed(): void {
    this.#believed = true;
  }

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

/** Whether both have the same resourceVersion, if any: only then they may be the same state. */
function isSameVersion(a: unknown, b: unknown): boolean {
  return resourceVersionOf(a) === resourceVersionOf(b);
}

/**
 * Freezes an object and everything in it, so that code which changes it gets a `TypeError` there. Returns the
 * same object. For development: `freezeObjects` of an informer runs it on every object.
 *
 * Stands where client-go has its `MutationDetector`, which compares copies once a second and panics.
 *
 * @example
 * ```ts
 * import { freezeObject } from "@listwatch/cache/informer";
 * const pod = freezeObject({ metadata: { name: "web-1", labels: { app: "web" } } });
 * try {
 *   pod.metadata.labels.app = "db";
 * } catch (error) {
 *   console.log(error instanceof TypeError); // true
 * }
 * ```
 *
 * @category Informers
 */
export function freezeObject<T>(object: T): T {
  // What is frozen already is walked as well: it may be frozen on its surface only. A set, as there may be
  // circles.
  const seen = new Set<unknown>();
  const rest: unknown[] = [object];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (ArrayBuffer.isView(value)) continue; // cannot be frozen
    Object.freeze(value);
    for (const part of Object.values(value)) rest.push(part);
  }
  return object;
}
