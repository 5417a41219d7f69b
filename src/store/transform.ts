/**
 * What is done to objects before they are stored.
 * @module
 */

import { TransformError } from "./errors.ts";

/**
 * Changes an object before it is stored; may change it in place, as long as nobody else holds it.
 *
 * @throws Whatever it likes: the write fails with a `TransformError`.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, TransformFunc } from "@listwatch/cache";
 * const dropManagedFields: TransformFunc<KubernetesObject> = (object) => {
 *   const { managedFields: _, ...metadata } = object.metadata ?? {};
 *   return { ...object, metadata };
 * };
 * ```
 */
export type TransformFunc<T> = (object: T) => T;

/**
 * Decides what becomes of an object that a transform throws for: what takes its place, or nothing.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, OnTransformRejected } from "@listwatch/cache";
 * const leaveOut: OnTransformRejected<KubernetesObject> = (error) => {
 *   console.warn(error.message);
 *   return undefined;
 * };
 * ```
 */
export type OnTransformRejected<T> = (error: TransformError, object: T) => T | undefined;

/**
 * Runs a transform.
 *
 * @throws {TransformError} It threw.
 */
export function transformed<T>(transform: TransformFunc<T>, object: T): T {
  try {
    return transform(object);
  } catch (error) {
    throw new TransformError(object, error);
  }
}

/**
 * Runs a transform on every object.
 *
 * @param onRejected Told of each one it throws for, instead of throwing; what it returns takes the object's place.
 * @throws {TransformError} It threw, and there is no `onRejected`.
 */
export function transformedAll<T>(
  transform: TransformFunc<T>,
  objects: readonly T[],
  onRejected?: OnTransformRejected<T>,
): T[] {
  const accepted: T[] = [];
  for (const object of objects) {
    try {
      accepted.push(transformed(transform, object));
    } catch (error) {
      if (onRejected === undefined) throw error;
      const instead = onRejected(error as TransformError, object);
      if (instead !== undefined) accepted.push(instead);
    }
  }
  return accepted;
}
