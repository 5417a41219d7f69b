/** The routes below `/api`, `/apis` and `/openapi`: get, list and watch of the resources, and documents. */

import type { Context } from "hono";
import { routePath } from "hono/route";
import { formatObjectName } from "../meta/object.ts";
import { refusesStale, requiresEachEvent } from "../meta/request.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import { JSON_AND_YAML } from "../protocol/representations.ts";
import { type ApiResource, isBuiltinGroup } from "../protocol/api_resource.ts";
import { builtinResource } from "../protocol/builtin_resources.ts";
import { listIdentity } from "../protocol/continue_token.ts";
import { answerDiscovery } from "../protocol/discovery.ts";
import {
  type ListQuery,
  parseResourcePath,
  pathSegments,
  type ResourcePath,
  wantsFollow,
  wantsWatch,
} from "../protocol/request_url.ts";
import {
  refusedParameter,
  SCREEN_PARAMETERS,
  type ScreenFieldPath,
  type ScreenQuery,
} from "../protocol/screen_query.ts";
import { fieldRules } from "../protocol/selectable_fields.ts";
import {
  isStatus,
  methodNotAllowed,
  objectNotFound,
  quotedStart,
  unknownPath,
} from "../protocol/statuses.ts";
import { isAction, SCALE, scaleOf, subresourcesOf } from "../protocol/subresources.ts";
import { incomplete, notSynced } from "./content/content.ts";
import { indexedFields } from "./content/selection.ts";
import type { IndexValue } from "./content/states.ts";
import type { ReadApiState, ServedResource } from "./read_api_state.ts";
import {
  type Answer,
  askedOf,
  askedOfPath,
  impersonates,
  type Permission,
  type Route,
} from "./request/gate.ts";
import type { Reader } from "./request/readers.ts";
import { nameProblem, noReviews, notHeld, notServed, readOnly } from "./request/refusals.ts";
import {
  type Form,
  formatOf,
  MAX_PATH,
  type RequestedForm,
  type RequestedRead,
  requestedRead,
  type View,
} from "./request/requested_read.ts";
import { answerList, answerObject, type ListAnswerRequest } from "./send/answers.ts";
import {
  documentAnswer,
  GUARD_HEADERS,
  malformedPath,
  pageNotFound,
  withWarnings,
} from "./send/responses.ts";
import { groupsList } from "./send/screen_answer.ts";
import { newTableView } from "./send/table_view.ts";
import { newMetadataView, newObjectView, withoutManagedFields, withShardInfo } from "./send/view_text.ts";
import { answerWatch, watchResponse } from "./send/watch_answer.ts";
import { errorStream } from "./send/watch_stream.ts";
import { printerOf } from "./tables/printers.ts";
import { forwardRoute } from "./upstream/forward.ts";

/** The path of a request, without what the app is mounted under. */
export function ownPath(c: Context): { readonly pathname: string; readonly own: string | undefined } {
  const pathname = new URL(c.req.url).pathname.slice(0, MAX_PATH + 1);
  return { pathname, own: pathname.length > MAX_PATH ? undefined : unmounted(c, pathname) };
}

/** The route of a path below `/api`, `/apis` or `/openapi`: of any resource, or of a document. */
export function apiRoute(c: Context, state: ReadApiState, reader: Reader): Route<ServedResource> {
  const { pathname, own } = ownPath(c);
  const segments = own === undefined ? [] : pathSegments(own);
  if (segments === undefined) return { access: "hooks", asked: askedOfPath(pathname), answer: malformedPath };
  const path = parseResourcePath(segments);
  const held = path && state.served.find(({ resource }) => isAt(resource, path));
  const forwarded = path && state.forwarded.find(({ resource }) => isAt(resource, path));
  const target = held ?? forwarded;
  const passed = passThroughRoute(c, state, own, path, reader);
  if (target !== undefined && isRead(c, target.resource, path!)) {
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
    // The hooks know no creates, so the API server decides.
    return { access: "API server", path: own!, isStream: false, answer: () => noReviews(path) };
  }
  return path === undefined
    ? documentRoute(c, state, pathname, segments, reader)
    : otherRoute(c, path, target?.resource);
}

/** Whether the cache has the answer. API servers have a HEAD of custom resources only. */
function isRead(c: Context, resource: ApiResource, path: ResourcePath): boolean {
  const { method } = c.req.raw;
  return (method === "GET" || method === "HEAD" && !isBuiltinGroup(path.group)) && isReadable(resource, path);
}

