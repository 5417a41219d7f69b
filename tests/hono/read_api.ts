/**
 * Read APIs of tests, which leave nothing behind.
 * @module
 */

import assert from "node:assert/strict";
import type { ReadApi, ReadApiOptions } from "@listwatch/cache/hono";
import { CountedReadApi } from "../nothing_left.ts";

const made: { readonly at: string; readonly api: CountedReadApi }[] = [];

/** As the library's `readApi`; when the test has ended, its readers have left, and nothing of them stays. */
export function readApi(options: ReadApiOptions): ReadApi {
  const api = new CountedReadApi(options);
  made.push({ at: new Error().stack?.split("\n")[2].trim() ?? "", api });
  return api.api;
}

// Not `afterEach` of node:test, whose errors Deno ignores outside of `describe`.
Deno.test.afterEach(async () => {
  const ended = made.splice(0);
  for (const { api } of ended) await api.end();
  const left = ended.flatMap(({ at, api }) =>
    api.left().map((what) => `${what}, of the read API made ${at}`)
  );
  assert.deepEqual(left, []);
});
