/** Get, list and watch of one resource. */

import type { Context } from "hono";
import type { ResourcePath } from "../protocol/resource_path.ts";
import { SCALE, scaleOf } from "../protocol/subresources.ts";
import { decodeContinue, LATEST, listIdentity } from "../protocol/continue_token.ts";
import type { ListQuery } from "../protocol/list_query.ts";
import type { NegotiatedShape } from "../protocol/accept.ts";
import { isStatus, objectNotFound, tooLargeResourceVersion } from "../protocol/statuses.ts";
import { fieldRules } from "../protocol/selectable_fields.ts";
import type { ScreenQuery } from "../protocol/screen_query.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { formatObjectName } from "../meta/keys.ts";
import { compareResourceVersions } from "../meta/object.ts";
import { refusesStale, requiresEachEvent } from "../meta/request.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import { type Answer, askedOf, type Permission, type Route } from "./request/gate.ts";
import { anotherLayout, incomplete, notFresh, notSynced, type StaleSource } from "./content/content.ts";
import type { IndexValue } from "./content/states.ts";
import type { ReadApiState, ServedResource } from "./read_api_state.ts";
import type { Reader } from "./request/readers.ts";
import { nameProblem } from "./request/refusals.ts";
import { answerForwarded, type ForwardRequest } from "./upstream/forward.ts";
import { documentAnswer, refusalResponse, warningHeader } from "./send/responses.ts";
import { indexedFields } from "./content/selection.ts";
import { answerList, answerObject, type ListAnswerRequest } from "./send/answers.ts";

import {
  type Form,
  newMetadataView,
  newObjectView,
  type RequestedRead,
  requestedRead,
  type View,
} from "./request/requested_read.ts";
import { printerOf } from "./tables/printers.ts";
import { newTableView } from "./tables/table.ts";
import { groupsList } from "./send/screen_answer.ts";
import { answerWatch, watchResponse } from "./send/watch_answer.ts";
import { errorStream } from "./send/watch_stream.ts";

export interface ResourceRequest {
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
  return { ...routeOf(path, read), target, answer };
}

/** The route of a GET of a resource that is answered elsewhere. */
export function forwardRoute(
  c: Context,
  request: ForwardRequest & { readonly state: Pick<ReadApiState, "settings"> },
): Route<ServedResource> {
  const { target: { resource, takesScreens }, path, state: { settings }, isIndex = false } = request;
  const ignoresScreens = takesScreens && path.subresource !== "scale"
    ? undefined
    : `${formatGroupResource(resource)} is not cached here, and its server may ignore the parameter; ` +
      "leave it out, or cache the resource";
  const read = requestedRead(c, {
    resource,
    path,
    fields: undefined,
    ignoresScreens,
    settings,
    isList: isIndex,
  });
  const answer = (permission: Permission) => answerForwarded(c, request, { ...read, permission });
  return { ...routeOf(path, read), answer };
}

function routeOf(path: ResourcePath, { verb, name }: RequestedRead) {
  return { access: "hooks", asked: askedOf(path, { verb, name }), isWatch: verb === "watch" } as const;
}

interface Read extends RequestedRead {
  readonly permission: Permission;
}

async function answerRead(c: Context, request: ResourceRequest, read: Read): Promise<Answer> {
  const { target, path } = request;
  const { verb, query, searchParams, form, screen, isEventStream, permission } = read;
  if (!("shape" in form)) return form;
  if (!query.ok) return query.status;
  if (screen !== undefined && isStatus(screen)) return screen;
  const unserved = screen && unservedScreen(screen, request);
  if (unserved !== undefined) return unserved;
  const name = verb === "get" ? path.name : "";
  const missing = target.fresh.missing(name);
  if (missing === undefined) return notSynced(target.resource);
  const whole = viewOf(request, form.shape, searchParams);
  const view = screen?.fields === undefined || !("sharedAs" in whole)
    ? whole
    : request.state.views.get(target.resource, whole, screen.fields);
  const isShown = "sharedAs" in view;
  if (verb !== "get" && !isShown) return view;
  const isPartial = target.informer.sources !== undefined &&
    /^(1|t|true)$/i.test(searchParams.get("partial") ?? "");
  if (missing.length > 0 && !isPartial) {
    const isFound = verb === "get" && target.content.held(formatObjectName(path)) !== undefined;
    if (!isFound) return incomplete(target.resource, missing);
  }
  const wait = waitOf(c, request);
  const cacheControl = c.req.header("Cache-Control");
  const stale = isAnyStateFine(query)
    ? []
    : await catchUp(request, query, { wait, name, isPartial, cacheControl });
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
  const warnings = warningsOf(stale, { missing, cut });
  return warnings.length === 0 ? answer : withWarnings(c, await answer, warnings);
}

/** 400: what a screen wants cannot be had here. */
function unservedScreen(
  { sortBy = [] }: ScreenQuery,
  { target, under }: ResourceRequest,
): Status | undefined {
  const refusal = (message: string) => {
    const cause = { reason: "FieldValueInvalid", message, field: "sortBy" };
    return newStatus(400, "BadRequest", `sortBy: ${message}`, { causes: [cause] });
  };
  if (sortBy.length > 0 && under !== undefined) {
    return refusal("objects under a value of an index have one order; request a list with a filter");
  }
  for (const { by } of sortBy) {
    const cut = by.type === "column" && target.printer.cut.find((name) => name.toLowerCase() === by.name);
    if (cut) return refusal(`the cache leaves out what the column ${cut} is made of; sort by another one`);
  }
  return undefined;
}

