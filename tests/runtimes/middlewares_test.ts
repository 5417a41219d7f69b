import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { object } from "../hono/fake_informer.ts";
import { appOf, MIDDLEWARES, openWatches, WATCH } from "../hono/middlewares.ts";
import { names, WatchReader } from "../hono/reading.ts";

describe("readApi behind hono's", () => {
  for (const [name, middlewares] of Object.entries(MIDDLEWARES)) {
    it(`${name}: a watch is answered at once, brings its events, and ends when it is cancelled`, async () => {
      const { app, api, informer } = appOf(middlewares);
      const watch = await WatchReader.open(app, WATCH);
      informer.put(object("shop/web-2", 11));
      assert.deepEqual(await watch.lines(1), ["ADDED shop/web-2 11"]);
      assert.equal(openWatches(api), 1);
      await watch.cancel();
      assert.equal(openWatches(api), 0);
    });

    it(`${name}: lists and errors are answered as ever`, async () => {
      const { app } = appOf(middlewares);
      const list = await app.request("/api/v1/pods?pretty=true");
      assert.deepEqual(names(await list.json()), ["shop/web-1"]);
      assert.equal((await app.request("/api/v1/pods?pretty=true&watch=1&resourceVersion=1")).status, 200);
      assert.equal((await app.request("/api/v1/namespaces/shop/pods/none?pretty=true")).status, 404);
    });
  }
});
