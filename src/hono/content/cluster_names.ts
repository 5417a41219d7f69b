/**
 * Objects of one cluster among those of others: named after it, with an annotation that says where they come from.
 * @module
 */

import type { KubernetesObject } from "../../meta/object.ts";
import {
  afterBrackets,
  CLOSE_BRACE,
  closingQuote,
  COLON,
  COMMA,
  endsScalar,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "../../text/json_text.ts";

/** The annotation of objects that are shown among those of other clusters. */
export const CLUSTER_ANNOTATION = "listwatch.dev/cluster";

/** The key of an object among those of all clusters. */
export function shownKey(cluster: string, key: string): string {
  const slash = key.indexOf("/") + 1;
  return `${key.slice(0, slash)}${cluster}.${key.slice(slash)}`;
}

/** The key that it has in its cluster: names of clusters have no dots. */
export function ownKey(shown: string): string {
  const slash = shown.indexOf("/") + 1;
  return shown.slice(0, slash) + shown.slice(shown.indexOf(".", slash) + 1);
}

/** An object among those of all clusters. */
export function shownObject<T extends KubernetesObject>(cluster: string, object: T): T {
  const { metadata } = object;
  if (metadata?.name === undefined) return object;
  const annotations = { ...metadata.annotations, [CLUSTER_ANNOTATION]: cluster };
  return { ...object, metadata: { ...metadata, name: `${cluster}.${metadata.name}`, annotations } };
}

/**
 * The same, of an object's JSON text: everything else of it stays, digit for digit. `undefined` if that needs a look at
 * the object.
 */
export function shownText(cluster: string, json: string): string | undefined {
  const metadata = valueAt(json, 0, "metadata");
  const name = metadata && valueAt(json, metadata.start, "name");
  if (name === undefined || json.charCodeAt(name.start) !== QUOTE) return undefined;
  const annotations = valueAt(json, metadata!.start, "annotations");
  const annotation = `${JSON.stringify(CLUSTER_ANNOTATION)}:${JSON.stringify(cluster)}`;
  // Clusters' names need no escapes.
  const prefix = { at: name.start + 1, text: `${cluster}.` };
  if (annotations === undefined) {
    return inserted(json, [{ at: metadata!.start + 1, text: `"annotations":{${annotation}},` }, prefix]);
  }
  if (json.charCodeAt(annotations.start) !== OPEN_BRACE) return undefined;
  if (valueAt(json, annotations.start, CLUSTER_ANNOTATION) !== undefined) return undefined;
  const isEmpty = json.charCodeAt(afterSpace(json, annotations.start + 1)) === CLOSE_BRACE;
  const first = { at: annotations.start + 1, text: isEmpty ? annotation : `${annotation},` };
  return inserted(json, first.at < prefix.at ? [first, prefix] : [prefix, first]);
}

function inserted(json: string, parts: readonly { readonly at: number; readonly text: string }[]): string {
  let result = "";
  let from = 0;
  for (const { at, text } of parts) {
    result += json.slice(from, at) + text;
    from = at;
  }
  return result + json.slice(from);
}

/**
 * Where the value of a field begins and ends, in the object that begins at `open`; `undefined` if it has no such field, or
 * a key with escapes, which may be it.
 */
function valueAt(
  json: string,
  open: number,
  field: string,
): { readonly start: number; readonly end: number } | undefined {
  if (json.charCodeAt(open) !== OPEN_BRACE) return undefined;
  for (let i = open + 1;;) {
    i = afterSpace(json, i);
    if (json.charCodeAt(i) === COMMA) i = afterSpace(json, i + 1);
    const keyEnd = json.charCodeAt(i) === QUOTE ? closingQuote(json, i) : -1;
    if (keyEnd < 0) return undefined;
    const isIt = keyEnd - i - 1 === field.length && json.startsWith(field, i + 1);
    i = afterSpace(json, keyEnd + 1);
    if (json.charCodeAt(i) !== COLON) return undefined;
    const start = afterSpace(json, i + 1);
    i = afterValue(json, start);
    if (i < 0) return undefined;
    if (isIt) return { start, end: i };
  }
}

/** Behind the value that begins here; -1 if it does not end. */
function afterValue(json: string, start: number): number {
  const code = json.charCodeAt(start);
  if (code === QUOTE) return closingQuote(json, start) + 1 || -1;
  if (code === OPEN_BRACE || code === OPEN_BRACKET) return afterBrackets(json, start, json.length);
  let i = start;
  while (i < json.length && !endsScalar(json.charCodeAt(i))) i++;
  return i === start ? -1 : i;
}

function afterSpace(json: string, from: number): number {
  let i = from;
  while (json.charCodeAt(i) <= SPACE) i++;
  return i;
}
