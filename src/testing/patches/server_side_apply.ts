/**
 * Server-side apply: which manager has which fields of an object, and what an apply makes of it.
 *
 * Sets of fields are trees as `metadata.managedFields[].fieldsV1` writes them: `f:name`
 * is a member of an object, `k:{"name":"web"}` an element of a list by its keys,
 * `v:"text"` one by its value; a leaf has nothing in it.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
 */

import { isRecord, isSameJson, recordOf } from "../../util/json.ts";
import { badRequest, failure } from "../api_errors.ts";
import type { JsonObject } from "../json.ts";
import { metadataOf, SERVER_FIELDS } from "../object_checks.ts";
import { MERGE_KEYS, mergePatch } from "./patches.ts";
import type { ServedResource } from "../served_resources.ts";

export interface FieldSet {
  readonly [step: string]: FieldSet;
}

export interface ManagedFields {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly time: string;
  readonly fieldsType: "FieldsV1";
  readonly fieldsV1: FieldSet;
  readonly subresource?: string;
}

export interface Writer {
  readonly manager: string;
  readonly apiVersion: string;
  readonly time: string;
  readonly subresource: string;
}

const LEAF: FieldSet = {};

/** Where a reference to an owner is: it belongs to a manager as a whole. */
const OWNER = ".metadata.ownerReferences[]";

/** The metadata that no manager has. */
const UNMANAGED: ReadonlySet<string> = new Set([...SERVER_FIELDS, "managedFields"]);

/** The object after an apply to `existing`, or to nothing. */
export function appliedTo(
  resource: ServedResource,
  existing: JsonObject | undefined,
  config: JsonObject,
  { force, ...writer }: Writer & { readonly force: boolean },
): JsonObject {
  if (metadataOf(config).managedFields !== undefined) throw badRequest("metadata.managedFields must be nil");
  const withoutNulls = mergePatch({}, config) as JsonObject;
  const applied = managedPart(resource, withoutNulls, writer.subresource);
  const set = fieldsOf(applied, resource, "");
  const entries = managedFieldsOf(existing);
  const own = entries.find((entry) => isOf(entry, "Apply", writer));
  const others = entries.filter((entry) => entry !== own);
  const live = existing ?? { metadata: config.metadata };
  const conflicts = others.flatMap((entry) =>
    disputed(set, entry.fieldsV1, applied, live, resource, "").map((path) => ({ entry, path }))
  );
  if (conflicts.length > 0 && !force) throw applyConflict(conflicts);
  const taken = conflicts.reduce((tree, { path }) => union(tree, path.fields), LEAF);
  const rest = others.map((entry) => ({ ...entry, fieldsV1: minus(entry.fieldsV1, taken) }));
  const kept = rest.reduce((tree, { fieldsV1 }) => union(tree, fieldsV1), set);
  const dropped = own === undefined ? LEAF : minus(own.fieldsV1, kept);
  const merged = without(merge(live, applied, resource, ""), dropped, kept) as JsonObject;
  const isSame = existing !== undefined && isSameJson(merged, existing) && own !== undefined &&
    isSameJson(own.fieldsV1, set) && conflicts.length === 0;
  if (isSame) return existing;
  const entry = newEntry("Apply", set, writer);
  return withManagedFields(merged, [entry, ...rest.map((other) => ofPresent(resource, other, merged))]);
}

/**
 * The managed fields after a write that is no apply: the manager of the write owns the fields that it has
 * changed. Only objects that were applied have managed fields.
 */
export function updatedBy(
  resource: ServedResource,
  before: JsonObject,
  after: JsonObject,
  writer: Writer,
): JsonObject {
  const entries = managedFieldsOf(before);
  if (entries.length === 0) return after;
  const { subresource } = writer;
  const [was, is] = [managedPart(resource, before, subresource), managedPart(resource, after, subresource)];
  const [wasSet, isSet] = [fieldsOf(was, resource, ""), fieldsOf(is, resource, "")];
  const changed = union(minus(isSet, wasSet), differing(isSet, wasSet, is, was, resource));
  const lost = union(minus(wasSet, isSet), changed);
  if (isSameJson(lost, LEAF)) return withManagedFields(after, entries);
  const own = entries.find((entry) => isOf(entry, "Update", writer));
  const rest = entries.filter((entry) => entry !== own).map((entry) => ({
    ...entry,
    fieldsV1: minus(entry.fieldsV1, lost),
  }));
  const set = union(minus(own?.fieldsV1 ?? LEAF, lost), changed);
  return withManagedFields(after, [...rest, newEntry("Update", set, writer)]);
}

/** The fields of a manager that an object still has. */
function ofPresent(resource: ServedResource, entry: ManagedFields, object: JsonObject): ManagedFields {
  const present = fieldsOf(managedPart(resource, object, entry.subresource ?? ""), resource, "");
  return { ...entry, fieldsV1: minus(entry.fieldsV1, minus(entry.fieldsV1, present)) };
}

