/**
 * Strings and numbers as kube-apiserver writes them in YAML.
 * @module
 */

/** The place of a string in a document. */
export interface ScalarPlace {
  /** The indent of its second and further lines. */
  readonly indent: string;
  /** The column at which it begins. */
  readonly column: number;
  /** Whether it is a key on one line with its value. */
  readonly isKey: boolean;
}

/**
 * A string as YAML, without a line break at its end. The style (plain, quoted or literal) and the places where long lines
 * are broken are those of kube-apiserver's library: https://github.com/kubernetes-sigs/yaml/tree/master/goyaml.v2
 *
 * It differs for U+0085 and a few control characters only: they are escaped here. kube-apiserver writes a space for them, or
 * answers 500. U+2028 and U+2029 are line breaks, as in YAML 1.1.
 */
export function yamlString(text: string, place: ScalarPlace): string {
  if (SPECIAL.test(text) || SPACE_AND_BREAK.test(text)) return doubleQuoted(text, place);
  if (text.includes("\n")) {
    return place.isKey || /[ \u2028\u2029]$/.test(text) ? doubleQuoted(text, place) : literal(text, place);
  }
  if (isOtherType(text)) return doubleQuoted(text, place);
  return INDICATORS.test(text) || SEPARATOR.test(text) || text.startsWith(" ") || text.endsWith(" ")
    ? `'${folded(text.replaceAll("'", "''"), { ...place, column: place.column + 1, isInQuotes: true })}'`
    : folded(text, place);
}

/** Whether a string is written as a key on one line with its value; otherwise it comes after a question mark. */
export function isSimpleKey(text: string): boolean {
  return !/[\n\r\u0085\u2028\u2029]/.test(text) &&
    (text.length <= 42 || new TextEncoder().encode(text).length <= 128);
}

// What is escaped, and so needs double quotes.
const SPECIAL = /[^\n\x20-\x7E\u00A0-\uD7FF\uE000-\uFEFE\uFF00-\uFFFD]/;
// Only double quotes keep spaces beside a line break, but for those at the beginning of a literal's line.
const SPACE_AND_BREAK = / [\n\u2028\u2029]|[\u2028\u2029] /;
const SEPARATOR = /[\u2028\u2029]/;
// What would begin something other than a plain string.
const INDICATORS = /^(?:---|\.\.\.)|^[#,[\]{}&*!|>'"%@`]|^[?-](?: |$)|:(?: |$)| #/;

/** Whether a parser would read the plain text as something other than a string. */
function isOtherType(text: string): boolean {
  if (WORDS.has(text)) return true;
  if (!/^[-+.0-9]/.test(text) || text.length > 100) return false;
  if (text.startsWith(".")) return isFloat(text);
  const digits = text.replaceAll("_", "");
  return isTimestamp(text) || isInteger(digits) || isFloat(digits) || SEXAGESIMAL.test(text);
}

const WORDS: ReadonlySet<string> = new Set(
  ("y Y yes Yes YES true True TRUE on On ON n N no No NO false False FALSE off Off OFF ~ null Null NULL " +
    ".nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF").split(" ").concat(""),
);

// deno-lint-ignore listwatch/linear-regex -- at most 100 characters
const SEXAGESIMAL = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;

function isFloat(text: string): boolean {
  return /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(text) && isFinite(Number(text));
}

// Decimal and octal ones are floats at least.
function isInteger(text: string): boolean {
  const match = /^([-+]?)(0[oO][0-7]+|0[xX][0-9a-fA-F]+|0[bB][01]+)$/.exec(text);
  if (match === null) return false;
  const value = BigInt(match[2]);
  return value < (match[1] === "" ? 1n << 64n : 1n << 63n);
}

// At most 100 characters.
const DATE = /^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(.*)$/s;
const TIME = /^[Tt ]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})?$/;

