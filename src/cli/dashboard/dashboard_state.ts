/** How the cached resources are doing, for the page. */

import { visibleText } from "../../util/logger.ts";
import type { ReflectedResource } from "../cluster/reflect.ts";
import { briefReason } from "../errors.ts";
import type { ResourceState } from "./dashboard_message.ts";

/** The present state of a resource; `watches` are the open ones of its readers. */
export function resourceState(reflected: ReflectedResource, watches: number): ResourceState {
  const { name, resource, informer } = reflected;
  // The paths of snapshots are not for readers.
  const { snapshot: _, ...status } = informer.status();
  const { lastError } = status;
  return {
    ...status,
    ...(lastError && { lastError: { ...lastError, message: briefReason(lastError) } }),
    name: shownName(name),
    kind: shownName(resource.kind),
    shortNames: (resource.shortNames ?? []).map(shownName),
    path: listPath(reflected),
    namespaced: resource.namespaced,
    objects: informer.indexer.size,
    synced: informer.hasSynced(),
    resourceVersion: informer.indexer.lastStoreSyncResourceVersion(),
    watches,
  };
}

function listPath({ resource: { group, version, resource } }: ReflectedResource): string {
  return group === "" ? `/api/${version}/${resource}` : `/apis/${group}/${version}/${resource}`;
}

// The longest namespace has 63 characters.
const LONGEST_NAME = 64;

export function shownName(name: string): string {
  return visibleText(name, LONGEST_NAME);
}
