/**
 * The forms in which a client can request objects: whole, as a Table, or metadata only.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { negotiate } from "./accept.ts";
import type { ApiResource } from "./api_resource.ts";

/** What the objects of an answer are converted to. */
export type ObjectShape =
  | { readonly kind: "object" }
  | { readonly kind: "Table" | "PartialObjectMetadata"; readonly apiVersion: MetaVersion };

/** The versions of the group `meta.k8s.io`. */
export type MetaVersion = "meta.k8s.io/v1" | "meta.k8s.io/v1beta1";

const META_VERSIONS: ReadonlySet<string> = new Set<MetaVersion>(["meta.k8s.io/v1", "meta.k8s.io/v1beta1"]);

/** A request for {@linkcode negotiateShape}. */
export interface ShapeRequest {
  /** The `Accept` header. */
  readonly accept: string | null | undefined;
  /** Whether the answer is a list; a watch sends single objects. */
  readonly isList: boolean;
  /** Whether Tables are served. Default: true. */
  readonly tables?: boolean;
}

/**
 * The shape that the `Accept` header asks for; a Status (406) where it asks for a list as an object or for an object as a
 * list, `undefined` where the server has nothing that the client accepts.
 */
export function negotiateShape(
  resource: ApiResource,
  request: ShapeRequest,
): ObjectShape | Status | undefined {
  const { accept, isList, tables = true } = request;
  const agreed = negotiate(accept, {
    converts: (target) =>
      META_VERSIONS.has(groupVersion(target)) &&
      (target.kind === "Table" ? tables : /^PartialObjectMetadata(List)?$/.test(target.kind)),
  });
  if (agreed === undefined) return undefined;
  if (agreed.convertTo === undefined) return { kind: "object" };
  const { kind } = agreed.convertTo;
  const apiVersion = groupVersion(agreed.convertTo) as MetaVersion;
  if (kind === "Table") return { kind, apiVersion };
  // A client asks for a list by the kind of the list, and for single objects by the single kind.
  const wanted = isList ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  if (kind === wanted) return { kind: "PartialObjectMetadata", apiVersion };
  const what = isList ? `a list (${resource.kind}List)` : `not a list (${resource.kind})`;
  const message = `you requested ${kind}, but the requested object is ${what}; ask for ${wanted}`;
  return newStatus(406, "NotAcceptable", message);
}

/** An object's metadata, as a `PartialObjectMetadata`. */
export function partialMetadata(object: KubernetesObject, apiVersion: string): KubernetesObject {
  return { kind: "PartialObjectMetadata", apiVersion, metadata: object.metadata ?? {} };
}
