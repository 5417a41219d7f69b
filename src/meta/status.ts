/** Refusals of an API server, and predicates that classify errors. */

import { CacheError, findCause } from "../util/errors.ts";

/** A cause of a refusal. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** Details of a refusal. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  /** How many seconds the server asks to wait. */
  readonly retryAfterSeconds?: number;
}

/**
 * A `Status` object: the answer of an API server that refuses, by HTTP or in a watch's ERROR event.
 *
 * @category Objects and errors
 */
export interface Status {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code?: number;
}

/**
 * Makes a `Status` of a failure.
 * @param code The HTTP status code.
 * @param reason One word for programs: `NotFound`, `Expired`, `TooManyRequests`; left out where it is `""`.
 * @param message The text for people.
 */
export function newStatus(code: number, reason: string, message: string, details?: StatusDetails): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    ...(reason !== "" && { reason }),
    ...(details !== undefined && { details }),
    code,
  };
}

/**
 * An API server refused: its answer was not a success, or a watch brought an ERROR event.
 *
 * @example
 * ```ts
 * import * as cache from "@listwatch/cache";
 * const error = new cache.StatusError({ code: 404, reason: "NotFound", message: 'pods "web-1" not found' });
 * console.log(error.httpStatus, error.message); // 404 pods "web-1" not found
 * console.log(cache.isNotFound(error), cache.isConflict(error), cache.isAlreadyExists(error)); // true false false
 * console.log(cache.isForbidden(error), cache.isUnauthorized(error), cache.isInvalid(error)); // false false false
 * console.log(cache.isExpired(error), cache.isTooManyRequests(error)); // false false
 * ```
 *
 * @category Objects and errors
 */
export class StatusError extends CacheError {
  readonly status: Status;
  /** The HTTP status code; 0 if the server sent none. */
  readonly httpStatus: number;
  /** The reason as one word; `""` if the server sent none. */
  readonly reason: string;
  /** How long the server asks to wait, in milliseconds, if it does. */
  readonly retryAfterMs: number | undefined;

  /**
   * @param options.message The error's text; the message of the status by default.
   * @param options.retryAfterMs From a `Retry-After` header; that of the status by default.
   */
  constructor(
    status: Status,
    options: { readonly message?: string; readonly cause?: unknown; readonly retryAfterMs?: number } = {},
  ) {
    super(
      "Status",
      options.message || status.message || status.reason ||
        `the server answered ${status.code ?? "with an error"}`,
      options,
    );
    this.status = status;
    this.httpStatus = status.code ?? 0;
    this.reason = status.reason ?? "";
    const seconds = status.details?.retryAfterSeconds;
    this.retryAfterMs = options.retryAfterMs ?? (seconds ? seconds * 1000 : undefined);
  }
}

/**
 * The {@linkcode StatusError} in an error or one of its causes.
 *
 * @example
 * ```ts
 * import { StatusError } from "@listwatch/cache";
 * import * as client from "@listwatch/cache/client";
 * const cause = new StatusError(client.newStatus(504, "Timeout", "it took too long"));
 * console.log(client.statusErrorOf(new Error("failed to list pods", { cause })) === cause); // true
 * console.log(client.isTimeout(cause), client.isServiceUnavailable(cause)); // true false
 * console.log(client.isInternalError(cause), client.isBadRequest(cause)); // false false
 * console.log(client.isResourceVersionTooLarge(cause)); // false
 * ```
 */
export function statusErrorOf(error: unknown): StatusError | undefined {
  return findCause(error, StatusError);
}

// A known reason wins over the HTTP code: a proxy may rewrite the code, and a server may send a finer reason.
function hasReason(error: unknown, reason: string, code: number): boolean {
  const found = statusErrorOf(error);
  if (found === undefined) return false;
  if (found.reason === reason) return true;
  const isKnown = FINER_REASONS.includes(found.reason) || Object.values(REASONS).includes(found.reason);
  return !isKnown && found.httpStatus === code;
}

/** The reasons of refusals, by the HTTP code that they come with. */
export const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};
/** Finer reasons that share a code with another reason. */
const FINER_REASONS: readonly string[] = ["AlreadyExists", "Expired", "ServerTimeout"];

/**
 * The resourceVersion or the continue token is too old: the reason is Expired or Gone, or the answer was an
 * HTTP 410. A new list is due.
 *
 * @category Objects and errors
 */
export function isExpired(error: unknown): boolean {
  return hasReason(error, "Expired", 410) || hasReason(error, "Gone", 410);
}

/** The reason is Expired itself (an expired continue token), not a plain 410. */
export function isResourceExpired(error: unknown): boolean {
  return statusErrorOf(error)?.reason === "Expired";
}

const TOO_LARGE = "Too large resource version";

/**
 * The server has not reached the requested resourceVersion yet. Recognizes the answers of three generations
 * of API servers; all of them have `details`. Mirrors client-go's reflector.
 */
export function isResourceVersionTooLarge(error: unknown): boolean {
  // Servers of every generation send details; a text alone may come from a proxy.
  const { details, message = "" } = statusErrorOf(error)?.status ?? {};
  if (details === undefined) return false;
  const { causes = [] } = details;
  return causes.some(({ reason }) => reason === "ResourceVersionTooLarge") ||
    (isTimeout(error) &&
      (message.includes(TOO_LARGE) || causes.some((cause) => cause.message === TOO_LARGE)));
}

/**
 * 429: the server asks for fewer requests.
 *
 * @category Objects and errors
 */
export function isTooManyRequests(error: unknown): boolean {
  return hasReason(error, "TooManyRequests", 429);
}

/** 500. */
export function isInternalError(error: unknown): boolean {
  return hasReason(error, "InternalError", 500);
}

/** 503. */
export function isServiceUnavailable(error: unknown): boolean {
  return hasReason(error, "ServiceUnavailable", 503);
}

/** 504, or the reason Timeout. */
export function isTimeout(error: unknown): boolean {
  return hasReason(error, "Timeout", 504);
}

/**
 * 401: the server does not know the caller.
 *
 * @category Objects and errors
 */
export function isUnauthorized(error: unknown): boolean {
  return hasReason(error, "Unauthorized", 401);
}

/**
 * 403: the server knows the caller, and refuses.
 *
 * @category Objects and errors
 */
export function isForbidden(error: unknown): boolean {
  return hasReason(error, "Forbidden", 403);
}

/**
 * 404.
 *
 * @category Objects and errors
 */
export function isNotFound(error: unknown): boolean {
  return hasReason(error, "NotFound", 404);
}

/**
 * 409: the object changed since it was read.
 *
 * @category Objects and errors
 */
export function isConflict(error: unknown): boolean {
  return hasReason(error, "Conflict", 409);
}

/**
 * 409: an object of that name exists.
 *
 * @category Objects and errors
 */
export function isAlreadyExists(error: unknown): boolean {
  return statusErrorOf(error)?.reason === "AlreadyExists";
}

/**
 * 422: the request contradicts itself, or has values that the server does not know.
 *
 * @category Objects and errors
 */
export function isInvalid(error: unknown): boolean {
  return hasReason(error, "Invalid", 422);
}

/** 400. */
export function isBadRequest(error: unknown): boolean {
  return hasReason(error, "BadRequest", 400);
}
