/**
 * Get, list and watch of one resource.
 * @module
 */

import type { Context } from "hono";
import type { ApiResource } from "../protocol/api_resource.ts";
import { SCALE, scaleOf } from "../protocol/subresources.ts";
import { decodeContinue, LATEST, listIdentity } from "../protocol/continue_token.ts";
import {
  type ListQuery,
  parseGetQuery,
  parseListQuery,
  queryParameters,
  wantsWatch,
} from "../protocol/list_query.ts";
import type { ResourcePath } from "../protocol/resource_path.ts";
import { negotiateShape, type ObjectShape } from "../protocol/object_shape.ts";
import { JSON_AND_YAML } from "../protocol/accept.ts";
import { isStatus, objectNotFound, tooLargeResourceVersion, watchTooOld } from "../protocol/statuses.ts";
import { fieldRules } from "../protocol/selectable_fields.ts";
import { formatObjectName } from "../meta/keys.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { compareResourceVersions } from "../meta/resource_version.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import type { TurnQueue } from "../util/turn_queue.ts";
import { askedOf } from "./authorization.ts";
import { protectEndlessBody, withEmptyClone } from "./endless_body.ts";
import { indexedFields } from "./indexed_fields.ts";
import type { EventLog } from "./event_log.ts";
import type { FreshReads } from "./fresh_reads.ts";
import type { FanOut } from "./fan_out.ts";
import type { Gate, Permission } from "./gate.ts";
import type { EntityTags } from "./etag.ts";
import { EVENT_STREAM_TYPE, eventStream, eventStreamRequest } from "./event_stream.ts";
import { prefersGzip } from "./gzip.ts";
import { answerList } from "./list.ts";
import type { ListBodies } from "./list_bodies.ts";
import { answerObject } from "./object.ts";
import type { ReadSettings } from "./read_settings.ts";
import { Pacer, type Reader, type Readers } from "./readers.ts";
import {
  documentResponse,
  type Format,
  formatOf,
  GUARD_HEADERS,
  nameProblem,
  notFresh,
  notSynced,
  tooManyRequests,
} from "./responses.ts";
import { newSelection } from "./selection.ts";
import type { ServedInformer } from "./served_informer.ts";
import type { IndexValue } from "./snapshot.ts";
import { type IncludeObject, newTableView } from "./table.ts";
import { newMetadataView, newObjectView, type View } from "./view.ts";
import { errorStream, openWatch } from "./watch_stream.ts";

/** A resource that is served. */
export interface ServedResource {
  readonly resource: ApiResource;
  readonly informer: ServedInformer;
  readonly log: EventLog<KubernetesObject>;
  /** Compares the content with the API server; absent where the informer's source cannot. */
  readonly fresh: FreshReads<KubernetesObject> | undefined;
}

/** A request for a served resource. */
export interface ResourceRequest {
  readonly target: ServedResource;
  readonly path: ResourcePath;
  /** List only what is under this value of an index, which the store has. */
  readonly under?: IndexValue;
  readonly gate: Gate;
  /** What bounds a wait for a resourceVersion that the cache has not come to. */
  readonly wait: VersionWaitOptions;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Where all readers take turns. */
  readonly readersPacer: Pacer;
  /** Lets the watches send. */
  readonly fanOut: FanOut;
  readonly turns: TurnQueue;
  readonly bodies: ListBodies;
  readonly tags: EntityTags;
  readonly settings: ReadSettings;
}

// A thousand values of the longest kind, and keys for a hundred requirements.
const MAX_QUERY_TEXT = 128 * 1024;

