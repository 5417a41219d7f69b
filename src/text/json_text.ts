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
 * The same JSON on one line, as the events of a watch: an indented text has line breaks between its parts, and U+2028 and
 * U+2029, which JSON permits in strings, end a line for Node's readline and others. Go escapes the latter too:
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

/** Where the object or array ends that begins at `open`: behind its last bracket; -1 if nowhere before `end`. */
export function afterBrackets(text: string, open: number, end: number): number {
  let depth = 0;
  for (let i = open; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = closingQuote(text, i);
      if (i < 0) return -1;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
    } else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) {
      return i + 1;
    }
  }
  return -1;
}

/** Whether a number or literal ends before this character. */
export function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || code <= SPACE;
}
