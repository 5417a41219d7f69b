/**
 * Changing JSON texts in place: everything else of them stays as it is, digit for digit.
 * @module
 */

import {
  afterBrackets,
  closingQuote,
  COLON,
  endsScalar,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
} from "../../text/json_text.ts";

/** Where a value is in a text. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A text that takes the place of what is there. */
export interface Replacement extends Place {
  readonly text: string;
}

/**
 * Where the value of a field is, in the object that begins at `open`; `undefined` if it has no such field. A key that is
 * written with escapes is not found.
 */
export function fieldAt(json: string, open: number, name: string): Place | undefined {
  if (json.charCodeAt(open) !== OPEN_BRACE) return undefined;
  let i = open + 1;
  for (;;) {
    i = afterSpaceAndCommas(json, i);
    if (json.charCodeAt(i) !== QUOTE) return undefined;
    const keyEnd = closingQuote(json, i);
    if (keyEnd < 0) return undefined;
    const isIt = keyEnd - i - 1 === name.length && json.startsWith(name, i + 1);
    i = afterSpace(json, keyEnd + 1);
    if (json.charCodeAt(i) !== COLON) return undefined;
    const start = afterSpace(json, i + 1);
    const end = afterValue(json, start);
    if (end < 0) return undefined;
    if (isIt) return { start, end };
    i = end;
  }
}

/** The same, some levels down. */
export function fieldAtPath(json: string, open: number, path: readonly string[]): Place | undefined {
  let place: Place | undefined = { start: open, end: json.length };
  for (const name of path) {
    if (place === undefined) return undefined;
    place = fieldAt(json, place.start, name);
  }
  return place;
}

/** Where the first element is of the array at a place; `undefined` if there is none. */
export function firstElement(json: string, array: Place | undefined): Place | undefined {
  if (array === undefined || json.charCodeAt(array.start) !== OPEN_BRACKET) return undefined;
  const start = afterSpace(json, array.start + 1);
  const end = start < array.end - 1 ? afterValue(json, start) : -1;
  return end < 0 ? undefined : { start, end };
}

/** The string at a place; `undefined` if it is no string. */
export function stringAt(json: string, place: Place | undefined): string | undefined {
  if (place === undefined || json.charCodeAt(place.start) !== QUOTE) return undefined;
  const text = json.slice(place.start, place.end);
  if (!text.includes("\\")) return text.slice(1, -1);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text with other values at some places, which do not overlap. */
export function replaced(json: string, replacements: readonly Replacement[]): string {
  let text = "";
  let from = 0;
  for (const { start, end, text: value } of [...replacements].sort((a, b) => a.start - b.start)) {
    text += json.slice(from, start) + value;
    from = end;
  }
  return text + json.slice(from);
}

/** Behind the value that begins here; -1 if it does not end. */
function afterValue(json: string, start: number): number {
  const code = json.charCodeAt(start);
  if (code === QUOTE) return closingQuote(json, start) + 1 || -1;
  if (code === OPEN_BRACE || code === OPEN_BRACKET) return afterBrackets(json, start, json.length);
  let i = start;
  while (i < json.length && !endsScalar(json.charCodeAt(i))) i++;
  return i === start ? -1 : i;
}

function afterSpace(json: string, from: number): number {
  let i = from;
  while (json.charCodeAt(i) <= SPACE) i++;
  return i;
}

function afterSpaceAndCommas(json: string, from: number): number {
  let i = from;
  while (json.charCodeAt(i) <= SPACE || json.charCodeAt(i) === 0x2c) i++;
  return i;
}
