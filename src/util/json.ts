/** JSON values: compared, checked, weighed, frozen, and what is wrong with a text. */

import { errorMessage } from "./errors.ts";

const MAX_DEPTH = 500;

/**
 * Whether two JSON values are equal; the order of properties does not count, and a property that is
 * `undefined` equals an absent one. Values that are not JSON (a `Date`, a `Map`) or nested deeper than 500
 * levels are equal to themselves only.
 *
 * Allocates nothing, so that many objects that are mostly equal can be compared.
 */
export function isSameJson(a: unknown, b: unknown): boolean {
  return isSame(a, b, 0);
}

function isSame(a: unknown, b: unknown, depth: number): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > MAX_DEPTH) {
    return false;
  }
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!isSame(a[i], b[i], depth + 1)) return false;
    return true;
  }
  if (!isPlainObject(a) || !isPlainObject(b)) return false;
  let surplus = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    if (!Object.hasOwn(b, name) || !isSame(a[name], b[name], depth + 1)) return false;
    surplus++;
  }
  for (const name in b) if (b[name] !== undefined) surplus--;
  return surplus === 0;
}

// `JSON.rawJSON` makes objects without a prototype.
function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * Whether a value is the same after it was written as JSON and read, but for properties that are `undefined`.
 */
export function isPlainJson(value: unknown, depth: number = 0): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false; // or it holds itself
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlainJson(value[i], depth + 1)) return false;
    return true;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  const fields = value as Record<string, unknown>;
  for (const name in fields) {
    if (fields[name] !== undefined && !isPlainJson(fields[name], depth + 1)) return false;
  }
  return true;
}

/** As `JSON.stringify`, of a JSON value of any depth: on Node that throws at some thousand levels. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  let text = "";
  // The rest to write, its next part last: a value behind a text.
  const rest: { readonly text: string; readonly value?: unknown }[] = [{ text: "", value }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    text += next.text;
    const { value } = next;
    if (typeof value !== "object" || value === null) {
      if ("value" in next) text += JSON.stringify(value);
      continue;
    }
    const isArray = Array.isArray(value);
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    text += isArray ? "[" : "{";
    rest.push({ text: isArray ? "]" : "}" });
    for (let i = members.length - 1; i >= 0; i--) {
      const [name, value] = members[i];
      rest.push({ text: (i === 0 ? "" : ",") + (isArray ? "" : `${JSON.stringify(name)}:`), value });
    }
  }
  return text;
}

export function isTextOrAbsent(value: unknown): value is string | undefined {
  return typeof value === "string" || value === undefined;
}

/** The method by which `console.log` shows an object: https://nodejs.org/api/util.html#utilinspectcustom */
export const INSPECT: unique symbol = Symbol.for("nodejs.util.inspect.custom");

/** Whether a value is an object with fields: not an array, not `null`. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value, or a record without fields where it is none. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** A copy without the properties that are `undefined`. */
export function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/**
 * The fault of a text that is not JSON: the position, or that it ends too early. The runtimes' messages quote
 * the text, which may be a Secret or a token.
 */
export function jsonFault(error: unknown): string {
  const message = errorMessage(error).slice(0, 1024);
  const position = / at position ([0-9]{1,15})/.exec(message)?.[1];
  if (position !== undefined) return `it is broken at position ${position}`;
  return /unexpected (?:end|eof)|unterminated/i.test(message) ? "it ends too early" : "it cannot be parsed";
}

// A property's share of its object, or an element's of its array.
const SLOT_BYTES = 16;
// No object that a server sends comes near.
const MOST_VALUES = 1_000_000;

/**
 * About how many bytes a value takes, with what it refers to: its strings and buffers, and a fixed share for
 * every other value. Costs a walk over it. The names of properties are not counted: engines share them
 * between objects. A property that holds its own object adds nothing.
 */
export function memorySize(value: unknown): number {
  let bytes = 0;
  const rest: unknown[] = [value];
  for (let i = 0; i < MOST_VALUES && rest.length > 0; i++) {
    const next = rest.pop();
    bytes += SLOT_BYTES;
    if (typeof next === "string") bytes += next.length;
    else if (typeof next !== "object" || next === null) continue;
    else if (ArrayBuffer.isView(next)) bytes += next.byteLength;
    else if (Array.isArray(next)) { for (const element of next) rest.push(element); }
    else for (const held of Object.values(next)) if (held !== next) rest.push(held);
  }
  return bytes;
}

/**
 * Freezes an object and everything in it, so that code which changes it gets a `TypeError` there. Returns the
 * same object. For development: `freezeObjects` of an informer runs it on every object.
 *
 * Stands where client-go has its `MutationDetector`, which compares copies once a second and panics.
 *
 * @example
 * ```ts
 * import { freezeObject } from "@listwatch/cache/informer";
 * const pod = freezeObject({ metadata: { name: "web-1", labels: { app: "web" } } });
 * try {
 *   pod.metadata.labels.app = "db";
 * } catch (error) {
 *   console.log(error instanceof TypeError); // true
 * }
 * ```
 */
export function freezeObject<T>(object: T): T {
  // Frozen objects are walked as well, as their members may not be frozen. A set, as there may be circles.
  const seen = new Set<unknown>();
  const rest: unknown[] = [object];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (ArrayBuffer.isView(value)) continue; // cannot be frozen
    Object.freeze(value);
    for (const part of Object.values(value)) rest.push(part);
  }
  return object;
}
