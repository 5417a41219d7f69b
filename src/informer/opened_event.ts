/**
 * Store events with opened objects.
 * @module
 */

import type { Held, Holding } from "../store/holding.ts";
import type { StoreChange, StoreEvent } from "./store_event.ts";

/** The event with its objects opened: each when it is read, as a relist may bring more than fit in memory. */
export function openedEvent<T>(event: StoreEvent<Held<T>>, holding: Holding<T>): StoreEvent<T> {
  if (holding.holdsAsIs) return event as StoreEvent<T>;
  switch (event.type) {
    case "bookmark":
      return event;
    case "replaced":
      return openedReplace(event, holding);
    default:
      return openedChange(event, holding);
  }
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
