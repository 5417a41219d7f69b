/**
 * How objects of a shard are shown: their keys, and the names of those that come from clusters.
 * @module
 */

import { CLOSE_BRACE, OPEN_BRACE } from "../../text/json_text.ts";
import {
  fieldAt,
  fieldAtPath,
  firstElement,
  type Place,
  replaced,
  type Replacement,
  stringAt,
} from "./json_places.ts";

/** The annotation of objects that are shown among those of other clusters. */
export const CLUSTER_ANNOTATION = "listwatch.dev/cluster";

/** How the objects of an answer are shown. */
export interface ShownForm {
  /** Whether the items are rows of a Table. */
  readonly isTable: boolean;
  /** Whether rows have no object. */
  readonly hidesObject: boolean;
  /** The cluster that the objects come from, if clusters are merged. */
  readonly cluster: string | undefined;
}

/** An object as it is shown. */
export interface ShownObject {
  /** Its place among all objects. */
  readonly key: string;
  readonly json: string;
}

/** An item of a list as it is shown. */
export function shownItem(json: string, form: ShownForm): ShownObject {
  const object = form.isTable ? fieldAt(json, 0, "object") : { start: 0, end: json.length };
  const metadata = object && fieldAt(json, object.start, "metadata");
  const name = metadata && fieldAt(json, metadata.start, "name");
  const namespace = stringAt(json, metadata && fieldAt(json, metadata.start, "namespace"));
  const shownName = nameIn(form.cluster, stringAt(json, name) ?? "");
  const changes: Replacement[] = [];
  if (form.cluster !== undefined) {
    if (form.isTable) changes.push(...cellChange(json, 0, form.cluster));
    if (!form.hidesObject && metadata !== undefined) {
      changes.push(...clusterChanges(json, { metadata, name, cluster: form.cluster }));
    }
  }
  if (form.hidesObject && object !== undefined) changes.push({ ...object, text: "null" });
  return {
    key: namespace ? `${namespace}/${shownName}` : shownName,
    json: changes.length === 0 ? json : replaced(json, changes),
  };
}

/** An object as it is shown: one that is read by itself, or that of an event; also a Table of one row. */
export function shownObject(
  json: string,
  form: ShownForm,
  options: { readonly resourceVersion?: string; readonly columns?: (columns: unknown) => unknown } = {},
): string {
  const { resourceVersion, columns } = options;
  const changes: Replacement[] = [];
  const metadata = fieldAt(json, 0, "metadata");
  if (resourceVersion !== undefined) changes.push(...versionChange(json, metadata, resourceVersion));
  if (!form.isTable) {
    if (form.cluster !== undefined && metadata !== undefined) {
      const name = fieldAt(json, metadata.start, "name");
      changes.push(...clusterChanges(json, { metadata, name, cluster: form.cluster }));
    }
    return merged(json, changes);
  }
  const place = columns && fieldAt(json, 0, "columnDefinitions");
  if (columns !== undefined && place !== undefined) {
    const text = JSON.stringify(columns(JSON.parse(json.slice(place.start, place.end))));
    changes.push({ ...place, text });
  }
  const row = firstElement(json, fieldAt(json, 0, "rows"));
  if (row !== undefined) {
    const text = json.slice(row.start, row.end);
    const item = resourceVersion === undefined ? text : withRowVersion(text, resourceVersion);
    changes.push({ ...row, text: shownItem(item, form).json });
  }
  return merged(json, changes);
}

/** A name among those of all clusters. */
export function nameIn(cluster: string | undefined, name: string): string {
  return cluster === undefined || name === "" ? name : `${cluster}.${name}`;
}

function withRowVersion(row: string, resourceVersion: string): string {
  return replaced(row, versionChange(row, fieldAtPath(row, 0, ["object", "metadata"]), resourceVersion));
}

function versionChange(json: string, metadata: Place | undefined, resourceVersion: string): Replacement[] {
  if (metadata === undefined || json.charCodeAt(metadata.start) !== OPEN_BRACE) return [];
  const place = fieldAt(json, metadata.start, "resourceVersion");
  const text = `"${resourceVersion}"`;
  return [place === undefined ? inserted(json, metadata, `"resourceVersion":${text}`) : { ...place, text }];
}

function clusterChanges(
  json: string,
  { metadata, name, cluster }: {
    readonly metadata: Place;
    readonly name: Place | undefined;
    readonly cluster: string;
  },
): Replacement[] {
  const given = stringAt(json, name);
  const annotation = `${JSON.stringify(CLUSTER_ANNOTATION)}:${JSON.stringify(cluster)}`;
  const annotations = fieldAt(json, metadata.start, "annotations");
  const hasAnnotations = annotations !== undefined && json.charCodeAt(annotations.start) === OPEN_BRACE;
  const own = hasAnnotations ? fieldAt(json, annotations.start, CLUSTER_ANNOTATION) : undefined;
  return [
    ...(name !== undefined && given !== undefined && given !== ""
      ? [{ ...name, text: JSON.stringify(nameIn(cluster, given)) }]
      : []),
    own !== undefined
      ? { ...own, text: JSON.stringify(cluster) }
      : hasAnnotations
      ? inserted(json, annotations, annotation)
      : annotations !== undefined
      ? { ...annotations, text: `{${annotation}}` }
      : inserted(json, metadata, `"annotations":{${annotation}}`),
  ];
}

/** The first cell of a row, which is the name in every Table of an API server. */
function cellChange(json: string, open: number, cluster: string): Replacement[] {
  const cell = firstElement(json, fieldAt(json, open, "cells"));
  const name = stringAt(json, cell);
  return cell === undefined || name === undefined
    ? []
    : [{ ...cell, text: JSON.stringify(nameIn(cluster, name)) }];
}

/** A field at the beginning of an object. */
function inserted(json: string, object: Place, field: string): Replacement {
  const start = object.start + 1;
  const isEmpty = json.slice(start, object.end).trimStart().charCodeAt(0) === CLOSE_BRACE;
  return { start, end: start, text: isEmpty ? field : `${field},` };
}

/** Changes at the same place come in the order in which they are given. */
function merged(json: string, changes: readonly Replacement[]): string {
  return changes.length === 0 ? json : replaced(json, changes);
}
