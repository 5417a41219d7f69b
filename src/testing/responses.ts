/**
 * The HTTP answers of an API server.
 * @module
 */

import type { Status } from "../meta/status.ts";

const COMMON_HEADERS: Readonly<Record<string, string>> = { "Cache-Control": "no-cache, private" };

/** An answer in JSON; indented for people, who read with curl or a browser. */
export function jsonResponse(
  document: unknown,
  options: { readonly status?: number; readonly request?: Request } = {},
): Response {
  const { status = 200, request } = options;
  const indent = request !== undefined && wantsIndentation(request) ? 2 : undefined;
  return new Response(`${JSON.stringify(document, undefined, indent)}\n`, {
    status,
    headers: { ...COMMON_HEADERS, "Content-Type": "application/json" },
  });
}

/** A refusal. */
export function statusResponse(status: Status, request?: Request): Response {
  const response = jsonResponse(status, { status: status.code ?? 500, request });
  const seconds = status.details?.retryAfterSeconds;
  if (seconds) response.headers.set("Retry-After", String(seconds));
  return response;
}

/** The answer to a watch. */
export function watchResponse(body: ReadableStream<Uint8Array>): Response {
  return new Response(body, { headers: { ...COMMON_HEADERS, "Content-Type": "application/json" } });
}

/** An answer for health checks. */
export function textResponse(text: string, status = 200): Response {
  return new Response(text, {
    status,
    headers: {
      ...COMMON_HEADERS,
      "Content-Type": "text/plain; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
    },
  });
}

/** What stands at a path that nobody serves. */
export function pageNotFound(): Response {
  return textResponse("404 page not found\n", 404);
}

function wantsIndentation(request: Request): boolean {
  const pretty = new URL(request.url).searchParams.get("pretty");
  if (pretty !== null) return pretty !== "0" && pretty.toLowerCase() !== "false";
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers.get("User-Agent") ?? "");
}