/** Answers a GET of a resource that is served, or refuses it. */
export async function answerResource(c: Context, request: ResourceRequest): Promise<Response | Status> {
  const { target, path, gate, settings } = request;
  const isOne = path.name !== "" && !path.isWatch;
  const mustWatch = path.isWatch || (request.under === undefined ? undefined : false);
  const given = queryParameters(new URL(c.req.url).search);
  const events = !isOne && (mustWatch ?? wantsWatch(given)) ? eventStreamRequest(c, given) : undefined;
  const { searchParams } = events ?? { searchParams: given };
  const query = isOne ? parseGetQuery(searchParams) : parseListQuery(searchParams, {
    ...(mustWatch !== undefined && { watch: mustWatch }),
    ...(path.isWatch && path.name !== "" && { name: path.name }),
    fields: fieldRules(target.resource, indexedFields(target.informer.indexer)),
    limits: {
      maxRequirements: settings.maxSelectorRequirements,
      maxValues: settings.maxSelectorValues,
      maxTextLength: MAX_QUERY_TEXT,
    },
  });
  const isWatch = query.ok ? query.watch : mustWatch ?? (wantsWatch(searchParams) && !isOne);
  const verb = isOne ? "get" : isWatch ? "watch" : "list";
  const name = path.name || (query.ok && query.fields?.requiresExactMatch("metadata.name")) || "";
  const permission = await gate(askedOf(path, { verb, name }), c);
  if (isStatus(permission)) return permission;
  if (!request.reader.identify(settings.clientOf(c, permission.user))) return tooManyRequests();

  const accept = events?.accept ?? c.req.header("Accept");
  const agreed = negotiateShape(target.resource, { accept, verb, mediaTypes: JSON_AND_YAML });
  if (isStatus(agreed)) return agreed;
  if (!query.ok) return query.status;
  if (!target.log.isReady()) return notSynced(target.resource);
  const shown = path.subresource === "scale" ? SCALE : target.resource;
  const view = isStatus(agreed.shape) ? agreed.shape : newView(shown, agreed.shape, {
    searchParams,
    nowMs: () => settings.clock.now(),
  });
  if (!isOne && isStatus(view)) return view;
  const form = {
    format: formatOf(c, agreed),
    ifNoneMatch: c.req.header("If-None-Match"),
    gzip: prefersGzip(c.req.header("Accept-Encoding")),
  };
  const waited = await catchUp(request, query);
  if (isStatus(waited)) return isWatch ? watchResponse(errorStream(waited)) : waited;
  if (isWatch) protectEndlessBody(c, ({ headers }) => headers.get("X-Accel-Buffering") === "no");
  const response = isOne
    ? await answerGet(request, { ...form, view })
    : isStatus(view)
    ? view
    : isWatch
    ? answerWatch(request, query, { view, permission, isEventStream: events !== undefined })
    : await answerListOf(request, query, { ...form, view, permission });
  // https://kubernetes.io/blog/2020/09/03/warnings/
  if (waited.isStale && response instanceof Response) response.headers.set("Warning", `299 - "${STALE}"`);
  return response;
}

const STALE = "this is the last known state: the API server does not answer at present";

/** Waits until the content is as fresh as the request demands; the Status of a read that is not answered. */
async function catchUp(
  request: ResourceRequest,
  query: ListQuery,
): Promise<{ readonly isStale: boolean } | Status> {
  const { target, wait, settings } = request;
  const { log, fresh } = target;
  const { resourceVersion, sendInitialEvents } = query.options;
  if (query.options.continue !== undefined) {
    const token = decodeContinue(query.options.continue);
    // Another cache of the same API server may have written it, which has come further.
    if (
      !isStatus(token) && token.resourceVersion !== LATEST &&
      compareResourceVersions(token.resourceVersion, log.resourceVersion) > 0
    ) {
      await (fresh ?? log).reaches(token.resourceVersion, wait);
    }
    return { isStale: false };
  }
  if (resourceVersion === "0" || (query.watch && !sendInitialEvents)) return { isStale: false };
  if (resourceVersion !== undefined) {
    const isReached = fresh === undefined
      ? await log.reaches(resourceVersion, wait)
      : await fresh.reaches(resourceVersion, wait);
    return isReached ? { isStale: false } : tooLargeResourceVersion(resourceVersion, log.resourceVersion);
  }
  if (fresh === undefined || settings.freshness === "as-is") return { isStale: false };
  const staleIfError = settings.freshness === "stale-if-error";
  const outcome = await fresh.catchUp(wait, { staleIfError });
  if (outcome === "fresh") return { isStale: false };
  return staleIfError ? { isStale: true } : notFresh(target.resource, outcome);
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
): Promise<Response | Status> {
  const problem = nameProblem(path.name);
  if (problem !== undefined) return problem;
  const key = formatObjectName(path);
  const held = target.log.held(key);
  if (held === undefined) return objectNotFound(target.resource, path.name);
  const { view } = shape;
  if (path.subresource === "scale") {
    const scale = scaleOf(target.resource, target.log.holding.open(held));
    if (isStatus(scale) || isStatus(view)) return isStatus(scale) ? scale : view as Status;
    return await documentResponse(view.one(scale), shape.format);
  }
  return isStatus(view) ? view : await answerObject(target.log, held, { ...shape, view, key, tags });
}

