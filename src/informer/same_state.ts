/**
 * Whether two states of an object are the same.
 * @module
 */

import { resourceVersionOf } from "../meta/object.ts";
import type { Held, Holding } from "../store/holding.ts";
import { isSameJson } from "../util/same_json.ts";

/** Whether two states of one object are the same state. */
export type IsSameState<T> = (a: T, b: T) => boolean;

/**
 * Makes the function that compares two states, as a store holds them, by their content. The same uid and
 * resourceVersion do not prove it: a server that was restored from a backup gives versions twice, and one
 * that makes its objects up (`metrics.k8s.io`) may leave the version as it is while they change. Another
 * resourceVersion does prove that it is another state; the content is compared only if both are the same.
 *
 * @param holding Of states in their held form.
 */
export function newIsSameState<T>(holding?: Holding<T>): IsSameState<Held<T>> {
  const isSameContent = holding === undefined ? isSameJson : holding.isSameContent.bind(holding);
  return (a, b) => a === b || (resourceVersionOf(a) === resourceVersionOf(b) && isSameContent(a, b));
}

/** The same, of states that are held as they are. */
export const isSameState: IsSameState<unknown> = newIsSameState();
