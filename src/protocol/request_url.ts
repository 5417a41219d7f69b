/** The parts of a URL: the path of a resource or an object, and the query of a get, a list or a watch. */

import { errorMessage } from "../util/errors.ts";
import { escapeFieldValue, type FieldSelector, parseFieldSelector } from "../meta/fields.ts";
import { type LabelSelector, parseLabelSelector } from "../meta/labels.ts";
import { decodeContinue } from "./continue_token.ts";
import type { FieldRules } from "./selectable_fields.ts";
import { parseShardSelector } from "./shard_selector.ts";
import type { ListOptions } from "../meta/list_watch.ts";
import { isMergedVersion } from "../meta/merged_version.ts";
import type { ShardSelector } from "../meta/shard_hash.ts";
import { newStatus, type Status, type StatusCause } from "../meta/status.ts";
import { defined } from "../util/json.ts";
import {
  forbiddenField,
  invalidFields,
  isStatus,
  parseDuration,
  quotedByGo,
  quotedStart,
  requestTimedOut,
  shortened,
} from "./statuses.ts";

/** A path of a resource, split into its parts. */
export interface ResourcePath {
  /** `""` for the core group. */
  readonly group: string;
  readonly version: string;
  /** `""`: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  readonly resource: string;
  /** `""` for a collection. */
  readonly name: string;
  /** The subresource, such as `status`; `""` if the path has none. */
  readonly subresource: string;
  /** Whether the path is one of the old paths of watches, such as `/api/v1/watch/pods`. */
  readonly isWatch: boolean;
  /** The whole path, decoded. */
  readonly path: string;
}

/** The segments of a path, without slashes at its end; `undefined` if a percent sign escapes nothing. */
export function pathSegments(path: string): string[] | undefined {
  const segments = decodedPath(path)?.split("/").slice(1);
  if (segments === undefined) return undefined;
  while (segments.at(-1) === "") segments.pop();
  return segments;
}

