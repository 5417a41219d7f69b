/** The changes that handlers and observers of an informer receive. */

import {
  type DeletedFinalStateUnknown,
  type DeletedObject,
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
} from "../meta/object.ts";
import type { Held, Holding } from "../store/holding.ts";

/**
 * Receives every change, one at a time and in order; every method may be missing. A method that returns a
 * promise is awaited before the next call; any other result is ignored. One that throws, or rejects, is
 * logged and has handled its notification.
 *
 * Objects are shared with the store and all other handlers: read-only.
 *
 * Mirrors client-go's `ResourceEventHandler`, with `ResourceEventHandlerDetailedFuncs`' flag and a delete
 * that is typed instead of an `any` to be asserted.
 *
 * @category Informers
 */
export interface ResourceEventHandler<T> {
  /**
   * An object appeared.
   * @param isInInitialList Whether it was there when the informer (or this handler) started.
   */
  onAdd?(object: T, isInInitialList: boolean): unknown;
  /**
   * An object changed, was replaced by another of the same name, or is sent again (by a resync; both states
   * are the same).
   */
  onUpdate?(oldObject: T, newObject: T): unknown;
  /** An object was deleted. */
  onDelete?(deleted: DeletedObject<T>): unknown;
}

/** A pending call of a {@linkcode ResourceEventHandler}. */
export type Notification<T> =
  | { readonly type: "add"; readonly object: T; readonly isInInitialList: boolean }
  | { readonly type: "update"; readonly oldObject: T; readonly object: T }
  | {
    readonly type: "delete";
    readonly deleted: DeletedObject<T>;
    /** The state that the store held. */
    readonly oldObject: T | undefined;
  };

/**
 * Passes on to a handler only what concerns the objects that a filter accepts: an object that begins to be
 * accepted is an add, one that ceases is a delete.
 *
 * A delete is passed on if the filter accepts the object's final state; if that is unknown, the filter
 * receives the tombstone. Mirrors client-go's `FilteringResourceEventHandler`.
 *
 * @example
 * ```ts
 * import {
 *   DeletedFinalStateUnknown,
 *   FilteringResourceEventHandler,
 *   type KubernetesObject,
 * } from "@listwatch/cache";
 * const isWeb = (object?: KubernetesObject) => object?.metadata?.labels?.app === "web";
 * const web = new FilteringResourceEventHandler<KubernetesObject>(
 *   (object) => isWeb(object instanceof DeletedFinalStateUnknown ? object.object : object),
 *   { onAdd: (object) => console.log("a web object:", object.metadata?.name) },
 * );
 * web.onAdd({ metadata: { name: "db-1", labels: { app: "db" } } }, false); // nothing
 * ```
 *
 * @category Informers
 */
export class FilteringResourceEventHandler<T> implements ResourceEventHandler<T> {
  readonly #filter: (object: T | DeletedFinalStateUnknown<T>) => boolean;
  readonly #handler: ResourceEventHandler<T>;
  readonly #keyFunc: KeyFunc;

  /** @param options `keyFunc`: the key of an object that is no longer accepted. */
  constructor(
    filter: (object: T | DeletedFinalStateUnknown<T>) => boolean,
    handler: ResourceEventHandler<T>,
    options: { readonly keyFunc?: KeyFunc } = {},
  ) {
    this.#filter = filter;
    this.#handler = handler;
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
  }

  /** Passes on an object that is accepted. */
  onAdd(object: T, isInInitialList: boolean): unknown {
    return this.#filter(object) ? this.#handler.onAdd?.(object, isInInitialList) : undefined;
  }

  /** Passes on an update, an add or a delete, by which of the two states are accepted. */
  onUpdate(oldObject: T, newObject: T): unknown {
    const before = this.#filter(oldObject);
    const after = this.#filter(newObject);
    if (before && after) return this.#handler.onUpdate?.(oldObject, newObject);
    if (after) return this.#handler.onAdd?.(newObject, false);
    if (!before) return undefined;
    return this.#handler.onDelete?.({
      finalStateUnknown: false,
      key: this.#keyFunc(oldObject),
      object: oldObject,
    });
  }

  /** Passes on a delete whose final state, or tombstone, is accepted. */
  onDelete(deleted: DeletedObject<T>): unknown {
    const asked = deleted.finalStateUnknown ? deleted : deleted.object;
    return this.#filter(asked) ? this.#handler.onDelete?.(deleted) : undefined;
  }
}

/** A change of one object. */
export type StoreChange<T> =
  | { readonly type: "added"; readonly key: string; readonly object: T }
  | { readonly type: "updated"; readonly key: string; readonly object: T; readonly oldObject: T }
  | {
    readonly type: "deleted";
    readonly key: string;
    /**
     * The object as the server deleted it, with the delete's resourceVersion; in a relist, its last known
     * state.
     */
    readonly object: T;
    /** The state that the store held. */
    readonly oldObject: T | undefined;
    /** The delete's resourceVersion where `object` is the last known state, and the watch said it. */
    readonly resourceVersion?: string;
  };

/**
 * An event of a store, in the order of its changes: a single change; a whole list that was applied as one
 * step; or the news that nothing changed up to a resourceVersion. With `byState` the latter was shown by the
 * state of all objects, and not by the watch: events of objects that were created and deleted in between may
 * still arrive. They change nothing then, and a `replaced` without changes comes in their place (`isGap`).
 *
 * In `replaced`, the deletes come first, then what was added or changed in the order of the list; what did
 * not change is not there.
 */
export type StoreEvent<T> =
  | StoreChange<T>
  | {
    readonly type: "replaced";
    readonly resourceVersion: string;
    readonly changes: readonly StoreChange<T>[];
    /** Whether no list came: the event stands for events that a proof by state had passed. */
    readonly isGap?: true;
  }
  | { readonly type: "bookmark"; readonly resourceVersion: string; readonly byState?: true };

/**
 * Makes what opens the objects of events: each when it is read, as a relist may bring more than fit in
 * memory.
 */
export function newEventOpener<T>(holding: Holding<T>): (event: StoreEvent<Held<T>>) => StoreEvent<T> {
  return (event) => {
    if (event.type === "bookmark") return event;
    if (event.type !== "replaced") return openedChange(event, holding);
    let changes: readonly StoreChange<T>[] | undefined;
    return {
      ...event,
      get changes() {
        return changes ??= event.changes.map((change) => openedChange(change, holding));
      },
    };
  };
}

function openedChange<T>(change: StoreChange<Held<T>>, holding: Holding<T>): StoreChange<T> {
  const { type, key, object } = change;
  if (type === "added") {
    return {
      type,
      key,
      get object() {
        return holding.open(object);
      },
    };
  }
  const { oldObject } = change;
  return {
    type,
    key,
    get object() {
      return holding.open(object);
    },
    get oldObject() {
      return (oldObject === undefined ? undefined : holding.open(oldObject)) as T;
    },
  };
}
