/**
 * What a watcher sees of a change, as bytes.
 * @module
 */

import { groupVersion } from "../meta/resource.ts";
import type { Status } from "../meta/status.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../meta/watch_event.ts";
import type { Change, StoredObject } from "./cluster_state.ts";
import { type Shape, shaped } from "./representation.ts";
import type { Selection } from "./selection.ts";
import type { ServedResource } from "./served_resources.ts";

type EventType = "ADDED" | "MODIFIED" | "DELETED";

const encoder = new TextEncoder();

// Each change is encoded once for all watchers; at most three ways for each shape, as selectors may see it differently.
const encodedChanges = new WeakMap<Change, Map<string, Uint8Array>>();

/**
 * The event of a change, for those who watch a selection; `undefined` if it is none of their business. An object that
 * enters the selection is ADDED; one that leaves it is DELETED, as it was before, with the change's resourceVersion.
 */
export function encodeChange(change: Change, selection: Selection, shape: Shape): Uint8Array | undefined {
  const { object, previous } = change;
  const isIn = object !== undefined && selection.matches(object);
  const wasIn = previous !== undefined && selection.matches(previous);
  if (!isIn && !wasIn) return undefined;
  const type = !isIn ? "DELETED" : wasIn ? "MODIFIED" : "ADDED";
  let encoded = encodedChanges.get(change);
  if (encoded === undefined) encodedChanges.set(change, encoded = new Map());
  const name = `${type} ${shape}`;
  let event = encoded.get(name);
  if (event === undefined) {
    event = encodeEvent(type, shaped(isIn ? object : lastState(change, previous!), shape));
    encoded.set(name, event);
  }
  return event;
}

function lastState(change: Change, previous: StoredObject): StoredObject {
  return { ...previous, metadata: { ...previous.metadata, resourceVersion: String(change.revision) } };
}

/** An event on a line of its own. */
export function encodeEvent(type: EventType | "BOOKMARK" | "ERROR", object: unknown): Uint8Array {
  return encoder.encode(`{"type":"${type}","object":${JSON.stringify(object)}}\n`);
}

/** A bookmark; the one that ends the initial events says so. */
export function encodeBookmark(
  resource: ServedResource,
  revision: bigint,
  options: { readonly shape: Shape; readonly endsInitialEvents?: boolean },
): Uint8Array {
  const bookmark = {
    kind: resource.kind,
    apiVersion: groupVersion(resource),
    metadata: {
      resourceVersion: String(revision),
      ...(options.endsInitialEvents && { annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true" } }),
    },
  };
  return encodeEvent("BOOKMARK", shaped(bookmark, options.shape));
}

/** An ERROR event. */
export function encodeError(status: Status): Uint8Array {
  return encodeEvent("ERROR", status);
}
