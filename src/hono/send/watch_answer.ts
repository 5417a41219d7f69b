/** Answers to watches. */

import type { ApiResource } from "../../protocol/api_resource.ts";
import type { ListQuery, ResourcePath } from "../../protocol/request_url.ts";
import type { ScreenQuery } from "../../protocol/screen_query.ts";
import { isStatus, watchTooOld } from "../../protocol/statuses.ts";
import type { Status } from "../../meta/status.ts";
import type { Permission } from "../request/gate.ts";
import type { ContentFreshness } from "../content/content.ts";
import type { Reader } from "../request/readers.ts";
import type { Watchers } from "./fan_out.ts";
import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import { GUARD_HEADERS } from "./responses.ts";
import { newSelection } from "../content/selection.ts";
import type { View } from "../request/requested_read.ts";
import { EventFeed } from "./event_feed.ts";
import { type ScreenRequest, windowSource } from "./screen_answer.ts";
import { errorStream, openWatch, type WatchRequest, type WatchSettings } from "./watch_stream.ts";
import { WindowFeed } from "./windows.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../../meta/list_watch.ts";
import { LineCutter } from "../../text/line_cutter.ts";
import { ObjectText, ObjectTextReader } from "../../text/object_text_reader.ts";
import { encodeUtf8 } from "../../util/bytes.ts";

export interface WatchedResource {
  readonly target: {
    readonly resource: ApiResource;
    readonly watchers: Watchers<KubernetesObject>;
    readonly fresh: ContentFreshness;
  };
  readonly path: ResourcePath;
  readonly reader: Reader;
  readonly state: ScreenRequest["state"] & {
    readonly settings: WatchSettings & { watchLimitMs(): number };
  };
}

interface WatchOptions {
  readonly view: View;
  readonly screen: ScreenQuery | undefined;
  readonly permission: Permission;
  readonly isEventStream: boolean;
  readonly endsAtRelist: boolean;
}

export function answerWatch(
  request: WatchedResource,
  query: ListQuery,
  options: WatchOptions,
): Response | Promise<Response | Status> {
  const { target: { watchers, fresh }, path, reader } = request;
  const { content } = watchers;
  const { resourceVersion = "0", sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = query.options;
  // The watch's time is over before anything is sent.
  if (timeoutSeconds !== undefined && timeoutSeconds < 0) return watchResponse(new Blob([]).stream());
  const { isEventStream, endsAtRelist, permission, view, screen } = options;
  if (screen?.sortBy !== undefined || screen?.groupBy !== undefined) {
    return answerWindow(request, query, { ...options, screen });
  }
  const { namespace } = path;
  const selection = newSelection(path, { ...query, namespace, filter: screen?.filter });
  const life = lifeOf(request, query, permission);
  const respond = (body: ReadableStream<Uint8Array>, of: EventStreamOptions) =>
    isEventStream ? eventStreamResponse(body, of) : watchResponse(body);
  const common = { view, selection, allowBookmarks: allowWatchBookmarks === true, endsAtRelist, reader };
  const openInitial = () => {
    const initial = content.states.candidates(selection?.indexed);
    const { log: { head: cursor, resourceVersion } } = content;
    const feed = new EventFeed(watchers, { ...common, cursor, resourceVersion, initial });
    return openWatch(watchers, feed, life);
  };
  if (sendInitialEvents) return respond(openInitial(), { hasInitialEvents: true });
  const from = resourceVersion === "0" ? content.log.resourceVersion : resourceVersion;
  const cursor = content.log.resume(from);
  if (cursor === undefined) {
    const expired = watchTooOld(from, content.log.oldestResourceVersion);
    return isEventStream
      ? eventStreamResponse(openInitial(), { hasInitialEvents: true, expired })
      : watchResponse(errorStream(expired));
  }
  const isLost = (signal: AbortSignal) => fresh.isLost(from, signal);
  const feed = new EventFeed(watchers, { ...common, cursor, resourceVersion: from, isLost });
  return respond(openWatch(watchers, feed, life), { hasInitialEvents: false, after: from });
}

function lifeOf(
  { reader, state: { settings } }: WatchedResource,
  { options: { timeoutSeconds } }: ListQuery,
  permission: Permission,
): WatchRequest {
  return {
    permission,
    // 0 means no limit of its own, as if absent.
    limitMs: Math.min(timeoutSeconds ? timeoutSeconds * 1000 : Infinity, settings.watchLimitMs()),
    reader,
    settings,
  };
}

/** The answer to a watch with `sortBy` or `groupBy`: the rows of a window, then what changes in them. */
async function answerWindow(
  request: WatchedResource,
  query: ListQuery,
  { screen, view, permission, isEventStream }: WatchOptions & { readonly screen: ScreenQuery },
): Promise<Response | Status> {
  const { target: { watchers, resource }, path: { namespace }, reader, state } = request;
  const { pacer, client } = reader;
  const { filter } = screen;
  const selected = { ...query, namespace, filter, resource, screen };
  const source = await windowSource(watchers.content, { ...selected, pacer, state, view, client });
  if (isStatus(source)) return source;
  const window = watchers.windows.join({
    source,
    place: screen.around === undefined ? `from ${screen.offset ?? 0}` : `around ${screen.around}`,
    limit: screen.groupBy === undefined ? screen.limit ?? 0 : Infinity,
    pacer,
    takeRows: (bytes, isNew) => state.followers.takeRows(bytes, { client, isNew }),
  });
  const feed = new WindowFeed(window, watchers.content);
  const body = openWatch(watchers, feed, lifeOf(request, query, permission));
  return isEventStream ? eventStreamResponse(body, { hasInitialEvents: false }) : watchResponse(body);
}

type EventStreamOptions = Parameters<typeof eventStream>[1];

function eventStreamResponse(lines: ReadableStream<Uint8Array>, options: EventStreamOptions): Response {
  return watchResponse(eventStream(lines, options), EVENT_STREAM_TYPE);
}

// `no-transform`, or a compressing middleware would hold events back; the last one keeps nginx from
// buffering.
const WATCH_HEADERS: Readonly<Record<string, string>> = {
  "Cache-Control": "no-cache, private, no-transform",
  "X-Accel-Buffering": "no",
  ...GUARD_HEADERS,
};

/**
 * An `ETag` that no other response has: no request can be answered 304 for it. hono's `etag()` reads the
 * whole body of a response without one, also in an app that calls this one's `fetch`
 * (https://github.com/honojs/hono/blob/main/src/middleware/etag/index.ts).
 */
export function uniqueTag(): string {
  return `W/"${crypto.randomUUID()}"`;
}

export function watchResponse(body: ReadableStream<Uint8Array>, mediaType = "application/json"): Response {
  return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, {
    headers: { ...WATCH_HEADERS, "Content-Type": mediaType, ETag: uniqueTag() },
  });
}

