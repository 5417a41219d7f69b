/**
 * The shapes that objects are served in: as they are, as metadata only, as a Table.
 * @module
 */

import { negotiate, type Representation } from "../protocol/accept.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { notAcceptableStatus } from "../protocol/discovery.ts";
import type { KubernetesObject, ListMeta, ObjectMeta } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { type IncludeObject, newTableView } from "./table.ts";
import { hasTypedItems, withoutTypeText, withType, withTypeText } from "./typed_object.ts";

/** Turns objects of one resource into what a client asked for. Made per request. */
export interface View {
  /** Views with the same name make the same event of the same object; `undefined`: not to be shared. */
  readonly sharedAs: string | undefined;
  /** The answer to a get. */
  one(object: KubernetesObject): unknown;
  /** A list but for its items. */
  list(metadata: ListMeta): Record<string, unknown>;
  /** Where the items stand in the list. */
  readonly itemsField: "items" | "rows";
  /** One of them. */
  item(object: KubernetesObject): unknown;
  /** The object of a watch event. */
  event(object: KubernetesObject): unknown;
  /** As `item` and `event`, from and to JSON text, where the view can tell without a look at the object. */
  readonly itemText?: (json: string) => string | undefined;
  readonly eventText?: (json: string) => string | undefined;
  /** The object of a bookmark. */
  bookmark(metadata: ObjectMeta): unknown;
}

/** What decides on the view. */
export interface ViewRequest {
  readonly accept: string | undefined;
  /** `get` and `watch` serve single objects, `list` a list. */
  readonly verb: "get" | "list" | "watch";
  readonly searchParams: URLSearchParams;
  readonly nowMs: () => number;
}

const META_GROUP = "meta.k8s.io";
const META_VERSIONS: readonly string[] = ["v1", "v1beta1"];
const KINDS: readonly string[] = ["Table", "PartialObjectMetadata", "PartialObjectMetadataList"];

/** The view a request asks for, or the Status that refuses it: 406, or 400 for a wrong `includeObject`. */
export function newView(resource: ApiResource, request: ViewRequest): View | Status {
  const agreed = negotiate(request.accept, {
    converts: ({ group, version, kind }) =>
      group === META_GROUP && META_VERSIONS.includes(version) && KINDS.includes(kind),
  });
  if (agreed === undefined) return notAcceptableStatus(["application/json"]);
  return viewAs(resource, agreed, request);
}

function viewAs(resource: ApiResource, agreed: Representation, request: ViewRequest): View | Status {
  const kind = agreed.convertTo?.kind;
  if (agreed.convertTo === undefined) return newObjectView(resource);
  const apiVersion = groupVersion(agreed.convertTo);
  if (kind === "Table") {
    const include = request.searchParams.get("includeObject") || "Metadata";
    if (include !== "None" && include !== "Metadata" && include !== "Object") {
      return newStatus(
        400,
        "BadRequest",
        `Unable to convert to Table as requested: includeObject: Invalid value: ${
          JSON.stringify(include)
        }: ` +
          'must be "None", "Metadata" or "Object"',
      );
    }
    const includeObject: IncludeObject = include;
    return newTableView(resource, { apiVersion, includeObject, nowMs: request.nowMs });
  }
  // A list is asked for by the list's kind, anything else by the single kind; the wrong one is not acceptable.
  if ((kind === "PartialObjectMetadataList") !== (request.verb === "list")) {
    return newStatus(
      406,
      "NotAcceptable",
      request.verb === "list"
        ? `you requested PartialObjectMetadata, but the requested object is a list (${resource.kind}List); ` +
          "ask for PartialObjectMetadataList"
        : `you requested PartialObjectMetadataList, but the requested object is not a list (${resource.kind}); ` +
          "ask for PartialObjectMetadata",
    );
  }
  return newMetadataView(apiVersion);
}

function newObjectView(resource: ApiResource): View {
  const typed = (object: KubernetesObject) => withType(resource, object);
  const typedText = (json: string) => withTypeText(resource, json);
  // JSON leaves out what is undefined.
  const untyped = (object: KubernetesObject) => ({ ...object, kind: undefined, apiVersion: undefined });
  const apiVersion = groupVersion(resource);
  return {
    sharedAs: "object",
    one: typed,
    list: (metadata) => ({
      kind: `${resource.kind}List`,
      apiVersion,
      // Lists of custom resources always have the field.
      metadata: hasTypedItems(resource) ? { continue: "", ...metadata } : metadata,
    }),
    itemsField: "items",
    item: hasTypedItems(resource) ? typed : untyped,
    event: typed,
    itemText: hasTypedItems(resource) ? typedText : withoutTypeText,
    eventText: typedText,
    bookmark: (metadata) => ({ kind: resource.kind, apiVersion, metadata }),
  };
}

function newMetadataView(apiVersion: string): View {
  const partial = (object: KubernetesObject) => ({
    kind: "PartialObjectMetadata",
    apiVersion,
    metadata: object.metadata ?? {},
  });
  return {
    sharedAs: apiVersion,
    one: partial,
    list: (metadata) => ({ kind: "PartialObjectMetadataList", apiVersion, metadata }),
    itemsField: "items",
    item: partial,
    event: partial,
    bookmark: (metadata) => partial({ metadata }),
  };
}