/** Whether a path of a resource is one of objects, or of what is read from them. */
function isReadable(resource: ApiResource, { subresource }: ResourcePath): boolean {
  return subresource === "" || subresourcesOf(resource).includes(subresource);
}

/** The route of a request that the API server answers; `undefined` if the cache answers it. */
function passThroughRoute(
  c: Context,
  { passThrough, settings }: ReadApiState,
  own: string | undefined,
  path: ResourcePath | undefined,
  reader: Reader,
): Route<ServedResource> | undefined {
  if (passThrough === undefined || own === undefined) return undefined;
  // Discovery and OpenAPI are also of use to readers that may read the cache only.
  if (path === undefined && !passThrough.hasCredentials(c)) return undefined;
  const { searchParams } = new URL(c.req.url);
  // The path is the form of a watch before there was a parameter for it.
  const mayWatch = path?.isWatch === true || wantsWatch(searchParams);
  const isStream = mayWatch || wantsFollow(searchParams);
  const isWatch = mayWatch && c.req.raw.method === "GET" && (path?.isWatch || path?.name === "");
  return {
    access: "API server",
    path: own,
    isStream,
    isWatch,
    answer: (user) => passThrough.answer(c, { path: own, isStream, isWatch, reader, user, settings }),
  };
}

/** A write, or a resource that is not held. Which these are is only for users that may read them. */
function otherRoute(
  c: Context,
  path: ResourcePath,
  resource: ApiResource | undefined,
): Route<ServedResource> {
  const { name } = path;
  const asked = askedOf(path, { verb: name === "" ? "list" : "get", name });
  return {
    access: "hooks",
    asked,
    answer: () => resource === undefined ? notFound(c, path) : notAllowed(c, path, resource),
  };
}

// The groups whose resources are only created: questions to the API server.
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

function notAllowed(c: Context, path: ResourcePath, resource: ApiResource): Status {
  const isUnknown = !isReadable(resource, path);
  if (isUnknown && !isBuiltinGroup(path.group)) return objectNotFound(resource, path.name);
  if (isAction(resource, path.subresource)) return notServed(resource, path.subresource);
  if (isUnknown) return unknownPath();
  return isWrite(c.req.raw.method, path, resource) ? readOnly(resource) : methodNotAllowed();
}

