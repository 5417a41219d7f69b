/** Bodies that never end, behind middlewares. */

import type { Context } from "hono";

/**
 * Keeps middlewares of the same app from reading the body of an endless response: `etag()` and `prettyJSON()`
 * read a clone of each response to its end before it is sent, and a body that was cloned does not learn that
 * its client has left. A clone of this response has no body, which makes them leave it alone. `isEndless`
 * recognizes it: where a middleware has set headers, hono makes a new response of it.
 */
export function protectEndlessBody(c: Context, isEndless: (response: Response) => boolean): void {
  const { get, set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(c), "res") ?? {};
  if (get === undefined || set === undefined) return;
  Object.defineProperty(c, "res", {
    configurable: true,
    get(): Response {
      const response: Response = get.call(c);
      return isEndless(response) ? withEmptyClone(response) : response;
    },
    set(response: Response | undefined) {
      set.call(c, response);
    },
  });
}

/**
 * An `ETag` that no other response has: no request can be answered 304 for it. hono's `etag()` reads the whole body of a
 * response without one, also in an app that calls this one's `fetch`
 * (https://github.com/honojs/hono/blob/main/src/middleware/etag/index.ts).
 */
export function uniqueTag(): string {
  return `W/"${crypto.randomUUID()}"`;
}

/** The same response; a clone of it has no body. */
export function withEmptyClone(response: Response): Response {
  const { status, statusText, headers } = response;
  response.clone = () => new Response(null, { status, statusText, headers });
  return response;
}
