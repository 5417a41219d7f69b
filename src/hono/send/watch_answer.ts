/**
 * Answers to watches.
 * @module
 */

import type { ListQuery } from "../../protocol/list_query.ts";
import { watchTooOld } from "../../protocol/statuses.ts";
import { uniqueTag, withEmptyClone } from "./endless_body.ts";
import { EVENT_STREAM_TYPE, eventStream } from "./event_stream.ts";
import type { Permission } from "../request/gate.ts";
import type { ResourceRequest } from "../resource_request.ts";
import { GUARD_HEADERS } from "./responses.ts";
import { newSelection } from "../content/selection.ts";
import type { View } from "../request/view.ts";
import { errorStream, openWatch } from "./watch_stream.ts";

/** The answer to a watch: it replays, sends initial events, or ends at once with the reason. */
export function answerWatch(
  request: ResourceRequest,
  query: ListQuery,
  options: {
    readonly view: View;
    readonly permission: Permission;
    readonly isEventStream: boolean;
    readonly endsAtRelist: boolean;
  },
): Response {
  const { target, path, reader, readers, fanOut, settings } = request;
  const { log, fresh } = target;
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
    const initial = log.states.candidates(common.selection?.indexed);
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
  const isLost = (signal: AbortSignal) => fresh.isLost(from, signal);
  const body = openWatch(log, { ...common, cursor, resourceVersion: from, isLost });
  return isEventStream ? eventStreamResponse(body, { hasInitialEvents: false }) : watchResponse(body);
}

function eventStreamResponse(
  lines: ReadableStream<Uint8Array>,
  options: Parameters<typeof eventStream>[1],
): Response {
  return watchResponse(eventStream(lines, options), EVENT_STREAM_TYPE);
}

// `no-transform`, or a compressing middleware would hold events back; the last one keeps nginx from
// buffering.
const WATCH_HEADERS: Readonly<Record<string, string>> = {
  "Cache-Control": "no-cache, private, no-transform",
  "X-Accel-Buffering": "no",
  ...GUARD_HEADERS,
};

/** A stream of events as an answer. */
export function watchResponse(body: ReadableStream<Uint8Array>, mediaType = "application/json"): Response {
  const response = new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, {
    headers: { ...WATCH_HEADERS, "Content-Type": mediaType, ETag: uniqueTag() },
  });
  return withEmptyClone(response);
}
