import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { logger } from "hono/logger";
import { serveFetch } from "@listwatch/cache/node";
import { object } from "../hono/fake_informer.ts";
import { appOf, MIDDLEWARES, openWatches, WATCH } from "../hono/middlewares.ts";

// Not on workerd: its test host cannot load the dynamic import of this one.
const ALL = { ...MIDDLEWARES, "logger()": [logger(() => {})] };

/** Polls, as a socket's end arrives in its own time. */
async function becomes(check: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 2_000 && !check(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(check(), what);
}

describe("readApi on a socket, behind hono's", () => {
  for (const [name, middlewares] of Object.entries(ALL)) {
    it(`${name}: a watch brings its events at once, and ends when its client leaves`, async () => {
      const { app, api, informer } = appOf(middlewares);
      const stop = new AbortController();
      const served = await serveFetch(app.fetch, { signal: stop.signal });
      try {
        const clients = Array.from({ length: 5 }, () => new AbortController());
        const abortAll = (why?: Error) => clients.forEach((client) => client.abort(why));
        const limit = setTimeout(() => abortAll(new Error("no event within 5 s")), 5_000);
        const readers = await Promise.all(clients.map(async ({ signal }) => {
          const headers = { "Accept-Encoding": "gzip" };
          const response = await fetch(served.url + WATCH, { headers, signal });
          assert.equal(response.status, 200);
          return response.body!.getReader();
        }));
        informer.put(object("shop/web-2", 11));
        for (const reader of readers) {
          const { value } = await reader.read();
          const line = JSON.parse(new TextDecoder().decode(value));
          assert.deepEqual([line.type, line.object.metadata.name], ["ADDED", "web-2"]);
        }
        assert.equal(openWatches(api), 5);
        clearTimeout(limit);
        // Deno 2.9 may not pass an abort on to a body that is open: the
        // connection stays. To cancel it always closes it.
        for (const reader of readers) await reader.cancel();
        abortAll();
        await becomes(() => openWatches(api) === 0, "watches stay open after their clients left");
      } finally {
        stop.abort();
        await served.finished;
      }
    });
  }
});
