/**
 * Errors of `JSON.parse` without a quote of the text.
 * @module
 */

import { errorMessage } from "./errors.ts";

/**
 * What is wrong with a text that is not JSON: the position, or that it ends too early. The runtimes' messages
 * quote the text, which may be a Secret or a token.
 */
export function jsonFault(error: unknown): string {
  const message = errorMessage(error).slice(0, 1024);
  const position = / at position ([0-9]{1,15})/.exec(message)?.[1];
  if (position !== undefined) return `it is broken at position ${position}`;
  return /unexpected (?:end|eof)|unterminated/i.test(message) ? "it ends too early" : "it cannot be parsed";
}
