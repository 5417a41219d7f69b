/** What a reconcile returns or throws, checked: programs without types return anything. */

import { CacheError, findCause } from "../util/errors.ts";
import { isRecord } from "../util/json.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { Result } from "./definition.ts";

/**
 * An error that another try would meet again: the object is not reconciled before it changes. It may be the
 * cause of what a reconcile throws.
 *
 * Mirrors controller-runtime's `reconcile.TerminalError`.
 *
 * @example
 * ```ts
 * import { TerminalError } from "@listwatch/cache/controller";
 * const error = new TerminalError("spec.color is not a color");
 * console.log(error.code, error.message); // Terminal spec.color is not a color
 * ```
 */
export class TerminalError extends CacheError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Terminal", message, options);
  }
}

export function isTerminal(error: unknown): boolean {
  return findCause(error, TerminalError) !== undefined;
}

/** @throws {TypeError | RangeError} It is no result. */
export function asResult(value: unknown): Result {
  if (value === undefined || value === null) return {};
  const fail = (what: string, instead = "{ status, requeueAfterMs } or nothing") =>
    new TypeError(`it returned ${what}; return ${instead}`);
  if (!isRecord(value)) throw fail(typeName(value));
  const unknown = Object.keys(value).find((name) => name !== "status" && name !== "requeueAfterMs");
  if (unknown !== undefined) throw fail(JSON.stringify(unknown));
  const { status, requeueAfterMs } = value as Result;
  if (status !== undefined && !isRecord(status)) {
    throw fail(`a status that is ${typeName(status)}`, "an object");
  }
  requireNumbers("reconcile again", { requeueAfterMs }, { mayBeInfinite: true });
  return { status, ...(requeueAfterMs !== undefined && { requeueAfterMs }) };
}

/** @throws {TypeError} It is no key. */
export function checkedKey(key: unknown): string {
  if (typeof key === "string") return key;
  throw new TypeError(`${String(key)} is no key`);
}

function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
