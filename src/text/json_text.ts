/**
 * JSON text that is not parsed.
 * @module
 */

/** The characters that JSON's structure is made of. */
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
/** This and every character below it is white space, or invalid outside of strings. */
export const SPACE = 0x20;

/**
 * The same JSON on one line, as the events of a watch: an indented text has line breaks between its parts,
 * and U+2028 and U+2029, which JSON permits in strings, end a line for Node's readline and others. Go escapes
 * the latter too:
 * https://pkg.go.dev/encoding/json#Marshal
 */
export function onOneLine(json: string): string {
  if (json.includes("\n") || json.includes("\r")) json = json.replace(/[\n\r]/g, " ");
  return json.includes("\u2028") || json.includes("\u2029")
    ? json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")
    : json;
}

/** Where the string ends that begins with the quote at `open`; -1 if nowhere. */
export function closingQuote(text: string, open: number): number {
  for (let quote = open;;) {
    quote = text.indexOf('"', quote + 1);
    let i = quote - 1;
    while (text.charCodeAt(i) === BACKSLASH) i--;
    // An even number of backslashes are escaped themselves.
    if (quote < 0 || (quote - i) % 2 === 1) return quote;
  }
}

/** Whether a number or literal ends before this character. */
export function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || code <= SPACE;
}

/** A member of an object in JSON text. */
export interface TextMember {
  /** As it is written, between its quotes. */
  readonly key: string;
  /** Where its value begins and ends. */
  readonly start: number;
  readonly end: number;
}

/** The members of the object that begins at `open`, as far as the text is JSON; none of what is no object. */
export function* textMembers(json: string, open = 0): Generator<TextMember, void, undefined> {
  let i = afterSpace(json, open);
  if (json.charCodeAt(i) !== OPEN_BRACE) return;
  do {
    i = afterSpace(json, i + 1);
    const keyEnd = json.charCodeAt(i) === QUOTE ? closingQuote(json, i) : -1;
    if (keyEnd < 0) return;
    const key = json.slice(i + 1, keyEnd);
    i = afterSpace(json, keyEnd + 1);
    if (json.charCodeAt(i) !== COLON) return;
    const start = afterSpace(json, i + 1);
    const end = afterTextValue(json, start);
    if (end < 0) return;
    yield { key, start, end };
    i = afterSpace(json, end);
  } while (json.charCodeAt(i) === COMMA);
}

/** The member with this key, as it is written. */
export function textMember(json: string, open: number, key: string): TextMember | undefined {
  for (const member of textMembers(json, open)) if (member.key === key) return member;
  return undefined;
}

/** Where something other than white space comes, from here on. */
export function afterSpace(json: string, from: number): number {
  let i = from;
  while (json.charCodeAt(i) <= SPACE) i++;
  return i;
}

/** Behind the value that begins here; -1 if it does not end. */
function afterTextValue(json: string, start: number): number {
  let depth = 0;
  for (let i = start; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) {
      i = closingQuote(json, i);
      if (i < 0) return -1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
      continue;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
    } else if (depth === 0) {
      while (i < json.length && !endsScalar(json.charCodeAt(i))) i++;
      return i === start ? -1 : i;
    }
    if (depth <= 0) return i + 1;
  }
  return -1;
}