async function answerListOf(
  request: ResourceRequest,
  query: ListQuery,
  options: Shape & { readonly permission: Permission },
): Promise<Response | Status> {
  const { target, path, turns, settings } = request;
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
  return await answerList(target.log, {
    ...request,
    ...settings,
    ...options,
    options: query.options,
    namespace: path.namespace,
    // The namespace is a range of keys.
    selection: newSelection(target.resource, { namespace: "", labels: query.labels, fields: query.fields }),
    content: JSON.stringify(content),
    identity: listIdentity([...content, options.permission.user?.name ?? ""]),
    pacer: new Pacer(turns),
  });
}

function answerWatch(
  request: ResourceRequest,
  query: ListQuery,
  options: { readonly view: View; readonly permission: Permission; readonly isEventStream: boolean },
): Response {
  const { target, path, reader, readers, fanOut, settings } = request;
  const { log } = target;
  const { resourceVersion = "0", sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = query.options;
  // Its time is over before anything is sent.
  if (timeoutSeconds !== undefined && timeoutSeconds < 0) return watchResponse(new Blob([]).stream());
  const common = {
    ...options,
    selection: newSelection(target.resource, {
      namespace: path.namespace,
      labels: query.labels,
      fields: query.fields,
    }),
    allowBookmarks: allowWatchBookmarks === true,
    // 0 means no limit of its own, as if absent.
    limitMs: Math.min(
      timeoutSeconds ? timeoutSeconds * 1000 : Infinity,
      settings.watchLimitMs(),
    ),
    recheckMs: settings.watchRecheckMs,
    bufferBytes: settings.watchBufferBytes,
    writeTimeoutMs: settings.writeTimeoutMs,
    reader,
    readers,
    fanOut,
    clock: settings.clock,
  };
  const openInitial = () => {
    const initial = log.candidates(common.selection?.indexed);
    return openWatch(log, { ...common, cursor: log.head, resourceVersion: log.resourceVersion, initial });
  };
  const { isEventStream } = options;
  if (sendInitialEvents) {
    return isEventStream
      ? eventStreamResponse(openInitial(), { hasInitialEvents: true })
      : watchResponse(openInitial());
  }
  const from = resourceVersion === "0" ? log.resourceVersion : resourceVersion;
  const cursor = log.resume(from);
  if (cursor === undefined) {
    const expired = watchTooOld(from, log.oldestResourceVersion);
    return isEventStream
      ? eventStreamResponse(openInitial(), { hasInitialEvents: true, expired })
      : watchResponse(errorStream(expired));
  }
  const body = openWatch(log, { ...common, cursor, resourceVersion: from });
  return isEventStream ? eventStreamResponse(body, { hasInitialEvents: false }) : watchResponse(body);
}

function eventStreamResponse(
  lines: ReadableStream<Uint8Array>,
  options: Parameters<typeof eventStream>[1],
): Response {
  return watchResponse(eventStream(lines, options), EVENT_STREAM_TYPE);
}

// `no-transform`, or a compressing middleware would hold events back; the last one keeps nginx from buffering.
const WATCH_HEADERS: Readonly<Record<string, string>> = {
  "Cache-Control": "no-cache, private, no-transform",
  "X-Accel-Buffering": "no",
  ...GUARD_HEADERS,
};

function watchResponse(body: ReadableStream<Uint8Array>, mediaType = "application/json"): Response {
  const response = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, {
    headers: { ...WATCH_HEADERS, "Content-Type": mediaType },
  });
  return withEmptyClone(response);
}
