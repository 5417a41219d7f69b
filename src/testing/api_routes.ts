/** The routes of an API server. */

import type { KubernetesObject } from "../meta/object.ts";
import { newStatus, type Status, StatusError } from "../meta/status.ts";
import { answerDiscovery, type DiscoveryAnswer } from "../protocol/discovery.ts";
import {
  integer,
  type ListQuery,
  parseListQuery,
  parseResourcePath,
  pathSegments,
  refusedTimeout,
  type ResourcePath,
  timeoutOf,
  wantsWatch,
} from "../protocol/request_url.ts";
import { negotiateShape, type ObjectShape } from "../protocol/representations.ts";
import { fieldRules } from "../protocol/selectable_fields.ts";
import { isStatus, methodNotAllowed, resourceDetails, unknownPath } from "../protocol/statuses.ts";
import { hasTable, subresourcesOf } from "../protocol/subresources.ts";
import { errorMessage } from "../util/errors.ts";
import {
  badRequest,
  internal,
  jsonResponse,
  notFound,
  statusResponse,
  unsupportedMediaType,
} from "./api_errors.ts";
import { parseJson } from "./json.ts";
import { decodeObject } from "./object_checks.ts";
import { listDocument, newSelection, type ObjectReader, type Selection, shaped } from "./object_reader.ts";
import type { DeleteOptions, Deletion, ObjectRegistry } from "./object_registry.ts";
import { applyPatch, isApply } from "./patches/patches.ts";
import type { ResourceTable, ServedResource } from "./served_resources.ts";
import type { WatchHub } from "./watch_hub.ts";

export interface ApiParts {
  readonly resources: ResourceTable;
  readonly reader: ObjectReader;
  readonly registry: ObjectRegistry;
  readonly watches: WatchHub;
}

export interface ApiClient {
  readonly signal: AbortSignal | undefined;
  /** Whether the client is behind a socket, where no caller can catch an error of a body. */
  readonly isRemote: boolean;
}

interface Call extends ApiParts, ApiClient {
  readonly request: Request;
  readonly params: URLSearchParams;
  readonly resource: ServedResource;
  readonly path: ResourcePath;
  readonly shape: ObjectShape;
}

export async function answerRequest(parts: ApiParts, request: Request, client: ApiClient): Promise<Response> {
  let response: Response;
  try {
    response = await route(parts, request, client);
  } catch (error) {
    const isRefusal = error instanceof StatusError;
    const status = isRefusal ? error.status : newStatus(500, "InternalError", errorMessage(error));
    response = statusResponse(status, request);
  }
  if (request.method !== "HEAD") return response;
  response.body?.cancel().catch(() => {});
  return new Response(null, response);
}

async function route(parts: ApiParts, request: Request, client: ApiClient): Promise<Response> {
  const { method } = request;
  const { pathname, searchParams, host } = new URL(request.url);
  if (["/healthz", "/livez", "/readyz"].includes(pathname)) return textResponse("ok");
  if (pathname === "/version") {
    if (method !== "GET" && method !== "HEAD") throw new StatusError(methodNotAllowed());
    return jsonResponse(VERSION, request);
  }
  const discovery = answerDiscovery(parts.resources.all, {
    method,
    path: pathname,
    accept: request.headers.get("Accept"),
    ifNoneMatch: request.headers.get("If-None-Match"),
    serverAddress: host,
  });
  if (discovery !== undefined) return discoveryResponse(discovery, request);
  const segments = pathSegments(pathname);
  const path = segments && parseResourcePath(segments);
  if (path === undefined) return pageNotFound();
  const resource = parts.resources.find(path);
  if (resource === undefined || resource.namespaced !== (path.namespace !== "")) {
    const isCollectionOfAll = resource?.namespaced && path.name === "" && path.namespace === "";
    if (!isCollectionOfAll) return noResource(parts.resources, path, request);
  }
  // API servers answer HEAD for custom resources only.
  const isHead = method === "HEAD" && resource!.isCustom;
  const read = isHead ? new Request(request, { method: "GET" }) : request;
  const isGet = read.method === "GET";
  const isWatch = path.name === "" && isGet && wantsWatch(searchParams);
  const isCollection = path.name === "" && (isGet || method === "DELETE");
  return await answer({
    ...parts,
    ...client,
    request: read,
    params: searchParams,
    resource: resource!,
    path,
    shape: shapeOf(read, resource!, {
      verb: isWatch ? "watch" : isCollection ? "list" : "get",
      tables: isGet && (path.subresource === "" || hasTable(path.subresource)),
    }),
  });
}

