/**
 * The events of a store.
 * @module
 */

import type { Held, Holding } from "../store/holding.ts";

/**
 * One object that changed.
 *
 * @category Informers
 */
export type StoreChange<T> =
  | { readonly type: "added"; readonly key: string; readonly object: T }
  | { readonly type: "updated"; readonly key: string; readonly object: T; readonly oldObject: T }
  | {
    readonly type: "deleted";
    readonly key: string;
    /** As the server deleted it: its resourceVersion is the delete's. In a relist: the last known state. */
    readonly object: T;
    /** What the store held. */
    readonly oldObject: T | undefined;
  };

/**
 * What happened to a store, in the order it happened: a single change; a whole list that was applied as one
 * step; or the news that nothing changed up to a resourceVersion.
 *
 * In `replaced`, the deletes come first, then what was added or changed in the order of the list; what did
 * not change is not there.
 *
 * @category Informers
 */
export type StoreEvent<T> =
  | StoreChange<T>
  | {
    readonly type: "replaced";
    readonly resourceVersion: string;
    readonly changes: readonly StoreChange<T>[];
  }
  | { readonly type: "bookmark"; readonly resourceVersion: string };

/**
 * Makes what opens the objects of events: each when it is read, as a relist may bring more than fit in
 * memory.
 */
export function newEventOpener<T>(holding: Holding<T>): (event: StoreEvent<Held<T>>) => StoreEvent<T> {
  const opened = (event: StoreEvent<Held<T>>): StoreEvent<T> => {
    switch (event.type) {
      case "bookmark":
        return event;
      case "replaced":
        return openedReplace(event, holding);
      default:
        return openedChange(event, holding);
    }
  };
  return (event) => holding.convert(event, opened);
}

function openedReplace<T>(
  event: Extract<StoreEvent<Held<T>>, { type: "replaced" }>,
  holding: Holding<T>,
): StoreEvent<T> {
  let changes: readonly StoreChange<T>[] | undefined;
  return {
    ...event,
    get changes() {
      return changes ??= event.changes.map((change) => openedChange(change, holding));
    },
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
