/** Get, list and watch of one resource. */

import type { Context } from "hono";
import type { ApiResource } from "../protocol/api_resource.ts";
import type { ResourcePath } from "../protocol/resource_path.ts";
import { SCALE, scaleOf } from "../protocol/subresources.ts";
import { decodeContinue, LATEST, listIdentity } from "../protocol/continue_token.ts";
import type { ListQuery } from "../protocol/list_query.ts";
import { negotiateShape, type ObjectShape } from "../protocol/object_shape.ts";
import { JSON_AND_YAML } from "../protocol/accept.ts";
import { isStatus, objectNotFound, tooLargeResourceVersion } from "../protocol/statuses.ts";
import { fieldRules } from "../protocol/selectable_fields.ts";
import { formatObjectName } from "../meta/keys.ts";
import { compareResourceVersions } from "../meta/object.ts";
import { refusesStale, requiresEachEvent } from "../meta/request.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import { askedOf, type Permission } from "./request/gate.ts";
import {
  anotherLayout,
  incomplete,
  notFresh,
  notSynced,
  type StaleSource,
} from "./content/content_freshness.ts";
import type { IndexValue } from "./content/states.ts";
import type { ReadApiState } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";
import { nameProblem } from "./request/refusals.ts";
import type { ServedResource } from "./served_resources.ts";
import { answerForwarded, type ForwardRequest } from "./upstream/forward.ts";
import { documentResponse, type Format, formatOf, refusalResponse, warningHeader } from "./send/responses.ts";
import { indexedFields, newSelection } from "./content/selection.ts";
import { prefersGzip } from "./send/gzip.ts";
import { answerList } from "./send/list.ts";
import { answerObject } from "./send/object.ts";
import type { ReadSettings } from "./read_settings.ts";
import { type RequestedRead, requestedRead } from "./request/requested_read.ts";
import type { Answer, Route } from "./route.ts";
import { type IncludeObject, newTableView } from "./tables/table.ts";
import { newMetadataView, newObjectView, type View } from "./request/view.ts";
import { answerWatch, watchResponse } from "./send/watch_answer.ts";
import { errorStream } from "./send/watch_stream.ts";

/** A request for a served resource. */
export interface ResourceRequest extends ReadApiState {
  readonly target: ServedResource;
  readonly path: ResourcePath;
  readonly reader: Reader;
  /** List only what is under this value of an index, which the store has. */
  readonly under?: IndexValue;
}

/** The route of a GET of a resource that is served. */
export function readRoute(c: Context, request: ResourceRequest): Route {
  const { target, path, settings } = request;
  const fields = () => fieldRules(target.resource, indexedFields(target.informer.indexer));
  const read = requestedRead(c, { path, fields, settings, isList: request.under !== undefined });
  return {
    access: "hooks",
    asked: askedOf(path, { verb: read.verb, name: read.name }),
    isWatch: read.verb === "watch",
    target,
    answer: (permission) => answerRead(c, request, { ...read, permission }),
  };
}

/** The route of a GET of a resource that is answered elsewhere. */
export function forwardRoute(
  c: Context,
  request: ForwardRequest & Pick<ReadApiState, "settings">,
): Route {
  const { path, settings, isIndex = false } = request;
  const read = requestedRead(c, { path, fields: undefined, settings, isList: isIndex });
  return {
    access: "hooks",
    asked: askedOf(path, { verb: read.verb, name: read.name }),
    isWatch: read.verb === "watch",
    answer: (permission) => answerForwarded(c, request, { ...read, permission }),
  };
}

/** What a permitted request asks for. */
interface Read extends RequestedRead {
  readonly permission: Permission;
}