const VERSION = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.3",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "",
};

function discoveryResponse(answer: DiscoveryAnswer | Status, request: Request): Response {
  if (isStatus(answer)) return statusResponse(answer, request);
  const { status, headers, mediaType, parameters, document } = answer;
  if (document === null) return new Response(null, { status, headers });
  const typed = { ...headers, "Content-Type": mediaType + parameters };
  return new Response(`${JSON.stringify(document)}\n`, { status, headers: typed });
}

// Built-in groups answer with a Status, groups of custom resources with a page.
function noResource(resources: ResourceTable, path: ResourcePath, request: Request): Response {
  const isBuiltin = resources.all.some(({ group, isCustom }) => group === path.group && !isCustom);
  return isBuiltin ? statusResponse(unknownPath(), request) : pageNotFound();
}

async function answer(call: Call): Promise<Response> {
  const { reader, registry, request, request: { method }, params, signal, path, resource, shape } = call;
  // A body that was not read would remain on a connection that is kept alive.
  const body = method === "GET" || method === "HEAD" ? "" : await request.text();
  if (body !== "" && method !== "PATCH" && !isJson(request)) throw unsupportedMediaType(["application/json"]);
  const refused = method === "GET" && wantsWatch(params) ? undefined : refusedTimeout(timeoutOf(request.url));
  if (refused !== undefined) throw new StatusError(refused);
  const { subresource } = path;
  if (subresource !== "") {
    const isStatus = subresource === "status" && resource.statusSubresource;
    // Subresources that write a part of the object have their reads here.
    if (!isStatus && !(subresourcesOf(resource).includes(subresource) && !hasTable(subresource))) {
      throw resource.isCustom ? notFound(resource, path.name) : new StatusError(unknownPath());
    }
    const isWrite = isStatus && (method === "PUT" || method === "PATCH");
    if (method !== "GET" && !isWrite) throw new StatusError(methodNotAllowed());
  }
  const answerObject = (object: KubernetesObject, status?: number) =>
    jsonResponse(shaped(object, shape), request, status);
  const dryRun = isDryRun(params);
  const fieldManager = params.get("fieldManager") ?? "";
  const manager = fieldManager || (request.headers.get("User-Agent") ?? "unknown").split("/")[0];
  if (path.name !== "") {
    switch (method) {
      case "GET": {
        const resourceVersion = params.get("resourceVersion") ?? undefined;
        return answerObject(await reader.get(resource, path, { resourceVersion, signal }));
      }
      case "PUT": {
        const options = { dryRun, subresource, manager };
        const { object, isNew } = registry.put(resource, decodeObject(resource, body), path, options);
        return answerObject(object, isNew ? 201 : 200);
      }
      case "PATCH": {
        const contentType = request.headers.get("Content-Type") ?? "";
        if (isApply(contentType)) {
          const options = {
            dryRun,
            subresource,
            manager: fieldManager,
            force: params.get("force") === "true",
          };
          const { object, isNew } = registry.apply(resource, decodeObject(resource, body), path, options);
          return answerObject(object, isNew ? 201 : 200);
        }
        const change = applyPatch(resource, contentType, body);
        return answerObject(registry.patch(resource, path, change, { dryRun, subresource, manager }));
      }
      case "DELETE": {
        const deletion = registry.delete(resource, path, deleteOptions(params, body));
        return jsonResponse(deletionDocument(resource, path.name, deletion, shape), request);
      }
    }
  } else if (method === "GET") return await listOrWatch(call);
  else if (!resource.namespaced || path.namespace !== "") {
    if (method === "POST") {
      const object = decodeObject(resource, body);
      return answerObject(registry.create(resource, object, path.namespace, { dryRun }), 201);
    }
    if (method === "DELETE") return await deleteCollection(call, body);
  }
  throw new StatusError(methodNotAllowed());
}

