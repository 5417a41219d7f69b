/** Whether the options say who may read. */

import type { ReadApiOptions } from "./read_api_options.ts";

/**
 * Checks the options that decide on access.
 *
 * @throws {TypeError} There is neither `authorize` nor `allowAnonymous`, or both, or one of them is of another type.
 */
export function checkAccess(options: ReadApiOptions): void {
  const { authenticate, authorize, allowAnonymous, allowSecrets } = options;
  for (const [name, hook] of Object.entries({ authenticate, authorize, clientOf: options.clientOf })) {
    if (hook === undefined || typeof hook === "function") continue;
    throw new TypeError(`Cannot use ${typeOf(hook)} as \`${name}\`: it must be a function, or left out`);
  }
  for (const [name, value] of Object.entries({ allowAnonymous, allowSecrets })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw new TypeError(
      `Cannot use the option \`${name}\`: it is ${typeOf(value)}, and must be true or false`,
    );
  }
  if (authorize === undefined && allowAnonymous !== true) {
    throw new TypeError(
      "Cannot serve a cache without an access decision: give readApi an `authorize` hook that decides who may read " +
        "what, or say `allowAnonymous: true` if every client that can reach the server may read everything",
    );
  }
  if (authorize !== undefined && allowAnonymous === true) {
    throw new TypeError(
      "Cannot combine the options: readApi has both `authorize` and `allowAnonymous: true`; leave one out",
    );
  }
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}