const EVENT_STREAM_TYPE = "text/event-stream; charset=utf-8";

/**
 * The lines of a watch as server-sent events: each is a message with the watch event as its data, and has the
 * resourceVersion from which a reader may resume as its `id`. There is none while a reader would miss
 * something: up to the bookmark behind the initial events, and where a resourceVersion is not beyond the last
 * one.
 *
 * An ERROR event, which is 410 for a reader that has fallen behind, becomes an event named `expired`, with
 * the Status as its data and an empty `id`: the next connection begins with the initial events.
 *
 * @param options.after The resourceVersion that the reader has seen.
 * @param options.expired Why the reader cannot resume where it has been: the first event. Then `lines` have
 * initial events.
 */
function eventStream(
  lines: ReadableStream<Uint8Array>,
  options: { readonly hasInitialEvents: boolean; readonly after?: string; readonly expired?: Status },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = lines.getReader();
  const events = new ObjectTextReader().events();
  const cutter = new LineCutter(Infinity, events);
  const ids = newEventIds(options.hasInitialEvents, options.after);
  // The time after which a browser connects again:
  // https://html.spec.whatwg.org/multipage/server-sent-events.html#dom-eventsource-retry
  let text = "retry: 1000\n\n";
  if (options.expired !== undefined) text += expiredEvent(JSON.stringify(options.expired));
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    // A watch that breaks off ends the response at once, also where its reader reads nothing.
    start: (controller) => void reader.closed.catch((error) => controller.error(error)),
    async pull(controller) {
      while (text === "") {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        for (let line = cutter.feed(value); line !== undefined; line = cutter.next()) {
          const event = typeof line === "string" ? events.readEvent(line) : line;
          text += messageOf(event as WatchLine, typeof line === "string" ? line : undefined, ids);
        }
      }
      controller.enqueue(encodeUtf8(text));
      text = "";
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

interface WatchLine {
  readonly type?: unknown;
  readonly object: ObjectText | { readonly metadata?: EventMetadata };
}

interface EventMetadata {
  readonly resourceVersion?: string;
  readonly annotations?: Record<string, string>;
}

/** @param line Its text, if it is not as API servers write the events of objects. */
function messageOf({ type, object }: WatchLine, line: string | undefined, idOf: EventIds): string {
  if (type === "ERROR") return expiredEvent(JSON.stringify(object));
  const isText = object instanceof ObjectText;
  const { metadata } = (isText ? object.head : object) as { readonly metadata?: EventMetadata };
  const isInitialEnd = type === "BOOKMARK" &&
    metadata?.annotations?.[INITIAL_EVENTS_END_ANNOTATION] === "true";
  const id = idOf(metadata?.resourceVersion ?? "", isInitialEnd);
  return `${id}data: ${line ?? `{"type":"${type}","object":${(object as ObjectText).text}}`}\n\n`;
}

/** The line with the id of the next message, from which a reader may resume; empty where it has none. */
type EventIds = (resourceVersion: string, isInitialEnd: boolean) => string;

function newEventIds(isInitial: boolean, last = ""): EventIds {
  return (resourceVersion, isInitialEnd) => {
    if (isInitialEnd) isInitial = false;
    if (isInitial || compareResourceVersions(resourceVersion, last) <= 0) return "";
    last = resourceVersion;
    return `id: ${resourceVersion}\n`;
  };
}

function expiredEvent(status: string): string {
  return `event: expired\nid\ndata: ${status}\n\n`;
}
