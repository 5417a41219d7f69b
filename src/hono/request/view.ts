/**
 * The form that a request wants its answer in: a format, and a view of the objects. Views of whole objects and of
 * metadata are here, Tables in table.ts.
 * @module
 */

import type { Context } from "hono";
import type { KubernetesObject, ListMeta, ObjectMeta } from "../../meta/object.ts";
import { groupVersion } from "../../meta/resource.ts";
import {
  JSON_AND_YAML,
  type MediaType,
  type NegotiatedShape,
  negotiateShape,
  partialMetadata,
  prefersGzip,
  wantsPretty,
} from "../../protocol/accept.ts";
import { type ApiResource, isBuiltinGroup } from "../../protocol/api_resource.ts";
import type { Status } from "../../meta/status.ts";
import { textMembers } from "../../text/json_walk.ts";

export interface Format {
  readonly mediaType: MediaType;
  readonly pretty: boolean;
}

/** How the answer to a read is written. */
export interface Form extends Format {
  /** The tags of what the reader has. */
  readonly ifNoneMatch: string | undefined;
  readonly gzip: boolean;
}

/**
 * The format that a request asks for: by its `Accept` header, which was negotiated, and its query and client.
 */
export function formatOf(c: Context, { mediaType, pretty }: Format): Format {
  const isIndented = pretty || wantsPretty(new URL(c.req.url).searchParams, c.req.header("User-Agent"));
  return { mediaType, pretty: isIndented };
}

/**
 * The form that a read asks for, and the shape of its objects; a Status (406) where nothing is accepted that can be
 * served.
 *
 * @param accept The `Accept` header.
 */
export function requestedForm(
  c: Context,
  resource: ApiResource,
  { verb, accept }: { readonly verb: "get" | "list" | "watch"; readonly accept: string | undefined },
): Form & Pick<NegotiatedShape, "shape"> | Status {
  const agreed = negotiateShape(resource, { accept, verb, mediaTypes: JSON_AND_YAML });
  if (!("shape" in agreed)) return agreed;
  return {
    ...formatOf(c, agreed),
    shape: agreed.shape,
    ifNoneMatch: c.req.header("If-None-Match"),
    gzip: prefersGzip(c.req.header("Accept-Encoding")),
  };
}

/** Turns objects of one resource into what a client asked for. */
export interface View {
  /** Views with the same name make the same event of the same object; `undefined`: not to be shared. */
  readonly sharedAs: string | undefined;
  one(object: KubernetesObject): unknown;
  /** A list but for its items. */
  list(metadata: ListMeta): Record<string, unknown>;
  /** Where the items stand in the list. */
  readonly itemsField: "items" | "rows";
  item(object: KubernetesObject): unknown;
  event(object: KubernetesObject): unknown;
  /** As `one`, `item` and `event`, from and to JSON text, if the view needs no look at the object. */
  readonly oneText?: (json: string) => string | undefined;
  readonly itemText?: (json: string) => string | undefined;
  readonly eventText?: (json: string) => string | undefined;
  bookmark(metadata: ObjectMeta): unknown;
}

/** Serves objects as they are. */
export function newObjectView(resource: ApiResource): View {
  const typed = (object: KubernetesObject) => withType(resource, object);
  const typedText = (json: string) => withTypeText(resource, json);
  // JSON leaves out what is undefined.
  const untyped = (object: KubernetesObject) => ({ ...object, kind: undefined, apiVersion: undefined });
  const apiVersion = groupVersion(resource);
  // Those of custom resources have kind and apiVersion.
  const hasTypedItems = !isBuiltinGroup(resource.group);
  return {
    sharedAs: "object",
    one: typed,
    list: (metadata) => ({
      kind: `${resource.kind}List`,
      apiVersion,
      // Lists of custom resources always have the field.
      metadata: hasTypedItems ? { continue: "", ...metadata } : metadata,
    }),
    itemsField: "items",
    item: hasTypedItems ? typed : untyped,
    event: typed,
    itemText: hasTypedItems ? typedText : withoutTypeText,
    oneText: typedText,
    eventText: typedText,
    bookmark: (metadata) => ({ kind: resource.kind, apiVersion, metadata }),
  };
}

export function newMetadataView(apiVersion: string): View {
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

/** Whether an object has a kind or an apiVersion, by its JSON text. */
function hasTypeField(json: string): boolean {
  for (const { key } of textMembers(json)) {
    // With an escape it may be one of them.
    if (key === "kind" || key === "apiVersion" || key.includes("\\u")) return true;
  }
  return false;
}
