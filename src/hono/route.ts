/** What a request asks for, the access check, and the answer: the one place that every request passes. */

import type { Context } from "hono";
import type { Status } from "../meta/status.ts";
import { isStatus } from "../protocol/statuses.ts";
import type { Asked, Permission, UserInfo } from "./request/gate.ts";
import { refusalResponse, withCacheHeaders } from "./send/responses.ts";
import { onceSent, type Reader } from "./request/readers.ts";
import type { ReadApiState } from "./read_api_state.ts";
import { foreignPage, tooManyRequests } from "./request/refusals.ts";
import type { ServedResource } from "./served_resources.ts";
import { isSocketRequest, mayOpenSocket } from "./request/socket_request.ts";
import { socketResponse } from "./send/socket_watch.ts";

/** A response, or the Status to answer with. */
export type Answer = Response | Status;

/**
 * What a request asks for, and how it is answered once it may be. Nothing is read before: what a route
 * answers with, 404 and 400 included, is made by `answer`.
 */
export type Route =
  | {
    /** The hooks decide. */
    readonly access: "hooks";
    readonly asked: Asked | readonly Asked[];
    /** The resource whose freshness the headers of the answer show. */
    readonly target?: ServedResource;
    /** Whether it is a watch, which a WebSocket may have. */
    readonly isWatch?: boolean;
    answer(permission: Permission): Answer | Promise<Answer>;
  }
  | {
    /** The API server decides, by the reader's own credentials, which are all that is sent there. */
    readonly access: "API server";
    readonly path: string;
    /** Whether its answer is a stream that may last: a watch, or a log that is followed. */
    readonly isWatch: boolean;
    answer(user: UserInfo | undefined): Answer | Promise<Answer>;
  }
  | {
    /** For every client: it shows nothing of what is served. */
    readonly access: "open";
    answer(): Answer | Promise<Answer>;
  };

/** Finds the route of a request that counts as a reader. */
export type ReaderRoute = (c: Context, state: ReadApiState, reader: Reader) => Route;

/**
 * Finds the route of a request that is answered whatever readers there are; `undefined` if it is not for this
 * app.
 */
export type PlainRoute = (c: Context, state: ReadApiState) => Route | undefined;

/** Answers a request that is answered whatever readers there are. */
export async function answerPlain(c: Context, state: ReadApiState, route: Route): Promise<Response> {
  return await toResponse(c, await answerRoute(c, state, route, undefined));
}

/** Answers a request that counts as a reader, and is measured. */
export async function answerReader(
  c: Context,
  state: ReadApiState,
  routeOf: ReaderRoute,
): Promise<Response> {
  const end = state.metrics?.begin();
  let route: Route | undefined;
  let status = 500;
  state.bodies.dropUnused();
  const reader = state.readers.enter(state.settings.clientOf(c, undefined));
  try {
    let answer: Answer;
    if (reader === undefined) answer = tooManyRequests();
    else {
      route = routeOf(c, state, reader);
      answer = foreignSocket(c, state, route) ?? await answerRoute(c, state, route, reader);
    }
    const response = await toResponse(c, answer);
    const target = route?.access === "hooks" ? route.target : undefined;
    if (target !== undefined) withCacheHeaders(response, target);
    const answered = await ofSocket(c, state, { route, response });
    ({ status } = answered);
    return status === 200 && mayBeEndless(route) ? endless(c, answered) : answered;
  } catch (error) {
    if (!c.req.raw.signal.aborted) throw error;
    status = 499; // No client reads this.
    return new Response(null, { status });
  } finally {
    if (reader !== undefined) onceSent(c.env, () => reader.release());
    end?.(route?.access === "hooks" ? route.asked : undefined, state.resources, status);
  }
}

/** 403: a page of another site wants a WebSocket with what the browser knows of its user. */
function foreignSocket(c: Context, { settings }: ReadApiState, route: Route): Status | undefined {
  const { upgradeWebSocket, cors } = settings;
  if (upgradeWebSocket === undefined || !isWatchRoute(route) || !isSocketRequest(c)) return undefined;
  return mayOpenSocket(c, cors) ? undefined : foreignPage();
}

