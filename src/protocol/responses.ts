/**
 * Answers in JSON, as an API server sends them.
 * @module
 */

import type { Status } from "../meta/status.ts";

/** The headers of every answer in JSON. */
export const JSON_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "application/json",
  "Cache-Control": "no-cache, private",
};

/** Options of {@linkcode jsonResponse} and {@linkcode statusResponse}. */
export interface ResponseOptions {
  /** Whether to indent the document; see {@linkcode wantsPretty}. Default: false. */
  readonly pretty?: boolean;
  /** Headers besides {@linkcode JSON_HEADERS}. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A document as an answer. */
export function jsonResponse(
  document: unknown,
  options: ResponseOptions & { readonly status?: number } = {},
): Response {
  const { status = 200, headers } = options;
  return new Response(jsonText(document, options), { status, headers: { ...JSON_HEADERS, ...headers } });
}

/** A document as an API server writes it: with a line break at its end unless it is indented. */
export function jsonText(document: unknown, options: { readonly pretty?: boolean } = {}): string {
  return options.pretty ? JSON.stringify(document, undefined, 2) : `${JSON.stringify(document)}\n`;
}

/** A refusal as an answer, with `Retry-After` where the Status says so. */
export function statusResponse(status: Status, options: ResponseOptions = {}): Response {
  const response = jsonResponse(status, { ...options, status: status.code ?? 500 });
  const seconds = status.details?.retryAfterSeconds;
  if (seconds) response.headers.set("Retry-After", String(seconds));
  return response;
}

/**
 * Whether the client wants indented JSON: the query's `pretty`, else whether the client is a browser, curl or Wget.
 *
 * Mirrors `isPrettyPrint` of
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/negotiation/negotiate.go
 */
export function wantsPretty(searchParams: URLSearchParams, userAgent: string | null | undefined): boolean {
  const pretty = searchParams.get("pretty");
  if (pretty !== null && pretty !== "") return /^(1|t|true)$/i.test(pretty);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}