function newEntry(operation: "Apply" | "Update", fieldsV1: FieldSet, writer: Writer): ManagedFields {
  const { manager, apiVersion, time, subresource } = writer;
  return {
    manager,
    operation,
    apiVersion,
    time,
    fieldsType: "FieldsV1",
    fieldsV1,
    ...(subresource !== "" && { subresource }),
  };
}

function isOf(entry: ManagedFields, operation: string, { manager, subresource }: Writer): boolean {
  return entry.operation === operation && entry.manager === manager &&
    (entry.subresource ?? "") === subresource;
}

function managedFieldsOf(object: JsonObject | undefined): ManagedFields[] {
  const { managedFields } = recordOf(object?.metadata);
  return Array.isArray(managedFields) ? managedFields : [];
}

function withManagedFields(object: JsonObject, entries: readonly ManagedFields[]): JsonObject {
  const managedFields = entries.filter(({ fieldsV1 }) => Object.keys(fieldsV1).length > 0);
  return { ...object, metadata: { ...metadataOf(object), managedFields } };
}

/** The part of an object that managers own: the status alone through `status`, otherwise everything else. */
function managedPart(resource: ServedResource, object: JsonObject, subresource: string): JsonObject {
  const { apiVersion: _1, kind: _2, status, metadata: _3, ...rest } = object;
  if (subresource === "status") return status === undefined ? {} : { status };
  const settable = Object.fromEntries(
    Object.entries(metadataOf(object)).filter(([name]) => !UNMANAGED.has(name)),
  );
  return {
    ...rest,
    ...(Object.keys(settable).length > 0 && { metadata: settable }),
    ...(status !== undefined && !resource.statusSubresource && { status }),
  };
}

/** How the elements of a list are found again: by keys, by value, or not at all. */
type ListKeys = readonly string[] | "values" | undefined;

function listKeys(resource: ServedResource, path: string, list: readonly unknown[]): ListKeys {
  const field = path.slice(path.lastIndexOf(".") + 1);
  if (path === ".metadata.finalizers") return "values";
  // The lists of a custom resource are replaced as a whole, but for those of metadata.
  if (resource.isCustom && !path.startsWith(".metadata.")) return undefined;
  const keys = (MERGE_KEYS.get(field) ?? []).filter((key) =>
    list.some((item) => isRecord(item) && key in item)
  );
  if (keys.length === 0 || !list.every(isRecord)) return undefined;
  return field === "ports" ? [keys[0], "protocol"] : [keys[0]];
}

function stepOf(element: unknown, keys: ListKeys): string {
  if (keys === "values") return `v:${JSON.stringify(element)}`;
  const named = (keys ?? []).map((key) => [
    key,
    (element as JsonObject)[key] ?? (key === "protocol" ? "TCP" : undefined),
  ]);
  return `k:${JSON.stringify(Object.fromEntries(named))}`;
}

function fieldsOf(value: unknown, resource: ServedResource, path: string): FieldSet {
  if (Array.isArray(value)) {
    const keys = listKeys(resource, path, value);
    if (keys === undefined) return LEAF;
    return Object.fromEntries(
      value.map((element) => [
        stepOf(element, keys),
        keys === "values" || `${path}[]` === OWNER
          ? LEAF
          : { ".": LEAF, ...fieldsOf(element, resource, `${path}[]`) },
      ]),
    );
  }
  if (!isRecord(value)) return LEAF;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [`f:${name}`, fieldsOf(inner, resource, `${path}.${name}`)]),
  );
}

function isLeaf(set: FieldSet): boolean {
  return Object.keys(set).length === 0;
}

function union(a: FieldSet, b: FieldSet): FieldSet {
  const both = { ...a };
  for (const step of Object.keys(b)) both[step] = Object.hasOwn(a, step) ? union(a[step], b[step]) : b[step];
  return both;
}

function minus(a: FieldSet, b: FieldSet): FieldSet {
  const left: Record<string, FieldSet> = {};
  for (const step of Object.keys(a)) {
    if (!Object.hasOwn(b, step)) left[step] = a[step];
    else if (!isLeaf(a[step])) {
      const inner = minus(a[step], b[step]);
      if (!isLeaf(inner)) left[step] = inner;
    }
  }
  return left;
}

/** A field that another manager has, with another value. */
interface Disputed {
  readonly text: string;
  readonly fields: FieldSet;
}

function disputed(
  set: FieldSet,
  theirs: FieldSet,
  wanted: unknown,
  live: unknown,
  resource: ServedResource,
  path: string,
): Disputed[] {
  return Object.keys(set).filter((step) => step !== "." && Object.hasOwn(theirs, step)).flatMap((step) => {
    const [a, b] = [valueAt(wanted, step, resource, path), valueAt(live, step, resource, path)];
    const inner = `${path}${textOf(step)}`;
    const at = step.startsWith("f:") ? inner : `${path}[]`;
    if (isLeaf(set[step]) || isLeaf(theirs[step])) {
      // What is applied empty, and merged, disputes nothing, nor does what is put into it.
      const isPutIn = !isLeaf(set[step]) && (isRecord(b) || Array.isArray(b));
      const isSame = b === undefined || isPutIn || isSameJson(merge(b, a, resource, at), b);
      return isSame ? [] : [{ text: inner, fields: { [step]: set[step] } }];
    }
    return disputed(set[step], theirs[step], a, b, resource, at).map(
      (
        { text, fields },
      ) => ({ text: text.replace(`${path}[]`, inner), fields: { [step]: fields } }),
    );
  });
}

