/**
 * Queries of indices: `/indices/{resource}`, `/indices/{resource}/{index}` and
 * `/indices/{resource}/{index}/{value}`.
 */

import type { Context } from "hono";
import { formatGroupResource, groupVersion } from "../meta/resource.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { decodedPath, type ResourcePath } from "../protocol/request_url.ts";
import { isStatus, methodNotAllowed, resourceDetails, unknownPath } from "../protocol/statuses.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import type { Held } from "../store/holding.ts";
import type { Indexer } from "../store/store.ts";
import { fromBase64, toBase64 } from "../util/bytes.ts";
import { lowerBound } from "../util/collections.ts";
import { ownPath, readRoute } from "./api_routes.ts";
import { formatOf, MAX_PATH } from "./request/requested_read.ts";
import { type Answer, askedOf, askedOfPath, type Route } from "./request/gate.ts";
import { type Content, incomplete, notSynced } from "./content/content.ts";
import { isForwarded, type ReadApiState, type ServedResource } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";
import { forwardRoute } from "./upstream/forward.ts";
import { documentAnswer } from "./send/responses.ts";

export const INDICES_VERSION = "indices.listwatch/v1";

/**
 * A query of an index: which there are, how many objects there are under each value (in pages, ascending), or
 * the objects under a value, as a list of the resource with everything that lists have. The query's
 * `namespace` narrows each of them to a namespace. It needs the permission to list the resource there.
 */
export function indexRoute(c: Context, state: ReadApiState, reader: Reader): Route<ServedResource> {
  const { pathname, own } = ownPath(c);
  const query = own === undefined ? undefined : parseIndexPath(own);
  const target = query &&
    [...state.served, ...state.forwarded].find(({ resource }) => isNamed(resource, query.resource));
  if (query === undefined || target === undefined || c.req.raw.method !== "GET") {
    const answer = () => target === undefined ? unknownPath() : methodNotAllowed();
    return { access: "hooks", asked: askedOfPath(own ?? pathname), answer };
  }
  // The namespace is as long as in a path at most.
  const namespace = (c.req.query("namespace") ?? "").slice(0, MAX_PATH);
  const { resource } = target;
  const path = listPath(resource, resource.namespaced ? namespace : "");
  const { index, value } = query;
  if (isForwarded(target)) return forwardRoute(c, { state, target, path, reader, own: own!, isIndex: true });
  const isWrong = namespace !== "" && !resource.namespaced;
  if (!isWrong && index !== undefined && value !== undefined && isIndex(target, index)) {
    return readRoute(c, { state, target, path, reader, under: { index, value } });
  }
  const answer = () => {
    if (!isWrong) return answerIndex(c, target, { index, namespace, reader });
    const why = `${formatGroupResource(resource)} are not in namespaces: leave namespace out`;
    return newStatus(400, "BadRequest", why, resourceDetails(resource));
  };
  return { access: "hooks", asked: askedOf(path, { verb: "list", name: "" }), target, answer };
}

async function answerIndex(
  c: Context,
  target: ServedResource,
  { index, namespace, reader }: {
    readonly index: string | undefined;
    readonly namespace: string;
    readonly reader: Reader;
  },
): Promise<Answer> {
  const { resource, content } = target;
  if (index !== undefined && !isIndex(target, index)) return unknownIndex(target, index);
  if (!content.log.isReady()) return notSynced(resource);
  const missing = target.fresh.missing("");
  if (missing.length > 0) return incomplete(resource, missing);
  if (index === undefined) {
    const items = indexNames(content).map((name) => ({ name }));
    return await listed(c, target, { kind: "IndexList", reader, items });
  }
  const page = pageOf(c);
  if (isStatus(page)) return page;
  return await valuesOf(c, target, { ...page, index, namespace, reader });
}

function isIndex({ content }: ServedResource, index: string): boolean {
  return content.states.indexer !== undefined && Object.hasOwn(content.states.indexer.getIndexers(), index);
}

/** The parts of a path, of which one of all indices, or of all values of an index, lacks the rest. */
function parseIndexPath(path: string) {
  // A value may have slashes, which are escaped.
  const segments = path.replace(/\/$/, "").split("/").slice(1).map(decodedPath);
  if (segments.includes(undefined) || segments[0] !== "indices") return undefined;
  const [, resource, index, value, ...more] = segments;
  if (!resource || index === "" || more.length > 0) return undefined;
  const isEmptyValue = index !== undefined && value === undefined && path.endsWith("/");
  return { resource, index, value: isEmptyValue ? "" : value };
}

function isNamed(of: ApiResource, name: string): boolean {
  const { group, version, resource } = of;
  return name === formatGroupResource(of) ||
    name === `${resource}.${version}${group === "" ? "" : `.${group}`}`;
}

