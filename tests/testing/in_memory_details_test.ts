/** Rules of writes that a real API server was seen to follow: tests/cluster/in_memory_server_test.ts. */

import { configMap, deployment, pod } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";
import { call, type Json, patch, withServer } from "./helpers.ts";

const CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps";
const DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";
const WIDGET = "/apis/example.com/v1/namespaces/shop/widgets/a";

function newWidget(more: object = {}) {
  return {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "a", namespace: "shop" },
    ...more,
  };
}

describe("InMemoryApiServer: details of a delete", () => {
  it("has its options from its body alone, if it has one", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const { status } = await call(server, "DELETE", `${CONFIG_MAPS}/a?dryRun=All&gracePeriodSeconds=x`, {
        body: { kind: "DeleteOptions", apiVersion: "v1" },
      });
      assert.equal(status, 200);
      assert.equal(server.get("v1/configmaps", "shop/a"), undefined);
    }));

  it("shows in a dry run the object as it would be marked", () =>
    withServer({ gracefulPodDeletion: true }, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop", finalizers: ["x/y"] }));
      server.create("v1/pods", pod("a", { namespace: "shop", spec: { nodeName: "n" } }));
      const before = server.resourceVersion;
      const held = await call(server, "DELETE", `${CONFIG_MAPS}/a?dryRun=All`);
      assert.equal(held.body.kind, "ConfigMap");
      assert.equal(held.body.metadata.deletionGracePeriodSeconds, 0);
      const graceful = await call(server, "DELETE", "/api/v1/namespaces/shop/pods/a?dryRun=All");
      assert.equal(graceful.body.metadata.deletionGracePeriodSeconds, 30);
      assert.equal(server.resourceVersion, before);
    }));

  it("can only shorten a grace period that runs", () =>
    withServer({ gracefulPodDeletion: true }, async (server) => {
      server.create("v1/pods", pod("a", { namespace: "shop", spec: { nodeName: "n" } }));
      const path = "/api/v1/namespaces/shop/pods/a";
      const secondsAfter = async (query: string) =>
        (await call(server, "DELETE", path + query)).body.metadata.deletionGracePeriodSeconds;
      assert.equal(await secondsAfter(""), 30);
      assert.equal(await secondsAfter("?gracePeriodSeconds=60"), 30);
      server.patch("v1/pods", "shop/a", { status: { phase: "Failed" } });
      assert.equal(await secondsAfter(""), 30);
      assert.equal(await secondsAfter("?gracePeriodSeconds=-5"), 1);
      assert.equal(await secondsAfter("?gracePeriodSeconds=0"), 0);
      assert.equal(server.get("v1/pods", "shop/a"), undefined);
    }));

  it("is over with the last finalizer, and the answer has none", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop", finalizers: ["x/y"] }));
      const marked = server.delete("v1/configmaps", "shop/a");
      const { body } = await patch(server, `${CONFIG_MAPS}/a`, {
        metadata: { finalizers: null },
        data: { a: "1" },
      });
      assert.equal(body.metadata.finalizers, undefined);
      assert.deepEqual(body.data, { a: "1" });
      assert.equal(body.metadata.resourceVersion, marked.metadata?.resourceVersion);
      assert.equal(server.get("v1/configmaps", "shop/a"), undefined);
    }));
});

describe("InMemoryApiServer: details of a PUT", () => {
  it("creates a Lease, if it names no uid", () =>
    withServer({}, async (server) => {
      const put = (metadata: object) =>
        call(server, "PUT", `${LEASES}/a`, { body: { metadata: { name: "a", ...metadata } } });
      assert.equal((await put({ uid: "other" })).status, 409);
      const created = await put({ resourceVersion: "7" });
      assert.equal(created.status, 201);
      const unversioned = await put({});
      assert.equal(unversioned.status, 422);
      assert.match(unversioned.body.message, /resourceVersion: Invalid value: 0: must be specified/);
      const { resourceVersion } = created.body.metadata;
      assert.equal((await put({ resourceVersion })).status, 200);
      const { status } = await call(server, "PUT", `${CONFIG_MAPS}/a`, { body: { metadata: { name: "a" } } });
      assert.equal(status, 404);
    }));

  it("of a custom resource needs a version other than 0, and the type", () =>
    withServer({ customResources: [WIDGET_RESOURCE] }, async (server) => {
      server.create(WIDGETS, newWidget());
      const put = (body: object) => call(server, "PUT", WIDGET, { body });
      const metadata = { name: "a", resourceVersion: "0" };
      assert.equal((await put(newWidget({ metadata }))).status, 422);
      assert.match(
        (await put(newWidget({ apiVersion: undefined }))).body.message,
        /the API version in the data \(\) does not match the expected API version \(example.com\/v1\)/,
      );
    }));

  it("marks nothing for deletion", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const metadata = { name: "a", deletionTimestamp: "2020-01-01T00:00:00Z" };
      const { status, body } = await call(server, "PUT", `${CONFIG_MAPS}/a`, { body: { metadata } });
      assert.equal(status, 422);
      assert.match(body.message, /metadata.deletionTimestamp: .*: field is immutable/);
    }));
});

