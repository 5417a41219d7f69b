/** Makes errors of refusing responses. */

import { newStatus, type Status, StatusError } from "../meta/status.ts";
import { isStatus, type KubernetesSchemas } from "../schema/checks.ts";
import type { Clock } from "../util/clock.ts";
import { loadSchemas } from "./schemas.ts";

// Enough for any Status; what a proxy says beyond that is of no use.
const MAX_BODY_BYTES = 1024 * 1024;
// A body that stops must not cost the caller, who may wait for seconds only, what the head says.
const MAX_BODY_MS = 1_000;

/** Options of {@linkcode newResponseError}. */
export interface ResponseErrorOptions {
  readonly clock: Clock;
  /** Takes the credentials that were sent out of what the server said. */
  readonly scrub: (text: string) => string;
}

/**
 * Makes the error for an answer that is no success, and reads or gives up its body.
 *
 * A body that is a `Status` is kept as it is. For any other the class follows from the HTTP code, and the
 * text of a plain body becomes the message; mirrors client-go's `NewGenericServerResponse`. After a second
 * what has come of the body must do.
 *
 * @param text What could not be done: `Cannot list "pods" in "default"`.
 */
export async function newResponseError(
  text: string,
  response: Response,
  options: ResponseErrorOptions,
): Promise<StatusError> {
  const { clock, scrub } = options;
  const body = scrub(await readSome(response, clock));
  const status = statusOf(response, body, await loadSchemas());
  return new StatusError(status, {
    message: `${text}: the server answered ${status.code}: ${status.message || status.reason}`,
    retryAfterMs: retryAfterMs(response.headers, clock),
  });
}

/**
 * A `Retry-After` header in milliseconds: seconds, or a date; `undefined` if it is neither. The date is by
 * the clock of its sender: where the answer says what time that was (`Date`), one's own clock does not
 * matter.
 */
export function retryAfterMs(headers: Headers, clock: Clock): number | undefined {
  const header = headers.get("Retry-After");
  if (header === null) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const timeMs = Date.parse(header);
  if (Number.isNaN(timeMs)) return undefined;
  const sentMs = Date.parse(headers.get("Date") ?? "");
  return Math.max(0, timeMs - (Number.isNaN(sentMs) ? clock.now() : sentMs));
}

function statusOf(response: Response, body: string, schemas: KubernetesSchemas): Status {
  if (body.trimStart().startsWith("{")) {
    try {
      const value: unknown = JSON.parse(body);
      if (isStatus(schemas, value)) return value.code ? value : { ...value, code: response.status };
    } catch {
      // no JSON after all: its text is the message
    }
  }
  const type = response.headers.get("Content-Type") ?? "";
  const said = type.includes("html") ? "" : body.trim().slice(0, 1024);
  const [reason, message] = generic(response, said);
  return newStatus(response.status, reason, message);
}

function generic(response: Response, said: string): [reason: string, message: string] {
  const { status } = response;
  switch (status) {
    case 400:
      return ["BadRequest", said || "the server rejected our request for an unknown reason"];
    case 401:
      return ["Unauthorized", said || "the server has asked for the client to provide credentials"];
    case 403:
      return ["Forbidden", said || "the server does not allow this request"];
    case 404:
      return ["NotFound", said || "the server could not find the requested resource"];
    case 405:
      return ["MethodNotAllowed", said || "the server does not allow this method on the requested resource"];
    case 406:
      return [
        "NotAcceptable",
        said || "the server was unable to respond with a content type that the client supports",
      ];
    case 409:
      return ["Conflict", said || "the server reported a conflict"];
    case 410:
      return ["Gone", said || "the resource no longer exists, or the resource version is too old"];
    case 413:
      return ["RequestEntityTooLarge", said || "the request is too large"];
    case 415:
      return ["UnsupportedMediaType", said || "the server does not read the content type that was sent"];
    case 422:
      return ["Invalid", said || "the server rejected our request due to an error in our request"];
    case 429:
      return [
        "TooManyRequests",
        said || "the server has received too many requests and has asked us to try again later",
      ];
    case 503:
      return ["ServiceUnavailable", said || "the server is currently unable to handle the request"];
    case 504:
      return ["Timeout", said || "the server was unable to return a response in the time allotted"];
  }
  if (status >= 300 && status < 400) {
    const location = placeOf(response);
    return [
      "Unknown",
      `it redirects${location ? ` to ${location}` : ""}, which is not followed; use that server's URL`,
    ];
  }
  return status >= 500
    ? ["InternalError", said || "an error on the server has prevented the request from succeeding"]
    : ["Unknown", said || "the server said nothing more"];
}

// Where a redirect leads, without the part that may hold credentials.
function placeOf(response: Response): string {
  const location = response.headers.get("Location") ?? "";
  try {
    const url = new URL(location);
    return url.origin === "null" ? "" : (url.origin + url.pathname).slice(0, 1024);
  } catch {
    return /^\/[^/]/.test(location) ? location.slice(0, 1024).replace(/[?#].*/s, "") : "";
  }
}

// As much of a body as can matter; the rest is given up, and so is a body that breaks off: the code is what
// counts.
async function readSome(response: Response, clock: Clock): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const giveUp = () => void reader.cancel().catch(() => {});
  const timer = clock.setTimeout(giveUp, MAX_BODY_MS); // the pending read is then the last
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (text.length < MAX_BODY_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    // what there is must do
  } finally {
    clock.clearTimeout(timer);
    giveUp();
  }
  return text;
}
