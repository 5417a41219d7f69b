/** Responses in the forms of an API server. */

import type { Context } from "hono";
import type { Status } from "../../meta/status.ts";
import { JSON_AND_YAML, jsonText, type MediaType, negotiate } from "../../protocol/representations.ts";
import { loadYaml } from "./yaml.ts";
import { type Format, formatOf } from "../request/requested_read.ts";
import type { Reader } from "../request/readers.ts";
import { tooManyRequests } from "../request/refusals.ts";
import { encodeUtf8 } from "../../util/bytes.ts";

/** The headers that keep a browser from misreading an answer, or showing it to a page of another site. */
export const GUARD_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
};

export const OBJECT_HEADERS: Readonly<Record<MediaType, Readonly<Record<string, string>>>> = {
  "application/json": objectHeaders("application/json"),
  "application/yaml": objectHeaders("application/yaml"),
};

function objectHeaders(mediaType: MediaType): Readonly<Record<string, string>> {
  return { "Content-Type": mediaType, "Cache-Control": "no-cache, private", ...GUARD_HEADERS };
}

/** The header for what answers depend on, besides their URL and their reader. */
export const VARY: Readonly<Record<string, string>> = { "Vary": "Accept, Accept-Encoding" };

/** 304: the client has the body of this tag. */
export function notModified(tag: string): Response {
  const headers = { "Cache-Control": "no-cache, private", ...GUARD_HEADERS, ...VARY, ETag: tag };
  return new Response(null, { status: 304, headers });
}

export async function documentResponse(
  document: unknown,
  format: Format,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> {
  const { status = 200, headers } = options;
  const text = await documentText(document, format);
  return new Response(text, { status, headers: { ...OBJECT_HEADERS[format.mediaType], ...headers } });
}

async function documentText(document: unknown, format: Format): Promise<string> {
  return format.mediaType === "application/yaml"
    ? (await loadYaml()).document(jsonText(document))
    : jsonText(document, format);
}

/** A document as an answer to a reader, whose bytes are held until it is sent; 429 if all are spent. */
export async function documentAnswer(
  reader: Reader,
  document: unknown,
  format: Format,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response | Status> {
  const { status = 200 } = options;
  const headers = { ...OBJECT_HEADERS[format.mediaType], ...options.headers };
  return textAnswer(reader, await documentText(document, format), { status, headers });
}

/** Answers with a text, which has at least as many bytes as characters. */
export function textAnswer(reader: Reader, text: string, init: ResponseInit): Response | Status {
  return reader.take(text.length) ? new Response(text, init) : tooManyRequests();
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

export const TEXT_HEADERS: Readonly<Record<string, string>> = {
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

/**
 * An answer that says what it lacks, as kubectl prints it: https://kubernetes.io/blog/2020/09/03/warnings/
 * What is not found may exist by now, so that refusals have warnings, too.
 */
export async function withWarnings(
  c: Context,
  answer: Response | Status,
  { missing, stale, cut }: {
    readonly missing: readonly string[];
    readonly stale: readonly { readonly name: string }[];
    readonly cut: readonly string[];
  },
): Promise<Response> {
  const response = answer instanceof Response ? answer : await refusalResponse(c, answer);
  const warn = (text: string) => response.headers.append("Warning", warningHeader(text));
  if (missing.length > 0) warn(`incomplete: nothing was read of ${missing.join(", ")} yet`);
  if (stale.length > 0) {
    const names = stale.map(({ name }) => name).join(", ");
    warn(
      names === ""
        ? "this is the last known state: the API server does not answer at present"
        : `this is the last known state of ${names}: no answer from there at present`,
    );
  }
  if (cut.length > 0) warn(`this cache leaves out fields of the objects: <cut> are ${cut.join(", ")}`);
  return response;
}

/**
 * A text as the value of a `Warning` header, in UTF-8 as by an API server:
 * https://github.com/kubernetes/apimachinery/blob/master/pkg/util/net/http.go (NewWarningHeader)
 */
export function warningHeader(text: string): string {
  // deno-lint-ignore no-control-regex
  const printable = text.replace(/[\x00-\x1f\x7f]+/g, " ").replace(/["\\]/g, "\\$&");
  return `299 - "${Array.from(encodeUtf8(printable), (byte) => String.fromCharCode(byte)).join("")}"`;
}
