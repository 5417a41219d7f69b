/** The routes below `/api`, `/apis` and `/openapi`. */

import type { Context } from "hono";
import { routePath } from "hono/route";
import type { Status } from "../meta/status.ts";
import { JSON_AND_YAML } from "../protocol/accept.ts";
import { type ApiResource, isBuiltinGroup } from "../protocol/api_resource.ts";
import { builtinResource } from "../protocol/builtin_resources.ts";
import { answerDiscovery } from "../protocol/discovery.ts";
import { refusedTimeout, wantsFollow, wantsWatch } from "../protocol/list_query.ts";
import { parseResourcePath, pathSegments, type ResourcePath } from "../protocol/resource_path.ts";
import { SCREEN_PARAMETERS } from "../protocol/screen_query.ts";
import { isStatus, methodNotAllowed, objectNotFound, unknownPath } from "../protocol/statuses.ts";
import { isAction, subresourcesOf } from "../protocol/subresources.ts";
import { type Answer, askedOf, askedOfPath, impersonates, type Route } from "./request/gate.ts";
import { noReviews, notHeld, notServed, readOnly } from "./request/refusals.ts";
import type { ReadApiState, ServedResource } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";
import { forwardRoute, readRoute } from "./resource_handler.ts";
import { formatOf } from "./request/requested_read.ts";
import { documentAnswer, GUARD_HEADERS, malformedPath, pageNotFound } from "./send/responses.ts";

// No path of a Kubernetes API comes near: names have 253 characters at most.
const MAX_PATH = 2_048;

interface Described {
  readonly resource: ApiResource;
}

/** The path of a request, without what the app is mounted under. */
export function ownPath(c: Context): { readonly pathname: string; readonly own: string | undefined } {
  const pathname = new URL(c.req.url).pathname.slice(0, MAX_PATH + 1);
  return { pathname, own: pathname.length > MAX_PATH ? undefined : unmounted(c, pathname) };
}

/**
 * A path below `/api`, `/apis` or `/openapi`: of a resource that is served, of another one, or of a document.
 */
export function apiRoute(c: Context, state: ReadApiState, reader: Reader): Route<ServedResource> {
  const { pathname, own } = ownPath(c);
  const segments = own === undefined ? [] : pathSegments(own);
  if (segments === undefined) return { access: "hooks", asked: askedOfPath(pathname), answer: malformedPath };
  const path = parseResourcePath(segments);
  const held = path && state.served.find(({ resource }) => isAt(resource, path));
  const forwarded = path && state.forwarded.find(({ resource }) => isAt(resource, path));
  const target = held ?? forwarded;
  const passed = passThroughRoute(c, state, { own, reader, isResource: path !== undefined });
  if (target !== undefined && isRead(c, target, path!)) {
    // The cache answers for the user who sends the request; for another one only the API server may.
    const isForApiServer = passed !== undefined && impersonates(c) && state.passThrough!.hasCredentials(c);
    if (!isForApiServer) {
      return held === undefined
        ? forwardRoute(c, { state, target: forwarded!, path: path!, reader, own: own! })
        : readRoute(c, { state, target: held, path: path!, reader });
    }
  }
  if (passed !== undefined) return passed;
  if (path !== undefined && isReview(c, path)) {
    // Not for the hooks, which know no creates.
    return { access: "API server", path: own!, isWatch: false, answer: () => noReviews(path) };
  }
  return path === undefined
    ? documentRoute(c, state, { pathname, segments, reader })
    : otherRoute(c, path, target);
}

/**
 * Whether the cache has the answer. Hono turns HEAD into GET, which would open a watch that no client reads.
 */
function isRead(c: Context, { resource }: Described, path: ResourcePath): boolean {
  return c.req.raw.method === "GET" && (path.subresource === "" || isSubresource(resource, path));
}

/** What the API server answers; `undefined` if that is for the cache to answer. */
function passThroughRoute(
  c: Context,
  { passThrough, settings, readers }: ReadApiState,
  { own, reader, isResource }: {
    readonly own: string | undefined;
    readonly reader: Reader;
    readonly isResource: boolean;
  },
): Route<ServedResource> | undefined {
  if (passThrough === undefined || own === undefined) return undefined;
  // Discovery and OpenAPI are also of use to readers that may read the cache only.
  if (!isResource && !passThrough.hasCredentials(c)) return undefined;
  const isWatch = isStream(c, own);
  return {
    access: "API server",
    path: own,
    isWatch,
    answer: (user) =>
      passThrough.answer(c, { path: own, isStream: isWatch, reader, readers, user, settings }),
  };
}

// The form of a watch before there was a parameter for it.
const WATCH_PATH = /^\/(api|apis\/[^/]+)\/[^/]+\/watch\//;

/** Whether the API server answers with a stream that lasts: a watch, or a log that is followed. */
function isStream(c: Context, own: string): boolean {
  const { searchParams } = new URL(c.req.url);
  return wantsWatch(searchParams) || wantsFollow(searchParams) || WATCH_PATH.test(own);
}

