/** A GET of a resource: its query, the format of the answer, and the view of its objects. */

import type { Context } from "hono";
import type { KubernetesObject, ListMeta, ObjectMeta } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import {
  JSON_AND_YAML,
  type MediaType,
  type NegotiatedShape,
  negotiateShape,
  prefersGzip,
  wantsPretty,
} from "../../protocol/representations.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import {
  LIST_PARAMETERS,
  type ListQuery,
  parseGetQuery,
  parseListQuery,
  queryParameters,
  type ResourcePath,
  wantsWatch,
} from "../../protocol/request_url.ts";
import { parseScreenQuery, refusedScreenQuery, type ScreenQuery } from "../../protocol/screen_query.ts";
import type { FieldRules } from "../../protocol/selectable_fields.ts";
import { hasTable } from "../../protocol/subresources.ts";
import type { FieldCut } from "../../text/field_cut.ts";
import { nameProblem } from "./refusals.ts";

export interface RequestedRead {
  readonly verb: "get" | "list" | "watch";
  /** The object that is named, by the path or by a field selector; `""` if there is none. */
  readonly name: string;
  readonly query: ListQuery | Status;
  readonly searchParams: URLSearchParams;
  /** The format of the answer and the shape of its objects; 406 if the client accepts none of them. */
  readonly form: RequestedForm | Status;
  /** Reads the screen's parameters, which only the answer needs; `undefined` if there are none. */
  readonly screenOf: (() => ScreenQuery | Status | undefined) | undefined;
  readonly isEventStream: boolean;
}

export type RequestedForm = Form & Pick<NegotiatedShape, "shape" | "dropsManagedFields">;

/**
 * The longest path, and so the longest name, that hooks decide on. No path of a Kubernetes API comes near:
 * names have 253 characters at most.
 */
export const MAX_PATH = 2_048;

// A thousand values of the longest kind, and keys for a hundred requirements.
const MAX_QUERY_TEXT = 128 * 1024;

/** Reads what a GET asks for. `isList`: the path has no watches. */
export function requestedRead(
  c: Context,
  { resource, path, fields, ignoresScreens, isList, settings }: {
    readonly resource: ApiResource;
    readonly path: ResourcePath;
    /** The fields that the resource can be selected by; `undefined` if another server knows. */
    readonly fields: (() => FieldRules) | undefined;
    /** Why the parameters of screens would be ignored, and so are refused; `undefined` if they are not. */
    readonly ignoresScreens: string | undefined;
    readonly isList: boolean;
    readonly settings: {
      readonly maxSelectorRequirements: number;
      readonly maxSelectorValues: number;
    };
  },
): RequestedRead {
  const isOne = path.name !== "" && !path.isWatch;
  const mustWatch = path.isWatch || (isList ? false : undefined);
  const given = queryParameters(new URL(c.req.url).search);
  const events = !isOne && (mustWatch ?? wantsWatch(given)) ? eventStreamRequest(c, given) : undefined;
  const { searchParams } = events ?? { searchParams: given };
  const limits = {
    maxRequirements: settings.maxSelectorRequirements,
    maxValues: settings.maxSelectorValues,
    maxTextLength: MAX_QUERY_TEXT,
  };
  const query = isOne ? parseGetQuery(searchParams) : parseListQuery(searchParams, {
    ...(mustWatch !== undefined && { watch: mustWatch }),
    ...(path.isWatch && path.name !== "" && { name: path.name }),
    fields,
    limits,
  });
  const isWatch = "options" in query ? query.watch : mustWatch ?? wantsWatch(searchParams);
  const verb = isOne ? "get" : isWatch ? "watch" : "list";
  const selected = ("options" in query && query.fields?.requiresExactMatch("metadata.name")) || "";
  const isName = selected !== "" && selected.length <= MAX_PATH && nameProblem(selected) === undefined;
  const name = path.name || (isName ? selected : "");
  const accept = events?.accept ?? c.req.header("Accept");
  const tables = path.subresource === "" || hasTable(path.subresource);
  const form = requestedForm(c, resource, { verb, accept, tables });
  const shape = "shape" in form && form.shape.kind !== "refused" ? form.shape.kind : "object";
  // Known parameters only: none is a screen's, and none is misspelt.
  const isPlain = Array.from(searchParams.keys()).every((name) => LIST_PARAMETERS.has(name));
  const screenOf = isPlain
    ? undefined
    : () =>
      ignoresScreens === undefined
        ? parseScreenQuery(searchParams, { verb, shape, limits })
        : refusedScreenQuery(searchParams, ignoresScreens);
  return { verb, name, query, searchParams, form, screenOf, isEventStream: events !== undefined };
}

