import { isConflict, type KubernetesObject, newCluster, type StatusError } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";

type ConfigMap = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };
type Deployment = KubernetesObject & { readonly spec?: unknown };

function setUp() {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const server = new InMemoryApiServer({ clock });
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const configMaps = cluster.resource<ConfigMap>("v1/configmaps", { namespace: "default" });
  const deployments = cluster.resource<Deployment>("apps/v1/deployments", { namespace: "default" });
  return {
    clock,
    server,
    configMaps,
    apply: (data: Record<string, string>, fieldManager = "me", more: object = {}) =>
      configMaps.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data }, {
        fieldManager,
        ...more,
      }),
    applyDeployment: (spec: unknown, fieldManager = "me", more: object = {}) =>
      deployments.apply({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "a" }, spec }, {
        fieldManager,
        ...more,
      }),
    entries: (object: KubernetesObject) =>
      (object.metadata?.managedFields as { manager: string; operation: string; fieldsV1: object }[]).map((
        { manager, operation, fieldsV1 },
      ) => [manager, operation, fieldsV1]),
  };
}

describe("InMemoryApiServer: server-side apply", () => {
  it("creates, changes its own fields, removes those that are not applied any more", async () => {
    const { apply, server, entries } = setUp();
    const first = await apply({ a: "1", b: "2" });
    assert.deepEqual(first.data, { a: "1", b: "2" });
    assert.deepEqual(entries(first), [["me", "Apply", { "f:data": { "f:a": {}, "f:b": {} } }]]);
    server.patch("v1/configmaps", "default/a", { data: { other: "x" } });
    const second = await apply({ a: "3" });
    assert.deepEqual(second.data, { a: "3", other: "x" });
    assert.equal(second.metadata?.uid, first.metadata?.uid);
    assert.deepEqual(entries(second)[0], ["me", "Apply", { "f:data": { "f:a": {} } }]);
  });

  it("removes what was applied of an object or a list that is applied empty", async () => {
    const { apply, configMaps, entries, server } = setUp();
    await apply({ a: "1" });
    server.patch("v1/configmaps", "default/a", { data: { other: "x" } });
    assert.deepEqual((await apply({})).data, { other: "x" });
    const hold = (finalizers: readonly string[], fieldManager: string) =>
      configMaps.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b", finalizers } }, {
        fieldManager,
      });
    await hold(["x/a", "x/b"], "me");
    const held = await hold(["x/c"], "you");
    assert.deepEqual(held.metadata?.finalizers, ["x/a", "x/b", "x/c"]);
    assert.deepEqual(await configMaps.replace(held), held);
    server.delete("v1/configmaps", "default/b");
    const less = await hold(["x/b"], "me");
    assert.deepEqual([less.metadata?.finalizers, entries(less)], [["x/b", "x/c"], [
      ["me", "Apply", { "f:metadata": { "f:finalizers": { 'v:"x/b"': {} } } }],
      ["you", "Apply", { "f:metadata": { "f:finalizers": { 'v:"x/c"': {} } } }],
    ]]);
    assert.deepEqual((await hold([], "you")).metadata?.finalizers, ["x/b"]);
    await hold([], "me");
    assert.equal(server.get("v1/configmaps", "default/b"), undefined);
  });

  it("has a new owner of what another client puts into an object that was applied empty", async () => {
    const { apply, server, entries } = setUp();
    await apply({});
    const added = server.patch("v1/configmaps", "default/a", { data: { x: "1" } });
    assert.deepEqual(entries(added).at(-1)?.[2], { "f:data": { "f:x": {} } });
    assert.deepEqual((await apply({})).data, { x: "1" });
  });

  it("writes nothing when nothing changes", async () => {
    const { apply, server, clock } = setUp();
    const first = await apply({ a: "1" });
    await clock.advance(10_000);
    assert.deepEqual(await apply({ a: "1" }), first);
    assert.equal(server.resourceVersion, first.metadata?.resourceVersion);
  });

  it("refuses to change a field of another manager unless it is forced to", async () => {
    const { apply, entries } = setUp();
    await apply({ a: "1", b: "1" }, "other");
    await assert.rejects(apply({ a: "2" }), (error: StatusError) => {
      assert.ok(isConflict(error));
      assert.match(error.message, /Apply failed with 1 conflict: conflict with "other": \.data\.a$/);
      assert.deepEqual(error.status.details?.causes, [
        { reason: "FieldManagerConflict", message: 'conflict with "other"', field: ".data.a" },
      ]);
      return true;
    });
    const forced = await apply({ a: "2" }, "me", { force: true });
    assert.deepEqual(forced.data, { a: "2", b: "1" });
    assert.deepEqual(entries(forced), [
      ["me", "Apply", { "f:data": { "f:a": {} } }],
      ["other", "Apply", { "f:data": { "f:b": {} } }],
    ]);
  });

  it("shares a field that two managers apply with one value: it stays until both have left it", async () => {
    const { apply } = setUp();
    await apply({ a: "1" }, "other");
    await apply({ a: "1", b: "2" });
    assert.deepEqual((await apply({ b: "2" })).data, { a: "1", b: "2" });
    assert.deepEqual((await apply({}, "other")).data, { b: "2" });
  });

  it("loses a field to a client that changes it by another write", async () => {
    const { apply, configMaps, entries } = setUp();
    await apply({ a: "1", b: "2" });
    const changed = await configMaps.patch("a", { data: { a: "9" } }, { query: { fieldManager: "editor" } });
    assert.deepEqual(entries(changed), [
      ["me", "Apply", { "f:data": { "f:b": {} } }],
      ["editor", "Update", { "f:data": { "f:a": {} } }],
    ]);
    await assert.rejects(apply({ a: "1", b: "2" }), isConflict);
  });

  it("loses a field to a client that removes it, and may apply it again", async () => {
    const { apply, configMaps, entries } = setUp();
    await apply({ a: "1", b: "2" });
    const removed = await configMaps.patch("a", { data: { a: null } }, { query: { fieldManager: "editor" } });
    assert.deepEqual(removed.data, { b: "2" });
    assert.deepEqual(entries(removed), [["me", "Apply", { "f:data": { "f:b": {} } }]]);
    assert.deepEqual((await apply({ a: "1", b: "2" })).data, { a: "1", b: "2" });
  });

  it("merges the lists of built-in kinds by their keys", async () => {
    const { applyDeployment, server } = setUp();
    const container = (name: string, image: string, more: object = {}) => ({ name, image, ...more });
    const spec = (...containers: object[]) => ({ template: { spec: { containers } } });
    const ports = [{ containerPort: 80 }];
    const first = await applyDeployment(spec(container("web", "web:1", { ports })));
    await applyDeployment(spec(container("sidecar", "proxy:1")), "injector");
    const second = await applyDeployment(spec(container("web", "web:2", { ports })));
    assert.deepEqual(
      second.spec,
      spec(container("web", "web:2", { ports }), container("sidecar", "proxy:1")),
    );
    await assert.rejects(
      applyDeployment(spec(container("sidecar", "other:1"))),
      /conflict with "injector": \.spec\.template\.spec\.containers\[name="sidecar"\]\.image$/,
    );
    const third = await applyDeployment(spec(), "injector");
    assert.deepEqual(third.spec, spec(container("web", "web:2", { ports })));
    assert.equal(first.metadata?.uid, third.metadata?.uid);
    server.close();
  });

  it("refuses a configuration with managed fields, such as an object that was read", async () => {
    const { apply, configMaps } = setUp();
    const object = await apply({ a: "1" });
    await assert.rejects(configMaps.apply(object, { fieldManager: "me" }), (error: StatusError) => {
      assert.deepEqual([error.httpStatus, error.status.message], [400, "metadata.managedFields must be nil"]);
      return true;
    });
  });

  it("needs the name of a manager", async () => {
    const { apply } = setUp();
    await assert.rejects(apply({}, ""), /fieldManager: Required value: is required for apply patch/);
  });
});
