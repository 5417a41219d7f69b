/**
 * Where kind and apiVersion stand, and where they are left out.
 * @module
 */

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
  return !BUILTIN_GROUPS.has(resource.group);
}

/** Kubernetes' own groups, whose lists leave kind and apiVersion out of their items. */
const BUILTIN_GROUPS: ReadonlySet<string> = new Set([
  "",
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "apps",
  "autoscaling",
  "batch",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "extensions",
  "flowcontrol.apiserver.k8s.io",
  "internal.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
  "storagemigration.k8s.io",
]);
