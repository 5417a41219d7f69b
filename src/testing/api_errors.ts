/** Refusals of an API server as errors, in its words. */

import type { ApiResource } from "../protocol/api_resource.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type StatusCause, type StatusDetails, StatusError } from "../meta/status.ts";
import { objectNotFound } from "../protocol/statuses.ts";
import { isRecord } from "../util/json.ts";

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

/** 404: there is no such object. */
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

/** 422: fields of an object are wrong. */
export function invalid(of: ApiResource, name: string, causes: readonly StatusCause[]): StatusError {
  return invalidAs(qualifiedKind(of), { ...details(of, name, of.kind), causes });
}

/** 422, with another name for the kind. */
export function invalidAs(qualified: string, of: StatusDetails): StatusError {
  const texts = (of.causes ?? []).map((cause) => `${cause.field}: ${cause.message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const message = `${qualified} ${JSON.stringify(of.name ?? "")} is invalid: ${text}`;
  return failure(422, "Invalid", message, { ...of, name: of.name || undefined });
}

/** 422 for a patch that cannot be applied. */
export function patchRefused(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return failure(422, "Invalid", message, {});
}

/** 500 without a reason: what an API server answers to a malformed resourceVersion outside a list. */
export function internal(message: string): StatusError {
  return failure(500, "", message);
}

export function invalidValue(field: string, value: unknown, detail: string): StatusCause {
  const text = isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : value;
  const shown = typeof text === "string" ? JSON.stringify(text) : String(text);
  return { reason: "FieldValueInvalid", message: `Invalid value: ${shown}: ${detail}`, field };
}

export function required(field: string, detail: string): StatusCause {
  return { reason: "FieldValueRequired", message: `Required value: ${detail}`, field };
}

export function forbidden(field: string, detail: string): StatusCause {
  return { reason: "FieldValueForbidden", message: `Forbidden: ${detail}`, field };
}
