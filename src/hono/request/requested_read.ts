/** What a GET of a resource asks for. */

import type { Context } from "hono";
import {
  type ListQuery,
  type ListQueryRefusal,
  parseGetQuery,
  parseListQuery,
  queryParameters,
  wantsWatch,
} from "../../protocol/list_query.ts";
import type { ResourcePath } from "../../protocol/resource_path.ts";
import type { FieldRules } from "../../protocol/selectable_fields.ts";

/** A watch that is requested as server-sent events, as the watch that it means. */
interface EventStreamRequest {
  /** What the events are to be, without `text/event-stream`. */
  readonly accept: string;
  /** With bookmarks, and with what the reader has seen already as the resourceVersion. */
  readonly searchParams: URLSearchParams;
}

/** What a GET of a resource asks for, before it is decided. */
export interface RequestedRead {
  readonly verb: "get" | "list" | "watch";
  /** The object that is named, by the path or by a field selector; `""` if there is none. */
  readonly name: string;
  readonly query: ListQuery | ListQueryRefusal;
  readonly searchParams: URLSearchParams;
  readonly events: EventStreamRequest | undefined;
}

// A thousand values of the longest kind, and keys for a hundred requirements.
const MAX_QUERY_TEXT = 128 * 1024;

/** Reads the path and the query of a GET. `isList`: the path has no watches. */
export function requestedRead(
  c: Context,
  { path, fields, isList, settings }: {
    readonly path: ResourcePath;
    /** The fields that the resource can be selected by; `undefined` if another server knows. */
    readonly fields: (() => FieldRules) | undefined;
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
  const query = isOne ? parseGetQuery(searchParams) : parseListQuery(searchParams, {
    ...(mustWatch !== undefined && { watch: mustWatch }),
    ...(path.isWatch && path.name !== "" && { name: path.name }),
    fields,
    limits: {
      maxRequirements: settings.maxSelectorRequirements,
      maxValues: settings.maxSelectorValues,
      maxTextLength: MAX_QUERY_TEXT,
    },
  });
  const isWatch = query.ok ? query.watch : mustWatch ?? (wantsWatch(searchParams) && !isOne);
  const verb = isOne ? "get" : isWatch ? "watch" : "list";
  const name = path.name || (query.ok && query.fields?.requiresExactMatch("metadata.name")) || "";
  return { verb, name, query, searchParams, events };
}

// A merged resourceVersion has a version for each shard.
const LAST_EVENT_ID = /^[1-9][0-9]{0,19999}$/;

/** What a request for server-sent events means; `undefined` for every other request. */
function eventStreamRequest(c: Context, searchParams: URLSearchParams): EventStreamRequest | undefined {
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
