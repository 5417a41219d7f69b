/** The values of the fields that field selectors name. */

import type { FieldGetter } from "../meta/fields.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import { quotedByGo } from "./statuses.ts";
import { type ApiResource, isBuiltinGroup } from "./api_resource.ts";

/** Reads the fields of one object; made once per resource, called per object. */
export type SelectableFields = (object: unknown) => FieldGetter;

type Special = (object: unknown) => string;

// Fields whose selectable value is not the value at their path.
const SPECIAL: ReadonlyMap<string, ReadonlyMap<string, Special>> = new Map([
  [
    "pods",
    special({
      "spec.host": valueOf("spec.nodeName"),
      "spec.hostNetwork": valueOf("spec.hostNetwork", "false"),
      "status.podIP": podIP,
    }),
  ],
  ["nodes", special({ "spec.unschedulable": valueOf("spec.unschedulable", "false") })],
  ["events", special({ source: eventSource })],
  ["replicationcontrollers", special({ "status.replicas": valueOf("status.replicas", "0") })],
  ["batch/jobs", special({ "status.successful": valueOf("status.succeeded", "0") })],
]);

/**
 * How field selectors read the objects of a resource: a field is a dotted path (`spec.nodeName`), its value a
 * text; absent fields are empty. Some built-in fields have a default or another source, as in the API server.
 */
export function selectableFields(of: GroupVersionResource): SelectableFields {
  const specials = specialsOf(of);
  return (object) => (field) => specials?.get(field)?.(object) ?? text(valueAt(object, field));
}

/** The fields that selectors of a resource may name, and the error for others. */
export interface FieldRules {
  readonly selectableFields: readonly string[];
  readonly unsupportedField: (field: string) => string;
}

/** The rules for most of Kubernetes' own resources. */
export const METADATA_FIELDS: FieldRules = {
  selectableFields: ["metadata.name", "metadata.namespace"],
  unsupportedField: (field) =>
    `${quotedByGo(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
};

// Refusals with a text of their own, by kind and group.
const UNSUPPORTED: ReadonlyMap<string, FieldRules["unsupportedField"]> = new Map([
  ["Job.batch", (field: string) => `field label ${quotedByGo(field)} not supported for Job`],
  [
    "ResourceSlice.resource.k8s.io",
    (field: string) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${field}`,
  ],
]);

/** The rules for field selectors of a resource. `more` are fields beyond those that an API server has. */
export function fieldRules(resource: ApiResource, more: readonly string[] = []): FieldRules {
  const { group, kind, namespaced, fieldSelectors } = resource;
  const own = fieldSelectors === undefined && isBuiltinGroup(group) ? METADATA_FIELDS : {
    selectableFields: fieldSelectors ??
      (namespaced ? METADATA_FIELDS.selectableFields : ["metadata.name"]),
    unsupportedField: UNSUPPORTED.get(`${kind}.${group}`) ??
      ((field: string) => `field label not supported: ${field}`),
  };
  return more.length === 0 ? own : { ...own, selectableFields: [...own.selectableFields, ...more] };
}

/** Whether the selectable value of a field is the value at its path, without a default or another source. */
export function isFieldAtItsPath(of: GroupVersionResource, field: string): boolean {
  return specialsOf(of)?.has(field) !== true;
}

function specialsOf({ group, resource }: GroupVersionResource): ReadonlyMap<string, Special> | undefined {
  return SPECIAL.get(group === "" ? resource : `${group}/${resource}`);
}

/**
 * The value at a dotted path; arrays have none. Its readers want texts, numbers, booleans and arrays, which
 * no object inherits.
 */
export function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : "";
}

function special(fields: Record<string, Special>): ReadonlyMap<string, Special> {
  return new Map(Object.entries(fields));
}

function valueOf(path: string, otherwise = ""): Special {
  return (object) => text(valueAt(object, path)) || otherwise;
}

function podIP(object: unknown): string {
  const podIPs = valueAt(object, "status.podIPs");
  return text(valueAt(Array.isArray(podIPs) ? podIPs[0] : undefined, "ip"));
}

function eventSource(object: unknown): string {
  return text(valueAt(object, "source.component")) || text(valueAt(object, "reportingComponent"));
}
