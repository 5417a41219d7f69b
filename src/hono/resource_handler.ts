/**
 * Get, list and watch of one resource.
 * @module
 */

import type { Context } from "hono";
import type { ApiResource } from "../meta/discovery.ts";
import { type ListQuery, parseListQuery } from "../meta/list_query.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import type { Clock } from "../util/clock.ts";
import type { Gate } from "./authorization.ts";
import { listResponse, objectResponse } from "./encoding.ts";
import type { EventLog } from "./event_log.ts";
import { readPage } from "./list.ts";
import type { ResourcePath } from "./request_path.ts";
import { notSynced, objectNotFound, statusResponse, tooLarge, watchTooOld } from "./responses.ts";
import { newSelection } from "./selection.ts";
import type { ServedInformer } from "./served_informer.ts";
import { newView, type View } from "./view.ts";
import { errorStream, openWatch } from "./watch_stream.ts";

/** A resource that is served. */
export interface ServedResource {
  readonly resource: ApiResource;
  readonly informer: ServedInformer;
  readonly log: EventLog<KubernetesObject>;
}

/** What is asked for, and of what. */
export interface ResourceRequest {
  readonly target: ServedResource;
  readonly path: ResourcePath;
  readonly gate: Gate;
  readonly clock: Clock;
  /** What bounds a wait for a resourceVersion that the cache has not come to. */
  readonly wait: VersionWaitOptions;
  readonly watchBufferBytes: number;
}

/** Answers a GET of a resource that is served. */
export async function answerResource(c: Context, request: ResourceRequest): Promise<Response> {
  const { target, path, gate, clock } = request;
  const { searchParams } = new URL(c.req.url);
  const isOne = path.name !== "";
  // `watch` means nothing on a single object.
  const query = parseListQuery(searchParams, {
    ...(isOne && { watch: false }),
    ...(target.resource.fieldSelectors && { selectableFields: target.resource.fieldSelectors }),
  });
  const isWatch = query.ok ? query.watch : false;
  const verb = isOne ? "get" : isWatch ? "watch" : "list";
  const name = path.name || (query.ok && query.fields?.requiresExactMatch("metadata.name")) || "";
  const refusal = await gate({ ...path, name, verb }, c);
  if (refusal !== undefined) return statusResponse(refusal);

  const view = newView(target.resource, {
    accept: c.req.header("Accept"),
    verb,
    searchParams,
    nowMs: () => clock.now(),
  });
  if (isStatus(view)) return statusResponse(view);
  if (!query.ok) return statusResponse(query.status);
  if (!target.log.isReady()) return statusResponse(notSynced(target.resource));
  const shape = { view, pretty: isPretty(c, searchParams) };
  if (isOne) return await answerGet(request, query, shape);
  return isWatch ? await answerWatch(request, query, view) : await answerList(request, query, shape);
}

interface Shape {
  readonly view: View;
  readonly pretty: boolean;
}

async function answerGet(request: ResourceRequest, query: ListQuery, shape: Shape): Promise<Response> {
  const { target, path, wait } = request;
  const { resourceVersion = "0" } = query.options;
  if (resourceVersion !== "0" && !await target.log.reaches(resourceVersion, wait)) {
    return statusResponse(tooLarge(resourceVersion, target.log.resourceVersion));
  }
  const key = path.namespace === "" ? path.name : `${path.namespace}/${path.name}`;
  const object = target.informer.indexer.getByKey(key);
  return object === undefined
    ? statusResponse(objectNotFound(target.resource, path.name))
    : objectResponse(object, shape);
}

async function answerList(request: ResourceRequest, query: ListQuery, shape: Shape): Promise<Response> {
  const { target, path, wait } = request;
  const page = await readPage(target.log, {
    options: query.options,
    namespace: path.namespace,
    // The namespace is a range of keys.
    selection: newSelection(target.resource, { namespace: "", labels: query.labels, fields: query.fields }),
    labels: query.labels,
    wait,
  });
  return isStatus(page)
    ? statusResponse(page)
    : listResponse(page, { ...shape, content: target.log.content });
}

async function answerWatch(request: ResourceRequest, query: ListQuery, view: View): Promise<Response> {
  const { target, path, clock, wait } = request;
  const { log } = target;
  const { resourceVersion = "0", sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = query.options;
  const common = {
    view,
    selection: newSelection(target.resource, {
      namespace: path.namespace,
      labels: query.labels,
      fields: query.fields,
    }),
    allowBookmarks: allowWatchBookmarks === true,
    // 0 means no limit of its own, as if absent.
    ...(timeoutSeconds && { timeoutMs: Math.max(timeoutSeconds, 0) * 1000 }),
    bufferBytes: request.watchBufferBytes,
    clock,
  };
  if (sendInitialEvents) {
    if (resourceVersion !== "0" && !await log.reaches(resourceVersion, wait)) {
      return watchResponse(errorStream(tooLarge(resourceVersion, log.resourceVersion)));
    }
    const initial = log.candidates(query.labels);
    const from = { cursor: log.head, resourceVersion: log.resourceVersion, initial };
    return watchResponse(openWatch(log, { ...common, ...from }));
  }
  const from = resourceVersion === "0" ? log.resourceVersion : resourceVersion;
  const cursor = log.resume(from);
  return watchResponse(
    cursor === undefined
      ? errorStream(watchTooOld(from, log.oldestResourceVersion))
      : openWatch(log, { ...common, cursor, resourceVersion: from }),
  );
}

// `no-transform`, or a compressing middleware would hold events back; the last one tells nginx not to buffer.
const WATCH_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "application/json",
  "Cache-Control": "no-cache, private, no-transform",
  "X-Accel-Buffering": "no",
};

function watchResponse(body: ReadableStream<Uint8Array>): Response {
  return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { headers: WATCH_HEADERS });
}

// As API servers do: people read what their command line and their browser show.
function isPretty(c: Context, searchParams: URLSearchParams): boolean {
  const pretty = searchParams.get("pretty");
  if (pretty !== null && pretty !== "") return /^(1|t|true)$/i.test(pretty);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(c.req.header("User-Agent") ?? "");
}

function isStatus(value: object): value is Status {
  return "kind" in value && value.kind === "Status";
}