function documentRoute(
  c: Context,
  state: ReadApiState,
  pathname: string,
  segments: readonly string[],
  reader: Reader,
): Route<ServedResource> {
  const path = segments.length === 0 ? pathname : `/${segments.join("/")}`;
  return {
    access: "hooks",
    asked: askedOfPath(path),
    answer: async () => {
      const own = unmounted(c, pathname);
      const mount = pathname.slice(0, -own.length);
      // At the end of a root, slashes count.
      const slashes = segments.length > 1 || !own.endsWith("/") ? "" : own.endsWith("//") ? "//" : "/";
      const document = own.endsWith("/") ? `${path}/` : path;
      const found = await state.openApi.answer(c, document, { mount, reader }) ??
        await discovery(c, state, { path: path + slashes, reader });
      // Neither documents nor an unknown group of custom resources have a handler that answers with a Status.
      const [root, group] = segments;
      const isOther = root === "openapi" || root === "apis" && (!group || !isBuiltinGroup(group));
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
  // An object of a namespaced resource needs its namespace; a cluster-scoped object has none.
  return resource.namespaced ? path.namespace !== "" || path.name === "" : path.namespace === "";
}

function isWrite(method: string, path: ResourcePath, { namespaced }: ApiResource): boolean {
  if (path.isWatch) return false;
  const isOne = path.name !== "";
  if (method === "PUT" || method === "PATCH") return isOne;
  if (path.subresource !== "") return false;
  if (method === "DELETE") return isOne || path.namespace !== "" || !namespaced;
  return method === "POST" && !isOne && (path.namespace !== "" || !namespaced);
}

interface ResourceRequest {
  readonly state: ReadApiState;
  readonly target: ServedResource;
  readonly path: ResourcePath;
  readonly reader: Reader;
  /** List only what is under this value of an index, which the store has. */
  readonly under?: IndexValue;
}

export function readRoute(c: Context, request: ResourceRequest): Route<ServedResource> {
  const { target, path, state: { settings } } = request;
  const fields = () => fieldRules(target.resource, indexedFields(target.informer.indexer));
  const { resource } = target;
  const isList = request.under !== undefined;
  const ignoresScreens = path.subresource === "scale"
    ? `the scale of ${formatGroupResource(resource)} is made for each request; leave the parameter out`
    : undefined;
  const read = requestedRead(c, { resource, path, fields, ignoresScreens, settings, isList });
  const answer = (permission: Permission) => answerRead(c, request, { ...read, permission });
  return { access: "hooks", asked: askedOf(path, read), isWatch: read.verb === "watch", target, answer };
}

interface Read extends RequestedRead {
  readonly permission: Permission;
}

async function answerRead(c: Context, request: ResourceRequest, read: Read): Promise<Answer> {
  const { target, path } = request;
  const { verb, query, searchParams, form, isEventStream, permission } = read;
  if (!("shape" in form)) return form;
  if (!("options" in query)) return query;
  const screen = read.screenOf?.();
  if (screen !== undefined && isStatus(screen)) return screen;
  const unserved = screen && unservedScreen(screen, request);
  if (unserved !== undefined) return unserved;
  const name = verb === "get" ? path.name : "";
  if (!target.content.log.isReady()) return notSynced(target.resource);
  const view = viewOf(request, { form, query, searchParams, fields: screen?.fields });
  const isShown = "sharedAs" in view;
  if (verb !== "get" && !isShown) return view;
  const { isMerged } = target.fresh;
  const missing = isMerged ? target.fresh.missing(name) : [];
  const isPartial = isMerged && /^(1|t|true)$/i.test(searchParams.get("partial") ?? "");
  if (missing.length > 0 && !isPartial) {
    const isFound = verb === "get" && target.content.held(formatObjectName(path)) !== undefined;
    if (!isFound) return incomplete(target.resource, missing);
  }
  const wait = waitOf(c, request);
  const stale = isAnyStateFine(query) ? [] : await target.fresh.catchUp(query, {
    resource: target.resource,
    name,
    isPartial,
    refusesStale: refusesStale(c.req.header("Cache-Control")),
    wait,
  });
  if (!("length" in stale)) return verb === "watch" ? watchResponse(errorStream(stale)) : stale;
  const endsAtRelist = verb === "watch" && requiresEachEvent(c.req.header("Prefer"));
  const answer = verb === "get"
    ? answerGet(request, form, view)
    : !isShown
    ? view
    : verb === "watch"
    ? answerWatch(request, query, { view, permission, isEventStream, screen, endsAtRelist })
    : screen?.groupBy !== undefined
    ? answerGroups(request, query, { form, screen })
    : answerListOf(request, query, { form, view, permission, wait, screen });
  const cut = form.shape.kind === "Table" && path.subresource !== "scale" ? target.printer.cut : [];
  const isWhole = missing.length + stale.length + cut.length === 0;
  return isWhole ? answer : withWarnings(c, await answer, { missing, stale, cut });
}

function unservedScreen(
  { sortBy = [] }: ScreenQuery,
  { target, under }: ResourceRequest,
): Status | undefined {
  if (sortBy.length > 0 && under !== undefined) {
    return refusedParameter(
      "sortBy",
      "objects under a value of an index have one order; request a list with a filter",
    );
  }
  for (const { by } of sortBy) {
    const cut = by.type === "column" && target.printer.cut.find((name) => name.toLowerCase() === by.name);
    if (cut) {
      const problem = `the cache leaves out what the column ${cut} is made of; sort by another one`;
      return refusedParameter("sortBy", problem);
    }
  }
  return undefined;
}

/** Whether a read takes the content as it is. */
function isAnyStateFine({ watch, options }: ListQuery): boolean {
  const { resourceVersion, sendInitialEvents, continue: continued } = options;
  return continued === undefined && (resourceVersion === "0" || (watch && !sendInitialEvents));
}

function waitOf(c: Context, { state: { settings } }: ResourceRequest): VersionWaitOptions {
  return {
    timeoutMs: settings.freshnessTimeoutMs,
    // Read late: Deno prints a warning when the signal of a request is read.
    get signal() {
      return c.req.raw.signal;
    },
  };
}

const SCALE_VIEW = newObjectView(SCALE);

/** The requested view, or the Status that refuses it: 406, or 400 for a wrong `includeObject`. */
function viewOf(
  request: ResourceRequest,
  { form: { shape, dropsManagedFields }, query: { shard }, searchParams, fields }: {
    readonly form: RequestedForm;
    readonly query: ListQuery;
    readonly searchParams: URLSearchParams;
    readonly fields: readonly ScreenFieldPath[] | undefined;
  },
): View | Status {
  const { target, state: { views } } = request;
  const whole = shapeOf(request, shape, searchParams, fields);
  if (!("sharedAs" in whole)) return whole;
  let view = whole;
  if (fields !== undefined && shape.kind === "object") view = views.get(target.resource, view, fields);
  if (dropsManagedFields && target.hasManagedFields) view = withoutManagedFields(view);
  if (shard !== undefined && shape.kind !== "Table") view = withShardInfo(view, shard);
  return view;
}

function shapeOf(
  { target, path, state: { settings } }: ResourceRequest,
  shape: RequestedForm["shape"],
  searchParams: URLSearchParams,
  fields?: readonly ScreenFieldPath[],
): View | Status {
  const isScale = path.subresource === "scale";
  if (shape.kind === "object") return isScale ? SCALE_VIEW : target.view;
  if (shape.kind === "refused") return shape.status;
  const { apiVersion } = shape;
  if (shape.kind === "PartialObjectMetadata") return newMetadataView(apiVersion);
  const includeObject = searchParams.get("includeObject") || "Metadata";
  if (includeObject === "None" || includeObject === "Metadata" || includeObject === "Object") {
    const nowMs = () => settings.clock.now();
    const printer = isScale ? printerOf(SCALE) : target.printer;
    const resource = isScale ? SCALE : target.resource;
    return newTableView(resource, { apiVersion, includeObject, nowMs, printer, ...(fields && { fields }) });
  }
  const problem = `Invalid value: ${
    quotedStart(includeObject)
  }: must be 'Metadata', 'Object', 'None', or empty`;
  return newStatus(400, "BadRequest", `Unable to convert to Table as requested: includeObject: ${problem}`);
}

async function answerGet(
  { state: { tags }, target, path, reader }: ResourceRequest,
  form: Form,
  view: View | Status,
): Promise<Answer> {
  const problem = nameProblem(path.name);
  if (problem !== undefined) return problem;
  const key = formatObjectName(path);
  const held = target.content.held(key);
  if (held === undefined) return objectNotFound(target.resource, path.name);
  if (path.subresource === "scale") {
    const scale = scaleOf(target.resource, target.content.holding.peek(held));
    if (isStatus(scale) || isStatus(view)) return isStatus(scale) ? scale : view as Status;
    return await documentAnswer(reader, view.one(scale), form);
  }
  return isStatus(view) ? view : await answerObject(target.content, held, { form, view, key, tags, reader });
}

async function answerGroups(
  { state, target: { content, resource }, path: { namespace }, reader }: ResourceRequest,
  query: ListQuery,
  { form, screen }: { readonly form: Form; readonly screen: ScreenQuery },
): Promise<Answer> {
  const { pacer } = reader;
  const { filter } = screen;
  const list = await groupsList(content, { ...query, namespace, filter, resource, screen, pacer, state });
  return isStatus(list) ? list : await documentAnswer(reader, list, form);
}

function answerListOf(
  request: ResourceRequest,
  query: ListQuery,
  options: Pick<ListAnswerRequest, "form" | "view" | "wait" | "screen"> & { readonly permission: Permission },
): Promise<Answer> {
  const { state, target, path, under } = request;
  const { screen, permission } = options;
  const { group, version, resource, namespace } = path;
  const { labels, fields, shard } = query;
  const selectors = [labels, fields, shard].map((each) => String(each ?? ""));
  const of = [group, version, resource, namespace, ...selectors];
  if (under !== undefined) of.push(under.index, under.value);
  // No index has the empty name.
  if (screen?.filter !== undefined) of.push("", String(screen.filter));
  if (screen?.sortBy !== undefined) of.push(screen.sortBy.map(({ text }) => text).join(","));
  return answerList(target.content, {
    ...request,
    ...query,
    ...options,
    namespace,
    pacer: request.reader.pacer,
    resource: target.resource,
    filter: screen?.filter,
    name: JSON.stringify(of),
    identity: () => listIdentity([...of, permission.user?.name ?? ""]),
    epochOf: (rewrites) => state.tags.epochOf(rewrites),
  });
}
