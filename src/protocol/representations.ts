/**
 * The form in which a request wants its answer: the headers `Accept`, `Accept-Encoding`, `User-Agent` and
 * `If-None-Match`; and JSON as an API server writes it.
 */

import { groupVersion, type GroupVersionKind } from "../meta/resource.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { type ApiResource, isBuiltinGroup } from "./api_resource.ts";
import { noRouteProduces, notAcceptable } from "./statuses.ts";
import {
  afterSpace,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  closingQuote,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "../text/json_walk.ts";

/** One alternative of an `Accept` header: its media type, its preference, and its other parameters. */
interface AcceptClause {
  readonly type: string;
  readonly subtype: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Reads an `Accept` header: clauses in the order of preference, without those that are not media types. As in
 * an API server, upper and lower case differ, quotation marks are part of a value, a quality that is no
 * number is 0, and a quality of 0 excludes nothing. Clauses after the first 128 are ignored, as their order
 * costs the square of their number.
 *
 * Mirrors https://github.com/munnerz/goautoneg, its order
 * included: `text/html;q=0.1` comes before a wildcard.
 */
function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of header.split(",", MAX_CLAUSES)) {
    const [mediaRange, ...rest] = part.trim().split(";");
    const [type, subtype = type === "*" ? "*" : "", ...more] = mediaRange.split("/").map((text) =>
      text.trim()
    );
    if (subtype === "" || more.length > 0) continue;
    const parameters = new Map<string, string>();
    let quality = 1;
    for (const parameter of rest) {
      const [name, value = "", ...more] = parameter.split("=");
      if (value === "" || more.length > 0) continue;
      if (name.trim() === "q") quality = NUMBER.test(value) ? Number(value) : 0;
      else parameters.set(name.trim(), value.trim());
    }
    const clause = { type, subtype, quality, parameters };
    let i = clauses.length;
    while (i > 0 && comesBefore(clause, clauses[i - 1])) i--;
    clauses.splice(i, 0, clause);
  }
  return clauses;
}

// Browsers send eight at most, kubectl three.
const MAX_CLAUSES = 128;
const NUMBER = /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/;

// Not an order (each of two clauses may come before the other), so how it is applied matters, too.
function comesBefore(a: AcceptClause, b: AcceptClause): boolean {
  return a.quality > b.quality || (a.type !== "*" && b.type === "*") ||
    (a.subtype !== "*" && b.subtype === "*");
}

/** A media type that answers are written in. */
export type MediaType = "application/json" | "application/yaml";

export const JSON_ONLY: readonly MediaType[] = ["application/json"];
export const JSON_AND_YAML: readonly MediaType[] = ["application/json", "application/yaml"];

export interface Representation {
  readonly mediaType: MediaType;
  /** The kind that the answer is converted to (`as`, `g`, `v`), such as a Table; `undefined`: none. */
  readonly convertTo: GroupVersionKind | undefined;
  /** Whether the `Accept` header asks for an indented answer. */
  readonly pretty: boolean;
  /** Whether the answer is to come without `metadata.managedFields` (`drop`). */
  readonly dropsManagedFields: boolean;
}

/**
 * Chooses the representation to answer with; `undefined` if the client accepts none (406). Without a header
 * it is the first media type. `stream` is accepted only as `watch`, of JSON, and `drop` only as
 * `metadata.managedFields`; unknown parameters are ignored.
 * @param options.mediaTypes The media types that can be served, the default first.
 * @param options.converts Whether the answer can be converted to this
 * kind (`undefined`: not converted, the default).
 * @param options.serverVersion The version that `sv` may name; none by default.
 *
 * Mirrors `NegotiateMediaTypeOptions` of
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/negotiation/negotiate.go
 */
export function negotiate(
  header: string | null | undefined,
  { mediaTypes, converts = (kind) => kind === undefined, serverVersion = "" }: {
    readonly mediaTypes: readonly MediaType[];
    readonly converts?: (kind: GroupVersionKind | undefined) => boolean;
    readonly serverVersion?: string;
  },
): Representation | undefined {
  if (!header) {
    return { mediaType: mediaTypes[0], convertTo: undefined, pretty: false, dropsManagedFields: false };
  }
  for (const { type, subtype, parameters } of parseAccept(header)) {
    for (const mediaType of mediaTypes) {
      const [offeredType, offeredSubtype] = mediaType.split("/");
      const isOffered = type === offeredType ? subtype === offeredSubtype || subtype === "*" : type === "*";
      if (!isOffered || (type === "*" && subtype !== "*")) continue;
      if ((parameters.get("sv") ?? serverVersion) !== serverVersion) continue;
      const stream = parameters.get("stream");
      if (stream !== undefined && (stream !== "watch" || mediaType !== "application/json")) continue;
      const drop = parameters.get("drop");
      if (drop !== undefined && drop !== "metadata.managedFields") continue;
      const convertTo = conversion(parameters);
      if (!converts(convertTo)) continue;
      return {
        mediaType,
        convertTo,
        pretty: parameters.get("pretty") === "1",
        dropsManagedFields: drop !== undefined,
      };
    }
  }
  return undefined;
}

