/**
 * Objects, lists and events as a client receives them.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import type { Status } from "../meta/status.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../meta/list_watch.ts";
import { type ObjectShape, partialMetadata } from "../protocol/object_shape.ts";
import { onOneLine } from "../text/json_walk.ts";
import type { Change, StoredObject } from "./cluster_state.ts";
import type { JsonObject } from "./json.ts";
import type { Page, Selection } from "./object_reader.ts";
import type { ServedResource } from "./served_resources.ts";

/**
 * An object in the shape that a client asks for. This server makes no Tables; a client that accepts one
 * accepts the object, too.
 */
export function shaped(object: KubernetesObject, shape: ObjectShape): KubernetesObject {
  return shape.kind === "PartialObjectMetadata" ? partialMetadata(object, shape.apiVersion) : object;
}

/** The document of a list. */
export function listDocument(
  resource: ServedResource,
  { metadata, items }: Page,
  shape: ObjectShape,
): JsonObject {
  if (shape.kind === "PartialObjectMetadata") {
    const { apiVersion } = shape;
    const partial = items.map((item) => partialMetadata(item, apiVersion));
    return { kind: "PartialObjectMetadataList", apiVersion, metadata, items: partial };
  }
  return {
    kind: `${resource.kind}List`,
    apiVersion: groupVersion(resource),
    metadata,
    // Only items of custom resources have kind and apiVersion.
    items: resource.isCustom ? items : items.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
  };
}

type EventType = "ADDED" | "MODIFIED" | "DELETED";

const encoder = new TextEncoder();

// Each change is encoded once for all watchers: at most three events per shape, as they depend on the
// selector.
const encodedChanges = new WeakMap<Change, Map<string, Uint8Array>>();

/**
 * The event of a change for the watchers of a selection; `undefined` if the change is outside of it. An
 * object that enters the selection is ADDED; one that leaves it is DELETED, with its state before and the
 * resourceVersion of the change.
 */
export function encodeChange(
  change: Change,
  selection: Selection,
  shape: ObjectShape,
): Uint8Array | undefined {
  const { object, previous } = change;
  const isIn = object !== undefined && selection.matches(object);
  const wasIn = previous !== undefined && selection.matches(previous);
  if (!isIn && !wasIn) return undefined;
  const type = !isIn ? "DELETED" : wasIn ? "MODIFIED" : "ADDED";
  let encoded = encodedChanges.get(change);
  if (encoded === undefined) encodedChanges.set(change, encoded = new Map());
  const name = `${type} ${shape.kind === "PartialObjectMetadata" ? shape.apiVersion : ""}`;
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
  return encoder.encode(`{"type":"${type}","object":${onOneLine(JSON.stringify(object))}}\n`);
}

/** A bookmark; the one after the initial events has an annotation. */
export function encodeBookmark(
  resource: ServedResource,
  revision: bigint,
  options: { readonly shape: ObjectShape; readonly endsInitialEvents?: boolean },
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
