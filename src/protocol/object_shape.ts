/** The forms in which a client can request objects: whole, as a Table, or metadata only. */

import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { JSON_ONLY, matchesRoute, type MediaType, negotiate } from "./accept.ts";
import { type ApiResource, isBuiltinGroup } from "./api_resource.ts";
import { noRouteProduces, notAcceptable } from "./statuses.ts";

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
  readonly verb: "get" | "list" | "watch";
  /** Whether the path is that of a collection. Default: whether the verb is not `get`. */
  readonly isCollection?: boolean;
  /** The media types of the answer, the default first; only JSON by default. */
  readonly mediaTypes?: readonly MediaType[];
  /** Whether Tables are served. Default: true. */
  readonly tables?: boolean;
}

/** How to answer a request for objects. */
export interface NegotiatedShape {
  readonly mediaType: MediaType;
  /** Whether the `Accept` header asks for an indented answer. */
  readonly pretty: boolean;
  /**
   * A Status (406) where it asks for a list as an object, for an object as a list, or for a watch in another
   * media type.
   */
  readonly shape: ObjectShape | Status;
}

/**
 * The shape that the `Accept` header asks for; a Status (406) where the server has nothing that the client
 * accepts.
 *
 * An API server refuses in two steps: this Status comes before any other look at the request, the one in
 * `shape` instead of a successful answer.
 */
export function negotiateShape(resource: ApiResource, request: ShapeRequest): NegotiatedShape | Status {
  const { accept, verb, isCollection = verb !== "get", mediaTypes = JSON_ONLY, tables = true } = request;
  const stream = ["application/json;stream=watch"];
  if (isBuiltinGroup(resource.group) && !matchesRoute(accept, mediaTypes)) {
    return noRouteProduces(isCollection ? [...mediaTypes, ...stream] : mediaTypes);
  }
  const agreed = negotiate(accept, {
    mediaTypes,
    serverVersion: "v1",
    converts: (target) =>
      target === undefined || META_VERSIONS.has(groupVersion(target)) &&
        (target.kind === "Table" ? tables : /^PartialObjectMetadata(List)?$/.test(target.kind)),
  });
  if (agreed === undefined) return notAcceptable(mediaTypes);
  const { mediaType, pretty, convertTo } = agreed;
  if (verb === "watch" && mediaType !== "application/json") {
    return { mediaType, pretty, shape: notAcceptable(stream) };
  }
  if (convertTo === undefined) return { mediaType, pretty, shape: { kind: "object" } };
  const { kind } = convertTo;
  const apiVersion = groupVersion(convertTo) as MetaVersion;
  if (kind === "Table") return { mediaType, pretty, shape: { kind, apiVersion } };
  // A client asks for a list by the kind of the list, and for single objects by the single kind.
  if ((kind === "PartialObjectMetadataList") === (verb === "list")) {
    return { mediaType, pretty, shape: { kind: "PartialObjectMetadata", apiVersion } };
  }
  const type = goType(resource, verb === "list");
  const what = verb === "list" ? `a list (${type})` : `not a list (${type})`;
  const message = `you requested ${kind}, but the requested object is ${what}`;
  return { mediaType, pretty, shape: newStatus(406, "NotAcceptable", message) };
}

/** The type that an API server names. */
function goType({ group, kind }: ApiResource, isList: boolean): string {
  if (!isBuiltinGroup(group)) return isList ? "*unstructured.UnstructuredList" : "*unstructured.Unstructured";
  const name = group === "" || group === "events.k8s.io" ? "core" : group.split(".")[0];
  return `*${name}.${kind}${isList ? "List" : ""}`;
}

/** An object's metadata, as a `PartialObjectMetadata`. */
export function partialMetadata(object: KubernetesObject, apiVersion: string): KubernetesObject {
  return { kind: "PartialObjectMetadata", apiVersion, metadata: object.metadata ?? {} };
}
