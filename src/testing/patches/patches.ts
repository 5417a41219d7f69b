/** Patches of objects: JSON patches, merge patches and strategic merge patches. */

import { errorMessage } from "../../util/errors.ts";
import { isRecord, isSameJson } from "../../util/json.ts";
import { badRequest, failure, patchRefused, unsupportedMediaType } from "../api_errors.ts";
import { type JsonObject, parseJson } from "../json.ts";
import type { ServedResource } from "../served_resources.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";
const APPLY_PATCH = "application/apply-patch+yaml";

/**
 * The change that a PATCH request makes to an object.
 * @throws {StatusError} 400: the patch cannot be read. 415: the resource takes no patches of this type.
 */
export function applyPatch(
  resource: ServedResource,
  contentType: string,
  body: string,
): (existing: JsonObject) => JsonObject {
  const mediaType = mediaTypeOf(contentType);
  const accepted = resource.isCustom ? [JSON_PATCH, MERGE_PATCH] : [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH];
  if (!accepted.includes(mediaType)) {
    if (resource.isCustom) throw unsupportedMediaType(accepted);
    throw failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {});
  }
  const patch = decodePatch(body);
  if (mediaType === JSON_PATCH) return (existing) => objectOrRefusal(jsonPatch(existing, patch));
  if (!isRecord(patch)) {
    const type = Array.isArray(patch) ? "array" : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
    );
  }
  const merge = mediaType === MERGE_PATCH ? mergePatch : strategicMergePatch;
  return (existing) => objectOrRefusal(merge(existing, patch));
}

export function isApply(contentType: string): boolean {
  return mediaTypeOf(contentType) === APPLY_PATCH;
}

function mediaTypeOf(contentType: string): string {
  return contentType.split(";")[0].trim().toLowerCase();
}

function decodePatch(body: string): unknown {
  try {
    return parseJson(body);
  } catch (error) {
    throw badRequest(`error decoding patch: ${errorMessage(error)}`);
  }
}

function objectOrRefusal(object: unknown): JsonObject {
  if (isRecord(object)) return object;
  throw badRequest("the patch leaves no object");
}

/** Applies a JSON merge patch (RFC 7396): `null` removes a field, lists are replaced. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result = new Map<string, unknown>(isRecord(target) ? Object.entries(target) : []);
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) result.delete(field);
    else result.set(field, mergePatch(result.get(field), value));
  }
  return Object.fromEntries(result); // keeps a field named __proto__ a field
}

/** The fields that identify the items of a list, by the struct tags of the built-in types. */
export const MERGE_KEYS: ReadonlyMap<string, readonly string[]> = new Map([
  ["addresses", ["type"]],
  ["conditions", ["type"]],
  ["containers", ["name"]],
  ["env", ["name"]],
  ["ephemeralContainers", ["name"]],
  ["hostAliases", ["ip"]],
  ["imagePullSecrets", ["name"]],
  ["initContainers", ["name"]],
  ["ownerReferences", ["uid"]],
  ["podIPs", ["ip"]],
  ["ports", ["containerPort", "port"]],
  ["secrets", ["name"]],
  ["topologySpreadConstraints", ["topologyKey"]],
  ["volumeDevices", ["devicePath"]],
  ["volumeMounts", ["mountPath"]],
  ["volumes", ["name"]],
]);

/**
 * Applies a strategic merge patch: a merge patch that merges the lists whose items have a known key
 * (containers and volumes by name, conditions by type, ...), and understands `$patch` and
 * `$deleteFromPrimitiveList`. Finalizers are united. Hints about order (`$setElementOrder/...`,
 * `$retainKeys`) are ignored.
 */
export function strategicMergePatch(target: unknown, patch: unknown, field = ""): unknown {
  if (Array.isArray(patch)) return mergeLists(Array.isArray(target) ? target : [], patch, field);
  if (!isRecord(patch)) return patch;
  const isReplacement = patch.$patch === "replace";
  const result = new Map<string, unknown>(
    isRecord(target) && !isReplacement ? Object.entries(target) : [],
  );
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$deleteFromPrimitiveList/")) {
      const list = name.slice("$deleteFromPrimitiveList/".length);
      const items = result.get(list);
      if (Array.isArray(items) && Array.isArray(value)) {
        result.set(list, items.filter((item) => !value.includes(item)));
      }
    } else if (name.startsWith("$")) continue;
    else if (value === null || (isRecord(value) && value.$patch === "delete")) result.delete(name);
    else result.set(name, strategicMergePatch(result.get(name), value, name));
    // The types of the built-in resources leave out lists without elements.
    if (isEmptyList(result.get(name))) result.delete(name);
  }
  return Object.fromEntries(result);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function mergeLists(target: readonly unknown[], patch: readonly unknown[], field: string): unknown[] {
  if (field === "finalizers") return inPatchOrder(target, Array.from(new Set(patch)), (item) => item);
  const isObjects = patch.every(isRecord);
  const candidates = MERGE_KEYS.get(field) ?? [];
  const key = isObjects
    ? candidates.find((name) => patch.some((item) => item[name] !== undefined))
    : undefined;
  if (!isObjects || key === undefined || patch.some((item) => item.$patch === "replace")) {
    return patch.filter((item) => !isRecord(item) || item.$patch === undefined);
  }
  const keyOf = (item: unknown) => isRecord(item) ? item[key] : undefined;
  const deleted = patch.filter((item) => item.$patch === "delete").map(keyOf);
  const left = target.filter((item) => !deleted.includes(keyOf(item)));
  const merged = patch.filter((item) => item.$patch !== "delete").map((item) =>
    strategicMergePatch(left.find((other) => keyOf(other) === keyOf(item)) ?? {}, item)
  );
  return inPatchOrder(left, merged, keyOf);
}

