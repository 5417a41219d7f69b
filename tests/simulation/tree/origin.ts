/**
 * What a selection of the origin's objects was at each version, and which events lead from one to the next.
 * @module
 */

import { type ClusterModel, keyOfObject, type Revision, type SimObject, stateOf } from "../cluster_model.ts";
import { isSameValue, VIEWS } from "../views.ts";

/** Whether an object is selected. */
export type Matches = (object: SimObject) => boolean;

/** One event of a watch. */
export interface WatchLine {
  readonly type: string;
  readonly object: SimObject;
}

/** The resource of all trees. */
export const RESOURCE = "pods";

/** The selected objects at a version. */
export function selectionAt(
  cluster: ClusterModel,
  version: number,
  matches: Matches,
): Map<string, SimObject> {
  const state = cluster.stateAt(RESOURCE, version);
  for (const [key, object] of state) if (!matches(object)) state.delete(key);
  return state;
}

/** How what was read differs from the selected objects at a version. */
export function differenceAt(
  cluster: ClusterModel,
  read: ReadonlyMap<string, SimObject>,
  at: {
    readonly version: number;
    readonly matches: Matches;
  },
): string | undefined {
  const state = selectionAt(cluster, at.version, at.matches);
  for (const [key, object] of state) {
    const found = read.get(key);
    if (stateOf(found) !== stateOf(object)) {
      return `at ${at.version} it has ${key} as ${stateOf(found)}, not ${stateOf(object)}`;
    }
    if (!isSameObject(found!, object)) {
      return `${key} ${stateOf(object)} is ${JSON.stringify(found)}`;
    }
  }
  for (const key of read.keys()) {
    if (!state.has(key)) {
      return `at ${at.version} it has ${key} ${stateOf(read.get(key))}, which is not there`;
    }
  }
  return undefined;
}

/** Whether an object that was read is a state of the origin, less the fields that nodes leave out. */
export function isSameObject(read: SimObject, object: SimObject): boolean {
  // The items of a list have no apiVersion and kind.
  const { kind, apiVersion } = object;
  return isSameValue({ kind, apiVersion, ...read }, VIEWS.ordinary.of(object));
}

/** The event that a revision is for a selection. */
export function eventOf(one: Revision, matches: Matches): WatchLine | undefined {
  if (one.resource !== RESOURCE) return undefined;
  const before = one.previous !== undefined && matches(one.previous);
  const after = one.kind !== "delete" && matches(one.object);
  if (!before && !after) return undefined;
  return {
    type: before && after ? "MODIFIED" : after ? "ADDED" : "DELETED",
    object: after ? one.object : one.previous!,
  };
}

/** The first revision after `after`, up to `through`, that is an event for a selection. */
export function nextEvent(
  cluster: ClusterModel,
  { after, through, matches }: {
    readonly after: number;
    readonly through: number;
    readonly matches: Matches;
  },
): (WatchLine & { readonly revision: number }) | undefined {
  for (let revision = after + 1; revision <= Math.min(through, cluster.revision); revision++) {
    const event = eventOf(cluster.at(revision), matches);
    if (event !== undefined) return { ...event, revision };
  }
  return undefined;
}

/** Whether an object had a state at one of some versions. */
export function hadState(
  cluster: ClusterModel,
  object: SimObject,
  { from, through }: { readonly from: number; readonly through: number },
): boolean {
  const version = Number(object.metadata.resourceVersion);
  if (!(version <= through) || version > cluster.revision) return false;
  const state = cluster.stateAt(RESOURCE, Math.max(version, from));
  const found = state.get(keyOfObject(object));
  return found !== undefined && stateOf(found) === stateOf(object) && isSameObject(object, found);
}
