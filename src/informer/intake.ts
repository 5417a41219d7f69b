import type { HoldText } from "../text/object_text_reader.ts";
import { isSameState } from "../meta/object.ts";
import type { Cache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
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
  /** How objects are held of which the source has the text: a transform needs the objects. */
  readonly holdText: HoldText | undefined;
  /** The queue's transform, if it has anything to do. */
  readonly queue: TransformFunc<Held<T>> | undefined;
  /**
   * @param transform Runs on every object that is new, or may have changed, before it is held; returns what
   * it has returned before as it is.
   */
  constructor(store: Pick<Cache<T, never>, "held" | "holding">, transform: TransformFunc<T> | undefined) {
    this.#store = store;
    this.#transform = transform;
    const { holding } = store;
    this.holdText = transform === undefined ? holding.holdText : undefined;
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
    const known = this.#stored(object);
    if (known === object) return object;
    if (holding.isHeld(object)) {
      return known !== undefined && isSameState(holding, known, object) ? known : holding.holdEarly(object);
    }
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

  #stored(object: Held<T>): Held<T> | undefined {
    try {
      return this.#store.held.getByKey(this.#store.holding.keyFunc(object));
    } catch {
      return undefined; // It has no key: the store reports that.
    }
  }
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
