/** The sort keys of a query, read from objects. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import type { ScreenPath } from "../../protocol/screen_syntax.ts";
import { refusedParameter, type SortKey } from "../../protocol/screen_query.ts";
import { someValue, typedValue } from "../../protocol/screen_values.ts";
import { quotedStart } from "../../protocol/statuses.ts";
import { parseFieldPath } from "../../text/field_path.ts";
import { type Cell, Duration, type Printer } from "../tables/columns.ts";
import type { ReadField } from "./followed_objects.ts";

export interface OrderSpec {
  /** Specs of one resource with the same name order its objects alike. */
  readonly name: string;
  /** The only fields that are read of an object; `undefined`: any. */
  readonly reads: readonly ReadField[] | undefined;
  /** The text that compares as the object does. */
  textOf(object: KubernetesObject): string;
}

type Part = Omit<OrderSpec, "name">;

/** The order that keys mean; 400 if there is no such column. */
export function orderSpecOf(
  keys: readonly SortKey[],
  { printer, nowMs }: { readonly printer: Printer; readonly nowMs: number },
): OrderSpec | Status {
  const parts: Part[] = [];
  for (const key of keys) {
    const part = partOf(key, printer, nowMs);
    if (!("textOf" in part)) return part;
    parts.push(part);
  }
  return {
    name: keys.map(({ text }) => text).join(","),
    reads: parts.every(({ reads }) => reads !== undefined) ? parts.flatMap(({ reads }) => reads!) : undefined,
    textOf: (object) => {
      let text = "";
      for (const part of parts) text += part.textOf(object);
      return text;
    },
  };
}

function partOf({ by, isDescending }: SortKey, printer: Printer, nowMs: number): Part | Status {
  if (by.type === "column") return columnPart(by.name, isDescending, printer, nowMs);
  const { type, path } = by;
  const reads = [path];
  if (type !== "field") {
    return { reads, textOf: (object) => sortText(aggregate(type, path, object), { isDescending }) };
  }
  const order = { isDescending, isText: NAMES.has(path.text) };
  return { reads, textOf: (object) => sortText(firstValue(object, path), order) };
}

// Names are compared as texts, also where they look like numbers.
const NAMES: ReadonlySet<string> = new Set(["metadata.name", "metadata.namespace", "metadata.uid"]);

function columnPart(name: string, isDescending: boolean, printer: Printer, nowMs: number): Part | Status {
  const i = printer.columns.findIndex((column) => column.name.toLowerCase() === name);
  if (i < 0) {
    const known = printer.columns.map((column) => column.name).join(", ");
    return refusedParameter("sortBy", `there is no column ${quotedStart(name)}; the columns are ${known}`);
  }
  const order = { isDescending, isText: printer.columns[i].format === "name" };
  const { each, reads, readsRarely } = printer;
  const cell: Cell = each?.[i] ?? ((object, nowMs) => printer.cells(object, nowMs)[i]);
  const segmentsOf = (path: string) => parseFieldPath(path, { mayEndInElements: true });
  const { fields, onlyWith } = readsRarely?.[i] ?? { fields: [] };
  const rarely = fields.map((path) => ({
    segments: segmentsOf(path),
    ...(onlyWith !== undefined && { onlyWith: segmentsOf(onlyWith) }),
  }));
  return {
    reads: reads?.[i]?.map((path): ReadField => ({ segments: segmentsOf(path) })).concat(rarely),
    textOf: (object) => sortText(cellValue(cell(object, nowMs)), order),
  };
}

const NO_VALUES: ReadonlySet<unknown> = new Set(["<none>", "<unknown>", "<invalid>"]);

/** The value of a cell: a duration in seconds, the number before a remark (`5 (2d ago)`), or itself. */
function cellValue(cell: unknown): unknown {
  // Ages are those at one time, and change with it; their order does not.
  if (cell instanceof Duration) return cell.seconds;
  if (typeof cell !== "string" || !cell.endsWith(")")) return NO_VALUES.has(cell) ? undefined : cell;
  const before = cell.slice(0, Math.max(0, cell.indexOf(" (")));
  return typedValue(before)?.type === "number" ? before : cell;
}

function firstValue(object: unknown, { segments }: ScreenPath): unknown {
  let first: unknown;
  someValue(object, segments, (value) => {
    first = value ?? undefined;
    return first !== undefined;
  });
  return first;
}

const MOST_SUMMAND = 1e300;

/** The sum, number, least or greatest of the values at a path. */
export function aggregate(
  type: "sum" | "count" | "min" | "max",
  path: ScreenPath,
  object: unknown,
): number | undefined {
  let result: number | undefined = type === "count" ? 0 : undefined;
  eachValue(object, path, (value) => {
    if (type === "count") {
      result = result! + 1;
      return;
    }
    const typed = typedValue(value);
    if (typed === undefined || typed.type === "text") return;
    const { number } = typed;
    // The sum of a group would never be a number again.
    if (type === "sum" && Math.abs(number) > MOST_SUMMAND) return;
    if (result === undefined) result = number;
    else if (type === "sum") result += number;
    else result = type === "min" ? Math.min(result, number) : Math.max(result, number);
  });
  return result;
}

/** Calls with each of the values at a path that is not `null`. */
export function eachValue(object: unknown, { segments }: ScreenPath, call: (value: unknown) => void): void {
  someValue(object, segments, (value) => {
    if (value !== null && value !== undefined) call(value);
    return false;
  });
}

// The first character of a value: types one after the other, and what has no value at the end. Texts without
// a character above 0xff take half of the memory: only values bring one.
const NUMBER = "2";
const TIME = "3";
const TEXT = "4";
const NO_VALUE = "\u00ff";

// Longer texts differ in their names.
const MOST_TEXT = 256;

const END = "\u0000";
const ESCAPE = "\u0001";
const HIGHEST = 0xff;

/**
 * The text of one value: two of them compare, character by character, as people expect of the values.
 * Numbers, quantities (`100m` before `2Gi`) and booleans come before times, and these before texts; texts
 * compare without regard to upper and lower case, and numbers in them by their value (`web-2` before
 * `web-10`). Objects without a value come last in both directions. None is the beginning of another one, so
 * that texts of several keys may follow each other.
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

const bytes = new Uint8Array(8);
const view = new DataView(bytes.buffer);
/** Objects that come one after the other often have the same value, and share its text then. */
let last = { type: "", number: NaN, isDescending: false, text: "" };

/** The type and the bits of a double, which compare as integers once the sign is turned. */
function numberText(type: string, number: number, isDescending: boolean): string {
  if (number === last.number && type === last.type && isDescending === last.isDescending) return last.text;
  view.setFloat64(0, number === 0 ? 0 : number);
  const codes = [type.charCodeAt(0), ...bytes];
  const isNegative = bytes[0] >= 0x80;
  for (let i = 1; i < codes.length; i++) {
    if (isNegative) codes[i] = HIGHEST - codes[i];
    else if (i === 1) codes[i] |= 0x80;
  }
  const text = String.fromCharCode(...isDescending ? codes.map((code) => HIGHEST - code) : codes);
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
    while (lower.charCodeAt(at) === ZERO) at++;
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

/** A text that is before another one where its own is behind that. */
function complement(text: string): string {
  let result = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // A text begins with its type, so that none comes behind a value of no type.
    if (code < 0x80) result += String.fromCharCode(HIGHEST - code);
    else result += `\u0000${String.fromCharCode(0xffff - code)}`;
  }
  return result;
}
