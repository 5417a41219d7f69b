/** What `error` callbacks receive. */

import { failureInWords } from "../../meta/request.ts";
import { statusErrorOf } from "../../meta/status.ts";

/**
 * A list or watch that failed, with the properties that programs read of client-node's errors. The
 * informer tries again by itself. Its `cause` is the error of this package: a `StatusError`, a
 * `NetworkError` or what the `KubeConfig` threw.
 *
 * @example
 * ```ts
 * import { isForbidden } from "@listwatch/cache";
 * import { ListWatchError } from "@listwatch/cache/compat/client-node";
 * function onError(error: unknown) {
 *   if (error instanceof ListWatchError && isForbidden(error.cause)) console.log(error.statusCode, error.message); // 403
 * }
 * ```
 */
export class ListWatchError extends Error {
  /** The HTTP status of the server's answer; `undefined` if there was no answer. */
  readonly statusCode: number | undefined;
  /**
   * The HTTP status, as client-node's `ApiException` has it;
   * without an answer the system's code: `ECONNREFUSED`.
   */
  readonly code: number | string | undefined;

  /** @param error What failed. */
  constructor(error: Error) {
    super(error.message, { cause: error });
    this.name = "ListWatchError";
    const status = statusErrorOf(error)?.httpStatus;
    this.statusCode = status || undefined;
    this.code = this.statusCode ?? systemCodeOf(error);
  }

  /** Why it failed, in a few words that are the same on every runtime. */
  get reason(): string {
    return failureInWords(this.cause);
  }
}

/** The code of the innermost error that has one: runtimes wrap what the system said. */
function systemCodeOf(error: unknown): string | undefined {
  let code: string | undefined;
  let next = error;
  for (let depth = 0; next instanceof Error && depth < 16; depth++) {
    const { code: own } = next as Error & { code?: unknown };
    if (typeof own === "string") code = own;
    next = next.cause;
  }
  return code;
}
