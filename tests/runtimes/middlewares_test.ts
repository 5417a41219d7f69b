import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
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

describe("readApi.fetch behind hono's etag() in another app", () => {
  function wrapped() {
    const { api, informer } = appOf([]);
    const app = new Hono();
    // The first one sets headers, so that hono makes a new response.
    app.use("*", cors(), etag());
    app.all("*", (c) => api.fetch(c.req.raw));
    return { api, app, informer };
  }

  it("answers a watch at once, brings its events, and ends it when it is cancelled", async () => {
    const { app, api, informer } = wrapped();
    const watch = await WatchReader.open(app, WATCH);
    informer.put(object("shop/web-2", 11));
    assert.deepEqual(await watch.lines(1), ["ADDED shop/web-2 11"]);
    await watch.cancel();
    assert.equal(openWatches(api), 0);
  });

  it("answers no watch with 304", async () => {
    const { app, api } = wrapped();
    const tags = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const response = await app.request(WATCH, { headers: { "If-None-Match": [...tags].join(", ") } });
      assert.equal(response.status, 200);
      const tag = response.headers.get("ETag") ?? "none";
      assert.ok(tag.startsWith('W/"'), tag);
      tags.add(tag);
      await response.body?.cancel();
    }
    assert.equal(tags.size, 3);
    assert.equal(openWatches(api), 0);
  });
});