// A merged resourceVersion has a version for each shard.
const LAST_EVENT_ID = /^[1-9][0-9]{0,19999}$/;

/**
 * The watch that a request for server-sent events means: what the events are to be, and its query, with what
 * the reader has seen already as the resourceVersion. `undefined` for every other request.
 */
function eventStreamRequest(c: Context, searchParams: URLSearchParams) {
  const clauses = (c.req.header("Accept") ?? "").split(",").map((clause) => clause.trim());
  const others = clauses.filter((clause) => !/^text\/event-stream\s*(;|$)/i.test(clause));
  if (others.length === clauses.length) return undefined;
  const params = new URLSearchParams(searchParams);
  params.set("allowWatchBookmarks", "true");
  const lastEventId = c.req.header("Last-Event-ID") ?? "";
  // The browser sends the last `id` when it connects again, to the URL of the first time.
  if (LAST_EVENT_ID.test(lastEventId)) {
    params.set("resourceVersion", lastEventId);
    params.delete("resourceVersionMatch");
    params.delete("sendInitialEvents");
  }
  return { accept: others.join(", ") || "application/json", searchParams: params };
}

export interface Format {
  readonly mediaType: MediaType;
  readonly pretty: boolean;
}

export interface Form extends Format {
  /** The tags of what the reader has. */
  readonly ifNoneMatch: string | undefined;
  readonly gzip: boolean;
}

/** The format that a request asks for: by what was negotiated, and by its query and client. */
export function formatOf(c: Context, { mediaType, pretty }: Format): Format {
  const isIndented = pretty || wantsPretty(new URL(c.req.url).searchParams, c.req.header("User-Agent"));
  return { mediaType, pretty: isIndented };
}

function requestedForm(
  c: Context,
  resource: ApiResource,
  asked: {
    readonly verb: "get" | "list" | "watch";
    readonly accept: string | undefined;
    readonly tables: boolean;
  },
): RequestedForm | Status {
  const agreed = negotiateShape(resource, { ...asked, mediaTypes: JSON_AND_YAML });
  if (!("shape" in agreed)) return agreed;
  return {
    ...formatOf(c, agreed),
    shape: agreed.shape,
    dropsManagedFields: agreed.dropsManagedFields,
    ifNoneMatch: c.req.header("If-None-Match"),
    gzip: prefersGzip(c.req.header("Accept-Encoding")),
  };
}

export type TextAround = (object: KubernetesObject, json: string) => string | undefined;

/** Turns objects of one resource into what a client asked for. */
export interface View {
  /** Views with the same name make the same event of the same object; `undefined`: not to be shared. */
  readonly sharedAs: string | undefined;
  /** Views with the same name make the same item of the same object at one time. */
  readonly itemsSharedAs: string;
  one(object: KubernetesObject): unknown;
  /** A list but for its items. */
  list(metadata: ListMeta): Record<string, unknown>;
  /** The member of the list that has the items. */
  readonly itemsField: "items" | "rows";
  /** Whether a list without items has `null` in their place. */
  readonly isNullIfEmpty?: true;
  /** Whether items have ages, which are those of the time at which they are written. */
  readonly hasAges?: true;
  item(object: KubernetesObject): unknown;
  event(object: KubernetesObject): unknown;
  /**
   * As `one` and `event`, and as `item`, from and to JSON text, if the view needs no look at the object. The
   * text is that of the object cut by `cut`, if the view has one.
   */
  readonly objectText?: (json: string) => string | undefined;
  readonly itemText?: (json: string) => string | undefined;
  readonly cut?: FieldCut;
  /** As `one`, `item` and `event`, as JSON text that has the object's own text in it. */
  readonly withText?: Readonly<Record<"one" | "item" | "event", TextAround>>;
  /** The fields in which two states must differ for an event to show anything new; all by default. */
  readonly shown?: FieldCut;
  bookmark(metadata: ObjectMeta): unknown;
}
