/**
 * Where kind and apiVersion stand, and where they are left out.
 * @module
 */

import { type ApiResource, isBuiltinGroup } from "../protocol/api_resource.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import { closingQuote } from "../util/json_text.ts";

/** An object with its kind and apiVersion, which items of a list come without. */
export function withType(resource: ApiResource, object: KubernetesObject): KubernetesObject {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object;
  return { kind: resource.kind, apiVersion: groupVersion(resource), ...object };
}

/** As {@linkcode withType}, of an object's JSON text; `undefined` if that needs a look at the object. */
export function withTypeText(resource: ApiResource, json: string): string | undefined {
  if (TYPE.test(json)) return json;
  if (json.length <= 2 || hasTypeField(json)) return undefined;
  const type = JSON.stringify({ kind: resource.kind, apiVersion: groupVersion(resource) });
  return `${type.slice(0, -1)},${json.slice(1)}`;
}

/** An object's JSON text without kind and apiVersion; `undefined` if that needs a look at the object. */
export function withoutTypeText(json: string): string | undefined {
  const type = TYPE.exec(json);
  if (type !== null) return `{${json.slice(type[0].length)}`;
  return hasTypeField(json) ? undefined : json;
}

/** Kind and apiVersion where API servers write them: at the beginning. */
const TYPE = /^\{"(?:kind":"[^"\\]*","apiVersion|apiVersion":"[^"\\]*","kind)":"[^"\\]*"(?:,|(?=\}))/;

/** Whether an object has a kind or an apiVersion, by its JSON text: what lies deeper is stepped over. */
function hasTypeField(json: string): boolean {
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const character = json.charCodeAt(i);
    if (character === QUOTE) {
      const start = i + 1;
      i = closingQuote(json, i);
      if (depth !== 1 || json.charCodeAt(i + 1) !== COLON) continue;
      const name = json.slice(start, i);
      if (name === "kind" || name === "apiVersion") return true;
    } else if (character === OPEN_BRACE || character === OPEN_BRACKET) {
      depth++;
    } else if (character === CLOSE_BRACE || character === CLOSE_BRACKET) {
      depth--;
    }
  }
  return false;
}

const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Whether the items of a list have kind and apiVersion: those of custom resources do. */
export function hasTypedItems(resource: ApiResource): boolean {
  return !isBuiltinGroup(resource.group);
}
