/** Answers of an API server in JSON, and its refusals as errors, in its words. */

import type { ApiResource } from "../protocol/api_resource.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status, type StatusCause, type StatusDetails, StatusError } from "../meta/status.ts";
import { jsonText, wantsPretty } from "../protocol/representations.ts";
import { forbiddenField, invalidFields, objectNotFound } from "../protocol/statuses.ts";

/** A document as an answer, indented if its request says so. */
export function jsonResponse(document: unknown, request?: Request, status = 200): Response {
  const { searchParams } = new URL(request?.url ?? "http://in-memory");
  const pretty = wantsPretty(searchParams, request?.headers.get("User-Agent"));
  const headers = { "Content-Type": "application/json", "Cache-Control": "no-cache, private" };
  return new Response(jsonText(document, { pretty }), { status, headers });
}

/** A refusal as an answer, with `Retry-After` where the Status says so. */
export function statusResponse(status: Status, request?: Request): Response {
  const response = jsonResponse(status, request, status.code ?? 500);
  const seconds = status.details?.retryAfterSeconds;
  if (seconds) response.headers.set("Retry-After", String(seconds));
  return response;
}

export function failure(code: number, reason: string, message: string, details?: StatusDetails): StatusError {
  return new StatusError(newStatus(code, reason, message, details));
}

export function qualifiedKind(of: ApiResource): string {
  return of.group === "" ? of.kind : `${of.kind}.${of.group}`;
}

function details(of: ApiResource, name: string, kind: string): StatusDetails {
  return { name, ...(of.group !== "" && { group: of.group }), kind };
}

export function badRequest(message: string): StatusError {
  return failure(400, "BadRequest", message);
}

export function notFound(of: ApiResource, name: string): StatusError {
  return new StatusError(objectNotFound(of, name));
}

export function alreadyExists(of: ApiResource, name: string): StatusError {
  const message = `${formatGroupResource(of)} ${JSON.stringify(name)} already exists`;
  return failure(409, "AlreadyExists", message, details(of, name, of.resource));
}

/** 409: the object was changed meanwhile. */
export function conflict(of: ApiResource, name: string): StatusError {
  const cause = "the object has been modified; please apply your changes to the latest version and try again";
  return conflictBecause(of, name, cause);
}

/** 409, for another cause. */
export function conflictBecause(of: ApiResource, name: string, cause: string): StatusError {
  const what = `${formatGroupResource(of)} ${JSON.stringify(name)}`;
  const message = `Operation cannot be fulfilled on ${what}: ${cause}`;
  return failure(409, "Conflict", message, details(of, name, of.resource));
}

/** 409: a precondition of a delete does not hold. */
export function preconditionFailed(of: ApiResource, name: string, cause: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedKind(of)} ${JSON.stringify(name)}: ${cause}`;
  return failure(409, "Conflict", message, details(of, name, of.kind));
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = "the body of the request was in an unknown format - accepted media types include: " +
    accepted.join(", ");
  return failure(415, "UnsupportedMediaType", message);
}

export function invalid(of: ApiResource, name: string, causes: readonly StatusCause[]): StatusError {
  return invalidAs(qualifiedKind(of), { ...details(of, name, of.kind), causes });
}

/** 422, with another name for the kind. */
export function invalidAs(qualified: string, of: StatusDetails): StatusError {
  return new StatusError(invalidFields(qualified, of));
}

/** 422 of a server without the streaming of lists. */
export function initialEventsUnsupported(): StatusError {
  const detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
  return invalidAs("ListOptions.meta.k8s.io", {
    group: "meta.k8s.io",
    kind: "ListOptions",
    causes: [forbiddenField("sendInitialEvents", detail)],
  });
}

export function patchRefused(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return failure(422, "Invalid", message, {});
}

/** 500 without a reason: what an API server answers to a malformed resourceVersion outside a list. */
export function internal(message: string): StatusError {
  return failure(500, "", message);
}

export function invalidValue(field: string, value: unknown, detail: string): StatusCause {
  return {
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value)}: ${detail}`,
    field,
  };
}

export function required(field: string, detail: string): StatusCause {
  return { reason: "FieldValueRequired", message: `Required value: ${detail}`, field };
}
