/**
 * Skipping JSON text without parsing it.
 * @module
 */

const BACKSLASH = 0x5c;

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
