/**
 * Requests in the forms in which clients of other languages send them, as recorded from these clients.
 *
 * @module
 */

import assert from "node:assert/strict";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get, names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";
import { describe, it } from "../storages.ts";

const PATH = "/api/v1/namespaces/shop/pods";

function servePods() {
  const informer = FakeInformer.with([object("shop/db", 5), object("shop/web", 6)], 10);
  const resources = [{ informer, resource: "v1/pods" }];
  return readApi({ resources, allowAnonymous: true, clock: new FakeClock() });
}

describe("readApi, for the request forms of other languages' clients", () => {
  it("reads the booleans of Python (kubernetes_asyncio)", async () => {
    const api = servePods();
    assert.deepEqual(names(await get(api, `${PATH}?watch=False&allowWatchBookmarks=False`)), [
      "shop/db",
      "shop/web",
    ]);
    const watch = await WatchReader.open(
      api,
      `${PATH}?allowWatchBookmarks=False&timeoutSeconds=9&watch=True`,
    );
    assert.deepEqual((await watch.chunk())?.map(({ type }) => type), ["ADDED", "ADDED"]);
  });

  it("selects by a name that is required twice, and nothing by two names (kr8s)", async () => {
    const api = servePods();
    const select = (...values: string[]) =>
      `${PATH}?limit=100&fieldSelector=${values.map((name) => `metadata.name%3D${name}`).join("%2C")}`;
    assert.deepEqual(names(await get(api, select("web", "web"))), ["shop/web"]);
    assert.deepEqual(names(await get(api, select("web", "db"))), []);
  });

  it("streams a list whose resourceVersion is empty (the official client of Python)", async () => {
    const query = "allowWatchBookmarks=true&resourceVersion=&resourceVersionMatch=NotOlderThan" +
      "&sendInitialEvents=true&watch=true";
    const watch = await WatchReader.open(servePods(), `${PATH}?${query}`);
    const events = await watch.chunk();
    assert.deepEqual(events?.map(({ type }) => type), ["ADDED", "ADDED", "BOOKMARK"]);
  });

  it("answers with a Table of v1beta1 where nothing else is accepted (pykube-ng)", async () => {
    const table = await get(servePods(), PATH, {
      accept: "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    });
    assert.deepEqual([table.kind, table.apiVersion, table.rows.length], ["Table", "meta.k8s.io/v1beta1", 2]);
  });

  it("ignores the Content-Type of a GET, and a language's own charset in it (fabric8)", async () => {
    const headers = { "Content-Type": "application/json; charset=utf-8", "Accept": "*/*" };
    const response = await servePods().request(`${PATH}?watch=false`, { headers });
    assert.equal(response.headers.get("Content-Type"), "application/json");
    assert.deepEqual(names(await response.json()), ["shop/db", "shop/web"]);
  });
});
