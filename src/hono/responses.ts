/**
 * Answers in the API server's shapes.
 * @module
 */

import type { ApiResource } from "../protocol/api_resource.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";

/** The headers that keep a browser from taking an answer for something else, or showing it to a page of another site. */
export const GUARD_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** The headers that every answer with a body of JSON has. */
export const JSON_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "application/json",
  "Cache-Control": "no-cache, private",
  ...GUARD_HEADERS,
};

/** A refusal as an HTTP answer. */
export function statusResponse(status: Status): Response {
  const headers: Record<string, string> = { ...JSON_HEADERS };
  const seconds = status.details?.retryAfterSeconds;
  if (seconds !== undefined) headers["Retry-After"] = String(seconds);
  return new Response(JSON.stringify(status) + "\n", { status: status.code ?? 500, headers });
}

/** Whether an answer is a refusal. */
export function isStatus(value: object): value is Status {
  return "kind" in value && value.kind === "Status";
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

/** 404: nothing is served at this path. */
export function unknownPath(): Status {
  return newStatus(404, "NotFound", "the server could not find the requested resource", {});
}

/** 404: there is no such object. */
export function objectNotFound(resource: ApiResource, name: string): Status {
  return newStatus(404, "NotFound", `${formatGroupResource(resource)} ${JSON.stringify(name)} not found`, {
    name,
    ...groupAndKind(resource),
  });
}

/** 405: a method that a Kubernetes API does not have at this path either. */
export function methodNotAllowed(): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );
}

/** 405: a write. */
export function readOnly(resource: ApiResource): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache of ${formatGroupResource(resource)}: get, list and watch are served here; ` +
      "send writes to the API server itself",
    groupAndKind(resource),
  );
}

/** 410: a watch from a resourceVersion whose sequel is not known any more. */
export function watchTooOld(asked: string, oldest: string): Status {
  return newStatus(410, "Expired", `too old resource version: ${asked} (${oldest})`);
}

/** 410: a list at a resourceVersion whose state is not known any more. */
export function stateTooOld(asked: string): Status {
  return newStatus(410, "Expired", `The resourceVersion for the provided list is too old: ${asked}`);
}

/** 504: the cache has not come to a resourceVersion in time. */
export function tooLarge(asked: string, current: string): Status {
  return newStatus(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

/** 503: the first list is not there yet. */
export function notSynced(resource: ApiResource): Status {
  return newStatus(
    503,
    "ServiceUnavailable",
    `the cache of ${formatGroupResource(resource)} has not synced yet; try again in a moment`,
    { ...groupAndKind(resource), retryAfterSeconds: 1 },
  );
}

/** The details that name a resource; in a Status, `kind` is the resource's name. */
export function groupAndKind(
  resource: { readonly group: string; readonly resource: string },
): { readonly group?: string; readonly kind: string } {
  return { ...(resource.group !== "" && { group: resource.group }), kind: resource.resource };
}
