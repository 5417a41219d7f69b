/**
 * `node:assert/strict` without Node: what portable suites use of it, for workerd with its
 * Node compatibility off. The comparisons follow Node's strict ones: prototypes, own
 * enumerable keys and symbols, `Object.is` for numbers.
 *
 * @module
 */

type Expected =
  | RegExp
  | (new (...args: never[]) => Error)
  | ((error: unknown) => boolean)
  | object
  | Error;
type Message = string | Error;

/** What a failed assertion throws. */
export class AssertionError extends Error {
  readonly code = "ERR_ASSERTION";

  constructor(
    message: string,
    readonly actual?: unknown,
    readonly expected?: unknown,
  ) {
    super(message);
    this.name = "AssertionError";
  }
}

function failed(
  message: Message | undefined,
  text: string,
  actual?: unknown,
  expected?: unknown,
): never {
  if (message instanceof Error) throw message;
  throw new AssertionError(
    message === undefined ? text : `${message}\n${text}`,
    actual,
    expected,
  );
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Error) return `[${value.name}: ${value.message}]`;
  if (value instanceof Map) return `Map ${show([...value])}`;
  if (value instanceof Set) return `Set ${show([...value])}`;
  if (typeof value !== "object" || value === null) return String(value);
  try {
    const text = JSON.stringify(value, (_, inner) => {
      if (typeof inner === "bigint") return `${inner}n`;
      return inner === undefined ? "undefined" : inner;
    });
    return text.length > 2_000 ? `${text.slice(0, 2_000)}...` : text;
  } catch {
    return String(value);
  }
}

export function ok(value: unknown, message?: Message): asserts value {
  if (!value) {
    failed(message, `expected a truthy value, got ${show(value)}`, value, true);
  }
}

export function fail(message: Message = "Failed"): never {
  failed(message, "fail() was called");
}

export function strictEqual(
  actual: unknown,
  expected: unknown,
  message?: Message,
): void {
  if (!Object.is(actual, expected)) {
    failed(
      message,
      `expected ${show(expected)}, got ${show(actual)}`,
      actual,
      expected,
    );
  }
}

export function notStrictEqual(
  actual: unknown,
  expected: unknown,
  message?: Message,
): void {
  if (Object.is(actual, expected)) {
    failed(message, `expected anything but ${show(actual)}`, actual, expected);
  }
}

export function deepStrictEqual(
  actual: unknown,
  expected: unknown,
  message?: Message,
): void {
  if (!isDeepEqual(actual, expected, new Map())) {
    failed(
      message,
      `expected ${show(expected)}, got ${show(actual)}`,
      actual,
      expected,
    );
  }
}

export function notDeepStrictEqual(
  actual: unknown,
  expected: unknown,
  message?: Message,
): void {
  if (isDeepEqual(actual, expected, new Map())) {
    failed(message, `expected anything but ${show(actual)}`, actual, expected);
  }
}

export function match(text: string, pattern: RegExp, message?: Message): void {
  if (typeof text !== "string" || !pattern.test(text)) {
    failed(
      message,
      `expected text like ${pattern}, got ${show(text)}`,
      text,
      pattern,
    );
  }
}

export function doesNotMatch(
  text: string,
  pattern: RegExp,
  message?: Message,
): void {
  if (typeof text !== "string" || pattern.test(text)) {
    failed(
      message,
      `expected no text like ${pattern}, got ${show(text)}`,
      text,
      pattern,
    );
  }
}

export function ifError(value: unknown): void {
  if (value !== null && value !== undefined) throw value;
}

export function throws(
  fn: () => unknown,
  expected?: Expected | Message,
  message?: Message,
): void {
  try {
    fn();
  } catch (error) {
    return checkError(error, expected, message);
  }
  failed(messageOf(expected, message), "expected a throw");
}

export function doesNotThrow(fn: () => unknown): void {
  fn();
}

export async function rejects(
  work: Promise<unknown> | (() => Promise<unknown>),
  expected?: Expected | Message,
  message?: Message,
): Promise<void> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    return checkError(error, expected, message);
  }
  failed(messageOf(expected, message), "expected a rejection");
}

export async function doesNotReject(
  work: Promise<unknown> | (() => Promise<unknown>),
): Promise<void> {
  await (typeof work === "function" ? work() : work);
}

