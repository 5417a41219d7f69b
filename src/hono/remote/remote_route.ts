/**
 * Reads of a resource that a remote holds.
 * @module
 */

import type { Context } from "hono";
import { JSON_AND_YAML } from "../../protocol/accept.ts";
import type { ListOptions } from "../../meta/list_watch.ts";
import {
  EACH_EVENT,
  NOTHING_STALE,
  refusesStale,
  requiresEachEvent,
} from "../../meta/request_preferences.ts";
import { type NegotiatedShape, negotiateShape } from "../../protocol/object_shape.ts";
import { isStatus } from "../../protocol/statuses.ts";
import { monotonicNow } from "../../util/clock.ts";
import { askedOf } from "../access/authorization.ts";
import type { Permission } from "../access/gate.ts";
import { prefersGzip } from "../send/gzip.ts";
import { formatOf, notModified } from "../send/responses.ts";
import { type RequestedRead, requestedRead } from "../requested_read.ts";
import type { Answer, Route } from "../route.ts";
import { remoteAnswer } from "./remote_answer.ts";
import type { RemoteRead, RemoteRequest } from "./remote_request.ts";
import { remoteWatchAnswer } from "./remote_watch.ts";

/** The route of a GET of a resource that a remote holds. The hooks decide here; the remote learns nothing of the user. */
export function remoteRoute(c: Context, request: RemoteRequest): Route {
  const { path, settings, isIndex } = request;
  const read = requestedRead(c, { path, fields: "any", settings, isList: isIndex });
  return {
    access: "hooks",
    asked: askedOf(path, { verb: read.verb, name: read.name }),
    isWatch: read.verb === "watch",
    answer: (permission) => answerRemote(c, request, { ...read, permission }),
  };
}

async function answerRemote(
  c: Context,
  request: RemoteRequest,
  read: RequestedRead & { readonly permission: Permission },
): Promise<Answer> {
  const { target, settings, path, isIndex } = request;
  const { verb, query, events, permission } = read;
  const accept = events?.accept ?? c.req.header("Accept");
  const agreed = isIndex
    ? undefined
    : negotiateShape(target.resource, { accept, verb, mediaTypes: JSON_AND_YAML });
  if (agreed !== undefined && isStatus(agreed)) return agreed;
  if (!query.ok) return query.status;
  const params = new URLSearchParams(read.searchParams);
  if (isIndex && path.namespace !== "") params.set("namespace", path.namespace);
  if (verb !== "watch" && formatOf(c, agreed ?? PLAIN).pretty) params.set("pretty", "true");
  const limitMs = settings.watchLimitMs();
  if (verb === "watch") limitSeconds(params, query.options, limitMs);
  const headers = headersOf(c, { verb, accept: acceptOf(agreed, verb) ?? accept });
  const search = params.size === 0 ? "" : `?${params}`;
  const sent: RemoteRead = {
    verb,
    options: query.options,
    permission,
    isEventStream: events !== undefined,
    request: new Request(ORIGIN + request.own + search, { headers, redirect: "manual" }),
  };
  if (verb === "watch") return await remoteWatchAnswer(c, request, { ...sent, limitMs });
  const key = JSON.stringify([sent.request.url, headers.accept]);
  const known = knownAnswer(request, sent, key);
  return known ?? await remoteAnswer(c, request, { ...sent, key });
}

const PLAIN = { mediaType: "application/json", pretty: false } as const;

// Only the path and the query count: a remote is reached by its `fetch`.
const ORIGIN = "http://remote.invalid";

/** The name that a remote sees: no user, and nothing that a user has sent. */
const USER_AGENT = "listwatch-reader";

function headersOf(
  c: Context,
  { verb, accept }: { readonly verb: string; readonly accept: string | undefined },
): Readonly<Record<string, string>> {
  const ifNoneMatch = verb === "watch" ? undefined : c.req.header("If-None-Match");
  const { "cache-control": cacheControl, prefer } = c.req.header();
  return {
    accept: accept ?? "application/json",
    "accept-encoding": verb !== "watch" && prefersGzip(c.req.header("Accept-Encoding")) ? "gzip" : "identity",
    ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
    ...(refusesStale(cacheControl) && NOTHING_STALE),
    ...(requiresEachEvent(prefer) && EACH_EVENT),
    "user-agent": USER_AGENT,
  };
}

/** The agreed form alone, so that a remote that knows more of them answers in this one. */
function acceptOf(agreed: NegotiatedShape | undefined, verb: string): string | undefined {
  if (agreed === undefined) return "application/json";
  const { mediaType, shape } = agreed;
  if (isStatus(shape)) return undefined;
  if (shape.kind === "object") return mediaType;
  const kind = shape.kind === "PartialObjectMetadata" && verb === "list" ? `${shape.kind}List` : shape.kind;
  const [group, version] = shape.apiVersion.split("/");
  return `${mediaType};as=${kind};v=${version};g=${group}`;
}

/** A remote ends a watch in better order: it sends what is left, and a bookmark. */
function limitSeconds(params: URLSearchParams, { timeoutSeconds }: ListOptions, limitMs: number): void {
  const seconds = Math.floor(limitMs / 1_000);
  if (seconds < 1 || !Number.isFinite(seconds)) return;
  if (timeoutSeconds && timeoutSeconds < seconds) return;
  params.set("timeoutSeconds", String(seconds));
}

// A client that reads at resourceVersion=0 takes any state: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
const ANY_STATE_MS = 1_000;

/** 304, where the reader has what the remote had a moment ago, and the protocol or the options take that for an answer. */
function knownAnswer(
  { target, settings }: RemoteRequest,
  { options, request }: RemoteRead,
  key: string,
): Response | undefined {
  const { resourceVersion, resourceVersionMatch } = options;
  if (options.continue !== undefined || resourceVersionMatch === "Exact") return undefined;
  const isAny = resourceVersion === "0";
  const nowMs = monotonicNow(settings.clock);
  const known = target.tags.find(key, {
    ifNoneMatch: request.headers.get("if-none-match") ?? undefined,
    nowMs,
    maxStaleMs: isAny ? Math.max(ANY_STATE_MS, target.maxStaleMs) : target.maxStaleMs,
    notOlderThan: isAny ? undefined : resourceVersion,
  });
  if (known === undefined || (!isAny && target.maxStaleMs === 0)) return undefined;
  const response = notModified(known.tag);
  response.headers.set("Cache-Synced", "true");
  if (known.resourceVersion !== "") response.headers.set("Resource-Version", known.resourceVersion);
  if (known.ageMs !== undefined) {
    response.headers.set("Age", String(Math.floor((known.ageMs + nowMs - known.askedMs) / 1_000)));
  }
  return response;
}
