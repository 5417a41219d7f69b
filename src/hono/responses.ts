/**
 * Responses in the API server's forms.
 * @module
 */

import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import {
  JSON_HEADERS as PLAIN_JSON_HEADERS,
  statusResponse as plainStatusResponse,
} from "../protocol/responses.ts";
import { resourceDetails } from "../protocol/statuses.ts";

/** The headers that keep a browser from taking an answer for something else, or showing it to a page of another site. */
export const GUARD_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** The headers of every answer with a body of JSON. */
export const JSON_HEADERS: Readonly<Record<string, string>> = { ...PLAIN_JSON_HEADERS, ...GUARD_HEADERS };

/** What an answer depends on, besides its URL and its reader. */
export const VARY: Readonly<Record<string, string>> = { "Vary": "Accept, Accept-Encoding" };

/** 304: the client has the body of this tag. */
export function notModified(tag: string): Response {
  const { "Content-Type": _, ...headers } = JSON_HEADERS;
  return new Response(null, { status: 304, headers: { ...headers, ...VARY, ETag: tag } });
}

/** A refusal as an HTTP answer. */
export function statusResponse(status: Status): Response {
  return plainStatusResponse(status, { headers: GUARD_HEADERS });
}

/** 429: there are too many readers. */
export function tooManyRequests(): Status {
  return newStatus(
    429,
    "TooManyRequests",
    "Too many requests are being answered, please try again later.",
    { retryAfterSeconds: 1 },
  );
}

/** 405: a write. */
export function readOnly(resource: ApiResource): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache of ${formatGroupResource(resource)}: get, list and watch are served here; ` +
      "send writes to the API server itself",
    resourceDetails(resource),
  );
}

/** 410: a list at a resourceVersion whose state is not known any more. */
export function stateTooOld(asked: string): Status {
  return newStatus(410, "Expired", `The resourceVersion for the provided list is too old: ${asked}`);
}

/** 503: the first list is not there yet. */
export function notSynced(resource: ApiResource): Status {
  return newStatus(
    503,
    "ServiceUnavailable",
    `the cache of ${formatGroupResource(resource)} has not synced yet; try again in a moment`,
    { ...resourceDetails(resource), retryAfterSeconds: 1 },
  );
}
