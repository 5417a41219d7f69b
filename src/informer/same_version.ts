/**
 * Whether two states of an object are one.
 * @module
 */

import { metaOf, resourceVersionOf } from "../meta/object.ts";

/** Whether two states of one object are the same state: same object, same version. */
export function isSameVersion(a: unknown, b: unknown): boolean {
  const left = metaOf(a);
  const right = metaOf(b);
  return left !== undefined && right !== undefined && Boolean(left.resourceVersion) &&
    left.resourceVersion === right.resourceVersion && left.uid === right.uid;
}

/** Whether a state is the one that is known. */
export function isUnchanged(known: unknown, object: unknown): boolean {
  return known === object || isSameVersion(known, object);
}

/** Whether both have metadata, with the same resourceVersion. */
export function isSameResourceVersion(a: unknown, b: unknown): boolean {
  const left = resourceVersionOf(a);
  return left !== undefined && left === resourceVersionOf(b);
}
