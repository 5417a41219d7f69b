/**
 * Those who want to know what changed.
 * @module
 */

import type { DeletedObject } from "../meta/tombstone.ts";

/**
 * Told of every change, one at a time and in order; every method may be missing. A method that returns a promise is
 * awaited before the next call. One that throws, or rejects, is logged and has handled its notification.
 *
 * Objects are shared with the store and all other handlers: read-only.
 *
 * Mirrors client-go's `ResourceEventHandler`, with `ResourceEventHandlerDetailedFuncs`' flag and a delete that is
 * typed instead of an `any` to be asserted.
 *
 * @example
 * ```ts
 * import type { KubernetesObject, ResourceEventHandler } from "@listwatch/cache";
 * const handler: ResourceEventHandler<KubernetesObject> = {
 *   onAdd: (object, isInInitialList) => console.log("add", object.metadata?.name, isInInitialList),
 *   onUpdate: (oldObject, newObject) => console.log("update", newObject.metadata?.name),
 *   onDelete: (deleted) => console.log("delete", deleted.key, deleted.finalStateUnknown),
 * };
 * ```
 */
export interface ResourceEventHandler<T> {
  /**
   * An object appeared.
   *
   * @param isInInitialList Whether it was there when the informer (or this handler) started.
   */
  onAdd?(object: T, isInInitialList: boolean): void | Promise<void>;
  /** An object changed, was replaced by another of the same name, or is handed out again (a resync: both are one). */
  onUpdate?(oldObject: T, newObject: T): void | Promise<void>;
  /** An object is gone. */
  onDelete?(deleted: DeletedObject<T>): void | Promise<void>;
}

/** One call of a {@linkcode ResourceEventHandler}, waiting to be made. */
export type Notification<T> =
  | { readonly type: "add"; readonly object: T; readonly isInInitialList: boolean }
  | { readonly type: "update"; readonly oldObject: T; readonly object: T }
  | { readonly type: "delete"; readonly deleted: DeletedObject<T> };

/** Makes the call. */
export function notify<T>(
  handler: ResourceEventHandler<T>,
  notification: Notification<T>,
): void | Promise<void> {
  switch (notification.type) {
    case "add":
      return handler.onAdd?.(notification.object, notification.isInInitialList);
    case "update":
      return handler.onUpdate?.(notification.oldObject, notification.object);
    case "delete":
      return handler.onDelete?.(notification.deleted);
  }
}
