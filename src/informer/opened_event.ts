/**
 * Store events for those who want objects.
 * @module
 */

import type { Held, ObjectCodec } from "../store/object_codec.ts";
import type { StoreChange, StoreEvent } from "./store_event.ts";

/** The event with its objects decoded: each when it is asked for, as a relist may bring more than fit in memory. */
export function openedEvent<T>(event: StoreEvent<Held<T>>, codec: ObjectCodec<T>): StoreEvent<T> {
  if (event.type === "bookmark") return event;
  if (event.type !== "replaced") return openedChange(event, codec);
  return { ...event, changes: event.changes.map((change) => openedChange(change, codec)) };
}

function openedChange<T>(change: StoreChange<Held<T>>, codec: ObjectCodec<T>): StoreChange<T> {
  const { type, key, object } = change;
  if (type === "added") {
    return {
      type,
      key,
      get object() {
        return codec.decode(object);
      },
    };
  }
  const { oldObject } = change;
  return {
    type,
    key,
    get object() {
      return codec.decode(object);
    },
    get oldObject() {
      return (oldObject === undefined ? undefined : codec.decode(oldObject)) as T;
    },
  };
}
