/** Texts as Go writes them into the errors of an API server. */

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
 * What is wrong with a duration such as `1h15m30.5s`, `-5ms` or `0`; `undefined`: nothing. Mirrors Go's
 * `time.ParseDuration`.
 */
export function durationProblem(text: string): string | undefined {
  const invalid = `time: invalid duration ${quotedInDuration(text)}`;
  let rest = text.replace(/^[-+]/, "");
  if (rest === "0") return undefined;
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
  return undefined;
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
