/** The discovery documents of an API server. */

import { groupVersion, type GroupVersionKind } from "../meta/resource.ts";
import type { Status } from "../meta/status.ts";
import { textHash } from "../util/hash.ts";
import {
  JSON_ONLY,
  matchesRoute,
  matchesTag,
  type MediaType,
  negotiate,
  type Representation,
} from "./representations.ts";
import { type ApiResource, isBuiltinGroup, singularName } from "./api_resource.ts";
import { SCALE, subresourcesOf } from "./subresources.ts";
import { methodNotAllowed, noRouteProduces, notAcceptable } from "./statuses.ts";

export interface DiscoveryRequest {
  readonly method: string;
  /** Whether the aggregated document says what definitions do: a cache has no definitions to read. */
  readonly definesCustom?: boolean;
  /** The parameters that lists of a resource take beyond an API server's. */
  readonly parametersOf?: (resource: ApiResource) => readonly string[] | undefined;
  readonly path: string;
  readonly accept?: string | null;
  readonly ifNoneMatch?: string | null;
  /** `host:port` of the server, for the old document at `/api`. */
  readonly serverAddress?: string;
  /** The media types of the answer, the default first; only JSON by default. */
  readonly mediaTypes?: readonly MediaType[];
}

/** A document, and how to send it. */
export interface DiscoveryAnswer {
  readonly status: 200 | 304;
  /** The headers besides the Content-Type. */
  readonly headers: Readonly<Record<string, string>>;
  /** The media type to write the document in, and its parameters. */
  readonly mediaType: MediaType;
  readonly parameters: string;
  readonly pretty: boolean;
  /** The document; `null` for neither a body nor a Content-Type. */
  readonly document: unknown;
}

const READ_VERBS: readonly string[] = ["get", "list", "watch"];
const SUBRESOURCE_VERBS: readonly string[] = ["get"];
// Clients decide by these parameters how to read the body; without them it is an old-style list.
const AGGREGATED_PARAMETERS = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/**
 * Answers a discovery request: `/api`, `/apis` (both plain and aggregated, as the `Accept` header asks),
 * `/api/v1`, `/apis/GROUP` and `/apis/GROUP/VERSION`, or refuses it (405, 406). `undefined`: the path is
 * another one, or the group or version is unknown. `/apis/` is plain.
 *
 * As in an API server, the documents of its own group versions and `/api` are for GET only; those of groups
 * and of custom resources are the answer to every method.
 *
 * The order of resources and groups is the one given; versions are in Kubernetes' order of preference.
 * Aggregated documents have an `ETag`; the 304 has no Content-Type, as clients would apply it to the document
 * that they keep.
 */
export function answerDiscovery(
  resources: readonly ApiResource[],
  request: DiscoveryRequest,
): DiscoveryAnswer | Status | undefined {
  const segments = request.path.split("/").slice(1);
  while (segments.at(-1) === "") segments.pop();
  const [root, group, version, ...more] = segments;
  if (more.length > 0 || (root !== "api" && root !== "apis")) return undefined;
  if (root === "api") {
    if (group === undefined) {
      return refusalOfRoute(request) ??
        answerRoot(request, resources, () => apiVersionsDocument(request.serverAddress));
    }
    return version === undefined &&
        (group === "v1" || resources.some((r) => r.group === "" && r.version === group))
      ? refusalOfRoute(request) ??
        answerPlain(request, apiResourceListDocument(resources, { group: "", version: group }))
      : undefined;
  }
  if (group === undefined) return answerGroups(request, resources);
  const versions = versionsOf(resources, group);
  if (group === "" || versions.length === 0) return undefined;
  if (version === undefined) {
    return answerPlain(request, { kind: "APIGroup", apiVersion: "v1", ...apiGroup(group, versions) });
  }
  if (!versions.includes(version)) return undefined;
  return (isBuiltinGroup(group) ? refusalOfRoute(request) : undefined) ??
    answerPlain(request, apiResourceListDocument(resources, { group, version }));
}

