/** The values at the paths that the parameters of screens name. */

import { EACH, type FieldPathSegment } from "../text/field_path.ts";

/** The elements of an array of which one member has one value: `[type=Ready]` in a path. */
export class ElementMatch {
  readonly member: string;
  readonly value: string;

  constructor(member: string, value: string) {
    this.member = member;
    this.value = value;
  }

  matches(element: unknown): boolean {
    return typeof element === "object" && element !== null &&
      (element as Readonly<Record<string, unknown>>)[this.member] === this.value;
  }
}

export type ScreenSegment = FieldPathSegment | ElementMatch;

/** Whether one of the values at a path, an object or an array too, passes a test. */
export function someValue(
  value: unknown,
  segments: readonly ScreenSegment[],
  test: (value: unknown) => boolean,
  from = 0,
): boolean {
  for (let i = from; i < segments.length; i++) {
    const segment = segments[i];
    if (typeof segment !== "string") {
      if (!Array.isArray(value)) return false;
      for (const element of value) {
        if (segment !== EACH && !segment.matches(element)) continue;
        if (someValue(element, segments, test, i + 1)) return true;
      }
      return false;
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    if (!Object.hasOwn(value, segment)) return false;
    value = (value as Readonly<Record<string, unknown>>)[segment];
  }
  return test(value);
}

/** The paths to cut an object to: all elements of arrays, and no path below another one. */
export function cutPaths(
  paths: readonly { readonly segments: readonly ScreenSegment[] }[],
): FieldPathSegment[][] {
  const whole = new Map<string, FieldPathSegment[]>();
  const add = (path: FieldPathSegment[]) => {
    // The elements of an array are the array.
    while (path.at(-1) === EACH) path.pop();
    whole.set(JSON.stringify(path.map((segment) => segment === EACH ? [] : segment)), path);
  };
  for (const { segments } of paths) {
    const path: FieldPathSegment[] = [];
    for (const segment of segments) {
      if (segment instanceof ElementMatch) add([...path, EACH, segment.member]);
      path.push(segment instanceof ElementMatch ? EACH : segment);
    }
    add(path);
  }
  const all = [...whole.values()];
  return all.filter((path) =>
    !all.some((other) => other.length < path.length && other.every((segment, i) => segment === path[i]))
  );
}

/**
 * A value as it is compared: a number (also that of a quantity such as `100m` or `2Gi`), a time in
 * milliseconds, a boolean, or a text.
 */
export type TypedValue =
  | { readonly type: "boolean" | "number" | "time"; readonly number: number }
  | { readonly type: "text"; readonly text: string };

/** Kubernetes' suffixes of quantities. */
const FACTORS: Readonly<Record<string, number>> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))((?:[KMGTPE]i|[numkMGTPE])?|[eE][+-]?[0-9]{1,3})$/;
const TIME =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
// Longer texts are neither, nor those that begin with a letter.
const MAX_LENGTH = 64;
const ZERO = 0x30;
const NINE = 0x39;
const MOST_DIGITS = 15;

/** A scalar as it is compared; `undefined` for what has no order: null, objects, arrays. */
export function typedValue(value: unknown): TypedValue | undefined {
  if (typeof value === "number") return { type: "number", number: value };
  if (typeof value === "boolean") return { type: "boolean", number: value ? 1 : 0 };
  if (typeof value !== "string") return undefined;
  if (value.length <= MAX_LENGTH && value.charCodeAt(0) <= NINE) {
    const count = countIn(value);
    if (count >= 0) return { type: "number", number: count };
    const quantity = QUANTITY.exec(value);
    if (quantity !== null) {
      const [, number, suffix] = quantity;
      const factor = FACTORS[suffix];
      return {
        type: "number",
        number: factor === undefined ? Number(number + suffix) : Number(number) * factor,
      };
    }
    if (TIME.test(value)) {
      const time = Date.parse(value);
      if (!Number.isNaN(time)) return { type: "time", number: time };
    }
  }
  return { type: "text", text: value };
}

/** The number that a few digits are; -1 for another text. */
function countIn(text: string): number {
  if (text.length === 0 || text.length > MOST_DIGITS) return -1;
  let number = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = 10 * number + digit;
  }
  return number;
}