async function listOrWatch(call: Call): Promise<Response> {
  const { query: { watch, options }, selection } = readQuery(call);
  const { reader, watches, params, signal, isRemote, resource, request, shape } = call;
  if (watch) {
    const asksForInitialEvents = params.has("sendInitialEvents");
    const body = watches.open({ selection, options, asksForInitialEvents, signal, isRemote, shape });
    const headers = { "Cache-Control": "no-cache, private", "Content-Type": "application/json" };
    return new Response(body, { headers });
  }
  return jsonResponse(listDocument(resource, await reader.list(selection, options, signal), shape), request);
}

function readQuery(
  { params, resource, path }: Call,
  watch?: boolean,
): { readonly query: ListQuery; readonly selection: Selection } {
  const query = parseListQuery(params, { fields: () => fieldRules(resource), watch });
  if (isStatus(query)) {
    const malformed = /^invalid resource version: (.*)$/s.exec(query.message ?? "");
    // Watches have another answer.
    if (malformed !== null && wantsWatch(params)) throw internal(malformed[1]);
    throw new StatusError(query);
  }
  return { query, selection: newSelection(resource, { ...query, namespace: path.namespace }) };
}

async function deleteCollection(call: Call, body: string): Promise<Response> {
  const { reader, registry, request, params, signal, resource, shape } = call;
  const { query, selection } = readQuery(call, false);
  const page = await reader.list(selection, query.options, signal);
  const { uid: _uid, resourceVersion: _resourceVersion, ...options } = deleteOptions(params, body);
  for (const { metadata: { namespace = "", name } } of page.items) {
    registry.delete(resource, { namespace, name }, options);
  }
  return jsonResponse(listDocument(resource, page, shape), request);
}

/** The options of a delete: those of the body alone, if there is one, as in an API server. */
function deleteOptions(params: URLSearchParams, body: string): DeleteOptions {
  try {
    if (body === "") {
      return { dryRun: isDryRun(params), gracePeriodSeconds: integer(params, "gracePeriodSeconds") };
    }
    const { preconditions, gracePeriodSeconds, dryRun } = (parseJson(body) ?? {}) as {
      readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
      readonly gracePeriodSeconds?: number;
      readonly dryRun?: readonly string[];
    };
    return { dryRun: dryRun?.includes("All") ?? false, ...preconditions, gracePeriodSeconds };
  } catch (error) {
    const unread = error instanceof SyntaxError ? "couldn't get version/kind; json parse error: " : "";
    throw badRequest(unread + errorMessage(error));
  }
}

function deletionDocument(
  resource: ServedResource,
  name: string,
  deletion: Deletion,
  shape: ObjectShape,
): unknown {
  const { object, isRemoved } = deletion;
  if (!isRemoved || resource.returnsDeleted) return shaped(object, shape);
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, ...resourceDetails(resource), uid: object.metadata.uid },
  };
}

/** The shape that a client asks for. Only reads can be answered with a Table. */
function shapeOf(
  { headers }: Request,
  resource: ServedResource,
  asked: { readonly verb: "get" | "list" | "watch"; readonly tables: boolean },
): ObjectShape {
  const agreed = negotiateShape(resource, { accept: headers.get("Accept"), ...asked });
  if (!("shape" in agreed)) throw new StatusError(agreed);
  if (agreed.shape.kind === "refused") throw new StatusError(agreed.shape.status);
  return agreed.shape;
}

function isJson(request: Request): boolean {
  const contentType = request.headers.get("Content-Type");
  return contentType === null || /^application\/json *(;|$)/i.test(contentType);
}

function isDryRun(params: URLSearchParams): boolean {
  return params.getAll("dryRun").includes("All");
}

function textResponse(text: string, status = 200): Response {
  return new Response(text, {
    status,
    headers: {
      "Cache-Control": "no-cache, private",
      "Content-Type": "text/plain; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
    },
  });
}

function pageNotFound(): Response {
  return textResponse("404 page not found\n", 404);
}
