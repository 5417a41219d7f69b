/** Responses in the API server's forms. */

import type { Context } from "hono";
import type { Status } from "../../meta/status.ts";
import { JSON_AND_YAML, type MediaType, negotiate } from "../../protocol/accept.ts";
import { jsonText, wantsPretty } from "../../protocol/responses.ts";
import { loadYaml } from "./yaml.ts";

/**
 * The headers that keep a browser from taking an answer for something else, or showing it to a page of
 * another site.
 */
export const GUARD_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** How a document is written. */
export interface Format {
  readonly mediaType: MediaType;
  /** Whether JSON is indented. */
  readonly pretty: boolean;
}

/**
 * The format that a request asks for: by its `Accept` header, which was negotiated, and its query and client.
 */
export function formatOf(c: Context, { mediaType, pretty }: Format): Format {
  const isIndented = pretty || wantsPretty(new URL(c.req.url).searchParams, c.req.header("User-Agent"));
  return { mediaType, pretty: isIndented };
}

/** The headers of an answer with objects. */
export function objectHeaders(mediaType: MediaType): Readonly<Record<string, string>> {
  return { "Content-Type": mediaType, "Cache-Control": "no-cache, private", ...GUARD_HEADERS };
}

/** What an answer depends on, besides its URL and its reader. */
export const VARY: Readonly<Record<string, string>> = { "Vary": "Accept, Accept-Encoding" };

/** 304: the client has the body of this tag. */
export function notModified(tag: string): Response {
  const headers = { "Cache-Control": "no-cache, private", ...GUARD_HEADERS, ...VARY, ETag: tag };
  return new Response(null, { status: 304, headers });
}

/** A document as an answer. */
export async function documentResponse(
  document: unknown,
  format: Format,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> {
  const { status = 200, headers } = options;
  const text = format.mediaType === "application/yaml"
    ? (await loadYaml()).document(jsonText(document))
    : jsonText(document, format);
  return new Response(text, { status, headers: { ...objectHeaders(format.mediaType), ...headers } });
}

/**
 * A refusal as an answer, in a format that the client accepts, otherwise as indented JSON; with `Retry-After`
 * where the Status says so.
 */
export async function refusalResponse(c: Context, status: Status): Promise<Response> {
  const agreed = negotiate(c.req.header("Accept"), { mediaTypes: JSON_AND_YAML });
  const format = agreed === undefined ? { mediaType: JSON_AND_YAML[0], pretty: true } : formatOf(c, agreed);
  const seconds = status.details?.retryAfterSeconds;
  return await documentResponse(status, format, {
    status: status.code ?? 500,
    ...(seconds && { headers: { "Retry-After": String(seconds) } }),
  });
}

const TEXT_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "text/plain; charset=utf-8",
  "Cache-Control": "no-cache, private",
  ...GUARD_HEADERS,
};

/** The answer at a path that no API has. */
export function pageNotFound(): Response {
  return new Response("404 page not found\n", { status: 404, headers: TEXT_HEADERS });
}

/** The answer to a path with a percent sign that escapes nothing. */
export function malformedPath(): Response {
  return new Response("400 Bad Request", { status: 400, headers: TEXT_HEADERS });
}