function messageOf(
  expected: unknown,
  message: Message | undefined,
): Message | undefined {
  return typeof expected === "string" ? expected : message;
}

function checkError(
  error: unknown,
  expected: Expected | Message | undefined,
  message?: Message,
): void {
  if (expected === undefined || typeof expected === "string") return;
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) {
      failed(
        message,
        `expected an error like ${expected}, got ${error}`,
        error,
      );
    }
  } else if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (
      expected === Error || expected.prototype instanceof Error
    ) {
      failed(message, `expected a ${expected.name}, got ${error}`, error);
    }
    const verdict = (expected as (error: unknown) => boolean)(error);
    if (verdict !== true) {
      failed(
        message,
        `the check of the error returned ${verdict}: ${error}`,
        error,
      );
    }
  } else {
    const keys: string[] = Object.keys(expected);
    if (expected instanceof Error) keys.push("name", "message");
    for (const key of keys) {
      const wanted = (expected as Record<string, unknown>)[key];
      const actual = (error as Record<string, unknown> | undefined)?.[key];
      const isEqual = wanted instanceof RegExp && typeof actual === "string"
        ? wanted.test(actual)
        : isDeepEqual(actual, wanted, new Map());
      if (!isEqual) {
        failed(
          message,
          `expected ${key} ${show(wanted)}, got ${show(actual)} in ${error}`,
          error,
          expected,
        );
      }
    }
  }
}

/** `pairs` holds what is being compared, so that cycles end. */
function isDeepEqual(
  a: unknown,
  b: unknown,
  pairs: Map<unknown, unknown>,
): boolean {
  if (Object.is(a, b)) return true;
  if (
    typeof a !== "object" || typeof b !== "object" || a === null || b === null
  ) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (pairs.get(a) === b) return true;
  pairs.set(a, b);
  if (a instanceof Date) return a.getTime() === (b as Date).getTime();
  if (a instanceof RegExp) return String(a) === String(b);
  if (
    a instanceof Error &&
    (a.name !== (b as Error).name || a.message !== (b as Error).message)
  ) return false;
  if (ArrayBuffer.isView(a) && !(a instanceof DataView)) {
    const [left, right] = [a as Uint8Array, b as Uint8Array];
    if (
      left.length !== right.length ||
      left.some((value, index) => !Object.is(value, right[index]))
    ) return false;
    return true;
  }
  if (a instanceof Set) {
    const rest = [...b as Set<unknown>];
    if (a.size !== rest.length) return false;
    for (const value of a) {
      const at = rest.findIndex((other) => isDeepEqual(value, other, pairs));
      if (at === -1) return false;
      rest.splice(at, 1);
    }
  }
  if (a instanceof Map) {
    const other = b as Map<unknown, unknown>;
    if (a.size !== other.size) return false;
    for (const [key, value] of a) {
      if (other.has(key)) {
        if (!isDeepEqual(value, other.get(key), pairs)) return false;
      } else if (
        ![...other].some(([k, v]) => isDeepEqual(key, k, pairs) && isDeepEqual(value, v, pairs))
      ) return false;
    }
  }
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return false;
  const keys = ownKeys(a);
  if (keys.length !== ownKeys(b).length) return false;
  return keys.every((key) =>
    Object.prototype.propertyIsEnumerable.call(b, key) &&
    isDeepEqual(Reflect.get(a, key), Reflect.get(b, key), pairs)
  );
}

function ownKeys(value: object): (string | symbol)[] {
  return Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));
}

export {
  deepStrictEqual as deepEqual,
  notDeepStrictEqual as notDeepEqual,
  notStrictEqual as notEqual,
  strictEqual as equal,
};

/** `assert(value)` is `ok`, and has all the others. */
function assert(value: unknown, message?: Message): asserts value {
  ok(value, message);
}

Object.assign(assert, {
  AssertionError,
  deepEqual: deepStrictEqual,
  deepStrictEqual,
  doesNotMatch,
  doesNotReject,
  doesNotThrow,
  equal: strictEqual,
  fail,
  ifError,
  match,
  notDeepEqual: notDeepStrictEqual,
  notDeepStrictEqual,
  notEqual: notStrictEqual,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
  throws,
});

/** A default export because `node:assert/strict` has one. */
export default assert;