/** What is not found may exist by now, so that refusals have warnings, too. */
async function withWarnings(c: Context, answer: Answer, warnings: readonly string[]): Promise<Response> {
  const response = answer instanceof Response ? answer : await refusalResponse(c, answer);
  for (const warning of warnings) response.headers.append("Warning", warningHeader(warning));
  return response;
}

/** What an answer lacks, as kubectl prints it: https://kubernetes.io/blog/2020/09/03/warnings/ */
function warningsOf(
  stale: readonly StaleSource[],
  { missing, cut }: { readonly missing: readonly string[]; readonly cut: readonly string[] },
): string[] {
  const names = stale.map(({ name }) => name).join(", ");
  const last = names === ""
    ? "this is the last known state: the API server does not answer at present"
    : `this is the last known state of ${names}: no answer from there at present`;
  const none = `incomplete: nothing was read of ${missing.join(", ")} yet`;
  const left = `this cache leaves out fields of the objects: <cut> are ${cut.join(", ")}`;
  return [
    ...(missing.length > 0 ? [none] : []),
    ...(stale.length > 0 ? [last] : []),
    ...(cut.length > 0 ? [left] : []),
  ];
}

function waitOf(c: Context, { state: { settings } }: ResourceRequest): VersionWaitOptions {
  return {
    timeoutMs: settings.freshnessTimeoutMs,
    // Not before it is needed: Deno prints a warning when the signal of a request is read.
    get signal() {
      return c.req.raw.signal;
    },
  };
}

/** Whether a read takes the content as it is. */
function isAnyStateFine({ watch, options }: ListQuery): boolean {
  const { resourceVersion, sendInitialEvents, continue: continued } = options;
  return continued === undefined && (resourceVersion === "0" || (watch && !sendInitialEvents));
}

/**
 * Waits until the content is as fresh as the request demands: the sources of which the last known state must
 * do, or the Status of a read that is not answered.
 */
async function catchUp(
  request: ResourceRequest,
  query: ListQuery,
  { wait, name, isPartial, cacheControl }: {
    readonly wait: VersionWaitOptions;
    readonly name: string;
    readonly isPartial: boolean;
    readonly cacheControl: string | undefined;
  },
): Promise<readonly StaleSource[] | Status> {
  const { target, state: { settings } } = request;
  const { content, fresh } = target;
  const { resourceVersion, continue: continued } = query.options;
  const token = continued === undefined ? undefined : decodeContinue(continued);
  if (token !== undefined) {
    if (isStatus(token)) return [];
    if (token.resourceVersion !== LATEST) {
      // The API server may have written it, or another cache of it, which has come further.
      if (compareResourceVersions(token.resourceVersion, content.log.resourceVersion) > 0) {
        await fresh.reaches(token.resourceVersion, wait);
      }
      return [];
    }
    // It continues with the present state, as a list without a version shows it.
  } else if (resourceVersion !== undefined) {
    const outcome = await fresh.reaches(resourceVersion, wait);
    if (outcome === "reached") return [];
    return outcome === "foreign"
      ? anotherLayout(resourceVersion)
      : tooLargeResourceVersion(resourceVersion, content.log.resourceVersion);
  }
  if (settings.freshness === "as-is") return [];
  const staleIfError = isPartial || (settings.freshness === "stale-if-error" && !refusesStale(cacheControl));
  const stale = await fresh.catchUp(wait, { name, staleIfError });
  return stale.length === 0 || staleIfError ? stale : notFresh(target.resource, stale);
}

const SCALE_VIEW = newObjectView(SCALE);

/** The requested view, or the Status that refuses it: 406, or 400 for a wrong `includeObject`. */
function viewOf(
  { target, path, state: { settings } }: ResourceRequest,
  shape: NegotiatedShape["shape"],
  searchParams: URLSearchParams,
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
    return newTableView(isScale ? SCALE : target.resource, { apiVersion, includeObject, nowMs, printer });
  }
  const problem = `Invalid value: ${
    JSON.stringify(includeObject)
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
  const { pacer } = state;
  const { filter } = screen;
  const list = await groupsList(content, { ...query, namespace, filter, resource, screen, pacer, state });
  return await documentAnswer(reader, list, form);
}

function answerListOf(
  request: ResourceRequest,
  query: ListQuery,
  options: Pick<ListAnswerRequest, "form" | "view" | "wait" | "screen"> & { readonly permission: Permission },
): Promise<Answer> {
  const { state, target, path, under } = request;
  const { screen, permission } = options;
  const { group, version, resource, namespace } = path;
  const { labels, fields } = query;
  const of = [group, version, resource, namespace, String(labels ?? ""), String(fields ?? "")];
  if (under !== undefined) of.push(under.index, under.value);
  // No index has the empty name.
  if (screen?.filter !== undefined) of.push("", String(screen.filter));
  if (screen?.sortBy !== undefined) of.push(screen.sortBy.map(({ text }) => text).join(","));
  return answerList(target.content, {
    ...request,
    ...query,
    ...options,
    namespace,
    pacer: state.pacer,
    resource: target.resource,
    filter: screen?.filter,
    name: JSON.stringify(of),
    identity: () => listIdentity([...of, permission.user?.name ?? ""]),
    epochOf: (rewrites) => state.tags.epochOf(rewrites),
  });
}