function conversion(parameters: ReadonlyMap<string, string>): GroupVersionKind | undefined {
  if (!["as", "g", "v"].some((name) => parameters.has(name))) return undefined;
  const [kind = "", group = "", version = ""] = ["as", "g", "v"].map((name) => parameters.get(name));
  return { group, version, kind };
}

/**
 * Whether a route that produces these media types is chosen for the header: one of them, or any type, is
 * named.
 *
 * An API server checks this besides {@linkcode negotiate}, for its own resources only:
 * https://github.com/emicklei/go-restful/blob/v3/route.go (`matchesAccept`)
 */
export function matchesRoute(header: string | null | undefined, produces: readonly string[]): boolean {
  if (!header) return true;
  return header.split(",").some((clause) => {
    const mediaType = clause.split(";", 1)[0].trim();
    return mediaType === "*/*" || produces.includes(mediaType);
  });
}

/** The shape that the objects of an answer are converted to. */
export type ObjectShape =
  | { readonly kind: "object" }
  | { readonly kind: "Table" | "PartialObjectMetadata"; readonly apiVersion: MetaVersion };

export type MetaVersion = "meta.k8s.io/v1" | "meta.k8s.io/v1beta1";

const META_VERSIONS: ReadonlySet<string> = new Set<MetaVersion>(["meta.k8s.io/v1", "meta.k8s.io/v1beta1"]);

/** How to answer a request for objects. */
export interface NegotiatedShape extends Omit<Representation, "convertTo"> {
  /** The shape; refused (406) are a list as an object, an object as a list, a watch in another media type. */
  readonly shape: ObjectShape | { readonly kind: "refused"; readonly status: Status };
}

/**
 * The shape that the `Accept` header asks for; a Status (406) where the server has nothing that the client
 * accepts.
 *
 * An API server refuses in two steps: this Status comes before any other look at the request, the one in
 * `shape` instead of a successful answer.
 */
export function negotiateShape(
  resource: ApiResource,
  { accept, verb, mediaTypes = JSON_ONLY, tables = true }: {
    readonly accept: string | null | undefined;
    readonly verb: "get" | "list" | "watch";
    /** The media types of the answer, the default first; only JSON by default. */
    readonly mediaTypes?: readonly MediaType[];
    /** Whether Tables are served. Default: true. */
    readonly tables?: boolean;
  },
): NegotiatedShape | Status {
  const stream = ["application/json;stream=watch"];
  if (!matchesRoute(accept, mediaTypes) && isBuiltinGroup(resource.group)) {
    return noRouteProduces(verb === "get" ? mediaTypes : [...mediaTypes, ...stream]);
  }
  const agreed = negotiate(accept, {
    mediaTypes,
    serverVersion: "v1",
    converts: (target) =>
      target === undefined || META_VERSIONS.has(groupVersion(target)) &&
        (target.kind === "Table" ? tables : /^PartialObjectMetadata(List)?$/.test(target.kind)),
  });
  if (agreed === undefined) return notAcceptable(mediaTypes);
  const { convertTo, ...form } = agreed;
  if (verb === "watch" && form.mediaType !== "application/json") {
    return { ...form, shape: { kind: "refused", status: notAcceptable(stream) } };
  }
  if (convertTo === undefined) return { ...form, shape: { kind: "object" } };
  const { kind } = convertTo;
  const apiVersion = groupVersion(convertTo) as MetaVersion;
  if (kind === "Table") return { ...form, shape: { kind, apiVersion } };
  // A client asks for a list by the kind of the list, and for single objects by the single kind.
  if ((kind === "PartialObjectMetadataList") === (verb === "list")) {
    return { ...form, shape: { kind: "PartialObjectMetadata", apiVersion } };
  }
  const type = goType(resource, verb === "list");
  const what = verb === "list" ? `a list (${type})` : `not a list (${type})`;
  const message = `you requested ${kind}, but the requested object is ${what}`;
  const status = newStatus(406, "NotAcceptable", message);
  return { ...form, shape: { kind: "refused", status } };
}

