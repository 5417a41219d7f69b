/** Answers in JSON, as an API server sends them, and conditional requests. */

import type { Status } from "../meta/status.ts";
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

const JSON_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "application/json",
  "Cache-Control": "no-cache, private",
};

export interface ResponseOptions {
  /** Whether to indent the document, as `wantsPretty` (accept.ts) says. Default: false. */
  readonly pretty?: boolean;
}

export function jsonResponse(
  document: unknown,
  options: ResponseOptions & { readonly status?: number } = {},
): Response {
  return new Response(jsonText(document, options), { status: options.status ?? 200, headers: JSON_HEADERS });
}

/** A document as an API server writes it: with a line break at its end unless it is indented. */
export function jsonText(document: unknown, options: { readonly pretty?: boolean } = {}): string {
  const json = JSON.stringify(document);
  return options.pretty ? indentedText(json) : `${escaped(json)}\n`;
}

/**
 * JSON with the escapes of Go's encoder, which an API server writes: https://pkg.go.dev/encoding/json#Marshal
 */
export function escaped(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Each level indents every line below it: 10,000 levels, which 50 KB hold, would become 400 MB.
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

/** A refusal as an answer, with `Retry-After` where the Status says so. */
export function statusResponse(status: Status, options: ResponseOptions = {}): Response {
  const response = jsonResponse(status, { ...options, status: status.code ?? 500 });
  const seconds = status.details?.retryAfterSeconds;
  if (seconds) response.headers.set("Retry-After", String(seconds));
  return response;
}

/** Whether an `If-None-Match` has a tag; weak tags match strong ones. */
export function matchesTag(ifNoneMatch: string | null | undefined, tag: string): boolean {
  const [opaque] = opaqueTags(tag);
  return opaqueTags(ifNoneMatch).some((given) => given === "*" || given === opaque);
}

/** What is between the quotes of the tags of an `If-None-Match`; `*` for any. What is no tag is left out. */
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