async function answerRead(c: Context, request: ResourceRequest, read: Read): Promise<Answer> {
  const { target, path, settings } = request;
  const { verb, query, searchParams, events, permission } = read;
  const isWatch = verb === "watch";
  const accept = events?.accept ?? c.req.header("Accept");
  const agreed = negotiateShape(target.resource, { accept, verb, mediaTypes: JSON_AND_YAML });
  if (!("shape" in agreed)) return agreed;
  if (!query.ok) return query.status;
  if (!target.content.log.isReady()) return notSynced(target.resource);
  const shown = path.subresource === "scale" ? SCALE : target.resource;
  const view = isStatus(agreed.shape) ? agreed.shape : newView(shown, agreed.shape, {
    searchParams,
    nowMs: () => settings.clock.now(),
  });
  if (verb !== "get" && !("sharedAs" in view)) return view;
  const form = {
    format: formatOf(c, agreed),
    ifNoneMatch: c.req.header("If-None-Match"),
    gzip: prefersGzip(c.req.header("Accept-Encoding")),
  };
  const wait = waitOf(c, settings);
  const isPartial = target.informer.sources !== undefined &&
    /^(1|t|true)$/i.test(searchParams.get("partial") ?? "");
  const name = verb === "get" ? path.name : "";
  const missing = target.fresh.missing(name);
  const isFound = missing.length > 0 && verb === "get" &&
    target.content.held(formatObjectName(path)) !== undefined;
  if (missing.length > 0 && !isPartial && !isFound) return incomplete(target.resource, missing);
  const cacheControl = c.req.header("Cache-Control");
  const waited = await catchUp(request, query, { wait, name, isPartial, cacheControl });
  if (isStatus(waited)) return isWatch ? watchResponse(errorStream(waited)) : waited;
  const response = verb === "get"
    ? await answerGet(request, { ...form, view })
    : isStatus(view)
    ? view
    : isWatch
    ? answerWatch(request, query, {
      view,
      permission,
      isEventStream: events !== undefined,
      endsAtRelist: requiresEachEvent(c.req.header("Prefer")),
    })
    : await answerListOf(request, query, { ...form, view, permission, wait });
  const warnings = warningsOf(waited, missing);
  if (warnings.length === 0) return response;
  // What is not found may exist by now.
  const stale = isStatus(response) ? await refusalResponse(c, response) : response;
  for (const warning of warnings) stale.headers.append("Warning", warningHeader(warning));
  return stale;
}

/** What an answer lacks, as kubectl prints it: https://kubernetes.io/blog/2020/09/03/warnings/ */
function warningsOf(stale: readonly StaleSource[], missing: readonly string[]): string[] {
  const names = stale.map(({ name }) => name).join(", ");
  const last = names === ""
    ? "this is the last known state: the API server does not answer at present"
    : `this is the last known state of ${names}: no answer from there at present`;
  const none = `incomplete: nothing was read of ${missing.join(", ")} yet`;
  return [...(missing.length > 0 ? [none] : []), ...(stale.length > 0 ? [last] : [])];
}

/** What bounds the waits of a request. */
function waitOf(c: Context, { freshnessTimeoutMs }: ReadSettings): VersionWaitOptions {
  return {
    timeoutMs: freshnessTimeoutMs,
    // Not before it is needed: Deno prints a warning when the signal of a request is read.
    get signal() {
      return c.req.raw.signal;
    },
  };
}

/**
 * Waits until the content is as fresh as the request demands: the sources of which the last known state must
 * do, or the Status of a read that is not answered.
 */
