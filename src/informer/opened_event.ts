/**
 * Store events for those who want objects.
 * @module
 */

import type { Held, ObjectCodec } from "../store/object_codec.ts";
import type { StoreChange, StoreEvent } from "./store_event.ts";

/** The events that were opened, as they were before. */
const heldEvents = new WeakMap<object, { readonly event: StoreEvent<unknown>; readonly codec: unknown }>();

/** The event with its objects decoded: each when it is asked for, as a relist may bring more than fit in memory. */
export function openedEvent<T>(event: StoreEvent<Held<T>>, codec: ObjectCodec<T>): StoreEvent<T> {
  if (event.type === "bookmark") return event;
  const opened = event.type === "replaced" ? openedReplace(event, codec) : openedChange(event, codec);
  heldEvents.set(opened, { event, codec });
  return opened;
}

/**
 * The event with its objects as the store holds them, for an observer who keeps them; itself if it was not opened with
 * this codec.
 */
export function heldEvent<T>(event: StoreEvent<T>, codec: ObjectCodec<T>): StoreEvent<Held<T>> {
  const known = heldEvents.get(event);
  return known?.codec === codec ? known.event as StoreEvent<Held<T>> : event;
}

function openedReplace<T>(
  event: Extract<StoreEvent<Held<T>>, { type: "replaced" }>,
  codec: ObjectCodec<T>,
): StoreEvent<T> {
  let changes: readonly StoreChange<T>[] | undefined;
  return {
    ...event,
    get changes() {
      return changes ??= event.changes.map((change) => openedChange(change, codec));
    },
  };
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
