/**
 * The two forms of an Event: that of the core group, in which a server stores it, and that of `events.k8s.io`.
 * As https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/events/v1/conversion.go
 *
 * @module
 */

import { getOrMake } from "../util/collections.ts";
import type { Change, StoredObject } from "./cluster_state.ts";

const CORE_TO_NEW: ReadonlyMap<string, string> = new Map([
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
]);
const NEW_TO_CORE: ReadonlyMap<string, string> = new Map(
  Array.from(CORE_TO_NEW, ([core, name]) => [name, core]),
);

// A state is one object however often it is read, and its change is encoded once for all watches.
const newEvents = new WeakMap<StoredObject, StoredObject>();
const newChanges = new WeakMap<Change, Change>();

/** A stored Event in the form of `events.k8s.io`: the same object at each call. */
export function newEvent<E extends StoredObject | undefined>(event: E): E {
  return event && getOrMake(newEvents, event, () => renamed(event, CORE_TO_NEW, "events.k8s.io/v1")) as E;
}

/** An Event of `events.k8s.io` in the form that is stored. */
export function coreEvent(event: StoredObject): StoredObject {
  return renamed(event, NEW_TO_CORE, "v1");
}

/** A change with its states in the form of `events.k8s.io`: the same object at each call. */
export function newEventChange(change: Change): Change {
  const make = () => ({ ...change, object: newEvent(change.object), previous: newEvent(change.previous) });
  return getOrMake(newChanges, change, make);
}

function renamed(event: StoredObject, names: ReadonlyMap<string, string>, apiVersion: string): StoredObject {
  const members = Object.entries(event).map(([name, value]) => [names.get(name) ?? name, value]);
  return { ...Object.fromEntries(members), apiVersion };
}