/**
 * A write, or a resource that the cache does not hold. Which these are is only for users that may read them.
 */
function otherRoute(c: Context, path: ResourcePath, target: Described | undefined): Route<ServedResource> {
  const { name } = path;
  const asked = askedOf(path, { verb: name === "" ? "list" : "get", name });
  return {
    access: "hooks",
    asked,
    answer: () => target === undefined ? notFound(c, path) : notAllowed(c, path, target),
  };
}

// Their resources are only created: questions to the API server.
const REVIEW_GROUPS: ReadonlySet<string> = new Set(["authentication.k8s.io", "authorization.k8s.io"]);

function isReview(c: Context, { group, name }: ResourcePath): boolean {
  return c.req.raw.method === "POST" && name === "" && REVIEW_GROUPS.has(group);
}

function notFound(c: Context, path: ResourcePath): Answer {
  const { method } = c.req.raw;
  const isKnown = builtinResource(path) !== undefined || REVIEW_GROUPS.has(path.group);
  if (isKnown && method !== "GET" && method !== "HEAD") return notHeld(path);
  return isBuiltinGroup(path.group) ? unknownPath() : pageNotFound();
}

function notAllowed(c: Context, path: ResourcePath, target: Described): Status {
  const { resource } = target;
  if (isAction(path.subresource)) return notServed(resource, path.subresource);
  if (path.subresource !== "" && !isSubresource(resource, path)) {
    return isBuiltinGroup(path.group) ? unknownPath() : objectNotFound(resource, path.name);
  }
  return isWrite(c.req.raw.method, path, target) ? readOnly(resource) : methodNotAllowed();
}

function documentRoute(
  c: Context,
  state: ReadApiState,
  { pathname, segments, reader }: {
    readonly pathname: string;
    readonly segments: readonly string[];
    readonly reader: Reader;
  },
): Route<ServedResource> {
  const path = segments.length === 0 ? pathname : `/${segments.join("/")}`;
  return {
    access: "hooks",
    asked: askedOfPath(path),
    answer: async () => {
      const refused = refusedTimeout(new URL(c.req.url).searchParams);
      if (refused !== undefined) return refused;
      const mount = pathname.slice(0, -unmounted(c, pathname).length);
      const found = await state.openApi.answer(c, path, { mount, reader }) ??
        await discovery(c, state, { path, reader });
      // A group of custom resources that is not known has no handler that would answer with a Status.
      const isOther = segments[0] === "apis" && !isBuiltinGroup(segments[1] ?? "");
      return found ?? (isOther ? pageNotFound() : unknownPath());
    },
  };
}

async function discovery(
  c: Context,
  { resources, forwarded }: ReadApiState,
  { path, reader }: { readonly path: string; readonly reader: Reader },
): Promise<Answer | undefined> {
  const found = answerDiscovery(resources, {
    method: c.req.raw.method,
    path,
    accept: c.req.header("Accept"),
    ifNoneMatch: c.req.header("If-None-Match"),
    serverAddress: new URL(c.req.url).host,
    mediaTypes: JSON_AND_YAML,
    definesCustom: true,
    parametersOf: (resource) => {
      const elsewhere = forwarded.find((each) => each.resource === resource);
      return elsewhere?.takesScreens === false ? undefined : SCREEN_PARAMETERS;
    },
  });
  if (found === undefined || isStatus(found)) return found;
  const { status, mediaType, parameters } = found;
  const headers = { ...found.headers, ...GUARD_HEADERS };
  if (found.document === null) return new Response(null, { status, headers });
  const typed = { ...headers, "Content-Type": mediaType + parameters };
  return await documentAnswer(reader, found.document, formatOf(c, found), { status, headers: typed });
}

/** The path below the one that the app is mounted at. */
function unmounted(c: Context, pathname: string): string {
  // The route is the mount's path and "/api/*".
  const mounted = routePath(c).split("/").length - 3;
  return `/${pathname.split("/").slice(1 + mounted).join("/")}`;
}

function isAt(resource: ApiResource, path: ResourcePath): boolean {
  if (resource.resource !== path.resource) return false;
  if (resource.group !== path.group || resource.version !== path.version) return false;
  // One object of a namespaced resource needs its namespace, a cluster-scoped one has none.
  return resource.namespaced ? path.namespace !== "" || path.name === "" : path.namespace === "";
}

/** Whether an API server would take this for a write. */
function isWrite(method: string, path: ResourcePath, { resource }: Described): boolean {
  if (path.isWatch) return false;
  const isOne = path.name !== "";
  if (method === "PUT" || method === "PATCH") return isOne;
  if (path.subresource !== "") return false;
  if (method === "DELETE") return isOne || path.namespace !== "" || !resource.namespaced;
  return method === "POST" && !isOne && (path.namespace !== "" || !resource.namespaced);
}

function isSubresource(resource: ApiResource, { subresource }: ResourcePath): boolean {
  return subresourcesOf(resource).some((known) => known === subresource);
}