// A page of values is one object.
const DEFAULT_LIMIT = 500;
const MOST_LIMIT = 5_000;

/** The values of an index from one on, with the number of objects under each. */
async function valuesOf(
  c: Context,
  target: ServedResource,
  page: {
    readonly index: string;
    readonly namespace: string;
    readonly limit: number;
    readonly after: string | undefined;
    readonly reader: Reader;
  },
): Promise<Answer> {
  const { index, namespace, limit, after, reader } = page;
  const { pacer } = reader;
  const indexer = target.content.states.indexer!;
  const counts = indexer.indexValueCounts(index);
  const values = Array.from(counts.keys()).sort();
  const items: { value: string; count: number }[] = [];
  let i = after === undefined ? 0 : lowerBound(values, `${after}\0`);
  for (; i < values.length && items.length < limit; i++) {
    if (pacer.spend(10)) await pacer.rest();
    const count = namespace === ""
      ? counts.get(values[i])!
      : countIn(indexer, { index, value: values[i] }, namespace);
    if (namespace !== "") pacer.spend(count);
    if (count > 0) items.push({ value: values[i], count });
  }
  const isLast = i >= values.length;
  return await listed(c, target, {
    kind: "IndexValueList",
    reader,
    index,
    ...(namespace !== "" && { namespace }),
    ...(!isLast && { continue: toBase64(values[i - 1]) }),
    // The remaining items of one namespace would have to be counted.
    ...(!isLast && namespace === "" && { remainingItemCount: values.length - i }),
    items,
  });
}

function countIn(
  indexer: Indexer<Held<KubernetesObject>>,
  { index, value }: { readonly index: string; readonly value: string },
  namespace: string,
): number {
  const keys = indexer.indexKeys(index, value);
  // "0" is the character after "/".
  return lowerBound(keys, `${namespace}0`) - lowerBound(keys, `${namespace}/`);
}

/** The answers have the metadata of lists, and a kind of their own: no API server has them. */
function listed(
  c: Context,
  { resource, content }: ServedResource,
  of: {
    readonly kind: "IndexList" | "IndexValueList";
    readonly reader: Reader;
    readonly continue?: string;
    readonly remainingItemCount?: number;
    readonly items: readonly unknown[];
    readonly index?: string;
    readonly namespace?: string;
  },
): Promise<Answer> {
  const { kind, reader, continue: next, remainingItemCount, ...rest } = of;
  const metadata = { resourceVersion: content.log.resourceVersion, continue: next, remainingItemCount };
  const document = {
    kind,
    apiVersion: INDICES_VERSION,
    metadata,
    resource: formatGroupResource(resource),
    ...rest,
  };
  return documentAnswer(reader, document, formatOf(c, { mediaType: "application/json", pretty: false }));
}

function pageOf(c: Context): { readonly limit: number; readonly after: string | undefined } | Status {
  const limit = c.req.query("limit") ?? "0";
  if (!/^[0-9]{1,9}$/.test(limit)) {
    const quoted = JSON.stringify(limit.slice(0, 100));
    return newStatus(400, "BadRequest", `limit: Invalid value: ${quoted}: must be a number`);
  }
  const after = c.req.query("continue") || undefined;
  try {
    return {
      limit: Math.min(Number(limit) || DEFAULT_LIMIT, MOST_LIMIT),
      after: after === undefined ? undefined : fromBase64(after),
    };
  } catch {
    return newStatus(400, "BadRequest", "invalid continue token: use the one of the page before");
  }
}

function unknownIndex({ resource, content }: ServedResource, index: string | undefined): Status {
  const names = indexNames(content);
  const what = formatGroupResource(resource);
  const known = names.length === 0 ? `${what} have none` : `the indices of ${what} are ${names.join(", ")}`;
  return newStatus(404, "NotFound", `index ${JSON.stringify(index)} not found: ${known}`, {
    ...(index !== undefined && { name: index }),
    kind: "indices",
  });
}

function indexNames(content: Content<KubernetesObject>): string[] {
  return Object.keys(content.states.indexer?.getIndexers() ?? {}).sort();
}

/** The path of the list that an answer is made from, for which the reader needs the permission. */
function listPath(served: ApiResource, namespace: string): ResourcePath {
  const { group, version, resource } = served;
  const root = group === "" ? `/api/${version}` : `/apis/${groupVersion(served)}`;
  const path = `${root}${namespace === "" ? "" : `/namespaces/${namespace}`}/${resource}`;
  return { group, version, resource, namespace, name: "", subresource: "", isWatch: false, path };
}
