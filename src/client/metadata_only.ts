/** Objects with metadata only. */

import type { WatchItem } from "../meta/list_watch.ts";
import type { KubernetesObject, ObjectMeta } from "../meta/object.ts";

const KIND = "PartialObjectMetadata";
const API_VERSION = "meta.k8s.io/v1";

/**
 * An object of which only the metadata was requested: what a client with `metadataOnly` returns. Its kind
 * says so, and not what the object is.
 *
 * Mirrors apimachinery's `PartialObjectMetadata`.
 *
 * @category Cluster
 */
export interface PartialObjectMetadata extends KubernetesObject {
  readonly kind: "PartialObjectMetadata";
  readonly apiVersion: "meta.k8s.io/v1";
  readonly metadata: ObjectMeta;
}

/** The parameters of `Accept` that ask for metadata only. */
export function asMetadata(what: "" | "List"): string {
  return `;as=${KIND}${what};g=meta.k8s.io;v=v1`;
}

/** The header that asks for JSON with these parameters, or without where a server has no such answer. */
export function acceptJson(parameters: string): { readonly Accept: string } {
  return { Accept: `application/json${parameters},application/json` };
}

/** Leaves out what a server sent beside the metadata because it knows of no such answer. */
export function metadataOf(object: KubernetesObject): KubernetesObject {
  return { kind: KIND, apiVersion: API_VERSION, metadata: object.metadata ?? {} };
}

/** Whether a server has sent an object's metadata only. */
export function isMetadata({ kind }: KubernetesObject): boolean {
  return kind === KIND;
}

/** As {@linkcode metadataOf}, for the object of a watch event. */
export function metadataOfEvent<T extends KubernetesObject>(item: WatchItem<T>): WatchItem<T> {
  if (item.type === "QUARANTINED" || item.type === "ERROR" || item.type === "BOOKMARK") return item;
  return { type: item.type, object: metadataOf(item.object) as T };
}
