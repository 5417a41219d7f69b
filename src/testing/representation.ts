/**
 * The shape in which objects are asked for: as they are, or their metadata only.
 * @module
 */

import { negotiate } from "../protocol/accept.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { groupVersion } from "../meta/resource.ts";
import { failure, notAcceptable } from "./api_errors.ts";
import type { JsonObject } from "./json.ts";

/** `whole` for objects as they are, or the apiVersion of the `PartialObjectMetadata` that is asked for. */
export type Shape = "whole" | "meta.k8s.io/v1" | "meta.k8s.io/v1beta1";

/** What a request is for: one object (a watch is about single ones), or a list. */
export type Subject = "one" | "list";

/**
 * What a request's `Accept` header asks for. Whoever asks for a Table takes the plain object as well.
 *
 * @throws {StatusError} 406: there is nothing that the client takes.
 */
export function shapeOf(request: Request, subject: Subject): Shape {
  const isRead = request.method === "GET";
  const agreed = negotiate(request.headers.get("Accept"), {
    converts: ({ group, version, kind }) =>
      group === "meta.k8s.io" && /^v1(beta1)?$/.test(version) &&
      (kind === "Table" ? isRead : /^PartialObjectMetadata(List)?$/.test(kind)),
  });
  if (agreed === undefined) throw notAcceptable();
  const { convertTo } = agreed;
  if (convertTo === undefined || convertTo.kind === "Table") return "whole";
  if ((convertTo.kind === "PartialObjectMetadataList") !== (subject === "list")) {
    const [is, wanted] = subject === "list" ? ["a list", "PartialObjectMetadataList"] : [
      "not a list",
      "PartialObjectMetadata",
    ];
    throw failure(
      406,
      "NotAcceptable",
      `you requested ${convertTo.kind}, but the requested object is ${is}: ask for ${wanted}`,
    );
  }
  return groupVersion(convertTo) as Shape;
}

/** An object in that shape. */
export function shaped(object: KubernetesObject, shape: Shape): KubernetesObject {
  if (shape === "whole") return object;
  return { kind: "PartialObjectMetadata", apiVersion: shape, metadata: object.metadata ?? {} };
}

/** A list in that shape; `list` is as whole objects have it. */
export function shapedList(list: JsonObject, shape: Shape): JsonObject {
  if (shape === "whole") return list;
  const items = (list.items as readonly KubernetesObject[]).map((item) => shaped(item, shape));
  return { kind: "PartialObjectMetadataList", apiVersion: shape, metadata: list.metadata, items };
}
