import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { call, type Json, patch, watch, withServer } from "./helpers.ts";

const CORE = "/api/v1/namespaces/shop/events";
const NEW = "/apis/events.k8s.io/v1/namespaces/shop/events";

const event = {
  metadata: { name: "pulled", namespace: "shop" },
  eventTime: "2026-01-01T00:00:00.000000Z",
  reportingController: "kubelet",
  reason: "Pulled",
  regarding: { kind: "Pod", namespace: "shop", name: "web-1" },
  note: "the image is there",
  type: "Normal",
};

const named = ({ metadata }: Json) => metadata.name;

describe("InMemoryApiServer: Events", () => {
  it("are the same objects in both groups, each with its own names of fields", () =>
    withServer({}, async (server) => {
      const created = await call(server, "POST", NEW, { body: event });
      assert.deepEqual([created.status, created.body.apiVersion, created.body.note], [
        201,
        "events.k8s.io/v1",
        event.note,
      ]);
      const { reportingController, regarding, note, metadata: _, ...same } = event;
      const { metadata, ...core } = (await call(server, "GET", `${CORE}/pulled`)).body;
      assert.deepEqual(core, {
        kind: "Event",
        apiVersion: "v1",
        ...same,
        reportingComponent: reportingController,
        involvedObject: regarding,
        message: note,
      });
      assert.deepEqual(metadata, created.body.metadata);

      const { body: counted } = await patch(server, `${CORE}/pulled`, { count: 2 });
      assert.deepEqual([counted.count, counted.message], [2, note]);
      const { body: noted } = await patch(server, `${NEW}/pulled`, { note: "once more" });
      assert.deepEqual([noted.deprecatedCount, noted.note, noted.regarding], [2, "once more", regarding]);
      assert.equal((await call(server, "GET", `${CORE}/pulled`)).body.message, "once more");
      assert.equal((await call(server, "POST", CORE, { body: { metadata: event.metadata } })).status, 409);

      assert.equal((await call(server, "DELETE", `${CORE}/pulled`)).status, 200);
      assert.equal((await call(server, "GET", `${NEW}/pulled`)).status, 404);
    }));

  it("are selected, paged and watched in both groups", () =>
    withServer({}, async (server) => {
      const ofBoth = await Promise.all([CORE, NEW].map((path) => watch(server, `${path}?watch=1`)));
      server.create("events.k8s.io/v1/events", event);
      server.create("v1/events", {
        metadata: { name: "other", namespace: "shop" },
        involvedObject: { name: "web-2" },
        message: "of another pod",
      });
      const version = server.resourceVersion;
      server.delete("v1/events", "shop/pulled");

      const [core, fresh] = await Promise.all(ofBoth.map((reader) => reader.take(3)));
      const types = ["ADDED", "ADDED", "DELETED"];
      assert.deepEqual(core.map(({ type }) => type), types);
      assert.deepEqual(fresh.map(({ type }) => type), types);
      assert.deepEqual(core.map(({ object }) => object.message), [event.note, "of another pod", event.note]);
      assert.deepEqual(fresh.map(({ object }) => object.note), [event.note, "of another pod", event.note]);
      assert.deepEqual(fresh.map(({ object }) => object.apiVersion), Array(3).fill("events.k8s.io/v1"));

      const replayed = await watch(server, `${NEW}?watch=1&resourceVersion=${version}`);
      const [{ type, object }] = await replayed.take(1);
      assert.deepEqual([type, object.note, object.regarding], ["DELETED", event.note, event.regarding]);

      const then = `resourceVersion=${version}&resourceVersionMatch=Exact`;
      const list = async (query: string) => (await call(server, "GET", query)).body.items;
      assert.deepEqual((await list(`${NEW}?${then}&fieldSelector=regarding.name=web-1`)).map(named), [
        "pulled",
      ]);
      assert.deepEqual((await list(`${CORE}?${then}&fieldSelector=involvedObject.name=web-1`)).map(named), [
        "pulled",
      ]);
      assert.deepEqual((await list(NEW)).map(({ note }: Json) => note), ["of another pod"]);
    }));

  it("are discovered in both groups", () =>
    withServer({}, async (server) => {
      const { body } = await call(server, "GET", "/apis/events.k8s.io/v1");
      assert.deepEqual(body.resources.map(({ name, kind }: Json) => `${name} ${kind}`), ["events Event"]);
      assert.ok(server.resources.some(({ group, resource }) => group === "" && resource === "events"));
    }));
});
