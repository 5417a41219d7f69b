/** The `Accept` header of a request. */

import type { GroupVersionKind } from "../meta/resource.ts";

/** One alternative of an `Accept` header. */
export interface AcceptClause {
  /** `application`, or `*`. */
  readonly type: string;
  /** `json`, or `*`. */
  readonly subtype: string;
  /** The preference; 1 by default. */
  readonly quality: number;
  /** The other parameters. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Reads an `Accept` header: clauses in the order of preference, without those that are not media types. As in
 * an API server, upper and lower case differ, quotation marks are part of a value, a quality that is no
 * number is 0, and a quality of 0 excludes nothing. Clauses after the first 128 are ignored, as their order
 * costs the square of their number.
 *
 * Mirrors https://github.com/munnerz/goautoneg, its order included: `text/html;q=0.1` comes before a wildcard.
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
    insert(clauses, { type, subtype, quality, parameters });
  }
  return clauses;
}

// Browsers send eight at most, kubectl three.
const MAX_CLAUSES = 128;
const NUMBER = /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/;

// The comparison is no order (of two clauses each may come before the other), so how it is applied matters,
// too.
function insert(clauses: AcceptClause[], clause: AcceptClause): void {
  let i = clauses.length;
  while (i > 0 && comesBefore(clause, clauses[i - 1])) i--;
  clauses.splice(i, 0, clause);
}

function comesBefore(a: AcceptClause, b: AcceptClause): boolean {
  return a.quality > b.quality || (a.type !== "*" && b.type === "*") ||
    (a.subtype !== "*" && b.subtype === "*");
}

/** A media type that answers are written in. */
export type MediaType = "application/json" | "application/yaml";

/** JSON only. */
export const JSON_ONLY: readonly MediaType[] = ["application/json"];
/** JSON by default, and YAML. */
export const JSON_AND_YAML: readonly MediaType[] = ["application/json", "application/yaml"];

/** The representation to answer with. */
export interface Representation {
  readonly mediaType: MediaType;
  /**
   * The kind that the answer is converted to (`as`, `g` and `v`), such as a Table. `undefined`: no
   * conversion.
   */
  readonly convertTo: GroupVersionKind | undefined;
  /** Whether the header asks for an indented answer. */
  readonly pretty: boolean;
}

/** Options of {@linkcode negotiate}. */
export interface NegotiateOptions {
  /** The media types that can be served, the default first. */
  readonly mediaTypes: readonly MediaType[];
  /**
   * Whether the answer can be converted to this kind (`undefined`: not converted); only not converted by
   * default.
   */
  readonly converts?: (kind: GroupVersionKind | undefined) => boolean;
  /** The version that `sv` may name; none by default. */
  readonly serverVersion?: string;
}

/**
 * Chooses the representation to answer with; `undefined` if the client accepts none (406). Without a header
 * it is the first media type. `stream` is accepted only as `watch`, of JSON; unknown parameters are ignored.
 *
 * Mirrors `NegotiateMediaTypeOptions` of
 * https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/negotiation/negotiate.go
 */
export function negotiate(
  header: string | null | undefined,
  options: NegotiateOptions,
): Representation | undefined {
  const { mediaTypes, converts = (kind) => kind === undefined, serverVersion = "" } = options;
  if (!header) return { mediaType: mediaTypes[0], convertTo: undefined, pretty: false };
  for (const { type, subtype, parameters } of parseAccept(header)) {
    for (const mediaType of mediaTypes) {
      const [offeredType, offeredSubtype] = mediaType.split("/");
      const isOffered = type === offeredType ? subtype === offeredSubtype || subtype === "*" : type === "*";
      if (!isOffered || (type === "*" && subtype !== "*")) continue;
      if ((parameters.get("sv") ?? serverVersion) !== serverVersion) continue;
      const stream = parameters.get("stream");
      if (stream !== undefined && (stream !== "watch" || mediaType !== "application/json")) continue;
      const convertTo = conversion(parameters);
      if (!converts(convertTo)) continue;
      return { mediaType, convertTo, pretty: parameters.get("pretty") === "1" };
    }
  }
  return undefined;
}

function conversion(parameters: ReadonlyMap<string, string>): GroupVersionKind | undefined {
  const kind = parameters.get("as");
  const group = parameters.get("g");
  const version = parameters.get("v");
  if (kind === undefined && group === undefined && version === undefined) return undefined;
  return { group: group ?? "", version: version ?? "", kind: kind ?? "" };
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
