/**
 * The error for answers that cannot be read.
 * @module
 */

import { CacheError } from "../util/errors.ts";

/**
 * A server's answer cannot be decoded: it is not JSON, or JSON of another shape.
 *
 * @example
 * ```ts
 * import { DecodeError } from "@listwatch/cache/client";
 * const error = new DecodeError('Cannot list "pods": the answer is a page of HTML');
 * console.log(error.code); // Decode
 * ```
 *
 * @category Objects and errors
 */
export class DecodeError extends CacheError {
  /** Makes the error. */
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Decode", message, options);
  }
}
