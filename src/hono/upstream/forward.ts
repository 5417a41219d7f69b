/** Reads of a resource that another server answers, such as a Durable Object: decided here, sent there. */

import type { Context } from "hono";
import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { ResourcePath } from "../../protocol/request_url.ts";
import { isStatus, resourceDetails } from "../../protocol/statuses.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { askedOf, type Permission, type Route } from "../request/gate.ts";
import type { Reader } from "../request/readers.ts";
import { type RequestedRead, requestedRead } from "../request/requested_read.ts";
import { watchResponse } from "../send/watch_answer.ts";
import { answerInTime, passedBody } from "./passed_answer.ts";

export interface ForwardedResource {
  readonly resource: ApiResource;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Whether the parameters of screens are sent on. */
  readonly takesScreens: boolean;
  readonly logger: Pick<Logger, "warn">;
}

export interface ForwardRequest {
  readonly target: ForwardedResource;
  readonly path: ResourcePath;
  readonly own: string;
  readonly state: {
    readonly settings: {
      readonly clock: Clock;
      readonly watchRecheckMs: number;
      readonly maxSelectorRequirements: number;
      readonly maxSelectorValues: number;
      watchLimitMs(): number;
    };
  };
  readonly reader: Reader;
  /** Whether the request is for an index, which has no watches. */
  readonly isIndex?: boolean;
}

/** The route of a GET of a resource that is answered elsewhere. */
export function forwardRoute(c: Context, request: ForwardRequest): Route<never> {
  const { target: { resource, takesScreens }, path, state: { settings }, isIndex = false } = request;
  const ignoresScreens = takesScreens && path.subresource !== "scale"
    ? undefined
    : `${formatGroupResource(resource)} is not cached here, and its server may ignore the parameter; ` +
      "leave it out, or cache the resource";
  const of = { resource, path, fields: undefined, ignoresScreens, settings, isList: isIndex };
  const read = requestedRead(c, of);
  const answer = (permission: Permission) => answerForwarded(c, request, { ...read, permission });
  return { access: "hooks", asked: askedOf(path, read), isWatch: read.verb === "watch", answer };
}

/** Sends a permitted read on, and answers with what comes back. A watch ends with its permission. */
async function answerForwarded(
  c: Context,
  request: ForwardRequest,
  read: RequestedRead & { readonly permission: Permission },
): Promise<Response | Status> {
  if (!("options" in read.query)) return read.query;
  const screen = read.screenOf?.();
  if (screen !== undefined && isStatus(screen)) return screen;
  const limitMs = request.state.settings.watchLimitMs();
  const answer = await send(c, request, { ...read, limitMs });
  if (!(answer instanceof Response) || answer.status !== 200 || answer.body === null) return answer;
  if (read.verb !== "watch") return answer;
  const { reader, state: { settings: { clock, watchRecheckMs: recheckMs } } } = request;
  const { permission } = read;
  const life = { clock, permission, limitMs: limitMs + GRACE_MS, recheckMs };
  const body = passedBody(answer.body, { ...life, reader, isStream: true, onEnd: () => {} });
  const response = watchResponse(body, answer.headers.get("Content-Type") ?? undefined);
  for (const [name, value] of answer.headers) {
    if (!response.headers.has(name)) response.headers.set(name, value);
  }
  return response;
}

// The other server, which has the same limit, ends the watch first, and in good order.
const GRACE_MS = 2_000;

// Only the path and the query of the URL count: the other server is reached by its `fetch`.
const ORIGIN = "http://forwarded.invalid";
/** The request headers that are passed on: none that the other server could take for a permission. */
const HEADERS = ["accept", "cache-control", "if-none-match", "prefer", "user-agent"];
/** The name of the user, as proxies in front of an API server send it. */
const USER_HEADER = "X-Remote-User";
// Longer than a read waits for a resourceVersion by default.
const TIMEOUT_MS = 10_000;

async function send(
  c: Context,
  { target, path, own, state: { settings: { clock } }, isIndex }: ForwardRequest,
  { verb, searchParams, permission, limitMs }: RequestedRead & {
    readonly permission: Permission;
    readonly limitMs: number;
  },
): Promise<Response | Status> {
  // A repeated parameter has the value by which the request was decided.
  const params = new URLSearchParams(Array.from(new Map(Array.from(searchParams).reverse())).reverse());
  if (isIndex && path.namespace !== "") params.set("namespace", path.namespace);
  if (verb === "watch" && limitMs !== Infinity) {
    const seconds = Math.max(1, Math.floor(limitMs / 1_000));
    const given = Number(params.get("timeoutSeconds"));
    if (!(given > 0 && given < seconds)) params.set("timeoutSeconds", String(seconds));
  }
  const headers = new Headers({ "Accept-Encoding": "identity" });
  for (const name of HEADERS) {
    const value = c.req.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  if (permission.user !== undefined) headers.set(USER_HEADER, encodeURIComponent(permission.user.name));
  const url = `${ORIGIN}${own}${params.size === 0 ? "" : `?${params}`}`;
  const request = new Request(url, { headers, redirect: "manual", signal: c.req.raw.signal });
  const late = new Error(`no answer within ${TIMEOUT_MS} ms`);
  try {
    const limit = { timeoutMs: TIMEOUT_MS, late, clock, signal: c.req.raw.signal };
    const response = await answerInTime(() => target.fetch(request), limit);
    // A copy, whose headers may be changed.
    return new Response(response.body, response);
  } catch (error) {
    c.req.raw.signal.throwIfAborted();
    return unreachable(target, error === late ? 504 : 503, errorMessage(error));
  }
}

function unreachable({ resource, logger }: ForwardedResource, code: 503 | 504, why: string): Status {
  const what = formatGroupResource(resource);
  logger.warn(`cannot read ${what} from the server that holds it: ${why}`);
  const [reason, message] = code === 504
    ? ["Timeout", `Timeout: the server that holds ${what} did not answer in time`]
    : ["ServiceUnavailable", `the server that holds ${what} cannot be reached`];
  return newStatus(code, reason, message, { ...resourceDetails(resource), retryAfterSeconds: 1 });
}