describe("InMemoryApiServer: details of a POST", () => {
  it("accepts the version 0, and any version in a dry run", () =>
    withServer({}, async (server) => {
      const post = async (resourceVersion: string, query = "") =>
        (await call(server, "POST", CONFIG_MAPS + query, {
          body: { metadata: { name: "a", resourceVersion } },
        })).status;
      assert.equal(await post("5"), 500);
      assert.equal(await post("5", "?dryRun=All"), 201);
      assert.equal(await post("0"), 201);
    }));
});

describe("InMemoryApiServer: details of a patch", () => {
  it("with the uid of another object is invalid", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const { status, body } = await patch(server, `${CONFIG_MAPS}/a`, { metadata: { uid: "other" } });
      assert.equal(status, 422);
      assert.match(body.message, /metadata.uid: Invalid value: "other": field is immutable/);
    }));

  it("that leaves nothing in the metadata it removes writes nothing", () =>
    withServer({}, async (server) => {
      const before = server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      for (const metadata of [{ labels: { x: null } }, { annotations: {} }, { finalizers: [] }]) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const { body } = await patch(server, `${CONFIG_MAPS}/a`, { metadata });
        assert.deepEqual(body, before);
      }
    }));

  it("of a Deployment's annotations makes a new generation", () =>
    withServer({}, async (server) => {
      server.create("apps/v1/deployments", deployment("web", { namespace: "shop" }));
      const generation = async (metadata: object) =>
        (await patch(server, DEPLOYMENT, { metadata })).body.metadata.generation;
      assert.equal(await generation({ labels: { a: "b" } }), 1);
      assert.equal(await generation({ annotations: { a: null } }), 1);
      assert.equal(await generation({ annotations: { a: "b" } }), 2);
    }));

  it("puts what it adds to a list before what is there, and leaves out an empty list", () =>
    withServer({}, async (server) => {
      const containers = ["a", "b", "c"].map((name) => ({ name, image: "i:1" }));
      server.create("apps/v1/deployments", {
        metadata: { namespace: "shop", name: "web" },
        spec: { containers },
      });
      const names = async (items: object[]) => {
        const body = { spec: { containers: items } };
        const patched = await patch(server, DEPLOYMENT, body, "strategic-merge");
        return patched.body.spec.containers?.map(({ name }: Json) => name);
      };
      assert.deepEqual(await names([{ name: "c", image: "i:2" }]), ["a", "b", "c"]);
      assert.deepEqual(await names([{ name: "new" }, { name: "b" }]), ["new", "a", "b", "c"]);
      assert.deepEqual(await names([{ name: "c" }, { name: "a" }]), ["new", "b", "c", "a"]);
      const all = ["new", "a", "b", "c"].map((name) => ({ name, $patch: "delete" }));
      assert.equal(await names(all), undefined);
    }));

  it("tests with null that a member is not there", () =>
    withServer({}, async (server) => {
      server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
      const test = async (path: string, value: unknown) =>
        (await patch(server, `${CONFIG_MAPS}/a`, [{ op: "test", path, value }], "json")).status;
      assert.equal(await test("/metadata/labels", null), 200);
      assert.equal(await test("/metadata/labels", {}), 422);
      assert.equal(await test("/metadata/name", null), 422);
      assert.equal(await test("/none/of", null), 422);
    }));
});

