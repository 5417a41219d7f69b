import { Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
import { prettyJSON } from "hono/pretty-json";
import { timeout } from "hono/timeout";
import { type ReadApi, readApi } from "@listwatch/cache/hono";
import { FakeInformer, object } from "./fake_informer.ts";

/** The middlewares, by their names in the tests' titles. */
export const MIDDLEWARES: Readonly<Record<string, readonly MiddlewareHandler[]>> = {
  "etag()": [etag()],
  "compress()": [compress({ threshold: 1 })],
  "prettyJSON()": [prettyJSON()],
  "prettyJSON({ force: true })": [prettyJSON({ force: true })],
  "timeout()": [timeout(2_000)],
  "cors()": [cors()],
  // One that sets headers first, so that hono makes a new response of each one.
  "cors() and etag()": [cors(), etag()],
  "all of them": [cors(), timeout(2_000), compress({ threshold: 1 }), etag(), prettyJSON()],
};
/** A watch that middlewares would like to read. */
export const WATCH = "/api/v1/pods?watch=1&resourceVersion=10&pretty=true&allowWatchBookmarks=true";

/** An app with these middlewares before the read API. */
export function appOf(
  middlewares: readonly MiddlewareHandler[],
): { readonly informer: FakeInformer; readonly api: ReadApi; readonly app: Hono } {
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
  const app = new Hono();
  for (const middleware of middlewares) app.use("*", middleware);
  app.route("/", api);
  return { informer, api, app };
}

/** Counts the open watches. */
export function openWatches(api: ReadApi): number {
  let count = 0;
  api.endWatches(() => (count++, false));
  return count;
}