/** The answer, over a WebSocket if it is a watch and the request wants one. */
function ofSocket(
  c: Context,
  { settings }: ReadApiState,
  { route, response }: { readonly route: Route | undefined; readonly response: Response },
): Response | Promise<Response> {
  const { upgradeWebSocket, clock, watchBufferBytes: bufferBytes, writeTimeoutMs } = settings;
  if (upgradeWebSocket === undefined || !isWatchRoute(route) || !isSocketRequest(c)) return response;
  if (response.status !== 200 || response.headers.get("Content-Type") !== "application/json") return response;
  return socketResponse(c, response, { upgradeWebSocket, clock, bufferBytes, writeTimeoutMs });
}

/** Whether an answer may never end: a watch, or whatever the API server sends. */
function mayBeEndless(route: Route | undefined): boolean {
  return route?.access === "API server" || isWatchRoute(route);
}

/**
 * Keeps middlewares of the same app from reading a body that may never end: `prettyJSON()` and `etag()` read a
 * clone of each response to its end before it is sent, and a body that was cloned does not learn that its
 * client has left. A clone of this response has no body, which makes them leave it alone. Hono is given it
 * here, as it makes a new response of it where a middleware has set headers before.
 */
function endless(c: Context, response: Response): Response {
  c.res = response;
  const { res } = c;
  res.clone = () =>
    new Response(null, { status: res.status, statusText: res.statusText, headers: res.headers });
  return res;
}

function isWatchRoute(route: Route | undefined): boolean {
  return route?.access === "hooks" && route.isWatch === true;
}

/** The access check: no route is answered in another way. */
async function answerRoute(
  c: Context,
  { gate, authentication, settings }: ReadApiState,
  route: Route,
  reader: Reader | undefined,
): Promise<Answer> {
  if (route.access === "open") return await refusing(c, await route.answer());
  const isWatch = route.isWatch === true;
  const mayPass = (user: UserInfo | undefined) =>
    reader?.identify(settings.clientOf(c, user), { isWatch }) ?? true;
  if (route.access === "API server") {
    const user = await authentication(c, route.path);
    if (user !== undefined && isStatus(user)) return user;
    return mayPass(user) ? await refusing(c, await route.answer(user)) : tooManyRequests();
  }
  const permission = await gate(route.asked, c);
  if (!("renew" in permission)) return permission;
  return mayPass(permission.user) ? await refusing(c, await route.answer(permission)) : tooManyRequests();
}

/**
 * A refusal is sent once the request's body is read: on a kept-alive connection it would be taken for the
 * next request. Of a body that is too long the connection is closed instead.
 */
async function refusing(c: Context, answer: Answer): Promise<Answer> {
  const { method } = c.req.raw;
  if (method === "GET" || method === "HEAD" || !isRefusal(answer) || await drain(c.req.raw.body)) {
    return answer;
  }
  const response = await toResponse(c, answer);
  response.headers.set("Connection", "close");
  return response;
}

function isRefusal(answer: Answer): boolean {
  return !(answer instanceof Response) || answer.status >= 400;
}

async function toResponse(c: Context, answer: Answer): Promise<Response> {
  return answer instanceof Response ? answer : await refusalResponse(c, answer);
}

// A request to etcd has at most 1.5 MiB (https://etcd.io/docs/v3.5/dev-guide/limit/); a longer body is not read.
const DRAINED_BYTES = 2 * 1024 * 1024;

/** Reads a body to its end; `false` if that is too far away. */
async function drain(body: ReadableStream<Uint8Array> | null): Promise<boolean> {
  if (body === null) return true;
  let left = DRAINED_BYTES;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return true;
      left -= value.byteLength;
      if (left < 0) {
        reader.cancel().catch(() => {});
        return false;
      }
    }
  } catch {
    return true; // The client disconnected: there is nothing left to read.
  }
}