describe("InMemoryApiServer: details of a server-side apply", () => {
  const apply = (
    server: Parameters<typeof call>[0],
    path: string,
    manager: string,
    body: object,
  ): ReturnType<typeof call> =>
    call(server, "PATCH", `${path}?fieldManager=${manager}`, {
      body,
      headers: { "Content-Type": "application/apply-patch+yaml" },
    });

  it("needs no name for an object that is there, and no version for one that is not", () =>
    withServer({}, async (server) => {
      const config = (metadata: object) => ({ apiVersion: "v1", kind: "ConfigMap", metadata });
      const status = async (metadata: object) =>
        (await apply(server, `${CONFIG_MAPS}/a`, "me", config(metadata))).status;
      assert.equal(await status({}), 400);
      assert.equal(await status({ name: "a", uid: "other" }), 409);
      assert.equal(await status({ name: "a", resourceVersion: "1" }), 201);
      assert.equal(await status({ labels: { a: "b" } }), 200);
      assert.equal(await status({ labels: { a: null } }), 200);
      assert.equal(server.get("v1/configmaps", "shop/a")?.metadata?.labels, undefined);
      const before = server.resourceVersion;
      await patch(server, `${CONFIG_MAPS}/a`, { metadata: { labels: { a: null } } });
      assert.equal(server.resourceVersion, before);
    }));

  it("keeps the managers of a custom resource's status, and lists all conflicts", () =>
    withServer({ customResources: [WIDGET_RESOURCE] }, async (server) => {
      server.create(WIDGETS, newWidget());
      const of = (status: object) => newWidget({ metadata: { name: "a" }, status });
      await apply(server, `${WIDGET}/status`, "one", of({ phase: "A", size: 1 }));
      const { body } = await apply(server, `${WIDGET}/status`, "two", of({ size: 2, phase: "B" }));
      const text = `conflicts with "one" with subresource "status":\n- .status.phase\n- .status.size`;
      assert.equal(body.message, `Apply failed with 2 conflicts: ${text}`);
    }));

  it("takes a reference to an owner as a whole", () =>
    withServer({}, async (server) => {
      const config = (more: object) => ({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          name: "a",
          ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u", ...more }],
        },
      });
      await apply(server, `${CONFIG_MAPS}/a`, "one", config({ controller: true }));
      const other = await apply(server, `${CONFIG_MAPS}/a`, "two", config({}));
      assert.match(other.body.message, /conflict with "one": \.metadata\.ownerReferences\[uid="u"\]$/);
      const { body } = await apply(server, `${CONFIG_MAPS}/a`, "one", config({}));
      assert.equal(body.metadata.ownerReferences[0].controller, undefined);
    }));

  it("removes an element that another manager has only fields in, and what it had there", () =>
    withServer({}, async (server) => {
      const config = (env: object[]) => ({
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "web" },
        spec: { template: { spec: { containers: [{ name: "main", env }] } } },
      });
      await apply(server, DEPLOYMENT, "one", config([{ name: "A", value: "1" }]));
      const change = { spec: config([{ name: "A", value: "2" }]).spec };
      await patch(server, DEPLOYMENT, change, "strategic-merge");
      const { body } = await apply(server, DEPLOYMENT, "one", config([]));
      assert.deepEqual(body.spec.template.spec.containers[0].env ?? [], []);
      assert.deepEqual(body.metadata.managedFields.map(({ manager }: Json) => manager), ["one"]);
    }));

  it("takes over a field that an update has made a text out of an object", () =>
    withServer({ customResources: [WIDGET_RESOURCE] }, async (server) => {
      const config = (spec: object) => newWidget({ metadata: { name: "a" }, spec });
      await apply(server, WIDGET, "one", config({ at: { x: 1 } }));
      const { body } = await patch(server, `${WIDGET}?fieldManager=two`, { spec: { at: "text" } });
      const [{ manager, fieldsV1 }] = body.metadata.managedFields;
      assert.deepEqual([manager, fieldsV1], ["two", { "f:spec": { "f:at": {} } }]);
      const other = await apply(server, WIDGET, "one", config({ at: { x: 1 } }));
      assert.match(other.body.message, /conflict with "two" using example.com\/v1: \.spec\.at$/);
    }));
});
