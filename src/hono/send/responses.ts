/**
 * Responses in the API server's forms.
 * @module
 */

import type { StaleSource } from "../content/content_freshness.ts";
import type { Context } from "hono";
import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { JSON_AND_YAML, type MediaType, negotiate } from "../../protocol/accept.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { jsonText, wantsPretty } from "../../protocol/responses.ts";
import { resourceDetails } from "../../protocol/statuses.ts";
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

/** 403: a page of another site wants a WebSocket with what the browser knows of its user. */
export function foreignPage(): Status {
  return newStatus(
    403,
    "Forbidden",
    "pages of this origin may not open WebSockets here: the option `cors` names those that may",
    {},
  );
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

// What the commands of kubectl need.
const COMMANDS: Readonly<Record<string, string>> = {
  attach: "kubectl attach",
  ephemeralcontainers: "kubectl debug",
  eviction: "kubectl drain",
  exec: "kubectl exec",
  log: "kubectl logs",
  portforward: "kubectl port-forward",
  proxy: "kubectl proxy",
  token: "kubectl create token",
};

/** 405: a subresource that is a write, or a connection to a node. */
export function notServed(resource: ApiResource, subresource: string): Status {
  const command = COMMANDS[subresource];
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache of ${formatGroupResource(resource)}: "${subresource}"` +
      `${command === undefined ? "" : ` (${command})`} is not served here; send it to the API server itself`,
    resourceDetails(resource),
  );
}

/** 405: a connection for a shell, a port or the like. */
export function noTunnel(subresource: string): Status {
  const command = COMMANDS[subresource];
  const what = command === undefined ? "this request" : `"${subresource}" (${command})`;
  return newStatus(
    405,
    "MethodNotAllowed",
    `${what} needs a tunnel, which a cache does not open; send it to the API server itself`,
    {},
  );
}

/** 405: a write of a resource that the cache does not hold. */
export function notHeld(resource: { readonly group: string; readonly resource: string }): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache, which does not hold ${formatGroupResource(resource)}; ` +
      "send the request to the API server itself",
    resourceDetails(resource),
  );
}

/** 405: a question about permissions, which only the API server answers. */
export function noReviews(resource: { readonly group: string; readonly resource: string }): Status {
  return newStatus(
    405,
    "MethodNotAllowed",
    `this is a read-only cache: to create ${
      formatGroupResource(resource)
    } here it needs serve --pass-through, or ` +
      "the option `passThrough` of readApi; otherwise ask the API server itself",
    resourceDetails(resource),
  );
}

/** 400, if no object can have the name. */
export function nameProblem(name: string): Status | undefined {
  const reason = name === "." || name === ".."
    ? `may not be '${name}'`
    : name.includes("%")
    ? "may not contain '%'"
    : undefined;
  return reason === undefined
    ? undefined
    : newStatus(400, "BadRequest", `Name parameter invalid: ${JSON.stringify(name)}: ${reason}`);
}

/** 410: a list at a resourceVersion whose state is not known any more. */
export function stateTooOld(asked: string): Status {
  return newStatus(410, "Expired", `The resourceVersion for the provided list is too old: ${asked}`);
}

/** 504: a read without a resourceVersion cannot be proven as fresh as the API server's own. */
export function notFresh(resource: ApiResource, stale: readonly StaleSource[]): Status {
  const names = stale.map(({ name }) => name).filter((name) => name !== "").join(", ");
  const of = names && ` of ${names}`;
  const reason = stale.some(({ why }) => why === "behind")
    ? `the cache of ${
      formatGroupResource(resource)
    }${of} has not reached the API server's resourceVersion in time`
    : `the API server${of} did not say in time how far it is`;
  const instead = names === "" ? "resourceVersion=0" : "partial=true or resourceVersion=0";
  return newStatus(
    504,
    "Timeout",
    `Timeout: the read cannot be proven fresh: ${reason}; ${instead} reads what the cache holds`,
    { ...resourceDetails(resource), retryAfterSeconds: 1 },
  );
}

/** 503: nothing was read of some sources yet, and the answer would be incomplete without them. */
export function incomplete(resource: ApiResource, missing: readonly string[]): Status {
  const what = formatGroupResource(resource);
  const names = missing.map((name) => JSON.stringify(name)).join(", ");
  return newStatus(
    503,
    "ServiceUnavailable",
    `${what} cannot be read completely: the cache has nothing of ${names} yet; partial=true reads the others`,
    {
      ...resourceDetails(resource),
      causes: missing.map((name) => ({
        reason: "SourceUnavailable",
        message: "it has not synced",
        field: name,
      })),
      retryAfterSeconds: 1,
    },
  );
}

/** 410: a resourceVersion from before the sources were divided in another way, or of one of them. */
export function anotherLayout(resourceVersion: string): Status {
  const shown = resourceVersion.length > 100 ? `${resourceVersion.slice(0, 100)}...` : resourceVersion;
  const why = "its sources were divided in another way, or it is that of a single object; list again";
  return newStatus(410, "Expired", `The resourceVersion ${shown} is none of this resource: ${why}`);
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
