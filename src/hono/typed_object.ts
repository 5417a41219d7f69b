/**
 * Where kind and apiVersion stand, and where they are left out.
 * @module
 */

import { isBuiltinGroup } from "../meta/builtin_groups.ts";
import type { ApiResource } from "../meta/discovery.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";

/** An object with its kind and apiVersion, which items of a list come without. */
export function withType(resource: ApiResource, object: KubernetesObject): KubernetesObject {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object;
  return { kind: resource.kind, apiVersion: groupVersion(resource), ...object };
}

/** Whether the items of a list have kind and apiVersion: those of custom resources do. */
export function hasTypedItems(resource: ApiResource): boolean {
  return !isBuiltinGroup(resource.group);
}
