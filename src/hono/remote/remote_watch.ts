/**
 * Watches of a resource that a remote holds.
 * @module
 */

import type { Context } from "hono";
import { isStatus } from "../../protocol/statuses.ts";
import { copyHeaders } from "../../util/copy_headers.ts";
import { protectEndlessBody } from "../watches/endless_body.ts";
import { EVENT_STREAM_TYPE, eventStream } from "../watches/event_stream.ts";
import { watchResponse } from "../watches/watch_answer.ts";
import { WatchLife } from "../watches/watch_life.ts";
import type { Answer } from "../route.ts";
import { isDocument, remoteHeaders } from "./remote_answer.ts";
import { RemoteBody } from "./remote_body.ts";
import type { RemoteRead, RemoteRequest } from "./remote_request.ts";

// An API server sends a bookmark about once a minute, and a cache of this package each 30 s by default.
const SILENCE_MS = 150_000;

const SHOWN = ["age", "cache-epoch", "cache-synced", "resource-version", "snapshot", "warning"];

// The remote, which has the same limit, ends the watch first.
const GRACE_MS = 2_000;

/** Opens a watch at the remote. It ends here, by the reader's own permission and limits. */
export async function remoteWatchAnswer(
  c: Context,
  request: RemoteRequest,
  read: RemoteRead & { readonly limitMs: number },
): Promise<Answer> {
  const { target, settings, reader, readers } = request;
  const { options, permission, isEventStream } = read;
  const { clock } = settings;
  const response = await target.ask(read.request, c.req.raw.signal);
  if (isStatus(response)) return response;
  const { status, body } = response;
  const isRefused = [400, 406, 410, 422, 429].includes(status) || status >= 500;
  const isGood = (status === 200 || isRefused) && isDocument(response.headers.get("content-type") ?? "");
  if (!isGood || body === null) {
    body?.cancel().catch(() => {});
    const problem = `it answered ${status} (${response.headers.get("content-type")}) to a watch`;
    return status >= 500 ? target.unavailable(problem) : target.nonsense(problem);
  }
  const headers = remoteHeaders(response.headers);
  const isOpen = status === 200;
  const remote = new RemoteBody(body.getReader(), {
    isWatch: isOpen,
    silenceMs: !isOpen ? target.timeoutMs : options.allowWatchBookmarks ? SILENCE_MS : Infinity,
    bufferBytes: settings.watchBufferBytes,
    writeTimeoutMs: settings.writeTimeoutMs,
    reader,
    readers,
    clock,
    onEnd: () => {
      life?.close();
      target.watches.delete(remote);
      if (open !== undefined) readers.watches.delete(open);
    },
  });
  if (!isOpen) {
    return new Response(remote.takeBody() as ReadableStream<Uint8Array<ArrayBuffer>>, { status, headers });
  }
  const end = () => remote.close();
  const { timeoutSeconds } = options;
  const limitMs = Math.min(timeoutSeconds ? timeoutSeconds * 1_000 : Infinity, read.limitMs);
  const life: WatchLife = new WatchLife(
    { wantsHeartbeat: false, heartbeat: () => {}, end, stop: end },
    {
      clock,
      permission,
      limitMs: limitMs + (limitMs < 1_000 ? 0 : GRACE_MS),
      recheckMs: settings.watchRecheckMs,
    },
  );
  const open = {
    get user() {
      return life.user;
    },
    stop: end,
  };
  target.watches.add(remote);
  readers.watches.add(open);
  protectEndlessBody(c, (answer) => answer.headers.get("X-Accel-Buffering") === "no");
  const answer = isEventStream
    ? watchResponse(
      eventStream(remote.takeBody(), { hasInitialEvents: options.sendInitialEvents === true }),
      EVENT_STREAM_TYPE,
    )
    : watchResponse(remote.takeBody());
  copyHeaders(headers, answer.headers, SHOWN);
  return answer;
}