/** The leaves of both sets whose values differ. */
function differing(
  set: FieldSet,
  other: FieldSet,
  a: unknown,
  b: unknown,
  resource: ServedResource,
): FieldSet {
  return disputed(set, other, a, b, resource, "").reduce((tree, { fields }) => union(tree, fields), LEAF);
}

function valueAt(value: unknown, step: string, resource: ServedResource, path: string): unknown {
  if (step.startsWith("f:")) return isRecord(value) ? value[step.slice(2)] : undefined;
  if (!Array.isArray(value)) return undefined;
  const keys = listKeys(resource, path, value);
  return value.find((element) => stepOf(element, keys) === step);
}

function textOf(step: string): string {
  if (step.startsWith("f:")) return `.${step.slice(2)}`;
  if (step.startsWith("v:")) return `[=${step.slice(2)}]`;
  const keys = Object.entries(JSON.parse(step.slice(2)) as JsonObject);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
}

function merge(live: unknown, wanted: unknown, resource: ServedResource, path: string): unknown {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live)) return wanted;
    const keys = listKeys(resource, path, wanted.length > 0 ? wanted : live);
    if (keys === undefined) return wanted;
    const merged = [...live];
    for (const element of wanted) {
      const at = merged.findIndex((other) => stepOf(other, keys) === stepOf(element, keys));
      if (at < 0) merged.push(element);
      else merged[at] = merge(merged[at], element, resource, `${path}[]`);
    }
    return merged;
  }
  if (!isRecord(wanted) || !isRecord(live) || path === OWNER) return wanted;
  const merged = new Map(Object.entries(live));
  for (const [name, value] of Object.entries(wanted)) {
    merged.set(name, merge(merged.get(name), value, resource, `${path}.${name}`));
  }
  return Object.fromEntries(merged);
}

/** A value without the fields of a set; what becomes empty by that goes, too, unless a manager has it. */
function without(value: unknown, dropped: FieldSet, kept: FieldSet): unknown {
  if (isLeaf(dropped)) return value;
  if (Array.isArray(value)) {
    return value.flatMap((element) => {
      const step = Object.keys(dropped).find((step) => isElement(element, step));
      if (step === undefined) return [element];
      // An element has a manager of itself, with which it goes.
      if (isLeaf(dropped[step]) || "." in dropped[step]) return [];
      return [without(element, dropped[step], kept[step])];
    });
  }
  if (!isRecord(value)) return value;
  const left = new Map(Object.entries(value));
  for (const step of Object.keys(dropped)) {
    const name = step.slice(2);
    if (step === "." || !left.has(name)) continue;
    const keptInner = Object.hasOwn(kept, step) ? kept[step] : undefined;
    const inner = isLeaf(dropped[step])
      ? undefined
      : without(left.get(name), dropped[step], keptInner ?? LEAF);
    const isEmpty = Array.isArray(inner)
      ? inner.length === 0
      : isRecord(inner) && Object.keys(inner).length === 0;
    if (inner === undefined || (isEmpty && keptInner === undefined)) left.delete(name);
    else left.set(name, inner);
  }
  return Object.fromEntries(left);
}

function isElement(element: unknown, step: string): boolean {
  const text = step.slice(2);
  if (step.startsWith("v:")) return JSON.stringify(element) === text;
  if (!step.startsWith("k:") || !isRecord(element)) return false;
  return Object.entries(JSON.parse(text) as JsonObject).every(([key, value]) =>
    (element[key] ?? (key === "protocol" ? "TCP" : undefined)) === value
  );
}

function applyConflict(
  conflicts: readonly { readonly entry: ManagedFields; readonly path: Disputed }[],
): Error {
  const causes = conflicts.map(({ entry, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${managerText(entry)}`,
    field: path.text,
  }));
  const [{ message, field }, ...others] = causes;
  if (others.length === 0) {
    return failure(409, "Conflict", `Apply failed with 1 conflict: ${message}: ${field}`, { causes });
  }
  const texts = Array.from(Map.groupBy(causes, (cause) => cause.message), ([message, ofManager]) => {
    const fields = ofManager.map((cause) => cause.field).sort();
    return `${message.replace("conflict", "conflicts")}:\n- ${fields.join("\n- ")}`;
  }).sort();
  const text = `Apply failed with ${causes.length} conflicts: ${texts.join("\n")}`;
  return failure(409, "Conflict", text, { causes });
}

function managerText({ manager, operation, apiVersion, subresource }: ManagedFields): string {
  const through = subresource ? ` with subresource "${subresource}"` : "";
  const using = operation === "Update" ? ` using ${apiVersion}` : "";
  return JSON.stringify(manager) + through + using;
}
