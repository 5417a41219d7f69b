/**
 * The error for selectors that do not parse.
 * @module
 */

import { CacheError } from "../util/errors.ts";

// A selector may come from any client; its error is written to logs and answers.
const MAX_SHOWN = 200;

/**
 * Options of {@linkcode SelectorParseError}.
 *
 * @category Selectors
 */
export interface SelectorParseErrorOptions {
  /** What is wrong, and what would be right. */
  readonly reason: string;
  /** The index of the wrong character in the selector, if there is one. */
  readonly position?: number;
}

/**
 * A label or field selector does not parse, or has a key or value that Kubernetes does not allow.
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
 *
 * @category Selectors
 */
export class SelectorParseError extends CacheError {
  /** The selector. */
  readonly selector: string;
  /** What is wrong, and what would be right. */
  readonly reason: string;
  /** The index of the wrong character in {@linkcode SelectorParseError.selector}, if there is one. */
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
