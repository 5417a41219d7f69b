import { typedValue } from "../../protocol/screen_values.ts";

// The first character of a value: types one after the other, and what has no value at the end.
const NUMBER = "2";
const TIME = "3";
const TEXT = "4";
const NO_VALUE = "\uffff";

// Longer texts differ in their names.
const MOST_TEXT = 256;

const END = "\u0000";
const ESCAPE = "\u0001";
const HIGHEST = 0xffff;

/**
 * The text of one value: two of them compare, character by character, as people expect of the values.
 * Numbers, quantities (`100m` before `2Gi`) and booleans come before times, and these before texts; texts
 * compare without regard to upper and lower case, and numbers in them by their value (`web-2` before
 * `web-10`). What has no value comes last in both directions. None is the beginning of another one, so that
 * texts of several keys may follow each other.
 * @param order.isText Values are texts, "10" as well: names.
 */
export function sortText(
  value: unknown,
  { isDescending, isText }: { readonly isDescending: boolean; readonly isText?: boolean },
): string {
  if (isText === true && typeof value === "string") return textOf(value, isDescending);
  const typed = typedValue(value);
  if (typed === undefined) return NO_VALUE;
  if (typed.type === "text") return textOf(typed.text, isDescending);
  if (Number.isNaN(typed.number)) return NO_VALUE;
  return numberText(typed.type === "time" ? TIME : NUMBER, typed.number, isDescending);
}

function textOf(value: string, isDescending: boolean): string {
  const text = TEXT + naturalText(value);
  return isDescending ? complement(text) : text;
}

const view = new DataView(new ArrayBuffer(8));
/** Objects that come one after the other often have the same value, and share its text then. */
let last = { type: "", number: NaN, isDescending: false, text: "" };

/** Its type, and the bits of a double, which compare as integers once the sign is turned. */
function numberText(type: string, number: number, isDescending: boolean): string {
  if (number === last.number && type === last.type && isDescending === last.isDescending) return last.text;
  view.setFloat64(0, number === 0 ? 0 : number);
  const isNegative = view.getUint8(0) >= 0x80;
  const code = (at: number) => {
    const bits = view.getUint16(at);
    const ascending = isNegative ? HIGHEST - bits : at === 0 ? bits | 0x8000 : bits;
    return isDescending ? HIGHEST - ascending : ascending;
  };
  const first = isDescending ? HIGHEST - type.charCodeAt(0) : type.charCodeAt(0);
  const text = String.fromCharCode(first, code(0), code(2), code(4), code(6));
  last = { type, number, isDescending, text };
  return text;
}

const DIGIT = /[0-9]/;

/** Runs of digits by their length, then their digits. */
function naturalText(text: string): string {
  let lower = text.slice(0, MOST_TEXT).toLowerCase();
  if (lower.includes(END) || lower.includes(ESCAPE)) lower = escaped(lower);
  if (!DIGIT.test(lower)) return lower + END;
  let result = "";
  let at = 0;
  while (at < lower.length) {
    const start = at;
    while (at < lower.length && !isDigit(lower, at)) at++;
    result += lower.slice(start, at);
    if (at === lower.length) break;
    while (isDigit(lower, at + 1) && lower.charCodeAt(at) === ZERO) at++;
    const digits = at;
    while (isDigit(lower, at)) at++;
    result += `0${String.fromCharCode(at - digits)}${lower.slice(digits, at)}`;
  }
  return result + END;
}

const ZERO = 0x30;

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= ZERO && code <= 0x39;
}

/** A text without the character that ends it, ordered as before. */
function escaped(text: string): string {
  return text.replaceAll(ESCAPE, `${ESCAPE}\u0002`).replaceAll(END, `${ESCAPE}\u0001`);
}

function complement(text: string): string {
  let result = "";
  // A text begins with its type, so that none comes behind a value of no type.
  for (let i = 0; i < text.length; i++) result += String.fromCharCode(HIGHEST - text.charCodeAt(i));
  return result;
}
