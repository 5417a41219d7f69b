/**
 * What a selector that does not parse throws.
 * @module
 */

import { CacheError } from "../util/errors.ts";

// A selector may come from anyone; its error goes into logs and answers.
const MAX_SHOWN = 200;

/**
 * Where a {@linkcode SelectorParseError} comes from.
 *
 * @example
 * ```ts
 * import { SelectorParseError, type SelectorParseErrorOptions } from "@listwatch/cache/selectors";
 * const options: SelectorParseErrorOptions = { reason: "expected a value after =", position: 4 };
 * const error = new SelectorParseError("label", "app=,", options);
 * ```
 */
export interface SelectorParseErrorOptions {
  /** What was wrong, and what would have been right. */
  readonly reason: string;
  /** Index of the offending character in the selector; left out where there is none. */
  readonly position?: number;
}

/**
 * A label or field selector does not parse, or holds a key or value that Kubernetes does not allow.
 *
 * @example
 * ```ts
 * import { parseLabelSelector, SelectorParseError } from "@listwatch/cache/selectors";
 * try {
 *   parseLabelSelector("app in web");
 * } catch (error) {
 *   if (error instanceof SelectorParseError) console.log(error.code, error.position); // ParseError 7
 * }
 * ```
 */
export class SelectorParseError extends CacheError {
  /** The text that was to be parsed. */
  readonly selector: string;
  /** What was wrong, and what would have been right. */
  readonly reason: string;
  /** Index of the offending character in {@linkcode SelectorParseError.selector}, where there is one. */
  readonly position: number | undefined;

  /** Makes the error for a selector. */
  constructor(kind: "label" | "field", selector: string, options: SelectorParseErrorOptions) {
    const shown = selector.length > MAX_SHOWN ? `${selector.slice(0, MAX_SHOWN)}...` : selector;
    super("ParseError", `Cannot use the ${kind} selector ${JSON.stringify(shown)}: ${options.reason}`);
    this.selector = selector;
    this.reason = options.reason;
    this.position = options.position;
  }
}

/** A text in quotes, shortened if it is long. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
