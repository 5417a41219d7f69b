import { retryAfterMs } from "../meta/request.ts";
import { newStatus, REASONS, type Status, StatusError } from "../meta/status.ts";
import { isStatus, type KubernetesSchemas } from "../schema/checks.ts";
import { withTimeLimit } from "../util/abort.ts";
import { PiecedBytes } from "../text/line_cutter.ts";
import { decodeUtf8 } from "../util/bytes.ts";
import type { Clock } from "../util/clock.ts";
import { readBody } from "../watch/list_decoder.ts";
import { loadSchemas } from "./schemas.ts";

// Enough for any Status; what a proxy says beyond that is of no use.
const MAX_BODY_LENGTH = 1024 * 1024;
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
    message: `${text}: the server answered ${status.code}: ${status.message || status.reason || "Unknown"}`,
    retryAfterMs: retryAfterMs(response.headers, clock),
  });
}

function statusOf(response: Response, body: string, schemas: KubernetesSchemas): Status {
  try {
    const value: unknown = JSON.parse(body);
    if (isStatus(schemas, value)) return { ...value, code: value.code || response.status };
  } catch {
    // no JSON: its text is the message
  }
  const type = response.headers.get("Content-Type") ?? "";
  const said = type.includes("html") ? "" : body.trimEnd().slice(0, 1024);
  const { status } = response;
  const reason = REASONS[status] ?? (status >= 500 ? REASONS[500] : "Unknown");
  return newStatus(status, reason, redirection(response) ?? (said || reason));
}

function redirection(response: Response): string | undefined {
  if (response.status >= 400) return undefined;
  const location = placeOf(response);
  const to = location ? ` to ${location}` : "";
  return `it redirects${to}, which is not followed; use that server's URL`;
}

// The target of a redirect, without the part that may hold credentials.
function placeOf(response: Response): string {
  const location = response.headers.get("Location") ?? "";
  try {
    const url = new URL(location);
    return url.origin === "null" ? "" : (url.origin + url.pathname).slice(0, 1024);
  } catch {
    return /^\/[^/]/.test(location) ? location.slice(0, 1024).replace(/[?#].*/s, "") : "";
  }
}

// As much of a body as can matter; one that breaks off, or is not there, is given up: the code counts.
async function readSome({ body }: Response, clock: Clock): Promise<string> {
  const said = new PiecedBytes();
  const read = async (signal: AbortSignal) => {
    // The limit of `readBody` does not fit, as it drops the chunk that is over it.
    await readBody(body!, "", { signal, maxBytes: Infinity, hint: "" }, (chunk) => {
      said.add(chunk);
      if (said.length > MAX_BODY_LENGTH) throw new RangeError("it is long enough");
    });
  };
  await withTimeLimit(read, { ms: MAX_BODY_MS, newError: () => undefined, clock }).catch(() => {});
  return decodeUtf8(said.all).trimStart(); // of a BOM, too
}
