/**
 * The refusals of an API server, in its own words.
 * @module
 */

import type { ApiResource } from "../protocol/api_resource.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { type Status, type StatusCause, type StatusDetails, StatusError } from "../meta/status.ts";
import { isJsonObject } from "./json.ts";

/** A refusal; `reason` is left out where the real server leaves it out. */
export function failure(
  code: number,
  reason: string | undefined,
  message: string,
  more: { readonly details?: StatusDetails; readonly continue?: string } = {},
): StatusError {
  const { details, continue: token } = more;
  const status: Status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: token === undefined ? {} : { continue: token },
    status: "Failure",
    message,
    ...(reason !== undefined && { reason }),
    ...(details !== undefined && { details }),
    code,
  };
  return new StatusError(status);
}

/** `Deployment.apps`, `Pod`. */
export function qualifiedKind(of: ApiResource): string {
  return of.group === "" ? of.kind : `${of.kind}.${of.group}`;
}

function details(of: ApiResource, name: string, kind: string): StatusDetails {
  return { name, ...(of.group !== "" && { group: of.group }), kind };
}

/** 400. */
export function badRequest(message: string): StatusError {
  return failure(400, "BadRequest", message);
}

/** 404: the object is not there. */
export function notFound(of: ApiResource, name: string): StatusError {
  const message = `${formatGroupResource(of)} ${JSON.stringify(name)} not found`;
  return failure(404, "NotFound", message, { details: details(of, name, of.resource) });
}

/** 404: there is no such path. */
export function noSuchResource(): StatusError {
  return failure(404, "NotFound", "the server could not find the requested resource", { details: {} });
}

/** 405. */
export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return failure(405, "MethodNotAllowed", message, { details: {} });
}

/** 406. */
export function notAcceptable(): StatusError {
  const message =
    "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch";
  return failure(406, "NotAcceptable", message, { details: {} });
}

/** 409: an object of that name is there. */
export function alreadyExists(of: ApiResource, name: string): StatusError {
  const message = `${formatGroupResource(of)} ${JSON.stringify(name)} already exists`;
  return failure(409, "AlreadyExists", message, { details: details(of, name, of.resource) });
}

/** 409: someone else was faster. */
export function conflict(of: ApiResource, name: string): StatusError {
  return conflictBecause(
    of,
    name,
    "the object has been modified; please apply your changes to the latest version and try again",
  );
}

/** 409, for another cause. */
export function conflictBecause(of: ApiResource, name: string, cause: string): StatusError {
  const message = `Operation cannot be fulfilled on ${formatGroupResource(of)} ${
    JSON.stringify(name)
  }: ${cause}`;
  return failure(409, "Conflict", message, { details: details(of, name, of.resource) });
}

/** 409: a precondition of a delete does not hold. */
export function preconditionFailed(of: ApiResource, name: string, cause: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedKind(of)} ${JSON.stringify(name)}: ${cause}`;
  return failure(409, "Conflict", message, { details: details(of, name, of.kind) });
}

/** 410: what was asked for is no longer in the history. */
export function expired(message: string): StatusError {
  return failure(410, "Expired", message);
}

/** 410 for a `continue` token, with a token that goes on at the newest version. */
export function continueExpired(inconsistentToken: string): StatusError {
  const message =
    "The provided continue parameter is too old to display a consistent list result. You can start a " +
    "new list without the continue parameter, or use the continue token in this response to retrieve the " +
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects that " +
    "were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  return failure(410, "Expired", message, { continue: inconsistentToken });
}

/** 415. */
export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = "the body of the request was in an unknown format - accepted media types include: " +
    accepted.join(", ");
  return failure(415, "UnsupportedMediaType", message);
}

/** 422: fields of an object are wrong. */
export function invalid(of: ApiResource, name: string, causes: readonly StatusCause[]): StatusError {
  return invalidAs(qualifiedKind(of), { ...details(of, name, of.kind), causes });
}

/** 422, with a name for the kind that differs from the resource's. */
export function invalidAs(qualified: string, of: StatusDetails): StatusError {
  const texts = (of.causes ?? []).map((cause) => `${cause.field}: ${cause.message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const message = `${qualified} ${JSON.stringify(of.name ?? "")} is invalid: ${text}`;
  return failure(422, "Invalid", message, { details: { ...of, name: of.name || undefined } });
}

/** 422 for a patch that cannot be applied. */
export function patchRefused(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return failure(422, "Invalid", message, { details: {} });
}

/** 500 without a reason: what an API server answers to a malformed resourceVersion outside a list. */
export function internal(message: string): StatusError {
  return failure(500, undefined, message);
}

/** 504: the resourceVersion is one that the server has not reached. */
export function tooLargeResourceVersion(asked: bigint, current: bigint): StatusError {
  return failure(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  });
}

/** A cause for {@linkcode invalid}: a field's value is wrong. */
export function invalidValue(field: string, value: unknown, detail: string): StatusCause {
  const text = isJsonObject(value) || Array.isArray(value) ? JSON.stringify(value) : value;
  const shown = typeof text === "string" ? JSON.stringify(text) : String(text);
  return { reason: "FieldValueInvalid", message: `Invalid value: ${shown}: ${detail}`, field };
}

/** A cause for {@linkcode invalid}: a field is missing. */
export function required(field: string, detail: string): StatusCause {
  return { reason: "FieldValueRequired", message: `Required value: ${detail}`, field };
}

/** A cause for {@linkcode invalid}: a field must not be set so. */
export function forbidden(field: string, detail: string): StatusCause {
  return { reason: "FieldValueForbidden", message: `Forbidden: ${detail}`, field };
}
