import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pod } from "@listwatch/cache/testing";
import { call, INITIAL_EVENTS, type Json, patch, watch, withServer } from "./helpers.ts";

const as = (kind: string, version = "v1") => ({
  Accept: `application/json;as=${kind};g=meta.k8s.io;v=${version}`,
});
const ONE = as("PartialObjectMetadata");

function isPartial(object: Json, apiVersion = "meta.k8s.io/v1"): void {
  assert.deepEqual(Object.keys(object).sort(), ["apiVersion", "kind", "metadata"]);
  assert.deepEqual([object.kind, object.apiVersion], ["PartialObjectMetadata", apiVersion]);
}

describe("InMemoryApiServer: PartialObjectMetadata", () => {
  it("answers a get, in the requested version", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1", { labels: { app: "web" } }));
      const path = "/api/v1/namespaces/default/pods/web-1";
      const { body } = await call(server, "GET", path, { headers: ONE });
      isPartial(body);
      assert.deepEqual([body.metadata.name, body.metadata.labels.app], ["web-1", "web"]);
      const beta = await call(server, "GET", path, { headers: as("PartialObjectMetadata", "v1beta1") });
      isPartial(beta.body, "meta.k8s.io/v1beta1");
    }));

  it("answers a list, whose items have kind and apiVersion", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1"));
      server.create("v1/pods", pod("web-2"));
      const headers = as("PartialObjectMetadataList");
      const { body } = await call(server, "GET", "/api/v1/pods?limit=1", { headers });
      assert.deepEqual([body.kind, body.apiVersion], ["PartialObjectMetadataList", "meta.k8s.io/v1"]);
      assert.deepEqual([body.metadata.resourceVersion, body.metadata.remainingItemCount], ["3", 1]);
      assert.equal(body.items.length, 1);
      isPartial(body.items[0]);
      // As an empty slice of Go is written, where whole objects have [].
      const path = "/api/v1/namespaces/none/pods";
      assert.equal((await call(server, "GET", path, { headers })).body.items, null);
      assert.deepEqual((await call(server, "GET", path)).body.items, []);
    }));

  it("is sent in every event of a watch, including bookmarks; other watches get whole objects", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1"));
      const path = `/api/v1/pods?${INITIAL_EVENTS}`;
      const [partial, whole] = await Promise.all([
        watch(server, path, { headers: ONE }),
        watch(server, path),
      ]);
      await Promise.all([partial.take(2), whole.take(2)]).then(([events, others]) => {
        assert.deepEqual(events.map(({ type }) => type), ["ADDED", "BOOKMARK"]);
        for (const { object } of events) isPartial(object);
        assert.deepEqual(others.map(({ object }) => object.kind), ["Pod", "Pod"]);
      });
      server.patch("v1/pods", "default/web-1", { metadata: { labels: { app: "web" } } });
      server.delete("v1/pods", "default/web-1");
      const [events, others] = await Promise.all([partial.take(2), whole.take(2)]);
      assert.deepEqual(events.map(({ type }) => type), ["MODIFIED", "DELETED"]);
      for (const { object } of events) isPartial(object);
      assert.ok(others.every(({ object }) => object.kind === "Pod" && object.spec !== undefined));
      await Promise.all([partial.cancel(), whole.cancel()]);
    }));

  it("is replayed, and errors are sent as they are", () =>
    withServer({}, async (server) => {
      const { metadata } = server.create("v1/pods", pod("web-1"));
      server.create("v1/pods", pod("web-2"));
      const path = `/api/v1/pods?watch=1&resourceVersion=${metadata?.resourceVersion}`;
      const replayed = await watch(server, path, { headers: ONE });
      const [event] = await replayed.take(1);
      isPartial(event.object);
      assert.equal(event.object.metadata.name, "web-2");
      await replayed.cancel();
      server.compact();
      const [error] = await (await watch(server, path, { headers: ONE })).take(1);
      assert.deepEqual([error.type, error.object.kind, error.object.code], ["ERROR", "Status", 410]);
    }));

  it("answers a patch, and a delete unless that is answered with a Status", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1"));
      server.create("v1/configmaps", { metadata: { name: "settings" } });
      const path = "/api/v1/namespaces/default/pods/web-1";
      const change = { metadata: { labels: { app: "web" } } };
      isPartial(
        (await server.fetch(`http://in-memory${path}`, {
          method: "PATCH",
          headers: { ...ONE, "Content-Type": "application/merge-patch+json" },
          body: JSON.stringify(change),
        }).then((response) => response.json())) as Json,
      );
      assert.equal((await patch(server, path, change)).body.kind, "Pod");
      isPartial((await call(server, "DELETE", path, { headers: ONE })).body);
      const settings = "/api/v1/namespaces/default/configmaps/settings";
      assert.equal((await call(server, "DELETE", settings, { headers: ONE })).body.kind, "Status");
    }));

  it("refuses the kind of a list for one object, and that of an object for a list", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("web-1"));
      const list = await call(server, "GET", "/api/v1/pods", { headers: ONE });
      assert.deepEqual([list.status, list.body.reason], [406, "NotAcceptable"]);
      assert.match(
        list.body.message,
        /^you requested PartialObjectMetadata, but the requested object is a list/,
      );
      const one = await call(server, "GET", "/api/v1/namespaces/default/pods/web-1", {
        headers: as("PartialObjectMetadataList"),
      });
      assert.deepEqual([one.status, one.body.reason], [406, "NotAcceptable"]);
    }));
});