/** The type that an API server names. */
function goType({ group, kind }: ApiResource, isList: boolean): string {
  if (!isBuiltinGroup(group)) return isList ? "*unstructured.UnstructuredList" : "*unstructured.Unstructured";
  const name = group === "" || group === "events.k8s.io" ? "core" : group.split(".")[0];
  return `*${name}.${kind}${isList ? "List" : ""}`;
}

export function partialMetadata(object: KubernetesObject, apiVersion: string): KubernetesObject {
  return { kind: "PartialObjectMetadata", apiVersion, metadata: object.metadata ?? {} };
}

/**
 * Whether the client wants indented JSON: the query's `pretty`, else whether the client is a browser, curl or
 * Wget.
 *
 * Mirrors `isPrettyPrint` of
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/negotiation/negotiate.go
 */
export function wantsPretty(searchParams: URLSearchParams, userAgent: string | null | undefined): boolean {
  const pretty = searchParams.get("pretty");
  // The spellings of Go's strconv.ParseBool.
  if (pretty !== null && pretty !== "") return /^(1|[tT]|true|TRUE|True)$/.test(pretty);
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? "");
}

/**
 * Whether a reader prefers gzip, by its `Accept-Encoding`: it names gzip or `*`, and not with a lower quality
 * than `identity`. `false` on a runtime that cannot compress.
 */
export function prefersGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined || typeof CompressionStream === "undefined") return false;
  const qualities = new Map<string, number>();
  for (const part of acceptEncoding.split(",")) {
    const [name, ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    const value = quality === undefined
      ? 1
      : /^(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$/.test(quality)
      ? Number(quality)
      : 0;
    if (!qualities.has(name)) qualities.set(name, value);
  }
  const gzip = qualities.get("gzip") ?? qualities.get("x-gzip") ?? qualities.get("*") ?? 0;
  return gzip > 0 && gzip >= (qualities.get("identity") ?? 0);
}

/** A document as an API server writes it: with a line break at its end unless it is indented. */
export function jsonText(document: unknown, options: { readonly pretty?: boolean } = {}): string {
  const json = JSON.stringify(document);
  return options.pretty ? indentedText(json) : `${escaped(json)}\n`;
}

/** JSON with the escapes of Go's encoder, as of API servers: https://pkg.go.dev/encoding/json#Marshal */
export function escaped(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Each level indents every line below it: 50 KB can hold 10,000 levels, and would become 400 MB.
const INDENTED_LEVELS = 200;

/** JSON text with line breaks and indents; as it is if it has more than 200 levels. No digit changes. */
export function indentedText(json: string): string {
  let text = "";
  let indent = "\n";
  let from = 0;
  const breakLine = (to: number, next: number) => {
    text += json.slice(from, to) + indent;
    from = next;
  };
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) i = closingQuote(json, i);
    else if (code === COMMA) breakLine(i + 1, i + 1);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      const next = afterSpace(json, i + 1);
      const isEmpty = json.charCodeAt(next) === (code === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET);
      if (!isEmpty) {
        indent += "  ";
        if (indent.length > 2 * INDENTED_LEVELS + 1) return escaped(json);
        breakLine(i + 1, i + 1);
        continue;
      }
      text += json.slice(from, i + 1);
      from = next;
      i = next;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      indent = indent.slice(0, -2);
      breakLine(i, i);
    } else if (code === COLON) {
      text += `${json.slice(from, i + 1)} `;
      from = i + 1;
    } else if (code <= SPACE) {
      text += json.slice(from, i);
      from = i + 1;
    }
  }
  return escaped(text + json.slice(from));
}

/** Whether an `If-None-Match` has a tag; weak tags match strong ones. */
export function matchesTag(ifNoneMatch: string | null | undefined, tag: string): boolean {
  const [opaque] = opaqueTags(tag);
  return opaqueTags(ifNoneMatch).some((given) => given === "*" || given === opaque);
}

/** The texts in the quotes of an `If-None-Match`'s tags; `*` for any tag. Anything else is left out. */
export function opaqueTags(ifNoneMatch: string | null | undefined): string[] {
  const tags: string[] = [];
  for (const each of ifNoneMatch?.split(",") ?? []) {
    const [, opaque] = /^(?:W\/)?"([^"]*)"$/.exec(each.trim()) ?? [];
    // `"*"` is a tag.
    if (each.trim() === "*") tags.push("*");
    else if (opaque !== undefined && opaque !== "*") tags.push(opaque);
  }
  return tags;
}