async function catchUp(
  request: ResourceRequest,
  query: ListQuery,
  { wait, name, isPartial, cacheControl }: {
    readonly wait: VersionWaitOptions;
    /** Of a get. */
    readonly name: string;
    readonly isPartial: boolean;
    readonly cacheControl: string | undefined;
  },
): Promise<readonly StaleSource[] | Status> {
  const { target, settings } = request;
  const { content, fresh } = target;
  const { resourceVersion, sendInitialEvents, continue: continued } = query.options;
  const token = continued === undefined ? undefined : decodeContinue(continued);
  if (token !== undefined) {
    // It is refused; the API server's own is answered with one of this cache.
    if (isStatus(token) || token.list === undefined) return [];
    if (token.resourceVersion !== LATEST) {
      // Another cache of the same API server may have written it, which has come further.
      if (compareResourceVersions(token.resourceVersion, content.log.resourceVersion) > 0) {
        await fresh.reaches(token.resourceVersion, wait);
      }
      return [];
    }
    // It continues with the present state, as a list without a version shows it.
  } else if (resourceVersion === "0" || (query.watch && !sendInitialEvents)) {
    return [];
  } else if (resourceVersion !== undefined) {
    const outcome = await fresh.reaches(resourceVersion, wait);
    if (outcome === "reached") return [];
    return outcome === "foreign"
      ? anotherLayout(resourceVersion)
      : tooLargeResourceVersion(resourceVersion, content.log.resourceVersion);
  }
  if (settings.freshness === "as-is") return [];
  const staleIfError = isPartial || (settings.freshness === "stale-if-error" && !refusesStale(cacheControl));
  const stale = await fresh.catchUp(wait, { name, staleIfError });
  return stale.length === 0 || staleIfError ? stale : notFresh(target.resource, stale);
}

/** The requested view, or the Status that refuses it: 400 for a wrong `includeObject`. */
function newView(
  resource: ApiResource,
  shape: ObjectShape,
  request: { readonly searchParams: URLSearchParams; readonly nowMs: () => number },
): View | Status {
  if (shape.kind === "object") return newObjectView(resource);
  const { apiVersion } = shape;
  if (shape.kind === "PartialObjectMetadata") return newMetadataView(apiVersion);
  const include = request.searchParams.get("includeObject") || "Metadata";
  if (include !== "None" && include !== "Metadata" && include !== "Object") {
    return newStatus(
      400,
      "BadRequest",
      `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(include)}: ` +
        "must be 'Metadata', 'Object', 'None', or empty",
    );
  }
  const includeObject: IncludeObject = include;
  return newTableView(resource, { apiVersion, includeObject, nowMs: request.nowMs });
}

/** What an answer with objects looks like. */
interface Form {
  readonly format: Format;
  readonly ifNoneMatch: string | undefined;
  readonly gzip: boolean;
}

interface Shape extends Form {
  readonly view: View;
}

async function answerGet(
  { target, path, tags }: ResourceRequest,
  shape: Form & { readonly view: View | Status },
): Promise<Answer> {
  const problem = nameProblem(path.name);
  if (problem !== undefined) return problem;
  const key = formatObjectName(path);
  const held = target.content.held(key);
  if (held === undefined) return objectNotFound(target.resource, path.name);
  const { view } = shape;
  if (path.subresource === "scale") {
    const scale = scaleOf(target.resource, target.content.holding.open(held));
    if (isStatus(scale) || isStatus(view)) return isStatus(scale) ? scale : view as Status;
    return await documentResponse(view.one(scale), shape.format);
  }
  return isStatus(view) ? view : await answerObject(target.content, held, { ...shape, view, key, tags });
}

async function answerListOf(
  request: ResourceRequest,
  query: ListQuery,
  options: Shape & { readonly permission: Permission; readonly wait: VersionWaitOptions },
): Promise<Answer> {
  const { target, path, settings } = request;
  const { group, version, resource } = path;
  const content = [
    group,
    version,
    resource,
    path.namespace,
    String(query.labels ?? ""),
    String(query.fields ?? ""),
    ...(request.under === undefined ? [] : [request.under.index, request.under.value]),
  ];
  return await answerList(target.content, {
    ...request,
    ...settings,
    ...options,
    options: query.options,
    namespace: path.namespace,
    // The namespace is a range of keys.
    selection: newSelection(target.resource, { namespace: "", labels: query.labels, fields: query.fields }),
    content: JSON.stringify(content),
    identity: () => listIdentity([...content, options.permission.user?.name ?? ""]),
  });
}
