/** Makes errors of refusing responses. */

import { retryAfterMs } from "../meta/request.ts";
import { newStatus, type Status, StatusError } from "../meta/status.ts";
import { isStatus, type KubernetesSchemas } from "../schema/checks.ts";
import type { Clock } from "../util/clock.ts";
import { loadSchemas } from "./schemas.ts";

// Enough for any Status; what a proxy says beyond that is of no use.
const MAX_BODY_BYTES = 1024 * 1024;
// A body that stops must not cost the caller, who may wait for seconds only, what the head says.
const MAX_BODY_MS = 1_000;

/** Makes the error for an answer that is no success, and reads or gives up its body. */
export async function newResponseError(
  text: string,
  response: Response,
  { clock, scrub }: { readonly clock: Clock; readonly scrub: (text: string) => string },
): Promise<StatusError> {
  const body = scrub(await readSome(response, clock));
  const status = statusOf(response, body, await loadSchemas());
  return new StatusError(status, {
    message: `${text}: the server answered ${status.code}: ${status.message || status.reason}`,
    retryAfterMs: retryAfterMs(response.headers, clock),
  });
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

const BY_CODE: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  400: ["BadRequest", "the server rejected our request for an unknown reason"],
  401: ["Unauthorized", "the server has asked for the client to provide credentials"],
  403: ["Forbidden", "the server does not allow this request"],
  404: ["NotFound", "the server could not find the requested resource"],
  405: ["MethodNotAllowed", "the server does not allow this method on the requested resource"],
  406: ["NotAcceptable", "the server was unable to respond with a content type that the client supports"],
  409: ["Conflict", "the server reported a conflict"],
  410: ["Gone", "the resource no longer exists, or the resource version is too old"],
  413: ["RequestEntityTooLarge", "the request is too large"],
  415: ["UnsupportedMediaType", "the server does not read the content type that was sent"],
  422: ["Invalid", "the server rejected our request due to an error in our request"],
  429: ["TooManyRequests", "the server has received too many requests and has asked us to try again later"],
  500: ["InternalError", "an error on the server has prevented the request from succeeding"],
  503: ["ServiceUnavailable", "the server is currently unable to handle the request"],
  504: ["Timeout", "the server was unable to return a response in the time allotted"],
};

function generic(response: Response, said: string): [reason: string, message: string] {
  const { status } = response;
  if (status >= 300 && status < 400) {
    const location = placeOf(response);
    const to = location ? ` to ${location}` : "";
    return ["Unknown", `it redirects${to}, which is not followed; use that server's URL`];
  }
  const [reason, message] = BY_CODE[status] ??
    (status >= 500 ? BY_CODE[500] : ["Unknown", "the server said nothing more"]);
  return [reason, said || message];
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

// As much of a body as can matter; one that breaks off is given up: the code is what counts.
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