function isTimestamp(text: string): boolean {
  const [, year, month, day, rest] = DATE.exec(text) ?? [];
  if (rest === undefined) return false;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return false;
  if (rest === "") return true;
  const [, hour, minute, second] = TIME.exec(rest) ?? [];
  if (second === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return false;
  // A zone comes with a T, and only with it.
  return rest.startsWith(" ") !== /(?:Z|[-+][0-9:]{5})$/.test(rest);
}

// A line is broken at the first single space after this column.
const LINE_WIDTH = 80;

function folded(text: string, place: ScalarPlace & { readonly isInQuotes?: boolean }): string {
  let column = place.column;
  const hasSeparator = SEPARATOR.test(text);
  if (place.isKey || (column + text.length <= LINE_WIDTH && !hasSeparator)) return text;
  let lines = "";
  let start = 0;
  for (let i = 0; i < text.length; i++, column++) {
    if (hasSeparator && SEPARATOR.test(text[i])) {
      column = -1;
      if (i + 1 === text.length || SEPARATOR.test(text[i + 1])) continue;
      lines += text.slice(start, i + 1) + place.indent;
      start = i + 1;
      column = place.indent.length - 1;
      continue;
    }
    if (column <= LINE_WIDTH || text[i] !== " " || text[i - 1] === " " || text[i + 1] === " ") continue;
    if (place.isInQuotes && (i === 0 || i === text.length - 1)) continue;
    lines += `${text.slice(start, i)}\n${place.indent}`;
    start = i + 1;
    column = place.indent.length - 1;
  }
  return lines + text.slice(start);
}

function literal(text: string, { indent }: ScalarPlace): string {
  const lines = text.split("\n");
  const isEnded = lines.at(-1) === "";
  const chomping = !isEnded ? "-" : lines.length === 2 && lines[0] === "" || lines.at(-2) === "" ? "+" : "";
  if (isEnded) lines.pop();
  const indented = lines.map((line) =>
    line === "" ? "" : indent + line.replace(/[\u2028\u2029](?![\u2028\u2029]|$)/g, `$&${indent}`)
  );
  return `|${/^[ \n\u2028\u2029]/.test(text) ? "2" : ""}${chomping}\n${indented.join("\n")}`;
}

function doubleQuoted(text: string, place: ScalarPlace): string {
  let result = '"';
  let column = place.column + 1;
  let afterSpace = false;
  // kube-apiserver escapes every character after a byte order mark.
  const escapesAll = text.startsWith("\uFEFF");
  const last = text.length - 1;
  let i = 0;
  for (const character of text) {
    const at = i;
    i += character.length;
    let written = character;
    if (
      escapesAll || character === '"' || character === "\\" || character === "\n" ||
      SPECIAL.test(character) || SEPARATOR.test(character)
    ) {
      written = escaped(character);
      afterSpace = false;
    } else if (character === " ") {
      if (!place.isKey && !afterSpace && column > LINE_WIDTH && at > 0 && at < last) {
        result += `\n${place.indent}${text[i] === " " ? "\\" : ""}`;
        column = place.indent.length + (text[i] === " " ? 1 : 0);
        afterSpace = true;
        continue;
      }
      afterSpace = true;
    } else {
      afterSpace = false;
    }
    result += written;
    column += written.length;
  }
  return `${result}"`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\0": "\\0",
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  "\x1B": "\\e",
  '"': '\\"',
  "\\": "\\\\",
  "\u0085": "\\N",
  "\u00A0": "\\_",
  "\u2028": "\\L",
  "\u2029": "\\P",
};

function escaped(character: string): string {
  const known = ESCAPES[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0) ?? 0;
  const [letter, digits] = code <= 0xFF ? ["x", 2] : code <= 0xFFFF ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).toUpperCase().padStart(digits as number, "0")}`;
}

/** A number as YAML. Integers of 64 bits have all their digits, others are written as Go writes a float. */
export function yamlNumber(value: number | bigint): string {
  const isInteger = typeof value === "bigint" || Number.isInteger(value);
  if (isInteger && value >= -(2 ** 63) && value < 2 ** 64) return Object.is(value, -0) ? "0" : String(value);
  const [mantissa, exponent] = Number(value).toExponential().split("e");
  const power = Number(exponent);
  // JavaScript, too, writes these without an exponent.
  if (power >= -4 && power < 6) return String(value);
  return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Compares keys in the order of kube-apiserver: numbers within them by their value, letters after all other characters. */
export function compareKeys(a: string, b: string): number {
  const x = Array.from(a);
  const y = Array.from(b);
  for (let i = 0; i < x.length && i < y.length; i++) {
    if (x[i] === y[i]) continue;
    const xIsLetter = LETTER.test(x[i]);
    const yIsLetter = LETTER.test(y[i]);
    if (xIsLetter !== yIsLetter) return yIsLetter ? -1 : 1;
    if (!xIsLetter) {
      const order = compareNumbersAt(x, y, i);
      if (order !== 0) return order;
    }
    return x[i].codePointAt(0)! - y[i].codePointAt(0)!;
  }
  return x.length - y.length;
}

const LETTER = /^\p{L}$/u;
const DIGIT = /^\p{Nd}$/u;

function compareNumbersAt(x: readonly string[], y: readonly string[], at: number): number {
  let isWithinNumber = false;
  if (x[at] === "0" || y[at] === "0") {
    for (let i = at - 1; i >= 0 && DIGIT.test(x[i]) && !isWithinNumber; i--) isWithinNumber = x[i] !== "0";
  }
  const [xDigits, yDigits] = [x, y].map((characters) => {
    let end = at;
    while (end < characters.length && DIGIT.test(characters[end])) end++;
    return characters.slice(at, end).join("");
  });
  const prefix = isWithinNumber ? "1" : "";
  const xNumber = (prefix + xDigits).replace(/^0+/, "");
  const yNumber = (prefix + yDigits).replace(/^0+/, "");
  if (xNumber.length !== yNumber.length) return xNumber.length - yNumber.length;
  if (xNumber !== yNumber) return xNumber < yNumber ? -1 : 1;
  return xDigits.length - yDigits.length;
}
