/**
 * What a request for a merged resource asks for.
 * @module
 */

import { FieldSelector, parseFieldSelector } from "../../meta/fields.ts";
import type { ListOptions } from "../../meta/list_watch.ts";
import { decodeMergedVersion } from "../../meta/merged_version.ts";
import { groupVersion } from "../../meta/resource.ts";
import {
  EACH_EVENT,
  NOTHING_STALE,
  refusesStale,
  requiresEachEvent,
} from "../../meta/request_preferences.ts";
import type { Status } from "../../meta/status.ts";
import { JSON_AND_YAML } from "../../protocol/accept.ts";
import { listIdentity } from "../../protocol/continue_token.ts";
import { type ListQuery, parseListQuery, queryParameters, wantsWatch } from "../../protocol/list_query.ts";
import { type NegotiatedShape, negotiateShape, type ObjectShape } from "../../protocol/object_shape.ts";
import type { ResourcePath } from "../../protocol/resource_path.ts";
import { isStatus } from "../../protocol/statuses.ts";
import { anotherLayout, layoutOf, type Merged, type Shard } from "./shards.ts";
import { nameIn, type ShownForm } from "./shown_objects.ts";

/** A request for a list, a watch or an object. */
export interface MergedRequest {
  readonly verb: "get" | "list" | "watch";
  readonly path: ResourcePath;
  /** Of the collection, or of the object; encoded. */
  readonly pathname: string;
  readonly shape: ObjectShape;
  readonly agreed: NegotiatedShape;
  /** Whether JSON is indented. */
  readonly pretty: boolean;
  readonly query: ListOptions;
  /** The resourceVersion as it was requested: of the whole, of one object, `"0"` or `""`. */
  readonly resourceVersion: string;
  /** Whether the answer may lack shards. */
  readonly isPartial: boolean;
  /** Whether rows of a Table have no object. */
  readonly hidesObject: boolean;
  /** The parameters that all shards receive. */
  readonly params: URLSearchParams;
  readonly headers: Headers;
  /** What the reader does not accept, as headers. */
  readonly preferences: Readonly<Record<string, string>>;
  /** The shards that receive it. */
  readonly shards: readonly Shard[];
  readonly layout: string;
  /** Identifies the list in continue tokens. */
  readonly identity: string;
}

/** Reads a request, or returns the Status that refuses it. */
export function readMergedRequest(
  merged: Merged,
  request: Request,
  { path, isIndexed }: { readonly path: ResourcePath; readonly isIndexed: boolean },
): MergedRequest | Status {
  const url = new URL(request.url);
  const { headers } = request;
  const params = queryParameters(url.search);
  const isOne = path.name !== "" && !path.isWatch;
  const isWatch = !isOne && !isIndexed && (path.isWatch || wantsWatch(params));
  const verb = isOne ? "get" : isWatch ? "watch" : "list";
  const accept = headers.get("Accept");
  const agreed = negotiateShape(merged.resource, { accept, verb, mediaTypes: JSON_AND_YAML });
  if (isStatus(agreed)) return agreed;
  if (isStatus(agreed.shape)) return agreed.shape;
  const resourceVersion = (params.get("resourceVersion") ?? "").replace(/^0+(?=[0-9])/, "");
  const query = checkedQuery(params, { isOne, isWatch, name: path.isWatch ? path.name : "" });
  if (!query.ok) return query.status;
  const isPartial = isTrue(params.get("partial"));
  const pretty = agreed.pretty || isTrue(params.get("pretty"));
  const hidesObject = agreed.shape.kind === "Table" && params.get("includeObject") === "None";
  // The keys of rows are in their objects.
  if (hidesObject) params.set("includeObject", "Metadata");
  for (const own of ["partial", "pretty", "resourceVersion", "continue", "limit", "watch"]) {
    params.delete(own);
  }
  if (path.isWatch && path.name !== "") params.set("fieldSelector", `metadata.name=${path.name}`);
  const shards = shardsOf(merged, path);
  return {
    verb,
    path,
    pathname: isIndexed ? url.pathname : pathOf(path),
    shape: agreed.shape,
    agreed,
    pretty,
    query: query.options,
    resourceVersion,
    isPartial,
    hidesObject,
    params,
    headers,
    preferences: {
      ...(refusesStale(headers.get("Cache-Control") ?? "") && NOTHING_STALE),
      ...(requiresEachEvent(headers.get("Prefer") ?? "") && EACH_EVENT),
    },
    shards,
    layout: layoutOf(merged, shards),
    identity: listIdentity([
      url.pathname,
      params.get("labelSelector") ?? "",
      params.get("fieldSelector") ?? "",
      params.get("namespace") ?? "",
    ]),
  };
}

