/** The parameters of what a screen shows: `fields`, `filter`, `sortBy`, pages of an order, groups. */

import { newStatus, type Status, type StatusCause } from "../meta/status.ts";
import { EACH, type FieldPathSegment } from "../text/field_path.ts";
import type { ObjectShape } from "./representations.ts";
import { type FieldFilter, parseFieldFilter } from "./field_filter.ts";
import type { SelectorLimits } from "./request_url.ts";
import {
  checkCount,
  pathText,
  readPaths,
  type ScreenPath,
  ScreenReader,
  ScreenSyntaxError,
} from "./screen_syntax.ts";
import { cutPaths } from "./screen_values.ts";

/** The path of a field to send: of all elements of an array, not of some. */
export interface ScreenFieldPath extends ScreenPath {
  readonly segments: readonly FieldPathSegment[];
}

/** The parameters besides `limit`, which lists have in any case. */
export const SCREEN_PARAMETERS = [
  "fields",
  "filter",
  "sortBy",
  "offset",
  "around",
  "groupBy",
  "sum",
] as const;

type ScreenParameter = typeof SCREEN_PARAMETERS[number];

/** The parameters of a query that an API server does not know; `undefined` where they are absent. */
export interface ScreenQuery {
  /** The only fields that are sent, in the order of their canonical text, none within another one. */
  readonly fields?: readonly ScreenFieldPath[];
  readonly filter?: FieldFilter;
  /** The sort keys, one or more. A list with them is a page of an order, a watch a window. */
  readonly sortBy?: readonly SortKey[];
  /** The number of rows of a page or a window; with `sortBy` only, otherwise it is the API's own. */
  readonly limit?: number;
  /** How many rows come before the page or window. */
  readonly offset?: number;
  /** The object in whose middle the page or window is: `namespace/name` or `name`. */
  readonly around?: string;
  /** The fields whose values are counted. */
  readonly groupBy?: readonly ScreenPath[];
  /** The fields whose values are added up in each group. */
  readonly sum?: readonly ScreenPath[];
}

export interface SortKey {
  readonly by:
    | { readonly type: "field" | "sum" | "count" | "min" | "max"; readonly path: ScreenPath }
    /** A column of the resource's Table; the name in lower case. */
    | { readonly type: "column"; readonly name: string };
  readonly isDescending: boolean;
  readonly text: string;
}

export interface ScreenQueryOptions {
  readonly verb: "get" | "list" | "watch";
  readonly shape: ObjectShape["kind"];
  /** Limits of the cost of a filter; none by default. */
  readonly limits?: SelectorLimits;
}

// The names of thousands would fit into a request.
const MOST_NEAR_MISSES = SCREEN_PARAMETERS.length;
const MOST_PATHS = 64;
const MOST_SORT_KEYS = 8;
const MOST_GROUP_PATHS = 4;
const MOST_WINDOW_ROWS = 1_000;

/** Reads and checks the parameters of screens; `undefined` if there are none. */
export function parseScreenQuery(
  searchParams: URLSearchParams,
  { verb, shape, limits }: ScreenQueryOptions,
): ScreenQuery | undefined | Status {
  const causes: StatusCause[] = [];
  for (const name of new Set(searchParams.keys())) {
    if (causes.length === MOST_NEAR_MISSES) break;
    const meant = nearMiss(name);
    if (meant !== undefined) causes.push(invalid(name, `unknown parameter; did you mean ${meant}?`));
  }
  const given = SCREEN_PARAMETERS.filter((name) => searchParams.has(name));
  if (given.length === 0 && causes.length === 0) return undefined;
  const query: { -readonly [P in keyof ScreenQuery]: ScreenQuery[P] } = {};
  const read = <P extends ScreenParameter | "limit">(
    name: P,
    reader: (text: string) => ScreenQuery[P],
  ): void => {
    const text = searchParams.get(name);
    if (text === null) return;
    try {
      if (searchParams.getAll(name).length > 1) {
        throw new ScreenSyntaxError("it is given twice; write it once, with commas between its parts");
      }
      query[name] = reader(text);
    } catch (error) {
      if (!(error instanceof ScreenSyntaxError)) throw error;
      causes.push(invalid(name, error.message));
    }
  };
  read("fields", (text) => withoutNested(readPaths(text, MOST_PATHS)));
  read("filter", (text) => parseFieldFilter(text, limits));
  read("sortBy", readSortKeys);
  if (searchParams.has("sortBy")) read("limit", readNumber);
  read("offset", readNumber);
  read("around", readKey);
  read("groupBy", (text) => readPaths(text, MOST_GROUP_PATHS));
  read("sum", (text) => readPaths(text, MOST_PATHS));
  if (causes.length === 0) {
    for (const [name, problem] of conflicts(query, verb, shape)) causes.push(invalid(name, problem));
  }
  return causes.length === 0 ? query : refusal(causes);
}

