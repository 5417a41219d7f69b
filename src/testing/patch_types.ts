/**
 * The kinds of patches, by their media types.
 * @module
 */

import { errorMessage } from "../util/errors.ts";
import { badRequest, failure, unsupportedMediaType } from "./api_errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "./json.ts";
import { jsonPatch, mergePatch, strategicMergePatch } from "./patches.ts";
import type { ServedResource } from "./served_resources.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";

/**
 * What a PATCH request does to an object.
 *
 * @throws {StatusError} 400: the patch cannot be read. 415: the resource takes no patches of this type.
 */
export function applyPatch(
  resource: ServedResource,
  contentType: string,
  body: string,
): (existing: JsonObject) => JsonObject {
  const mediaType = contentType.split(";")[0].trim().toLowerCase();
  const accepted = resource.isCustom ? [JSON_PATCH, MERGE_PATCH] : [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH];
  if (!accepted.includes(mediaType)) {
    if (resource.isCustom) throw unsupportedMediaType(accepted);
    throw failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", { details: {} });
  }
  const patch = decodePatch(body);
  if (mediaType === JSON_PATCH) return (existing) => objectOrRefusal(jsonPatch(existing, patch));
  if (!isJsonObject(patch)) {
    const type = Array.isArray(patch) ? "array" : typeof patch;
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
    );
  }
  const merge = mediaType === MERGE_PATCH ? mergePatch : strategicMergePatch;
  return (existing) => objectOrRefusal(merge(existing, patch));
}

function decodePatch(body: string): unknown {
  try {
    return parseJson(body);
  } catch (error) {
    throw badRequest(`error decoding patch: ${errorMessage(error)}`);
  }
}

function objectOrRefusal(object: unknown): JsonObject {
  if (isJsonObject(object)) return object;
  throw badRequest("the patch leaves no object");
}
