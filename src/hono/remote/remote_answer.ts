/**
 * Answers to gets and lists of a resource that a remote holds.
 * @module
 */

import type { Context } from "hono";
import { isStatus } from "../../protocol/statuses.ts";
import { monotonicNow } from "../../util/clock.ts";
import { copyHeaders } from "../../util/copy_headers.ts";
import { gzipResponse } from "../send/gzip.ts";
import { GUARD_HEADERS } from "../send/responses.ts";
import type { Answer } from "../route.ts";
import { RemoteBody } from "./remote_body.ts";
import type { RemoteResource } from "./remote_resource.ts";
import type { RemoteRead, RemoteRequest } from "./remote_request.ts";

/** What a reader sees of a remote's headers. */
const HEADERS: readonly string[] = [
  "age",
  "cache-control",
  "cache-epoch",
  "cache-synced",
  "content-type",
  "etag",
  "resource-version",
  "retry-after",
  "snapshot",
  "vary",
  "warning",
];

// Refusals that are about the request. What is about the credentials (401, 403) would be about those of this cache.
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 406, 410, 422, 429]);

/** Sends a get or a list on, and answers with what comes back. */
export async function remoteAnswer(
  c: Context,
  request: RemoteRequest,
  read: RemoteRead & { readonly key: string },
): Promise<Answer> {
  const { target, settings, reader, readers } = request;
  const { clock } = settings;
  const askedMs = monotonicNow(clock);
  const response = await target.ask(read.request, c.req.raw.signal);
  if (isStatus(response)) return response;
  const problem = problemOf(response, request, read);
  if (problem !== undefined) {
    response.body?.cancel().catch(() => {});
    return response.status >= 500 ? target.unavailable(problem) : target.nonsense(problem);
  }
  noteAnswer(target, response, { key: read.key, askedMs });
  const headers = remoteHeaders(response.headers);
  const { status } = response;
  if (status === 304) return new Response(null, { status, headers });
  const source = response.body?.getReader();
  if (source === undefined) return target.nonsense(`${status} without a body`);
  const options = {
    isWatch: false,
    silenceMs: target.timeoutMs,
    bufferBytes: settings.watchBufferBytes,
    writeTimeoutMs: settings.writeTimeoutMs,
    reader,
    readers,
    clock,
    onEnd: () => {},
  };
  if (response.headers.get("content-encoding") !== "gzip") {
    const body = new RemoteBody(source, options).takeBody();
    return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { status, headers });
  }
  // A fetch over the network has decompressed it, and says that it is compressed nevertheless.
  const first = await target.begin(source, c.req.raw.signal);
  if (isStatus(first)) return first;
  const body = new RemoteBody(source, options, first).takeBody();
  const isGzip = first[0] === 0x1f && first[1] === 0x8b;
  return isGzip
    ? gzipResponse(body as ReadableStream<Uint8Array<ArrayBuffer>>, Object.fromEntries(headers))
    : new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { status, headers });
}

/** What a reader may see of a remote's headers. */
export function remoteHeaders(from: Headers): Headers {
  const headers = new Headers(GUARD_HEADERS);
  copyHeaders(from, headers, HEADERS);
  return headers;
}

/** Why an answer cannot be passed on. */
function problemOf(
  { status, headers }: Response,
  { isIndex }: RemoteRequest,
  { verb, request }: RemoteRead,
): string | undefined {
  if (status === 304) {
    return request.headers.has("if-none-match") ? undefined : "304 to a request without If-None-Match";
  }
  const isExpected = status === 200 || REFUSALS.has(status) || status >= 500;
  // Of a collection, 404 says that the remote does not know the resource.
  const isUnknown = status === 404 && verb === "list" && !isIndex;
  if (!isExpected || isUnknown) return `it answered ${status}`;
  const type = headers.get("content-type") ?? "";
  return isDocument(type) ? undefined : `it answered ${status} with the content type ${JSON.stringify(type)}`;
}

/** Whether it is JSON or YAML. */
export function isDocument(contentType: string): boolean {
  return /^application\/(json|yaml)\s*(;|$)/i.test(contentType);
}

function noteAnswer(
  target: RemoteResource,
  { status, headers }: Response,
  { key, askedMs }: { readonly key: string; readonly askedMs: number },
): void {
  const age = headers.get("age") ?? "";
  const ageMs = /^[0-9]{1,12}$/.test(age) ? Number(age) * 1_000 : undefined;
  if (ageMs !== undefined) target.lag = { ageMs, atMs: askedMs };
  const tag = headers.get("etag");
  // Restored content, or what is shown although its API server is away, is no answer to another request.
  const isOwn = (status === 200 || status === 304) && tag !== null && !headers.has("warning");
  target.tags.note(
    key,
    isOwn
      ? {
        tag,
        resourceVersion: headers.get("resource-version") ?? "",
        ageMs,
        isSynced: headers.get("cache-synced") !== "false",
        askedMs,
      }
      : undefined,
  );
}
