/** Transforms: changes of objects before they are stored. */

import { atOnce } from "../util/errors.ts";
import { TransformError } from "./errors.ts";

/**
 * Changes an object before it is stored; may change it in place, as long as nothing else holds it.
 * @throws Any error: the write then fails with a `TransformError`.
 *
 * @category Informers
 */
export type TransformFunc<T> = (object: T) => T;

/** Decides what takes the place of an object that a transform throws for, if anything. */
export type OnTransformFailure<T> = (error: TransformError, object: T) => T | undefined;

/** Runs a transform. */
export function transformed<T>(transform: TransformFunc<T>, object: T): T {
  try {
    return atOnce(transform(object));
  } catch (error) {
    throw new TransformError(object, error);
  }
}

/** Makes a transform that runs once on an object: its results are returned as they are from then on. */
export function transformOnce<T>(
  transform: TransformFunc<T>,
  results: WeakSet<WeakKey> = new WeakSet(),
): TransformFunc<T> {
  return (object) => {
    if (typeof object === "object" && object !== null && results.has(object)) return object;
    const result = atOnce(transform(object));
    if (typeof result === "object" && result !== null) results.add(result);
    return result;
  };
}

/** Runs a transform on every object. */
export function transformedAll<T>(
  transform: TransformFunc<T>,
  objects: readonly T[],
  onTransformFailure?: OnTransformFailure<T>,
): T[] {
  const accepted: T[] = [];
  const take = transformer(transform, onTransformFailure);
  for (const object of objects) {
    const taken = take(object);
    if (taken !== undefined) accepted.push(taken.object);
  }
  return accepted;
}

/** The object that takes another one's place. */
export interface Taken<T> {
  readonly object: T;
}

/**
 * Makes a function that runs a transform on one of many objects, and returns the object to take its place;
 * `undefined` for nothing.
 */
export function transformer<T>(
  transform: TransformFunc<T>,
  onTransformFailure?: OnTransformFailure<T>,
): (object: T) => Taken<T> | undefined {
  return (object) => {
    try {
      return { object: transformed(transform, object) };
    } catch (error) {
      if (onTransformFailure === undefined) throw error;
      const instead = onTransformFailure(error as TransformError, object);
      return instead === undefined ? undefined : { object: instead };
    }
  };
}