/** The resourceVersion for each shard: `""` for none, `"0"` for one that was away. */
export function versionsOf(
  merged: Merged,
  { resourceVersion, shards, layout, verb }: MergedRequest,
): readonly string[] | Status {
  if (resourceVersion === "" || resourceVersion === "0") return shards.map(() => resourceVersion);
  const whole = decodeMergedVersion(resourceVersion);
  if (whole !== undefined) {
    const isOurs = whole.layout === layout && whole.parts.length === shards.length;
    return isOurs ? whole.parts : anotherLayout("resourceVersion");
  }
  // A version of the cluster that all shards belong to: each of them can come to it. But a watch that continues at the
  // version of one event would miss the events of shards that were behind it.
  return merged.by === "cluster" || verb === "watch"
    ? anotherLayout("resourceVersion")
    : shards.map(() => resourceVersion);
}

/** The parameters for one shard: a selector by name has the name in its cluster. */
export function paramsFor(merged: Merged, shard: Shard, params: URLSearchParams): URLSearchParams {
  const own = new URLSearchParams(params);
  const selector = params.get("fieldSelector");
  if (merged.by !== "cluster" || !selector) return own;
  const requirements = parseFieldSelector(selector).requirements.flatMap((requirement) => {
    if (requirement.field !== "metadata.name") return [requirement];
    const prefix = nameIn(shard.name, "x").slice(0, -1);
    if (requirement.value.startsWith(prefix)) {
      return [{ ...requirement, value: requirement.value.slice(prefix.length) }];
    }
    return requirement.operator === "!=" ? [] : [{ ...requirement, value: NO_NAME }];
  });
  if (requirements.length === 0) own.delete("fieldSelector");
  else own.set("fieldSelector", String(new FieldSelector(requirements)));
  return own;
}

// No object can have it.
const NO_NAME = "_none_";

/** The form that all shards are to answer in, so that their answers fit together. */
export function acceptOf({ shape, verb }: MergedRequest): string {
  if (shape.kind === "object") return "application/json";
  const kind = shape.kind === "PartialObjectMetadata" && verb === "list" ? `${shape.kind}List` : shape.kind;
  const [group, version] = shape.apiVersion.split("/");
  return `application/json;as=${kind};v=${version};g=${group}`;
}

/** The shards that may have objects of a path. */
function shardsOf({ shards }: Merged, { namespace }: ResourcePath): readonly Shard[] {
  if (namespace === "") return shards;
  const found = shards.filter(({ namespaces }) => namespaces === undefined || namespaces.includes(namespace));
  return found.length === 0 ? shards : found;
}

/** The path of a collection or an object, without the old form of watches. */
export function pathOf(path: ResourcePath): string {
  const { group, version, namespace, resource, name, subresource, isWatch } = path;
  const root = group === "" ? `/api/${version}` : `/apis/${groupVersion(path)}`;
  const segments = [
    ...(namespace === "" ? [] : ["namespaces", namespace]),
    resource,
    ...(name === "" || isWatch ? [] : [name]),
    ...(subresource === "" ? [] : [subresource]),
  ];
  return `${root}/${segments.map(encodeURIComponent).join("/")}`;
}

/** How objects of a shard are shown. */
export function formOf(merged: Merged, { shape, hidesObject }: MergedRequest, shard: Shard): ShownForm {
  return {
    isTable: shape.kind === "Table",
    hidesObject,
    cluster: merged.by === "cluster" ? shard.name : undefined,
  };
}

function checkedQuery(
  params: URLSearchParams,
  { isOne, isWatch, name }: { readonly isOne: boolean; readonly isWatch: boolean; readonly name: string },
): ReturnType<typeof parseListQuery> {
  const options: ListQuery = { ok: true, watch: false, options: {}, labels: undefined, fields: undefined };
  if (isOne) return options;
  // Which fields can be selected is for the shards to say.
  return parseListQuery(params, { watch: isWatch, fields: "any", ...(name !== "" && { name }) });
}

function isTrue(text: string | null): boolean {
  return text !== null && /^(1|t|true)$/i.test(text);
}
