/** The refusals of an API server, in its words. */

import { formatGroupResource } from "../meta/resource.ts";
import { newStatus, type Status, type StatusCause, type StatusDetails } from "../meta/status.ts";

/** A resource without its version. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** Whether an answer is a refusal. */
export function isStatus(value: object): value is Status {
  return "kind" in value && value.kind === "Status";
}

/** The details that name a resource; the `kind` of a Status is the name of the resource. */
export function resourceDetails(
  { group, resource }: GroupResource,
): { readonly group?: string; readonly kind: string } {
  return { ...(group !== "" && { group }), kind: resource };
}

/** 404: there is no such path. */
export function unknownPath(): Status {
  return newStatus(404, "NotFound", "the server could not find the requested resource", {});
}

/** 404: there is no such object. */
export function objectNotFound(of: GroupResource, name: string): Status {
  const message = `${formatGroupResource(of)} ${quotedByGo(name)} not found`;
  return newStatus(404, "NotFound", message, { name, ...resourceDetails(of) });
}

/** 405: the path exists, the method does not. */
export function methodNotAllowed(): Status {
  const message = "the server does not allow this method on the requested resource";
  return newStatus(405, "MethodNotAllowed", message, {});
}

/** 406: the server has no representation that the `Accept` header names. */
export function notAcceptable(mediaTypes: readonly string[]): Status {
  const message = `only the following media types are accepted: ${mediaTypes.join(", ")}`;
  return newStatus(406, "NotAcceptable", message);
}

/** 406: no route produces what the `Accept` header names. */
export function noRouteProduces(mediaTypes: readonly string[]): Status {
  const message = `406: Not Acceptable\n\nAvailable representations: ${mediaTypes.join(", ")}`;
  return newStatus(406, "NotAcceptable", message, {});
}

/** 410: a watch from a resourceVersion that is older than the event history. */
export function watchTooOld(asked: string, oldest: string): Status {
  return newStatus(410, "Expired", `too old resource version: ${asked} (${oldest})`);
}

/** 410: a `continue` token whose state is not known any more, with one that continues at the newest state. */
export function continueTooOld(token: string): Status {
  const message =
    "The provided continue parameter is too old to display a consistent list result. You can start a " +
    "new list without the continue parameter, or use the continue token in this response to retrieve the remainder " +
    "of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
    "created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  return { ...newStatus(410, "Expired", message), metadata: { continue: token } };
}

/** 422: fields of an object, or of options, are wrong. */
export function invalidFields(what: string, { name, causes = [], ...of }: StatusDetails): Status {
  const texts = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const message = `${what} ${JSON.stringify(name ?? "")} is invalid: ${text}`;
  return newStatus(422, "Invalid", message, { ...(name && { name }), ...of, causes });
}

/** The cause of a refusal: a field that must not be there. */
export function forbiddenField(field: string, detail: string): StatusCause {
  return { reason: "FieldValueForbidden", message: `Forbidden: ${detail}`, field };
}

/** 504: a resourceVersion that the server has not reached. */
export function tooLargeResourceVersion(asked: string, current: string): Status {
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  return newStatus(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

/** 504: there is no answer within the time that the request names. */
export function requestTimedOut(): Status {
  return newStatus(504, "Timeout", "Timeout: request did not complete within the allotted timeout", {});
}

/** A text in quotes; what cannot be printed is escaped. Mirrors Go's `strconv.Quote`, which is its `%q`. */
export function quotedByGo(text: string): string {
  const escaped = text.replace(/["\\]|(?! )[\p{C}\p{Z}]/gu, (character) => {
    const short = SHORT_ESCAPES.get(character);
    if (short !== undefined) return short;
    const code = character.codePointAt(0)!;
    const hex = code.toString(16);
    if (code < 0x20 || code === 0x7f) return `\\x${hex.padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
  });
  return `"${escaped}"`;
}

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\x07", "\\a"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\v", "\\v"],
]);

const UNIT_NANOSECONDS: ReadonlyMap<string, number> = new Map([
  ["ns", 1],
  ["us", 1e3],
  ["\u00b5s", 1e3],
  ["\u03bcs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
  ["m", 60e9],
  ["h", 3_600e9],
]);

/**
 * A duration such as `1h15m30.5s`, `-5ms` or `0` in milliseconds; or what is wrong with it. Mirrors Go's
 * `time.ParseDuration`.
 */
export function parseDuration(text: string): number | string {
  const invalid = `time: invalid duration ${quotedInDuration(text)}`;
  let rest = text.replace(/^[-+]/, "");
  if (rest === "0") return 0;
  if (rest === "") return invalid;
  let nanoseconds = 0;
  while (rest !== "") {
    const number = /^(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)/.exec(rest)?.[0];
    if (number === undefined) return invalid;
    rest = rest.slice(number.length);
    const [unit] = /^[^.0-9]*/.exec(rest)!;
    if (unit === "") return `time: missing unit in duration ${quotedInDuration(text)}`;
    const one = UNIT_NANOSECONDS.get(unit);
    if (one === undefined) {
      return `time: unknown unit ${quotedInDuration(unit)} in duration ${quotedInDuration(text)}`;
    }
    nanoseconds += Number(number) * one;
    if (nanoseconds >= 2 ** 63) return invalid;
    rest = rest.slice(unit.length);
  }
  return (text.startsWith("-") ? -nanoseconds : nanoseconds) / 1e6;
}

/** As Go's package `time` quotes: each byte that is no printable ASCII by itself. */
function quotedInDuration(text: string): string {
  let quoted = "";
  for (const byte of new TextEncoder().encode(text)) {
    const character = String.fromCharCode(byte);
    if (byte >= 0x80 || byte < 0x20) quoted += `\\x${byte.toString(16).padStart(2, "0")}`;
    else quoted += character === '"' || character === "\\" ? `\\${character}` : character;
  }
  return `"${quoted}"`;
}

// A refusal is to be no longer than what it refuses.
const MOST_QUOTED = 300;

/** The beginning of a text of a request, for a refusal. */
export function shortened(text: string): string {
  return text.length <= MOST_QUOTED ? text : `${text.slice(0, MOST_QUOTED)}...`;
}

/** The beginning of a text of a request in quotes, for a refusal. */
export function quotedStart(text: string): string {
  return JSON.stringify(shortened(text));
}