function refusalOfRoute({ method, accept, mediaTypes = JSON_ONLY }: DiscoveryRequest): Status | undefined {
  if (method !== "GET") return methodNotAllowed();
  return matchesRoute(accept, mediaTypes) ? undefined : noRouteProduces(mediaTypes);
}

/** The answer to `/apis`: with a slash at the end it is another handler of an API server, with two none. */
function answerGroups(
  request: DiscoveryRequest,
  resources: readonly ApiResource[],
): DiscoveryAnswer | Status | undefined {
  const plain = () => apiGroupListDocument(resources);
  if (request.path === "/apis") return answerRoot(request, resources, plain);
  return request.path === "/apis/" ? answerPlain(request, plain()) : undefined;
}

function answerRoot(
  request: DiscoveryRequest,
  resources: readonly ApiResource[],
  plain: () => unknown,
): DiscoveryAnswer | Status {
  const { accept, mediaTypes = JSON_ONLY } = request;
  // Whatever the client prefers: an aggregated document is the answer if the header names it.
  const agreed = accept && negotiate(accept, {
    mediaTypes,
    converts: (target) =>
      target?.group === "apidiscovery.k8s.io" && target.version === "v2" &&
      target.kind === "APIGroupDiscoveryList",
  });
  if (!agreed) return answerPlain(request, plain());
  const isCore = /^\/api\/*$/.test(request.path);
  const document = aggregatedDocument(
    resources.filter((resource) => (resource.group === "") === isCore),
    request,
  );
  const etag = `"${textHash(agreed.mediaType + JSON.stringify(document)).toUpperCase()}"`;
  const aggregated = { ...answer(agreed, document), parameters: AGGREGATED_PARAMETERS };
  const headers = { ...aggregated.headers, ETag: etag };
  return matchesTag(request.ifNoneMatch, etag)
    ? { ...aggregated, status: 304, headers, document: null }
    : { ...aggregated, headers };
}

function answerPlain(request: DiscoveryRequest, document: unknown): DiscoveryAnswer | Status {
  const { accept, mediaTypes = JSON_ONLY } = request;
  const agreed = negotiate(accept, { mediaTypes });
  return agreed === undefined ? notAcceptable(mediaTypes) : answer(agreed, document);
}

function answer({ mediaType, pretty }: Representation, document: unknown): DiscoveryAnswer {
  const headers = { "Cache-Control": "no-cache, private", "Vary": "Accept" };
  return { status: 200, headers, mediaType, parameters: "", pretty, document };
}

function apiVersionsDocument(serverAddress = ""): unknown {
  return {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress }],
  };
}

function apiGroupListDocument(resources: readonly ApiResource[]): unknown {
  const names = new Set<string>();
  for (const { group } of resources) if (group !== "") names.add(group);
  const groups = Array.from(names, (group) => apiGroup(group, versionsOf(resources, group)));
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

/** The document at `/api/VERSION` or `/apis/GROUP/VERSION`. */
function apiResourceListDocument(
  resources: readonly ApiResource[],
  of: { readonly group: string; readonly version: string },
): unknown {
  return {
    kind: "APIResourceList",
    // The core group's document has none, since 1.1.
    ...(of.group !== "" && { apiVersion: "v1" }),
    groupVersion: groupVersion(of),
    resources: resources
      .filter((resource) => resource.group === of.group && resource.version === of.version)
      .flatMap((resource) => [
        {
          name: resource.resource,
          singularName: singularName(resource),
          namespaced: resource.namespaced,
          kind: resource.kind,
          verbs: resource.verbs ?? READ_VERBS,
          ...shortNamesAndCategories(resource),
        },
        ...subresourcesOf(resource).map((subresource) => {
          const { group, version, kind } = subresource === "scale" ? SCALE : resource;
          return {
            name: `${resource.resource}/${subresource}`,
            singularName: "",
            namespaced: resource.namespaced,
            ...(subresource === "scale" && { group, version }),
            kind,
            verbs: SUBRESOURCE_VERBS,
          };
        }),
      ]),
  };
}

/**
 * The aggregated document (`apidiscovery.k8s.io/v2`) of the given resources. Members that only caches have
 * are here: its decoders skip that, while the official client of Java refuses the other documents for it.
 */
function aggregatedDocument(
  resources: readonly ApiResource[],
  { definesCustom, parametersOf }: DiscoveryRequest,
): unknown {
  const extension = (resource: ApiResource) => {
    const parameters = parametersOf?.(resource);
    return parameters && { "x-listwatch": { parameters } };
  };
  const groups = new Set<string>();
  for (const { group } of resources) groups.add(group);
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: "apidiscovery.k8s.io/v2",
    metadata: {},
    items: Array.from(groups, (group) => ({
      metadata: group === "" ? {} : { name: group },
      versions: versionsOf(resources, group).map((version) => ({
        version,
        resources: resources
          .filter((resource) => resource.group === group && resource.version === version)
          .map((resource) => ({
            resource: resource.resource,
            responseKind: responseKind(resource),
            scope: resource.namespaced ? "Namespaced" : "Cluster",
            singularResource: singularName(resource),
            verbs: resource.verbs ?? READ_VERBS,
            ...shortNamesAndCategories(resource),
            ...subresourcesIn(resource),
            ...(definesCustom && definitionOf(resource)),
            ...extension(resource),
          })),
        freshness: "Current",
      })),
    })),
  };
}

