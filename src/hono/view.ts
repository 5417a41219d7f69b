/**
 * The shapes that objects are served in: as they are, as metadata only, as a Table.
 * @module
 */

import type { ApiResource } from "../protocol/api_resource.ts";
import { negotiateShape, partialMetadata } from "../protocol/object_shape.ts";
import { isStatus, notAcceptable } from "../protocol/statuses.ts";
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

/** The view a request asks for, or the Status that refuses it: 406, or 400 for a wrong `includeObject`. */
export function newView(resource: ApiResource, request: ViewRequest): View | Status {
  const shape = negotiateShape(resource, { accept: request.accept, isList: request.verb === "list" });
  if (shape === undefined) return notAcceptable(["application/json"]);
  if (isStatus(shape)) return shape;
  if (shape.kind === "object") return newObjectView(resource);
  const { apiVersion } = shape;
  if (shape.kind === "PartialObjectMetadata") return newMetadataView(apiVersion);
  const include = request.searchParams.get("includeObject") || "Metadata";
  if (include !== "None" && include !== "Metadata" && include !== "Object") {
    return newStatus(
      400,
      "BadRequest",
      `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(include)}: ` +
        'must be "None", "Metadata" or "Object"',
    );
  }
  const includeObject: IncludeObject = include;
  return newTableView(resource, { apiVersion, includeObject, nowMs: request.nowMs });
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
  const partial = (object: KubernetesObject) => partialMetadata(object, apiVersion);
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
