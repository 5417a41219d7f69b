/** Faults of what the read API sends on. */

import type { SuiteMutation } from "../mutant.ts";

export const HONO_UPSTREAM_FAULTS: readonly SuiteMutation[] = [
  {
    name: "read API: the bytes of OpenAPI documents are not counted",
    file: "src/hono/upstream/open_api.ts",
    find: "if (!reader.take(Math.min(kept.bytes.length, MOST_PIECE)))",
    replace: "if (kept === undefined)",
    test: "tests/hono/request/held_answers_test.ts",
  },
  {
    name: "pass-through: a token of the cache's own is sent to the API server",
    file: "src/hono/upstream/pass_through.ts",
    find: "    if (this.#hasOwnReaders) {",
    replace: "    if (this.#hasOwnReaders && bearerTokenOf(c) === undefined) {",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "pass-through: every header is sent on",
    file: "src/hono/upstream/pass_through.ts",
    find: "  for (const name of REQUEST_HEADERS) {",
    replace: "  for (const name of c.req.raw.headers.keys()) {",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "pass-through: every header of a response is passed to the reader",
    file: "src/hono/upstream/pass_through.ts",
    find: "for (const name of RESPONSE_HEADERS) {",
    replace: "for (const name of from.keys()) {",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "pass-through: a path that another server reads as another one is sent on",
    file: "src/hono/upstream/pass_through.ts",
    find: "return isPlain ? decoded : undefined;",
    replace: "return decoded;",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "forward: a watch outlives its user's credential",
    file: "src/hono/upstream/passed_answer.ts",
    find: "if (isStream) close(true)?.close();",
    replace: "if (isStream) return;",
    test: "tests/hono/upstream/forward_test.ts",
  },
  {
    name: "pass-through: an answer that is cut off ends as if it were whole",
    file: "src/hono/upstream/passed_answer.ts",
    find: "if (isStream) close(true)?.close();",
    replace: "if (true) close(true)?.close();",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "pass-through: an answer that stalls is not ended",
    file: "src/hono/upstream/passed_answer.ts",
    find: "if (silence === undefined) return await source.read();",
    replace: "return await source.read();",
    test: "tests/hono/upstream/pass_through_test.ts",
  },
  {
    name: "forward: the other server receives a value that was not decided on",
    file: "src/hono/upstream/forward.ts",
    find: "new URLSearchParams(Array.from(new Map(Array.from(searchParams).reverse())).reverse());",
    replace: "new URLSearchParams(searchParams);",
    test: "tests/hono/upstream/forward_test.ts",
  },
];
