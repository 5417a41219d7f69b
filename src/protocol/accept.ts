/**
 * The `Accept` header of a request.
 * @module
 */

import type { GroupVersionKind } from "../meta/resource.ts";

/** One alternative of an `Accept` header. */
export interface AcceptClause {
  /** `application`, or `*`. */
  readonly type: string;
  /** `json`, or `*`. */
  readonly subtype: string;
  /** The preference, above 0 and at most 1. */
  readonly quality: number;
  /** The other parameters; names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Reads an `Accept` header: by falling quality, wildcards after named types, otherwise in the order of the header.
 * Clauses with `q=0` and clauses that are not media types are left out.
 */
export function parseAccept(header: string): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of header.split(",")) {
    const [mediaRange, ...rest] = part.split(";");
    const [type, subtype] = mediaRange.trim().toLowerCase().split("/");
    if (!type || !subtype) continue;
    const parameters = new Map<string, string>();
    let quality = 1;
    for (const parameter of rest) {
      const equals = parameter.indexOf("=");
      if (equals < 0) continue;
      const name = parameter.slice(0, equals).trim().toLowerCase();
      const given = parameter.slice(equals + 1).trim();
      const isQuoted = given.length > 1 && given.startsWith('"') && given.endsWith('"');
      const value = isQuoted ? given.slice(1, -1) : given;
      if (name === "q") quality = Number.isNaN(parseFloat(value)) ? 1 : Math.min(parseFloat(value), 1);
      else parameters.set(name, value);
    }
    if (quality > 0) clauses.push({ type, subtype, quality, parameters });
  }
  return clauses.sort((a, b) => b.quality - a.quality || wildcards(a) - wildcards(b));
}

function wildcards(clause: AcceptClause): number {
  return (clause.type === "*" ? 2 : 0) + (clause.subtype === "*" ? 1 : 0);
}

/** The representation to answer with. */
export interface Representation {
  /** Such as `application/json`. */
  readonly mediaType: string;
  /** The kind that the answer is converted to (`as`, `g` and `v`), such as a Table. `undefined`: no conversion. */
  readonly convertTo: GroupVersionKind | undefined;
}

/** Options of {@linkcode negotiate}. */
export interface NegotiateOptions {
  /** The media types that can be served, the default first; only `application/json` by default. */
  readonly mediaTypes?: readonly string[];
  /** Whether the answer can be converted to this kind; never by default. */
  readonly converts?: (kind: GroupVersionKind, mediaType: string) => boolean;
}

/**
 * Chooses the representation to answer with; `undefined` if the client accepts none (406). Without a header it is the
 * first media type. `sv` is never accepted, `stream` only as `watch`; other parameters are ignored.
 *
 * Mirrors apiserver's `NegotiateMediaTypeOptions`.
 */
export function negotiate(
  header: string | null | undefined,
  options: NegotiateOptions = {},
): Representation | undefined {
  const { mediaTypes = ["application/json"], converts = () => false } = options;
  if (!header) return { mediaType: mediaTypes[0], convertTo: undefined };
  for (const { type, subtype, parameters } of parseAccept(header)) {
    if (parameters.get("sv") || (parameters.get("stream") ?? "watch") !== "watch") continue;
    const convertTo = conversion(parameters);
    for (const mediaType of mediaTypes) {
      const [offeredType, offeredSubtype] = mediaType.split("/");
      if (type !== "*" && type !== offeredType) continue;
      if (subtype !== "*" && subtype !== offeredSubtype) continue;
      if (convertTo === undefined || converts(convertTo, mediaType)) return { mediaType, convertTo };
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