/** Decodes a path; bytes that are no UTF-8 become U+FFFD. `undefined` if a percent sign escapes nothing. */
export function decodedPath(text: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  if (!text.includes("%")) return text;
  const bytes: number[] = [];
  for (const [, hex, rest] of text.matchAll(/%(..)|([^%]+)/gs)) {
    if (hex !== undefined) bytes.push(parseInt(hex, 16));
    else bytes.push(...new TextEncoder().encode(rest));
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}

// After the name of a namespace, these are not resources in it:
// https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/request/requestinfo.go
// (namespaceSubresources)
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(["status", "finalize"]);

/** Reads the path of a resource, an object or a subresource; `undefined` for every other path. */
export function parseResourcePath(segments: readonly string[]): ResourcePath | undefined {
  const [root, ...below] = segments;
  if (root !== "api" && root !== "apis") return undefined;
  const [group, version, ...all] = root === "api" ? ["", ...below] : below;
  const isWatch = all[0] === "watch" && all.length > 1;
  const rest = isWatch ? all.slice(1) : all;
  if (!version || (root === "apis" && !group) || rest.length === 0) return undefined;
  const isInNamespace = rest[0] === "namespaces" && rest.length > 2 &&
    !(rest.length === 3 && NAMESPACE_SUBRESOURCES.has(rest[2]));
  const namespace = isInNamespace ? rest[1] : "";
  const own = isInNamespace ? rest.slice(2) : rest;
  const [resource, name = "", subresource = "", ...more] = own;
  // An empty namespace means all of them, if there is no name.
  const hasGap = own.includes("") || (isInNamespace && namespace === "" && name !== "");
  if (hasGap || more.length > 0 || (isWatch && subresource !== "")) return undefined;
  return { group, version, namespace, resource, name, subresource, isWatch, path: `/${segments.join("/")}` };
}

export interface ListQuery {
  readonly watch: boolean;
  /** The options, without those that are absent, empty or have no effect (`limit=0`, `limit=-1`). */
  readonly options: ListOptions;
  /** The parsed `labelSelector`; `undefined` where it selects everything. */
  readonly labels: LabelSelector | undefined;
  /** The parsed `fieldSelector`; `undefined` where it selects everything. */
  readonly fields: FieldSelector | undefined;
  /** The parsed `shardSelector`; `undefined` without one. */
  readonly shard: ShardSelector | undefined;
}

export interface ListQueryOptions {
  /** Overrules the query's `watch`. */
  readonly watch?: boolean;
  /** The only object: a `fieldSelector` must name it, too, or be absent. */
  readonly name?: string;
  /** The fields a `fieldSelector` may name; asked only if there is one. Any by default. */
  readonly fields?: (() => FieldRules) | undefined;
  /** Limits of the cost of a query; none by default, as in an API server. */
  readonly limits?: SelectorLimits;
}

/** Limits of the cost of a selector: its requirements, the values of all of them together, its characters. */
export interface SelectorLimits {
  readonly maxRequirements: number;
  readonly maxValues: number;
  readonly maxTextLength: number;
}

/**
 * Reads and checks the query of a list or watch request. Unknown parameters (`pretty`) are ignored, and of a
 * repeated parameter the first one counts. A watch without a resourceVersion or from `0` gets
 * `sendInitialEvents` unless the query sets it, as in API servers since 1.34.
 *
 * A malformed number, selector or resourceVersion is refused with 400, options that contradict each other
 * with 422. Mirrors apiserver's decoding and `ValidateListOptions` with their texts, and that a malformed
 * resourceVersion of a watch is refused with 500, without a reason. A watch ignores `continue`.
 */
export function parseListQuery(
  searchParams: URLSearchParams,
  options: ListQueryOptions = {},
): ListQuery | Status {
  const watch = options.watch ?? wantsWatch(searchParams);
  try {
    // The order of the checks is that of an API server.
    const given = decode(searchParams);
    const { limits } = options;
    checkLength("label", given.labelSelector, limits);
    checkLength("field", given.fieldSelector, limits);
    checkLength("shard", given.shardSelector, limits);
    const labels = given.labelSelector === "" ? undefined : parseLabelSelector(given.labelSelector);
    const ofName = options.name === undefined ? "" : `metadata.name=${escapeFieldValue(options.name)}`;
    const fieldSelector = given.fieldSelector || ofName;
    const fields = fieldSelector === "" ? undefined : parseFieldSelector(fieldSelector);
    // The options of a watch by its path, which is older than they are, are those of a list.
    const isWatch = options.watch !== false && wantsWatch(searchParams);
    const query = withLegacyDefaults(given, watch);
    const causes = isWatch ? watchCauses(query) : listCauses(given);
    if (causes.length > 0) {
      return invalidFields("ListOptions.meta.k8s.io", { group: "meta.k8s.io", kind: "ListOptions", causes });
    }
    if (labels) checkCost("label", labels.requirements.map(({ values }) => values.length), limits);
    if (fields) checkCost("field", fields.requirements.map(() => 1), limits);
    if (fields && options.fields) checkFields(fields, options.fields());
    if (options.name !== undefined && fields?.requiresExactMatch("metadata.name") !== options.name) {
      return badRequest("fieldSelector metadata.name doesn't match requested name");
    }
    const shard = given.shardSelector === "" ? undefined : parseShardSelector(given.shardSelector);
    if (shard) checkCost("shard", shard.ranges.map(() => 1), limits);
    if (!watch && query.continue !== "" && query.resourceVersion !== "" && query.resourceVersion !== "0") {
      // The version is not read: the token is, and says first what is wrong with it.
      const token = decodeContinue(query.continue);
      if (isStatus(token)) return token;
      return badRequest("specifying resource version is not allowed when using continue");
    }
    const versionProblem = resourceVersionProblem(query.resourceVersion);
    if (versionProblem !== undefined) {
      return watch
        ? newStatus(500, "", versionProblem)
        : badRequest(`invalid resource version: ${versionProblem}`);
    }
    return {
      watch,
      options: listOptions(query, watch),
      labels: labels?.empty ? undefined : labels,
      fields: fields?.empty ? undefined : fields,
      shard,
    };
  } catch (error) {
    return badRequest(errorMessage(error));
  }
}

function badRequest(message: string): Status {
  return newStatus(400, "BadRequest", message);
}

/**
 * Reads the query of a get, in which only the resourceVersion counts; a malformed one is refused with 500,
 * and `export`, which lists ignore, with 400.
 */
export function parseGetQuery(searchParams: URLSearchParams): ListQuery | Status {
  if (boolean(searchParams, "export")) {
    return badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  }
  const version = searchParams.get("resourceVersion") ?? "";
  const problem = resourceVersionProblem(version);
  if (problem !== undefined) return newStatus(500, "", problem);
  const options = version === "" ? {} : { resourceVersion: withoutLeadingZeros(version) };
  return { watch: false, options, labels: undefined, fields: undefined, shard: undefined };
}

/**
 * The parameters of a query, without those that are malformed: an API server ignores a parameter with a
 * semicolon or with a percent sign that escapes nothing.
 */
export function queryParameters(search: string): URLSearchParams {
  const isMalformed = (pair: string) => pair.includes(";") || /%(?![0-9A-Fa-f]{2})/.test(pair);
  const pairs = search.replace(/^\?/, "").split("&").filter((pair) => !isMalformed(pair));
  // A question mark at the beginning is a part of the first name.
  return new URLSearchParams(`&${pairs.join("&")}`);
}

/** The parameters of lists and watches that clients of an API server send. */
export const LIST_PARAMETERS: ReadonlySet<string> = new Set([
  "allowWatchBookmarks",
  "continue",
  "fieldSelector",
  "labelSelector",
  "limit",
  "resourceVersion",
  "resourceVersionMatch",
  "sendInitialEvents",
  "shardSelector",
  "timeout",
  "timeoutSeconds",
  "watch",
]);

/** The query with numbers and booleans decoded. */
type RawQuery = ReturnType<typeof decode>;

function decode(params: URLSearchParams) {
  const text = (name: string): string => params.get(name) ?? "";
  return {
    resourceVersion: text("resourceVersion"),
    resourceVersionMatch: text("resourceVersionMatch"),
    continue: text("continue"),
    labelSelector: text("labelSelector"),
    fieldSelector: text("fieldSelector"),
    shardSelector: text("shardSelector"),
    timeoutSeconds: integer(params, "timeoutSeconds"),
    limit: integer(params, "limit"),
    allowWatchBookmarks: boolean(params, "allowWatchBookmarks"),
    sendInitialEvents: boolean(params, "sendInitialEvents"),
  };
}

function checkLength(kind: string, selector: string, limits: SelectorLimits | undefined): void {
  if (limits) checkLimit(kind, "characters", selector.length, limits.maxTextLength, "");
}

function checkCost(kind: string, values: readonly number[], limits: SelectorLimits | undefined): void {
  if (limits === undefined) return;
  const hint = "; select more objects, and filter the answer";
  checkLimit(kind, "requirements", values.length, limits.maxRequirements, hint);
  checkLimit(kind, "values", values.reduce((sum, ofOne) => sum + ofOne, 0), limits.maxValues, hint);
}

function checkLimit(kind: string, what: string, count: number, most: number, hint: string): void {
  if (count <= most) return;
  throw new RangeError(
    `the ${kind} selector has ${count} ${what}, and at most ${most} are accepted here${hint}`,
  );
}

/** Whether a query asks for a watch, also if the query is not valid. */
export function wantsWatch(searchParams: URLSearchParams): boolean {
  return boolean(searchParams, "watch") ?? false;
}

/** Whether a query asks for a log that is followed. */
export function wantsFollow(searchParams: URLSearchParams): boolean {
  return boolean(searchParams, "follow") ?? false;
}

// Kubernetes' booleans: everything but "0" and "false" is true, the empty value too.
function boolean(params: URLSearchParams, name: string): boolean | undefined {
  const value = params.get(name);
  return value === null ? undefined : value !== "0" && !/^false$/iu.test(value);
}

/** @throws {TypeError | RangeError} The parameter is no integer of 64 bits. */
export function integer(params: URLSearchParams, name: string): number | undefined {
  const value = params.get(name);
  if (value === null) return undefined;
  const problem = (what: string) => `strconv.ParseInt: parsing ${quotedByGo(shortened(value))}: ${what}`;
  if (!/^[+-]?[0-9]+$/.test(value)) throw new TypeError(problem("invalid syntax"));
  if (value.length > MAX_DIGITS) throw new RangeError(problem("value out of range"));
  const number = BigInt(value.replace(/^\+/, ""));
  if (BigInt.asIntN(64, number) !== number) throw new RangeError(problem("value out of range"));
  return Number(number);
}

/**
 * The Status that refuses a `timeout` that is no duration, or is over before there can be an answer: the
 * first thing that an API server looks at in a request for anything but a watch or another stream:
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/filters/request_deadline.go
 */
export function refusedTimeout(timeout: number | string): Status | undefined {
  if (typeof timeout === "string") {
    return badRequest(`invalid timeout specified in the request URL - ${timeout}`);
  }
  return timeout > 0 && timeout < 1 ? requestTimedOut() : undefined;
}

/** The `timeout` of a request in milliseconds, where 0 or less is none; or what is wrong with it. */
export function timeoutOf(url: string): number | string {
  const timeout = queryParameters(new URL(url).search).get("timeout") ?? "";
  return timeout === "" ? 0 : parseDuration(shortened(timeout));
}

// Leading zeros included; it takes long to make a number of very many digits.
const MAX_DIGITS = 1_000;

const MATCH = "resourceVersionMatch";

function listCauses(query: RawQuery): StatusCause[] {
  const causes: StatusCause[] = [];
  const { resourceVersionMatch: match, resourceVersion } = query;
  if (match !== "") {
    if (resourceVersion === "") {
      causes.push(forbiddenField(MATCH, `${MATCH} is forbidden unless resourceVersion is provided`));
    }
    if (query.continue !== "") causes.push(matchWithContinue());
    if (match !== "Exact" && match !== "NotOlderThan") {
      causes.push(unsupported(MATCH, match, ["Exact", "NotOlderThan", ""]));
    }
    if (match === "Exact" && resourceVersion === "0") {
      causes.push(forbiddenField(MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`));
    }
  }
  if (query.sendInitialEvents !== undefined) {
    causes.push(forbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  return causes;
}

function watchCauses(query: RawQuery): StatusCause[] {
  const causes: StatusCause[] = [];
  const { resourceVersionMatch: match, sendInitialEvents } = query;
  if (sendInitialEvents !== undefined && match !== "NotOlderThan") {
    causes.push(forbiddenField(MATCH, `sendInitialEvents requires setting ${MATCH} to NotOlderThan`));
  }
  if (match !== "") {
    if (sendInitialEvents === undefined) {
      causes.push(
        forbiddenField(MATCH, `${MATCH} is forbidden for watch unless sendInitialEvents is provided`),
      );
    }
    if (match !== "NotOlderThan") causes.push(unsupported(MATCH, match, ["NotOlderThan"]));
    if (query.continue !== "") causes.push(matchWithContinue());
  }
  return causes;
}

function matchWithContinue(): StatusCause {
  return forbiddenField(MATCH, `${MATCH} is forbidden when continue is provided`);
}

function unsupported(field: string, value: string, supported: readonly string[]): StatusCause {
  const values = supported.map((text) => JSON.stringify(text)).join(", ");
  return {
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${quotedStart(value)}: supported values: ${values}`,
    field,
  };
}

function resourceVersionProblem(version: string): string | undefined {
  // A merged one has a version for each shard.
  if (version === "" || version === "0" || isMergedVersion(version)) return undefined;
  const isNumber = /^[0-9]+$/.test(version);
  if (isNumber && version.length <= MAX_DIGITS && BigInt.asUintN(64, BigInt(version)) === BigInt(version)) {
    return undefined;
  }
  const quoted = quotedByGo(shortened(version));
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ` +
    (isNumber ? "value out of range" : "invalid syntax");
}

function checkFields(selector: FieldSelector, { selectableFields, unsupportedField }: FieldRules): void {
  for (const { field } of selector.requirements) {
    if (!selectableFields.includes(field)) throw new TypeError(unsupportedField(shortened(field)));
  }
}

/** A watch from the start sends initial events unless it says otherwise; checked like what a client says. */
function withLegacyDefaults(query: RawQuery, watch: boolean): RawQuery {
  const isFromStart = /^0*$/.test(query.resourceVersion);
  if (!watch || !isFromStart || query.sendInitialEvents !== undefined) return query;
  if (query.resourceVersionMatch !== "") return query;
  return { ...query, sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" };
}

// Makes versions comparable as text.
function withoutLeadingZeros(version: string): string {
  return version.replace(/^0+(?=[0-9])/, "");
}

function listOptions(query: RawQuery, watch: boolean): ListOptions {
  const { labelSelector, fieldSelector, continue: token, timeoutSeconds, sendInitialEvents } = query;
  // An API server takes a page for one of its cache by the text "0" only, and reads the number behind that.
  const isLatest = !watch && (query.limit ?? 0) > 0 && /^00+$/.test(query.resourceVersion);
  const resourceVersion = isLatest ? "" : withoutLeadingZeros(query.resourceVersion);
  const match = isLatest ? "" : query.resourceVersionMatch as ListOptions["resourceVersionMatch"] | "";
  return defined<ListOptions>({
    resourceVersion: resourceVersion || undefined,
    resourceVersionMatch: match || undefined,
    limit: query.limit !== undefined && query.limit > 0 ? query.limit : undefined,
    continue: watch ? undefined : token || undefined,
    labelSelector: labelSelector || undefined,
    fieldSelector: fieldSelector || undefined,
    shardSelector: query.shardSelector || undefined,
    timeoutSeconds,
    allowWatchBookmarks: (watch && query.allowWatchBookmarks) || undefined,
    sendInitialEvents,
  });
}