// For built-in resources an API server sends the kind only; an empty group and version mean those of the
// list: `APIResource` in https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go
function responseKind({ group, version, kind }: ApiResource): GroupVersionKind {
  return isBuiltinGroup(group) ? { group: "", version: "", kind } : { group, version, kind };
}

function subresourcesIn(resource: ApiResource): Record<string, unknown> {
  const subresources = subresourcesOf(resource).map((subresource) => {
    const { group, version, kind } = SCALE;
    return {
      subresource,
      responseKind: subresource === "scale" ? { group, version, kind } : responseKind(resource),
      verbs: SUBRESOURCE_VERBS,
    };
  });
  return subresources.length === 0 ? {} : { subresources };
}

/** The part of a custom resource's definition for Tables, selectors and scale, for a cache above this one. */
function definitionOf(resource: ApiResource): Record<string, unknown> {
  const { group, printerColumns, fieldSelectors, subresources, deprecationWarning } = resource;
  const definition = { printerColumns, fieldSelectors, subresources, deprecationWarning };
  const isEmpty = Object.values(definition).every((value) => value === undefined);
  return isBuiltinGroup(group) || isEmpty ? {} : { definition };
}

function shortNamesAndCategories(resource: ApiResource): Record<string, readonly string[]> {
  return {
    ...(resource.shortNames?.length && { shortNames: resource.shortNames }),
    ...(resource.categories?.length && { categories: resource.categories }),
  };
}

function apiGroup(name: string, versions: readonly string[]): Record<string, unknown> {
  const list = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
  return { name, versions: list, preferredVersion: list[0] };
}

function versionsOf(resources: readonly ApiResource[], group: string): string[] {
  const versions = new Set<string>();
  for (const resource of resources) if (resource.group === group) versions.add(resource.version);
  return Array.from(versions).sort(compareVersions);
}

const VERSION = /^v([0-9]+)(?:(alpha|beta)([0-9]+))?$/;

/** Kubernetes' order of preference: v2, v1, v2beta1, v1beta2, v1beta1, v1alpha1, then others by name. */
export function compareVersions(a: string, b: string): number {
  const x = VERSION.exec(a);
  const y = VERSION.exec(b);
  if (x === null || y === null) return x === null && y === null ? (a < b ? -1 : 1) : x === null ? 1 : -1;
  const stability = (match: RegExpExecArray) => match[2] === undefined ? 2 : match[2] === "beta" ? 1 : 0;
  return stability(y) - stability(x) || Number(y[1]) - Number(x[1]) || Number(y[3] ?? 0) - Number(x[3] ?? 0);
}
