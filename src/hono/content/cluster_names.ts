/**
 * Objects of one cluster among those of others: named after it, with an annotation that says where they come
 * from.
 * @module
 */

import type { KubernetesObject } from "../../meta/object.ts";
import { afterSpace, CLOSE_BRACE, OPEN_BRACE, QUOTE, textMember } from "../../text/json_walk.ts";

/** The annotation of objects that are shown among those of other clusters. */
export const CLUSTER_ANNOTATION = "listwatch.dev/cluster";

export function shownKey(cluster: string, key: string): string {
  const slash = key.indexOf("/") + 1;
  return `${key.slice(0, slash)}${cluster}.${key.slice(slash)}`;
}

/** The key that it has in its cluster: names of clusters have no dots. */
export function ownKey(shown: string): string {
  const slash = shown.indexOf("/") + 1;
  return shown.slice(0, slash) + shown.slice(shown.indexOf(".", slash) + 1);
}

export function shownObject<T extends KubernetesObject>(cluster: string, object: T): T {
  const { metadata } = object;
  if (metadata?.name === undefined) return object;
  const annotations = { ...metadata.annotations, [CLUSTER_ANNOTATION]: cluster };
  return { ...object, metadata: { ...metadata, name: `${cluster}.${metadata.name}`, annotations } };
}

/**
 * The same, of an object's JSON text: everything else of it stays, digit for digit. `undefined` if that needs
 * a look at the object.
 */
export function shownText(cluster: string, json: string): string | undefined {
  const metadata = textMember(json, 0, "metadata");
  const name = metadata && textMember(json, metadata.start, "name");
  if (name === undefined || json.charCodeAt(name.start) !== QUOTE) return undefined;
  const annotations = textMember(json, metadata!.start, "annotations");
  const annotation = `${JSON.stringify(CLUSTER_ANNOTATION)}:${JSON.stringify(cluster)}`;
  // Clusters' names need no escapes.
  const prefix = { at: name.start + 1, text: `${cluster}.` };
  if (annotations === undefined) {
    return inserted(json, [{ at: metadata!.start + 1, text: `"annotations":{${annotation}},` }, prefix]);
  }
  if (json.charCodeAt(annotations.start) !== OPEN_BRACE) return undefined;
  if (textMember(json, annotations.start, CLUSTER_ANNOTATION) !== undefined) return undefined;
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
