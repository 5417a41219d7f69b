/**
 * The two forms of an Event: that of the core group, in which a server stores it, and that of
 * `events.k8s.io`. As
 * https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/events/v1/conversion.go
 *
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import { getOrMake } from "../util/collections.ts";

/** The states of a change. */
interface States {
  readonly object: KubernetesObject | undefined;
  readonly previous: KubernetesObject | undefined;
}

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
const newEvents = new WeakMap<KubernetesObject, KubernetesObject>();
const newChanges = new WeakMap<States, States>();

/** A stored Event in the form of `events.k8s.io`: the same object at each call. */
export function newEvent<E extends KubernetesObject | undefined>(event: E): E {
  return event && getOrMake(newEvents, event, () => renamed(event, CORE_TO_NEW, "events.k8s.io/v1")) as E;
}

/** An Event of `events.k8s.io` in the form that is stored. */
export function coreEvent<E extends KubernetesObject>(event: E): E {
  return renamed(event, NEW_TO_CORE, "v1");
}

/** A change with its states in the form of `events.k8s.io`: the same object at each call. */
export function newEventChange<C extends States>(change: C): C {
  const make = () => ({ ...change, object: newEvent(change.object), previous: newEvent(change.previous) });
  return getOrMake(newChanges, change, make) as C;
}

function renamed<E extends KubernetesObject>(
  event: E,
  names: ReadonlyMap<string, string>,
  apiVersion: string,
): E {
  const members = Object.entries(event).map(([name, value]) => [names.get(name) ?? name, value]);
  return { ...Object.fromEntries(members), apiVersion };
}