/**
 * The elements of a patched list: those of the patch in its order, and between them the others, each before
 * the first of the patch that came after it in the list. So what a patch adds comes first.
 */
function inPatchOrder(
  target: readonly unknown[],
  patched: readonly unknown[],
  keyOf: (item: unknown) => unknown,
): unknown[] {
  const before = target.map(keyOf);
  const keys = patched.map(keyOf);
  const others = target.filter((item) => !keys.includes(keyOf(item)));
  const merged: unknown[] = [];
  for (const item of patched) {
    const at = before.indexOf(keyOf(item));
    while (others.length > 0 && before.indexOf(keyOf(others[0])) < at) merged.push(others.shift());
    merged.push(item);
  }
  return [...merged, ...others];
}

/**
 * Applies a JSON patch (RFC 6902).
 * @throws {StatusError} 400: it is no list of operations. 422: an operation cannot be applied, or a test
 * fails.
 */
export function jsonPatch(target: JsonObject, patch: unknown): unknown {
  if (!Array.isArray(patch)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
  }
  let document: unknown = target;
  for (const operation of patch) {
    if (!isRecord(operation) || typeof operation.path !== "string") throw patchRefused();
    document = apply(document, operation, pointer(operation.path));
  }
  return document;
}

function apply(document: unknown, operation: JsonObject, path: readonly string[]): unknown {
  switch (operation.op) {
    case "add":
    case "remove":
    case "replace":
      return edit(document, path, operation.op, operation.value);
    case "test": {
      // A member that is not there equals null.
      const parent = at(document, path.slice(0, -1));
      const isAbsent = isRecord(parent) && path.length > 0 && !Object.hasOwn(parent, path.at(-1)!);
      const value = isAbsent ? null : at(document, path);
      if (!isSameJson(value, operation.value ?? null)) throw patchRefused();
      return document;
    }
    case "move":
    case "copy": {
      const from = pointer(String(operation.from));
      const value = at(document, from);
      const rest = operation.op === "move" ? edit(document, from, "remove") : document;
      return edit(rest, path, "add", value);
    }
    default:
      throw patchRefused();
  }
}

function pointer(text: string): string[] {
  if (text === "") return [];
  if (!text.startsWith("/")) throw patchRefused();
  return text.slice(1).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const part of path) {
    if (Array.isArray(value)) value = value[index(part, value.length - 1)];
    else if (isRecord(value) && Object.hasOwn(value, part)) value = value[part];
    else throw patchRefused();
  }
  return value;
}

function index(part: string, last: number): number {
  if (!/^(0|[1-9][0-9]*)$/.test(part) || Number(part) > last) throw patchRefused();
  return Number(part);
}

/** A copy of the document with one place changed; everything beside the path is shared. */
function edit(
  document: unknown,
  path: readonly string[],
  type: "add" | "remove" | "replace",
  value?: unknown,
): unknown {
  if (path.length === 0) {
    if (type === "remove") throw patchRefused();
    return value;
  }
  const [part, ...rest] = path;
  if (Array.isArray(document)) {
    const items = document.slice();
    const isInsertion = rest.length === 0 && type === "add";
    const i = isInsertion && part === "-" ? items.length : index(part, items.length - (isInsertion ? 0 : 1));
    if (rest.length > 0) items[i] = edit(items[i], rest, type, value);
    else if (type === "add") items.splice(i, 0, value);
    else if (type === "remove") items.splice(i, 1);
    else items[i] = value;
    return items;
  }
  if (!isRecord(document)) throw patchRefused();
  const isThere = Object.hasOwn(document, part);
  if (!isThere && (rest.length > 0 || type !== "add")) throw patchRefused();
  const fields = new Map(Object.entries(document));
  if (rest.length > 0) fields.set(part, edit(document[part], rest, type, value));
  else if (type === "remove") fields.delete(part);
  else fields.set(part, value);
  return Object.fromEntries(fields);
}