/** 400: the parameters of screens where they would be ignored; `problem` says why. */
export function refusedScreenQuery(searchParams: URLSearchParams, problem: string): Status | undefined {
  const given = SCREEN_PARAMETERS.filter((name) => searchParams.has(name));
  return given.length === 0 ? undefined : refusal(given.map((name) => invalid(name, problem)));
}

/** 400: a parameter of screens that cannot be answered. */
export function refusedParameter(name: ScreenParameter, problem: string): Status {
  return refusal([invalid(name, problem)]);
}

function refusal(causes: readonly StatusCause[]): Status {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  return newStatus(400, "BadRequest", texts.join("; and "), { causes });
}

function invalid(field: string, message: string): StatusCause {
  return { reason: "FieldValueInvalid", message, field };
}

/** Parameters that a query cannot have, and why. */
function conflicts(
  query: ScreenQuery,
  verb: ScreenQueryOptions["verb"],
  shape: ScreenQueryOptions["shape"],
): [ScreenParameter | "limit", string][] {
  const found: [ScreenParameter | "limit", string][] = [];
  const { fields, sortBy, limit, offset, around, groupBy, sum } = query;
  if (verb === "get") {
    for (const name of SCREEN_PARAMETERS) {
      if (name !== "fields" && query[name] !== undefined) {
        found.push([name, "one object is requested by its name; request a list or a watch"]);
      }
    }
  }
  if (fields !== undefined && shape === "PartialObjectMetadata") {
    found.push(["fields", `a ${shape} has its own fields; accept application/json`]);
  }
  if (groupBy !== undefined) {
    if (shape !== "object") found.push(["groupBy", `groups are no ${shape}; accept application/json`]);
    if (sortBy !== undefined) found.push(["groupBy", "groups have no order of objects; leave out sortBy"]);
    if (fields !== undefined) found.push(["groupBy", "groups have no objects; leave out fields"]);
  } else if (sum !== undefined) found.push(["sum", "sums are of groups; say by which fields in groupBy"]);
  if (sortBy === undefined) {
    const why = "places are those of an order; say of which in sortBy";
    if (offset !== undefined) found.push(["offset", why]);
    if (around !== undefined) found.push(["around", why]);
  } else {
    if (offset !== undefined && around !== undefined) {
      found.push(["around", "offset says where already; leave out one of them"]);
    }
    const isWindow = verb === "watch";
    if (isWindow && (limit === undefined || limit < 1 || limit > MOST_WINDOW_ROWS)) {
      found.push(["limit", `a window has 1 to ${MOST_WINDOW_ROWS.toLocaleString("en")} rows; say how many`]);
    }
  }
  return found;
}

/** Paths in the order of their text, without those below another one, which has them already. */
function withoutNested(paths: readonly ScreenPath[]): ScreenFieldPath[] {
  for (const { text, segments } of paths) {
    if (segments.every((segment) => typeof segment === "string" || segment === EACH)) continue;
    throw new ScreenSyntaxError(`${text} is of some elements of an array; write [], all of them are sent`);
  }
  return cutPaths(paths).map((segments) => ({ text: pathText(segments), segments }))
    .sort((a, b) => a.text < b.text ? -1 : 1);
}

