/**
 * The interface through which the living cluster writes objects.
 * @module
 */

import type { ClusterObject } from "./objects.ts";

/** Receives the changes of a living cluster; called synchronously, in their order. */
export interface ClusterWriter {
  /** A new object. */
  create(object: ClusterObject): void;
  /** The new state of an object, whole. */
  update(object: ClusterObject): void;
  /** The last state of a deleted object. */
  delete(object: ClusterObject): void;
}
