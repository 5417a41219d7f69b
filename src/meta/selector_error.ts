/**
 * What a selector that does not parse throws.
 * @module
 */

import { CacheError } from "../util/errors.ts";

/** Where a {@linkcode SelectorParseError} comes from. */
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
 * import { parseLabelSelector, SelectorParseError } from "@listwatch/cache";
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
    super("ParseError", `Cannot use the ${kind} selector ${JSON.stringify(selector)}: ${options.reason}`);
    this.selector = selector;
    this.reason = options.reason;
    this.position = options.position;
  }
}