const FUNCTION = /(?:sum|count|min|max|column)(?=\()/y;
const DIRECTION = /:(?:asc|desc)(?=[, ]|$)/y;
const COLUMN = /[^()",]+(?:\([^()",]*\))?/y;

function readSortKeys(text: string): SortKey[] {
  const reader = new ScreenReader(text);
  const keys: SortKey[] = [];
  do {
    const by = readSortedBy(reader);
    const direction = reader.match(DIRECTION);
    if (direction === undefined && !reader.isDone && reader.text[reader.at] !== ",") {
      throw reader.error(
        "there is no comma behind a key",
        "write :asc, :desc, or the next key behind a comma",
      );
    }
    const isDescending = direction === ":desc";
    const what = by.type === "column"
      ? `column(${JSON.stringify(by.name)})`
      : by.type === "field"
      ? by.path.text
      : `${by.type}(${by.path.text})`;
    keys.push({ by, isDescending, text: isDescending ? `${what}:desc` : what });
  } while (reader.next());
  checkCount("keys", keys.length, MOST_SORT_KEYS);
  return keys;
}

function readSortedBy(reader: ScreenReader): SortKey["by"] {
  const name = reader.match(FUNCTION);
  if (name === undefined) {
    const path = reader.path();
    if (reader.text[reader.at] === "(") {
      throw reader.error(
        `there is no function ${path.text}`,
        "write sum(path), count(path), min(path), max(path) or column(name)",
      );
    }
    return { type: "field", path };
  }
  reader.require("(", "write what it is of in parentheses");
  const by: SortKey["by"] = name === "column"
    ? { type: name, name: (reader.string() ?? reader.match(COLUMN)?.trim() ?? "").toLowerCase() }
    : { type: name as "sum" | "count" | "min" | "max", path: reader.path() };
  if (by.type === "column" && by.name === "") {
    throw reader.error("the name of a column is missing", "write column(Restarts)");
  }
  reader.require(")", "close the parenthesis");
  return by;
}

function readNumber(text: string): number {
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  throw new ScreenSyntaxError(
    `${JSON.stringify(text.slice(0, 20))} is no number of rows; write 0 to 999999999`,
  );
}

function readKey(text: string): string {
  if (/^(?:[^/]+\/)?[^/]+$/.test(text)) return text;
  throw new ScreenSyntaxError(
    `${JSON.stringify(text.slice(0, 80))} names no object; write namespace/name, or the name of one without`,
  );
}

/** The parameters meant by names that are spelt quite differently. */
const MEANT: Readonly<Record<string, ScreenParameter>> = {
  sort: "sortBy",
  sorts: "sortBy",
  order: "sortBy",
  orderby: "sortBy",
  group: "groupBy",
  groups: "groupBy",
  sums: "sum",
};

/** The parameter that is meant by one that is none, but for its case, signs in it, or a letter. */
function nearMiss(name: string): ScreenParameter | undefined {
  if (name.length > 20 || (SCREEN_PARAMETERS as readonly string[]).includes(name)) return undefined;
  const letters = name.toLowerCase().replace(/[^a-z]/g, "");
  if (Object.hasOwn(MEANT, letters)) return MEANT[letters];
  return SCREEN_PARAMETERS.find((parameter) => {
    const known = parameter.toLowerCase();
    return letters === known || known.length >= 5 && isOneOff(letters, known);
  });
}

/** Whether two texts are the same but for one letter that is more, less or another one, or two swapped. */
function isOneOff(a: string, b: string): boolean {
  if (a.length > b.length) return isOneOff(b, a);
  if (b.length - a.length > 1) return false;
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  if (a.length < b.length) return a.slice(i) === b.slice(i + 1);
  return a.slice(i + 1) === b.slice(i + 1) ||
    a[i] === b[i + 1] && a[i + 1] === b[i] && a.slice(i + 2) === b.slice(i + 2);
}
